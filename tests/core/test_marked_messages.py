"""What its owner marked to leave does leave, whatever else is so, and the mark itself is sent nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextshift import ContextStrategyRegistry, InvalidInput, Proposal, Reason, WordCounter
from contextshift.catalogue import Catalogue, Model
from contextshift.fakes import HostileStrategy
from contextshift.fit import Action, Decision, fit
from contextshift.measuring import Question
from contextshift.settings import Settings
from contextshift.tokens import TextCounter, TokenizerProfile
from core.talk import A, Msg, S, U

MARK = {"meta": {"manualExcluded": True}}


class Bytes(TextCounter):
    """A tokenizer of which bytes alone can prove that a request fits."""

    def __init__(self) -> None:
        super().__init__(lambda text: len(text.encode()), overhead=4)
        self.profile = TokenizerProfile("bytes", bytes_bound=1.0)


def decide(talk: list[Msg], window: int, registry: ContextStrategyRegistry | None = None, **switches: Any) -> Decision:
    model = Model("m", "main", "m", context_window=window)
    whole = {"model": "m", "messages": talk, "max_tokens": 10}
    settings = Settings(smart_truncation=True, **switches)
    question = Question(model, talk, whole, settings, size=len(json.dumps(whole)))
    return fit(question, Catalogue({"m": model}), lambda _: Bytes(), registry or ContextStrategyRegistry())


@pytest.mark.parametrize("window", [600, 6_000, 600_000])
def test_a_marked_message_leaves_in_whatever_window_though_bytes_prove_that_all_fits(window):
    decision = decide([S(1), U(9) | MARK, A(9), U(1)], window, context_strategy="manual")
    assert (decision.action, decision.dropped) == (Action.SHIFT, {1})
    assert decision.shift is not None
    assert [item.reason for item in decision.shift.excluded] == [Reason.MANUAL]


def test_a_plug_in_that_acts_when_all_fits_is_asked_though_bytes_prove_it():
    registry = ContextStrategyRegistry()
    registry.register(HostileStrategy("eager", lambda s: Proposal({1: Reason.MANUAL})))
    assert decide([S(1), U(9), A(9), U(1)], 600_000, registry, context_strategy="eager").dropped == {1}


def test_a_strategy_that_only_makes_room_leaves_the_proof_by_bytes_alone():
    assert decide([S(1), U(9), A(9), U(1)], 600_000, context_strategy="vector-recall").asked.bound


@pytest.mark.parametrize("window", [100, 600_000])
def test_neither_mark_nor_rating_of_ours_is_sent_with_a_message_that_is_shortened(window):
    """The mark is made on a copy, for the decision alone: what is sent is the caller's message with less text."""
    registry = ContextStrategyRegistry()
    registry.register(HostileStrategy("cuts", lambda s: Proposal({}, {1: "w"})))
    talk = [S(1), U(40) | {"meta": {"own": 1}}, U(1)]
    decision = decide(talk, window, registry, context_strategy="cuts", exclude=(1,))
    assert decision.shift is not None
    assert (decision.action, decision.shortened) == (Action.SHIFT, {1})
    assert decision.edits().replaced == {1: U(1) | {"meta": {"own": 1}}}
    assert [item.original is talk[1] for item in decision.shift.truncated] == [True]
    assert [decision.shift.kept[index] is talk[index] for index in (0, 2)] == [True, True]


def test_a_swap_counts_what_was_shortened_and_summed_up_with_the_other_tokenizer():
    registry = ContextStrategyRegistry()
    registry.register(HostileStrategy("both", lambda s: Proposal({1: Reason.MANUAL}, {2: "w w"}, "so far")))
    talk = [S(1), U(30), A(30), U(30)]
    small, large = Model("m", "main", "m", context_window=60), Model("l", "main", "l", context_window=900)
    question = Question(small, talk, {"max_tokens": 10}, Settings(context_swapping=True, context_strategy="both"))
    counters = {"m": Bytes(), "l": WordCounter()}
    decision = fit(question, Catalogue({"m": small, "l": large}), lambda one: counters[one.name], registry)
    assert decision.action is Action.SWAP
    assert decision.shift is not None
    assert decision.used.prompt == sum(map(WordCounter(), decision.shift.kept)) == 1 + 2 + 2 + 30


@pytest.mark.parametrize("strategy", [one for one in ContextStrategyRegistry().ids() if one != "manual"])
@pytest.mark.parametrize("window", [60, 600_000])
def test_naming_messages_to_leave_with_a_strategy_that_lets_them_stay_is_refused(strategy, window):
    with pytest.raises(InvalidInput) as caught:
        decide([S(1), U(9), A(9), U(1)], window, context_strategy=strategy, exclude=(1,))
    assert (caught.value.path, caught.value.reason) == ("routing.exclude", "exclude_needs_manual")
