"""Where bytes prove that a request fits, nothing is counted; where they cannot, everything is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextshift.catalogue import Catalogue, Model
from contextshift.fit import Action, Decision, fit
from contextshift.measuring import Question
from contextshift.registry import ContextStrategyRegistry
from contextshift.settings import Compliance, Settings
from contextshift.tokens import TextCounter, TokenizerProfile
from core.talk import C, Msg, T, U


class Bytes(TextCounter):
    """The most tokens there can be: one a byte."""

    def __init__(self) -> None:
        super().__init__(lambda text: len(text.encode()), overhead=4)
        self.profile = TokenizerProfile("bytes", bytes_bound=1.0)
        self.counted = 0

    def __call__(self, message: Any) -> int:
        self.counted += 1
        return super().__call__(message)


def decide(talk: list[Msg], window: int, settings: Settings = Settings(), **request: Any) -> tuple[Decision, Bytes]:  # noqa: B008
    counter = Bytes()
    model = Model("m", "main", "m", context_window=window, input_price=1.0, output_price=1.0)
    whole = {"model": "m", "messages": talk, **request}
    question = Question(model, talk, whole, settings, size=len(json.dumps(whole)))
    return fit(question, Catalogue({"m": model}), lambda _: counter, ContextStrategyRegistry()), counter


def test_a_small_request_in_a_large_window_is_forwarded_uncounted_and_says_so():
    decision, counter = decide([U(50)], 10_000)
    assert (decision.action, decision.asked.bound, counter.counted) == (Action.NONE, True, 0)
    assert decision.asked.prompt >= 2 * 50


@pytest.mark.parametrize("talk", [[U(200), U(300)], [U(9), {"role": "user", "name": "n" * 99, "content": "x"}]])
def test_the_bound_is_never_below_what_a_count_would_say(talk: list[Msg]):
    decision, counter = decide(talk, 1_000_000)
    assert decision.asked.bound
    assert decision.asked.prompt >= sum(map(counter, talk))


@pytest.mark.parametrize(
    ("talk", "settings", "request_fields"),
    [
        ([U(5000)], Settings(), {}),
        ([U(1)], Settings(exclude=(0,), context_strategy="manual"), {}),
        ([U(1)], Settings(compliance=Compliance(max_cost_usd=1.0)), {}),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], Settings(), {}),
        ([U(1)], Settings(), {"max_tokens": 9_950}),
        ([U(1)], Settings(), {"tools": [{"type": "function", "function": {"name": "f"}}]}),
        ([U(1)], Settings(), {"response_format": {"type": "json_schema", "json_schema": {"name": "s"}}}),
        ([C("a"), T("a", 1), U(1)], Settings(), {}),
        ([{"role": "user", "content": [{"type": "other", "text": "x"}]}], Settings(), {}),
    ],
)
def test_what_bytes_cannot_prove_is_counted(talk: list[Msg], settings: Settings, request_fields: dict[str, Any]):
    decision, counter = decide(talk, 10_000, settings, **request_fields)
    assert not decision.asked.bound
    assert counter.counted >= 1
