"""Audit records as rows: prepared, committed and ended within somebody's transaction; and how generations end."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from contextshift.audit import AuditStatus
from contextshift.ports import AuditEnd, AuditRecord, Commit, Ticket

__all__ = ["NO_END", "commit_record", "end_of", "end_values", "finish_record", "place_of_record", "prepare_record"]

NO_END: dict[str, object] = dict.fromkeys(("finished_at", "usage", "error", "actual_usd", "diagnostics"))
"""The ending of what is only prepared."""
# The life must still be lived, and an ended record never becomes a prepared one again.
_PREPARE = """
INSERT INTO records (epoch, seq, gid, status, attempt, parts, sha, deadline, expires, created_at, updated_at,
    finished_at, "usage", error, actual_usd, diagnostics)
SELECT :epoch, :seq, :gid, :status, :attempt, :parts, :sha, :deadline, :expires, :created_at, :now,
    :finished_at, :usage, :error, :actual_usd, :diagnostics
WHERE EXISTS (SELECT 1 FROM lives WHERE epoch = :epoch AND (:attempt = 1 OR cur IS NULL OR cur <= :seq))
ON CONFLICT (epoch, seq) DO UPDATE SET attempt = :attempt, parts = :parts, sha = :sha, deadline = :deadline,
    expires = :expires, updated_at = :now
WHERE status = 'prepared'
"""
# Nothing was committed in this life so far, or what was began before us (or is our own: a lost answer).
_COMMIT = """
UPDATE lives SET cur = :seq, updated_at = :now WHERE epoch = :epoch AND (cur IS NULL OR cur <= :seq)
"""
_FINISH = """
UPDATE records SET status = :status, finished_at = :finished_at, "usage" = :usage, error = :error,
    actual_usd = :actual_usd, diagnostics = :diagnostics, updated_at = :now
WHERE epoch = :epoch AND seq = :seq AND gid = :gid AND status = 'prepared'
"""


def prepare_record(
    db: sqlite3.Connection, ticket: Ticket, record: AuditRecord, parts: Sequence[bytes], expires: int | None, now: float
) -> None:
    """Write an audit's record and parts, unless its life or its place is lost."""
    values = NO_END | _record_values(ticket, record) | {"expires": expires, "now": now}
    if record.end is not None:
        values |= end_values(record.end)
    if db.execute(_PREPARE, values).rowcount == 1:
        _replace_parts(db, ticket, parts)


def commit_record(db: sqlite3.Connection, ticket: Ticket, now: float) -> Commit:
    """Make a prepared audit its chat's newest; one that cannot be is removed."""
    values = place_of_record(ticket) | {"now": now}
    if db.execute(_COMMIT, values).rowcount == 1:
        return Commit.COMMITTED
    db.execute("DELETE FROM records WHERE epoch = :epoch AND seq = :seq", values)
    lives = db.execute("SELECT 1 FROM lives WHERE epoch = :epoch", values).fetchone()
    return Commit.DELETED if lives is None else Commit.SUPERSEDED


def finish_record(db: sqlite3.Connection, ticket: Ticket, end: AuditEnd, now: float) -> bool:
    """End a prepared audit; False where there is none of this ticket that has not ended."""
    place = {"epoch": ticket.epoch, "seq": ticket.seq, "gid": ticket.generation_id}
    return db.execute(_FINISH, place | end_values(end) | {"now": now}).rowcount == 1


def end_values(end: AuditEnd) -> dict[str, object]:
    """Return an end as the columns of a row."""
    return {
        "status": end.status.value,
        "finished_at": end.finished_at,
        "usage": None if end.usage is None else json.dumps(dict(end.usage)),
        "error": end.error_code,
        "actual_usd": end.actual_usd,
        "diagnostics": json.dumps(list(end.diagnostics)),
    }


def end_of(row: sqlite3.Row) -> AuditEnd | None:
    """Return the end that a row says, None while it is prepared."""
    status = AuditStatus(row["status"])
    if not status.terminal:
        return None
    return AuditEnd(
        status=status,
        finished_at=row["finished_at"],
        usage=None if row["usage"] is None else json.loads(row["usage"]),
        error_code=row["error"],
        actual_usd=row["actual_usd"],
        diagnostics=tuple(json.loads(row["diagnostics"])),
    )


def place_of_record(ticket: Ticket) -> dict[str, object]:
    """Return which record a ticket's is, as columns."""
    return {"epoch": ticket.epoch, "seq": ticket.seq}


def _record_values(ticket: Ticket, record: AuditRecord) -> dict[str, object]:
    return place_of_record(ticket) | {
        "gid": record.generation_id,
        "status": record.status.value,
        "attempt": record.attempt,
        "parts": record.parts,
        "sha": record.sha,
        "deadline": record.deadline,
        "created_at": record.created_at,
    }


def _replace_parts(db: sqlite3.Connection, ticket: Ticket, parts: Sequence[bytes]) -> None:
    """Write an attempt's parts in place of an earlier attempt's: a reader's snapshot has the one or the other."""
    db.execute("DELETE FROM parts WHERE epoch = :epoch AND seq = :seq", place_of_record(ticket))
    rows = [(ticket.epoch, ticket.seq, index, part) for index, part in enumerate(parts)]
    db.executemany("INSERT INTO parts (epoch, seq, i, data) VALUES (?, ?, ?, ?)", rows)
