"""Names, prices, values of parameters, and what a store lays over the catalogue."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift import WordCounter
from contextshift.catalogue import Catalogue, Model, PriceTier, prices_for, request_cost
from contextshift.choosing import choose_larger
from contextshift.errors import InvalidSetting, ModelNotFound, StoreUnavailable
from contextshift.ledger import actual_cost
from contextshift.model_table import MODEL_KEYS, model_of, model_values, patched
from contextshift.needs import Limit, needs_of
from contextshift.overlay import overlaid
from contextshift.planner import Planner
from contextshift.ports import Access, KeyRecord, SettingsRecord
from contextshift.settings import Plan, Settings


def model(name: str, provider: str = "openai", **fields: Any) -> Model:
    return Model(**{"name": name, "provider": provider, "upstream_name": name, "context_window": 100, **fields})


CATALOGUE = Catalogue(
    {
        one.name: one
        for one in (
            model("gpt-4o"),
            model("command-a", "cohere"),
            model("gemini-2.5-flash", "google"),
            model("groq/openai/gpt-oss-20b", "groq", upstream_name="openai/gpt-oss-20b"),
            model("mistral-large-2512", "mistral", aliases=("mistral-large-latest",)),
        )
    },
    [("openai", "gpt-*"), ("groq", "groq/*"), ("google", "gemini-*"), ("mine", "anthropic/*")],
)


@pytest.mark.parametrize(
    ("name", "provider", "upstream", "window"),
    [
        ("openai/gpt-4o", "openai", "gpt-4o", 100),
        ("openai/gpt-4o-2024-08-06", "openai", "gpt-4o-2024-08-06", 100),
        ("openai/gpt-9", "openai", "gpt-9", None),
        ("gpt-4o-latest", "openai", "gpt-4o-latest", 100),
        ("mistral-large-latest", "mistral", "mistral-large-2512", 100),
        ("command-a-03-2025", "cohere", "command-a-03-2025", 100),
        ("models/gemini-2.5-flash", "google", "gemini-2.5-flash", 100),
        ("models/gemini-2.5-flash-preview-09-2025", "google", "gemini-2.5-flash-preview-09-2025", 100),
        ("gemini-2.5-flash-preview-05-20", "google", "gemini-2.5-flash-preview-05-20", 100),
        ("gemini-2.5-flash-001", "google", "gemini-2.5-flash-001", 100),
        ("google/gemini-9", "google", "gemini-9", None),
        ("groq/openai/gpt-oss-20b", "groq", "openai/gpt-oss-20b", 100),
        ("groq/openai/gpt-oss-20b-2508", "groq", "openai/gpt-oss-20b-2508", 100),
        ("groq/llama-3.1-8b-instant", "groq", "llama-3.1-8b-instant", None),
        ("anthropic/claude-x", "mine", "anthropic/claude-x", None),
    ],
)
def test_a_name_leads_to_its_provider_under_the_providers_own_name(name, provider, upstream, window) -> None:  # type: ignore[no-untyped-def]
    found = CATALOGUE.resolve(name)
    assert (found.provider, found.upstream_name, found.context_window) == (provider, upstream, window)


@pytest.mark.parametrize("name", ["cohere/gpt-4o", "openai/command-a", "nobody/gpt-4o", "models/nothing", "openai/"])
def test_a_prefix_is_the_models_own_provider_or_finds_nothing(name: str) -> None:
    with pytest.raises(ModelNotFound):
        CATALOGUE.resolve(name)


@given(name=st.text(st.sampled_from("gpt-4o/:ft@models2024-latest.")))
def test_any_name_is_found_or_not_found(name: str) -> None:
    try:
        found = CATALOGUE.resolve(name)
    except ModelNotFound:
        return
    assert found.provider in CATALOGUE.providers
    assert found.upstream_name


@pytest.mark.parametrize(
    "name", ["gpt-4o", "gpt-4o-2024-08-06", "openai/gpt-4o", "ft:gpt-4o:acme::x", "ft:gpt-4o-2024-08-06:a::x"]
)
def test_a_hidden_model_is_gone_with_its_snapshots_whatever_a_pattern_says(name: str) -> None:
    hidden = CATALOGUE.overlaid({"gpt-4o": None})
    with pytest.raises(ModelNotFound):
        hidden.resolve(name)
    assert hidden.resolve("gpt-5").provider == "openai"
    assert hidden.overlaid({"gpt-4o": model("gpt-4o")}).resolve(name).context_window == 100


def test_a_hidden_models_aliases_go_with_it() -> None:
    with pytest.raises(ModelNotFound):
        CATALOGUE.overlaid({"mistral-large-2512": None}).resolve("mistral-large-latest")


def test_a_catalogue_of_some_providers_leads_to_no_other() -> None:
    some = CATALOGUE.of_providers(["google", "groq", "nobody"])
    assert some.providers == {"google", "groq"}
    for name in ("gpt-4o", "gpt-9", "command-a"):
        with pytest.raises(ModelNotFound):
            some.resolve(name)


# -- prices ------------------------------------------------------------------------------------------

TIERED = model(
    "t",
    input_price=1.0,
    cached_input_price=0.1,
    output_price=2.0,
    price_tiers=(PriceTier(10, 3, 5), PriceTier(20, 6, 9)),
)


@pytest.mark.parametrize(
    ("prompt", "expected"), [(0, (1, 0.1, 2)), (10, (1, 0.1, 2)), (11, (3, 0.3, 5)), (21, (6, 0.6, 9))]
)
def test_a_longer_prompt_has_the_prices_of_its_tier(prompt: int, expected: tuple[float, float, float]) -> None:
    prices = prices_for(TIERED, prompt)
    assert prices is not None
    assert (prices.input, prices.cached_input, prices.output) == pytest.approx(expected)
    assert request_cost(TIERED, prompt, 3) == pytest.approx((prompt * expected[0] + 3 * expected[2]) / 1e6)


def test_an_unknown_price_is_an_unknown_cost() -> None:
    assert prices_for(replace(TIERED, output_price=None), 1) is None
    assert request_cost(replace(TIERED, input_price=None), 1, 1) is None


# -- parameters in the choice ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_fields", "reason"),
    [
        ({"temperature": 0.5}, "accepted"),
        ({"temperature": 1.5}, "parameter-temperature"),
        ({"n": 2}, "parameter-n"),
        ({"n": 1}, "accepted"),
        ({"stop": ["a", "b", "c"]}, "parameter-stop"),
        ({"reasoning_effort": "minimal"}, "parameter-reasoning_effort"),
        ({"reasoning_effort": "low", "seed": 1}, "parameter-seed"),
        ({"seed": 1, "n": 2}, "parameter-n"),
        ({"web_search_options": {}, "n": 2}, "capability-web_search"),
    ],
)
def test_a_candidate_must_take_the_parameters_and_their_values(request_fields: dict[str, Any], reason: str) -> None:
    limits = {
        "temperature": Limit(most=1),
        "n": Limit(only=(1,)),
        "stop": Limit(most_items=2),
        "reasoning_effort": Limit(only=("low",)),
    }
    other = model(
        "other",
        parameter_limits=limits,
        unsupported_parameters=frozenset({"seed"}),
        capabilities=frozenset({"reasoning"}),
    )
    needs = needs_of(request_fields, [])
    _, (candidate,) = choose_larger(model("asked"), [other], needs, Settings(), None, lambda _: (10, 0))
    assert candidate.reason == reason


@pytest.mark.parametrize(
    ("end", "today", "reason"),
    [
        ("2026-12-01", "2026-11-30", "accepted"),
        ("2026-12-01", "2026-12-01", "shutdown"),
        ("2026-12-01", "2027-01-01", "shutdown"),
        ("2026-12-01", "", "accepted"),
        (None, "2027-01-01", "accepted"),
    ],
)
def test_a_model_that_has_been_shut_down_is_not_chosen(end: str | None, today: str, reason: str) -> None:
    other, needs = model("other", shutdown_date=end), needs_of({}, [])
    _, (candidate,) = choose_larger(
        model("asked"), [other], needs, Settings(), None, lambda _: (10, 0), lambda _: True, today
    )
    assert candidate.reason == reason


# -- tables ------------------------------------------------------------------------------------------

FULL: dict[str, Any] = {
    "provider": "main",
    "upstream_name": "up",
    "context_window": 100,
    "max_input": 90,
    "max_output": 16,
    "tokenizer": "words",
    "capabilities": ["tools"],
    "regions": ["eu"],
    "certifications": ["iso27001"],
    "retention_days": 0,
    "input_price": 0.15,
    "cached_input_price": 0.1,
    "cache_write_price": 0.2,
    "output_price": 0.6,
    "price_tiers": [{"above": 20, "input": 2, "output": 3}, {"above": 10, "input": 1, "output": 2}],
    "message_rules": ["user_first"],
    "unsupported_parameters": ["logit_bias"],
    "parameter_limits": {
        "temperature": {"min": 0, "max": 1},
        "stop": {"max_items": 4},
        "effort": {"only": ["low", 1, True]},
    },
    "aliases": ["one", "two"],
    "shutdown_date": "2027-01-01",
    "successor": "small-2",
}


def test_a_table_with_every_key_is_a_model_with_every_field() -> None:
    assert FULL.keys() == MODEL_KEYS.keys() == {*Model.__dataclass_fields__} - {"name"}
    made = model_of("small", FULL, "models.small")
    assert (made.name, made.upstream_name, made.capabilities) == ("small", "up", frozenset({"tools"}))
    assert made.parameter_limits["effort"] == Limit(only=("low", 1, True))
    assert [tier.above for tier in made.price_tiers] == [10, 20]
    assert hash(made) == hash(model_of("small", FULL, "models.small"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, value) for key in FULL for value in (object(), True) if value is not None),
        ("contxt_window", 5),
        ("shutdown_date", "soon"),
        ("shutdown_date", "2026-13-01"),
        ("shutdown_date", "20261201"),
        ("context_window", -1),
        ("context_window", 1.5),
        ("input_price", float("nan")),
        ("input_price", float("inf")),
        ("output_price", "1"),
        ("provider", ""),
        ("capabilities", [1]),
        ("capabilities", "tools"),
        ("price_tiers", [{"above": 1, "input": 1}]),
        ("price_tiers", [{"above": 1, "input": 1, "output": -1}]),
        ("parameter_limits", {"n": {}}),
        ("parameter_limits", {"n": {"most": 1}}),
        ("parameter_limits", {"n": {"max": "1"}}),
        ("parameter_limits", {"n": {"only": "low"}}),
        ("parameter_limits", {"n": 1}),
        ("provider", None),
    ],
)
def test_a_wrong_key_is_refused_by_its_path(key: str, value: Any) -> None:
    with pytest.raises(InvalidSetting) as raised:
        model_of("small", {**FULL, key: value}, "models.small")
    assert raised.value.path is not None
    assert raised.value.path.startswith(f"models.small.{key}")


@given(keys=st.sets(st.sampled_from(sorted(FULL.keys() - {"provider", "upstream_name"}))))
def test_a_patch_changes_its_keys_and_null_makes_them_unknown(keys: set[str]) -> None:
    bare, whole = model("small"), model_of("small", FULL, "m")
    assert patched("small", {key: FULL[key] for key in keys}, bare, "m") == replace(
        bare, **{key: getattr(whole, key) for key in keys}
    )
    unknown = patched("small", dict.fromkeys(keys), whole, "m")
    assert unknown == replace(whole, **{key: getattr(Model("", "", ""), key) for key in keys})


def test_a_new_model_must_say_whose_it_is() -> None:
    assert patched("new", {"context_window": 5}, None, "m") is None
    assert patched("new", {"provider": "main"}, None, "m") == Model("new", "main", "new")
    assert model_values({}, "m") == {}


# -- overlays ----------------------------------------------------------------------------------------

NAMES = st.sampled_from(["gpt-4o", "command-a", "new-1", "new-2"])
TABLES = st.none() | st.fixed_dictionaries(
    {}, optional={"provider": st.sampled_from(["openai", "cohere", "elsewhere"]), "context_window": st.integers(1, 9)}
)


@given(tables=st.dictionaries(NAMES, TABLES))
def test_an_overlay_says_of_its_own_models_and_of_no_other(tables: dict[str, Any]) -> None:
    over = overlaid(CATALOGUE, [json.dumps(tables)])
    for name, one in CATALOGUE.models.items():
        if name not in tables:
            assert over.models[name] is one
    for name, table in tables.items():
        standing = CATALOGUE.models.get(name)
        provider = (table or {}).get("provider", standing.provider if standing else "elsewhere")
        offered = table is not None and provider in CATALOGUE.providers
        assert (name in over.models) is offered
        if offered:
            assert over.models[name].provider == provider
            assert over.models[name].context_window == table.get("context_window", standing and standing.context_window)


def test_a_later_overlay_stands_over_an_earlier_one() -> None:
    documents = [
        json.dumps({"gpt-4o": {"context_window": 1, "max_output": 1}}),
        json.dumps({"gpt-4o": {"context_window": 2}}),
    ]
    over = overlaid(CATALOGUE, documents).resolve("gpt-4o")
    assert (over.context_window, over.max_output) == (2, 1)


ACCESS = Access(KeyRecord("h", "i", "acme", frozenset({"call"})), "acme", "pro", SettingsRecord())


def planner() -> Planner:
    return Planner(CATALOGUE, {"pro": Plan("pro")}, lambda _: WordCounter())


def test_without_an_overlay_the_catalogue_itself_is_used_and_with_one_it_is_made_once() -> None:
    plans = planner()
    assert plans.catalogue_of(ACCESS) is CATALOGUE
    access = replace(ACCESS, overlays=('{"gpt-4o": {"context_window": 7}}',))
    assert plans.catalogue_of(access).resolve("gpt-4o").context_window == 7
    assert plans.catalogue_of(access) is plans.catalogue_of(replace(access, account="other"))
    changed = replace(access, overlays=('{"gpt-4o": {"context_window": 8}}',))
    assert plans.catalogue_of(changed).resolve("gpt-4o").context_window == 8


@pytest.mark.parametrize(
    "document", ["", "{", "[]", '"x"', '{"gpt-4o": 1}', '{"gpt-4o": {"window": 1}}', '{"n": {"max_output": "x"}}']
)
def test_an_overlay_that_cannot_be_read_stops_the_call(document: str) -> None:
    with pytest.raises(StoreUnavailable):
        planner().catalogue_of(replace(ACCESS, overlays=(document,)))


# -- counts that could not win -----------------------------------------------------------------------

PRICES = st.none() | st.sampled_from([0.1, 0.5, 1.0, 5.0, 50.0])


@given(
    models=st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), PRICES, PRICES, st.integers(50, 400)), max_size=8),
    counts=st.fixed_dictionaries({name: st.integers(40, 200) for name in "abc"}),
    counted=st.sets(st.sampled_from("abc")),
)
def test_leaving_out_slow_counts_never_changes_the_choice(
    models: list[tuple[str, float | None, float | None, int]], counts: dict[str, int], counted: set[str]
) -> None:
    others = [
        model(f"m{index}", "other", tokenizer=tokenizer, input_price=price, output_price=reply, context_window=window)
        for index, (tokenizer, price, reply, window) in enumerate(models)
    ]
    needs = needs_of({"max_tokens": 5}, [])
    asked: set[str] = set()

    def count_for(one: Model) -> tuple[int, int]:
        asked.add(one.tokenizer or "")
        return counts[one.tokenizer or ""], 0

    whole, _ = choose_larger(model("asked"), others, needs, Settings(), None, count_for)
    asked.clear()
    pruned, candidates = choose_larger(
        model("asked"), others, needs, Settings(), None, count_for, lambda one: one.tokenizer in counted | asked
    )
    assert pruned == whole
    for candidate in candidates:
        assert candidate.reason != "not-evaluated" or candidate.model.tokenizer not in counted


def test_a_dear_model_of_an_unused_tokenizer_is_not_counted() -> None:
    cheap = model("cheap", "x", tokenizer="a", input_price=0.1, output_price=0.1)
    dear = model("dear", "y", tokenizer="b", input_price=5.0, output_price=5.0)
    loaded: list[str | None] = []

    def count_for(one: Model) -> tuple[int, int]:
        loaded.append(one.tokenizer)
        return 50, 0

    winner, candidates = choose_larger(
        model("asked"),
        [dear, cheap],
        needs_of({}, []),
        Settings(),
        None,
        count_for,
        lambda one: one.tokenizer in loaded,
    )
    assert winner is cheap
    assert [candidate.reason for candidate in candidates] == ["not-evaluated", "accepted"]
    assert loaded == ["a"]


COUNTS = st.integers(0, 10**12)


@given(COUNTS, COUNTS, st.none() | COUNTS)
def test_reported_usage_costs_what_lies_between_all_cached_and_none(prompt, completion, cached):
    priced = model("m", input_price=2.0, cached_input_price=0.5, output_price=4.0)
    cost = actual_cost(priced, {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached})
    assert cost is not None
    least, most = (prompt * price + completion * 4.0 for price in (0.5, 2.0))
    assert least / 1e6 == pytest.approx(cost) or least / 1e6 <= cost
    assert most / 1e6 == pytest.approx(cost) or cost <= most / 1e6
