"""Accounts that stand in the configuration file, in front of those that stand in a store."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import replace

from contextshift.calibration import Calibration
from contextshift.errors import StoreError
from contextshift.ports import Access, AccountStore, Clock

__all__ = ["ConfiguredAccounts"]

_OVERLAY_SECONDS = 5.0


class ConfiguredAccounts:
    """Answers for the keys of the file, and asks the next store for every other.

    What the store lays over the catalogue holds for the file's accounts, too. It is asked for it once in 5 seconds an
    account, and the last answer stands while it cannot be reached.

    Calibration of the file's accounts is kept in that store as well, and read back after each merge: their calls
    need no store to be let in, and see what other instances have merged a minute later.
    """

    def __init__(self, by_hash: Mapping[str, Access], beyond: AccountStore, clock: Clock) -> None:
        self._by_hash = by_hash
        self._beyond = beyond
        self._clock = clock
        self._overlays: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._accounts = frozenset(access.account for access in by_hash.values())
        self._calibrations: dict[str, Calibration] = {}

    async def access(self, key_hash: str, account_hint: str | None) -> Access | None:
        """Return the access a key gives; see `AccountStore.access`."""
        access = self._by_hash.get(key_hash)
        if access is None:
            return await self._beyond.access(key_hash, account_hint)
        overlays = await self.overlays(access.account)
        calibration = self._calibrations.get(access.account, access.calibration)
        return replace(access, calibration=calibration, overlays=overlays)

    async def overlays(self, account: str) -> tuple[str, ...]:
        """Return what stands over the catalogue for an account; see `AccountStore.overlays`."""
        if account not in self._accounts:
            return await self._beyond.overlays(account)
        until, known = self._overlays.get(account, (-math.inf, ()))
        if self._clock.now() >= until:
            with contextlib.suppress(StoreError):
                known = await self._beyond.overlays(account)
            self._overlays[account] = self._clock.now() + _OVERLAY_SECONDS, known
        return known

    async def merge_calibration(self, account: str, day: int, more: Calibration) -> None:
        """Add samples to a day's; see `CalibrationStore.merge_calibration`."""
        await self._beyond.merge_calibration(account, day, more)
        if account in self._accounts:
            with contextlib.suppress(StoreError):  # the samples are kept; what we know is a minute old
                self._calibrations[account] = await self._beyond.calibration(account)

    async def calibration(self, account: str) -> Calibration:
        """Return the samples of today and yesterday."""
        return await self._beyond.calibration(account)
