"""Taking messages apart: what is seen of them, and that nothing odd makes it raise."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextshift.estimate import EstimateCounter
from contextshift.pieces import (
    Call,
    compact_json,
    near_edge,
    parsed_arguments,
    take_apart,
    whole_characters,
    without_data,
)
from contextshift.words import WordCounter

BASE64 = base64.b64encode(bytes(range(256)) * 8).decode()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["role", "content", "name", "tool_calls", "function_call", "refusal", "type", "text", "function", "arguments"]
)
ODD = st.dictionaries(FIELDS, JSON | st.lists(st.dictionaries(FIELDS, JSON, max_size=4), max_size=3), max_size=6)


@settings(deadline=None)
@given(ODD)
def test_no_message_makes_a_counter_raise_or_go_below_zero(message: dict[str, Any]) -> None:
    for counter in (WordCounter(), EstimateCounter()):
        assert counter(message) >= 0
        assert counter.fixed({"tools": message.get("content"), "response_format": message, "messages": [message]}) >= 0


def test_calls_of_each_shape_are_seen_in_order() -> None:
    message = {
        "tool_calls": [
            {"function": {"name": "a", "arguments": '{"x": 1}'}},
            {"type": "custom", "custom": {"name": "b", "input": "free text"}},
            {"function": {"name": "c", "arguments": {"already": "parsed"}}},
            None,
        ],
        "function_call": {"name": "d", "arguments": None},
    }
    expected = [Call("a", '{"x": 1}'), Call("b", "free text"), Call("c", '{"already":"parsed"}'), Call("d", "")]
    assert take_apart(message).calls == expected


def test_base64_in_a_part_of_unknown_type_is_not_text() -> None:
    part = {"type": "novel", "source": {"data": BASE64}, "note": "kept", "link": "data:image/png;base64," + BASE64}
    assert take_apart({"content": [part]}).others == ['{"type":"novel","source":{"data":""},"note":"kept","link":""}']


def test_text_that_only_looks_like_data_stays_text() -> None:
    assert without_data({"data": "short", "story": BASE64}) == {"data": "short", "story": BASE64}
    assert take_apart({"content": "data:image/png;base64,AAAA"}).texts == ["data:image/png;base64,AAAA"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, "é"]}, '{"a":[1,"é"]}'),
        ({("a", 1): 2}, "{('a', 1): 2}"),
        (
            {
                1,
            },
            '"{1}"',
        ),
    ],
)
def test_compact_json_writes_anything(value: object, text: str) -> None:
    assert compact_json(value) == text


def test_nesting_deeper_than_the_stack_is_answered_all_the_same() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert compact_json(deep) == ""
    assert take_apart({"content": [{"type": "novel", "body": deep}]}).others == [""]
    assert parsed_arguments("[" * 100_000) is None


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


def test_a_part_in_geminis_shape_is_an_image_or_a_file() -> None:
    image, audio = ({"inline_data": {"mime_type": kind, "data": BASE64}} for kind in ("image/png", "audio/wav"))
    file = {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://a/b.pdf"}}
    pieces = take_apart({"content": [image, audio, file]})
    assert (pieces.images, pieces.media, pieces.others) == ([image], [audio, file], [])


MEDIA_KEYS = st.sampled_from(
    ["image_url", "url", "detail", "source", "data", "media_type", "inline_data", "inlineData", "mime_type", "mimeType",
     "file", "file_data", "fileData", "filename", "input_audio", "format", "video_url", "media_resolution", "level"]
)  # fmt: skip
MEDIA_TYPES = st.sampled_from(["image_url", "input_image", "image", "input_audio", "file", "document", "video_url"])
MEDIA_VALUES = st.recursive(
    JSON | st.sampled_from(["data:image/png;base64,iVBORw0KGgo", "data:,", "data:audio/wav;base64,UklG", "text/plain"]),
    lambda inner: st.dictionaries(MEDIA_KEYS, inner, max_size=4),
    max_leaves=6,
)


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(MEDIA_KEYS, MEDIA_VALUES, max_size=4), st.none() | MEDIA_TYPES)
def test_no_odd_image_or_file_makes_a_counter_raise(part: dict[str, Any], kind: str | None) -> None:
    whole = part if kind is None else {"type": kind, **part}
    assert EstimateCounter()({"role": "user", "content": [whole]}) >= 6
    assert WordCounter()({"role": "user", "content": [whole]}) >= 0
