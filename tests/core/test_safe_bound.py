"""A prompt fits by its safe bound: the count, the profile's margin, and what its tools may be under by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift import TokenBudgetExceeded, WordCounter
from contextshift.budget import Budget
from contextshift.calibration import Calibration, calibrated
from contextshift.catalogue import Catalogue, Model
from contextshift.fit import Action, Decision, fit
from contextshift.measuring import Question, measure
from contextshift.registry import ContextStrategyRegistry
from contextshift.settings import Settings
from contextshift.shift import shift_context
from contextshift.tokens import TokenizerProfile, slack_of
from core.talk import A, Msg, S, U, any_conversation

TOOLS = [{"type": "function", "function": {"name": "look_up"}}]
TALK = [S(1), U(60), A(30), U(5)]


class Hedged(WordCounter):
    """Counts words, and does not know how tools are rendered."""

    def __init__(self, slack: int = 7, share: float = 0.0, least: int = 0, approximate: bool = True) -> None:
        super().__init__()
        self.profile = TokenizerProfile("hedged", approximate, share, least)
        self._slack = slack

    def slack(self, request: Mapping[str, Any]) -> int:
        return self._slack if request.get("tools") else 0


def decide(counter: WordCounter, window: int, settings: Settings = Settings(), **request: Any) -> Decision:  # noqa: B008
    model = Model("m", "main", "m", context_window=window)
    question = Question(model, TALK, {"model": "m", "messages": TALK, "max_tokens": 10, **request}, settings)
    return fit(question, Catalogue({"m": model}), lambda _: counter, ContextStrategyRegistry())


@given(st.integers(0, 5_000), st.floats(0, 0.5), st.integers(0, 60), st.integers(0, 60))
def test_an_allowance_is_the_largest_prompt_whose_bound_fits(limit: int, share: float, least: int, slack: int) -> None:
    profile = TokenizerProfile("p", True, share, least)
    allowance = Budget(limit, slack=slack).allowance(profile)
    if allowance >= 0:
        assert allowance + profile.margin_tokens(allowance) + slack <= limit
    more = max(0, allowance + 1)
    assert more + profile.margin_tokens(more) + slack > limit


@pytest.mark.parametrize(("window", "action"), [(115, Action.NONE), (114, Action.REFUSE)])
def test_a_request_near_the_limit_is_judged_with_its_least_margin(window: int, action: Action) -> None:
    decision = decide(Hedged(least=9), window)  # 96 + 9 + 10 for the reply
    assert (decision.asked.prompt, decision.asked.margin, decision.action) == (96, 9, action)


def test_only_a_request_with_tools_holds_their_slack_back() -> None:
    counter = Hedged(slack=7, least=2)
    plain, tools = decide(counter, 1_000), decide(counter, 1_000, tools=TOOLS)
    assert (plain.asked.margin, tools.asked.margin) == (2, 9)
    needed = tools.asked.prompt + 9 + 10
    assert decide(counter, needed, tools=TOOLS).action is Action.NONE
    assert decide(counter, needed - 1, tools=TOOLS).action is Action.REFUSE


def test_a_refusal_says_by_how_much_the_bound_is_over() -> None:
    decision = decide(Hedged(slack=7, least=2), 100, tools=TOOLS)
    assert isinstance(decision.error, TokenBudgetExceeded)
    assert decision.error.breakdown["over_by"] == decision.asked.prompt + 9 + 10 - 100


def test_a_cut_leaves_room_for_the_slack() -> None:
    decision = decide(Hedged(slack=7), 60, Settings(smart_truncation=True), tools=TOOLS)
    assert decision.action is Action.SHIFT
    assert decision.used.margin == 7
    assert decision.used.prompt + 7 + 10 <= 60


@given(any_conversation, st.integers(0, 80), st.integers(0, 30))
def test_what_is_kept_and_the_slack_are_within_the_budget(talk: list[Msg], window: int, slack: int) -> None:
    counter = Hedged(share=0.1, least=3)
    try:
        result = shift_context(talk, counter, Budget(window, slack=slack))
    except TokenBudgetExceeded as error:
        assert error.breakdown["over_by"] > 0
        return
    assert result.tokens + counter.profile.margin_tokens(result.tokens) + slack <= window


def test_a_counter_that_does_not_hedge_has_no_slack() -> None:
    assert slack_of(WordCounter(), {"tools": TOOLS}) == slack_of(lambda _: 1, {"tools": TOOLS}) == 0


def test_a_correction_corrects_the_slack_too() -> None:
    counter = calibrated(Hedged(slack=7), Calibration({"hedged/m": {60: 500}}), "m")
    model = Model("m", "main", "m", context_window=1_000)
    measured = measure(Question(model, TALK, {"tools": TOOLS}, Settings()), model, counter)
    assert measured.margin == slack_of(counter, {"tools": TOOLS}) == 9
