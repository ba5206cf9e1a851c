"""What a request asks of a model: capabilities, parameters with their values, and what a limit takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.needs import Limit, needs_of

USER = {"role": "user", "content": "hello"}


def capabilities(*messages: dict[str, Any], **request: Any) -> set[str]:
    return set(needs_of(request, messages or (USER,)).capabilities)


def part(kind: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": kind}]}


@pytest.mark.parametrize(
    ("request_fields", "needed"),
    [
        ({}, set()),
        ({"tools": []}, set()),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, {"tools"}),
        ({"functions": [{"name": "f"}]}, {"tools"}),
        ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, {"tools", "custom_tools"}),
        ({"tools": [{"type": "web_search_preview_2025_03_11"}]}, {"tools", "web_search"}),
        ({"tools": [{"type": "computer_use"}]}, {"tools", "computer_use"}),
        ({"tools": ["?"]}, {"tools"}),
        ({"parallel_tool_calls": False, "tool_choice": "none"}, set()),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, {"json_schema"}),
        ({"response_format": {"type": "json_object"}}, set()),
        ({"reasoning_effort": "none"}, {"reasoning"}),
        ({"reasoning_effort": None}, set()),
        ({"reasoning": {"effort": "low"}}, {"reasoning"}),
        ({"web_search_options": {}}, {"web_search"}),
        ({"audio": {"voice": "alloy", "format": "wav"}, "modalities": ["text", "audio"]}, {"audio"}),
        ({"modalities": ["text", "image"]}, {"image_output"}),
        ({"modalities": "audio"}, set()),
        ({"seed": 1, "logit_bias": {"50256": -100}, "logprobs": True, "n": 2, "prediction": {}}, set()),
    ],
)
def test_a_parameter_asks_for_its_capability(request_fields: dict[str, Any], needed: set[str]) -> None:
    assert capabilities(**request_fields) == needed


@pytest.mark.parametrize(
    ("message", "needed"),
    [
        (USER, set()),
        (part("text"), set()),
        (part("refusal"), set()),
        (part("image_url"), {"vision"}),
        (part("input_image"), {"vision"}),
        (part("input_audio"), {"audio"}),
        (part("audio_url"), {"audio"}),
        (part("file"), {"files"}),
        (part("document"), {"files"}),
        (part("video_url"), {"video"}),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}, {"tools"}),
        ({"role": "assistant", "content": None, "function_call": {"name": "f"}}, {"tools"}),
        ({"role": "assistant", "content": None, "tool_calls": None}, set()),
        ({"role": "tool", "content": "4", "tool_call_id": "a"}, {"tools"}),
        ({"role": "function", "content": "4", "name": "f"}, {"tools"}),
        ({"role": "assistant", "content": None, "audio": {"id": "audio_1"}}, {"audio"}),
    ],
)
def test_a_message_asks_for_what_it_holds(message: dict[str, Any], needed: set[str]) -> None:
    assert capabilities(USER, message) == needed


def test_every_field_that_is_set_is_a_parameter_with_its_value() -> None:
    needs = needs_of({"n": 2, "seed": 0, "logprobs": False, "user": None, "max_tokens": 5}, [USER])
    assert needs.parameters == {"n": 2, "seed": 0, "logprobs": False, "max_tokens": 5}
    assert needs.reply == 5


@pytest.mark.parametrize(
    ("limit", "taken", "refused"),
    [
        (Limit(most=1), [0, 0.5, 1, 1.0, -3], [1.01, 2, "1", None, True, [1]]),
        (Limit(least=1, most=8), [1, 8], [0, 9, 0.99]),
        (Limit(only=(1,)), [1, 1.0], [0, 0.9, True, "1"]),
        (Limit(only=("low", "high")), ["low", "high"], ["medium", "LOW", 1, None]),
        (Limit(only=(True,)), [True], [1, False, "true"]),
        (Limit(most_items=2), ["END", [], ["a", "b"], {"a": 1}, 7], [["a", "b", "c"], {"a": 1, "b": 2, "c": 3}]),
        (Limit(), [None, "x", 9, [1] * 99], []),
    ],
)
def test_a_limit_takes_what_it_says(limit: Limit, taken: list[Any], refused: list[Any]) -> None:
    assert [value for value in taken if not limit.accepts(value)] == []
    assert [value for value in refused if limit.accepts(value)] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(
    value=JSON,
    least=st.none() | st.integers(-5, 5),
    most=st.none() | st.integers(-5, 5),
    items=st.none() | st.integers(0, 3),
    only=st.none() | st.lists(st.text() | st.integers() | st.booleans()).map(tuple),
)
def test_no_value_breaks_a_limit_and_tighter_limits_take_no_more(value, least, most, items, only) -> None:  # type: ignore[no-untyped-def]
    limit = Limit(least, most, items, only)
    assert isinstance(limit.accepts(value), bool)
    for looser in (Limit(None, most, items, only), Limit(least, most, None, only), Limit(least, most, items, None)):
        assert looser.accepts(value) or not limit.accepts(value)


@given(
    request_fields=st.dictionaries(
        st.sampled_from(["tools", "functions", "modalities", "response_format", "audio", "reasoning_effort"]), JSON
    )
)
def test_whatever_a_request_holds_is_read(request_fields: dict[str, Any]) -> None:
    assert all(isinstance(name, str) for name in needs_of(request_fields, [USER]).capabilities)
