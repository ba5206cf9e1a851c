"""What lists read off a request: how many, and from where."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.requests import Request

from contextshift.errors import InvalidInput

__all__ = ["Paging", "read_paging", "read_query"]

MOST = 1_000
_NUMBER = re.compile(r"[0-9]{1,4}")
USUAL = 100


@dataclass(frozen=True, slots=True)
class Paging:
    """One page."""

    limit: int
    cursor: str | None


def read_paging(request: Request) -> Paging:
    """Return the page asked for. Raises InvalidInput for a limit that is no number from 1 to 1,000."""
    given = request.query_params.get("limit", str(USUAL))
    if not _NUMBER.fullmatch(given) or not 1 <= int(given) <= MOST:
        raise InvalidInput(f"limit must be a number from 1 to {MOST}", "limit", "invalid_value")
    cursor = request.query_params.get("cursor")
    if cursor is not None and not 0 < len(cursor) <= 2_000:
        raise InvalidInput("no cursor of this list", "cursor", "invalid_cursor")
    return Paging(int(given), cursor)


def read_query(request: Request, name: str, allowed: tuple[str, ...], default: str) -> str:
    """Return one of a few words. Raises InvalidInput for another."""
    given = request.query_params.get(name, default)
    if given not in allowed:
        raise InvalidInput(f"{name} must be one of {', '.join(allowed)}", name, "invalid_value")
    return given
