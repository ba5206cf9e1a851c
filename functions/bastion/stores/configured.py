"""Accounts that stand in the configuration file, in front of those that stand in a store."""

from __future__ import annotations

from collections.abc import Mapping

from contextshift.ports import Access, AccountStore

__all__ = ["ConfiguredAccounts"]


class ConfiguredAccounts:
    """Answers for the keys of the file, and asks the next store for every other."""

    def __init__(self, by_hash: Mapping[str, Access], beyond: AccountStore) -> None:
        self._by_hash = by_hash
        self._beyond = beyond

    async def access(self, key_hash: str, account_hint: str | None) -> Access | None:
        """Return the access a key gives; see `AccountStore.access`."""
        return self._by_hash.get(key_hash) or await self._beyond.access(key_hash, account_hint)
