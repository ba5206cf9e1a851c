"""What the tests of the stores share: a clock to move, one generation's life, and ways to look at what is kept."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from contextshift.audit import AuditStatus
from contextshift.ports import AuditEnd, AuditRecord, AuditStore, Commit, StoredAudit, Ticket

ACCOUNT = "acme"


class MovableClock:
    """Starts at the real time, because servers delete by it, and moves when told."""

    def __init__(self, now: float | None = None) -> None:
        self.time = float(int(time.time())) if now is None else now

    def now(self) -> float:
        return self.time


class SystemRandom:
    def token(self, size: int) -> bytes:
        return secrets.token_bytes(size)


@dataclass(frozen=True)
class Kept:
    """A store under test, and the places (``seq``) of a ticket's life of which it still keeps anything."""

    store: AuditStore
    places: Callable[[Ticket], Awaitable[set[int]]]


def fresh_chat() -> str:
    return f"chat-{secrets.token_hex(6)}"


def document(ticket: Ticket, size: int = 900, attempt: int = 1) -> bytes:
    """Make a document that says whose it is, so that a mixture of two shows."""
    line = json.dumps({"seq": ticket.seq, "gid": ticket.generation_id, "attempt": attempt}).encode()
    return (line + b"\n") * (1 + size // (len(line) + 1))


def split(whole: bytes, size: int | None = None) -> list[bytes]:
    """Cut a document into parts of a size, or into three."""
    size = size or -(-len(whole) // 3) or 1
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def record_of(ticket: Ticket, parts: Sequence[bytes], *, now: float, attempt: int = 1) -> AuditRecord:
    return AuditRecord(
        generation_id=ticket.generation_id,
        status=AuditStatus.PREPARED,
        created_at=now,
        deadline=now + 30,
        parts=len(parts),
        sha=hashlib.sha256(b"".join(parts)).hexdigest(),
        attempt=attempt,
    )


async def begin(store: AuditStore, chat: str, *, expires: int | None = None, account: str = ACCOUNT) -> Ticket:
    return await store.begin(account, chat, secrets.token_hex(8), now=time.time(), expires=expires)


async def prepare(
    store: AuditStore,
    ticket: Ticket,
    whole: bytes | None = None,
    *,
    expires: int | None = None,
    attempt: int = 1,
    part_size: int | None = None,
    now: float | None = None,
) -> None:
    whole = document(ticket, attempt=attempt) if whole is None else whole
    parts = split(whole, part_size)
    record = record_of(ticket, parts, now=time.time() if now is None else now, attempt=attempt)
    await store.prepare(ticket, record, parts, expires=expires)


async def committed(
    store: AuditStore, chat: str, whole: bytes | None = None, *, account: str = ACCOUNT, **options: Any
) -> Ticket:
    """Bring a generation to its commit, which must win."""
    ticket = await begin(store, chat, expires=options.get("expires"), account=account)
    await prepare(store, ticket, whole, **options)
    assert await store.commit(ticket) is Commit.COMMITTED
    return ticket


def completed(now: float = 1.5) -> AuditEnd:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "details": {"cached": None}}
    warning = {"code": "silent-cut", "ratio": 0.34}
    return AuditEnd(AuditStatus.COMPLETED, now, usage=usage, actual_usd=0.00123, diagnostics=(warning,))


def failed(now: float = 1.5) -> AuditEnd:
    return AuditEnd(AuditStatus.FAILED, now, error_code="PROVIDER_TIMEOUT")


def owner(audit: StoredAudit | None) -> tuple[int, int]:
    """Return (seq, attempt) of the one generation that wrote all of an audit; fails on a mixture."""
    assert audit is not None
    lines = {line for line in audit.document.splitlines() if line}
    assert len(lines) == 1, "a mixture of documents"
    said = json.loads(lines.pop())
    assert said["gid"] == audit.record.generation_id
    assert said["attempt"] == audit.record.attempt
    return said["seq"], said["attempt"]
