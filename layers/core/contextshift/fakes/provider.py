"""A scripted provider, a clock that stands still, and randomness one can foretell."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from contextshift.errors import ProviderError
from contextshift.ports import ProviderAnswer, ProviderCall

__all__ = ["CountingRandom", "FixedClock", "ListLog", "ScriptedAnswer", "ScriptedProvider"]


class FixedClock:
    """Tells the time it was told."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.time = now

    def now(self) -> float:
        """Return the time."""
        return self.time

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.time += seconds


class CountingRandom:
    """Makes tokens by counting: each is different, and every run makes the same."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def token(self, size: int) -> bytes:
        """Return the next number in ``size`` bytes."""
        return next(self._numbers).to_bytes(size, "big")


class ListLog:
    """Keeps events in a list."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def emit(self, event: Mapping[str, Any]) -> None:
        """Keep an event."""
        self.events.append(dict(event))


class ScriptedAnswer:
    """An answer as written in a script; a ProviderError among its chunks is raised in its place."""

    def __init__(
        self,
        body: bytes | Iterable[bytes | ProviderError] = b"{}",
        status: int = 200,
        headers: Sequence[tuple[str, str]] = (("content-type", "application/json"),),
    ) -> None:
        self.status = status
        self.headers = headers
        self.closed = False
        self._chunks = [body] if isinstance(body, bytes) else list(body)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the script."""
        for chunk in self._chunks:
            if isinstance(chunk, ProviderError):
                raise chunk
            yield chunk

    async def aclose(self) -> None:
        """Remember that the answer was let go of."""
        self.closed = True


class ScriptedProvider:
    """Gives scripted answers in turn (the last one for ever) and records every call.

    >>> provider = ScriptedProvider(ScriptedAnswer(b'{"ok": true}'))
    >>> provider.calls
    []
    """

    def __init__(self, *script: ScriptedAnswer | ProviderError) -> None:
        self.calls: list[ProviderCall] = []
        self._script = list(script) or [ScriptedAnswer()]

    async def send(self, call: ProviderCall) -> ProviderAnswer:
        """Record the call and return the next answer, or raise the next error."""
        self.calls.append(call)
        answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(answer, ProviderError):
            raise answer
        return answer
