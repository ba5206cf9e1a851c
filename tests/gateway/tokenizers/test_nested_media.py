"""An image costs what it costs wherever it stands, a file likewise, and base64 is never text."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bastion.tokenizers import counter_for
from contextshift.estimate import EstimateCounter
from contextshift.needs import needs_of
from contextshift.pieces import take_apart
from contextshift.tokens import TokenCounter

COUNTERS: list[TokenCounter] = [
    EstimateCounter(),
    *(counter_for(None, model) for model in ("gpt-4o", "gpt-5.4", "claude-sonnet-4-6", "gemini-2.5-pro")),
]


def png(width: int, height: int, more: int = 0) -> str:
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(300 + more)
    return base64.b64encode(header).decode()


SHAPES = [
    lambda data: {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
    lambda data: {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
    lambda data: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
    lambda data: {"type": "image", "data": data, "mimeType": "image/png"},
    lambda data: {"inlineData": {"mimeType": "image/png", "data": data}},
]
LOOSE = [
    lambda data: f"data:image/png;base64,{data}",
    lambda data: {"mimeType": "image/png", "blob": data},
    lambda data: {"media_type": "image/png", "data": data},
    lambda data: {"data": data},
]
"""Pictures that are no part of any kind we know."""
HOLDERS = [
    lambda inner: {"type": "tool_result", "tool_use_id": "a", "content": [inner]},
    lambda inner: {"type": "tool_result", "content": [{"type": "text", "text": "Here:"}, inner, {"type": "novel"}]},
    lambda inner: {"type": "function_call_output", "call_id": "a", "output": [inner]},
    lambda inner: {"functionResponse": {"name": "f", "response": {"ok": True}, "parts": [inner]}},
    lambda inner: {"type": "novel", "resource": inner},
    lambda inner: {"type": "novel", "a": {"b": [[inner]]}},
]
holders = st.lists(st.sampled_from(HOLDERS), min_size=1, max_size=4)
sides = st.integers(1, 4_000)


def held(inner: Any, by: list[Any]) -> Any:
    for holder in by:
        inner = holder(inner)
    return inner


def message(part: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": [part]}


def price(counter: TokenCounter, part: Any) -> int:
    """What a part costs beside the message around it."""
    return counter(message(part)) - counter(message({"type": "text", "text": ""}))


@given(st.sampled_from(SHAPES), holders, sides, sides)
def test_an_image_is_the_same_piece_however_deep_it_is_nested(
    shape: Any, by: list[Any], width: int, height: int
) -> None:
    part = shape(png(width, height))
    pieces = take_apart(message(held(part, by)))
    assert (pieces.images, pieces.media) == ([part], [])
    assert len("".join(pieces.others)) < 250 * len(by)


@given(st.sampled_from(SHAPES), holders, sides, sides)
def test_an_image_costs_the_same_however_deep_it_is_nested(shape: Any, by: list[Any], width: int, height: int) -> None:
    part = shape(png(width, height))
    for counter in COUNTERS:
        frame = sum(map(counter.text, take_apart(message(held(part, by))).others))
        assert price(counter, held(part, by)) == price(counter, part) + frame


@given(st.sampled_from(LOOSE), holders, sides, sides)
def test_a_picture_in_no_known_part_costs_what_an_image_costs(
    loose: Any, by: list[Any], width: int, height: int
) -> None:
    data = png(width, height)
    for counter in COUNTERS:
        whole = held(loose(data), by)
        frame = sum(map(counter.text, take_apart(message(whole)).others))
        assert price(counter, whole) == price(counter, SHAPES[2](data)) + frame


@given(st.sampled_from([*SHAPES, *LOOSE]), holders, st.integers(0, 50_000))
def test_a_price_never_grows_with_the_length_of_the_base64(shape: Any, by: list[Any], more: int) -> None:
    for counter in COUNTERS:
        short, long = (counter(message(held(shape(png(640, 480, size)), by), "tool")) for size in (0, more))
        assert short == long


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.profile.name)
def test_a_document_in_a_tool_result_costs_what_it_costs_at_the_top(counter: TokenCounter) -> None:
    body = base64.b64encode(b"%PDF-1.4 " + b"/Type /Page " * 3 + bytes(900)).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": body}
    document = {"type": "document", "source": source}
    frame = counter.text('{"type":"tool_result","content":[]}')
    assert price(counter, {"type": "tool_result", "content": [document]}) == price(counter, document) + frame
    loose = {"type": "resource", "resource": {"mimeType": "application/pdf", "blob": body}}
    assert price(counter, loose) >= price(counter, document)


def test_a_signature_of_thoughts_costs_nothing() -> None:
    thought = {"type": "thinking", "thinking": "Hm."}
    signed = {**thought, "signature": base64.b64encode(bytes(600)).decode()}
    pieces = take_apart(message(signed))
    assert (pieces.others, pieces.images, pieces.media) == (
        ['{"type":"thinking","thinking":"Hm.","signature":""}'],
        [],
        [],
    )


def test_data_of_a_kind_that_no_model_takes_is_neither_text_nor_a_file() -> None:
    pieces = take_apart(message({"type": "novel", "blob": "data:x/y;base64," + "A" * 9_000}))
    assert (pieces.others, pieces.images, pieces.media) == (['{"type":"novel","blob":""}'], [], [])


@pytest.mark.parametrize(
    "plain",
    [
        {"type": "novel", "files": [{"type": "file", "lines": 3}]},
        {"type": "novel", "signature": "def f(x): ..."},
        {"type": "novel", "items": [{"type": "image"}, {"type": "document", "title": "t"}]},
        {"type": "novel", "data": "short"},
    ],
)
def test_what_only_sounds_like_an_image_or_a_file_stays_text(plain: dict[str, Any]) -> None:
    pieces = take_apart(message(plain))
    assert (len(pieces.others), pieces.images, pieces.media) == (1, [], [])
    assert '""' not in pieces.others[0]


@pytest.mark.parametrize(
    ("part", "capabilities"),
    [
        (HOLDERS[0](SHAPES[2](png(9, 9))), ("vision",)),
        (SHAPES[4](png(9, 9)), ("vision",)),
        (HOLDERS[0]({"type": "document", "source": {"type": "text", "data": "t"}}), ("files",)),
        ({"inlineData": {"mimeType": "audio/wav", "data": "UklG"}}, ("audio",)),
        ({"type": "novel", "data": "data:x/y;base64,AAAA"}, ()),
        ({"type": "redacted_thinking", "data": base64.b64encode(bytes(600)).decode()}, ()),
        ({"type": "tool_result", "content": "text"}, ()),
        ({"type": "text", "text": "text"}, ()),
    ],
)
def test_a_nested_image_asks_for_a_model_that_sees(part: dict[str, Any], capabilities: tuple[str, ...]) -> None:
    assert needs_of({}, [message(part)]).capabilities == capabilities
