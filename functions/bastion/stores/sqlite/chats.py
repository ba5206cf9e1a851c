"""Stored chats in SQLite: each verb is one transaction, over the lives that audits have.

A deletion (`SqliteAuditStore.delete`) takes the life, and with it all that hangs on it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from bastion.stores.sqlite.conversation import (
    append,
    branch_of,
    branch_record,
    chat_of,
    edit,
    living,
    load,
    message_at,
    packed,
    read,
)
from bastion.stores.sqlite.generations import SqliteGenerations
from contextshift.chats import (
    MAIN,
    BranchRecord,
    ChatRecord,
    Document,
    LoadedChat,
    MessageRecord,
    Page,
    place_of,
)
from contextshift.errors import InvalidInput
from contextshift.paths import stretches_after

__all__ = ["SqliteChats"]

_EPOCH_BYTES = 10
_EXPIRE = "DELETE FROM lives WHERE account = :account AND chat = :chat AND expires <= :now"
_LIFE = """
INSERT INTO lives (account, chat, epoch, seq, kind, created_at, updated_at)
VALUES (:account, :chat, :epoch, 0, 'chat', :now, :now) ON CONFLICT DO NOTHING
"""
_CREATE = """
INSERT INTO chats (epoch, account, chat, user_id, document, version, created_at, updated_at)
VALUES (:epoch, :account, :chat, :user_id, :document, 1, :now, :now) RETURNING *
"""
_CHANGE = """
UPDATE chats SET document = ?, version = version + 1, updated_at = ? WHERE epoch = ? AND version = ? RETURNING *
"""
_FORK = """
INSERT INTO branches (epoch, id, lineage, name, last, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_LIST = """
SELECT * FROM chats WHERE account = :account AND born < :before ORDER BY born DESC LIMIT :most
"""
_LIST_OF_USER = """
SELECT * FROM chats WHERE account = :account AND user_id = :user_id AND born < :before ORDER BY born DESC LIMIT :most
"""
_NO_CHAT_BORN_YET = 2**62


class SqliteChats(SqliteGenerations):
    """A `ChatStore` in a SQLite file. Every method raises StoreUnavailable."""

    async def create(self, account: str, chat: ChatRecord, messages: Sequence[Document] = ()) -> ChatRecord | None:
        """Create a chat with its first messages; see `ChatStore.create`."""
        now, epoch = self._clock.now(), self._random.token(_EPOCH_BYTES).hex()
        values = {"account": account, "chat": chat.id, "user_id": chat.user_id, "epoch": epoch, "now": now}

        def work(db: sqlite3.Connection) -> ChatRecord | None:
            db.execute(_EXPIRE, values)
            if db.execute(_LIFE, values).rowcount == 0:
                return None
            row = db.execute(_CREATE, values | {"document": packed(chat.document)}).fetchone()
            _fork(db, epoch, BranchRecord(MAIN), now)
            append(db, epoch, MAIN, messages, now)
            return chat_of(row)

        return await self._database.write(work)

    async def chat(self, account: str, chat_id: str) -> ChatRecord:
        """Return a chat's document; see `ChatStore.chat`."""
        return await self._database.read(lambda db: chat_of(living(db, account, chat_id)))

    async def change(self, account: str, chat_id: str, document: Document, expected: int) -> ChatRecord | None:
        """Replace a chat's document; see `ChatStore.change`."""
        now = self._clock.now()

        def work(db: sqlite3.Connection) -> ChatRecord | None:
            epoch = living(db, account, chat_id)["epoch"]
            row = db.execute(_CHANGE, (packed(document), now, epoch, expected)).fetchone()
            return None if row is None else chat_of(row)

        return await self._database.write(work)

    async def chats(self, account: str, user_id: str | None, limit: int, cursor: str | None) -> Page[ChatRecord]:
        """List chats, the newest first; see `ChatStore.chats`."""
        values = {"account": account, "user_id": user_id, "before": _born(cursor), "most": limit + 1}
        query = _LIST if user_id is None else _LIST_OF_USER
        rows = await self._database.read(lambda db: db.execute(query, values).fetchall())
        more = str(rows[limit - 1]["born"]) if len(rows) > limit else None
        return Page([chat_of(row) for row in rows[:limit]], more)

    async def fork(self, account: str, chat_id: str, branch: BranchRecord) -> bool:
        """Add a branch; see `ChatStore.fork`."""
        now = self._clock.now()
        return await self._database.write(
            lambda db: _fork(db, living(db, account, chat_id)["epoch"], branch, now),
        )

    async def branches(self, account: str, chat_id: str) -> Sequence[BranchRecord]:
        """Return all branches; see `ChatStore.branches`."""

        def work(db: sqlite3.Connection) -> list[BranchRecord]:
            epoch = living(db, account, chat_id)["epoch"]
            rows = db.execute("SELECT * FROM branches WHERE epoch = ? ORDER BY made", (epoch,))
            return [branch_record(row) for row in rows]

        return await self._database.read(work)

    async def append(
        self, account: str, chat_id: str, branch: str, documents: Sequence[Document]
    ) -> Sequence[MessageRecord] | None:
        """Add messages at a branch's end; see `ChatStore.append`."""
        now = self._clock.now()
        return await self._database.write(
            lambda db: append(db, living(db, account, chat_id)["epoch"], branch, documents, now)
        )

    async def messages(
        self, account: str, chat_id: str, branch: str, limit: int, cursor: str | None, *, newest_first: bool
    ) -> Page[MessageRecord] | None:
        """Return some messages of a branch's path; see `ChatStore.messages`."""

        def work(db: sqlite3.Connection) -> Page[MessageRecord] | None:
            epoch = living(db, account, chat_id)["epoch"]
            known = branch_of(db, epoch, branch)
            if known is None:
                return None
            left = stretches_after(known, cursor, newest_first=newest_first)
            found = read(db, epoch, left, most=limit + 1, newest_first=newest_first)
            return Page(found[:limit], found[limit - 1].id if len(found) > limit else None)

        return await self._database.read(work)

    async def message(self, account: str, chat_id: str, message: str) -> MessageRecord | None:
        """Return one message; see `ChatStore.message`."""
        return await self._database.read(lambda db: message_at(db, living(db, account, chat_id)["epoch"], message))

    async def edit(
        self, account: str, chat_id: str, message: str, document: Document, expected: int
    ) -> MessageRecord | None:
        """Replace a message's document; see `ChatStore.edit`."""
        place, now = place_of(message), self._clock.now()

        def work(db: sqlite3.Connection) -> MessageRecord | None:
            epoch = living(db, account, chat_id)["epoch"]
            return None if place is None else edit(db, epoch, place, document, expected, now)

        edited = await self._database.write(work)
        await self._database.settle()
        return edited

    async def remove(self, account: str, chat_id: str, message: str) -> bool:
        """Remove a message; see `ChatStore.remove`."""
        place = place_of(message)

        def work(db: sqlite3.Connection) -> bool:
            epoch = living(db, account, chat_id)["epoch"]
            query = "DELETE FROM messages WHERE epoch = ? AND branch = ? AND n = ?"
            return place is not None and db.execute(query, (epoch, *place)).rowcount == 1

        removed = await self._database.write(work)
        await self._database.settle()
        return removed

    async def load(self, account: str, chat_id: str, branch: str) -> LoadedChat | None:
        """Return what a generation reads, as one snapshot; see `ChatStore.load`."""
        return await self._database.read(lambda db: load(db, living(db, account, chat_id), branch))


def _fork(db: sqlite3.Connection, epoch: str, branch: BranchRecord, now: float) -> bool:
    values: tuple[Any, ...] = (epoch, branch.id, json.dumps(branch.lineage), branch.name, branch.first - 1, now, now)
    return db.execute(_FORK, values).rowcount == 1


def _born(cursor: str | None) -> int:
    """Return before which birth a page begins."""
    if cursor is None:
        return _NO_CHAT_BORN_YET
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise InvalidInput("no cursor of this list", "cursor", "invalid_cursor")
    return int(cursor)
