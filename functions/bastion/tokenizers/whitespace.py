"""Whitespace runs so long that an engine's pattern gives up on them, found and cut to pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["PIECE", "pieces"]

PIECE = 100_000
"""Longest whitespace run given to an engine at once, in characters. Ten times that makes tiktoken 0.14 panic."""

_SPACES = re.compile(r"\s*")


def pieces(text: str) -> Iterator[str]:
    """Yield ``text`` in pieces that hold no whitespace run of more than `PIECE` characters; nearly always one."""
    start = 0
    for first, end in _long_spaces(text):
        for position in range(first + PIECE, end, PIECE):
            yield text[start:position]
            start = position
    yield text[start:] if start else text


def _long_spaces(text: str) -> Iterator[tuple[int, int]]:
    """Yield where whitespace runs of more than `PIECE` begin and end; linear, and next to nothing without any.

    Such a run covers at least one multiple of half a `PIECE`, so only those positions are looked at.
    """
    seen = 0
    for position in range(0, len(text), PIECE // 2):
        if position >= seen and text[position].isspace():
            first = position - _trailing_spaces(text[max(seen, position - PIECE) : position])
            seen = _end_of_spaces(text, position)
            if seen - first > PIECE:
                yield first, seen


def _end_of_spaces(text: str, position: int) -> int:
    match = _SPACES.match(text, position)
    return match.end() if match else position


def _trailing_spaces(text: str) -> int:
    return len(text) - len(text.rstrip())
