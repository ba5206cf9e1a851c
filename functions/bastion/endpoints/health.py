"""``GET /health``: liveness, for load balancers and people; no account, no store."""

from __future__ import annotations

from starlette.requests import Request

from bastion import __version__
from bastion.respond import Reply

__all__ = ["health"]


async def health(_request: Request) -> Reply:
    """Say that the process serves."""
    return Reply.json({"status": "ok", "version": __version__})
