"""One request to a provider: repeated only where that is safe, and read as far as its client need not see it.

A buffered answer is read whole. Of a stream, what comes before the first content is held back, so that an error
in its place can still become a status and a body of its own. So a comment before the first content is held back too:
it could only follow a head with status 200, which an error could then no longer take back. Who waits long for a first
token sees nothing until then; what keeps a connection open meanwhile is between the hosts.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from contextshift.answer import EVENT_STREAM, header_of, readable_type
from contextshift.errors import ProviderBroken, ProviderTimeout
from contextshift.overflow import Overflow, recognise
from contextshift.planner import AnswerReader, Dialect
from contextshift.ports import Clock, Provider, ProviderAnswer, ProviderCall, Random

__all__ = ["Caller", "Received"]

MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of a buffered answer beyond which it is treated as broken."""
MAX_HELD = 64 * 1024
"""Bytes of a stream that are held back at the most while nothing in them is content."""
MAX_REPEATS = 2
MOST_WAIT = 2.0
"""Seconds of waiting before a repeat at the most: who is told to wait longer is better told so."""
NOT_JSON = "UPSTREAM_NOT_JSON"
"""What a reader says of an answer that is not a JSON object."""
_BUSY = (429, 503)
_SECONDS = re.compile(r"\d{1,6}(\.\d{1,6})?")
_T = TypeVar("_T")


@dataclass(slots=True)
class Received:
    """An answer, as far as it was read before anything goes to the client."""

    upstream: ProviderAnswer
    reader: AnswerReader
    chunks: AsyncIterator[bytes]
    body: bytes | None = None
    """The whole of a buffered answer; None for a stream."""
    held: deque[bytes] = field(default_factory=deque)
    """What of a stream was read and not passed on yet."""

    @property
    def overflow(self) -> Overflow | None:
        """What the provider said of a prompt that is too large for it, where it said so before any content."""
        if self.reader.failure is None or self.reader.begun:
            return None
        return recognise(self.upstream.status, self.reader.failure)


class Caller:
    """Calls providers within a deadline."""

    def __init__(self, clock: Clock, random: Random, first_byte: float = 300.0) -> None:
        self._clock = clock
        self._random = random
        self._first_byte = first_byte
        """Seconds until the first content of a streamed answer."""

    async def call(self, provider: Provider, call: ProviderCall, dialect: Dialect, *, streams: bool) -> Received:
        """Send, and return what came: a buffered answer whole, a stream up to its first content.

        Sent again: what the provider put off (429, 503 with ``Retry-After``) for a time that is short and within the
        deadline; a request that can never fit is not put off, it is refused. What could not connect, a provider's
        adapter tries again by itself. Raises a ProviderError.
        """
        return await self._repeated(call, lambda: self._received(provider, call, dialect, streams=streams))

    async def pass_through(self, provider: Provider, call: ProviderCall, dialect: Dialect) -> Received:
        """Send as `call` does, and return the answer with nothing of its body read. Raises a ProviderError."""
        return await self._repeated(call, lambda: self._unread(provider, call, dialect))

    async def _repeated(self, call: ProviderCall, send: Callable[[], Awaitable[Received]]) -> Received:
        for _ in range(MAX_REPEATS):
            received = await send()
            wait = _put_off(received)
            if wait is None or not self._may_wait(wait, call) or received.overflow is not None:
                return received
            await received.upstream.aclose()
            await asyncio.sleep(self._with_jitter(wait))
        return await send()

    def _may_wait(self, seconds: float, call: ProviderCall) -> bool:
        return seconds <= MOST_WAIT and 2 * seconds < self.seconds_left(call.deadline)

    def _with_jitter(self, seconds: float) -> float:
        """Return up to half as long again: those who were put off together do not come back together."""
        return seconds * (1 + self._random.token(1)[0] / 510)

    async def _unread(self, provider: Provider, call: ProviderCall, dialect: Dialect) -> Received:
        upstream = await self.in_time(provider.send(call), call.deadline)
        await _refuse_redirect(upstream)
        return Received(upstream, dialect.reader(readable_type(upstream)), upstream.chunks())

    async def _received(self, provider: Provider, call: ProviderCall, dialect: Dialect, *, streams: bool) -> Received:
        first = self._first_byte_by(call.deadline) if streams else call.deadline
        upstream = await self.in_time(provider.send(call), first)
        await _refuse_redirect(upstream)
        try:
            kind = readable_type(upstream)
            if upstream.status < 300 and _is_stream(upstream, kind, streams=streams):
                reader = dialect.reader(None if kind is None else EVENT_STREAM)
                received = Received(upstream, reader, upstream.chunks())
                await self.in_time(_hold(received), first)
                return received
            received = Received(upstream, dialect.reader(kind), upstream.chunks())
            received.body = await self.in_time(_whole(received.chunks), call.deadline)
        except BaseException:
            await upstream.aclose()
            raise
        await upstream.aclose()
        received.reader.feed(received.body)
        received.reader.end()
        if upstream.status < 300 and received.reader.error == NOT_JSON:
            raise ProviderBroken("the provider's answer is not JSON")
        return received

    def seconds_left(self, deadline: float | None) -> float:
        """Return the time until a deadline; never negative, and without end where there is none."""
        return float("inf") if deadline is None else max(0.0, deadline - self._clock.now())

    async def in_time(self, work: Coroutine[Any, Any, _T], deadline: float | None) -> _T:
        """Await within a deadline. Raises ProviderTimeout."""
        left = self.seconds_left(deadline)
        try:
            async with asyncio.timeout(None if left == float("inf") else left):
                return await work
        except TimeoutError:
            raise ProviderTimeout("the provider did not answer before the deadline") from None

    def _first_byte_by(self, deadline: float | None) -> float:
        first = self._clock.now() + self._first_byte
        return first if deadline is None else min(first, deadline)


async def _refuse_redirect(upstream: ProviderAnswer) -> None:
    if 300 <= upstream.status < 400:
        await upstream.aclose()
        raise ProviderBroken("the provider answered with a redirect, which is never followed")


def _is_stream(upstream: ProviderAnswer, kind: str | None, *, streams: bool) -> bool:
    """Whether a good answer is events: by its type, or by the question where the type says nothing."""
    said = header_of(upstream, "content-type").lower()
    return said.startswith(EVENT_STREAM) or (streams and kind in ("", "text/plain", "application/octet-stream"))


def _put_off(received: Received) -> float | None:
    """Return the seconds after which the provider wants to be asked again, None where it does not say."""
    if received.upstream.status not in _BUSY:
        return None
    milliseconds = header_of(received.upstream, "retry-after-ms")
    said, scale = (milliseconds, 1000.0) if milliseconds else (header_of(received.upstream, "retry-after"), 1.0)
    return float(said) / scale if _SECONDS.fullmatch(said) else None


async def _hold(received: Received) -> None:
    """Read until something must be passed on. Raises ProviderBroken for a stream without any event."""
    reader, held, size = received.reader, received.held, 0
    while not reader.begun and reader.failure is None and size <= MAX_HELD:
        chunk = await anext(received.chunks, None)
        if chunk is None:
            reader.end()
            if not reader.begun and reader.failure is None:
                raise ProviderBroken("the provider's stream ended before it began")
            return
        reader.feed(chunk)
        held.append(chunk)
        size += len(chunk)


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MAX_ANSWER:
            raise ProviderBroken("the provider's answer is too large")
        pieces.append(chunk)
    return b"".join(pieces)
