"""Generations of stored chats in SQLite: each verb is one transaction."""

from __future__ import annotations

import sqlite3

from bastion.stores.sqlite.conversation import append, living, load, message_at, packed, save, unpacked
from bastion.stores.sqlite.database import SqliteDatabase
from bastion.stores.sqlite.records import NO_END, commit_record, end_of, end_values, finish_record, prepare_record
from contextshift.audit import AuditStatus
from contextshift.chats import Begun, Claim, GenerationRecord, MessageRecord, Opened, Opening, Saving
from contextshift.errors import ChatNotFound
from contextshift.ports import AuditEnd, Clock, Commit, Random, Ticket

__all__ = ["SqliteGenerations"]

_EXPIRED_PER_SWEEP = 20
_BEGIN = "UPDATE lives SET seq = seq + 1, updated_at = :now WHERE epoch = :epoch RETURNING seq"
_CLAIM = """
INSERT OR REPLACE INTO claims (epoch, "key", gid, request, expires, created_at, updated_at)
VALUES (:epoch, :key, :gid, :request, :expires, :now, :now)
"""
_CLAIMED = 'SELECT gid, request FROM claims WHERE epoch = ? AND "key" = ? AND expires > ?'
_OPEN = """
INSERT INTO generations (epoch, gid, document, status, deadline, text, reasoning, message, cancelled,
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

    async def begin_generation(
        self, account: str, chat_id: str, branch: str, generation_id: str, *, now: float, key: str | None = None
    ) -> Begun:
        """Take the next place in a stored chat's order, and read it; see `ChatStore.begin_generation`."""

        def work(db: sqlite3.Connection) -> Begun:
            chat = living(db, account, chat_id)
            epoch = chat["epoch"]
            seq = db.execute(_BEGIN, {"epoch": epoch, "now": now}).fetchone()["seq"]
            ticket = Ticket(account, chat_id, epoch, seq, f"{seq}-{generation_id}")
            return Begun(ticket, load(db, chat, branch), _claimed(db, epoch, key, self._clock.now()))

        return await self._database.write(work)

    async def open_generation(self, ticket: Ticket, opening: Opening) -> Opened:
        """Open a generation, all or nothing; see `ChatStore.open_generation`."""
        own = self._own(ticket)
        now = self._clock.now()
        values = NO_END | _generation_values(opening.generation) | own | {"expires": opening.expires}
        claim = own | {"key": opening.key, "request": opening.request, "expires": opening.expires}

        def work(db: sqlite3.Connection) -> Opened:
            _check_lived(db, ticket)
            claimed = _claimed(db, ticket.epoch, opening.key, now)
            if claimed is not None:
                return Opened(Commit.SUPERSEDED, claimed=claimed)
            for statement in _EXPIRE:
                db.execute(statement, {"now": now})
            if opening.key is not None:
                db.execute(_CLAIM, claim)
            db.execute(_OPEN, values)
            prepare_record(db, ticket, opening.audit, opening.parts, opening.audit_expires, now)
            said = () if opening.said is None else append(db, ticket.epoch, opening.branch.id, [opening.said], now)
            return Opened(commit_record(db, ticket, now), said[0] if said else None)

        return await self._database.write(work)

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


def _claimed(db: sqlite3.Connection, epoch: str, key: str | None, now: float) -> Claim | None:
    row = db.execute(_CLAIMED, (epoch, key, now)).fetchone()
    return None if row is None else Claim(row["gid"], row["request"])


def _check_lived(db: sqlite3.Connection, ticket: Ticket) -> None:
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
