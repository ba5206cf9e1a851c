"""The other ``/v1`` routes: relayed byte-true, not counted; and those that are refused for what a provider keeps."""

from __future__ import annotations

import re

from starlette.requests import Request

from bastion.auth import Authenticator
from bastion.endpoints.reading import deadline_of, forwarded, provider_key_of, read_body, read_overrides_of
from bastion.problems import RouteNotFound
from bastion.respond import Reply, StreamReply, connected_reply
from bastion.wire.relayed import RelayDialect, StatefulRoute, read_relayed
from contextshift.body import parse_body
from contextshift.errors import InvalidInput
from contextshift.exchange import Exchange
from contextshift.relaying import RelayBody, RelayCall, relay

__all__ = ["RELAYED", "STATEFUL", "Relayed"]

RELAYED = (
    "/responses",
    "/completions",
    "/embeddings",
    "/moderations",
    "/images/{rest:path}",
    "/audio/{rest:path}",
)
STATEFUL = (
    "/assistants",
    "/batches",
    "/containers",
    "/conversations",
    "/evals",
    "/files",
    "/fine_tuning",
    "/responses/{rest:path}",
    "/threads",
    "/uploads",
    "/vector_stores",
)
"""Roots of what lives on a provider's own storage."""
_PLAIN_PATH = re.compile(r"(/[A-Za-z0-9_-]+)+")
"""No dots and nothing encoded: what a path means to us is what it means to the provider."""


_PLAIN_QUERY = re.compile(r"[!$-~]{0,8192}")
"""Visible ASCII without quotation marks or a fragment."""


class Relayed:
    """Relays, and refuses."""

    def __init__(self, authenticate: Authenticator, exchange: Exchange, max_body: int) -> None:
        self._authenticate = authenticate
        self._exchange = exchange
        self._max_body = max_body

    async def relay(self, request: Request) -> Reply | StreamReply:
        """Pass a request on, and its answer back."""
        access = await self._authenticate(request, "call")
        path = request.url.path.removeprefix("/v1")
        if not _PLAIN_PATH.fullmatch(path):
            raise RouteNotFound(f"Unknown request URL: {request.method} {request.url.path}")
        raw = await read_body(request, self._max_body)
        body, routing = _read(raw, path, request.headers.get("content-type", ""))
        call = RelayCall(
            access=access,
            dialect=RelayDialect(path),
            body=body,
            overrides=read_overrides_of(request, routing),
            headers=forwarded(request),
            query=_query(request),
            deadline=deadline_of(request),
            provider_key=provider_key_of(request),
        )
        return await connected_reply(request.scope, request.receive, relay(self._exchange, call))

    async def refuse(self, request: Request) -> Reply:
        """Refuse a route that lives on objects a provider keeps."""
        await self._authenticate(request, "call")
        raise StatefulRoute(
            "this endpoint keeps nothing at a provider: files, batches and stored objects are not served"
        )


def _query(request: Request) -> str:
    """Return the query, as it came. Raises InvalidInput for what is not one."""
    query = request.scope["query_string"].decode("latin-1")
    if not _PLAIN_QUERY.fullmatch(query):
        raise InvalidInput("the query is too long, or is not encoded", "query", "invalid_query")
    return str(query)


def _read(raw: bytes, path: str, content_type: str) -> tuple[RelayBody, object]:
    """Return the body, and the ``routing`` it holds."""
    if content_type.lower().startswith("multipart/form-data"):
        from bastion.wire.multipart import read_form  # only forms pay for its import

        return read_form(raw, content_type, path), None
    body = parse_body(raw)
    return read_relayed(body, path), body.value.get("routing")
