"""What listeners hear of something that runs by itself: every event from the beginning, to any number of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Event", "Telling"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a listener is told."""

    name: str
    data: Mapping[str, Any]


class Telling:
    """Keeps events, and hands them to whoever listens, whenever that begins."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._news = asyncio.Condition()
        self._over = False

    async def tell(self, name: str, data: Mapping[str, Any]) -> None:
        """Add an event."""
        async with self._news:
            self._events.append(Event(name, data))
            self._news.notify_all()

    async def end(self) -> None:
        """Let listeners go once they have heard all."""
        async with self._news:
            self._over = True
            self._news.notify_all()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield all events, from the first to the last."""
        heard = 0
        while True:
            async with self._news:
                while heard == len(self._events) and not self._over:
                    await self._news.wait()
                fresh, over = self._events[heard:], self._over
            for event in fresh:
                yield event
            heard += len(fresh)
            if over and heard == len(self._events):
                return
