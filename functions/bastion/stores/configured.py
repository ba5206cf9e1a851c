"""Accounts that stand in the configuration file, in front of those that stand in a store."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import replace

from contextshift.calibration import Calibration
from contextshift.errors import StoreError, StoreUnavailable
from contextshift.ports import Access, AccountStore, Clock, SettingsRecord, SettingsStore

__all__ = ["ConfiguredAccounts"]

_SECONDS = 5.0
"""How old what is known of a file's account may be; see `ConfiguredAccounts`."""


class ConfiguredAccounts:
    """Answers for the keys of the file, and asks the next store for every other.

    What the store lays over the catalogue holds for the file's accounts, too. It is asked for it once in 5 seconds an
    account, and the last answer stands while it cannot be reached.

    Calibration of the file's accounts is kept in that store as well, and read back after each merge: their calls
    need no store to be let in, and see what other instances have merged a minute later.

    Settings that were written through the API stand in that store, in the place of the file's, and are read from it
    once in ``seconds``: 5, or 0 where each call reads its settings anyway. This process sees its own changes at once.
    Where they cannot be read nobody is let in: the file's would be other rules than those that hold.
    """

    def __init__(
        self,
        by_hash: Mapping[str, Access],
        beyond: AccountStore,
        clock: Clock,
        settings: SettingsStore | None = None,
        seconds: float = _SECONDS,
    ) -> None:
        self._by_hash = by_hash
        self._beyond = beyond
        self._kept = settings
        self._seconds = seconds
        self._settings: dict[str, tuple[float, SettingsRecord]] = {}
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
        settings = await self._current(access)
        return replace(access, calibration=calibration, overlays=overlays, settings=settings)

    async def settings(self, account: str) -> SettingsRecord:
        """Return an account's settings as they are now; see `SettingsStore.settings`."""
        own = next((access for access in self._by_hash.values() if access.account == account), None)
        return await (self._store().settings(account) if own is None else self._read(own))

    async def put_settings(self, account: str, settings: SettingsRecord, expected_version: int) -> bool:
        """Store settings, in the place of the file's; see `SettingsStore.put_settings`."""
        stored = await self._store().put_settings(account, settings, expected_version)
        self._settings.pop(account, None)  # whoever wrote last: what is known is too old
        return stored

    def _store(self) -> SettingsStore:
        if self._kept is None:
            raise StoreUnavailable("settings cannot be kept here")
        return self._kept

    async def _current(self, access: Access) -> SettingsRecord:
        """Return what holds for an account of the file, as old as it may be. Raises StoreUnavailable."""
        until, known = self._settings.get(access.account, (-math.inf, access.settings))
        return known if self._clock.now() < until else await self._read(access)

    async def _read(self, access: Access) -> SettingsRecord:
        """Return what was written last for an account of the file, else what the file says."""
        if self._kept is None:
            return access.settings
        stored = await self._kept.settings(access.account)
        current = stored if stored.version else access.settings
        self._settings[access.account] = self._clock.now() + self._seconds, current
        return current

    async def overlays(self, account: str) -> tuple[str, ...]:
        """Return what stands over the catalogue for an account; see `AccountStore.overlays`."""
        if account not in self._accounts:
            return await self._beyond.overlays(account)
        until, known = self._overlays.get(account, (-math.inf, ()))
        if self._clock.now() >= until:
            with contextlib.suppress(StoreError):
                known = await self._beyond.overlays(account)
            self._overlays[account] = self._clock.now() + _SECONDS, known
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
