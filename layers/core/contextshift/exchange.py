"""The use case: complete a call. Each level is one concern, and reads as a sentence.

`Exchange.complete`: question → plan → audit committed → provider → audit finished → headers. What the client
sees is the provider's answer plus Bastion's headers, and nothing else. A provider that refuses the prompt as too
large is asked once more, with less, where the settings allow it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from contextshift import headers
from contextshift.answer import Answer, holds_events, returned
from contextshift.attempts import Attempts
from contextshift.calibrating import Calibrator
from contextshift.calling import Caller, Received
from contextshift.course import CallFailed, Course, Relay
from contextshift.errors import ContextShiftError, ProviderBroken
from contextshift.fit import Decision
from contextshift.headers import Warning_
from contextshift.ledger import Ledger, Matter, fault_event
from contextshift.measuring import Measure, Question
from contextshift.planner import AnswerReader, Call, Planned, Planner, outgoing
from contextshift.ports import Access, AuditWriter, Clock, EventLog, Provider, ProviderCall, Random
from contextshift.report import context_headers
from contextshift.settings import Settings

__all__ = ["Answer", "CallFailed", "Exchange", "Relay"]

_DAY = 86_400


class Exchange:
    """Sends what the planner decided, and keeps the audit."""

    def __init__(
        self,
        planner: Planner,
        providers: Mapping[str, Provider],
        audits: AuditWriter,
        clock: Clock,
        random: Random,
        log: EventLog,
        timeout: float = 600.0,
        calibrator: Calibrator | None = None,
        first_byte: float = 300.0,
    ) -> None:
        self.planner = planner
        self.clock = clock
        self.caller = Caller(clock, random, first_byte)
        self._providers = providers
        self._audits = audits
        self._random = random
        self._log = log
        self._timeout = timeout
        self._calibrator = calibrator

    async def complete(self, call: Call) -> Answer:
        """Answer one call, buffered or streamed as the upstream answers it.

        Raises InvalidInput, ModelNotFound, ModelNotAllowed or StrategyNotInPlan before anything is stored or
        sent; after that, CallFailed.
        """
        completion = _Completion(self, call, self.planner.question(call))
        async with completion.course.ending_on_failure():
            return await completion.answer()

    def provider(self, name: str) -> Provider:
        """Return a provider by its name in the catalogue. Raises ProviderBroken where none is configured."""
        try:
            return self._providers[name]
        except KeyError:
            raise ProviderBroken("no such provider is configured") from None

    def ledger(self, access: Access, settings: Settings, deadline: float) -> Ledger:
        """Open the ledger of one generation."""
        expires = int(self.clock.now()) + self.planner.plan_of(access).audit_days * _DAY
        return Ledger(self._audits, self.clock, self._log, access, settings, self.token(), deadline, expires)

    def token(self) -> str:
        """Return what names a generation, before its place in its chat's order."""
        return self._random.token(12).hex()

    def learn(self, access: Access, settings: Settings, used: Measure, reported: object) -> None:
        """Take what an answer reported for a prompt, to correct approximate counts of later ones.

        A bound by bytes is no count: nothing is learned from what came below it.
        """
        if self._calibrator is not None and settings.calibration == "on" and not used.bound:
            self._calibrator.observe(access, used.model.name, used.counter.profile, used.prompt, reported)

    def fault(self, error: Exception, generation_id: str) -> None:
        """Log a bug."""
        self._log.emit(fault_event(error, generation_id))

    def deadline(self, latest: float | None) -> float:
        """Return when the answer must be complete: the client's deadline, or ours if it comes first."""
        ours = self.clock.now() + self._timeout
        return ours if latest is None else min(ours, latest)


class _Completion:
    """One chat completion on its way."""

    def __init__(self, exchange: Exchange, call: Call, question: Question) -> None:
        self._x = exchange
        self._call = call
        self._question = question
        deadline = exchange.deadline(call.deadline)
        self.ledger = exchange.ledger(call.access, question.settings, deadline)
        self.course = Course(exchange.caller, self.ledger, self, deadline)
        self._attempts = Attempts(exchange, self.ledger, call.access, call.dialect, self._outgoing)

    @property
    def _planned(self) -> Planned | None:
        return self._attempts.planned

    @property
    def decision(self) -> Decision | None:
        """What was decided, so far."""
        return self._planned.decision if self._planned else None

    def matter(self) -> Matter:
        """Return what the call is about, so far."""
        return Matter.of(self._planned.decision) if self._planned else Matter()

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers earned so far."""
        ledger = self.ledger
        if self._planned is None:
            return [(headers.GENERATION_ID, ledger.generation_id)]
        return context_headers(self._planned.decision, self._question.settings, ledger.warnings, ledger.generation_id)

    async def answer(self) -> Answer:
        """Decide, record, send; and once more where the provider will not take it."""
        planned = await self._plan_beside_begin()
        await self._attempts.record(planned)
        received = await self._attempts.send(planned, streams=bool(self._call.body.value.get("stream")))
        return await self._answered(received)

    async def _plan_beside_begin(self) -> Planned:
        """Count while the store takes the next place in the chat's order."""
        begun = asyncio.create_task(self.ledger.begin())
        try:
            await asyncio.sleep(0)  # the store's request leaves before the counting holds the loop
            question = await self._x.planner.rated(self._question)
            planned = self._x.planner.decide(question)
        except BaseException:
            begun.cancel()
            with contextlib.suppress(asyncio.CancelledError, ContextShiftError):
                await begun
            raise
        await begun
        return planned

    def _outgoing(self, planned: Planned) -> ProviderCall:
        call, decision = self._call, planned.decision
        body = call.body.spliced(decision.used.model.upstream_name, decision.edits())
        return outgoing(call, body, decision.used.model.provider, planned.settings, self.course.deadline)

    async def _answered(self, received: Received) -> Answer:
        upstream = received.upstream
        if received.body is None:
            shown = [*returned(upstream.headers), *self.headers()]
            return Answer(upstream.status, shown, Relay(self.course, received, events=holds_events(upstream)))
        self.ledger.warnings += await self.answered(upstream.status, received.reader)
        return Answer(upstream.status, [*returned(upstream.headers), *self.headers()], received.body)

    async def answered(self, status: int, reader: AnswerReader) -> list[Warning_]:
        """End as the answer says: its usage or our own counts; return what its usage gives away."""
        return await self._attempts.ended(status, reader)
