"""``/api/v2/chats/{id}/generations``: replies, streamed as events with ids, readable and stoppable by anybody else."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from bastion.auth import Authenticator
from bastion.endpoints.chats import chat_id_of, shown_message
from bastion.endpoints.reading import deadline_of, forwarded, provider_key_of, read_body
from bastion.problems import EndedBefore, problem_of
from bastion.respond import BUFFERED, Reply, disconnected, encoded
from bastion.wire import chats as wire
from bastion.wire.deltas import OpenAIDeltas
from bastion.wire.openai_chat import check_parameters, read_overrides
from bastion.wire.rendering import dumps
from bastion.wire.shapes import read
from contextshift.audit import GENERATION_LOST, AuditStatus, lost, timestamp
from contextshift.body import parse_body
from contextshift.casting import Wanted
from contextshift.chats import ChatStore, GenerationRecord
from contextshift.course import CallFailed
from contextshift.errors import InvalidInput, NotInLibrary
from contextshift.generating import Generate, Generations, Repeated, Running
from contextshift.ports import Access, Clock
from contextshift.telling import Event

__all__ = ["GenerationsEndpoint", "wanted_of"]

_DIALECT = OpenAIDeltas()
_GENERATION = re.compile(r"[0-9]{1,20}-[A-Za-z0-9_-]{1,100}\Z")
_LOOK = 0.5
"""Seconds between two looks at a generation that a repeated request waits for."""


def wanted_of(start: wire.GenerationStart) -> Wanted:
    """Return what a request wants. Raises InvalidInput for what does not go together."""
    if start.type == "quiet" and not start.prompt:
        raise InvalidInput("a quiet generation needs its prompt", "prompt", "missing")
    if start.user_message is not None and start.type not in ("normal", "quiet"):
        raise InvalidInput("only a normal generation takes a user's message", "user_message", "invalid_value")
    check_parameters(start.params, "params.")
    overrides = dict(read_overrides(start.routing, None))
    if start.context_strategy is not None:
        overrides["context_strategy"] = start.context_strategy
    for name in ("pin", "exclude", "chat_id"):
        if name in overrides:
            raise InvalidInput("messages of a chat say this themselves", f"routing.{name}", "unsupported_setting")
    return Wanted(
        type=start.type,
        user_message=start.user_message,
        model=start.model,
        overrides=overrides,
        params=start.params,
        prefill=start.prefill,
        speaker_id=start.speaker_id,
        prompt=start.prompt,
        include_reasoning=start.include_reasoning,
    )


class GenerationsEndpoint:
    """Starts, shows and stops generations."""

    def __init__(self, authenticate: Authenticator, generations: Generations, clock: Clock, max_body: int) -> None:
        self._authenticate = authenticate
        self._generations = generations
        self._clock = clock
        self._max_body = max_body

    async def start(self, request: Request) -> Reply | _Events:
        """Start one; answer with its events, or with the whole where ``stream`` is false.

        A repeat with the same idempotency key is answered as the first was: a failure is a failure again.
        Raises ChatNotFound, InvalidInput, IdempotencyConflict, and CallFailed for what the decision refuses.
        """
        access = await self._authenticate(request, "call")
        raw = await read_body(request, self._max_body)
        start = read(wire.GenerationStart, parse_body(raw).value if raw else {})
        call = Generate(
            access=access,
            chat_id=chat_id_of(request),
            branch=start.branch,
            wanted=wanted_of(start),
            dialect=_DIALECT,
            headers={name: value for name, value in forwarded(request).items() if name != "accept"},
            deadline=deadline_of(request),
            provider_key=provider_key_of(request),
            idempotency_key=request.headers.get("idempotency-key"),
            request=hashlib.sha256(raw).hexdigest(),
        )
        running = await self._generations.start(call)
        shown = running.headers()
        if isinstance(running, Repeated):
            return await self._again(access, call.chat_id, running, streams=start.stream)
        if not start.stream:
            await _listened(request, running, cancels=start.on_disconnect == "cancel")
            if running.failure is not None:
                raise running.failure
            return Reply.json(await self._shown(access, call.chat_id, running.ledger.generation_id), headers=shown)
        return _Events(_told(running), running, shown, cancels=start.on_disconnect == "cancel")

    async def show(self, request: Request) -> Reply:
        """Show a generation and its text so far. Raises ChatNotFound, NotInLibrary."""
        access = await self._authenticate(request, "call")
        return Reply.json(await self._shown(access, chat_id_of(request), request.path_params["generation_id"]))

    async def cancel(self, request: Request) -> Reply:
        """Ask a generation to stop; whoever runs it sees it within two seconds. Raises ChatNotFound, NotInLibrary."""
        access = await self._authenticate(request, "call")
        chat_id, gid = chat_id_of(request), request.path_params["generation_id"]
        if not _GENERATION.match(gid) or not await self._chats.cancel(access.account, chat_id, gid):
            raise NotInLibrary("no such generation")
        return Reply.json(await self._shown(access, chat_id, gid), 202)

    @property
    def _chats(self) -> ChatStore:
        return self._generations.chats

    async def _found(self, access: Access, chat_id: str, gid: str) -> GenerationRecord:
        found = await self._chats.generation(access.account, chat_id, gid) if _GENERATION.match(gid) else None
        if found is None:
            raise NotInLibrary("no such generation")
        if not lost(found.status, found.deadline, self._clock.now()):
            return found
        return replace(found, status=AuditStatus.FAILED, document={**found.document, "error_code": GENERATION_LOST})

    async def _shown(self, access: Access, chat_id: str, gid: str) -> dict[str, Any]:
        found = await self._found(access, chat_id, gid)
        message = await self._chats.message(access.account, chat_id, found.message) if found.message else None
        end = found.end
        return {
            "id": found.id,
            "chat_id": chat_id,
            "branch": found.document.get("branch"),
            "type": found.document.get("type"),
            "status": found.status.value,
            "text": found.text,
            "reasoning": found.reasoning or None,
            "message": shown_message(message) if message else None,
            "usage": end.usage if end else None,
            "error_code": _error_code(found),
            "created_at": timestamp(found.created_at),
            "finished_at": timestamp(end.finished_at) if end else None,
        }

    async def _again(self, access: Access, chat_id: str, repeated: Repeated, *, streams: bool) -> Reply | _Events:
        """Answer as the request that began a generation was answered. Raises CallFailed where that was refused."""
        gid, shown = repeated.generation_id, repeated.headers()
        found = await self._found(access, chat_id, gid)
        if streams and not found.document.get("refused"):
            return _Events(self._repeated(access, chat_id, gid), None, shown)
        while not found.status.terminal:
            await asyncio.sleep(_LOOK)
            found = await self._found(access, chat_id, gid)
        failure = _failure(found)
        if failure is not None:
            raise CallFailed(failure, shown)
        return Reply.json(await self._shown(access, chat_id, gid), headers=shown)

    async def _repeated(self, access: Access, chat_id: str, gid: str) -> AsyncIterator[tuple[str, Any]]:
        """Yield the events of a generation that an earlier request began, as far as its store knows them."""
        yield "generation", {"id": gid, "chat_id": chat_id, "repeated": True}
        sent = ""
        while True:
            found = await self._found(access, chat_id, gid)
            if found.text.startswith(sent) and found.text != sent:
                yield "delta", {"choices": [{"index": 0, "delta": {"content": found.text[len(sent) :]}}]}
                sent = found.text
            if found.status.terminal:
                break
            await asyncio.sleep(_LOOK)
        failure = _failure(found)
        if failure is not None:
            yield "error", problem_of(failure).bastion
        shown = await self._shown(access, chat_id, gid)
        if shown["message"] is not None:
            yield "message", shown["message"]
        yield "done", {"id": gid}


class _Events:
    """Server-sent events with ids (HTML standard, section 9.2). Who stops listening does not stop the generation."""

    def __init__(
        self,
        events: AsyncIterator[tuple[str, Any]],
        running: Running | None,
        headers: list[tuple[str, str]],
        *,
        cancels: bool = False,
    ) -> None:
        self._events = events
        self._running = running
        self._headers = [("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"), *headers]
        self._cancels = cancels

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the last one; then, or when the client is gone, wait for the generation itself."""
        if scope.get(BUFFERED):
            body = b"".join([event async for event in self._written()])
            await Reply(body, 200, self._headers)(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": encoded(self._headers)})
        pump = asyncio.create_task(self._pump(send))
        gone = asyncio.create_task(disconnected(receive))
        try:
            await asyncio.wait((pump, gone), return_when=asyncio.FIRST_COMPLETED)
            if not pump.done() and self._cancels and self._running is not None:
                self._running.cancel()
            if self._running is not None:
                await self._running.finished()
        finally:
            for task in (pump, gone):
                task.cancel()
            await asyncio.gather(pump, gone, return_exceptions=True)

    async def _pump(self, send: Send) -> None:
        async for event in self._written():
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _written(self) -> AsyncIterator[bytes]:
        number = 0
        async for name, data in self._events:
            number += 1
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), dumps(data))


def _error_code(found: GenerationRecord) -> str | None:
    return found.end.error_code if found.end else found.document.get("error_code")


def _failure(found: GenerationRecord) -> EndedBefore | None:
    """Return what a generation failed of, as far as its store knows; None for one that did not fail."""
    return EndedBefore(_error_code(found) or "INTERNAL_ERROR") if found.status is AuditStatus.FAILED else None


async def _told(running: Running) -> AsyncIterator[tuple[str, Any]]:
    async for event in running.events:
        yield event.name, _shown_event(event)


def _shown_event(event: Event) -> Mapping[str, Any]:
    if event.name == "error":
        shown: Mapping[str, Any] = problem_of(event.data["error"]).bastion
        return shown
    return shown_message(event.data["message"]) if event.name == "message" else event.data


async def _listened(request: Request, running: Running, *, cancels: bool) -> None:
    """Wait until a generation has ended; a client that goes away stops it only where it said so."""
    done = asyncio.create_task(running.finished())
    gone = asyncio.create_task(disconnected(request.receive))
    try:
        if not request.scope.get(BUFFERED):
            await asyncio.wait((done, gone), return_when=asyncio.FIRST_COMPLETED)
            if not done.done() and cancels:
                running.cancel()
        await done
    finally:
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
