"""The life of an audit in SQLite: each verb is one transaction, so nothing half-done is ever seen.

That makes it simpler than over DynamoDB. A deletion takes the whole life with it at once; a call begun
before finds no life of its epoch any more and writes nothing, so there is nothing to purge later.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from bastion.stores.sqlite.database import SqliteDatabase
from bastion.stores.sqlite.records import commit_record, end_of, finish_record, place_of_record, prepare_record
from contextshift.audit import AuditStatus
from contextshift.errors import StoreUnavailable
from contextshift.ports import AuditEnd, AuditRecord, Clock, Commit, Random, StoredAudit, Ticket

__all__ = ["SqliteAuditStore"]

_EPOCH_BYTES = 10
_EXPIRED_PER_SWEEP = 20

# A stored chat stays until it is deleted, whatever a call of the proxy in it says.
_BEGIN = """
INSERT INTO lives (account, chat, epoch, seq, kind, expires, created_at, updated_at)
VALUES (:account, :chat, :fresh, 1, 'proxy', :expires, :now, :now)
ON CONFLICT (account, chat) DO UPDATE SET seq = seq + 1, updated_at = :now,
    expires = CASE kind WHEN 'chat' THEN NULL ELSE :expires END
RETURNING epoch, seq
"""
_READ = """
SELECT records.* FROM lives JOIN records ON records.epoch = lives.epoch AND records.seq = lives.cur
WHERE account = :account AND chat = :chat
    AND (lives.expires IS NULL OR lives.expires > :now) AND (records.expires IS NULL OR records.expires > :now)
"""
_SWEEP = """
DELETE FROM records WHERE epoch = :epoch AND seq < (SELECT cur FROM lives WHERE epoch = :epoch)
"""
_LIVES = "SELECT 1 FROM lives WHERE account = :account AND chat = :chat AND (expires IS NULL OR expires > :now)"
# SQLite has no expiry of its own: each sweep takes a few chats, and audits of chats that stay, whose time is over.
_EXPIRE = (
    f"DELETE FROM lives WHERE epoch IN (SELECT epoch FROM lives WHERE expires <= :now LIMIT {_EXPIRED_PER_SWEEP})",
    f"DELETE FROM records WHERE (epoch, seq) IN "
    f"(SELECT epoch, seq FROM records WHERE expires <= :now LIMIT {_EXPIRED_PER_SWEEP})",
)


class SqliteAuditStore:
    """An `AuditStore` in a SQLite file. Every method raises StoreUnavailable."""

    def __init__(self, database: SqliteDatabase, *, clock: Clock, random: Random) -> None:
        self._database = database
        self._clock = clock
        self._random = random

    async def begin(self, account: str, chat_id: str, generation_id: str, *, now: float, expires: int | None) -> Ticket:
        """Take the next place in the chat's order; see `AuditWriter.begin`."""
        fresh = self._random.token(_EPOCH_BYTES).hex()
        values = {"account": account, "chat": chat_id, "fresh": fresh, "expires": expires, "now": now}
        life = await self._database.write(lambda db: db.execute(_BEGIN, values).fetchone())
        return Ticket(account, chat_id, life["epoch"], life["seq"], f"{life['seq']}-{generation_id}")

    async def prepare(
        self, ticket: Ticket, record: AuditRecord, parts: Sequence[bytes], *, expires: int | None
    ) -> None:
        """Write parts and record under the generation's own place; see `AuditWriter.prepare`."""
        now = self._clock.now()
        await self._database.write(lambda db: prepare_record(db, ticket, record, parts, expires, now))

    async def commit(self, ticket: Ticket) -> Commit:
        """Make the prepared audit the newest; see `AuditWriter.commit`. A loser's parts go at once."""
        now = self._clock.now()
        return await self._database.write(lambda db: commit_record(db, ticket, now))

    async def finish(self, ticket: Ticket, end: AuditEnd) -> bool:
        """End a prepared audit once; see `AuditWriter.finish`. The same end counts whenever it came."""
        now = self._clock.now()

        def work(db: sqlite3.Connection) -> bool:
            if finish_record(db, ticket, end, now):
                return True
            query = "SELECT * FROM records WHERE epoch = :epoch AND seq = :seq AND gid = :gid"
            stored = db.execute(query, place_of_record(ticket) | {"gid": ticket.generation_id}).fetchone()
            ended = None if stored is None else end_of(stored)
            return ended is not None and replace(ended, finished_at=end.finished_at) == end

        return await self._database.write(work)

    async def sweep(self, ticket: Ticket) -> None:
        """Remove what the chat's newest audit replaced, and some of what has expired anywhere."""
        values = {"epoch": ticket.epoch, "now": self._clock.now()}

        def work(db: sqlite3.Connection) -> None:
            db.execute(_SWEEP, values)
            for statement in _EXPIRE:
                db.execute(statement, values)

        await self._database.write(work)

    async def read(self, account: str, chat_id: str) -> StoredAudit | None:
        """Return the newest committed audit, None where there is none; see `AuditReader.read`."""
        values = {"account": account, "chat": chat_id, "now": self._clock.now()}

        def work(db: sqlite3.Connection) -> StoredAudit | None:
            record = db.execute(_READ, values).fetchone()
            return None if record is None else StoredAudit(_record_of(record), _document(db, record))

        return await self._database.read(work)

    async def delete(self, account: str, chat_id: str) -> bool:
        """End the chat's life with all it owned; False where there was none, or only an expired one."""
        values = {"account": account, "chat": chat_id, "now": self._clock.now()}

        def work(db: sqlite3.Connection) -> bool:
            lived = db.execute(_LIVES, values).fetchone() is not None
            db.execute("DELETE FROM lives WHERE account = :account AND chat = :chat", values)
            return lived

        lived = await self._database.write(work)
        await self._database.settle()
        return lived


def _document(db: sqlite3.Connection, record: sqlite3.Row) -> bytes:
    query = "SELECT data FROM parts WHERE epoch = ? AND seq = ? ORDER BY i"
    document = b"".join(row["data"] for row in db.execute(query, (record["epoch"], record["seq"])))
    if hashlib.sha256(document).hexdigest() != record["sha"]:
        raise StoreUnavailable("the audit is damaged")
    return document


def _record_of(row: sqlite3.Row) -> AuditRecord:
    return AuditRecord(
        generation_id=row["gid"],
        status=AuditStatus(row["status"]),
        created_at=row["created_at"],
        deadline=row["deadline"],
        parts=row["parts"],
        sha=row["sha"],
        attempt=row["attempt"],
        end=end_of(row),
    )
