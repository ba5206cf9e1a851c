"""An error answer must not quote the key that it was sent: some upstreams do, and no key goes to a client.

Only what is as long as a key really is counts as one: local servers are opened by a word such as ``ollama``, which an
error may well hold.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from urllib.parse import quote

from contextshift.errors import ProviderKeyQuoted
from contextshift.ports import ProviderAnswer

__all__ = ["SHORTEST_KEY", "unquoted"]

SHORTEST_KEY = 16
"""Characters of a key from which on it is looked for."""
_READ_FIRST = 1024 * 1024
"""Bytes that are read before the head goes on, so that the answer can still become another one."""


async def unquoted(answer: ProviderAnswer, key: str) -> ProviderAnswer:
    """Return an error answer that is known not to quote a key, or breaks off where it does.

    Raises ProviderKeyQuoted, or what reading raises; the answer is closed then.
    """
    if len(key) < SHORTEST_KEY:
        return answer
    spellings = _spellings(key)
    if any(spelling in value.encode("latin-1") for _, value in answer.headers for spelling in spellings):
        await answer.aclose()
        raise ProviderKeyQuoted(answer.status)
    quiet = _quiet(answer, spellings)
    first: list[bytes] = []
    size = 0
    try:
        async for chunk in quiet:
            first.append(chunk)
            size += len(chunk)
            if size > _READ_FIRST:
                break
    except BaseException:
        await answer.aclose()
        raise
    return _ReadAhead(answer, first, quiet)


class _ReadAhead:
    """An answer of which some was read."""

    def __init__(self, answer: ProviderAnswer, first: list[bytes], rest: AsyncIterator[bytes]) -> None:
        self._answer = answer
        self._first = first
        self._rest = rest
        self.status = answer.status
        self.headers: Sequence[tuple[str, str]] = answer.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield what was read, and the rest as it arrives."""
        for chunk in self._first:
            yield chunk
        async for chunk in self._rest:
            yield chunk

    async def aclose(self) -> None:
        """Close the answer."""
        await self._answer.aclose()


async def _quiet(answer: ProviderAnswer, spellings: Sequence[bytes]) -> AsyncIterator[bytes]:
    """Yield a body, always less what may be the beginning of a key. Raises ProviderKeyQuoted."""
    kept = max(map(len, spellings)) - 1
    held = b""
    async for chunk in answer.chunks():
        held += chunk
        if any(spelling in held for spelling in spellings):
            raise ProviderKeyQuoted(answer.status)
        if len(held) > kept:
            yield held[:-kept]
            held = held[-kept:]
    if held:
        yield held


def _spellings(key: str) -> Sequence[bytes]:
    """Return how a key may be written in an answer: as it is, in JSON, in a URL."""
    in_json = json.dumps(key)[1:-1]
    return sorted({one.encode() for one in (key, in_json, in_json.replace("/", "\\/"), quote(key, safe=""))})
