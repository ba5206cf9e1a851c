"""The use case: complete a call. Each level is one concern, and reads as a sentence.

`Exchange.complete`: question → plan → audit committed → provider → audit finished → headers. What the client
sees is the provider's answer plus Bastion's headers, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from contextshift import headers
from contextshift.audit import AuditStatus
from contextshift.calibrating import Calibrator
from contextshift.errors import ContextShiftError, ProviderBroken, ProviderTimeout
from contextshift.fit import Decision
from contextshift.headers import Token, Warning_
from contextshift.ledger import Ledger
from contextshift.measuring import Measure, Question
from contextshift.planner import Call, Planned, Planner, UsageReader
from contextshift.ports import AuditWriter, Clock, EventLog, Provider, ProviderAnswer, Random
from contextshift.report import context_headers, decision_warnings
from contextshift.settings import Settings

__all__ = ["Answer", "CallFailed", "Exchange"]

MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of a buffered answer beyond which it is treated as broken."""
SILENT_CUT = 0.75
"""An upstream that reports less than this share of our count has cut the prompt without saying so."""
_FEWEST_PER_BYTE = 8
"""Where nothing was counted, usage below one token in so many bytes is worth a count: prose makes one in 4 or 5."""
_DAY = 86_400
_RETURNED = frozenset(
    (
        "content-encoding",
        "content-type",
        "openai-processing-ms",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "x-request-id",
    )
)
_RETURNED_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")
_T = TypeVar("_T")


@dataclass(slots=True)
class Answer:
    """What goes back to the client: the upstream's status and bytes, its headers by allow-list, and ours.

    A streamed body must be closed (``aclose``) however far it was read: that ends the audit.
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes | Relay


class CallFailed(ContextShiftError):
    """Raise when a call that reached the flow ends in an error of ours; carries the headers it earned."""

    code = "CALL_FAILED"

    def __init__(self, cause: ContextShiftError, shown: Sequence[tuple[str, str]], decision: Decision | None) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.headers = list(shown)
        self.decision = decision


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
    ) -> None:
        self.planner = planner
        self.clock = clock
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
        question = self.planner.question(call)
        run = _Run(self, call, question)
        async with run.ending_on_failure():
            return await run.answer()

    def provider(self, name: str) -> Provider:
        """Return a provider by its name in the catalogue. Raises ProviderBroken where none is configured."""
        try:
            return self._providers[name]
        except KeyError:
            raise ProviderBroken("no such provider is configured") from None

    def ledger(self, call: Call, question: Question, deadline: float) -> Ledger:
        """Open the ledger of one generation."""
        now = self.clock.now()
        expires = int(now) + self.planner.plan_of(call.access).audit_days * _DAY
        generation_id = self._random.token(12).hex()
        return Ledger(self._audits, self.clock, self._log, call, question.settings, generation_id, deadline, expires)

    def learn(self, call: Call, settings: Settings, used: Measure, reported: object) -> None:
        """Take what an answer reported for a prompt, to correct approximate counts of later ones."""
        if self._calibrator is not None and settings.calibration == "on":
            self._calibrator.observe(call.access, used.model.name, used.counter.profile, used.prompt, reported)

    def deadline(self, call: Call) -> float:
        """Return when the answer must be complete: the client's deadline, or ours if it comes first."""
        latest = self.clock.now() + self._timeout
        return latest if call.deadline is None else min(latest, call.deadline)


class _Run:
    """One call on its way."""

    def __init__(self, exchange: Exchange, call: Call, question: Question) -> None:
        self._x = exchange
        self._call = call
        self._question = question
        self.deadline = exchange.deadline(call)
        self.ledger = exchange.ledger(call, question, self.deadline)
        self.planned: Planned | None = None

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers earned so far."""
        ledger = self.ledger
        if self.planned is None:
            return [(headers.GENERATION_ID, ledger.generation_id)]
        decision = self.planned.decision
        return context_headers(decision, self._question.settings, ledger.warnings, ledger.generation_id)

    async def answer(self) -> Answer:
        """Decide, record, send."""
        planned = await self._plan_beside_begin()
        decision = planned.decision
        self.ledger.warnings += decision_warnings(decision)
        await self.ledger.record(planned, decision.error.code if decision.error else None)
        if decision.error is not None:
            raise decision.error
        return await self._send(decision)

    async def _plan_beside_begin(self) -> Planned:
        """Count while the store takes the next place in the chat's order."""
        begun = asyncio.create_task(self.ledger.begin())
        try:
            await asyncio.sleep(0)  # the store's request leaves before the counting holds the loop
            question = await self._x.planner.rated(self._question)
            self.planned = self._x.planner.decide(question)
        except BaseException:
            begun.cancel()
            with contextlib.suppress(asyncio.CancelledError, ContextShiftError):
                await begun
            raise
        await begun
        return self.planned

    async def _send(self, decision: Decision) -> Answer:
        model, call = decision.used.model, self._call
        body = call.body.spliced(model.upstream_name, decision.edits())
        outgoing = call.outgoing(body, model.provider, self._question.settings, self.deadline)
        upstream = await self.in_time(self._x.provider(model.provider).send(outgoing))
        reader = call.dialect.reader(_readable_type(upstream))
        if _header(upstream, "content-type").lower().startswith("text/event-stream"):
            shown = [*_returned(upstream), *self.headers()]
            return Answer(upstream.status, shown, Relay(self, upstream, reader))
        try:
            whole = await self.in_time(_read_whole(upstream))
        finally:
            await upstream.aclose()
        reader.feed(whole)
        reader.end()
        self.ledger.warnings += await self.end_answered(upstream.status, reader)
        return Answer(upstream.status, [*_returned(upstream), *self.headers()], whole)

    @contextlib.asynccontextmanager
    async def ending_on_failure(self) -> AsyncIterator[None]:
        """Whatever breaks off what is done inside, end the audit; an error of ours becomes CallFailed."""
        try:
            yield
        except ContextShiftError as error:
            await self.ledger.end(self.planned, AuditStatus.FAILED, code=error.code)
            raise CallFailed(error, self.headers(), self.planned.decision if self.planned else None) from error
        except asyncio.CancelledError:
            await self.ledger.end(self.planned, AuditStatus.CANCELLED)
            raise
        except Exception:
            await self.ledger.end(self.planned, AuditStatus.FAILED, code="INTERNAL_ERROR")
            raise

    def seconds_left(self) -> float:
        """Return the time until the deadline; never negative."""
        return max(0.0, self.deadline - self._x.clock.now())

    async def in_time(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Await within the deadline. Raises ProviderTimeout."""
        try:
            async with asyncio.timeout(self.seconds_left()):
                return await work
        except TimeoutError:
            raise ProviderTimeout("the provider did not answer before the deadline") from None

    async def end_answered(self, http_status: int, reader: UsageReader) -> list[Warning_]:
        """End as the answer says: its usage or our own counts; return what its usage gives away."""
        code = f"UPSTREAM_{http_status}" if http_status >= 400 else reader.error
        if code is not None:
            await self.ledger.end(self.planned, AuditStatus.FAILED, code=code, upstream_status=http_status)
            return []
        usage = reader.usage or self._own_usage()
        if reader.usage is not None and self.planned is not None:
            used = self.planned.decision.used
            self._x.learn(self._call, self._question.settings, used, reader.usage.get("prompt_tokens"))
        found = self._silent_cut(usage)
        await self.ledger.end(
            self.planned, AuditStatus.COMPLETED, upstream_status=http_status, usage=usage, found=found
        )
        return found

    def _own_usage(self) -> Mapping[str, Any]:
        prompt = self.planned.decision.used.prompt if self.planned else None
        return {"prompt_tokens": prompt, "completion_tokens": None, "total_tokens": None, "estimated": True}

    def _silent_cut(self, usage: Mapping[str, Any]) -> list[Warning_]:
        used = self.planned.decision.used if self.planned else None
        reported = usage.get("prompt_tokens")
        if used is None or used.counter.profile.approximate or not isinstance(reported, int):
            return []
        if used.bound and reported * _FEWEST_PER_BYTE >= used.prompt:
            return []  # as many as such a text may well make
        counted = self._x.planner.counted(self._question) if used.bound else used.prompt
        if reported >= SILENT_CUT * counted:
            return []
        return [(Token("silent-cut"), {"counted": counted, "reported": reported})]


class Relay:
    """A streamed answer on its way to the client: chunks untouched, the audit ended with it."""

    def __init__(self, run: _Run, upstream: ProviderAnswer, reader: UsageReader) -> None:
        self._run = run
        self._upstream = upstream
        self._reader = reader
        self._chunks = upstream.chunks()
        self._closed = False
        self.unfinished_event = False
        """Whether what was passed on so far ends in the middle of an event."""

    def __aiter__(self) -> Relay:
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk as it came. Raises CallFailed where the upstream breaks off or is too late."""
        if self._closed:
            raise StopAsyncIteration
        try:
            async with self._run.ending_on_failure():
                chunk = await self._run.in_time(_next(self._chunks))
                if chunk is None:
                    self._reader.end()
                    await self._run.end_answered(self._upstream.status, self._reader)
        except BaseException:
            await self._close()
            raise
        if chunk is None:
            await self._close()
            raise StopAsyncIteration
        self._reader.feed(chunk)
        self.unfinished_event = not chunk.endswith((b"\n\n", b"\r\n\r\n"))
        return chunk

    def seconds_left(self) -> float:
        """Return the time until the deadline of the whole answer."""
        return self._run.seconds_left()

    async def aclose(self) -> None:
        """Stop: a stream that was not read to its end was cancelled by its client."""
        if not self._closed:
            await self._close()
            await self._run.ledger.end(self._run.planned, AuditStatus.CANCELLED)

    async def _close(self) -> None:
        self._closed = True
        await self._upstream.aclose()


def _header(upstream: ProviderAnswer, wanted: str) -> str:
    return next((value for name, value in upstream.headers if name == wanted), "")


def _readable_type(upstream: ProviderAnswer) -> str:
    """Return the content type of an answer that can be read; a compressed one is passed on unread."""
    compressed = _header(upstream, "content-encoding").lower() not in ("", "identity")
    return "" if compressed else _header(upstream, "content-type")


def _returned(upstream: ProviderAnswer) -> list[tuple[str, str]]:
    return [
        (name, value) for name, value in upstream.headers if name in _RETURNED or name.startswith(_RETURNED_PREFIXES)
    ]


async def _read_whole(upstream: ProviderAnswer) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for chunk in upstream.chunks():
        size += len(chunk)
        if size > MAX_ANSWER:
            raise ProviderBroken("the provider's answer is too large")
        pieces.append(chunk)
    return b"".join(pieces)


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)
