"""Accounts' own endpoints: the address as far as it can be judged unresolved, and the account's own key for it."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from bastion.providers.addresses import is_public_host
from bastion.providers.keys import KeySource, ProviderKey
from bastion.providers.origins import origin_of
from bastion.providers.secrets import SecretKeys
from contextshift.endpoints import Endpoint, host_of
from contextshift.errors import EndpointNotAllowed, ProviderKeyOrigin, ProviderKeyRequired

__all__ = ["AccountEndpoints"]


class AccountEndpoints:
    """Opens an account's endpoint with a key of that account, and with no other.

    An account may name any secret in its settings. So a secret opens an endpoint only where it says itself, as JSON,
    both the account and the origin that it is for: naming the deployment's secret, or another account's, opens nothing.
    """

    def __init__(
        self, secrets: SecretKeys, make_transport: Callable[[], httpx.AsyncBaseTransport] | None = None
    ) -> None:
        self._secrets = secrets
        self._make_transport = _checked_transport if make_transport is None else make_transport
        self._transport: httpx.AsyncBaseTransport | None = None

    async def key(self, endpoint: Endpoint, account: str, callers: str | None) -> tuple[ProviderKey, KeySource | None]:
        """Return the key that opens an endpoint, and who must hear that it was refused.

        Raises EndpointNotAllowed before any secret is read, ProviderKeyRequired, ProviderKeyOrigin, ProviderKeyMissing,
        ProviderKeyUnavailable.
        """
        origin = _origin(endpoint.base_url)
        if callers is not None:
            return ProviderKey(callers, origin, account), None
        if endpoint.secret is None:
            raise ProviderKeyRequired
        source = self._secrets.source(endpoint.secret)
        key = await source.get()
        if (key.account, key.origin) != (account, origin):
            raise ProviderKeyOrigin("the secret does not say that it is this account's key for this endpoint")
        return key, source

    def transport(self) -> httpx.AsyncBaseTransport:
        """Return the transport of all accounts' endpoints, made when the first call needs it."""
        if self._transport is None:
            self._transport = self._make_transport()
        return self._transport

    async def aclose(self) -> None:
        """Let go of its connections."""
        if self._transport is not None:
            await self._transport.aclose()


def _checked_transport() -> httpx.AsyncBaseTransport:
    # Most deployments have no such endpoint: those that have none load no second set of authorities.
    from bastion.providers.checked import checked_transport

    return checked_transport()


def _origin(base_url: str) -> str:
    """Return the origin of an account's address. Raises EndpointNotAllowed where it cannot be a public one."""
    host = host_of(base_url)
    if host is None or not is_public_host(host) or not _is_called(base_url, host):
        raise EndpointNotAllowed
    return origin_of(base_url)


def _is_called(base_url: str, host: str) -> bool:
    """Whether the HTTP client reads the same host out of an address as we do, and can say its name."""
    try:
        url = httpx.URL(base_url)
        return bool(url.host) and url.raw_host.decode("ascii") == host.strip("[]").lower()
    except (httpx.InvalidURL, UnicodeError):
        return False
