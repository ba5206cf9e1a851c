"""The HTTP client of a process towards upstreams: what every one of its requests is kept from doing."""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

__all__ = ["CONNECT_TIMEOUT", "new_client"]

CONNECT_TIMEOUT = 5.0
"""Seconds to make a connection; how long an answer may take is the call's deadline."""


def new_client(transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """Make a client that keeps connections alive between calls, follows no redirect and reads no environment."""
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=50, keepalive_expiry=60)
    timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT)
    # One client serves every account: a cookie that one call brought must never go out with another.
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    return httpx.AsyncClient(
        cookies=no_cookies,
        limits=limits,
        timeout=timeout,
        transport=transport,
        follow_redirects=False,
        trust_env=False,
    )
