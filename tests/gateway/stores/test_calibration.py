"""The contract of calibration, over every account store."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from bastion.stores.configured import ConfiguredAccounts
from bastion.stores.dynamodb import RoundTrip
from bastion.stores.dynamodb.items import SCHEMA, calibration_key
from bastion.stores.sqlite import SqliteAccounts, SqliteDatabase
from contextshift.calibrating import Calibrator
from contextshift.calibration import Calibration, day_of
from contextshift.errors import StoreUnavailable
from contextshift.fakes import MemoryAccounts
from contextshift.ports import Access, AccountAdmin, KeyRecord, SettingsRecord
from contextshift.tokens import TokenizerProfile
from gateway.stores.conftest import Server
from gateway.stores.faults import FaultyClient, timeout_at
from gateway.stores.life import MovableClock

pytestmark = pytest.mark.anyio

DAY = 86_400
ONE = Calibration({"estimate/m": {40: 1, 41: 2}, "claude:x/acme/big-model.v1:free": {60: 3}})
OTHER = Calibration({"estimate/m": {41: 5, 100: 1}, "estimate/n": {25: 1}})


@pytest.fixture
def name() -> str:
    return f"acct_{secrets.token_hex(4)}"


def key_of(account: str) -> KeyRecord:
    digest = secrets.token_hex(32)
    return KeyRecord(digest, digest[:12], account, frozenset({"call"}))


async def opened(accounts: AccountAdmin, account: str) -> KeyRecord:
    await accounts.create_account(account, "pro")
    key = key_of(account)
    await accounts.put_key(key)
    return key


async def read(accounts: AccountAdmin, key: KeyRecord, hint: str | None) -> Calibration:
    access = await accounts.access(key.hash, hint)
    assert access is not None
    assert await accounts.calibration(key.account) == access.calibration
    return access.calibration


async def test_a_new_account_has_none(accounts: AccountAdmin, name: str) -> None:
    key = await opened(accounts, name)
    assert await read(accounts, key, name) == Calibration()


@pytest.mark.parametrize("hint", ["right", "wrong", "none"])
async def test_access_brings_what_was_merged(accounts: AccountAdmin, clock: MovableClock, name: str, hint: str) -> None:
    key = await opened(accounts, name)
    today = day_of(clock.now())
    await accounts.merge_calibration(name, today, ONE)
    await accounts.merge_calibration(name, today, OTHER)
    await accounts.merge_calibration(f"{name}_2", today, OTHER)
    found = await read(accounts, key, {"right": name, "wrong": f"{name}_2", "none": None}[hint])
    assert found == ONE + OTHER


async def test_yesterday_counts_and_the_day_before_does_not(
    accounts: AccountAdmin, clock: MovableClock, name: str
) -> None:
    key = await opened(accounts, name)
    await accounts.merge_calibration(name, day_of(clock.now()), ONE)
    clock.time += DAY
    assert await read(accounts, key, name) == ONE
    await accounts.merge_calibration(name, day_of(clock.now()), OTHER)
    assert await read(accounts, key, name) == ONE + OTHER
    clock.time += DAY
    assert await read(accounts, key, name) == OTHER
    clock.time += DAY
    assert await read(accounts, key, name) == Calibration()


async def test_a_clock_that_is_behind_still_adds_to_its_own_day(
    accounts: AccountAdmin, clock: MovableClock, name: str
) -> None:
    key = await opened(accounts, name)
    today = day_of(clock.now())
    await accounts.merge_calibration(name, today, ONE)
    await accounts.merge_calibration(name, today - 1, OTHER)
    assert await read(accounts, key, name) == ONE + OTHER


async def test_concurrent_merges_lose_nothing(accounts: AccountAdmin, clock: MovableClock, name: str) -> None:
    key = await opened(accounts, name)
    today = day_of(clock.now())
    merges = [
        Calibration({"estimate/m": {40 + index % 3: 1 + index}, f"e/{index % 2}": {50: 1}}) for index in range(24)
    ]
    await asyncio.gather(*(accounts.merge_calibration(name, today, more) for more in merges))
    assert await read(accounts, key, name) == sum(merges, Calibration())


async def test_a_large_merge_is_kept_whole(accounts: AccountAdmin, clock: MovableClock, name: str) -> None:
    key = await opened(accounts, name)
    large = Calibration({f"estimate/{index}{'m' * 150}": dict.fromkeys(range(25, 101), 7) for index in range(8)})
    await accounts.merge_calibration(name, day_of(clock.now()), large)
    assert await read(accounts, key, name) == large


async def test_settings_and_calibration_leave_each_other_alone(
    accounts: AccountAdmin, clock: MovableClock, name: str
) -> None:
    key = await opened(accounts, name)
    await accounts.merge_calibration(name, day_of(clock.now()), ONE)
    record = SettingsRecord({"calibration": "off"}, 1, 5.5, "ana")
    assert await accounts.put_settings(name, record, 0)
    assert await accounts.update_account(name, "hobby", ["m"])
    access = await accounts.access(key.hash, name)
    assert access is not None
    assert (access.settings, access.plan, access.models) == (record, "hobby", ("m",))
    assert access.calibration == ONE
    assert await accounts.keys(name) == [key]


# -- several instances -------------------------------------------------------------------------------

ROUGH = TokenizerProfile("rough", approximate=True)


async def _observe_on(instances: list[AccountAdmin], clock: MovableClock, name: str) -> None:
    """Let every instance see fifty answers, some of them while the others are merging."""
    key = key_of(name)
    access = Access(key, name, "pro", SettingsRecord())
    calibrators = [Calibrator(store, clock, every=0.005) for store in instances]
    for round_ in range(5):
        for calibrator in calibrators:
            for index in range(10):
                calibrator.observe(access, "m", ROUGH, 1_000, 800 + round_ + index)
        await asyncio.sleep(0.004)
    await asyncio.gather(*(calibrator.aclose() for calibrator in calibrators))


@pytest.mark.parametrize("server", ["ministack_tables", "dynalite_tables"])
async def test_instances_that_share_a_table_lose_nothing(
    server: str, request: pytest.FixtureRequest, clock: MovableClock, name: str
) -> None:
    tables: Server = request.getfixturevalue(server)
    await _observe_on([tables.accounts(clock) for _ in range(4)], clock, name)
    found = await tables.accounts(clock).calibration(name)
    assert sum(many for *_, many in found) == 200
    assert found.correction(ROUGH, "m").ratio == 0.82


async def test_processes_that_share_a_file_lose_nothing(tmp_path: Path, clock: MovableClock, name: str) -> None:
    databases = [SqliteDatabase(tmp_path / "b.db") for _ in range(4)]
    stores: list[AccountAdmin] = [SqliteAccounts(database, clock=clock) for database in databases]
    await _observe_on(stores, clock, name)
    assert sum(many for *_, many in await stores[0].calibration(name)) == 200
    for database in databases:
        database.close()


# -- DynamoDB ----------------------------------------------------------------------------------------


async def test_access_is_still_one_round_trip_and_a_merge_one_more(
    ministack_tables: Server, clock: MovableClock, name: str
) -> None:
    seen: list[RoundTrip] = []
    accounts = ministack_tables.accounts(clock, meter=seen.append)
    key = await opened(accounts, name)
    seen.clear()
    await accounts.merge_calibration(name, day_of(clock.now()), ONE)
    assert [trip.operation for trip in seen] == ["update_item"]
    seen.clear()
    await accounts.access(key.hash, name)
    assert [trip.operation for trip in seen] == ["batch_get_item"]


async def test_the_item_says_what_every_item_says_and_ends_by_itself(
    ministack_tables: Server, clock: MovableClock, name: str
) -> None:
    accounts, today = ministack_tables.accounts(clock), day_of(clock.now())
    made = clock.time
    await accounts.merge_calibration(name, today, ONE)
    clock.time += 60
    await accounts.merge_calibration(name, today, ONE)
    where = {"TableName": ministack_tables.control, "Key": calibration_key(name, today)}
    item = ministack_tables.client.get_item(**where)["Item"]
    assert float(item["created_at"]["N"]) == made
    assert float(item["updated_at"]["N"]) == clock.time
    assert int(item["schema"]["N"]) == SCHEMA
    assert today * DAY + 2 * DAY < int(item["expires"]["N"]) < today * DAY + 5 * DAY
    assert item["samples:estimate/m:41"] == {"N": "4"}


async def test_a_calibration_of_a_later_schema_turns_nobody_away(
    ministack_tables: Server, clock: MovableClock, name: str
) -> None:
    accounts, today = ministack_tables.accounts(clock), day_of(clock.now())
    key = await opened(accounts, name)
    item = calibration_key(name, today) | {"schema": {"N": str(SCHEMA + 1)}, "samples:estimate/m:40": {"S": "new"}}
    ministack_tables.client.put_item(TableName=ministack_tables.control, Item=item)
    await accounts.merge_calibration(name, today - 1, ONE)
    assert await read(accounts, key, name) == ONE


@pytest.mark.parametrize("lost", ["request", "answer"])
async def test_a_lost_update_is_made_again_and_counts_at_least_once(
    ministack_tables: Server, clock: MovableClock, name: str, lost: str
) -> None:
    where = "before" if lost == "request" else "after"
    client = FaultyClient(ministack_tables.client, **{where: timeout_at(1)})
    accounts = ministack_tables.accounts(clock, client)
    await accounts.merge_calibration(name, day_of(clock.now()), ONE)
    assert await accounts.calibration(name) == (ONE if lost == "request" else ONE + ONE)


# -- SQLite ------------------------------------------------------------------------------------------


async def test_a_file_of_the_version_before_gets_what_it_lacks(tmp_path: Path, clock: MovableClock, name: str) -> None:
    path = tmp_path / "old.db"
    first = SqliteDatabase(path)
    key = await opened(SqliteAccounts(first, clock=clock), name)
    first.close()
    with sqlite3.connect(path) as old:
        for table in ("calibration", "overlays", "claims", "generations", "messages", "branches", "chats", "library"):
            old.execute(f"DROP TABLE {table}")
        old.execute("DROP INDEX records_by_expiry")
        old.execute("PRAGMA user_version = 1")
    old.close()
    database = SqliteDatabase(path)
    accounts = SqliteAccounts(database, clock=clock)
    await accounts.merge_calibration(name, day_of(clock.now()), ONE)
    assert await read(accounts, key, name) == ONE
    database.close()


async def test_days_that_nobody_reads_any_more_go(database: SqliteDatabase, clock: MovableClock, name: str) -> None:
    accounts, today = SqliteAccounts(database, clock=clock), day_of(clock.now())
    for day in range(today, today + 4):
        await accounts.merge_calibration(name, day, ONE)
    query = "SELECT DISTINCT day FROM calibration ORDER BY day"
    rows = await database.read(lambda db: db.execute(query).fetchall())
    assert [row[0] for row in rows] == [today + 2, today + 3]


# -- accounts of the configuration file --------------------------------------------------------------


async def test_an_account_of_the_file_is_calibrated_through_the_store(clock: MovableClock, name: str) -> None:
    beyond, today = MemoryAccounts(clock), day_of(clock.now())
    key = key_of(name)
    access = Access(key, name, "pro", SettingsRecord())
    here, there = (ConfiguredAccounts({key.hash: access}, beyond, clock) for _ in range(2))
    assert await here.access(key.hash, name) == access
    await here.merge_calibration(name, today, ONE)
    await there.merge_calibration(name, today, OTHER)
    assert await here.access(key.hash, name) == replace(access, calibration=ONE)
    assert await there.access(key.hash, name) == replace(access, calibration=ONE + OTHER)
    assert await here.calibration(name) == ONE + OTHER


async def test_an_account_beyond_the_file_is_passed_through(clock: MovableClock, name: str) -> None:
    beyond = MemoryAccounts(clock)
    key = await opened(beyond, name)
    accounts = ConfiguredAccounts({}, beyond, clock)
    await accounts.merge_calibration(name, day_of(clock.now()), ONE)
    found = await accounts.access(key.hash, name)
    assert found is not None
    assert found.calibration == ONE


async def test_a_merge_that_is_kept_is_not_made_again_because_reading_back_failed(
    clock: MovableClock, name: str
) -> None:
    beyond, today = MemoryAccounts(clock), day_of(clock.now())
    key = key_of(name)
    accounts = ConfiguredAccounts({key.hash: Access(key, name, "pro", SettingsRecord())}, beyond, clock)
    beyond.failing.add("calibration")
    await accounts.merge_calibration(name, today, ONE)
    beyond.failing = {"merge_calibration"}
    with pytest.raises(StoreUnavailable):
        await accounts.merge_calibration(name, today, ONE)
    beyond.failing = set()
    assert await beyond.calibration(name) == ONE
