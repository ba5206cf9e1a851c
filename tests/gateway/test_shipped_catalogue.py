"""Laws of the shipped catalogue, over every provider and model in it."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any

import pytest

from bastion.config import Config
from bastion.config_file import FileConfig
from bastion.shipped import FOLDER, model_tables, shipped_tables
from bastion.tokenizers.registry import TOKENIZERS
from contextshift.catalogue import Catalogue, Model, prices_for
from contextshift.errors import ModelNotFound
from contextshift.needs import PARAMETER_CAPABILITIES, needs_of

DOCUMENTS: dict[str, Any] = {path.stem: json.loads(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))}
KEYS = {document["provider"]["api_key_env"]: "sk-x" for document in DOCUMENTS.values()}
CAPABILITIES = {"tools", "custom_tools", "json_schema", "reasoning", "web_search", "vision", "audio", "video", "files"}
RULES = {"user_first", "system_first_only"}


def deployed(**environ: str) -> FileConfig:
    return Config.from_environ({"AWS_LAMBDA_FUNCTION_NAME": "f", **environ}).file


WHOLE: Catalogue = deployed(**KEYS).catalogue
MODELS = list(WHOLE.models.values())


def test_there_are_at_least_sixty_models_of_ten_providers() -> None:
    assert len(MODELS) >= 60
    assert len({model.provider for model in MODELS}) >= 10


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_provider_says_where_it_is_and_where_its_data_are_from(name: str) -> None:
    document = DOCUMENTS[name]
    assert document["name"] == name
    assert document["provider"]["base_url"].startswith("https://")
    assert not document["provider"]["base_url"].endswith("/")
    assert re.fullmatch(r"[A-Z][A-Z0-9_]+", document["provider"]["api_key_env"])
    assert document["sources"]
    for source in document["sources"]:
        assert source.keys() == {"url", "read", "of"}
        assert source["url"].startswith("https://")
        assert date.fromisoformat(source["read"]) >= date(2026, 1, 1)
        assert source["of"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_providers_file_holds_nothing_that_no_model_uses(name: str) -> None:
    document = DOCUMENTS[name]
    assert document.keys() <= {"name", "provider", "sources", "kept", "shared", "groups", "models"}
    assert {own.get("group") for own in document["models"].values()} - {None} == document.get("groups", {}).keys()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_model_is_plausible(model: Model) -> None:
    assert model.context_window is not None
    assert 4_000 <= model.context_window <= 10_000_000
    assert model.max_output is None or 1_000 <= model.max_output <= model.context_window
    assert model.max_input is None or 0 < model.max_input <= model.context_window
    assert model.tokenizer is None or model.tokenizer in TOKENIZERS
    assert model.capabilities <= CAPABILITIES
    assert model.message_rules <= RULES
    assert (model.input_price is None) is (model.output_price is None)
    if model.input_price is not None and model.output_price is not None:
        assert 0 < model.input_price <= model.output_price < 1_000
        assert model.cached_input_price is None or 0 < model.cached_input_price <= model.input_price
        assert model.cache_write_price is None or model.cache_write_price >= model.input_price
    if model.shutdown_date is not None:
        read = max(source["read"] for source in DOCUMENTS[model.provider]["sources"])
        assert date.fromisoformat(read) < date.fromisoformat(model.shutdown_date), "it was gone when it was read"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_longer_prompt_is_never_cheaper_by_the_token(model: Model) -> None:
    prices = [prices_for(model, prompt) for prompt in (1, *(tier.above + 1 for tier in model.price_tiers))]
    known = [price for price in prices if price is not None]
    assert not model.price_tiers or len(known) == len(prices)
    assert [price.input for price in known] == sorted(price.input for price in known)
    assert [price.output for price in known] == sorted(price.output for price in known)
    assert all(0 < tier.above < (model.context_window or 0) for tier in model.price_tiers)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_name_leads_to_the_model_alone_and_with_its_provider_before_it(model: Model) -> None:
    for name in (model.name, *model.aliases):
        assert WHOLE.resolve(name) == model
        assert WHOLE.resolve(f"{model.provider}/{name}") == model


@pytest.mark.parametrize("model", [one for one in MODELS if one.successor], ids=lambda model: model.name)
def test_a_successor_is_another_model_that_a_call_could_name(model: Model) -> None:
    assert model.successor is not None
    assert WHOLE.resolve(model.successor).provider == model.provider
    assert model.successor != model.name


def test_no_two_models_share_a_name() -> None:
    names = [name for model in MODELS for name in (model.name, *model.aliases)]
    assert len(names) == len(set(names))
    assert sum(len(model_tables(document)) for document in DOCUMENTS.values()) == len(MODELS)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_limits_are_of_parameters_that_the_model_can_use(model: Model) -> None:
    for parameter in model.parameter_limits:
        capability = PARAMETER_CAPABILITIES.get(parameter)
        assert capability is None or capability in model.capabilities
    for parameter in ("temperature", "n"):
        if parameter in model.parameter_limits:
            assert model.parameter_limits[parameter].accepts(1)


@pytest.mark.parametrize(
    ("name", "request_fields"),
    [
        ("gpt-5", {"max_tokens": 10}),
        ("gpt-5", {"temperature": 0.2}),
        ("o3", {"reasoning_effort": "minimal"}),
        ("gpt-4o", {"temperature": 2.5}),
        ("gpt-4o", {"stop": ["a", "b", "c", "d", "e"]}),
        ("claude-haiku-4-5", {"temperature": 1.2}),
        ("claude-haiku-4-5", {"n": 2}),
        ("claude-opus-5-5", {"temperature": 1}),
        ("groq/openai/gpt-oss-20b", {"logprobs": True}),
        ("cerebras/zai-glm-4.7", {"presence_penalty": 0}),
        ("mistral-large-2512", {"seed": 7}),
        ("kimi-k2.6", {"temperature": 0.6}),
    ],
)
def test_what_a_provider_is_known_to_refuse_is_refused(name: str, request_fields: dict[str, Any]) -> None:
    model, needs = WHOLE.resolve(name), needs_of(request_fields, [])
    limits = model.parameter_limits
    refused = needs.parameters.keys() & model.unsupported_parameters
    assert refused or any(key in limits and not limits[key].accepts(value) for key, value in needs.parameters.items())


# -- what is offered ---------------------------------------------------------------------------------


def test_a_deployment_offers_the_models_of_the_providers_it_has_a_key_for() -> None:
    file = deployed(OPENAI_API_KEY="sk-x")
    assert {model.provider for model in file.catalogue.models.values()} == {"openai"}
    assert file.catalogue.resolve("gpt-4o").context_window == 128_000
    assert file.catalogue.resolve("gpt-99").provider == "openai"
    for name in ("claude-haiku-4-5", "claude-99", "groq/openai/gpt-oss-20b", "mistral-large-2512"):
        with pytest.raises(ModelNotFound):
            file.catalogue.resolve(name)
    assert file.whole.resolve("claude-haiku-4-5").provider == "anthropic"
    assert file.unavailable["anthropic"] == "ANTHROPIC_API_KEY"
    assert "openai" not in file.unavailable


@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": ""}])
def test_without_any_key_nothing_is_offered(environ: dict[str, str]) -> None:
    file = deployed(**environ)
    assert not file.catalogue.models
    assert len(file.whole.models) == len(MODELS)
    with pytest.raises(ModelNotFound):
        file.catalogue.resolve("gpt-4o")


def test_a_model_has_its_own_keys_over_its_groups_over_the_shared_ones() -> None:
    document = {
        "name": "p",
        "shared": {"a": 1, "b": 1, "parameter_limits": {"x": 1, "y": 1}},
        "groups": {"g": {"b": 2, "c": 2, "parameter_limits": {"y": 2}}},
        "models": {"m": {"group": "g", "c": 3, "parameter_limits": {"z": 3}}, "n": {}},
    }
    assert model_tables(document) == {
        "m": {"provider": "p", "a": 1, "b": 2, "c": 3, "parameter_limits": {"x": 1, "y": 2, "z": 3}},
        "n": {"provider": "p", "a": 1, "b": 1, "parameter_limits": {"x": 1, "y": 1}},
    }
    assert shipped_tables()[0].keys() == DOCUMENTS.keys()
