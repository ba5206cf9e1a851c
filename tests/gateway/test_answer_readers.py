"""What is read of an answer while it passes: the same however it is cut, and an error before content is seen as one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bastion.wire.answers import JsonReader, StreamReader
from bastion.wire.deltas import OpenAIDeltas

TOO_LONG = {"message": "prompt is too long: 9 tokens > 8 maximum", "code": 400}
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


def chunk(delta: dict[str, Any] | None = None, **choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": None, **choice}]}


def read(*events: dict[str, Any] | bytes, reader: StreamReader | None = None) -> StreamReader:
    reader = StreamReader() if reader is None else reader
    for event in events:
        reader.feed(event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n")
    return reader


def told(reader: StreamReader) -> tuple[Any, ...]:
    return reader.begun, reader.error, reader.failure, reader.usage


EVENTS = [
    b": wait",
    b"data: " + json.dumps(chunk({"role": "assistant", "content": ""})).encode(),
    b"data:" + json.dumps(chunk({"content": "a"})).encode(),
    b'data: {"error":\n' + b"data: " + json.dumps(TOO_LONG).encode() + b"\ndata: }",
    b"event: error\nid: 4\ndata: " + json.dumps(TOO_LONG).encode(),
    b"event: error\ndata: prompt is too long",
    b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode(),
    b"data: [DONE]",
    b"retry: 5\ndata",
]


@given(
    events=st.lists(st.sampled_from(EVENTS), max_size=5),
    end=ENDS,
    mark=st.booleans(),
    closed=st.booleans(),
    cuts=st.lists(st.integers(0, 2000), max_size=12),
)
def test_a_stream_is_read_the_same_however_its_lines_end_and_it_is_cut(events, end, mark, closed, cuts):
    plain = b"\n\n".join(events) + (b"\n\n" if closed else b"")
    raw = b"\xef\xbb\xbf" * mark + plain.replace(b"\n", end)
    whole, cut = StreamReader(), StreamReader()
    whole.feed(plain)
    places = sorted({min(place, len(raw)) for place in cuts})
    for start, stop in zip([0, *places], [*places, len(raw)], strict=True):
        cut.feed(raw[start:stop])
    whole.end()
    cut.end()
    # Where an event stands beside another in one chunk changes nothing: what came first decides.
    assert told(cut) == told(whole)


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "a"},
        {"reasoning_content": "a"},
        {"reasoning": "a"},
        {"tool_calls": [{"index": 0}]},
        {"audio": {"id": "a"}},
        {"refusal": "no"},
    ],
)
def test_content_begins_an_answer_and_an_error_after_it_only_follows(delta):
    reader = read(chunk({"role": "assistant", "content": ""}), chunk({"role": "assistant"}))
    assert not reader.begun
    assert read(chunk(delta), reader=reader).begun
    read({"error": TOO_LONG}, reader=reader)
    assert (reader.begun, reader.error) == (True, "UPSTREAM_STREAM_ERROR")


def test_an_end_without_content_is_an_answer_too():
    assert read(chunk({"role": "assistant"}), chunk(finish_reason="stop")).begun
    assert read({"choices": [{"index": 0, "text": "a"}]}).begun
    assert read(chunk({"role": "assistant"}), b"data: [DONE]\n\n").begun


@pytest.mark.parametrize(
    "failing",
    [
        {"error": TOO_LONG},
        {**chunk({"content": ""}, finish_reason="error"), "error": TOO_LONG},
        {**chunk({"content": "x"}), "error": TOO_LONG},
        chunk({"content": ""}, finish_reason="error", error=TOO_LONG),
        b'event: error\ndata: {"message": "x"}\n\n',
        b"event: error\ndata: prompt is too long\n\n",
    ],
)
def test_an_error_before_content_is_one_whatever_stands_beside_it(failing):
    reader = read(b": wait\n\n", chunk({"role": "assistant", "content": ""}), failing, b"data: [DONE]\n\n")
    assert (reader.begun, reader.error) == (False, "UPSTREAM_STREAM_ERROR")
    assert reader.failure


def whole(answer: dict[str, Any]) -> JsonReader:
    reader = JsonReader()
    for byte in json.dumps(answer).encode():
        reader.feed(bytes([byte]))
    reader.end()
    return reader


def test_a_whole_answer_with_an_error_beside_an_empty_choice_is_an_error():
    empty = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
    for answer in ({"choices": [empty], "error": TOO_LONG}, {"choices": [{**empty, "error": TOO_LONG}]}):
        reader = whole(answer)
        assert (reader.begun, reader.error) == (False, "UPSTREAM_ERROR")
        assert reader.failure["error"] == TOO_LONG
    assert whole({"choices": [{**empty, "message": {"content": "a"}}], "error": TOO_LONG}).begun
    good = whole({"choices": [empty]})
    assert (good.begun, good.error, good.failure) == (True, None, None)


def test_a_generation_reads_every_chunk_but_those_that_fail():
    reader = OpenAIDeltas().reader("text/event-stream")
    said = [chunk({"content": "a"}), chunk({"content": "b"})]
    for event in (*said, chunk({"content": "c"}, error=TOO_LONG)):
        reader.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    assert reader.taken() == said


def test_an_event_that_is_too_large_passes_unread_and_the_next_is_read():
    reader = StreamReader()
    reader.feed(b"data: ")
    for _ in range(5):
        reader.feed(b"x" * 1024 * 1024)
    reader.feed(b"\ndata: y\n\ndata: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\n")
    assert reader.usage == USAGE
