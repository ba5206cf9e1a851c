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

_OVERLAY_SECONDS = 5.0


class ConfiguredAccounts:
    """Answers for the keys of the file, and asks the next store for every other.

    What the store lays over the catalogue holds for the file's accounts, too. It is asked for it once in 5 seconds an
    account, and the last answer stands while it cannot be reached.

    Calibration of the file's accounts is kept in that store as well, and read back after each merge: their calls
    need no store to be let in, and see what other instances have merged a minute later.

    Settings that were written through the API stand in that store, in the place of the file's: they are read once a
    start, and this process sees its own changes at once.
    """

    def __init__(
        self, by_hash: Mapping[str, Access], beyond: AccountStore, clock: Clock, settings: SettingsStore | None = None
    ) -> None:
        self._by_hash = by_hash
        self._beyond = beyond
        self._kept = settings
        self._settings: dict[str, SettingsRecord] = {}
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
        """Return an account's settings; see `SettingsStore.settings`."""
        own = next((access for access in self._by_hash.values() if access.account == account), None)
        return await (self._store().settings(account) if own is None else self._current(own))

    async def put_settings(self, account: str, settings: SettingsRecord, expected_version: int) -> bool:
        """Store settings, in the place of the file's; see `SettingsStore.put_settings`."""
        stored = await self._store().put_settings(account, settings, expected_version)
        if stored and account in self._accounts:
            self._settings[account] = settings
        return stored

    def _store(self) -> SettingsStore:
        if self._kept is None:
            raise StoreUnavailable("settings cannot be kept here")
        return self._kept

    async def _current(self, access: Access) -> SettingsRecord:
        """Return what holds for an account of the file: what was written last, else what the file says."""
        if access.account not in self._settings and self._kept is not None:
            with contextlib.suppress(StoreError):
                self._settings[access.account] = await self._kept.settings(access.account)
        known = self._settings.get(access.account, access.settings)
        return known if known.version else access.settings

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
