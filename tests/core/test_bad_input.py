"""What the library says to input it cannot read: a typed error with the index and the field."""

from __future__ import annotations

import pytest

from contextshift import (
    Budget,
    ContextStrategyRegistry,
    CounterFault,
    InvalidInput,
    InvalidMessage,
    Proposal,
    shift_context,
)
from contextshift.fakes import HostileStrategy
from core.talk import C, T, U


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


@pytest.mark.parametrize("messages", [None, 5, {}, {"role": "user"}, "text", b"text", (one for one in [U(1)])])
def test_messages_that_are_no_sequence_are_refused(messages):
    with pytest.raises(InvalidInput) as caught:
        shift_context(messages, lambda _: 1, 10)
    assert (caught.value.path, caught.value.reason) == ("messages", "invalid_type")


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"budget": None}, "budget"),
        ({"budget": float("nan")}, "budget"),
        ({"headroom": "x"}, "headroom"),
        ({"headroom": None}, "headroom"),
        ({"headroom": True}, "headroom"),
        ({"headroom": 1j}, "headroom"),
        ({"headroom": float("nan")}, "headroom"),
        ({"pinned": 3}, "pinned"),
        ({"pinned": None}, "pinned"),
        ({"pinned": ["a"]}, "pinned[0]"),
        ({"pinned": [0, 0.0]}, "pinned[1]"),
        ({"pinned": [True]}, "pinned[0]"),
        ({"pinned": [0, 9]}, "pinned[1]"),
        ({"pinned": [-1]}, "pinned[0]"),
        ({"rules": None}, "rules"),
        ({"rules": "user_first"}, "rules"),
        ({"rules": ["user_first", "no_such"]}, "rules[1]"),
        ({"rules": [[]]}, "rules[0]"),
        ({"strategy": None}, "strategy"),
        ({"strategy": object()}, "strategy"),
    ],
)
def test_an_argument_that_cannot_be_read_is_named_whether_or_not_all_fits(arguments, path):
    for tokens in (1, 20):
        with pytest.raises(InvalidInput) as caught:
            shift_context([U(1), U(1)], lambda _, tokens=tokens: tokens, **{"budget": 10, **arguments})
        assert caught.value.path == path


@pytest.mark.parametrize("rules", [(), ["user_first"], {"system_first_only"}, iter(["one_system_message"])])
def test_rules_of_assembly_are_known_though_they_change_no_cut(rules):
    assert shift_context([U(1), U(1)], lambda _: 1, 1, rules=rules).kept == [U(1)]


@pytest.mark.parametrize("field", ["window", "reserve", "fixed", "slack"])
def test_only_the_maximal_input_may_be_left_open(field):
    with pytest.raises(InvalidInput) as caught:
        Budget(**{"window": 10, field: None})
    assert caught.value.path == f"budget.{field}"
    assert Budget(10, max_input=None).limit == 10


TALK = [U(f"Maria signed lease number {turn} in Odense on 14 March.") for turn in range(40)]
RESULTS = [U(1), C("a"), T("a", 90), U(1)]
ON_THE_WAY = {"summarize": TALK, "vector-recall": TALK, "clear-tool-results": RESULTS}


@pytest.mark.parametrize("made", [KeyError("secret text"), 1.5, -1])
@pytest.mark.parametrize("strategy", ON_THE_WAY)
def test_a_counter_that_fails_on_a_text_made_on_the_way_is_named_too(strategy, made):
    talk = ON_THE_WAY[strategy]
    known = {id(message) for message in talk}

    def count(message):
        if id(message) in known:
            return 20
        if isinstance(made, Exception):
            raise made
        return made

    with pytest.raises(CounterFault) as caught:
        shift_context(talk, count, 200 if talk is TALK else 65, strategy=strategy)
    assert "secret" not in str(caught.value)
    assert caught.value.index == {"summarize": None, "vector-recall": 0, "clear-tool-results": 2}[strategy]


def test_a_plug_in_strategy_that_cannot_say_its_name_is_called_as_it_was_registered():
    class Nameless(HostileStrategy):
        asked = 0

        @property
        def id(self) -> str:
            self.asked += 1
            if self.asked > 1:
                raise RuntimeError("no name")
            return "mine"

        @id.setter
        def id(self, _name: str) -> None:
            """The name is nobody's to set."""

    registry = ContextStrategyRegistry()
    registry.register(strategy := Nameless("", lambda _: Proposal()))
    assert shift_context(RESULTS, lambda _: 1, 9, strategy="mine", registry=registry).strategy == "mine"
    assert shift_context(RESULTS, lambda _: 1, 9, strategy=strategy).strategy == "Nameless"
    with pytest.raises(InvalidInput):
        registry.register(strategy)


def test_an_unknown_strategy_says_which_are_known():
    with pytest.raises(InvalidInput, match="truncate, vector-recall"):
        shift_context([U(1)], lambda _: 1, 10, strategy="vanish")


def test_nothing_at_all_is_a_conversation_too():
    assert shift_context([], lambda _: 1, 0).kept == []
