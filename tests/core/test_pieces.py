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
    parsed_arguments,
    take_apart,
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
    assert without_data({"data": deep}) == ""
    assert EstimateCounter().fixed({"tools": [{"function": {"name": "f", "parameters": deep}}]}) > 0


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
