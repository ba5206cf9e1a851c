"""Many writers and readers of one chat: the newest wins, nothing is mixed, no reader goes back."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bastion.stores.sqlite import SqliteAuditStore, SqliteDatabase
from contextshift.errors import StoreUnavailable
from contextshift.ports import AuditStore, Commit
from gateway.stores import sqlite_writer
from gateway.stores.conftest import Server
from gateway.stores.life import (
    ACCOUNT,
    Kept,
    MovableClock,
    SystemRandom,
    begin,
    completed,
    failed,
    fresh_chat,
    owner,
    prepare,
)

pytestmark = pytest.mark.anyio

WRITERS = 12
READERS = 3
ROOT = Path(__file__).parents[3]


async def _generation(
    store: AuditStore, chat: str, order: random.Random, begun: set[str] | None = None
) -> tuple[int, Commit]:
    """Live one generation, its steps spread so that begins and commits of others come in between."""
    ticket = await begin(store, chat)
    if begun is not None:
        begun.add(ticket.generation_id)
    await asyncio.sleep(order.random() * 0.02)
    await prepare(store, ticket)
    await asyncio.sleep(order.random() * 0.02)
    outcome = await store.commit(ticket)
    if outcome is Commit.COMMITTED and order.random() < 0.8:
        await store.sweep(ticket)
    await store.finish(ticket, completed() if order.random() < 0.5 else failed())
    return ticket.seq, outcome


async def _writer(store: AuditStore, chat: str, generations: int, seed: int) -> list[tuple[int, Commit]]:
    order = random.Random(seed)
    return [await _generation(store, chat, order) for _ in range(generations)]


async def _reader(store: AuditStore, chat: str, done: asyncio.Event) -> int:
    """Read until told to stop; every audit whole, none older than the one before."""
    reads, last, ended = 0, 0, False
    while not done.is_set():
        audit = await store.read(ACCOUNT, chat)
        if audit is not None:
            seq, _ = owner(audit)
            assert seq >= last
            assert not (seq == last and ended and audit.record.end is None), "an ended audit is prepared again"
            last, ended, reads = seq, audit.record.end is not None, reads + 1
        await asyncio.sleep(0)
    return reads


async def _race(writers: Sequence[AuditStore], readers: Sequence[AuditStore], generations: int) -> tuple[str, int]:
    chat, done = fresh_chat(), asyncio.Event()
    reading = [asyncio.create_task(_reader(store, chat, done)) for store in readers]
    lives = [_writer(store, chat, generations, seed) for seed, store in enumerate(writers)]
    outcomes = [outcome for life in await asyncio.gather(*lives) for outcome in life]
    done.set()
    assert sum(await asyncio.gather(*reading)) > 0
    newest = max(seq for seq, outcome in outcomes if outcome is Commit.COMMITTED)
    assert newest == len(outcomes) == len({seq for seq, _ in outcomes})
    assert owner(await readers[0].read(ACCOUNT, chat)) == (newest, 1)
    return chat, newest


async def test_many_writers_and_readers_over_dynamodb(ministack_tables: Server, clock: MovableClock) -> None:
    stores = [ministack_tables.audits(clock) for _ in range(WRITERS)]
    chat, _ = await _race(stores, stores[:READERS], generations=30)
    last = await begin(stores[0], chat)
    await prepare(stores[0], last)
    assert await stores[0].commit(last) is Commit.COMMITTED
    await stores[0].sweep(last)
    assert await ministack_tables.places(last) == {last.seq}


async def test_many_writers_and_readers_over_the_second_opinion(dynalite_tables: Server, clock: MovableClock) -> None:
    stores = [dynalite_tables.audits(clock) for _ in range(WRITERS)]
    await _race(stores, stores[:READERS], generations=10)


@pytest.mark.parametrize("kept", ["memory"], indirect=True)
async def test_many_writers_and_readers_in_memory(kept: Kept) -> None:
    await _race([kept.store] * WRITERS, [kept.store], generations=30)


async def test_many_connections_over_sqlite(tmp_path: Path, clock: MovableClock) -> None:
    databases = [SqliteDatabase(tmp_path / "race.db") for _ in range(6)]
    try:
        stores = [SqliteAuditStore(database, clock=clock, random=SystemRandom()) for database in databases]
        await _race(stores[:4], stores[4:], generations=30)
    finally:
        for database in databases:
            database.close()


async def _deletions(stores: Sequence[AuditStore], chat: str) -> set[Commit]:
    """Delete a chat again and again while it is written; return what became of the writers' commits."""
    begun: set[str] = set()
    done = asyncio.Event()

    async def deleter(store: AuditStore) -> None:
        for _ in range(12):
            await asyncio.sleep(0.05)
            await begin(store, chat)
            before = set(begun)
            assert await store.delete(ACCOUNT, chat)
            for _ in range(3):  # what had begun by then is gone, whatever its writers still do
                audit = await store.read(ACCOUNT, chat)
                assert audit is None or audit.record.generation_id not in before

    async def reader(store: AuditStore) -> None:
        while not done.is_set():
            audit = await store.read(ACCOUNT, chat)
            if audit is not None:
                owner(audit)

    async def writer(store: AuditStore, seed: int) -> set[Commit]:
        order = random.Random(seed)
        return {(await _generation(store, chat, order, begun))[1] for _ in range(15)}

    reading = asyncio.create_task(reader(stores[0]))
    writing = [writer(store, seed) for seed, store in enumerate(stores)]
    outcomes = await asyncio.gather(*writing, deleter(stores[-1]))
    done.set()
    await reading
    return set().union(*(outcome for outcome in outcomes if outcome is not None))


async def test_deletions_among_writers_leave_nothing_of_the_past(ministack_tables: Server, clock: MovableClock) -> None:
    store, chat = ministack_tables.audits(clock), fresh_chat()
    assert {Commit.COMMITTED, Commit.DELETED} <= await _deletions([store] * 6, chat)
    last = await begin(store, chat)
    await store.delete(ACCOUNT, chat)
    assert await store.read(ACCOUNT, chat) is None
    assert await ministack_tables.places(last) == set()


async def test_deletions_among_connections_leave_nothing_in_the_sqlite_file(
    tmp_path: Path, clock: MovableClock
) -> None:
    databases = [SqliteDatabase(tmp_path / "race.db") for _ in range(4)]
    try:
        stores = [SqliteAuditStore(database, clock=clock, random=SystemRandom()) for database in databases]
        chat = fresh_chat()
        assert {Commit.COMMITTED, Commit.DELETED} <= await _deletions(stores, chat)
        await stores[0].delete(ACCOUNT, chat)
        assert [await _count(databases[0], table) for table in ("lives", "records", "parts")] == [0, 0, 0]
    finally:
        for database in databases:
            database.close()


# -- SQLite: several processes, and one that is killed ------------------------------------------------


def _start(path: Path, chat: str, generations: int) -> subprocess.Popen[str]:
    paths = os.pathsep.join(str(ROOT / part) for part in ("layers/core", "functions", "tests"))
    command = [sys.executable, sqlite_writer.__file__, str(path), chat, str(generations)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths})


async def test_several_processes_share_one_sqlite_file(tmp_path: Path, clock: MovableClock) -> None:
    path, chat, done = tmp_path / "shared.db", fresh_chat(), asyncio.Event()
    database = SqliteDatabase(path)
    store = SqliteAuditStore(database, clock=clock, random=SystemRandom())
    try:
        reading = asyncio.create_task(_reader(store, chat, done))
        processes = [_start(path, chat, 100) for _ in range(3)]
        said = [(await asyncio.to_thread(process.communicate))[0] for process in processes]
        done.set()
        assert await reading > 0
        assert [process.returncode for process in processes] == [0, 0, 0]
        places = [int(line.split()[0]) for output in said for line in output.splitlines()]
        assert sorted(places) == list(range(1, 301))
        assert owner(await store.read(ACCOUNT, chat)) == (300, 1)
    finally:
        database.close()


async def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path: Path, clock: MovableClock) -> None:
    path, chat = tmp_path / "killed.db", fresh_chat()
    for _ in range(4):
        with _start(path, chat, 100_000) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(20)]
            time.sleep(random.random() * 0.02)
            process.send_signal(signal.SIGKILL)
            lines += [line for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        acknowledged = max(int(line.split()[0]) for line in lines if line.split()[1] == "committed")
        database = SqliteDatabase(path)
        try:
            store = SqliteAuditStore(database, clock=clock, random=SystemRandom())
            assert owner(await store.read(ACCOUNT, chat))[0] >= acknowledged
            integrity = await database.read(lambda db: db.execute("PRAGMA integrity_check").fetchone()[0])
            assert integrity == "ok"
        finally:
            database.close()


async def test_a_new_file_is_opened_while_another_process_is_making_it(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")  # not WAL yet: SQLite refuses the switch at once, whatever the timeout
    database = SqliteDatabase(path)
    try:
        opening = asyncio.create_task(database.read(lambda db: db.execute("PRAGMA journal_mode").fetchone()[0]))
        await asyncio.sleep(0.1)
        assert not opening.done()
        other.execute("COMMIT")
        assert await opening == "wal"
    finally:
        database.close()
        other.close()


async def test_a_file_of_a_later_version_is_refused(tmp_path: Path, clock: MovableClock) -> None:
    database = SqliteDatabase(tmp_path / "later.db")
    store = SqliteAuditStore(database, clock=clock, random=SystemRandom())
    assert await store.read(ACCOUNT, "c") is None

    await database.write(lambda db: db.execute("PRAGMA user_version = 99"))
    database.close()
    later = SqliteDatabase(tmp_path / "later.db")
    with pytest.raises(StoreUnavailable):
        await SqliteAuditStore(later, clock=clock, random=SystemRandom()).read(ACCOUNT, "c")
    later.close()
    later.close()


async def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path, clock: MovableClock) -> None:
    path = tmp_path / "text.db"
    path.write_text("this is not a database, however long it may be " * 100)
    database = SqliteDatabase(path)
    with pytest.raises(StoreUnavailable):
        await SqliteAuditStore(database, clock=clock, random=SystemRandom()).read(ACCOUNT, "c")
    database.close()


async def test_what_expired_leaves_the_sqlite_file(database: SqliteDatabase, clock: MovableClock) -> None:
    store = SqliteAuditStore(database, clock=clock, random=SystemRandom())
    soon = int(clock.now()) + 5
    old = await begin(store, "old", expires=soon)
    await prepare(store, old, expires=soon)
    await store.commit(old)
    clock.time += 10
    new = await begin(store, "new")
    await store.sweep(new)
    counts = [await _count(database, table) for table in ("lives", "records", "parts")]
    assert counts == [1, 0, 0]


async def test_only_its_owner_reads_a_new_sqlite_file(database: SqliteDatabase, tmp_path: Path) -> None:
    await database.read(lambda db: None)
    (folder,) = tmp_path.iterdir()
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


async def _count(database: SqliteDatabase, table: str) -> int:
    count: int = await database.read(lambda db: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    return count
