"""A counter made of a function of text sees what every other counter sees, each text as it stands."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given

from contextshift import TokenBudgetExceeded, WordCounter, shift_context, text_counter
from core.talk import Msg, U, messages, words

count = text_counter(lambda text: len(text.split()))
NINE = words(9)


@given(messages())
def test_words_counted_text_by_text_are_never_fewer_than_the_word_counter_sees(message: Msg):
    assert count(message) >= WordCounter()(message)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": ({"type": "text", "text": NINE},)},
        {"role": "user", "content": [MappingProxyType({"type": "text", "text": NINE})]},
        {"role": "user", "content": [NINE]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": NINE}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": NINE}]},
        {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": NINE}]}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"q": NINE}}]},
        {"role": "user", "content": [{"type": "nobody-knows", "data": NINE}]},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": NINE}},
        {"role": "assistant", "tool_calls": ({"id": "a", "function": {"name": "f", "arguments": NINE}},)},
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": NINE}}]},
    ],
)
def test_whatever_the_model_reads_counts_wherever_it_stands(message: dict[str, Any]):
    assert count(message) == 9
    assert text_counter(lambda text: len(text.split()), overhead=4)(message) == 13


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "name": NINE, "content": ""},
        {"role": "tool", "tool_call_id": NINE, "content": ""},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"https://e.example/{NINE}"}}]},
        {"role": "user"},
    ],
)
def test_names_ids_and_images_cost_nothing(message: dict[str, Any]):
    assert count(message) == 0


def test_a_long_result_no_longer_fits_a_small_budget():
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": words(10_000)}]}
    with pytest.raises(TokenBudgetExceeded):
        shift_context([U(1), use, result], count, 10)
