"""Where a text is cut: never inside what people see as one character, at an edge where one is near, never over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from contextshift import text_counter
from contextshift.cutting import cut_at, cut_to_fit, longest_prefix, near_edge, whole_characters
from contextshift.estimate import EstimateCounter
from contextshift.strategies.texts import cutter


@pytest.mark.parametrize(
    ("text", "end", "whole"),
    [
        ("abc", 2, 2),
        ("e\u0301a", 1, 0),
        ("a\U0001f44d\U0001f3fd", 2, 1),
        ("x\U0001f469\u200d\U0001f4bb", 2, 1),
        ("x\U0001f469\u200d\U0001f4bb", 3, 1),
        ("a\r\nb", 2, 1),
        ("abc", 3, 3),
        ("a" + "\u0301" * 100, 60, 60),
        ("\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea", 1, 0),  # flags are pairs
        ("\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea", 2, 2),
        ("\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea", 3, 2),
        ("x1\ufe0f\u20e3y", 3, 1),  # a keycap
        ("x\U0001f3f4\U000e0067\U000e0062\U000e007f", 3, 1),  # a region's flag
        ("\u0928\u092e\u0938\u094d\u0924\u0947", 4, 2),  # a conjunct
        ("\u1112\u1161\u11ab\u1100", 2, 0),  # a syllable of Hangul letters
        ("a\ud83d\ude00", 2, 1),
    ],
)
def test_a_visible_character_is_not_split(text: str, end: int, whole: int) -> None:
    assert whole_characters(text, end) == whole


@pytest.mark.parametrize(
    ("text", "end", "kept"),
    [
        ("One two. Three four", 12, "One two."),
        ("Nothing ends here at all", 14, "Nothing ends"),
        ("Nothing ends here at all", 12, "Nothing ends"),
        ("Is it 3.14159 or so", 10, "Is it"),
        ("one\ntwo three four", 7, "one\n"),
        ("x" * 99, 50, "x" * 50),
        ("これは文です。次の文です。", 9, "これは文です。"),
        ("He said “so.” And left again", 19, "He said “so.”"),
        ("word " + "x" * 99, 60, "word " + "x" * 55),  # the word's beginning is not near
        ("A. b " + "word " * 300, 1_202, ("A. b " + "word " * 300)[:1_199]),  # nor is the sentence's end
        ("ab 漢字漢字漢字", 6, "ab 漢字漢"),  # no spaces to look for
        ("whole", 5, "whole"),
        ("nothing", 0, ""),
    ],
)
def test_an_edge_is_taken_where_it_is_near(text: str, end: int, kept: str) -> None:
    assert text[: near_edge(text, end)] == kept


@settings(deadline=None)
@given(st.text(st.sampled_from("ab .!\n。\u0301\u200d\U0001f1eb"), max_size=120), st.integers(0, 120))
def test_an_edge_is_never_later_and_keeps_half(text: str, end: int) -> None:
    end = whole_characters(text, min(end, len(text)))
    edge = near_edge(text, end)
    assert end // 2 - 32 <= edge <= end
    assert whole_characters(text, edge) == edge or end - edge <= 32


# -- what Unicode calls one character ----------------------------------------------------------------

PIECES = st.sampled_from([
    "a", "Z", " ", ".", "\n", "\r", "\r\n", "1", "é", "e\u0301", "\u0301", "漢", "か", "か\u3099", "ｶ\uff9e", "한",
    "\u1112\u1161\u11ab", "\u1100\u1100\u1161", "\u1100\uac00\u11a8", "\ua960\u1161", "\u0e01\u0e33",
    "\u0e81\u0eb3", "नमस्ते", "क\u200cष", "क\u094d\u200dष", "\u200d", "\U0001f469\u200d\U0001f4bb",
    "\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "❤\ufe0f", "1\ufe0f\u20e3",
    "\U0001f1eb\U0001f1f7", "\U0001f1e9", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\u06001",
    "\u0627\u0651", "\ufeff",
])  # fmt: skip
TEXT = st.lists(PIECES, max_size=30).map("".join) | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def boundaries(text: str) -> set[int]:
    """Where Unicode's extended grapheme clusters end (UAX #29), by another library."""
    return {0, *(match.end() for match in regex.finditer(r"\X", text))}


@settings(max_examples=500)
@given(TEXT, st.integers(0, 80))
def test_a_whole_character_ends_where_unicode_says_one_ends(text: str, end: int) -> None:
    end = min(end, len(text))
    position = whole_characters(text, end)
    assert position <= end
    assert position in boundaries(text) or end - position == 0  # only a cluster of more than 32 is cut
    assert position in boundaries(text) or len(max(regex.findall(r"\X", text), key=len)) > 16


# -- cutting to what fits ----------------------------------------------------------------------------


def words(text: str) -> int:
    return len(text.split())


def odd(text: str) -> int:
    """Counts less for some longer texts, as tokenizers do."""
    return max(0, len(text) - 3 * text.count("aa") + text.count("é"))


COUNTS: list[Callable[[str], int]] = [len, words, odd, lambda text: len(text.encode()), lambda text: text.count("a")]


def counters(count: Callable[[str], int]) -> list[Callable[[str, int], str]]:
    return [
        text_counter(count).cut,
        lambda text, limit: cutter(text_counter(count))(text, limit, 0),
        lambda text, limit: cutter(lambda message: count(str(message["content"])))(text, limit, 0),
        lambda text, limit: cut_to_fit(lambda prefix: count(prefix) <= limit, text, 3),
    ]


@settings(max_examples=300)
@given(TEXT, st.integers(1, 60), st.sampled_from(COUNTS), st.integers(0, 3))
def test_a_cut_is_a_prefix_of_whole_characters_and_never_over(text: str, limit: int, count: Any, way: int) -> None:
    short = counters(count)[way](text, limit)
    assert text.startswith(short)
    assert count(short) <= limit
    assert len(short) in boundaries(text) or len(max(regex.findall(r"\X", text), key=len)) > 16
    if count(text) <= limit and way < 3:
        assert short == text


@given(st.lists(st.sampled_from(["one", "two.", "three", "four!"]), min_size=30, max_size=90).map(" ".join), st.data())
def test_a_cut_of_prose_ends_with_a_word(text: str, data: st.DataObject) -> None:
    limit = data.draw(st.integers(20, len(text) - 1))
    short = text_counter(len).cut(text, limit)
    assert not text[len(short)].isalnum() or short[-1] == " "
    assert len(short) >= limit // 2


def test_nothing_is_left_where_nothing_fits() -> None:
    assert text_counter(lambda text: 9).cut("a text", 3) == ""
    assert cutter(lambda message: 9)("a text", 3, 0) == ""
    assert text_counter(len).cut("a text", 0) == text_counter(len).cut("a text", -1) == ""
    assert text_counter(len).cut("\U0001f469\u200d\U0001f4bb!", 2) == ""  # a character is whole or gone


def test_a_cut_that_does_not_fit_after_all_becomes_shorter_and_stays_whole() -> None:
    text = "e\u0301" * 40
    short = cut_at(lambda prefix: len(prefix) <= 20 and len(prefix) % 4 == 0, text, 50)
    assert (len(short) <= 20, len(short) % 4) == (True, 0)


@given(st.integers(0, 200), st.integers(-5, 300), st.integers(0, 250))
def test_the_longest_prefix_is_found_from_any_first_guess(size: int, start: int, most: int) -> None:
    assert longest_prefix(lambda end: end <= most, start, size) == min(size, most)


def test_the_work_is_in_proportion_to_what_is_kept() -> None:
    seen: list[int] = []

    def fits(prefix: str) -> bool:
        seen.append(len(prefix))
        return len(prefix) <= 1_000

    assert cut_to_fit(fits, "a" * 10_000_000, 1_000) == "a" * 1_000
    assert sum(seen) < 40_000


@given(TEXT, st.integers(1, 200))
def test_an_estimated_cut_is_whole_too(text: str, limit: int) -> None:
    short = EstimateCounter().cut(text, limit)
    assert EstimateCounter().text(short) <= limit
    assert len(short) in boundaries(text) or len(max(regex.findall(r"\X", text), key=len)) > 16
