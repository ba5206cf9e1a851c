"""The ledger of one generation: its audit, from begin to its one end, and its one log event.

The audit is committed before the provider is called and ended exactly once. A store that fails costs the
proxy a warning, not the call, unless the account requires its audits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contextshift.audit import AuditStatus, pack
from contextshift.catalogue import Model, prices_for, usd
from contextshift.errors import StoreError, StoreUnavailable
from contextshift.fit import Decision
from contextshift.headers import Token, Warning_
from contextshift.planner import Planned
from contextshift.ports import Access, AuditEnd, AuditRecord, AuditWriter, Clock, Commit, EventLog, Ticket
from contextshift.settings import Settings

__all__ = ["Finish", "Ledger", "Matter", "Prepare", "actual_cost", "fault_event"]

Prepare = Callable[[Ticket, AuditRecord, Sequence[bytes], int], Awaitable[Commit]]
"""Writes a first audit, to be kept until some epoch second, and makes it its chat's newest."""
Finish = Callable[[Ticket, AuditEnd], Awaitable[object]]
"""Writes the end of an audit."""


@dataclass(frozen=True, slots=True)
class Matter:
    """What a call was about, as its event tells it; never any of its text."""

    model: Model | None = None
    """The model that was called, None where none was."""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, decision: Decision) -> Matter:
        """Return the matter of a decided call."""
        used = decision.used
        return cls(
            used.model if decision.error is None else None,
            {
                "requested": decision.asked.model.name,
                "action": str(decision.action),
                "counted_tokens": used.prompt,
                "excluded": len(decision.dropped),
            },
        )


class Ledger:
    """Keeps the audit of one call of the proxy; a call that names no chat has none, but still its event."""

    def __init__(
        self,
        audits: AuditWriter,
        clock: Clock,
        log: EventLog,
        access: Access,
        settings: Settings,
        generation_id: str,
        deadline: float,
        expires: int,
    ) -> None:
        self._audits = audits
        self._clock = clock
        self._log = log
        self._access = access
        self._settings = settings
        self._deadline = deadline
        self._expires = expires
        self._started = clock.now()
        self._ticket: Ticket | None = None
        self._open = False
        self._owed = False
        self._ending: asyncio.Task[None] | None = None
        self._sweep: asyncio.Task[None] | None = None
        self._prepare: Prepare = self._prepared
        self._finish: Finish = audits.finish
        self.generation_id = generation_id
        self.warnings: list[Warning_] = []

    async def begin(self) -> None:
        """Take the next place in the chat's order. Raises StoreUnavailable only where audits are required."""
        chat_id = self._settings.chat_id
        if chat_id is None:
            return
        account = self._access.account
        try:
            self._ticket = await self._audits.begin(
                account, chat_id, self.generation_id, now=self._started, expires=self._expires
            )
            self.generation_id = self._ticket.generation_id
        except StoreUnavailable:
            self._unavailable()

    def adopt(self, ticket: Ticket, prepare: Prepare, finish: Finish) -> None:
        """Keep the audit of a generation that a stored chat has begun: written and ended together with its chat's."""
        self._ticket, self._prepare, self._finish = ticket, prepare, finish
        self.generation_id = ticket.generation_id

    def owe(self) -> None:
        """From here on there is a generation that must be ended, whatever becomes of its audit."""
        self._owed = True

    async def record(self, planned: Planned, error_code: str | None = None, attempt: int = 1) -> None:
        """Write the audit and make it the chat's newest; with ``error_code`` as one that failed at once.

        ``attempt`` 2 is the one corrected retry: what it sends takes the place of what the first sent.
        """
        ticket = self._ticket
        if ticket is None or (attempt > 1 and not self._open):
            return
        parts, sha = pack({"chat_id": ticket.chat_id, **planned.document()})
        status = AuditStatus.PREPARED if error_code is None else AuditStatus.FAILED
        end = None if error_code is None else AuditEnd(status, self._clock.now(), error_code=error_code)
        record = AuditRecord(self.generation_id, status, self._started, self._deadline, len(parts), sha, attempt, end)
        try:
            commit = await (self._prepare if attempt == 1 else self._prepared)(ticket, record, parts, self._expires)
        except StoreUnavailable:
            self._unavailable()
            return
        self._open = commit is Commit.COMMITTED and not status.terminal
        if commit is Commit.COMMITTED and (self._sweep is None or self._sweep.done()):
            self._sweep = asyncio.create_task(_quietly(self._audits, ticket))

    async def _prepared(self, ticket: Ticket, record: AuditRecord, parts: Sequence[bytes], expires: int) -> Commit:
        await self._audits.prepare(ticket, record, parts, expires=expires)
        # From here on the audit may be the newest, whatever becomes of the answer: it must be ended.
        self._open = not record.status.terminal
        return await self._audits.commit(ticket)

    async def end(
        self,
        matter: Matter,
        status: AuditStatus,
        *,
        code: str | None = None,
        upstream_status: int | None = None,
        usage: Mapping[str, Any] | None = None,
        found: Sequence[Warning_] = (),
    ) -> None:
        """End the audit and leave the call's event, once: the first end counts, a later one waits for it.

        It runs as a task of its own, so that a client that goes away now breaks off the waiting and not the
        ending. A failed end changes no answer.
        """
        if self._ending is None:
            cost = actual_cost(matter.model, usage) if matter.model and usage else None
            self._log.emit(self._event(matter, code, usage, upstream_status, cost))
            diagnostics = tuple({"code": str(token), **parameters} for token, parameters in found)
            end = AuditEnd(status, self._clock.now(), usage, code, cost, diagnostics)
            self._ending = asyncio.create_task(self._write_end(end))
        await asyncio.shield(self._ending)

    def fault(self, error: Exception) -> None:
        """Log a bug."""
        self._log.emit(fault_event(error, self.generation_id))

    async def _write_end(self, end: AuditEnd) -> None:
        if (self._open or self._owed) and self._ticket is not None:
            try:
                await self._finish(self._ticket, end)
            except StoreError as error:
                self._log.emit({"event": "audit-end-failed", "generation_id": self.generation_id, "code": error.code})
        if self._sweep is not None:
            await self._sweep

    def _unavailable(self) -> None:
        if self._settings.audit == "required":
            raise StoreUnavailable("the audit that the account requires cannot be written")
        self.warnings.append((Token("audit-unavailable"), {}))

    def _event(
        self,
        matter: Matter,
        code: str | None,
        usage: Mapping[str, Any] | None,
        upstream_status: int | None,
        cost: float | None,
    ) -> dict[str, Any]:
        access = self._access
        reported = usage if usage and not usage.get("estimated") else {}
        model = matter.model
        return {
            "event": "call",
            "generation_id": self.generation_id,
            "account": access.account,
            "key_id": access.key.id,
            "code": code,
            "upstream_status": upstream_status,
            "seconds": round(self._clock.now() - self._started, 4),
            "reported_tokens": reported.get("prompt_tokens"),
            "cached_tokens": reported.get("cached_tokens"),
            "cost_usd": cost,
            "used": model.name if model else None,
            "regions": sorted(model.regions or ()) if model else [],
            **matter.facts,
        }


def actual_cost(model: Model, usage: Mapping[str, Any]) -> float | None:
    """Return what reported usage costs in USD at list prices, None where usage or a price is unknown."""
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if usage.get("estimated") or not isinstance(prompt, int) or not isinstance(completion, int):
        return None
    prices = prices_for(model, prompt)
    if prices is None:
        return None
    cached = min(usage.get("cached_tokens") or 0, prompt)
    return usd((prompt - cached) * prices.input + cached * prices.cached_input + completion * prices.output)


def fault_event(error: Exception, generation_id: str) -> dict[str, Any]:
    """Return the event of a bug: its kind and its place, never its message."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_name}:{place.tb_lineno}" if place else ""
    return {"event": "fault", "generation_id": generation_id, "error": type(error).__name__, "at": where}


async def _quietly(audits: AuditWriter, ticket: Ticket) -> None:
    """Sweep; what a failed sweep leaves behind expires by itself."""
    with contextlib.suppress(StoreError):
        await audits.sweep(ticket)
