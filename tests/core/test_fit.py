"""The decision flow: fits, swap, shift, refuse; and a reason for each model passed over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift import TokenBudgetExceeded, WordCounter
from contextshift.catalogue import Catalogue, Model
from contextshift.errors import InvalidInput, ModelNotAllowed, ModelNotFound, ReplyLimitTooLarge
from contextshift.fit import Action, Decision, fit
from contextshift.measuring import Question
from contextshift.registry import ContextStrategyRegistry
from contextshift.settings import Compliance, Settings
from contextshift.tokens import TokenizerProfile
from core.talk import A, C, Msg, S, T, U, any_conversation, words

COUNTER = WordCounter()
SWAP = Settings(context_swapping=True)
CUT = Settings(smart_truncation=True)
BOTH = Settings(context_swapping=True, smart_truncation=True)


def model(name: str = "asked", window: int | None = 100, **fields: Any) -> Model:
    return Model(
        name=name, provider=fields.pop("provider", "main"), upstream_name=name, context_window=window, **fields
    )


def decide(
    messages: list[Msg], *models: Model, settings: Settings = BOTH, allowed: list[str] | None = None, **request: Any
) -> Decision:
    asked, *others = models or (model(),)
    catalogue = Catalogue({one.name: one for one in (asked, *others)})
    whole = {"model": asked.name, "messages": messages, **request}
    question = Question(asked, messages, whole, settings, allowed)
    return fit(question, catalogue, lambda _: COUNTER, ContextStrategyRegistry())


TALK = [S(1), U(60), A(30), U(5)]


def test_what_fits_is_forwarded_unchanged():
    decision = decide(TALK, max_tokens=4)
    assert (decision.action, decision.used.prompt, decision.dropped) == (Action.NONE, 96, frozenset())


def test_too_large_goes_first_to_a_larger_model_then_to_truncation_then_to_refusal():
    large = model("large", 1000)
    assert decide(TALK, model(), large, max_tokens=10).action is Action.SWAP
    cut = decide(TALK, model(), large, settings=CUT, max_tokens=10)
    assert (cut.action, cut.dropped, cut.used.prompt) == (Action.SHIFT, frozenset({1}), 36)
    refused = decide(TALK, model(), large, settings=Settings(), max_tokens=10)
    assert refused.action is Action.REFUSE
    assert isinstance(refused.error, TokenBudgetExceeded)
    assert refused.error.breakdown == {
        "system": 1,
        "tools": 0,
        "history": 90,
        "current_turn": 5,
        "reserve": 10,
        "over_by": 6,
    }


def test_swapping_that_finds_nothing_falls_through_to_truncation():
    decision = decide(TALK, model(), model("small", 90), max_tokens=10)
    assert decision.action is Action.SHIFT
    assert [(one.model.name, one.reason) for one in decision.candidates] == [("small", "window")]


def test_b16_tools_are_counted_and_nothing_is_cut_where_nothing_can_be():
    schema = {"type": "function", "function": {"name": "f", "description": words(400)}}
    decision = decide([S(20), U(30)], model(window=300), tools=[schema], max_tokens=50)
    assert decision.action is Action.REFUSE
    assert isinstance(decision.error, TokenBudgetExceeded)
    assert decision.error.breakdown["tools"] >= 400
    assert not decision.dropped


@pytest.mark.parametrize(
    ("fields", "size", "reply"),
    [
        ({"window": 400_000, "max_input": 272_000}, 300_000, 1000),
        ({"window": 128_000, "max_output": 16_384}, 120_000, 16_000),
    ],
)
def test_b34_window_max_input_and_max_output_are_three_limits(fields, size, reply):
    decision = decide([U(size)], model(**fields), max_tokens=reply)
    assert isinstance(decision.error, TokenBudgetExceeded)


def test_b35_the_default_reserve_is_bounded():
    decision = decide([U(500)], model(window=200_000, max_output=200_000))
    assert (decision.action, decision.used.reserve) == (Action.NONE, 4096)


def test_b37_a_reply_limit_that_is_at_fault_cuts_no_history_and_names_the_largest():
    talk = [U(500), A(300), U(277)]
    decision = decide(talk, model(window=32_768), max_tokens=32_000)
    assert isinstance(decision.error, ReplyLimitTooLarge)
    assert decision.error.largest == 31_691
    swapped = decide(talk, model(window=32_768), model("large", 64_000), max_tokens=32_000)
    assert swapped.action is Action.SWAP


def test_a_reply_limit_over_max_output_is_at_fault_where_both_do_not_fit():
    decision = decide([U(60)], model(window=100, max_output=20), max_tokens=50)
    assert isinstance(decision.error, ReplyLimitTooLarge)
    assert decision.error.largest == 20


def test_the_larger_of_the_two_reply_limits_counts():
    assert decide([U(1)], max_tokens=3, max_completion_tokens=9).used.reserve == 9


def test_b40_a_reserve_of_zero_counts():
    settings = replace(CUT, reserve_tokens=0)
    assert decide([U(100)], settings=settings).used.reserve == 0
    assert decide([U(100)], settings=settings).action is Action.NONE


VISION = [{"role": "user", "content": [{"type": "text", "text": words(90)}, {"type": "image_url", "image_url": {}}]}]


def reasons(decision: Decision) -> dict[str, str]:
    return {one.model.name: one.reason for one in decision.candidates}


def test_every_model_passed_over_has_its_reason():
    rules = Compliance(frozenset({"eu"}), frozenset({"iso"}), 1, 0.001)
    good = {
        "regions": frozenset({"eu"}),
        "certifications": frozenset({"iso"}),
        "retention_days": 0,
        "input_price": 1.0,
        "output_price": 1.0,
        "capabilities": frozenset({"vision"}),
    }
    others = [
        model("fine", 500, **good),
        model("dearer", 500, **{**good, "input_price": 2.0}),
        model("region", 500, **{**good, "regions": frozenset({"us"})}),
        model("both-regions", 500, **{**good, "regions": frozenset({"eu", "us"})}),
        model("no-region", 500, **{**good, "regions": None}),
        model("certification", 500, **{**good, "certifications": frozenset()}),
        model("retention", 500, **{**good, "retention_days": None}),
        model("cost", 500, **{**good, "input_price": 900.0}),
        model("no-price", 500, **{**good, "input_price": None}),
        model("window", 101, **good),
        model("no-window", None, **good),
        model("max-input", 500, max_input=50, **good),
        model("max-output", 500, max_output=9, **good),
        model("blind", 500, **{**good, "capabilities": frozenset()}),
        model("parameter", 500, unsupported_parameters=frozenset({"logit_bias"}), **good),
        model("elsewhere", 500, provider="other", **good),
        model("forbidden", 500, **good),
    ]
    decision = decide(
        VISION,
        model("asked", 95, **good),
        *others,
        settings=replace(SWAP, compliance=rules),
        allowed=[one.name for one in others if one.name != "forbidden"] + ["asked"],
        max_tokens=20,
        logit_bias={"1": 1},
    )
    assert reasons(decision) == {
        "fine": "accepted",
        "dearer": "not-preferred",
        "region": "compliance-region",
        "both-regions": "compliance-region",
        "no-region": "compliance-region",
        "certification": "compliance-certification",
        "retention": "compliance-retention",
        "cost": "cost",
        "no-price": "cost",
        "window": "window",
        "no-window": "window",
        "max-input": "max-input",
        "max-output": "max-output",
        "blind": "capability-vision",
        "parameter": "parameter-logit_bias",
        "elsewhere": "not-evaluated",
        "forbidden": "compliance-model",
    }
    assert [one.model.name for one in decision.candidates if one.accepted] == ["fine"]


def test_b42_a_model_that_cannot_see_is_passed_over_for_one_that_can():
    decision = decide(
        VISION, model("asked", 60), model("text", 1_000_000), model("sees", 200_000, capabilities=frozenset({"vision"}))
    )
    assert reasons(decision) == {"text": "capability-vision", "sees": "accepted"}


def test_same_provider_first_then_cheapest_then_smallest_window():
    priced = {"output_price": 1.0}
    near = model("near", 900, input_price=9.0, **priced)
    cheap = model("cheap", 900, provider="other", input_price=1.0, **priced)
    assert decide(TALK, model(), cheap, near, max_tokens=10).used.model.name == "near"
    dear = model("dear", 500, input_price=10.0, **priced)
    assert decide(TALK, model(), dear, near, max_tokens=10).used.model.name == "near"
    small = model("small", 500, input_price=9.0, **priced)
    assert decide(TALK, model(), near, small, max_tokens=10).used.model.name == "small"


def test_each_candidate_gets_its_own_default_reserve():
    decision = decide([U(80)], model(window=100), model("large", 400))
    assert (decision.asked.reserve, decision.used.reserve, decision.action) == (25, 100, Action.SWAP)


class DoubleCounter(WordCounter):
    """A tokenizer that makes twice as many tokens of everything."""

    profile = TokenizerProfile("double")

    def __call__(self, message):
        return 2 * super().__call__(message)


def test_a_candidate_is_recounted_with_its_own_tokenizer():
    asked, large = model(window=100), model("large", 180)
    question = Question(asked, TALK, {"max_tokens": 10}, BOTH)
    double = DoubleCounter()
    catalogue = Catalogue({"asked": asked, "large": large})

    def counter_for(one: Model) -> WordCounter:
        return double if one.name == "large" else COUNTER

    decision = fit(question, catalogue, counter_for, ContextStrategyRegistry())
    assert (decision.action, decision.candidates[0].reason) == (Action.SHIFT, "window")


@pytest.mark.parametrize("rule", [Compliance(regions=frozenset({"eu"})), Compliance(max_retention_days=0)])
def test_compliance_binds_the_model_asked_for_before_anything_is_counted(rule):
    def explode(_model: Model) -> WordCounter:
        raise AssertionError("counted")

    asked = model()
    question = Question(asked, TALK, {}, Settings(compliance=rule))
    with pytest.raises(ModelNotAllowed):
        fit(question, Catalogue({"asked": asked}), explode, ContextStrategyRegistry())


def test_the_cost_ceiling_binds_the_model_asked_for_once_counted():
    priced = model(input_price=100.0, output_price=100.0)
    settings = Settings(smart_truncation=True, compliance=Compliance(max_cost_usd=0.0001))
    for talk in ([U(1)], [U(200), U(1)]):
        decision = decide(talk, priced, settings=settings, max_tokens=10)
        assert decision.action is Action.REFUSE
        assert isinstance(decision.error, ModelNotAllowed)
        assert decision.error.rule == "cost"


def test_a_model_of_unknown_window_is_never_cut():
    decision = decide([S(1), U(10_000), U(1)], model(window=None))
    assert (decision.action, decision.used.budget) == (Action.NONE, None)


def test_excluded_messages_leave_with_their_groups_even_when_all_fits_and_protected_ones_stay():
    talk = [S(1), C("a"), T("a"), A(1), U(1)]
    settings = Settings(context_strategy="manual", exclude=(2, 4))
    decision = decide(talk, settings=settings)
    assert (decision.action, decision.dropped) == (Action.SHIFT, frozenset({1, 2}))


def test_pinned_messages_stay_and_pins_are_checked():
    settings = replace(CUT, pin=(1,))
    decision = decide([S(1), U(60), A(30), U(5)], settings=settings, max_tokens=10)
    assert decision.dropped == frozenset({2})
    with pytest.raises(InvalidInput) as caught:
        decide([U(1)], settings=replace(CUT, pin=(0, 7)))
    assert caught.value.path == "routing.pin[1]"


@given(any_conversation, st.integers(0, 80), st.integers(0, 30))
def test_whatever_is_forwarded_fits_the_model_that_gets_it(talk, window, reply):
    models = [model(window=window), model("large", window + 40, max_input=window + 20)]
    decision = decide(talk or [U(1)], *models, max_tokens=reply)
    if decision.error is None:
        used = decision.used
        sent = sum(map(COUNTER, (m for i, m in enumerate(talk or [U(1)]) if i not in decision.dropped)))
        assert sent == used.prompt
        assert sent + reply <= used.model.context_window
        assert used.model.max_input is None or sent <= used.model.max_input


CATALOGUE = Catalogue(
    {
        "gpt-4o": model("gpt-4o", aliases=("best",)),
        "org/own-4": model("org/own-4"),
        "small": replace(model("small"), upstream_name="gpt-4o"),
    },
    [("wild", "gpt-*")],
)


@pytest.mark.parametrize(
    ("name", "found", "upstream", "window"),
    [
        ("gpt-4o", "gpt-4o", "gpt-4o", 100),
        ("best", "gpt-4o", "gpt-4o", 100),
        ("small", "small", "gpt-4o", 100),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06", "gpt-4o-2024-08-06", 100),
        ("gpt-4o-20240806", "gpt-4o-20240806", "gpt-4o-20240806", 100),
        ("ft:gpt-4o:acme::x1", "ft:gpt-4o:acme::x1", "ft:gpt-4o:acme::x1", 100),
        ("ft:gpt-4o-2024-08-06:acme::x1", "ft:gpt-4o-2024-08-06:acme::x1", "ft:gpt-4o-2024-08-06:acme::x1", 100),
        ("org/own-4", "org/own-4", "org/own-4", 100),
        ("gpt-9", "gpt-9", "gpt-9", None),
    ],
)
def test_a_name_finds_its_model(name, found, upstream, window):
    one = CATALOGUE.resolve(name)
    assert (one.name, one.upstream_name, one.context_window) == (found, upstream, window)


@pytest.mark.parametrize("name", ["claude", "", "GPT-4O", "org/own", "ft:nothing:a"])
def test_a_name_that_finds_nothing_is_not_found(name):
    with pytest.raises(ModelNotFound):
        CATALOGUE.resolve(name)
