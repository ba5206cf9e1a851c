"""Connections to accounts' own endpoints: a name is resolved once, every address judged, one of them connected to.

httpcore hands a connection's host to its network backend and keeps the name for TLS, the Host header and the pool.
So the check stands where the connection is made, between name and address: what was judged is what is connected to,
whatever the name says a moment later, and the certificate must still be the name's. Connections of this transport were
all made so; the deployment's own, which may reach private addresses, never lends one.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpcore
import httpx

from bastion.providers.addresses import is_public_address
from bastion.providers.transports import CONNECT_TIMEOUT
from contextshift.errors import EndpointNotAllowed

__all__ = ["CheckedBackend", "Resolve", "SystemResolver", "checked_transport"]

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Return all addresses of a host, as texts. Raises OSError."""

_MOST_CONNECTIONS = 100
_MOST_IDLE = 20
_IDLE_SECONDS = 30.0
_RESOLVING = 4
"""Names that are resolved at once."""
_MOST_ADDRESSES = 4
"""Addresses of a name that are tried."""


class SystemResolver:
    """Asks the operating system for all addresses of a host, on threads of its own.

    Accounts name the hosts, and a name server that never answers holds a thread for long: it must not be one of
    those that stores are called on.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_RESOLVING, thread_name_prefix="resolver")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses. Raises OSError."""
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, ask)
        return list(dict.fromkeys(_scoped(place) for *_, place in found))


def _scoped(place: tuple[Any, ...]) -> str:
    """Return an address with the scope that a resolver gives beside it."""
    return f"{place[0]}%{place[3]}" if len(place) == 4 and place[3] and "%" not in place[0] else str(place[0])


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to public addresses only."""

    def __init__(self, resolve: Resolve | None = None, network: httpcore.AsyncNetworkBackend | None = None) -> None:
        self._resolve = SystemResolver() if resolve is None else resolve
        self._network = httpcore.AnyIOBackend() if network is None else network

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to an address of the host. Raises EndpointNotAllowed where any of them is not public."""
        loop = asyncio.get_running_loop()
        until = loop.time() + (CONNECT_TIMEOUT if timeout is None else timeout)
        addresses = await self._checked(host, port, until - loop.time())
        failure: Exception = httpcore.ConnectError("the name has no address")
        for position, address in enumerate(addresses):
            share = (until - loop.time()) / (len(addresses) - position)
            try:
                return await self._network.connect_tcp(address, port, max(0.0, share), local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: a socket file is no public address."""
        raise EndpointNotAllowed

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def _checked(self, host: str, port: int, seconds: float) -> Sequence[str]:
        """Return the first few addresses of a host, once all of them are judged."""
        try:
            async with asyncio.timeout(seconds):
                addresses = await self._resolve(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout("the name was not resolved in time") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError("the name cannot be resolved") from error
        if not all(map(is_public_address, addresses)):
            raise EndpointNotAllowed
        return addresses[:_MOST_ADDRESSES]


class _CheckedTransport(httpx.AsyncHTTPTransport):
    """The transport of httpx, over a pool that makes its connections through a backend of ours."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend, tls: Any) -> None:
        super().__init__(verify=tls, trust_env=False)
        # httpx passes no backend on; its transport asks of a pool no more than to handle requests and to close.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=_MOST_CONNECTIONS,
            max_keepalive_connections=_MOST_IDLE,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=backend,
        )


def checked_transport(backend: httpcore.AsyncNetworkBackend | None = None, tls: Any = None) -> httpx.AsyncBaseTransport:
    """Make the transport of all accounts' own endpoints.

    ``tls`` is an `ssl.SSLContext`; by default the public authorities are trusted.
    """
    context = httpx.create_ssl_context(trust_env=False) if tls is None else tls
    return _CheckedTransport(CheckedBackend() if backend is None else backend, context)
