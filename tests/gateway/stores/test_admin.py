"""``bastion-admin`` over SQLite and over DynamoDB, as an operator uses it."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bastion.admin import main
from bastion.bootstrap import bootstrap
from bastion.config import Config
from bastion.stores.sqlite import SqliteAccounts, SqliteDatabase
from contextshift.keys import account_hint, hash_key
from contextshift.ports import Access, AccountStore
from gateway import emulators
from gateway.stores.conftest import Server
from gateway.stores.life import MovableClock


@dataclass
class Admin:
    """Runs commands on one store; fails on another exit status than the one expected."""

    store: str
    capture: pytest.CaptureFixture[str]
    accounts: AccountStore

    def __call__(self, *arguments: str, status: int = 0) -> Any:
        """Return what a command reports, or what it says on the error stream."""
        assert main(["--store", self.store, "--json", "--by", "ana", *arguments], {}) == status
        captured = self.capture.readouterr()
        return captured.err if status else json.loads(captured.out)

    def access(self, key: str) -> Access | None:
        return asyncio.run(_access(self.accounts, key))


async def _access(accounts: AccountStore, key: str) -> Access | None:
    return await accounts.access(hash_key(key), account_hint(key))


async def _access_of_a_service(environ: Mapping[str, str], key: str) -> Access | None:
    services = bootstrap(Config.from_environ(environ))
    assert services.close is not None
    try:
        return await _access(services.accounts, key)
    finally:
        await services.close()


@pytest.fixture(params=["sqlite", "ministack"])
def admin(
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    clock: MovableClock,
) -> Iterator[Admin]:
    if request.param == "sqlite":
        database = SqliteDatabase(tmp_path / "admin.db")
        yield Admin(f"sqlite:{tmp_path / 'admin.db'}", capsys, SqliteAccounts(database, clock=clock))
        database.close()
        return
    server: Server = request.getfixturevalue("ministack_tables")
    store = f"dynamodb:{server.control},{server.chats}@{server.endpoint}"
    with pytest.MonkeyPatch.context() as environment:  # boto3 itself takes credentials from there
        for name, value in emulators.CREDENTIALS.items():
            environment.setenv(name, value)
        yield Admin(store, capsys, server.accounts(clock))


@pytest.fixture
def name() -> str:
    return f"acct_{secrets.token_hex(4)}"


def test_an_account_is_created_shown_and_changed(admin: Admin, name: str) -> None:
    assert admin("account", "create", name, "--plan", "hobby") == {"account": name, "plan": "hobby", "models": "all"}
    assert admin("account", "update", name, "--model", "a", "--model", "b")["models"] == ["a", "b"]
    assert admin("account", "update", name, "--plan", "pro") == {"account": name, "plan": "pro", "models": ["a", "b"]}
    assert admin("account", "update", name, "--all-models")["models"] == "all"
    assert admin("account", "show", name)["plan"] == "pro"


def test_what_cannot_be_done_is_refused_with_a_reason(admin: Admin, name: str) -> None:
    assert f"no account {name}" in admin("account", "show", name, status=1)
    assert f"no account {name}" in admin("account", "update", name, "--plan", "pro", status=1)
    assert f"no account {name}" in admin("key", "create", name, status=1)
    assert f"no account {name}" in admin("settings", "set", name, "headroom=0.1", status=1)
    admin("account", "create", name, "--plan", "hobby")
    assert "exists already" in admin("account", "create", name, "--plan", "pro", status=1)
    assert "has no key 123" in admin("key", "revoke", name, "123", status=1)
    assert admin("key", "list", name) == []


def test_a_plan_that_the_service_does_not_know_is_refused(admin: Admin, name: str) -> None:
    admin("account", "create", name, "--plan", "nope", status=1)
    admin("account", "create", name, "--plan", "pro")
    admin("account", "update", name, "--plan", "nope", status=1)
    assert admin("account", "show", name)["plan"] == "pro"


def test_a_key_is_shown_once_and_opens_its_account(admin: Admin, name: str) -> None:
    admin("account", "create", name, "--plan", "pro")
    made = admin("key", "create", name, "--scope", "call", "--scope", "audit", "--expires", "90d", "--label", "ci")
    access = admin.access(made["key"])
    assert access is not None
    assert (access.account, access.plan, access.key.scopes) == (name, "pro", frozenset({"call", "audit"}))
    assert access.key.expires == pytest.approx(time.time() + 90 * 86400, abs=60)
    (listed,) = admin("key", "list", name)
    assert listed == {field: value for field, value in made.items() if field != "key"}
    assert made["key"] not in json.dumps([listed, admin("account", "show", name)])


def test_a_rotated_key_lives_on_for_the_overlap(admin: Admin, name: str) -> None:
    admin("account", "create", name, "--plan", "pro")
    old = admin("key", "create", name, "--scope", "preview", "--label", "web", "--expires", "30d")
    new = admin("key", "rotate", name, old["id"], "--overlap", "24h")
    before, after = admin.access(old["key"]), admin.access(new["key"])
    assert before is not None
    assert after is not None
    assert before.key.expires == pytest.approx(time.time() + 86400, abs=60)
    assert after.key.expires == pytest.approx(time.time() + 30 * 86400, abs=60)
    assert (after.key.scopes, after.key.label) == (before.key.scopes, "web")
    assert [key["id"] for key in admin("key", "list", name)] == [old["id"], new["id"]]


def test_an_overlap_never_prolongs_a_key(admin: Admin, name: str) -> None:
    admin("account", "create", name, "--plan", "pro")
    old = admin("key", "create", name, "--expires", "1h")
    admin("key", "rotate", name, old["id"], "--overlap", "7d")
    access = admin.access(old["key"])
    assert access is not None
    assert access.key.expires == pytest.approx(time.time() + 3600, abs=60)


def test_a_revoked_key_stays_revoked_and_cannot_be_rotated(admin: Admin, name: str) -> None:
    admin("account", "create", name, "--plan", "pro")
    made = admin("key", "create", name)
    assert admin("key", "revoke", name, made["id"])["state"] == "revoked"
    access = admin.access(made["key"])
    assert access is not None
    assert access.key.off
    assert "revoked" in admin("key", "rotate", name, made["id"], status=1)
    assert len(admin("key", "list", name)) == 1


def test_the_end_of_a_key_can_be_moved(admin: Admin, name: str) -> None:
    admin("account", "create", name, "--plan", "pro")
    made = admin("key", "create", name)
    assert made["expires"] == "never"
    assert admin("key", "expire", name, made["id"], "--at", "2033-01-02")["expires"] == "2033-01-02T00:00:00Z"
    assert admin("key", "expire", name, made["id"])["state"] == "expired"
    assert admin("key", "expire", name, made["id"], "--at", "never")["state"] == "live"
    access = admin.access(made["key"])
    assert access is not None
    assert access.key.expires is None


def test_settings_are_set_shown_and_unset(admin: Admin, name: str) -> None:
    admin("account", "create", name, "--plan", "pro")
    assert admin("settings", "show", name) == {"account": name, "version": 0, "values": {}}
    admin("settings", "set", name, "context_swapping=false", "headroom=0.25", 'regions=["eu"]', "strategy=auto")
    changed = admin("settings", "set", name, "reserve_tokens=0", "headroom=null")
    expected = {"context_swapping": False, "regions": ["eu"], "strategy": "auto", "reserve_tokens": 0}
    assert (changed["version"], changed["by"], changed["values"]) == (2, "ana", expected)
    admin("settings", "unset", name, "strategy", "regions")
    key = admin("key", "create", name)["key"]
    access = admin.access(key)
    assert access is not None
    assert access.settings.values == {"context_swapping": False, "reserve_tokens": 0}
    assert access.settings.version == 3


def test_settings_changed_meanwhile_are_not_overwritten(admin: Admin, name: str) -> None:
    admin("account", "create", name, "--plan", "pro")
    admin("settings", "set", name, "headroom=0.1")
    admin("settings", "set", name, "headroom=0.2", "--version", "1")
    assert "changed meanwhile" in admin("settings", "set", name, "headroom=0.3", "--version", "1", status=1)
    assert "changed meanwhile" in admin("settings", "unset", name, "headroom", "--version", "7", status=1)
    assert admin("settings", "show", name)["values"] == {"headroom": 0.2}


@pytest.mark.parametrize(
    ("assignment", "named"),
    [("context_swaping=true", "context_swaping"), ("context_swapping=1", "context_swapping"), ("headroom", "headroom")],
)
def test_a_setting_that_is_wrong_is_named_and_nothing_is_stored(
    admin: Admin, name: str, assignment: str, named: str
) -> None:
    admin("account", "create", name, "--plan", "pro")
    assert named in admin("settings", "set", name, "smart_truncation=true", assignment, status=2)
    assert "nonsense" in admin("settings", "unset", name, "nonsense", status=2)
    assert admin("settings", "show", name)["version"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("account", "create", "Not-An-Id", "--plan", "pro"),
        ("key", "create", "{name}", "--expires", "soon"),
        ("key", "rotate", "{name}", "{id}", "--overlap", "long"),
    ],
)
def test_what_is_not_understood_changes_nothing(admin: Admin, name: str, arguments: tuple[str, ...]) -> None:
    admin("account", "create", name, "--plan", "pro")
    key = admin("key", "create", name)
    admin(*(argument.format(name=name, id=key["id"]) for argument in arguments), status=2)
    assert [listed["id"] for listed in admin("key", "list", name)] == [key["id"]]


def test_reports_can_be_read_by_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environ = {"BASTION_DATA": str(tmp_path), "USER": "ben"}
    assert main(["account", "create", "acme", "--plan", "pro"], environ) == 0
    assert capsys.readouterr().out == "account: acme\nplan: pro\nmodels: all\n"
    assert main(["key", "list", "acme"], environ) == 0
    assert capsys.readouterr().out == "none\n"
    assert main(["settings", "set", "acme", "headroom=0"], environ) == 0
    assert 'by: ben\nvalues: {"headroom": 0}' in capsys.readouterr().out


def test_the_service_finds_what_was_made_under_its_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], clock: MovableClock, ministack_tables: Server
) -> None:
    on_disk = {"BASTION_DATA": str(tmp_path / "data")}
    in_tables = {
        **emulators.CREDENTIALS,
        "BASTION_CONTROL_TABLE": ministack_tables.control,
        "BASTION_CHATS_TABLE": ministack_tables.chats,
        "BASTION_DYNAMODB_ENDPOINT": ministack_tables.endpoint,
    }
    name = f"acct_{secrets.token_hex(4)}"
    with pytest.MonkeyPatch.context() as environment:  # boto3 itself takes credentials from there
        for variable, value in emulators.CREDENTIALS.items():
            environment.setenv(variable, value)
        for environ in (on_disk, in_tables):
            assert main(["account", "create", name, "--plan", "pro"], environ) == 0
            capsys.readouterr()
            assert main(["--json", "key", "create", name], environ) == 0
            key = json.loads(capsys.readouterr().out)["key"]
            access = asyncio.run(_access_of_a_service(environ, key))
            assert access is not None
            assert (access.account, access.plan) == (name, "pro")


@pytest.mark.parametrize("store", ["sqlite", "sqlite:", "dynamodb:", "redis:x"])
def test_an_unknown_store_is_said_to_be_one(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--store", store, "account", "show", "acme"], {}) == 2
    assert "sqlite:PATH" in capsys.readouterr().err


def test_a_store_that_cannot_be_reached_is_status_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["--store", f"sqlite:{tmp_path / 'file' / 'x.db'}", "account", "show", "acme"], {}) == 3
    assert "SQLite" in capsys.readouterr().err
