"""A stored chat's rows: read into records, and changed within somebody's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from contextshift.chats import BranchRecord, ChatRecord, Document, LoadedChat, MessageRecord, Saving, place_of
from contextshift.errors import ChatNotFound, MessageChanged
from contextshift.paths import Stretch, stretches

__all__ = [
    "append",
    "branch_of",
    "branch_record",
    "chat_of",
    "edit",
    "living",
    "load",
    "message_at",
    "packed",
    "read",
    "save",
    "unpacked",
]

_LIVING = """
SELECT chats.* FROM lives JOIN chats ON chats.epoch = lives.epoch WHERE lives.account = ? AND lives.chat = ?
"""
_STRETCH = "SELECT * FROM messages WHERE epoch = ? AND branch = ? AND n BETWEEN ? AND ? ORDER BY n"
_APPEND = """
INSERT INTO messages (epoch, branch, n, document, version, created_at, updated_at) VALUES (?, ?, ?, ?, 1, ?, ?)
"""
_EDIT = """
UPDATE messages SET document = ?, version = version + 1, updated_at = ?
WHERE epoch = ? AND branch = ? AND n = ? AND version = ? RETURNING *
"""


def packed(document: Document) -> str:
    """Return a document as its column: ASCII, because half a surrogate pair is no UTF-8."""
    return json.dumps(dict(document), separators=(",", ":"))


def unpacked(column: str) -> dict[str, Any]:
    """Return the document of a column."""
    document: dict[str, Any] = json.loads(column)
    return document


def living(db: sqlite3.Connection, account: str, chat_id: str) -> sqlite3.Row:
    """Return the row of a living stored chat. Raises ChatNotFound."""
    row: sqlite3.Row | None = db.execute(_LIVING, (account, chat_id)).fetchone()
    if row is None:
        raise ChatNotFound("no such chat")
    return row


def chat_of(row: sqlite3.Row) -> ChatRecord:
    """Read a chat."""
    return ChatRecord(
        row["chat"], unpacked(row["document"]), row["user_id"], row["version"], row["created_at"], row["updated_at"]
    )


def branch_of(db: sqlite3.Connection, epoch: str, branch: str) -> BranchRecord | None:
    """Read one branch, None where there is none."""
    row = db.execute("SELECT * FROM branches WHERE epoch = ? AND id = ?", (epoch, branch)).fetchone()
    return None if row is None else branch_record(row)


def branch_record(row: sqlite3.Row) -> BranchRecord:
    """Read a branch."""
    lineage = tuple((owner, last) for owner, last in json.loads(row["lineage"]))
    return BranchRecord(row["id"], lineage, row["name"], row["created_at"], row["last"])


def message_at(db: sqlite3.Connection, epoch: str, message: str) -> MessageRecord | None:
    """Read one message by its id, None where there is none."""
    place = place_of(message)
    found = [] if place is None else read(db, epoch, [(place[0], place[1], place[1])])
    return found[0] if found else None


def load(db: sqlite3.Connection, chat: sqlite3.Row, branch: str) -> LoadedChat | None:
    """Read what a generation of a living chat's branch reads; None where there is no such branch."""
    known = branch_of(db, chat["epoch"], branch)
    return None if known is None else LoadedChat(chat_of(chat), known, read(db, chat["epoch"], stretches(known)))


def read(
    db: sqlite3.Connection,
    epoch: str,
    path: Iterable[Stretch],
    *,
    most: int | None = None,
    newest_first: bool = False,
) -> list[MessageRecord]:
    """Read stretches of messages in the order given, each in the order asked for, up to ``most``."""
    found: list[MessageRecord] = []
    for branch, first, last in path:
        left = -1 if most is None else most - len(found)
        query = f"{_STRETCH}{' DESC' if newest_first else ''} LIMIT ?"
        found += [_message_of(row) for row in db.execute(query, (epoch, branch, first, last, left))]
    return found


def append(
    db: sqlite3.Connection, epoch: str, branch: str, documents: Sequence[Document], now: float
) -> list[MessageRecord] | None:
    """Add messages at a branch's end; None where there is no such branch."""
    query = "UPDATE branches SET last = last + ?, updated_at = ? WHERE epoch = ? AND id = ? RETURNING last"
    row = db.execute(query, (len(documents), now, epoch, branch)).fetchone()
    if row is None:
        return None
    first = row["last"] - len(documents) + 1
    added = [MessageRecord(branch, first + i, document, 1, now, now) for i, document in enumerate(documents)]
    db.executemany(_APPEND, [(epoch, branch, m.n, packed(m.document), now, now) for m in added])
    return added


def edit(
    db: sqlite3.Connection, epoch: str, place: tuple[str, int], document: Document, expected: int, now: float
) -> MessageRecord | None:
    """Replace a message's document; None where there is none of the version expected."""
    row = db.execute(_EDIT, (packed(document), now, epoch, *place, expected)).fetchone()
    return None if row is None else _message_of(row)


def save(db: sqlite3.Connection, epoch: str, saving: Saving, now: float) -> MessageRecord | None:
    """Write what a generation leaves in the conversation; None where there is no such branch. Raises MessageChanged."""
    if saving.replaces is None:
        added = append(db, epoch, saving.branch, [saving.document], now)
        return added[0] if added else None
    place = (saving.replaces.branch, saving.replaces.n)
    saved = edit(db, epoch, place, saving.document, saving.replaces.version, now)
    if saved is None:
        raise MessageChanged("the message was changed meanwhile")
    return saved


def _message_of(row: sqlite3.Row) -> MessageRecord:
    return MessageRecord(
        row["branch"], row["n"], unpacked(row["document"]), row["version"], row["created_at"], row["updated_at"]
    )
