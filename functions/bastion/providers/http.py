"""An OpenAI-compatible upstream over httpx: bytes out, bytes in, its errors as ours.

Nothing is decoded: the answer is asked for uncompressed, and its raw chunks are handed on. Redirects are
never followed: a credential goes to its one origin.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from contextshift.errors import ProviderBroken, ProviderTimeout, ProviderUnreachable
from contextshift.ports import ProviderAnswer, ProviderCall

__all__ = ["HttpProvider", "new_client"]

CONNECT_TIMEOUT = 5.0
"""Seconds to make a connection; how long an answer may take is the call's deadline."""


def new_client() -> httpx.AsyncClient:
    """Make the one client of a process: it keeps connections alive between calls and reads no environment."""
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=50, keepalive_expiry=60)
    timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT)
    # One client serves every account: a cookie that one call brought must never go out with another.
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    return httpx.AsyncClient(
        cookies=no_cookies, limits=limits, timeout=timeout, follow_redirects=False, trust_env=False
    )


class HttpProvider:
    """Sends to one base URL with one credential."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._base_url = base_url.rstrip("/")
        self._headers = {"accept-encoding": "identity", "user-agent": "bastion", **(headers or {})}
        self._query = dict(query or {})

    async def send(self, call: ProviderCall) -> ProviderAnswer:
        """Send a call; return once the head of the answer is there."""
        headers = {"content-type": "application/json", **call.headers, **self._headers}
        request = self._client.build_request(
            call.method,
            self._base_url + call.path,
            content=call.body,
            headers=[(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()],
            params=self._query or None,
        )
        try:
            return _HttpAnswer(await self._client.send(request, stream=True))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise ProviderUnreachable("the provider cannot be reached") from error
        except httpx.TimeoutException as error:
            raise ProviderTimeout("the provider did not answer in time") from error
        except httpx.HTTPError as error:
            raise ProviderBroken("the provider's answer broke off") from error


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
