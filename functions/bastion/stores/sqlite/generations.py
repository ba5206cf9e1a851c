"""Generations of stored chats in SQLite: each verb is one transaction."""

from __future__ import annotations

import sqlite3

from bastion.stores.sqlite.conversation import living, message_at, packed, save, unpacked
from bastion.stores.sqlite.database import SqliteDatabase
from bastion.stores.sqlite.endings import NO_END, end_of, end_values, finish_record
from contextshift.audit import AuditStatus
from contextshift.chats import GenerationRecord, MessageRecord, Saving
from contextshift.errors import ChatNotFound
from contextshift.ports import AuditEnd, Clock, Random, Ticket

__all__ = ["SqliteGenerations"]

_EXPIRED_PER_SWEEP = 20
_BEGIN = "UPDATE lives SET seq = seq + 1, updated_at = :now WHERE epoch = :epoch RETURNING seq"
_CLAIM = """
INSERT INTO claims (epoch, "key", gid, request, expires, created_at, updated_at)
VALUES (:epoch, :key, :gid, :request, :expires, :now, :now)
ON CONFLICT (epoch, "key") DO UPDATE SET gid = :gid, request = :request, expires = :expires, updated_at = :now
WHERE expires <= :now
"""
_CLAIMED = 'SELECT gid, request FROM claims WHERE epoch = :epoch AND "key" = :key'
_OPEN = """
INSERT OR REPLACE INTO generations (epoch, gid, document, status, deadline, text, reasoning, message, cancelled,
    finished_at, "usage", error, actual_usd, diagnostics, expires, created_at, updated_at)
VALUES (:epoch, :gid, :document, :status, :deadline, :text, :reasoning, :message, 0,
    :finished_at, :usage, :error, :actual_usd, :diagnostics, :expires, :created_at, :now)
"""
_PROGRESS = """
UPDATE generations SET text = ?, reasoning = ?, updated_at = ? WHERE epoch = ? AND gid = ? RETURNING cancelled
"""
_END = """
UPDATE generations SET status = :status, message = :message, finished_at = :finished_at, "usage" = :usage,
    error = :error, actual_usd = :actual_usd, diagnostics = :diagnostics, updated_at = :now
WHERE epoch = :epoch AND gid = :gid
"""
_GENERATION = "SELECT * FROM generations WHERE epoch = ? AND gid = ? AND expires > ?"
_CANCEL = "UPDATE generations SET cancelled = 1 WHERE epoch = ? AND gid = ? AND status = 'prepared'"
# SQLite has no expiry of its own: each new generation takes a few whose time is over, in any chat.
_EXPIRE = (
    f"DELETE FROM generations WHERE rowid IN "
    f"(SELECT rowid FROM generations WHERE expires <= :now LIMIT {_EXPIRED_PER_SWEEP})",
    f'DELETE FROM claims WHERE (epoch, "key") IN '
    f'(SELECT epoch, "key" FROM claims WHERE expires <= :now LIMIT {_EXPIRED_PER_SWEEP})',
)


class SqliteGenerations:
    """The generations' part of `SqliteChats`."""

    def __init__(self, database: SqliteDatabase, *, clock: Clock, random: Random) -> None:
        self._database = database
        self._clock = clock
        self._random = random

    async def begin_generation(self, account: str, chat_id: str, generation_id: str, *, now: float) -> Ticket:
        """Take the next place in a stored chat's order; see `ChatStore.begin_generation`."""

        def work(db: sqlite3.Connection) -> Ticket:
            epoch = living(db, account, chat_id)["epoch"]
            seq = db.execute(_BEGIN, {"epoch": epoch, "now": now}).fetchone()["seq"]
            return Ticket(account, chat_id, epoch, seq, f"{seq}-{generation_id}")

        return await self._database.write(work)

    async def claim(self, ticket: Ticket, key: str, request: str, expires: int) -> tuple[str, str] | None:
        """Bind an idempotency key; see `ChatStore.claim`. A binding whose time is over is none."""
        values = {"key": key, "request": request, "expires": expires} | self._own(ticket)

        def work(db: sqlite3.Connection) -> tuple[str, str] | None:
            _lived(db, ticket)
            db.execute(_CLAIM, values)
            gid, request = db.execute(_CLAIMED, values).fetchone()
            return None if gid == ticket.generation_id else (gid, request)

        return await self._database.write(work)

    async def open_generation(self, ticket: Ticket, generation: GenerationRecord, expires: int) -> None:
        """Make a generation known; see `ChatStore.open_generation`."""
        ended = NO_END if generation.end is None else end_values(generation.end)
        values = ended | _generation_values(generation) | self._own(ticket) | {"expires": expires}

        def work(db: sqlite3.Connection) -> None:
            _lived(db, ticket)
            for statement in _EXPIRE:
                db.execute(statement, {"now": values["now"]})
            db.execute(_OPEN, values | {"gid": generation.id})

        await self._database.write(work)

    async def progress(self, ticket: Ticket, text: str, reasoning: str) -> bool:
        """Keep the text so far; see `ChatStore.progress`."""
        values = (text, reasoning, self._clock.now(), ticket.epoch, ticket.generation_id)
        row = await self._database.write(lambda db: db.execute(_PROGRESS, values).fetchone())
        return row is None or bool(row["cancelled"])

    async def end_generation(self, ticket: Ticket, end: AuditEnd, saving: Saving | None) -> MessageRecord | None:
        """End audit and generation and save the message; see `ChatStore.end_generation`."""
        own = self._own(ticket)
        now = self._clock.now()

        def work(db: sqlite3.Connection) -> MessageRecord | None:
            query = "SELECT status, message FROM generations WHERE epoch = :epoch AND gid = :gid"
            row = db.execute(query, own).fetchone()
            if row is None:
                return None
            if AuditStatus(row["status"]).terminal:
                return None if row["message"] is None else message_at(db, ticket.epoch, row["message"])
            saved = None if saving is None else save(db, ticket.epoch, saving, now)
            db.execute(_END, own | end_values(end) | {"message": None if saved is None else saved.id})
            finish_record(db, ticket, end, now)
            return saved

        return await self._database.write(work)

    async def generation(self, account: str, chat_id: str, generation_id: str) -> GenerationRecord | None:
        """Return a generation; see `ChatStore.generation`."""
        now = self._clock.now()

        def work(db: sqlite3.Connection) -> GenerationRecord | None:
            epoch = living(db, account, chat_id)["epoch"]
            row = db.execute(_GENERATION, (epoch, generation_id, now)).fetchone()
            return None if row is None else _generation_of(row)

        return await self._database.read(work)

    async def cancel(self, account: str, chat_id: str, generation_id: str) -> bool:
        """Ask for a generation to be cancelled; see `ChatStore.cancel`."""
        now = self._clock.now()

        def work(db: sqlite3.Connection) -> bool:
            epoch = living(db, account, chat_id)["epoch"]
            db.execute(_CANCEL, (epoch, generation_id))
            return db.execute(_GENERATION, (epoch, generation_id, now)).fetchone() is not None

        return await self._database.write(work)

    def _own(self, ticket: Ticket) -> dict[str, object]:
        return {"epoch": ticket.epoch, "gid": ticket.generation_id, "now": self._clock.now()}


def _lived(db: sqlite3.Connection, ticket: Ticket) -> None:
    if db.execute("SELECT 1 FROM chats WHERE epoch = ?", (ticket.epoch,)).fetchone() is None:
        raise ChatNotFound("no such chat")


def _generation_values(generation: GenerationRecord) -> dict[str, object]:
    return {
        "document": packed(generation.document),
        "status": generation.status.value,
        "deadline": generation.deadline,
        "text": generation.text,
        "reasoning": generation.reasoning,
        "message": generation.message,
        "created_at": generation.created_at,
    }


def _generation_of(row: sqlite3.Row) -> GenerationRecord:
    return GenerationRecord(
        id=row["gid"],
        document=unpacked(row["document"]),
        status=AuditStatus(row["status"]),
        created_at=row["created_at"],
        deadline=row["deadline"],
        text=row["text"],
        reasoning=row["reasoning"],
        message=row["message"],
        end=end_of(row),
    )
