"""Cross-origin requests (Fetch standard, section 3.2): a page may read every header of an answer.

Which headers an answer has is its provider's doing as well, so what is exposed is named answer by answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Message, Send

from contextshift import headers

__all__ = ["ExposingCORS", "cors"]

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_ALWAYS = (
    headers.WARNING,
    headers.TRUNCATED,
    headers.TOKENS,
    headers.SETTINGS,
    headers.GENERATION_ID,
    "x-request-id",
    "x-should-retry",
    "retry-after",
    "retry-after-ms",
)
"""Exposed on every answer: a host may still put in its own error, with the same headers, in the place of ours."""
_NOT_NAMED = ("access-control-", "set-cookie", "vary")
"""What belongs to the exchange itself, or can never be exposed."""


class ExposingCORS(CORSMiddleware):
    """Answers preflights, and exposes what an answer holds to the origins that are allowed."""

    async def send(self, message: Message, send: Send, request_headers: Headers) -> None:
        """Send a message; its head with the names of its own headers."""

        async def exposing(shown: Message) -> None:
            if shown["type"] == "http.response.start":
                held = MutableHeaders(scope=shown)
                own = {name for name in held if not name.startswith(_NOT_NAMED)}
                held["access-control-expose-headers"] = ", ".join(sorted(own.union(map(str.lower, _ALWAYS))))
            await send(shown)

        await super().send(message, exposing if "origin" in request_headers else send, request_headers)


def cors(origins: Sequence[str]) -> Middleware:
    """Return the middleware for the origins of the configuration."""
    return Middleware(ExposingCORS, allow_origins=origins, allow_methods=_METHODS, allow_headers=["*"], max_age=600)
