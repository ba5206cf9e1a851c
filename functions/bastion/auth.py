"""API key to account: one read, then a judgement."""

from __future__ import annotations

from starlette.requests import Request

from contextshift.errors import ContextShiftError
from contextshift.keys import account_hint, hash_key
from contextshift.ports import Access, AccountStore, Clock

__all__ = ["Authenticator", "KeyRefused", "ScopeMissing"]


class KeyRefused(ContextShiftError):
    """Raise when a request brings no key, or one that is unknown, revoked or expired: we do not say which."""

    code = "INVALID_API_KEY"


class ScopeMissing(ContextShiftError):
    """Raise when a good key may not do this."""

    code = "SCOPE_MISSING"

    def __init__(self, scopes: tuple[str, ...]) -> None:
        super().__init__(f"the API key needs the scope {' or '.join(scopes)}")


class Authenticator:
    """Knows who calls. Settings are read anew with every call, so a change holds for the next one."""

    def __init__(self, accounts: AccountStore, clock: Clock) -> None:
        self._accounts = accounts
        self._clock = clock

    async def __call__(self, request: Request, *scopes: str) -> Access:
        """Return the caller's access, given any of ``scopes``. Raises KeyRefused, ScopeMissing, StoreUnavailable."""
        key = _bearer(request)
        access = await self._accounts.access(hash_key(key), account_hint(key))
        if access is None or access.key.off or self._expired(access):
            raise KeyRefused("the API key is not valid")
        if not access.key.scopes.intersection(scopes):
            raise ScopeMissing(scopes)
        return access

    def _expired(self, access: Access) -> bool:
        return access.key.expires is not None and access.key.expires <= self._clock.now()


def _bearer(request: Request) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise KeyRefused("no API key: send it as 'Authorization: Bearer …'")
    return key.strip()
