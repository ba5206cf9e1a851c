"""Heads and audit records: what they are as items, and what a set of items says about an audit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bastion.stores.dynamodb.items import (
    Item,
    check_schema,
    expired,
    expiring,
    integer_of,
    integer_or_none,
    number,
    number_of,
    part_sk,
    record_sk,
    stamps,
    text,
    text_of,
    text_or_none,
    texts_of,
    ticket_partition,
)
from contextshift.audit import AuditStatus
from contextshift.ports import AuditEnd, AuditRecord, StoredAudit, Ticket

__all__ = ["Head", "Torn", "audit_of", "end_item", "end_of", "head_of", "part_items", "record_item", "same_end"]


class Torn(Exception):
    """Raise when items do not make a whole audit: a newer one replaced it while it was read."""


@dataclass(frozen=True, slots=True)
class Head:
    """A chat's head as read: a live one has an ``epoch``, one with an audit has ``current``."""

    epoch: str | None
    kind: str | None
    current: int | None
    buried: tuple[str, ...]
    """Lives that ended and whose purge is not known to be complete."""
    purge_after: int
    """Epoch seconds after which no call of a buried life can still write."""
    expired: bool


def head_of(item: Item, now: float) -> Head:
    """Read a head."""
    check_schema(item)
    return Head(
        epoch=text_or_none(item, "epoch"),
        kind=text_or_none(item, "kind"),
        current=integer_or_none(item, "cur"),
        buried=texts_of(item, "buried"),
        purge_after=integer_of(item, "purge_after"),
        expired=expired(item, now),
    )


def record_item(ticket: Ticket, record: AuditRecord, expires: int | None, now: float) -> Item:
    """Return an audit's record as an item; one that was refused at once has its end already."""
    ended = {} if record.end is None else end_item(record.end)
    return {
        "pk": text(ticket_partition(ticket)),
        "sk": text(record_sk(ticket.seq)),
        "gid": text(record.generation_id),
        "status": text(record.status.value),
        "attempt": number(record.attempt),
        "parts": number(record.parts),
        "sha": text(record.sha),
        "deadline": number(record.deadline),
        **ended,
        **expiring(expires),
        **stamps(now, record.created_at),
    }


def part_items(ticket: Ticket, attempt: int, parts: Sequence[bytes], expires: int | None, now: float) -> list[Item]:
    """Return an audit's parts as items."""
    partition = text(ticket_partition(ticket))
    common = {**expiring(expires), **stamps(now)}
    return [
        {"pk": partition, "sk": text(part_sk(ticket.seq, attempt, index)), "data": {"B": part}, **common}
        for index, part in enumerate(parts)
    ]


def end_item(end: AuditEnd) -> Item:
    """Return the attributes that say how an audit ended."""
    item = {"status": text(end.status.value), "finished_at": number(end.finished_at)}
    if end.usage is not None:
        item["usage"] = text(json.dumps(end.usage))
    if end.error_code is not None:
        item["error"] = text(end.error_code)
    if end.actual_usd is not None:
        item["actual_usd"] = number(end.actual_usd)
    if end.diagnostics:
        item["diagnostics"] = text(json.dumps(end.diagnostics))
    return item


def end_of(item: Item) -> AuditEnd | None:
    """Return how an audit ended, None while it is prepared."""
    status = AuditStatus(text_of(item, "status"))
    if not status.terminal:
        return None
    usage = text_or_none(item, "usage")
    return AuditEnd(
        status=status,
        finished_at=number_of(item, "finished_at"),
        usage=None if usage is None else json.loads(usage),
        error_code=text_or_none(item, "error"),
        actual_usd=number_of(item, "actual_usd") if "actual_usd" in item else None,
        diagnostics=tuple(json.loads(text_or_none(item, "diagnostics") or "[]")),
    )


def same_end(item: Item | None, ticket: Ticket, end: AuditEnd) -> bool:
    """Say whether what is stored is this very end, whenever it came: a lost answer, or a repeat."""
    if item is None or text_of(item, "gid") != ticket.generation_id:
        return False
    stored = end_of(item)
    return stored is not None and replace(stored, finished_at=end.finished_at) == end


def audit_of(seq: int, items: Sequence[Item], now: float) -> StoredAudit | None:
    """Put an audit together from its record and parts; None where it has expired, Torn where some are missing."""
    by_key = {text_of(item, "sk"): item for item in items}
    stored = by_key.get(record_sk(seq))
    if stored is None:
        raise Torn
    if expired(check_schema(stored), now):
        return None
    record = _record_of(stored)
    keys = [part_sk(seq, record.attempt, index) for index in range(record.parts)]
    document = b"".join(bytes(by_key[key]["data"]["B"]) for key in keys if key in by_key)
    if hashlib.sha256(document).hexdigest() != record.sha:
        raise Torn
    return StoredAudit(record, document)


def _record_of(item: Item) -> AuditRecord:
    return AuditRecord(
        generation_id=text_of(item, "gid"),
        status=AuditStatus(text_of(item, "status")),
        created_at=number_of(item, "created_at"),
        deadline=number_of(item, "deadline"),
        parts=integer_of(item, "parts"),
        sha=text_of(item, "sha"),
        attempt=integer_of(item, "attempt"),
        end=end_of(item),
    )
