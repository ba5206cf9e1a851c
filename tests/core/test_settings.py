"""Settings: strict precedence, each switch on its own; compliance only ever narrows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.errors import InvalidSetting, StrategyNotInPlan
from contextshift.settings import (
    Compliance,
    Level,
    Plan,
    check_account_settings,
    check_overrides,
    check_stored_size,
    resolve,
)

NOT_SET = object()
switches = st.sampled_from([NOT_SET, None, True, False])
reserves = st.sampled_from([NOT_SET, None, 0, 7, 1024])
levels = [Level.REQUEST, Level.CHAT, Level.ACCOUNT, Level.PLAN]


def layer(**values):
    return check_overrides({name: value for name, value in values.items() if value is not NOT_SET})


@given(st.lists(switches, min_size=4, max_size=4), st.lists(reserves, min_size=4, max_size=4))
def test_the_strongest_level_that_sets_a_switch_decides_it_and_null_sets_nothing(swapping, reserve):
    request, chat, account, plan = (
        layer(context_swapping=one, reserve_tokens=other) for one, other in zip(swapping, reserve, strict=True)
    )
    settings = resolve(Plan("p", plan), account, request, chat)
    for name, given_values in (("context_swapping", swapping), ("reserve_tokens", reserve)):
        said = [(level, value) for level, value in zip(levels, given_values, strict=True) if isinstance(value, int)]
        level, value = said[0] if said else (Level.DEFAULT, {"context_swapping": False, "reserve_tokens": None}[name])
        assert getattr(settings, name) == value
        assert settings.level(name) == level


def test_b40_explicit_false_and_zero_win_over_weaker_levels():
    settings = resolve(
        Plan("p"),
        {"context_swapping": True, "reserve_tokens": 1024},
        check_overrides({"context_swapping": False, "reserve_tokens": 0, "smart_truncation": None}),
    )
    assert settings.context_swapping is False
    assert settings.reserve_tokens == 0
    assert settings.shown()["reserve_tokens"] == {"value": 0, "level": "request"}
    assert settings.shown()["smart_truncation"] == {"value": False, "level": "default"}


regions = st.none() | st.lists(st.sampled_from(["eu", "us", "ap"]), max_size=3)
amounts = st.none() | st.integers(0, 9)


@given(st.lists(st.tuples(regions, amounts, amounts, regions), min_size=2, max_size=3))
def test_compliance_of_all_levels_together_is_never_looser_than_any_one(rules):
    layers = [
        check_overrides(dict(zip(("regions", "max_cost_usd", "max_retention_days", "certifications"), r, strict=True)))
        for r in rules
    ]
    together = Compliance()
    for one in layers:
        together = together.narrowed(one)
    for one in layers:
        alone = Compliance().narrowed(one)
        assert alone.regions is None or (together.regions is not None and together.regions <= alone.regions)
        assert together.certifications >= alone.certifications
        for name in ("max_cost_usd", "max_retention_days"):
            limit = getattr(alone, name)
            assert limit is None or getattr(together, name) <= limit


@pytest.mark.parametrize(
    ("given_value", "path"),
    [
        ([], "routing"),
        ("auto", "routing"),
        ({"context_swaping": True}, "routing.context_swaping"),
        ({"context_swapping": 1}, "routing.context_swapping"),
        ({"context_swapping": "false"}, "routing.context_swapping"),
        ({"smart_truncation": 0}, "routing.smart_truncation"),
        ({"strategy": "manual"}, "routing.strategy"),
        ({"context_strategy": ""}, "routing.context_strategy"),
        ({"headroom": 1}, "routing.headroom"),
        ({"headroom": -0.1}, "routing.headroom"),
        ({"headroom": True}, "routing.headroom"),
        ({"reserve_tokens": -1}, "routing.reserve_tokens"),
        ({"reserve_tokens": 1.5}, "routing.reserve_tokens"),
        ({"max_cost_usd": float("inf")}, "routing.max_cost_usd"),
        ({"regions": "eu"}, "routing.regions"),
        ({"regions": [1]}, "routing.regions"),
        ({"pin": [-1]}, "routing.pin"),
        ({"exclude": [True]}, "routing.exclude"),
        ({"chat_id": "a/b"}, "routing.chat_id"),
        ({"chat_id": ""}, "routing.chat_id"),
        ({"chat_id": "x" * 129}, "routing.chat_id"),
        ({"chat_id": "a\n"}, "routing.chat_id"),
        ({"headroom": 0, "chatId": "a", "chat_id": "b"}, "routing.chat_id"),
        ({"audit_content": "none"}, "routing.audit_content"),
    ],
)
def test_an_unknown_switch_or_a_wrong_type_is_named(given_value, path):
    with pytest.raises(InvalidSetting) as caught:
        check_overrides(given_value)
    assert caught.value.path == path


def test_camel_case_spellings_are_taken_as_the_seeds_write_them():
    assert check_overrides({"contextStrategy": "truncate", "chatId": "c"}) == {
        "context_strategy": "truncate",
        "chat_id": "c",
    }


def test_only_accounts_say_how_audits_are_kept():
    assert check_account_settings({"audit_content": "hashes", "audit": "required"})


def test_on_the_proxy_only_the_request_names_a_strategy():
    account = {"context_strategy": "manual"}
    assert resolve(Plan("p"), account, {}).context_strategy == "manual"
    assert resolve(Plan("p"), account, {}, strategy_levels=(Level.REQUEST,)).context_strategy == "truncate"


def test_a_strategy_outside_the_plan_is_refused_whoever_names_it():
    plan = Plan("hobby", strategies=frozenset({"truncate"}))
    with pytest.raises(StrategyNotInPlan):
        resolve(plan, {}, {"context_strategy": "manual"})
    with pytest.raises(StrategyNotInPlan):
        resolve(plan, {}, {"exclude": [0]})


def test_excluding_messages_names_the_manual_strategy():
    settings = resolve(Plan("p"), {}, {"exclude": [1]})
    assert (settings.context_strategy, settings.level("context_strategy")) == ("manual", Level.REQUEST)


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"context_strategy": "x" * 65}, "settings.context_strategy"),
        ({"endpoints": {"p" * 129: {"base_url": "https://x.example"}}}, "settings.endpoints"),
    ],
)
def test_names_in_settings_are_short(settings: Any, path: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        check_account_settings(settings)
    assert refused.value.path == path


def test_settings_are_as_large_as_can_be_stored() -> None:
    check_stored_size({"system_prompt": "模" * 116_000})
    with pytest.raises(InvalidSetting, match="350,000 bytes"):
        check_stored_size({"system_prompt": "模" * 117_000})
