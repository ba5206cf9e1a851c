"""Where a text may be cut: never inside a character as people see it, after a sentence or a word where one is near.

Whatever counts is only asked whether a prefix fits. No tokenizer is quite monotone, so a cut is asked about again
once it has been moved, and the answer stands.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

__all__ = ["cut_at", "cut_to_fit", "longest_prefix", "near_edge", "whole_characters"]

_JOINERS = "\u200c\u200d\ufe0e\ufe0f\u0e33\u0eb3\uff9e\uff9f"
"""Joiners, selectors, and the vowels and marks of Thai, Lao and Kana that Unicode calls letters."""
_EXTENDING = (
    ("\U0001f3fb", "\U0001f3ff"),  # skin tones
    ("\U000e0020", "\U000e007f"),  # the letters of flags of regions
    ("\u1160", "\u11ff"),  # vowels and final consonants of a Hangul syllable
    ("\ud7b0", "\ud7fb"),
)
_LEADING = (("\u1100", "\u115f"), ("\ua960", "\ua97c"))  # consonants that begin a Hangul syllable
_SYLLABLES = (*_LEADING, ("\uac00", "\ud7a3"))  # what may follow one, beside the vowels above
_PREPENDED = (
    *(("\u0600", "\u0605"), ("\u06dd", "\u06dd"), ("\u070f", "\u070f"), ("\u0890", "\u0891"), ("\u08e2", "\u08e2")),
    *(("\u0d4e", "\u0d4e"), ("\U000110bd", "\U000110bd"), ("\U000110cd", "\U000110cd"), ("\U000111c2", "\U000111c3")),
    *(("\U0001193f", "\U0001193f"), ("\U00011941", "\U00011941"), ("\U00011a3a", "\U00011a3a")),
    *(("\U00011a84", "\U00011a89"), ("\U00011d46", "\U00011d46"), ("\U00011f02", "\U00011f02")),
)  # signs of Arabic and Indic scripts that stand over or join what comes after them
_FLAGS = ("\U0001f1e6", "\U0001f1ff")
_FLAGS_COUNTED = 1_024
_MARKS = frozenset({"Mn", "Mc", "Me"})
_VIRAMA = 9
_LONGEST_CLUSTER = 32

_SENTENCE = re.compile(r"[.!?…]['\")\]»”’]{0,4}(?=\s)|[。！？][」』”’）]{0,4}|\n")
_SENTENCE_SHARE = 8
"""The end of a sentence is near within an eighth of what fits, or a word's reach, but no more than `_REACH_MOST`."""
_UNSPACED = "\u2e80"
"""From here on scripts put no spaces between words."""
_REACH, _REACH_MOST = 24, 2_000
"""Characters. A word's end is near within the first: most words of most languages are shorter."""


def cut_to_fit(fits: Callable[[str], bool], text: str, start: int) -> str:
    """Return the longest convenient prefix of ``text`` that fits, the empty text where none does.

    ``start`` is a first guess, in characters, of how much does; the work is in proportion to the answer.

    >>> cut_to_fit(lambda text: len(text) <= 11, "One two. Three four", 1)
    'One two.'
    """
    return cut_at(fits, text, longest_prefix(lambda end: fits(text[:end]), start, len(text)))


def cut_at(fits: Callable[[str], bool], text: str, end: int) -> str:
    """Return ``text`` up to ``end``, or up to the nearest place before it that cuts well and fits."""
    whole, step = whole_characters(text, end), 1
    while whole > 0 and not fits(text[:whole]):
        whole, step = whole_characters(text, max(0, whole - step)), 2 * step
    edge = near_edge(text, whole)
    return text[: edge if edge == whole or fits(text[:edge]) else whole]


def longest_prefix(fits: Callable[[int], bool], start: int, size: int) -> int:
    """Return the largest n up to ``size`` with ``fits(n)``, 0 for none, given that it holds below one that holds.

    Doubles from ``start`` before it bisects, so the work is bounded by the answer, not by ``size``.
    """
    low, high = 0, min(max(start, 1), size)
    while high > low and fits(high):
        if high == size:
            return size
        low, high = high, min(2 * high, size)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def whole_characters(text: str, end: int) -> int:
    """Return the largest position up to ``end`` at which cutting ``text`` splits no visible character.

    Accents, vowel signs, emoji modifiers, joined emoji, flags and Hangul letters stay together, within reason: a
    cluster of more than 32 code points is cut. This is a light form of Unicode's grapheme clusters (UAX #29).
    """
    position = end
    while 0 < position < len(text) and _continues(text, position):
        position -= 1
        if end - position >= _LONGEST_CLUSTER:
            return end
    return position


def near_edge(text: str, end: int) -> int:
    """Return where to cut instead of at ``end``: after a sentence, else between words, where such a place is near.

    Never after ``end``, never inside a visible character, and at least half of what fits is kept.

    >>> near_edge("One two. Three fo", 17), near_edge("One two. Three four", 10), near_edge("a" * 99, 50)
    (17, 8, 50)
    """
    if not 0 < end < len(text):
        return end
    least = end - end // 2
    first = max(least, end - min(_REACH_MOST, max(_REACH, end // _SENTENCE_SHARE)))
    # One character of what is cut off is looked at: a full stop before it may or may not end a sentence.
    ends = [match.end() for match in _SENTENCE.finditer(text, first - 1, end + 1) if first <= match.end() <= end]
    edge = ends[-1] if ends else _word_edge(text, max(least, end - _REACH), end)
    return whole_characters(text, edge)


def _word_edge(text: str, first: int, end: int) -> int:
    before, after = text[end - 1], text[end]
    if not (before.isalnum() and after.isalnum()) or before >= _UNSPACED or after >= _UNSPACED:
        return end
    return next((position for position in range(end - 1, first - 1, -1) if text[position].isspace()), end)


def _continues(text: str, position: int) -> bool:
    after, before = text[position], text[position - 1]
    if not before.isascii() and _within(before, _PREPENDED):
        return after not in "\r\n\t"
    if after.isascii():
        return after == "\n" and before == "\r"
    if after in _JOINERS or _within(after, _EXTENDING) or unicodedata.category(after) in _MARKS:
        return True
    if _FLAGS[0] <= after <= _FLAGS[1]:
        return _letters_of_flags(text, position) % 2 == 1
    # A virama joins the consonant after it; half a surrogate pair is half a character.
    return (
        before == "\u200d"
        or (unicodedata.combining(before) == _VIRAMA and after.isalpha())
        or (_within(before, _LEADING) and _within(after, _SYLLABLES))
        or ("\udc00" <= after <= "\udfff" and "\ud800" <= before < "\udc00")
    )


def _within(character: str, ranges: tuple[tuple[str, str], ...]) -> bool:
    return any(first <= character <= last for first, last in ranges)


def _letters_of_flags(text: str, end: int) -> int:
    """Return how many regional indicators, two of which make a flag, end at ``end``; counted up to a bound."""
    position = end
    while position > max(0, end - _FLAGS_COUNTED) and _FLAGS[0] <= text[position - 1] <= _FLAGS[1]:
        position -= 1
    return end - position
