"""Collecting what providers report, and handing it to the store once a minute, beside the calls."""

from __future__ import annotations

import asyncio

from contextshift.calibration import Calibration, day_of, has_room, sample
from contextshift.errors import StoreError
from contextshift.ports import Access, CalibrationStore, Clock, EventLog
from contextshift.tokens import TokenizerProfile

__all__ = ["Calibrator"]

MOST_ACCOUNTS = 1_000
"""Accounts whose samples may wait at one time; what comes from others is let go."""


class Calibrator:
    """Keeps samples until the store has them. For each account it writes at most once in ``every`` seconds.

    An account's first sample is written at once, and what comes within the minute after it goes together at the
    minute's end. A store that is down costs no call anything: samples wait, as steps of histograms, of which
    there are only so many.

    A minute is a timer of the event loop and not a task that sleeps, because a Lambda invocation waits for the
    tasks that a call leaves behind.
    """

    def __init__(
        self, store: CalibrationStore, clock: Clock, log: EventLog | None = None, *, every: float = 60.0
    ) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._every = every
        self._waiting: dict[str, Calibration] = {}
        self._merging: dict[str, asyncio.Task[None]] = {}
        self._resting: dict[str, asyncio.TimerHandle] = {}
        self._closed = False

    def observe(self, access: Access, model: str, profile: TokenizerProfile, counted: int, reported: object) -> None:
        """Take what a provider reported for a prompt that ``profile`` counted; returns at once, raises nothing.

        Call it from the event loop. What corrects nothing (an exact profile, no report) is passed over.
        """
        account, found = access.account, sample(profile, model, counted, reported)
        waiting = self._waiting.get(account, Calibration())
        if found is None or self._closed or not has_room(found[0], access.calibration, waiting):
            return
        idle = account not in self._merging and account not in self._resting
        if idle and len(self._merging) + len(self._resting) >= MOST_ACCOUNTS:
            return
        self._waiting[account] = waiting.observed(*found)
        if idle:
            self._start(account)

    async def aclose(self) -> None:
        """Hand over what is waiting, in one more try for each account; safe to call twice."""
        self._closed = True  # from here on nothing rests, so nothing else starts a merge
        for timer in self._resting.values():
            timer.cancel()
        self._resting.clear()
        await asyncio.gather(*self._merging.values())
        for account in self._waiting:
            self._start(account)
        await asyncio.gather(*self._merging.values())
        self._waiting.clear()

    def _start(self, account: str) -> None:
        self._merging[account] = asyncio.create_task(self._merge(account))

    async def _merge(self, account: str) -> None:
        """Merge what is waiting by now, once; whatever becomes of it, the account then rests."""
        more = self._waiting.pop(account)
        try:
            await self._store.merge_calibration(account, day_of(self._clock.now()), more)
        except StoreError as error:
            self._waiting[account] = more + self._waiting.get(account, Calibration())
            if self._log is not None:
                self._log.emit({"event": "calibration-waits", "account": account, "code": error.code})
        finally:
            del self._merging[account]
            if not self._closed:
                self._resting[account] = asyncio.get_running_loop().call_later(self._every, self._rested, account)

    def _rested(self, account: str) -> None:
        del self._resting[account]
        if account in self._waiting:
            self._start(account)
