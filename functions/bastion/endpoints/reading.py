"""What endpoints read off a request: its body within the stated size, its deadline, its ``include=``."""

from __future__ import annotations

import re

from starlette.requests import Request

from bastion.problems import BodyTooLarge
from bastion.wire.openai_chat import ROUTING_HEADER, OpenAIChat, read_messages, read_overrides
from contextshift.audit import INCLUDES
from contextshift.body import JsonBody, parse_body
from contextshift.errors import InvalidInput, InvalidSetting
from contextshift.planner import Call
from contextshift.ports import Access
from contextshift.settings import Overrides

__all__ = [
    "FORWARDED",
    "call_of",
    "deadline_of",
    "forwarded",
    "provider_key_of",
    "read_body",
    "read_call",
    "read_include",
    "read_json",
    "read_overrides_of",
]

FORWARDED = ("content-type", "accept", "idempotency-key", "openai-beta", "x-client-request-id")
"""Request headers that go upstream; never credentials, cookies, organisation or telemetry."""
PROVIDER_KEY_HEADER = "X-Bastion-Provider-Key"
"""The caller's own key, alone, for the provider of the model that is asked for: no other provider ever gets it."""
_PROVIDER_KEY = re.compile(r"[\x21-\x7e]{1,4096}\Z")
_ENDING = 1.5
"""Seconds before a host's deadline by which an answer of our own must be on its way."""
_OPENAI_CHAT = OpenAIChat()


async def read_body(request: Request, limit: int) -> bytes:
    """Read a body of at most ``limit`` bytes. Raises BodyTooLarge."""
    too_large = BodyTooLarge(f"the body is over {limit} bytes")
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > limit:
            raise too_large
    return bytes(raw)


async def read_json(request: Request, limit: int) -> JsonBody:
    """Read and parse a body of at most ``limit`` bytes. Raises BodyTooLarge, InvalidBody."""
    return parse_body(await read_body(request, limit))


def read_overrides_of(request: Request, routing: object) -> Overrides:
    """Return a request's settings: what its body says, else its header. Raises InvalidSetting."""
    given = request.headers.getlist(ROUTING_HEADER)
    if len(given) > 1:
        raise InvalidSetting("may be given once", ROUTING_HEADER)
    return read_overrides(routing, given[0] if given else None)


async def read_call(request: Request, access: Access, limit: int) -> Call:
    """Read a chat completion. Raises InvalidInput for anything that is wrong with it."""
    body = await read_json(request, limit)
    return call_of(request, access, body, read_overrides_of(request, body.value.get("routing")))


def call_of(request: Request, access: Access, body: JsonBody, overrides: Overrides) -> Call:
    """Return the call that a chat completion's body asks for. Raises InvalidInput."""
    return Call(
        access=access,
        dialect=_OPENAI_CHAT,
        body=body,
        messages=read_messages(body),
        overrides=overrides,
        headers=forwarded(request),
        deadline=deadline_of(request),
        provider_key=provider_key_of(request),
    )


def provider_key_of(request: Request) -> str | None:
    """Return the caller's own key. An empty one is refused: the caller means to use its own, and not ours."""
    given = request.headers.getlist(PROVIDER_KEY_HEADER)
    if not given:
        return None
    if len(given) > 1 or not _PROVIDER_KEY.match(given[0]):
        message = "must be one key, of visible ASCII characters and without a scheme"
        raise InvalidInput(message, PROVIDER_KEY_HEADER, "invalid_provider_key")
    return given[0]


def read_include(request: Request, default: frozenset[str]) -> frozenset[str]:
    """Return what ``include=`` selects: names with commas, or the parameter repeated."""
    given = request.query_params.getlist("include")
    if not given:
        return default
    names = {name.strip() for value in given for name in value.split(",") if name.strip()}
    unknown = sorted(names - INCLUDES)
    if unknown:
        raise InvalidInput(f"include may name {' and '.join(sorted(INCLUDES))}", "include", "unknown_value")
    return frozenset(names)


def forwarded(request: Request) -> dict[str, str]:
    """Return the headers that go upstream with a request's body."""
    return {name: request.headers[name] for name in FORWARDED if name in request.headers}


def deadline_of(request: Request) -> float | None:
    """Return the epoch second by which an answer must be on its way, None where the host sets none."""
    deadline = request.scope.get("bastion.deadline")
    return None if deadline is None else float(deadline) - _ENDING
