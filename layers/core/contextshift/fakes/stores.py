"""Audits and accounts kept in memory, with the meaning of the real stores: for tests, examples and trials.

Both run on one event loop: a method body without ``await`` is the transaction. To see what a caller does
when a store is down, name verbs in ``failing``; they raise StoreUnavailable until they are taken out::

    audits = MemoryAuditStore(clock)
    audits.failing.add("commit")
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from contextshift.calibration import Calibration, day_of
from contextshift.errors import StoreUnavailable
from contextshift.ports import (
    Access,
    AuditEnd,
    AuditRecord,
    Clock,
    Commit,
    KeyRecord,
    OverlayRecord,
    SettingsRecord,
    StoredAudit,
    Ticket,
)

__all__ = ["Fallible", "MemoryAccounts", "MemoryAuditStore"]


@dataclass(slots=True)
class _Prepared:
    record: AuditRecord
    document: bytes
    expires: int | None


@dataclass(slots=True)
class _Life:
    """One life of a chat; a deleted chat's next life is another object with another epoch."""

    epoch: str
    expires: int | None
    seq: int = 0
    current: int | None = None
    audits: dict[int, _Prepared] = field(default_factory=dict)
    stored: Any = None
    """What a stored chat keeps beside its audits (`fakes.chats`); None for a chat of the proxy."""


class Fallible:
    """What all stores share: the verbs that are down."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        """Names of methods that raise StoreUnavailable."""

    def check(self, verb: str) -> None:
        """Raise StoreUnavailable where a verb is down."""
        if verb in self.failing:
            raise StoreUnavailable(f"the store cannot {verb} now")


class MemoryAuditStore(Fallible):
    """An `AuditStore` in memory. Implements the life of an audit exactly as the ports describe it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._lives: dict[tuple[str, str], _Life] = {}
        self._births = 0

    def kept(self, ticket: Ticket) -> list[str]:
        """Return the generation ids of all that a ticket's life still keeps, committed or not."""
        life = self.life(ticket)
        return [] if life is None else [audit.record.generation_id for audit in life.audits.values()]

    async def begin(self, account: str, chat_id: str, generation_id: str, *, now: float, expires: int | None) -> Ticket:
        """Take the next place in the chat's order, making the chat where there is none."""
        self.check("begin")
        life = self._lives.get((account, chat_id)) or self.born(account, chat_id)
        life.expires = expires if life.stored is None else None  # a stored chat stays until it is deleted
        life.seq += 1
        return Ticket(account, chat_id, life.epoch, life.seq, f"{life.seq}-{generation_id}")

    async def prepare(
        self, ticket: Ticket, record: AuditRecord, parts: Sequence[bytes], *, expires: int | None
    ) -> None:
        """Keep the document under the ticket's own place; nobody can read it before the commit."""
        self.check("prepare")
        life = self.life(ticket)
        if life is None:
            return
        present = life.audits.get(ticket.seq)
        if present is None or not present.record.status.terminal:
            life.audits[ticket.seq] = _Prepared(record, b"".join(parts), expires)

    async def commit(self, ticket: Ticket) -> Commit:
        """Make the prepared audit the newest, unless a later one already is, or the chat is gone."""
        self.check("commit")
        life = self.life(ticket)
        if life is None:
            return Commit.DELETED
        if life.current is not None and life.current > ticket.seq:
            life.audits.pop(ticket.seq, None)
            return Commit.SUPERSEDED
        life.current = ticket.seq
        return Commit.COMMITTED

    async def finish(self, ticket: Ticket, end: AuditEnd) -> bool:
        """End a prepared audit once; a repeat of the same end (whenever it comes) is success."""
        self.check("finish")
        life = self.life(ticket)
        audit = None if life is None else life.audits.get(ticket.seq)
        if audit is None:
            return False
        if audit.record.end is not None:
            return replace(audit.record.end, finished_at=end.finished_at) == end
        audit.record = replace(audit.record, status=end.status, end=end)
        return True

    async def sweep(self, ticket: Ticket) -> None:
        """Remove what is older than the chat's newest audit."""
        self.check("sweep")
        life = self.life(ticket)
        if life is not None and life.current is not None:
            for seq in [seq for seq in life.audits if seq < life.current]:
                del life.audits[seq]

    async def read(self, account: str, chat_id: str) -> StoredAudit | None:
        """Return the newest committed audit that has not expired, None where there is none."""
        self.check("read")
        life = self._lives.get((account, chat_id))
        if life is None or life.current is None or self._past(life.expires):
            return None
        audit = life.audits.get(life.current)
        if audit is None or self._past(audit.expires):
            return None
        if hashlib.sha256(audit.document).hexdigest() != audit.record.sha:
            raise StoreUnavailable("the audit is damaged")
        return StoredAudit(audit.record, audit.document)

    async def delete(self, account: str, chat_id: str) -> bool:
        """End the chat's life and drop all it owned; False where there was none."""
        self.check("delete")
        life = self._lives.pop((account, chat_id), None)
        return life is not None and not self._past(life.expires)

    def living(self, account: str, chat_id: str) -> _Life | None:
        """Return a chat's present life, None where there is none."""
        life = self._lives.get((account, chat_id))
        return None if life is None or self._past(life.expires) else life

    def lives_of(self, account: str) -> list[_Life]:
        """Return all present lives of an account's chats, the oldest first."""
        return [life for (owner, _), life in self._lives.items() if owner == account and not self._past(life.expires)]

    def born(self, account: str, chat_id: str) -> _Life:
        """Begin a new life of a chat."""
        self._births += 1
        life = self._lives[account, chat_id] = _Life(epoch=f"life{self._births}", expires=None)
        return life

    def life(self, ticket: Ticket) -> _Life | None:
        """Return the life the ticket was taken in, None where it has ended."""
        life = self._lives.get((ticket.account, ticket.chat_id))
        return life if life is not None and life.epoch == ticket.epoch else None

    def _past(self, expires: int | None) -> bool:
        return expires is not None and expires <= self._clock.now()


class MemoryAccounts(Fallible):
    """An `AccountAdmin` in memory. Without a clock, the last day of an account's samples is its today."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__()
        self._clock = clock
        self._samples: dict[str, dict[int, Calibration]] = {}
        self._accounts: dict[str, tuple[str, tuple[str, ...] | None]] = {}
        self._keys: dict[str, KeyRecord] = {}
        self._settings: dict[str, SettingsRecord] = {}
        self._overlays: dict[str | None, OverlayRecord] = {}

    async def access(self, key_hash: str, account_hint: str | None) -> Access | None:
        """Return the access a key gives, None where the key is unknown; the hint decides nothing."""
        self.check("access")
        key = self._keys.get(key_hash)
        known = None if key is None else self._accounts.get(key.account)
        if key is None or known is None:
            return None
        settings = self._settings.get(key.account, SettingsRecord())
        calibration, overlays = self._calibration(key.account), self._documents(key.account)
        return Access(key, key.account, known[0], settings, known[1], calibration, overlays)

    async def overlays(self, account: str) -> tuple[str, ...]:
        """Return what stands over the catalogue for an account."""
        self.check("overlays")
        return self._documents(account)

    async def create_account(self, account: str, plan: str, models: Sequence[str] | None = None) -> bool:
        """Create it; False where it exists."""
        self.check("create_account")
        if account in self._accounts:
            return False
        self._accounts[account] = (plan, None if models is None else tuple(models))
        return True

    async def account(self, account: str) -> tuple[str, tuple[str, ...] | None] | None:
        """Return (plan, models), None where there is no such account."""
        self.check("account")
        return self._accounts.get(account)

    async def update_account(self, account: str, plan: str, models: Sequence[str] | None) -> bool:
        """Change plan and models; False where there is no such account."""
        self.check("update_account")
        if account not in self._accounts:
            return False
        self._accounts[account] = (plan, None if models is None else tuple(models))
        return True

    async def put_key(self, key: KeyRecord) -> None:
        """Create or replace a key's record."""
        self.check("put_key")
        self._keys[key.hash] = key

    async def expire_key(self, key_hash: str, expires: int | None) -> bool:
        """Change when a key ends, and nothing else of it; False where there is none."""
        self.check("expire_key")
        if key_hash not in self._keys:
            return False
        self._keys[key_hash] = replace(self._keys[key_hash], expires=expires)
        return True

    async def keys(self, account: str) -> list[KeyRecord]:
        """Return the account's keys, oldest first."""
        self.check("keys")
        own = [key for key in self._keys.values() if key.account == account]
        return sorted(own, key=lambda key: (key.created_at, key.id))

    async def settings(self, account: str) -> SettingsRecord:
        """Return the account's settings; version 0 and empty where none were written."""
        self.check("settings")
        return self._settings.get(account, SettingsRecord())

    async def put_settings(self, account: str, settings: SettingsRecord, expected_version: int) -> bool:
        """Store ``settings`` if the stored version still is ``expected_version``, else False."""
        self.check("put_settings")
        if self._settings.get(account, SettingsRecord()).version != expected_version:
            return False
        self._settings[account] = settings
        return True

    async def overlay(self, account: str | None) -> OverlayRecord:
        """Return an account's overlay, None standing for the deployment's."""
        self.check("overlay")
        return self._overlays.get(account, OverlayRecord())

    async def put_overlay(self, account: str | None, overlay: OverlayRecord, expected_version: int) -> bool:
        """Store ``overlay`` if the stored version still is ``expected_version``, else False."""
        self.check("put_overlay")
        if self._overlays.get(account, OverlayRecord()).version != expected_version:
            return False
        self._overlays[account] = overlay
        return True

    async def merge_calibration(self, account: str, day: int, more: Calibration) -> None:
        """Add samples to a day's."""
        self.check("merge_calibration")
        days = self._samples.setdefault(account, {})
        days[day] = days.get(day, Calibration()) + more

    async def calibration(self, account: str) -> Calibration:
        """Return the samples of today and yesterday."""
        self.check("calibration")
        return self._calibration(account)

    def _documents(self, account: str) -> tuple[str, ...]:
        stored = (self._overlays.get(whose, OverlayRecord()).models for whose in (None, account))
        return tuple(json.dumps(dict(models)) for models in stored if models)

    def _calibration(self, account: str) -> Calibration:
        days = self._samples.get(account, {})
        today = max(days, default=0) if self._clock is None else day_of(self._clock.now())
        return days.get(today, Calibration()) + days.get(today - 1, Calibration())
