"""Overlays of the catalogue: the contract over every account store, and what each keeps of it."""

from __future__ import annotations

import asyncio
import json
import secrets
from dataclasses import replace
from typing import Any

import pytest

from bastion.stores.configured import ConfiguredAccounts
from bastion.stores.dynamodb.client import RoundTrip
from bastion.stores.dynamodb.items import SCHEMA, overlay_key
from contextshift.errors import StoreUnavailable
from contextshift.fakes.stores import MemoryAccounts
from contextshift.ports import Access, AccountAdmin, OverlayRecord, SettingsRecord
from gateway.stores.conftest import Server
from gateway.stores.life import MovableClock
from gateway.stores.test_accounts import key_of

pytestmark = pytest.mark.anyio

HOUSE: dict[str, Any] = {"house": {"provider": "main", "context_window": 5, "aliases": ["é"]}, "gone": None}


@pytest.fixture
def name() -> str:
    return f"acct_{secrets.token_hex(4)}"


def overlay(version: int, **models: Any) -> OverlayRecord:
    return OverlayRecord(models, version, 5.5, "ana")


async def opened(accounts: AccountAdmin, name: str) -> str:
    await accounts.create_account(name, "pro")
    key = key_of(name)
    await accounts.put_key(key)
    return key.hash


async def cleared(accounts: AccountAdmin) -> int:
    """Take the deployment's overlay away, which tests over one server share; return its version."""
    while True:
        stored = await accounts.overlay(None)
        if await accounts.put_overlay(None, overlay(stored.version + 1), stored.version):
            return stored.version + 1


async def laid(accounts: AccountAdmin, key: str, name: str) -> list[Any]:
    access = await accounts.access(key, name)
    assert access is not None
    assert access.overlays == await accounts.overlays(name)
    return [json.loads(document) for document in access.overlays]


async def test_an_account_without_an_overlay_has_none(accounts: AccountAdmin, name: str) -> None:
    await cleared(accounts)
    key = await opened(accounts, name)
    assert await laid(accounts, key, name) == []
    assert await accounts.overlay(name) == OverlayRecord()


async def test_an_overlay_comes_with_the_next_access(accounts: AccountAdmin, name: str) -> None:
    await cleared(accounts)
    key = await opened(accounts, name)
    assert await accounts.put_overlay(name, overlay(1, **HOUSE), 0)
    assert await laid(accounts, key, name) == [HOUSE]
    assert await accounts.overlay(name) == overlay(1, **HOUSE)
    assert await accounts.put_overlay(name, overlay(2), 1)
    assert await laid(accounts, key, name) == []


async def test_everyones_overlay_stands_below_the_accounts_own(accounts: AccountAdmin, name: str) -> None:
    version = await cleared(accounts)
    key, other = await opened(accounts, name), await opened(accounts, f"{name}_2")
    assert await accounts.put_overlay(None, overlay(version + 1, everyones=None), version)
    assert await accounts.put_overlay(name, overlay(1, **HOUSE), 0)
    assert await laid(accounts, key, name) == [{"everyones": None}, HOUSE]
    assert await laid(accounts, other, f"{name}_2") == [{"everyones": None}]
    await cleared(accounts)


@pytest.mark.parametrize("hint", ["wrong", "none"])
async def test_the_record_decides_whose_overlay_it_is(accounts: AccountAdmin, name: str, hint: str) -> None:
    await cleared(accounts)
    key, other = await opened(accounts, name), f"{name}_2"
    await opened(accounts, other)
    await accounts.put_overlay(other, overlay(1, theirs=None), 0)
    await accounts.put_overlay(name, overlay(1, ours=None), 0)
    access = await accounts.access(key, {"wrong": other, "none": None}[hint])
    assert access is not None
    assert [json.loads(document) for document in access.overlays] == [{"ours": None}]


async def test_an_overlay_written_on_a_stale_version_is_refused(accounts: AccountAdmin, name: str) -> None:
    assert not await accounts.put_overlay(name, overlay(5, a=None), 4)
    assert await accounts.put_overlay(name, overlay(1, a=None), 0)
    assert not await accounts.put_overlay(name, overlay(1, b=None), 0)
    assert await accounts.put_overlay(name, overlay(2, c=None), 1)
    assert not await accounts.put_overlay(name, overlay(2, d=None), 1)
    assert await accounts.overlay(name) == overlay(2, c=None)


async def test_concurrent_changes_of_an_overlay_lose_none(accounts: AccountAdmin, name: str) -> None:
    async def add(model: str) -> None:
        while True:
            now = await accounts.overlay(name)
            if await accounts.put_overlay(name, overlay(now.version + 1, **now.models, **{model: None}), now.version):
                return

    await asyncio.gather(*(add(f"m{number}") for number in range(6)))
    stored = await accounts.overlay(name)
    assert (stored.version, stored.models.keys()) == (6, {f"m{number}" for number in range(6)})


# -- DynamoDB ----------------------------------------------------------------------------------------


async def test_letting_a_call_in_stays_one_round_trip_and_reads_everyones_overlay_every_five_seconds(
    dynalite_tables: Server, clock: MovableClock, name: str
) -> None:
    seen: list[RoundTrip] = []
    writer = dynalite_tables.accounts(clock)
    key, version = await opened(writer, name), await cleared(writer)
    accounts = dynalite_tables.accounts(clock, meter=seen.append)
    assert await accounts.access(key, name) is not None
    await writer.put_overlay(None, overlay(version + 1, news=None), version)
    clock.time += 4.9
    access = await accounts.access(key, name)
    assert access is not None
    assert access.overlays == ()
    clock.time += 0.2
    access = await accounts.access(key, name)
    assert access is not None
    assert access.overlays == ('{"news": null}',)
    assert [trip.operation for trip in seen] == ["batch_get_item"] * 3
    assert [trip.read_units for trip in seen] == [7, 6, 7]
    await cleared(writer)


async def test_an_overlay_of_a_later_schema_stops_the_call(
    ministack_tables: Server, clock: MovableClock, name: str
) -> None:
    accounts = ministack_tables.accounts(clock)
    key = await opened(accounts, name)
    item = overlay_key(name) | {"schema": {"N": str(SCHEMA + 1)}, "models": {"S": "{}"}}
    ministack_tables.client.put_item(TableName=ministack_tables.control, Item=item)
    with pytest.raises(StoreUnavailable):
        await accounts.access(key, name)


# -- accounts of the configuration file --------------------------------------------------------------


async def test_an_account_of_the_file_sees_the_stores_overlays_within_five_seconds(
    clock: MovableClock, name: str
) -> None:
    beyond, key = MemoryAccounts(clock), key_of(name)
    access = Access(key, name, "pro", SettingsRecord())
    accounts = ConfiguredAccounts({key.hash: access}, beyond, clock)
    await beyond.put_overlay(None, overlay(1, a=None), 0)
    expected = replace(access, overlays=('{"a": null}',))
    assert await accounts.access(key.hash, name) == expected
    await beyond.put_overlay(name, overlay(1, b=None), 0)
    assert await accounts.access(key.hash, name) == expected
    clock.time += 5
    beyond.failing.add("overlays")
    assert await accounts.access(key.hash, name) == expected
    clock.time += 5
    beyond.failing.clear()
    assert await accounts.access(key.hash, name) == replace(access, overlays=('{"a": null}', '{"b": null}'))


async def test_a_store_that_is_down_does_not_keep_the_files_accounts_out(clock: MovableClock, name: str) -> None:
    beyond, key = MemoryAccounts(clock), key_of(name)
    access = Access(key, name, "pro", SettingsRecord())
    beyond.failing.add("overlays")
    assert await ConfiguredAccounts({key.hash: access}, beyond, clock).access(key.hash, name) == access
    with pytest.raises(StoreUnavailable):
        await ConfiguredAccounts({}, beyond, clock).overlays(name)


async def test_settings_of_an_account_of_the_file_reach_every_instance_within_five_seconds(
    clock: MovableClock, name: str
) -> None:
    store, key = MemoryAccounts(clock), key_of(name)
    access = Access(key, name, "pro", SettingsRecord({"headroom": 0.5}))
    one, two = (ConfiguredAccounts({key.hash: access}, store, clock, store) for _ in range(2))
    assert await two.access(key.hash, name) == access
    written = SettingsRecord({"regions": ["us"]}, 1, 5.0, "ana")
    assert await one.put_settings(name, written, 0)
    expected = replace(access, settings=written)
    assert await one.access(key.hash, name) == expected
    assert await two.settings(name) == written
    clock.time += 5
    assert await two.access(key.hash, name) == expected
    assert await two.put_settings(name, replace(written, version=2), 1)


async def test_where_each_call_reads_them_settings_hold_for_the_next(clock: MovableClock, name: str) -> None:
    store, key = MemoryAccounts(clock), key_of(name)
    access = Access(key, name, "pro", SettingsRecord())
    accounts = ConfiguredAccounts({key.hash: access}, store, clock, store, seconds=0.0)
    assert await accounts.access(key.hash, name) == access
    written = SettingsRecord({"regions": ["us"]}, 1, 5.0, "ana")
    await store.put_settings(name, written, 0)
    assert await accounts.access(key.hash, name) == replace(access, settings=written)


async def test_settings_that_cannot_be_read_let_nobody_in(clock: MovableClock, name: str) -> None:
    store, key = MemoryAccounts(clock), key_of(name)
    access = Access(key, name, "pro", SettingsRecord({"regions": ["eu"]}))
    accounts = ConfiguredAccounts({key.hash: access}, store, clock, store)
    store.failing.add("settings")
    with pytest.raises(StoreUnavailable):
        await accounts.access(key.hash, name)
    store.failing.clear()
    assert await accounts.access(key.hash, name) == access
    store.failing.add("settings")
    assert await accounts.access(key.hash, name) == access  # what was read a moment ago
    clock.time += 5
    with pytest.raises(StoreUnavailable):
        await accounts.access(key.hash, name)
