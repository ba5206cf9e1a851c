"""``GET /openapi.json``: the API's description, made once, of the types that its endpoints use."""

from __future__ import annotations

from functools import cache

from starlette.requests import Request

from bastion import __version__
from bastion.respond import Reply

__all__ = ["openapi"]


async def openapi(_request: Request) -> Reply:
    """Describe the API."""
    return _document()


@cache
def _document() -> Reply:
    from bastion.openapi import openapi_document  # nobody else pays for making it

    return Reply.json(openapi_document(__version__))
