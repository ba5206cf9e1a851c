"""What the SQLite file keeps, and for how long: nothing that was deleted, nothing that has expired."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from bastion.stores.sqlite import SqliteDatabase, SqliteLibrary
from contextshift.chats import LibraryRecord
from contextshift.errors import StoreUnavailable
from gateway.stores.conftest import sqlite_talk
from gateway.stores.life import ACCOUNT, MovableClock
from gateway.stores.talk import CHAT, SOON, Talk, says

pytestmark = pytest.mark.anyio

SECRET = "the secret that was said"


@pytest.fixture
def kept(tmp_path: Path, clock: MovableClock) -> Iterator[tuple[Talk, SqliteDatabase, Path]]:
    database, talk = sqlite_talk(tmp_path / "chats.db", clock)
    yield talk, database, tmp_path
    database.close()


def _in_files(folder: Path) -> bool:
    return any(SECRET.encode() in path.read_bytes() for path in folder.iterdir())


async def test_a_message_that_was_removed_or_edited_is_in_no_file(kept: tuple[Talk, SqliteDatabase, Path]) -> None:
    talk, _, folder = kept
    await talk.created(CHAT, SECRET, SECRET)
    assert _in_files(folder)
    assert await talk.chats.remove(ACCOUNT, CHAT, "main.1")
    assert await talk.chats.edit(ACCOUNT, CHAT, "main.2", says("new"), 1)
    assert not _in_files(folder)


async def test_something_of_the_library_that_was_removed_is_in_no_file(
    kept: tuple[Talk, SqliteDatabase, Path], clock: MovableClock
) -> None:
    _, database, folder = kept
    library = SqliteLibrary(database, clock=clock)
    await library.put(ACCOUNT, "memory", LibraryRecord("m", {"text": SECRET}), 0)
    assert await library.remove(ACCOUNT, "memory", "m")
    assert not _in_files(folder)


async def test_an_audit_that_expired_goes_though_its_chat_stays(kept: tuple[Talk, SqliteDatabase, Path]) -> None:
    talk, database, _ = kept
    await talk.created()
    await talk.created("other")
    await talk.begun(audit_expires=int(talk.clock.now()) + SOON)
    talk.clock.time += SOON + 1
    assert await talk.audits.read(ACCOUNT, CHAT) is None
    await talk.audits.sweep(await talk.begun("other"))
    counts = [
        await database.read(lambda db, table=table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        for table in ("records", "parts", "chats")
    ]
    assert counts == [1, 3, 2]
    assert await talk.begun()


async def test_a_deletion_waits_for_nobody_who_reads(kept: tuple[Talk, SqliteDatabase, Path]) -> None:
    talk, _, folder = kept
    await talk.created(CHAT, SECRET)
    reader = sqlite3.connect(folder / "chats.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM messages").fetchone()
    try:
        async with asyncio.timeout(2):  # a checkpoint that waited for the reader would take five
            assert await talk.audits.delete(ACCOUNT, CHAT)
    finally:
        reader.close()
    await talk.created("other", "x")
    assert await talk.audits.delete(ACCOUNT, "other")
    assert not _in_files(folder)


async def test_an_error_names_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for path in (tmp_path / "file" / "x.db", tmp_path):
        database = SqliteDatabase(path)
        with pytest.raises(StoreUnavailable) as refused:
            await database.read(lambda db: None)
        assert str(tmp_path) not in str(refused.value)
        assert "file" not in str(refused.value)
        database.close()
