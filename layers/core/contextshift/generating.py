"""The use case of chat applications: stage a prompt, make it fit, send it, stream the reply, and save it.

A generation runs by itself: its client listens, and may go away. It ends once, as completed, failed or cancelled, and
its end and its message are written together or not at all. Others may read its text so far, or ask it to stop.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from contextshift import headers
from contextshift.attempts import Attempts
from contextshift.audit import AuditStatus
from contextshift.calling import Received
from contextshift.casting import Wanted
from contextshift.chats import Begun, ChatStore, Claim, GenerationRecord, MessageRecord, Opening
from contextshift.course import CallFailed, Course
from contextshift.ending import Ending
from contextshift.errors import ContextShiftError, IdempotencyConflict, StoreError, UpstreamRefused
from contextshift.exchange import Exchange
from contextshift.fit import Decision
from contextshift.headers import Warning_
from contextshift.ledger import Matter
from contextshift.planner import AnswerReader, Dialect, Planned, check_provider, outgoing
from contextshift.ports import Access, AuditEnd, AuditRecord, Commit, ProviderCall, Ticket
from contextshift.rehearsal import Rehearsal
from contextshift.replying import Reply, check_target
from contextshift.report import budget, context_headers
from contextshift.staging import Staged, sent_messages
from contextshift.telling import Telling

__all__ = ["Generate", "Generations", "Repeated", "Running"]

PROGRESS = 1.0
"""Seconds between two looks at whether somebody wants it to stop; the text so far is kept with each."""
KEPT = 86_400
"""Seconds for which a generation's state and an idempotency key are kept after its deadline."""


class DeltaReader(AnswerReader, Protocol):
    """An answer's reader that also gives its chunks."""

    def taken(self) -> list[Mapping[str, Any]]:
        """Return the chunks that were read since the last time."""


@dataclass(frozen=True, slots=True)
class Generate:
    """One wish of a known caller."""

    access: Access
    chat_id: str
    branch: str
    wanted: Wanted
    dialect: Dialect
    headers: Mapping[str, str] = field(default_factory=dict)
    deadline: float | None = None
    idempotency_key: str | None = None
    request: str = ""
    """SHA-256 of the request: the same key may only ask for the same again."""
    provider_key: str | None = field(default=None, repr=False)
    """The caller's own key for the provider of the model asked for."""


class Generations:
    """Makes replies in stored chats."""

    def __init__(self, exchange: Exchange, chats: ChatStore, rehearsal: Rehearsal) -> None:
        self.exchange = exchange
        self.chats = chats
        self.rehearsal = rehearsal
        self._running: set[asyncio.Task[None]] = set()

    async def start(self, call: Generate) -> Running | Repeated:
        """Begin a generation. What it needs is checked and recorded when this returns; the provider is called after.

        Raises what staging raises before anything is stored, or IdempotencyConflict for a key that was used for
        another request; after that CallFailed.
        """
        key = None if call.idempotency_key is None else hashlib.sha256(call.idempotency_key.encode()).hexdigest()
        account, now = call.access.account, self.exchange.clock.now()
        begun = await self.chats.begin_generation(
            account, call.chat_id, call.branch, self.exchange.token(), now=now, key=key
        )
        if begun.claimed is not None:
            return _repeated(begun.claimed, call)
        stage = await self.rehearsal.loaded(call.access, begun.loaded)
        staged = stage(call.wanted)
        check_target(staged.target, call.branch)
        running = Running(self, call, begun, staged, key)
        async with running.course.ending_on_failure():
            claimed = await running.begin()
        if claimed is not None:
            return _repeated(claimed, call)
        running.task = asyncio.create_task(running.run())
        self._running.add(running.task)
        running.task.add_done_callback(self._running.discard)
        return running

    async def aclose(self) -> None:
        """Wait for what still runs."""
        await asyncio.gather(*self._running, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Repeated:
    """A generation that an earlier request with the same idempotency key began."""

    generation_id: str

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of its answer."""
        return [(headers.GENERATION_ID, self.generation_id)]


class Running:
    """One generation on its way, and what its listeners hear of it."""

    def __init__(self, generations: Generations, call: Generate, begun: Begun, staged: Staged, key: str | None) -> None:
        self._g = generations
        self._x = generations.exchange
        self._call = call
        self._begun = begun
        self._staged = staged
        self._key = key
        self._ending = Ending(generations.chats, call.branch, call.wanted.type, staged)
        deadline = self._x.deadline(call.deadline)
        settings = replace(staged.question.settings, chat_id=call.chat_id, audit="required")
        provider, messages = staged.question.model.provider, staged.question.messages
        key_provider = check_provider(call, settings, provider, messages)
        self._question = replace(staged.question, settings=settings, key_provider=key_provider)
        self.ledger = self._x.ledger(call.access, settings, deadline)
        self.course = Course(self._x.caller, self.ledger, self, deadline)
        self._attempts = Attempts(self._x, self.ledger, call.access, call.dialect, self._outgoing)
        self.reply = Reply(staged.prefill)
        self.message: MessageRecord | None = None
        self.failure: CallFailed | None = None
        """What went wrong, once it has."""
        self.task: asyncio.Task[None] | None = None
        self._said: MessageRecord | None = None
        self._cancelled = False
        self.events = Telling()

    # -- what ends it, for its course -----------------------------------------------------------------------

    @property
    def decision(self) -> Decision | None:
        """What was decided, so far."""
        return self._attempts.planned.decision if self._attempts.planned else None

    def matter(self) -> Matter:
        """Return what the generation is about, so far."""
        return Matter.of(self.decision) if self.decision else Matter()

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers earned so far."""
        if self.decision is None:
            return [(headers.GENERATION_ID, self.ledger.generation_id)]
        return context_headers(self.decision, self._question.settings, self.ledger.warnings, self.ledger.generation_id)

    async def answered(self, status: int, reader: AnswerReader) -> list[Warning_]:
        """End with the whole reply, or with the error in its place."""
        return await self._attempts.ended(status, reader)

    async def _finish(self, ticket: Ticket, end: AuditEnd) -> None:
        """Write the end of audit, generation and message together."""
        self.message = await self._ending.written(ticket, end, self.reply)

    # -- its steps -------------------------------------------------------------------------------------------

    async def begin(self) -> Claim | None:
        """Decide, and record it with what the user said; return whose the idempotency key is, if another was faster."""
        self.ledger.adopt(self._begun.ticket, self._open, self._finish)
        planned = await self._g.rehearsal.decided(replace(self._staged, question=self._question))
        try:
            await self._attempts.record(planned)
        except _Claimed as taken:
            return taken.by
        await self.events.tell("generation", self._shown(planned))
        return None

    async def _open(self, ticket: Ticket, record: AuditRecord, parts: Sequence[bytes], expires: int) -> Commit:
        """Write everything that makes the generation known, at once."""
        call, loaded = self._call, self._begun.loaded
        assert loaded is not None
        document = {"type": call.wanted.type, "branch": call.branch, "refused": record.end is not None}
        generation = GenerationRecord(
            ticket.generation_id, document, AuditStatus.PREPARED, self._x.clock.now(), self.course.deadline
        )
        opening = Opening(
            generation,
            expires=int(self.course.deadline) + KEPT,
            audit=record,
            parts=parts,
            audit_expires=expires,
            branch=loaded.branch,
            said=None if record.end is not None else self._user_message(),
            key=self._key,
            request=call.request,
        )
        self.ledger.owe()
        opened = await self._g.chats.open_generation(ticket, opening)
        if opened.claimed is not None:
            raise _Claimed(opened.claimed)
        self._said = opened.said
        return opened.commit

    def _user_message(self) -> Mapping[str, Any] | None:
        wanted = self._call.wanted
        if wanted.user_message is None or wanted.type == "quiet":
            return None
        return {"role": "user", "content": wanted.user_message}

    def _outgoing(self, planned: Planned) -> ProviderCall:
        model = planned.decision.used.model
        request = self._staged.request(model.upstream_name, sent_messages(planned.decision, planned.question))
        body = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()
        return outgoing(self._call, body, model.provider, planned.settings, self.course.deadline)

    def _shown(self, planned: Planned) -> dict[str, Any]:
        return {
            "id": self.ledger.generation_id,
            "chat_id": self._call.chat_id,
            "branch": self._call.branch,
            "type": self._call.wanted.type,
            "action": str(planned.decision.action),
            "model": planned.decision.used.model.name,
            "budget": budget(planned.decision.used),
            "user_message": self._said.id if self._said else None,
        }

    async def run(self) -> None:
        """Call the provider and see it through; never raises."""
        planned = self._attempts.planned
        assert planned is not None
        watch = asyncio.create_task(self._watch())
        try:
            async with self.course.ending_on_failure():
                await self._read(await self._attempts.send(planned, streams=True))
        except CallFailed as failed:
            await self._failed(failed)
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
        except Exception as error:  # noqa: BLE001  (a bug: log and listeners are told; the call was ended as failed)
            self._x.fault(error, self.ledger.generation_id)
            await self._failed(CallFailed(ContextShiftError("internal error"), self.headers(), self.decision))
        finally:
            watch.cancel()
            await self._last_words()

    async def _read(self, received: Received) -> None:
        reader: Any = received.reader
        try:
            await self._pass_on(reader)
            received.held.clear()
            while received.body is None:
                chunk = await self.course.in_time(_next(received.chunks))
                if chunk is None:
                    break
                reader.feed(chunk)
                await self._pass_on(reader)
            if received.body is None:
                reader.end()
                await self._pass_on(reader)
            await self.answered(received.upstream.status, reader)
            if reader.error or received.upstream.status >= 400:
                refused = UpstreamRefused(received.upstream.status)
                await self._failed(CallFailed(refused, self.headers(), self.decision))
        finally:
            await received.upstream.aclose()

    async def _failed(self, failed: CallFailed) -> None:
        self.failure = failed
        await self.events.tell("error", {"error": failed})

    async def _pass_on(self, reader: DeltaReader) -> None:
        for chunk in reader.taken():
            self.reply.take(chunk)
            await self.events.tell("delta", chunk)

    async def _watch(self) -> None:
        """Keep the text so far, and see whether somebody wants the generation to stop."""
        while True:
            await asyncio.sleep(PROGRESS)
            try:
                stop = await self._g.chats.progress(self._begun.ticket, self.reply.text, self.reply.reasoning)
            except StoreError:
                continue  # the next look may succeed; nothing is lost, the end writes all
            if stop:
                self.cancel()
                return

    def cancel(self) -> None:
        """Stop, as a client that leaves may want; what there is of the reply is kept."""
        if self.task is not None and not self.task.done():
            self._cancelled = True
            self.task.cancel()

    async def finished(self) -> None:
        """Wait until the generation has ended, whoever stopped listening."""
        if self.task is not None:
            await asyncio.wait([self.task])

    async def _last_words(self) -> None:
        if self.message is not None:
            await self.events.tell("message", {"message": self.message})
        await self.events.tell("done", {"id": self.ledger.generation_id})
        await self.events.end()


class _Claimed(Exception):
    """Raise when another request bound the idempotency key while this one decided; nothing of this one is stored."""

    def __init__(self, by: Claim) -> None:
        super().__init__()
        self.by = by


def _repeated(claim: Claim, call: Generate) -> Repeated:
    if claim.request != call.request:
        raise IdempotencyConflict("the idempotency key was used for another request")
    return Repeated(claim.generation_id)


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)
