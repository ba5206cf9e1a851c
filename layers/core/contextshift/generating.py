"""The use case of chat applications: stage a prompt, make it fit, send it, stream the reply, and save it.

A generation runs by itself: its client listens, and may go away. It ends once, as completed, failed or cancelled, and
its end and its message are written together or not at all. Others may read its text so far, or ask it to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from contextshift import headers
from contextshift.attempts import Attempts
from contextshift.audit import AuditStatus
from contextshift.calling import Received
from contextshift.casting import Wanted
from contextshift.chats import ChatStore, GenerationRecord, MessageRecord, Saving
from contextshift.course import CallFailed, Course
from contextshift.errors import ContextShiftError, IdempotencyConflict, StoreError, UpstreamRefused
from contextshift.exchange import Exchange
from contextshift.fit import Decision
from contextshift.headers import Warning_
from contextshift.ledger import Matter
from contextshift.planner import AnswerReader, Dialect, Planned, check_key, outgoing
from contextshift.ports import Access, AuditEnd, ProviderCall, Ticket
from contextshift.rehearsal import Rehearsal
from contextshift.replying import Reply, saving
from contextshift.report import budget, context_headers
from contextshift.staging import Staged, sent_messages
from contextshift.telling import Telling

__all__ = ["Generate", "Generations", "Running"]

PROGRESS = 1.0
"""Seconds between two looks at whether somebody wants it to stop; the text so far is kept with each."""
_SAVES = 3
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

    async def start(self, call: Generate) -> Running:
        """Begin a generation. What it needs is checked and recorded when this returns; the provider is called after.

        Raises what `Rehearsal.stored` raises before anything is stored; after that CallFailed, also around the
        IdempotencyConflict of a key that was used for another request.
        """
        staged = await self.rehearsal.stored(call.access, call.chat_id, call.branch, call.wanted)
        running = Running(self, call, staged)
        async with running.course.ending_on_failure():
            await running.begin()
        if running.repeats is None:
            running.task = asyncio.create_task(running.run())
            self._running.add(running.task)
            running.task.add_done_callback(self._running.discard)
        return running

    async def aclose(self) -> None:
        """Wait for what still runs."""
        await asyncio.gather(*self._running, return_exceptions=True)


class Running:
    """One generation on its way, and what its listeners hear of it."""

    def __init__(self, generations: Generations, call: Generate, staged: Staged) -> None:
        self._g = generations
        self._x = generations.exchange
        self._call = call
        self._staged = staged
        deadline = self._x.deadline(call.deadline)
        settings = replace(staged.question.settings, chat_id=call.chat_id, audit="required")
        key_provider = check_key(call, settings, staged.question.model.provider)
        self._question = replace(staged.question, settings=settings, key_provider=key_provider)
        self.ledger = self._x.ledger(call.access, settings, deadline)
        self.course = Course(self._x.caller, self.ledger, self, deadline)
        self._attempts = Attempts(self._x, self.ledger, call.access, call.dialect, self._outgoing)
        self.reply = Reply(call.wanted.prefill)
        self.message: MessageRecord | None = None
        self.repeats: str | None = None
        """The generation that this one only repeats, by its idempotency key."""
        self.failure: CallFailed | None = None
        """What went wrong, once it has."""
        self.task: asyncio.Task[None] | None = None
        self._ticket: Ticket | None = None
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
        with contextlib.suppress(StoreError):
            await self._g.chats.progress(ticket, self.reply.text, self.reply.reasoning)
        kept = await self._kept(end)
        self.message = await self._g.chats.end_generation(ticket, end, kept)
        if self.message is None and kept is not None and kept.replaces is not None:
            await self._save_again(end)

    async def _kept(self, end: AuditEnd) -> Saving | None:
        """Return what the reply writes into the conversation, as the message that it changes is by now."""
        return saving(
            self._call.wanted.type,
            self.reply,
            self._call.branch,
            await self._target(),
            generation_id=self.ledger.generation_id,
            speaker_id=self._staged.speaker_id,
            lore_state=self._staged.lore_state,
            partial=end.status is not AuditStatus.COMPLETED,
        )

    async def _save_again(self, end: AuditEnd) -> None:
        """Save a reply whose message somebody changed in between: the generation has ended, its text is not lost."""
        account, chat_id = self._call.access.account, self._call.chat_id
        for _ in range(_SAVES):
            kept = await self._kept(end)
            if kept is None or kept.replaces is None:
                return
            target = kept.replaces
            self.message = await self._g.chats.edit(account, chat_id, target.id, kept.document, target.version)
            if self.message is not None:
                return

    async def _target(self) -> MessageRecord | None:
        """Return the message that is changed as it is by now: somebody may have pinned it meanwhile."""
        target = self._staged.target
        if target is None:
            return None
        with contextlib.suppress(StoreError):
            now = await self._g.chats.message(self._call.access.account, self._call.chat_id, target.id)
            return now or target
        return target

    # -- its steps -------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Take the chat's next place, decide, record, and save what the user said."""
        chats, call = self._g.chats, self._call
        token = self.ledger.generation_id
        account = call.access.account
        ticket = await chats.begin_generation(account, call.chat_id, token, now=self._x.clock.now())
        self.ledger.adopt(ticket, self._finish)
        expires = int(self.course.deadline) + KEPT
        if call.idempotency_key is not None and await self._repeats(ticket, call.idempotency_key, expires):
            return
        self._ticket = ticket
        planned = await self._g.rehearsal.decided(replace(self._staged, question=self._question))
        document = {"type": call.wanted.type, "branch": call.branch}
        record = GenerationRecord(
            ticket.generation_id, document, AuditStatus.PREPARED, self._x.clock.now(), self.course.deadline
        )
        await chats.open_generation(ticket, record, expires)
        self.ledger.owe()
        await self._attempts.record(planned)
        said = await self._save_user_message()
        await self.events.tell("generation", self._shown(planned, said))

    async def _repeats(self, ticket: Ticket, key: str, expires: int) -> bool:
        hashed = hashlib.sha256(key.encode()).hexdigest()
        taken = await self._g.chats.claim(ticket, hashed, self._call.request, expires)
        if taken is None:
            return False
        self.repeats, request = taken
        if request != self._call.request:
            raise IdempotencyConflict("the idempotency key was used for another request")
        return True

    def _outgoing(self, planned: Planned) -> ProviderCall:
        model = planned.decision.used.model
        request = self._staged.request(model.upstream_name, sent_messages(planned.decision, planned.question))
        body = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()
        return outgoing(self._call, body, model.provider, planned.settings, self.course.deadline)

    async def _save_user_message(self) -> MessageRecord | None:
        wanted = self._call.wanted
        if wanted.user_message is None or wanted.type == "quiet":
            return None
        document = {"role": "user", "content": wanted.user_message}
        account, chat_id = self._call.access.account, self._call.chat_id
        added = await self._g.chats.append(account, chat_id, self._call.branch, [document])
        return added[0] if added else None

    def _shown(self, planned: Planned, said: MessageRecord | None) -> dict[str, Any]:
        return {
            "id": self.ledger.generation_id,
            "chat_id": self._call.chat_id,
            "branch": self._call.branch,
            "type": self._call.wanted.type,
            "action": str(planned.decision.action),
            "model": planned.decision.used.model.name,
            "budget": budget(planned.decision.used),
            "user_message": said.id if said else None,
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
        assert self._ticket is not None
        while True:
            await asyncio.sleep(PROGRESS)
            try:
                stop = await self._g.chats.progress(self._ticket, self.reply.text, self.reply.reasoning)
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


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)
