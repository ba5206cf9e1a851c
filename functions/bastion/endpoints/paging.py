"""What lists read off a request: how many, from where, and of what."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from contextshift.errors import InvalidInput
from contextshift.ports import Access

__all__ = ["Paging", "read_paging", "read_queries", "read_query"]

MOST = 1_000
_NUMBER = re.compile(r"[0-9]{1,4}")
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_MARK = 16
USUAL = 100


@dataclass(frozen=True, slots=True)
class Paging:
    """One page of one list."""

    limit: int
    cursor: str | None
    """The store's own."""
    of: tuple[str, ...]
    """Which list of whose it is: a cursor is of no other."""

    def shown(self, items: Sequence[Any], cursor: str | None) -> dict[str, Any]:
        """Return the page as it is answered, with the store's cursor made one of this list."""
        return {"data": items, "next_cursor": None if cursor is None else f"{cursor}~{_mark(self.of, cursor)}"}


def read_queries(request: Request, *names: str) -> Mapping[str, str]:
    """Return a list's query parameters, also those in camelCase. Raises InvalidInput for an unknown or repeated one.

    A filter that is misspelt must not pass for none: the answer would hold what was not asked for.
    """
    found: dict[str, str] = {}
    for spelling, value in request.query_params.multi_items():
        name = _CAMEL.sub(lambda match: "_" + match[1].lower(), spelling)
        if name not in names:
            told = f"there is no such parameter; there are {', '.join(sorted(names))}"
            raise InvalidInput(told, spelling[:200], "unknown_parameter")
        if name in found:
            raise InvalidInput("given twice", spelling, "repeated_key")
        found[name] = value
    return found


def read_paging(queries: Mapping[str, str], access: Access, *of: str) -> Paging:
    """Return the page asked for of an account's list, which ``of`` tells from all others.

    Raises InvalidInput for a limit that is no number from 1 to 1,000, and for a cursor of another list.
    """
    given = queries.get("limit", str(USUAL))
    if not _NUMBER.fullmatch(given) or not 1 <= int(given) <= MOST:
        raise InvalidInput(f"limit must be a number from 1 to {MOST}", "limit", "invalid_value")
    own = (access.account, *of)
    marked = queries.get("cursor")
    if marked is None:
        return Paging(int(given), None, own)
    cursor, _, mark = marked.rpartition("~")
    if not 0 < len(cursor) <= 2_000 or mark != _mark(own, cursor):
        raise InvalidInput("no cursor of this list", "cursor", "invalid_cursor")
    return Paging(int(given), cursor, own)


def _mark(of: tuple[str, ...], cursor: str) -> str:
    """Return what tells a list's cursors from another's. No secret: a store reads nothing but the caller's own."""
    return hashlib.sha256("\0".join((*of, cursor)).encode("utf-8", "replace")).hexdigest()[:_MARK]


def read_query(queries: Mapping[str, str], name: str, allowed: tuple[str, ...], default: str) -> str:
    """Return one of a few words. Raises InvalidInput for another."""
    given = queries.get(name, default)
    if given not in allowed:
        raise InvalidInput(f"{name} must be one of {', '.join(allowed)}", name, "invalid_value")
    return given
