"""The contract of account stores, over every one of them."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bastion.stores.sqlite import SqliteAccounts, SqliteDatabase
from contextshift.errors import StoreUnavailable
from contextshift.ports import AccountAdmin, KeyRecord, SettingsRecord
from gateway.stores.conftest import Server
from gateway.stores.life import MovableClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def name() -> str:
    return f"acct_{secrets.token_hex(4)}"


def key_of(account: str, created_at: float = 1.25, **fields: object) -> KeyRecord:
    digest = secrets.token_hex(32)
    key = KeyRecord(hash=digest, id=digest[:12], account=account, scopes=frozenset({"call"}), created_at=created_at)
    return replace(key, **fields)  # type: ignore[arg-type]


def settings(version: int, **values: object) -> SettingsRecord:
    return SettingsRecord(values=values, version=version, updated_at=5.5, updated_by="ana")


async def test_an_unknown_key_gives_nothing(accounts: AccountAdmin, name: str) -> None:
    assert await accounts.access("0" * 64, None) is None
    assert await accounts.access("0" * 64, name) is None


async def test_a_key_of_an_account_that_is_gone_gives_nothing(accounts: AccountAdmin, name: str) -> None:
    key = key_of(name)
    await accounts.put_key(key)
    assert await accounts.access(key.hash, name) is None


@pytest.mark.parametrize("hint", ["right", "wrong", "none"])
async def test_the_record_decides_whatever_the_hint_says(accounts: AccountAdmin, name: str, hint: str) -> None:
    other = f"{name}_2"
    await accounts.create_account(other, "hobby")
    await accounts.create_account(name, "pro", ["a", "b"])
    key = key_of(name, expires=2_000_000_000, label="ci")
    await accounts.put_key(key)
    await accounts.put_settings(name, settings(1, strategy="auto"), 0)
    access = await accounts.access(key.hash, {"right": name, "wrong": other, "none": None}[hint])
    assert access is not None
    assert (access.key, access.account, access.plan, access.models) == (key, name, "pro", ("a", "b"))
    assert access.settings == settings(1, strategy="auto")


async def test_a_new_account_has_empty_settings_of_version_0(accounts: AccountAdmin, name: str) -> None:
    await accounts.create_account(name, "hobby")
    key = key_of(name)
    await accounts.put_key(key)
    access = await accounts.access(key.hash, name)
    assert access is not None
    assert (access.settings, access.models) == (SettingsRecord(), None)
    assert await accounts.settings(name) == SettingsRecord()


async def test_an_account_is_created_once(accounts: AccountAdmin, name: str) -> None:
    assert await accounts.create_account(name, "hobby")
    assert not await accounts.create_account(name, "pro")
    assert await accounts.account(name) == ("hobby", None)


async def test_of_concurrent_creations_one_wins(accounts: AccountAdmin, name: str) -> None:
    won = await asyncio.gather(*(accounts.create_account(name, "hobby") for _ in range(8)))
    assert sum(won) == 1


async def test_an_account_that_is_not_there_is_not_updated(accounts: AccountAdmin, name: str) -> None:
    assert not await accounts.update_account(name, "pro", None)
    assert await accounts.account(name) is None


async def test_plan_and_models_change_together(accounts: AccountAdmin, name: str) -> None:
    await accounts.create_account(name, "hobby")
    assert await accounts.update_account(name, "pro", ["m"])
    assert await accounts.account(name) == ("pro", ("m",))
    assert await accounts.update_account(name, "pro", [])
    assert await accounts.account(name) == ("pro", ())
    assert await accounts.update_account(name, "starter", None)
    assert await accounts.account(name) == ("starter", None)


async def test_keys_are_listed_oldest_first_and_by_account(accounts: AccountAdmin, name: str) -> None:
    late, early = key_of(name, 20.5), key_of(name, 10.25, scopes=frozenset({"audit", "preview"}))
    for key in (late, early, key_of(f"{name}_2")):
        await accounts.put_key(key)
    assert await accounts.keys(name) == [early, late]
    assert await accounts.keys(f"{name}_3") == []


async def test_a_revoked_key_is_returned_as_revoked_at_once(accounts: AccountAdmin, name: str) -> None:
    await accounts.create_account(name, "hobby")
    key = key_of(name)
    await accounts.put_key(key)
    await accounts.put_key(replace(key, off=True, expires=2_000_000_000))
    access = await accounts.access(key.hash, name)
    assert access is not None
    assert (access.key.off, access.key.expires) == (True, 2_000_000_000)
    await accounts.put_key(key)
    assert await accounts.keys(name) == [key]


async def test_the_end_of_a_key_moves_and_nothing_else_of_it(accounts: AccountAdmin, name: str) -> None:
    await accounts.create_account(name, "hobby")
    key = key_of(name)
    await accounts.put_key(key)
    await accounts.put_key(replace(key, off=True))
    assert await accounts.expire_key(key.hash, 2_000_000_000)
    assert await accounts.keys(name) == [replace(key, off=True, expires=2_000_000_000)]
    assert await accounts.expire_key(key.hash, None)
    assert await accounts.keys(name) == [replace(key, off=True)]
    assert not await accounts.expire_key("0" * 64, None)
    assert await accounts.access("0" * 64, name) is None


async def test_settings_in_any_script_take_what_they_are_long(accounts: AccountAdmin, name: str) -> None:
    for version, text in enumerate(("模型" * 50_000, "half a pair: \ud800")):
        assert await accounts.put_settings(name, settings(version + 1, system_prompt=text), version)
        assert (await accounts.settings(name)).values == {"system_prompt": text}


async def test_many_keys_are_all_listed(accounts: AccountAdmin, name: str) -> None:
    keys = [key_of(name, created_at=float(index)) for index in range(110)]
    for start in range(0, len(keys), 22):
        await asyncio.gather(*(accounts.put_key(key) for key in keys[start : start + 22]))
    assert await accounts.keys(name) == keys


async def test_settings_keep_their_types(accounts: AccountAdmin, name: str) -> None:
    values = {"off": False, "zero": 0, "ratio": 0.1, "list": ["eu", "é"], "text": "auto", "deep": {"x": None}}
    assert await accounts.put_settings(name, settings(1, **values), 0)
    stored = await accounts.settings(name)
    assert stored == settings(1, **values)
    assert stored.values["off"] is False


async def test_settings_written_on_a_stale_version_are_refused(accounts: AccountAdmin, name: str) -> None:
    assert await accounts.put_settings(name, settings(1, a=1), 0)
    assert not await accounts.put_settings(name, settings(1, a=2), 0)
    assert await accounts.put_settings(name, settings(2, a=3), 1)
    assert not await accounts.put_settings(name, settings(2, a=4), 1)
    assert not await accounts.put_settings(name, settings(10, a=5), 9)
    assert await accounts.settings(name) == settings(2, a=3)


async def test_no_settings_are_updated_where_none_are(accounts: AccountAdmin, name: str) -> None:
    assert not await accounts.put_settings(name, settings(5, a=1), 4)
    assert await accounts.settings(name) == SettingsRecord()


async def test_concurrent_changes_of_settings_lose_none(accounts: AccountAdmin, name: str) -> None:
    async def add_one() -> None:
        while True:
            now = await accounts.settings(name)
            count = int(now.values.get("count", 0)) + 1
            if await accounts.put_settings(name, settings(now.version + 1, count=count), now.version):
                return

    await asyncio.gather(*(add_one() for _ in range(8)))
    assert await accounts.settings(name) == settings(8, count=8)


# -- rows that are damaged -----------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["not json", "null", "[1]", '"x"', "1"])
@pytest.mark.parametrize("column", ["settings.values", "keys.scopes", "accounts.models"])
async def test_a_damaged_row_lets_nobody_in(clock: MovableClock, tmp_path: Path, column: str, damage: str) -> None:
    database = SqliteDatabase(tmp_path / "x.db")
    accounts, key = SqliteAccounts(database, clock=clock), key_of("acme")
    await accounts.create_account("acme", "hobby", ["m"])
    await accounts.put_key(key)
    await accounts.put_settings("acme", settings(1, a=1), 0)
    table, _, name = column.partition(".")
    await database.write(lambda db: db.execute(f'UPDATE {table} SET "{name}" = ?', (damage,)))
    try:
        with pytest.raises(StoreUnavailable) as refused:
            await accounts.access(key.hash, None)
        assert damage not in str(refused.value)
    finally:
        database.close()


@pytest.mark.parametrize(
    ("place", "attribute"),
    [
        ("SET#security", {"values": {"S": "null"}}),
        ("SET#security", {"values": {"S": "x"}}),
        ("KEY", {"off": {"S": "x"}}),
    ],
)
async def test_a_damaged_item_lets_nobody_in(
    ministack_tables: Server, clock: MovableClock, name: str, place: str, attribute: dict[str, Any]
) -> None:
    accounts, key = ministack_tables.accounts(clock), key_of(name)
    await accounts.create_account(name, "hobby")
    await accounts.put_key(key)
    await accounts.put_settings(name, settings(1, a=1), 0)
    partition = f"K#{key.hash}" if place == "KEY" else f"A#{name}"
    where = {"pk": {"S": partition}, "sk": {"S": place}}
    client, table = ministack_tables.client, ministack_tables.control
    item = client.get_item(TableName=table, Key=where)["Item"]
    client.put_item(TableName=table, Item=item | attribute)
    with pytest.raises(StoreUnavailable):
        await accounts.access(key.hash, name)
