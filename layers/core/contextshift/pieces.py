"""A message taken apart into what can cost tokens: texts, calls, images, other media, and the rest.

Every counter prices the same pieces, each in its own way, so what is *seen* in a message is decided
once, here. Nothing here raises on odd fields: a counter must answer for any mapping that JSON can hold.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contextshift.nested import IMAGE_PARTS, MEDIA_PARTS, Lifted, inline_type, is_data, lift, part_kind

__all__ = [
    "Call",
    "Pieces",
    "compact_json",
    "near_edge",
    "parsed_arguments",
    "take_apart",
    "whole_characters",
    "without_data",
]

TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Part types whose named field is text the model reads: chat completions and the Responses API."""

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str)
_JOINERS = "\u200d\ufe0e\ufe0f"
_EXTENDING = (
    ("\U0001f3fb", "\U0001f3ff"),  # skin tones
    ("\U000e0020", "\U000e007f"),  # the letters of flags of regions
    ("\u1160", "\u11ff"),  # vowels and final consonants of a Hangul syllable
    ("\ud7b0", "\ud7fb"),
)
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


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool, as the assistant made it."""

    name: str
    arguments: str
    """As they stand in the message: JSON that may be broken, or a custom tool's free input."""


@dataclass(slots=True)
class Pieces:
    """What of one message can cost tokens, in order; each list may be empty."""

    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    images: list[Mapping[str, Any]] = field(default_factory=list)
    media: list[Mapping[str, Any]] = field(default_factory=list)
    """Audio, files and video, as the parts stand."""
    others: list[str] = field(default_factory=list)
    """Parts of other types as compact JSON, their images, files and binary data left out."""


def take_apart(message: Mapping[str, Any]) -> Pieces:
    """Return the pieces of ``message``; never raises, ``None`` fields are as good as absent."""
    pieces = Pieces()
    for part in _parts(message.get("content")):
        _sort_in(part, pieces)
    pieces.calls = [*_calls(message.get("tool_calls")), *_function_call(message.get("function_call"))]
    return pieces


def compact_json(value: object) -> str:
    """Return ``value`` as JSON without spaces, non-ASCII as it is.

    What JSON cannot hold is written as Python would; nesting deeper than the interpreter's stack
    (the service refuses more than 100 levels) gives the empty text.

    >>> compact_json({"a": [1, "é"]})
    '{"a":[1,"é"]}'
    """
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        return ""
    except (TypeError, ValueError):
        return repr(value)


def parsed_arguments(arguments: str) -> dict[str, Any] | None:
    """Return call arguments as an object, None where they are no JSON or no object."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def without_data(value: object, key: str = "") -> object:
    """Return a copy of ``value`` with base64 data emptied: data URLs anywhere, long base64 under the usual keys."""
    if isinstance(value, str):
        return "" if is_data(value, key) else value
    if isinstance(value, Mapping):
        return {name: without_data(item, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_data(item, key) for item in value]
    return value


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
    if after.isascii():
        return after == "\n" and before == "\r"
    if after in _JOINERS or any(first <= after <= last for first, last in _EXTENDING):
        return True
    if _FLAGS[0] <= after <= _FLAGS[1]:
        return _letters_of_flags(text, position) % 2 == 1
    # A virama joins the consonant after it; half a surrogate pair is half a character.
    joined = before == "\u200d" or (unicodedata.combining(before) == _VIRAMA and after.isalpha())
    return (
        joined
        or unicodedata.category(after) in _MARKS
        or ("\udc00" <= after <= "\udfff" and "\ud800" <= before < "\udc00")
    )


def _letters_of_flags(text: str, end: int) -> int:
    """Return how many regional indicators, two of which make a flag, end at ``end``; counted up to a bound."""
    position = end
    while position > max(0, end - _FLAGS_COUNTED) and _FLAGS[0] <= text[position - 1] <= _FLAGS[1]:
        position -= 1
    return end - position


def _parts(content: object) -> Iterable[object]:
    if content is None:
        return ()
    return content if isinstance(content, list | tuple) else (content,)


def _sort_in(part: object, pieces: Pieces) -> None:
    if isinstance(part, str):
        pieces.texts.append(part)
    elif not isinstance(part, Mapping):
        pieces.others.append(compact_json(part))
    elif (text := _text_of(part)) is not None:
        pieces.texts.append(text)
    elif (media_type := inline_type(part)) is not None:
        (pieces.images if media_type.startswith("image/") else pieces.media).append(part)
    elif part_kind(part) in IMAGE_PARTS:
        pieces.images.append(part)
    elif part_kind(part) in MEDIA_PARTS:
        pieces.media.append(part)
    else:
        pieces.others.append(_json_without_media(part, pieces))


def _text_of(part: Mapping[str, Any]) -> str | None:
    text = part.get(TEXT_PARTS.get(part_kind(part), ""))
    return text if isinstance(text, str) else None


def _json_without_media(part: Mapping[str, Any], pieces: Pieces) -> str:
    """Return a part of another kind as JSON; images and files in it go to ``pieces``."""
    found = Lifted()
    try:
        rest = compact_json(lift(part, found))
    except RecursionError:
        rest = ""
    pieces.images += found.images
    pieces.media += found.media
    return rest


def _calls(calls: object) -> Iterable[Call]:
    for call in calls if isinstance(calls, list | tuple) else ():
        if isinstance(call, Mapping):
            yield from _function_call(call.get("function"))
            yield from _function_call(call.get("custom"))


def _function_call(function: object) -> Iterable[Call]:
    if isinstance(function, Mapping):
        arguments = function.get("arguments", function.get("input"))
        yield Call(_as_text(function.get("name")), _as_text(arguments))


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact_json(value)
