"""Sending what was decided, once more with less or elsewhere where the provider will not take it; and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from contextshift.audit import AuditStatus
from contextshift.calling import Caller, Received
from contextshift.errors import UpstreamOverflow
from contextshift.fit import Decision
from contextshift.headers import Bare, Token, Warning_
from contextshift.ledger import Ledger, Matter
from contextshift.measuring import Measure
from contextshift.overflow import Overflow
from contextshift.planner import AnswerReader, Dialect, Planned, Planner
from contextshift.ports import Access, Provider, ProviderCall
from contextshift.report import decision_warnings
from contextshift.settings import Settings
from contextshift.tokens import TokenizerProfile

__all__ = ["Attempts", "Sender"]

SILENT_CUT = 0.75
"""An upstream that reports less than this share of our count has cut the prompt without saying so."""
_FEWEST_PER_BYTE = 8
"""Where nothing was counted, usage below one token in so many bytes is worth a count: prose makes one in 4 or 5."""


class Sender(Protocol):
    """What sending needs of the exchange."""

    planner: Planner
    caller: Caller

    def provider(self, name: str) -> Provider:
        """Return a provider by its name in the catalogue."""

    def learn(self, access: Access, settings: Settings, used: Measure, reported: object) -> None:
        """Take what a provider reported for a prompt."""


class Attempts:
    """The one or two requests of a call. ``planned`` is the plan in force: what its headers and audit tell."""

    def __init__(
        self,
        sender: Sender,
        ledger: Ledger,
        access: Access,
        dialect: Dialect,
        outgoing: Callable[[Planned], ProviderCall],
    ) -> None:
        self._sender = sender
        self._ledger = ledger
        self._access = access
        self._dialect = dialect
        self._outgoing = outgoing
        self.planned: Planned | None = None

    async def record(self, planned: Planned, attempt: int = 1) -> None:
        """Put a plan in force and its audit where it can be read. Raises the error of a refusal."""
        self.planned = planned
        self._ledger.warnings += decision_warnings(planned.decision)
        error = planned.decision.error
        await self._ledger.record(planned, error.code if error else None, attempt)
        if error is not None:
            raise error

    async def send(self, planned: Planned, *, streams: bool) -> Received:
        """Send a recorded plan, and at most once a smaller one. Raises UpstreamOverflow, or a ProviderError."""
        received = await self._send(planned, streams=streams)
        if received.overflow is None:
            return received
        await received.upstream.aclose()
        smaller = self._smaller(planned, received.overflow)
        await self.record(smaller, attempt=2)
        received = await self._send(smaller, streams=streams)
        if (still := received.overflow) is not None:
            await received.upstream.aclose()
            raise _refusal(still)
        return received

    async def ended(self, status: int, reader: AnswerReader) -> list[Warning_]:
        """End as the answer says: its error, its usage, or our own counts; return what its usage gives away."""
        planned = self.planned
        assert planned is not None
        matter, code = Matter.of(planned.decision), f"UPSTREAM_{status}" if status >= 400 else reader.error
        if code is not None:
            await self._ledger.end(matter, AuditStatus.FAILED, code=code, upstream_status=status)
            return []
        usage = reader.usage or _own_usage(planned.decision)
        found = self._silent_cut(planned, usage)
        if reader.usage is not None and not found:  # of a prompt that was cut there is nothing to learn
            used, reported = planned.decision.used, reader.usage.get("prompt_tokens")
            self._sender.learn(self._access, planned.settings, used, reported)
        await self._ledger.end(matter, AuditStatus.COMPLETED, upstream_status=status, usage=usage, found=found)
        return found

    def _silent_cut(self, planned: Planned, usage: Mapping[str, Any]) -> list[Warning_]:
        used, reported = planned.decision.used, usage.get("prompt_tokens")
        if not isinstance(reported, int):
            return []
        if used.bound and reported * _FEWEST_PER_BYTE >= used.prompt:
            return []  # as many as such a text may well make
        counted = self._sender.planner.counted(planned.question) if used.bound else used.prompt
        if reported >= SILENT_CUT * counted * _least_share(used.counter.profile):
            return []
        return [(Token("silent-cut"), {"counted": counted, "reported": reported})]

    async def _send(self, planned: Planned, *, streams: bool) -> Received:
        provider = self._sender.provider(planned.decision.used.model.provider)
        return await self._sender.caller.call(provider, self._outgoing(planned), self._dialect, streams=streams)

    def _smaller(self, planned: Planned, overflow: Overflow) -> Planned:
        """Return the plan under what the refusal taught. Raises UpstreamOverflow where none is allowed or of use."""
        used = planned.decision.used
        if overflow.prompt is not None:
            self._sender.learn(self._access, planned.settings, used, overflow.prompt)
        again = self._sender.planner.under(planned, overflow)
        if again is None:
            raise _refusal(overflow)
        token, parameters = _said(used.model.name, overflow)
        unwritten = [one for one in self._ledger.warnings if one[0] == "audit-unavailable"]
        self._ledger.warnings = [(token, parameters), *unwritten]
        return again.noting(
            {"code": str(token), **{name: str(v) if isinstance(v, Token) else v for name, v in parameters.items()}}
        )


def _least_share(profile: TokenizerProfile) -> float:
    """Return which share of a count the provider's own may be, where the whole prompt was read."""
    return min(1.0, profile.least_ratio / profile.ratio) if profile.approximate else 1.0


def _own_usage(decision: Decision) -> Mapping[str, Any]:
    prompt = decision.used.prompt
    return {"prompt_tokens": prompt, "completion_tokens": None, "total_tokens": None, "estimated": True}


def _refusal(overflow: Overflow) -> UpstreamOverflow:
    return UpstreamOverflow(overflow.kind, overflow.limit, overflow.requested)


def _said(model: str, overflow: Overflow) -> Warning_:
    """Return the warning that a provider refused the first request as too large."""
    parameters: dict[str, Bare] = {"model": model, "kind": Token(str(overflow.kind).replace("_", "-"))}
    numbers: Mapping[str, int | None] = {"limit": overflow.limit, "requested": overflow.requested}
    return Token("upstream-overflow"), parameters | {name: n for name, n in numbers.items() if n is not None}
