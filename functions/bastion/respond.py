"""Responses as pure ASGI: JSON, raw bytes, and a relayed stream that ends its audit whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from starlette.types import Receive, Scope, Send

from bastion.problems import problem_of
from bastion.wire.rendering import dumps
from contextshift.answer import Answer, AnswerStream
from contextshift.errors import ContextShiftError

__all__ = [
    "BUFFERED",
    "CLIENT_GONE",
    "Reply",
    "StreamReply",
    "TornAnswer",
    "answer_reply",
    "connected_reply",
    "disconnected",
    "encoded",
    "problem_reply",
    "while_connected",
]

BUFFERED = "bastion.buffered"
"""Scope key set by a host that cannot stream: a stream is then collected, so that its failure is a clean error."""

Headers = Sequence[tuple[str, str]]
CLIENT_GONE = 499
"""What a log shows for a client that left before its answer; nobody receives it."""
_LAST_WORDS = 5.0
"""Seconds past the deadline that an error event may take to be sent."""
_T = TypeVar("_T")


class TornAnswer(Exception):
    """Raise when an answer that is under way cannot go on: the connection breaks off, as the upstream's did."""


class Reply:
    """A whole body."""

    def __init__(self, body: bytes, status: int = 200, headers: Headers = ()) -> None:
        self.body = body
        self.status = status
        self.headers = headers

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: Headers = ()) -> Reply:
        """Make a reply of a JSON value."""
        return cls(dumps(value), status, [("content-type", "application/json"), *headers])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the reply."""
        shown = [*self.headers, ("content-length", str(len(self.body)))]
        await send({"type": "http.response.start", "status": self.status, "headers": encoded(shown)})
        await send({"type": "http.response.body", "body": self.body})


class StreamReply:
    """A relayed stream: chunks are sent as they come, and a client that goes away stops the upstream."""

    def __init__(self, answer: Answer, relay: AnswerStream) -> None:
        self._answer = answer
        self._relay = relay

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream; where the host cannot stream, send it in one piece."""
        try:
            if scope.get(BUFFERED):
                await self._collected(scope, receive, send)
            else:
                await self._streamed(receive, send)
        finally:
            await self._relay.aclose()

    async def _collected(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = b"".join([chunk async for chunk in self._relay])
        except ContextShiftError as error:
            await problem_reply(error, scope["path"])(scope, receive, send)
            return
        await Reply(body, self._answer.status, self._answer.headers)(scope, receive, send)

    async def _streamed(self, receive: Receive, send: Send) -> None:
        """Send chunk by chunk until the end, the client's leaving, or the deadline, whichever is first."""
        start = {"type": "http.response.start", "status": self._answer.status}
        await send({**start, "headers": encoded(self._answer.headers)})
        pump = asyncio.create_task(self._pump(send))
        gone = asyncio.create_task(disconnected(receive))
        try:
            # A client that stops reading holds `send`: the deadline is for the whole answer.
            limit = self._relay.seconds_left() + _LAST_WORDS
            await asyncio.wait((pump, gone), timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _stop(pump, gone)
        if not pump.cancelled() and pump.exception() is not None and not isinstance(pump.exception(), OSError):
            await pump

    async def _pump(self, send: Send) -> None:
        try:
            async for chunk in self._relay:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except ContextShiftError as error:
            if not self._relay.events:
                raise TornAnswer from error
            # The status is sent: an error event is the only place left to say it (as OpenAI does).
            event = b"data: " + dumps(problem_of(error).openai) + b"\n\n"
            closing = b"\n\n" if self._relay.unfinished_event else b""
            await send({"type": "http.response.body", "body": closing + event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def while_connected(scope: Scope, receive: Receive, work: Coroutine[Any, Any, _T]) -> _T | None:
    """Return what ``work`` returns; cancel it, and return None, when the client goes away before.

    The request's body must have been read. A host that buffers tells nobody that its client left.
    """
    if scope.get(BUFFERED):
        return await work
    task, gone = asyncio.create_task(work), asyncio.create_task(disconnected(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        return None if not task.done() else await task
    finally:
        await _stop(task, gone)


async def _stop(*tasks: asyncio.Task[Any]) -> None:
    """Cancel what still runs, and wait until it has ended; errors are for who awaits the task itself."""
    for task in tasks:
        if not task.done():
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def connected_reply(scope: Scope, receive: Receive, work: Coroutine[Any, Any, Answer]) -> Reply | StreamReply:
    """Return the response of what an exchange does, as long as its client stays."""
    answer = await while_connected(scope, receive, work)
    return Reply(b"", CLIENT_GONE) if answer is None else answer_reply(answer)


def answer_reply(answer: Answer) -> Reply | StreamReply:
    """Make the response of an exchange's answer."""
    if isinstance(answer.body, bytes):
        return Reply(answer.body, answer.status, answer.headers)
    return StreamReply(answer, answer.body)


def problem_reply(error: ContextShiftError, path: str) -> Reply:
    """Make the response of an error, in the shape of the API that ``path`` belongs to."""
    problem = problem_of(error)
    return Reply.json(problem.body(path), problem.status, problem.headers)


async def disconnected(receive: Receive) -> None:
    """Wait until the client is gone. The request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers as ASGI takes them."""
    return [(name.lower().encode("ascii"), value.encode("latin-1", "replace")) for name, value in headers]
