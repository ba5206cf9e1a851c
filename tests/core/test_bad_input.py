"""What the library says to input it cannot read: a typed error with the index and the field."""

from __future__ import annotations

import pytest

from contextshift import Budget, CounterFault, InvalidInput, InvalidMessage, shift_context
from core.talk import U


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ("text", "messages[1]"),
        (None, "messages[1]"),
        ({}, "messages[1].role"),
        ({"role": 3}, "messages[1].role"),
        ({"role": "user", "content": 3}, "messages[1].content"),
        ({"role": "user", "content": {"text": "x"}}, "messages[1].content"),
    ],
)
def test_a_message_that_cannot_be_read_is_named_by_index_and_field(message, path):
    with pytest.raises(InvalidMessage) as caught:
        shift_context([U(1), message], lambda _: 1, 10)
    assert caught.value.path == path


@pytest.mark.parametrize("count", [-1, 1.5, None, True, "3"])
def test_a_counter_that_returns_nonsense_is_named(count):
    with pytest.raises(CounterFault) as caught:
        shift_context([U(1), U(1)], lambda _: count, 10)
    assert caught.value.index == 0


def test_a_counter_that_raises_is_named_and_its_error_is_the_cause():
    def broken(_message):
        raise KeyError("secret text")

    with pytest.raises(CounterFault) as caught:
        shift_context([U(1)], broken, 10)
    assert isinstance(caught.value.__cause__, KeyError)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("budget", [-1, True, 1.5, "10"])
def test_a_budget_that_is_no_number_of_tokens_is_refused(budget):
    with pytest.raises(InvalidInput):
        shift_context([U(1)], lambda _: 1, budget)


@pytest.mark.parametrize("field", ["window", "reserve", "max_input", "fixed", "slack"])
def test_a_negative_part_of_a_budget_is_named(field):
    with pytest.raises(InvalidInput) as caught:
        Budget(**{"window": 10, field: -1})
    assert caught.value.path == f"budget.{field}"


@pytest.mark.parametrize("headroom", [-0.1, 1, 2.5])
def test_headroom_is_a_share(headroom):
    with pytest.raises(InvalidInput):
        shift_context([U(1)], lambda _: 1, 10, headroom=headroom)


def test_an_unknown_strategy_says_which_are_known():
    with pytest.raises(InvalidInput, match="truncate, vector-recall"):
        shift_context([U(1)], lambda _: 1, 10, strategy="vanish")


def test_nothing_at_all_is_a_conversation_too():
    assert shift_context([], lambda _: 1, 0).kept == []
