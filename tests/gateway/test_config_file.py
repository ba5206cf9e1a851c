"""The configuration file: what is wrong in it is named by its path, and what it asks for is what one gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from bastion.bootstrap import bootstrap
from bastion.config import Config
from bastion.config_file import ConfigError, FileConfig, read_file
from contextshift.catalogue import PriceTier
from contextshift.errors import ModelNotFound
from contextshift.needs import Limit

GROUND = """
[providers.main]
base_url = "http://127.0.0.1:9/v1"
[models.small]
provider = "main"
context_window = 60
"""


def read(folder: Path, text: str, **environ: str) -> FileConfig:
    path = folder / "bastion.toml"
    path.write_text(text, "utf-8")
    return read_file(path, environ)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ("contxt_window = 5", "models.small.contxt_window"),
        ("max_output = -1", "models.small.max_output"),
        ("input_price = nan", "models.small.input_price"),
        ("parameter_limits = { n = { most = 1 } }", "models.small.parameter_limits.n.most"),
        ("parameter_limits = { stop = { max_items = 'x' } }", "models.small.parameter_limits.stop.max_items"),
        ("price_tiers = [{ above = 1 }]", "models.small.price_tiers[0]"),
        ("capabilities = ['']", "models.small.capabilities"),
        ("[models.other]\nprovider = 'nobody'", "models.other.provider"),
        ("[models.other]\ncontext_window = 5", "models.other.provider"),
        ("[providers.x]\nbase_url = 'ftp://x'", "providers.x.base_url"),
        ("[providers.x]\nkind = 'azure'", "providers.x.kind"),
        ("[accounts.acme]\nplan = 'none'", "accounts.acme.plan"),
        ("[plans.hobby]\n[accounts.'x#y']\nplan = 'hobby'", "accounts.x#y"),
        ("[plans.hobby]\n[accounts.'é']\nplan = 'hobby'", "accounts.é"),
        (
            "[plans.hobby]\n[accounts.a]\nplan = 'hobby'\napi_keys = ['k']\n"
            "[accounts.b]\nplan = 'hobby'\nadmin_keys = ['k']",
            "accounts.b",
        ),
        ("[plans.p]\ncontext_swaping = true", "plans.p.context_swaping"),
        ("[relevance]\nembeddings = 'nothing'", "relevance.embeddings"),
        ("[nonsense]", "nonsense"),
    ],
)
def test_what_is_wrong_stops_the_start_and_is_named(tmp_path: Path, more: str, path: str) -> None:
    with pytest.raises(ConfigError, match=f"^{path.replace('[', chr(92) + '[')}: "):
        read(tmp_path, GROUND + more)


def test_a_catalogue_is_the_shipped_one_or_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^catalogue: "):
        read(tmp_path, "catalogue = 'mine'\n" + GROUND)
    assert read(tmp_path, GROUND).whole.models.keys() == {"small"}


def test_a_files_own_tables_stand_over_the_shipped_ones(tmp_path: Path) -> None:
    own = """
[models."gpt-4o"]
provider = "main"
context_window = 7
[providers.groq]
base_url = "http://127.0.0.1:9/v1"
"""
    file = read(tmp_path, 'catalogue = "shipped"\n' + GROUND + own, ANTHROPIC_API_KEY="k")
    assert (file.catalogue.resolve("gpt-4o").provider, file.catalogue.resolve("gpt-4o").context_window) == ("main", 7)
    assert {model.provider for model in file.catalogue.models.values()} == {"main", "anthropic", "groq"}


def test_limits_and_tiers_are_read(tmp_path: Path) -> None:
    more = """
parameter_limits = { temperature = { min = 0, max = 1 }, reasoning_effort = { only = ["low"] } }
price_tiers = [{ above = 30, input = 2.0, output = 3 }]
"""
    model = read(tmp_path, GROUND + more).catalogue.resolve("small")
    assert model.parameter_limits == {"temperature": Limit(0, 1), "reasoning_effort": Limit(only=("low",))}
    assert model.price_tiers == (PriceTier(30, 2.0, 3),)


@pytest.mark.parametrize("written", ["'2027-01-31'", "2027-01-31", "2027-01-31T10:00:00Z"])
def test_a_date_may_be_a_text_or_tomls_own(tmp_path: Path, written: str) -> None:
    assert (
        read(tmp_path, GROUND + f"shutdown_date = {written}").catalogue.resolve("small").shutdown_date == "2027-01-31"
    )


def test_a_provider_without_its_key_is_known_and_not_offered(tmp_path: Path) -> None:
    text = GROUND.replace("[models", "api_key_env = 'MAIN_KEY'\nmodels = ['wild-*']\n[models")
    without = read(tmp_path, text)
    assert without.unavailable == {"main": "MAIN_KEY"}
    for name in ("small", "wild-1"):
        with pytest.raises(ModelNotFound):
            without.catalogue.resolve(name)
        assert without.whole.resolve(name).provider == "main"
    given = read(tmp_path, text, MAIN_KEY="sk")
    assert given.unavailable == {}
    assert given.catalogue.resolve("small").context_window == 60
    assert "sk" not in repr(given.providers["main"])


def test_relevance_by_a_model_that_is_not_offered_is_left_to_the_lexical_scorer(tmp_path: Path) -> None:
    text = GROUND.replace("[models", "api_key_env = 'MAIN_KEY'\n[models") + "[relevance]\nembeddings = 'small'"
    assert read(tmp_path, text).embeddings is None
    assert read(tmp_path, text, MAIN_KEY="k").embeddings == "small"


def test_a_tokenizer_that_nobody_has_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "bastion.toml").write_text(GROUND + "tokenizer = 'o200k'", "utf-8")
    config = Config.from_environ({"BASTION_CONFIG": str(tmp_path / "bastion.toml"), "BASTION_DATA": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"models\.small\.tokenizer"):
        bootstrap(config)


def test_one_secret_for_all_holds_the_keys_of_the_providers_that_are_named(tmp_path):
    text = "".join(
        f'[providers.{name}]\nbase_url = "https://{name}.example/v1"\napi_key_env = "{name.upper()}_KEY"\n'
        f'[models.{name}-1]\nprovider = "{name}"\n'
        for name in ("one", "two")
    )
    (tmp_path / "c.toml").write_text(text)
    shared = {"BASTION_PROVIDER_KEYS_SECRET": "arn:keys"}
    for held, offered in (("", {"one-1", "two-1"}), ("two", {"two-1"})):
        read = read_file(tmp_path / "c.toml", {**shared, "BASTION_PROVIDERS": held})
        assert set(read.catalogue.models) == offered
    with_own = read_file(tmp_path / "c.toml", {**shared, "BASTION_PROVIDERS": "two", "ONE_KEY": "sk"})
    assert set(with_own.catalogue.models) == {"one-1", "two-1"}


def test_a_key_in_several_lists_may_do_what_each_says(tmp_path: Path) -> None:
    lists = "api_keys = ['k', 'call']\nadmin_keys = ['k']\npreview_keys = ['k']"
    account = read(tmp_path, f"{GROUND}\n[plans.hobby]\n[accounts.acme]\nplan = 'hobby'\n{lists}").accounts["acme"]
    assert account.keys == {"k": {"call", "audit", "preview", "admin"}, "call": {"call", "audit", "preview"}}
