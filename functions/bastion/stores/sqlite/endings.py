"""How audits and generations end: the columns that say so, and the one change that ends an audit."""

from __future__ import annotations

import json
import sqlite3

from contextshift.audit import AuditStatus
from contextshift.ports import AuditEnd, Ticket

__all__ = ["NO_END", "end_of", "end_values", "finish_record"]

NO_END: dict[str, object] = dict.fromkeys(("finished_at", "usage", "error", "actual_usd", "diagnostics"))
"""The ending of what is only prepared."""
_FINISH = """
UPDATE records SET status = :status, finished_at = :finished_at, "usage" = :usage, error = :error,
    actual_usd = :actual_usd, diagnostics = :diagnostics, updated_at = :now
WHERE epoch = :epoch AND seq = :seq AND gid = :gid AND status = 'prepared'
"""


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
