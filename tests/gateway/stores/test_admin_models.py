"""``bastion-admin models`` over SQLite and DynamoDB, and what a running service makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from bastion.admin import main
from gateway.stores.test_admin import Admin, admin, name
from gateway.world import chat
from serving import Upstream, gateway

__all__ = ["admin", "name"]
"""Fixtures."""


@pytest.fixture(autouse=True)
def nothing_for_everyone(request: pytest.FixtureRequest) -> None:
    """Take away what another test has laid over the catalogue of a server that all share."""
    if "admin" in request.fixturenames:
        run: Admin = request.getfixturevalue("admin")
        for laid in run("models", "list"):
            run("models", "remove", laid["model"])


def provider_of(run: Admin) -> str:
    """Return a provider of the configuration that the store's kind stands for: the demo's, or the shipped one's."""
    return "demo" if run.store.startswith("sqlite") else "openai"


def test_a_model_is_added_changed_and_taken_away_for_one_account(admin: Admin, name: str) -> None:
    admin("account", "create", name, "--plan", "pro")
    own = ("--account", name)
    admin("models", "put", "house-7b", f"provider={provider_of(admin)}", "context_window=8192", *own)
    listed = admin("models", "put", "house-7b", "input_price=0.5", 'capabilities=["tools"]', *own)
    keys = {"provider": provider_of(admin), "context_window": 8192, "input_price": 0.5, "capabilities": ["tools"]}
    assert listed == [{"model": "house-7b", "for": name, "keys": keys}]
    assert admin("models", "remove", "house-7b", "input_price", "capabilities", *own)[0]["keys"].keys() == {
        "provider",
        "context_window",
    }
    assert admin("models", "remove", "house-7b", *own) == []
    assert admin("models", "list", *own) == []


def test_what_holds_for_everyone_is_listed_with_an_accounts_own(admin: Admin, name: str) -> None:
    admin("account", "create", name, "--plan", "pro")
    admin("models", "hide", "old-one")
    admin("models", "put", "new-one", f"provider={provider_of(admin)}")
    admin("models", "put", "new-one", "context_window=9", "--account", name)
    listed = admin("models", "list", "--account", name)
    assert [(one["model"], one["for"], one["keys"]) for one in listed] == [
        ("new-one", "everyone", {"provider": provider_of(admin)}),
        ("old-one", "everyone", "hidden"),
        ("new-one", name, {"context_window": 9}),
    ]
    admin("models", "put", "old-one", f"provider={provider_of(admin)}")
    assert admin("models", "list")[1]["keys"] == {"provider": provider_of(admin)}


def test_a_shipped_model_is_changed_by_the_keys_that_are_given(admin: Admin) -> None:
    name = "demo-small" if provider_of(admin) == "demo" else "claude-haiku-4-5"
    assert admin("models", "put", name, "max_input=null", "input_price=2")[0]["keys"] == {
        "max_input": None,
        "input_price": 2,
    }


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("put", "m", "context_window=5"), "models.m.provider"),
        (("put", "m", "provider=nobody"), "models.m.provider"),
        (("put", "m", "provider={provider}", "contxt_window=5"), "models.m.contxt_window"),
        (("put", "m", "provider={provider}", "context_window=big"), "models.m.context_window"),
        (("put", "m", "provider={provider}", "tokenizer=o200k"), "models.m.tokenizer"),
        (("put", "m", 'parameter_limits={{"n":{{"most":1}}}}'), "models.m.parameter_limits.n.most"),
        (("put", "a b", "provider={provider}"), "name"),
        (("put", "m", "provider"), "name=value"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_stored(admin: Admin, arguments: tuple[str, ...], named: str) -> None:
    given = [argument.format(provider=provider_of(admin)) for argument in arguments]
    assert named in admin("models", *given, status=2)
    assert admin("models", "list") == []


def test_what_cannot_be_done_is_refused_with_a_reason(admin: Admin, name: str) -> None:
    assert f"no account {name}" in admin("models", "hide", "x", "--account", name, status=1)
    assert f"no account {name}" in admin("models", "list", "--account", name, status=1)
    assert "nothing is laid over x" in admin("models", "remove", "x", status=1)
    aliases = '["' + '","'.join(f"alias-{number:06d}" for number in range(8_000)) + '"]'
    assert "larger than" in admin(
        "models", "put", "m", f"provider={provider_of(admin)}", f"aliases={aliases}", status=1
    )


def test_a_configuration_that_cannot_be_read_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"BASTION_DATA": str(tmp_path)}
    assert main(["--config", str(tmp_path / "none.toml"), "models", "put", "m", "provider=x"], environ) == 2
    assert "none.toml" in capsys.readouterr().err


def test_a_running_service_serves_what_was_laid_over_its_catalogue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upstream = Upstream()
    with gateway(tmp_path, upstream) as url, httpx.Client(timeout=20, trust_env=False) as client:
        store = f"sqlite:{tmp_path / 'data' / 'bastion.sqlite3'}"

        def run(*arguments: str) -> None:
            assert main(["--store", store, "--config", str(tmp_path / "bastion.toml"), "models", *arguments], {}) == 0

        run("put", "house", "provider=main", "upstream_name=house-1", "context_window=500", "tokenizer=words")
        run("put", "past", "provider=main", "context_window=470", "tokenizer=words", "shutdown_date=2020-01-01")
        run("put", "small", "input_price=9", 'parameter_limits={"temperature":{"max":1}}')
        run("hide", "plain")
        capsys.readouterr()

        def get(path: str) -> Any:
            return client.get(url + path, headers={"authorization": "Bearer sk-acme"}).json()

        models = {model["id"]: model for model in get("/v1/models")["data"]}
        assert models["house"]["context_length"] == 500
        assert models["small"]["pricing"]["input"] == 9
        assert models["small"]["context_length"] == 60
        assert models["small"]["parameter_limits"] == {"temperature": {"max": 1}}
        assert "plain" not in models
        assert get("/v1/models/plain")["error"]["code"] == "model_not_found"
        body = chat(("user", 3), model="house", max_tokens=10)
        answer = client.post(f"{url}/v1/chat/completions", json=body, headers={"authorization": "Bearer sk-acme"})
        assert answer.status_code == 200
        assert upstream.last.json["model"] == "house-1"
        swapped = chat(("user", 450), model="small", routing={"context_swapping": True}, max_tokens=10)
        answer = client.post(f"{url}/v1/chat/completions", json=swapped, headers={"authorization": "Bearer sk-acme"})
        assert 'to="house"' in answer.headers["x-bastion-context-warning"]
