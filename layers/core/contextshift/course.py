"""The course of one call from its start to its one end: deadline, ledger, and what ends it whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from contextshift.audit import AuditStatus
from contextshift.calling import Caller, Received
from contextshift.errors import ContextShiftError, ProviderError
from contextshift.fit import Decision
from contextshift.headers import Warning_
from contextshift.ledger import Ledger, Matter
from contextshift.planner import AnswerReader

__all__ = ["CallFailed", "Course", "Ending", "Relay"]

_T = TypeVar("_T")


class CallFailed(ContextShiftError):
    """Raise when a call that reached the flow ends in an error of ours; carries the headers it earned."""

    code = "CALL_FAILED"

    def __init__(
        self, cause: ContextShiftError, shown: Sequence[tuple[str, str]], decision: Decision | None = None
    ) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.headers = list(shown)
        self.decision = decision


class Ending(Protocol):
    """What is known of a call when it ends, well or not."""

    @property
    def decision(self) -> Decision | None:
        """What was decided, None where it was not or there was nothing to decide."""

    def matter(self) -> Matter:
        """Return what the call was about, so far."""

    def headers(self) -> list[tuple[str, str]]:
        """Return the ``X-Bastion-*`` headers earned so far."""

    async def answered(self, status: int, reader: AnswerReader) -> list[Warning_]:
        """End with the answer read whole; return what it gives away."""


class Course:
    """Runs a call's steps within its deadline and its ledger."""

    def __init__(self, caller: Caller, ledger: Ledger, ending: Ending, deadline: float) -> None:
        self._caller = caller
        self.ledger = ledger
        self.ending = ending
        self.deadline = deadline

    @contextlib.asynccontextmanager
    async def ending_on_failure(self) -> AsyncIterator[None]:
        """Whatever breaks off what is done inside, end the call; an error becomes CallFailed, and a bug a log line."""
        try:
            yield
        except ContextShiftError as error:
            status = error.upstream_status if isinstance(error, ProviderError) else None
            await self._end(AuditStatus.FAILED, error.code, status)
            raise CallFailed(error, self.ending.headers(), self.ending.decision) from error
        except asyncio.CancelledError:
            await self.cancelled()
            raise
        except Exception as error:
            self.ledger.fault(error)
            await self._end(AuditStatus.FAILED, "INTERNAL_ERROR")
            cause = ContextShiftError("internal error")
            raise CallFailed(cause, self.ending.headers(), self.ending.decision) from error

    async def cancelled(self) -> None:
        """End as broken off by the client."""
        await self._end(AuditStatus.CANCELLED)

    def seconds_left(self) -> float:
        """Return the time until the deadline; never negative."""
        return self._caller.seconds_left(self.deadline)

    async def in_time(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Await within the deadline. Raises ProviderTimeout."""
        return await self._caller.in_time(work, self.deadline)

    async def _end(self, status: AuditStatus, code: str | None = None, upstream_status: int | None = None) -> None:
        await self.ledger.end(self.ending.matter(), status, code=code, upstream_status=upstream_status)


class Relay:
    """A streamed answer on its way to the client: chunks untouched, the call ended with it."""

    def __init__(self, course: Course, received: Received, *, events: bool = True) -> None:
        self._course = course
        self._received = received
        self._closed = False
        self.events = events
        self.unfinished_event = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk as it came. Raises CallFailed where the upstream breaks off or is too late."""
        if self._closed:
            raise StopAsyncIteration
        chunk = self._received.held.popleft() if self._received.held else await self._fresh()
        if chunk is None:
            await self._close()
            raise StopAsyncIteration
        self.unfinished_event = not chunk.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))
        return chunk

    async def _fresh(self) -> bytes | None:
        """Read on; at the end of the stream, end the call and return None."""
        reader = self._received.reader
        try:
            async with self._course.ending_on_failure():
                chunk = await self._course.in_time(_next(self._received.chunks))
                if chunk is None:
                    reader.end()
                    await self._course.ending.answered(self._received.upstream.status, reader)
                else:
                    reader.feed(chunk)
        except BaseException:
            await self._close()
            raise
        return chunk

    def seconds_left(self) -> float:
        """Return the time until the deadline of the whole answer."""
        return self._course.seconds_left()

    async def aclose(self) -> None:
        """Stop: a stream that was not read to its end was cancelled by its client."""
        if not self._closed:
            await self._close()
            await self._course.cancelled()

    async def _close(self) -> None:
        self._closed = True
        await self._received.upstream.aclose()


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)
