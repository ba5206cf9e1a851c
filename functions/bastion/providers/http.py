"""An OpenAI-compatible upstream over httpx: bytes out, bytes in, its errors as ours.

Nothing is decoded: the answer is asked for uncompressed, and its raw chunks are handed on. Redirects are
never followed: a credential goes to its one origin. Whose key goes where is decided here and nowhere else::

    call brings                      sent to                     opened by
    nothing                          the provider's base URL     the deployment's key
    a key                            the provider's base URL     that key
    an endpoint of the account       the account's base URL      the account's key, from its secret
    an endpoint and a key            the account's base URL      that key
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_plus, urlencode

import httpx

from bastion.providers.accounts import AccountEndpoints
from bastion.providers.keys import FixedKey, KeySource, ProviderKey
from bastion.providers.origins import origin_of
from bastion.providers.quoting import unquoted
from bastion.providers.transports import CONNECT_TIMEOUT
from contextshift.errors import (
    EndpointNotAllowed,
    ProviderBroken,
    ProviderError,
    ProviderKeyMissing,
    ProviderKeyOrigin,
    ProviderKeyQuoted,
    ProviderKeyUnavailable,
    ProviderTimeout,
    ProviderUnreachable,
)
from contextshift.ports import EventLog, ProviderAnswer, ProviderCall

__all__ = ["HttpProvider", "Upstream"]

_CONNECT_PAUSES = (0.1, 0.3)
"""Seconds, give or take a half, before a connection that failed is tried again: nothing was sent by then."""
_CONNECT_WITHIN = 6.0
"""Seconds after the first try in which another may begin."""
_TO_PUT_RIGHT = (EndpointNotAllowed, ProviderKeyMissing, ProviderKeyOrigin, ProviderKeyQuoted, ProviderKeyUnavailable)
_WITH_OUR_KEY_ONLY = frozenset(
    ("authorization", "api-key", "x-api-key", "cookie", "proxy-authorization", "openai-organization", "openai-project")
)
"""Configured headers that say who the deployment is: they do not go with a key that is not the deployment's."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """What is configured of an upstream."""

    name: str
    base_url: str
    auth: str = "bearer"
    """How a key is sent: ``bearer``, or ``header:NAME``."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class _Route:
    """Where one call goes, and what opens it."""

    transport: httpx.AsyncBaseTransport
    base_url: str
    key: ProviderKey | None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    source: KeySource | None = None
    """Who must hear that the key was refused."""
    patience: float | None = None
    """Seconds to wait for one of a crowded pool's connections; None: as long as the call may take."""


class HttpProvider:
    """Sends to one upstream, or to what an account has in its place."""

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport,
        upstream: Upstream,
        keys: KeySource | None = None,
        accounts: AccountEndpoints | None = None,
        log: EventLog | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._transport = transport
        self._upstream = upstream
        self._origin = origin_of(upstream.base_url)
        self._keys = FixedKey(None) if keys is None else keys
        self._accounts = accounts
        self._log = log
        self._jitter = jitter
        self._headers = {name.lower(): value for name, value in upstream.headers.items()}
        self._neutral = {name: value for name, value in self._headers.items() if name not in _WITH_OUR_KEY_ONLY}

    async def send(self, call: ProviderCall) -> ProviderAnswer:
        """Send a call; return once the head of the answer is there."""
        try:
            route = await self._routed(call)
            response = await self._connected(route.transport, self._request(call, route))
            return await self._answer(response, route)
        except ProviderError as error:
            self._note(call, error)
            raise

    async def _answer(self, response: httpx.Response, route: _Route) -> ProviderAnswer:
        """Return the answer, of an error one that does not quote its key. Raises a ProviderError."""
        answer, key = _HttpAnswer(response), route.key
        if answer.status == 401 and route.source is not None and key is not None:
            route.source.refused(key)
        return answer if answer.status < 400 or key is None else await unquoted(answer, key.text)

    async def _routed(self, call: ProviderCall) -> _Route:
        """Decide where a call goes and what opens it. Raises a ProviderError, ProviderKeyRequired."""
        if call.endpoint is not None:
            if self._accounts is None:
                raise EndpointNotAllowed
            key, source = await self._accounts.key(call.endpoint, call.account, call.key)
            transport = self._accounts.transport()
            return _Route(transport, call.endpoint.base_url, key, source=source, patience=CONNECT_TIMEOUT)
        base_url, query = self._upstream.base_url, self._upstream.query
        if call.key is not None:
            return _Route(self._transport, base_url, ProviderKey(call.key, self._origin), self._neutral, query)
        ours = await self._keys.get()
        if ours is not None and ours.account is not None:
            raise ProviderKeyOrigin("the provider's key is an account's own")
        bound = None if ours is None else ours.for_origin(self._origin)
        return _Route(self._transport, base_url, bound, self._headers, query, self._keys)

    def _request(self, call: ProviderCall, route: _Route) -> httpx.Request:
        headers = {"accept": "*/*", "content-type": "application/json"}
        headers |= {name.lower(): text for name, text in call.headers.items()}
        headers |= {"accept-encoding": "identity", "user-agent": "bastion", **route.headers}
        if route.key is not None:
            headers |= self._opened(route.key, route.base_url)
        waits = {"connect": CONNECT_TIMEOUT, "pool": route.patience}
        return httpx.Request(
            call.method,
            route.base_url.rstrip("/") + call.path + _query(call.query, route.query),
            content=call.body,
            headers=[(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()],
            extensions={"timeout": waits},
        )

    def _opened(self, key: ProviderKey, base_url: str) -> dict[str, str]:
        """Return the header with a key: the one place where a key is put into a request."""
        text = key.for_origin(origin_of(base_url)).text
        if self._upstream.auth == "bearer":
            return {"authorization": f"Bearer {text}"}
        return {self._upstream.auth.removeprefix("header:").lower(): text}

    async def _connected(self, transport: httpx.AsyncBaseTransport, request: httpx.Request) -> httpx.Response:
        """Send a request, trying again where no connection could be made. Raises a ProviderError."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + _CONNECT_WITHIN
        for pause in (*_CONNECT_PAUSES, None):
            try:
                return await transport.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if pause is None or loop.time() + 2 * pause > latest:
                    raise ProviderUnreachable("the provider cannot be reached") from error
                await asyncio.sleep(pause * (0.5 + self._jitter()))
            except httpx.PoolTimeout as error:
                raise ProviderUnreachable("the provider cannot be reached: too many calls at once") from error
            except httpx.TimeoutException as error:
                raise ProviderTimeout("the provider did not answer in time") from error
            except httpx.HTTPError as error:
                raise ProviderBroken("the provider's answer broke off") from error
        raise AssertionError("the last try returns or raises")

    def _note(self, call: ProviderCall, error: ProviderError) -> None:
        """Leave an event of what an operator, or an account, must put right; never with a key in it."""
        if self._log is None or not isinstance(error, _TO_PUT_RIGHT):
            return
        self._log.emit(
            {
                "event": "provider-refused",
                "provider": self._upstream.name,
                "account": call.account,
                "code": error.code,
                "cause": str(error),
                "own_endpoint": call.endpoint is not None,
            }
        )


def _query(given: str, configured: Mapping[str, str]) -> str:
    """Return the query of a URL with its question mark: the caller's as it came, then what is configured."""
    parts = [part for part in given.split("&") if part and unquote_plus(part.partition("=")[0]) not in configured]
    parts += [urlencode(configured)] if configured else []
    return "?" + "&".join(parts) if parts else ""


class _HttpAnswer:
    """An answer of httpx, as the port wants it."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Sequence[tuple[str, str]] = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers.raw
        ]

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield raw chunks as they arrive."""
        try:
            async for chunk in self._response.aiter_raw():
                yield chunk
        except httpx.TimeoutException as error:
            raise ProviderTimeout("the provider stopped answering") from error
        except httpx.HTTPError as error:
            raise ProviderBroken("the provider's answer broke off") from error

    async def aclose(self) -> None:
        """Give the connection back, or close it where the body was not read."""
        await self._response.aclose()
