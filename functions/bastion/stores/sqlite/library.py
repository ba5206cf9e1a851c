"""An account's characters, personas, lorebooks and memories in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from bastion.stores.sqlite.conversation import packed, unpacked
from bastion.stores.sqlite.database import SqliteDatabase
from contextshift.chats import LibraryKind, LibraryRecord, Page
from contextshift.errors import InvalidInput
from contextshift.ports import Clock

__all__ = ["SqliteLibrary"]

_PUT = """
INSERT INTO library (account, kind, id, document, "index", version, created_at, updated_at)
VALUES (:account, :kind, :id, :document, :index, 1, :now, :now)
ON CONFLICT (account, kind, id) DO UPDATE SET document = :document, "index" = :index, version = version + 1,
    updated_at = :now
RETURNING *
"""
_GET = "SELECT * FROM library WHERE account = ? AND kind = ? AND id = ?"
_LIST = "SELECT * FROM library WHERE account = ? AND kind = ? AND id > ? ORDER BY id LIMIT ?"
_REMOVE = "DELETE FROM library WHERE account = ? AND kind = ? AND id = ?"
# No id is empty, and a cursor says of which list it is.
_CURSOR = "after:"


class SqliteLibrary:
    """A `LibraryStore` in a SQLite file. Every method raises StoreUnavailable."""

    def __init__(self, database: SqliteDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put(
        self, account: str, kind: LibraryKind, record: LibraryRecord, expected: int | None
    ) -> LibraryRecord | None:
        """Store a document as the next version; see `LibraryStore.put`."""
        place = (account, kind, record.id)
        values = dict(zip(("account", "kind", "id"), place, strict=True)) | {
            "document": packed(record.document),
            "index": packed(record.index),
            "now": self._clock.now(),
        }

        def work(db: sqlite3.Connection) -> LibraryRecord | None:
            row = db.execute(_GET, place).fetchone()
            if expected is not None and expected != (row["version"] if row else 0):
                return None
            return _record_of(db.execute(_PUT, values).fetchone())

        return await self._database.write(work)

    async def get(self, account: str, kind: LibraryKind, ids: Sequence[str]) -> Sequence[LibraryRecord]:
        """Return those that there are; see `LibraryStore.get`."""

        def work(db: sqlite3.Connection) -> list[LibraryRecord]:
            rows = [db.execute(_GET, (account, kind, id)).fetchone() for id in ids]
            return [_record_of(row) for row in rows if row is not None]

        return await self._database.read(work)

    async def list(self, account: str, kind: LibraryKind, limit: int, cursor: str | None) -> Page[LibraryRecord]:
        """List a kind by id; see `LibraryStore.list`."""
        if cursor is not None and not cursor.startswith(_CURSOR):
            raise InvalidInput("no cursor of this list", "cursor", "invalid_cursor")
        after = (cursor or "").removeprefix(_CURSOR)
        values = (account, kind, after, limit + 1)
        rows = await self._database.read(lambda db: db.execute(_LIST, values).fetchall())
        more = _CURSOR + rows[limit - 1]["id"] if len(rows) > limit else None
        return Page([_record_of(row) for row in rows[:limit]], more)

    async def remove(self, account: str, kind: LibraryKind, id: str) -> bool:
        """Remove one; see `LibraryStore.remove`."""
        removed = await self._database.write(lambda db: db.execute(_REMOVE, (account, kind, id)).rowcount == 1)
        await self._database.settle()
        return removed


def _record_of(row: sqlite3.Row) -> LibraryRecord:
    return LibraryRecord(
        id=row["id"],
        document=unpacked(row["document"]),
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        index=unpacked(row["index"]),
    )
