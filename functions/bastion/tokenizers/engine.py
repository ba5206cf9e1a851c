"""The seam between counting and an engine, and what every engine shares: cutting, and texts no engine would take.

`Encoding` is the seam: splintr stands behind it, and tiktoken where splintr may differ or is not there.
Text is always ordinary text: what looks like a control token is counted as its characters.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from bastion.tokenizers.whitespace import PIECE, pieces
from contextshift.pieces import near_edge, whole_characters

__all__ = ["Encoding", "Engine", "cut_at", "gave_up", "longest_prefix", "without_surrogates"]

_SURROGATE = re.compile("[\ud800-\udfff]")


class Encoding(Protocol):
    """Counts and cuts ordinary text. Safe across threads; never raises on any `str`."""

    name: str

    def count(self, text: str) -> int:
        """Return the tokens of ``text``."""

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most ``limit`` tokens, the longest but for a character or two."""

    def count_rewritten(self, text: str, rewrite: Callable[[str], str]) -> int:
        """Return the tokens of ``rewrite(text)``; ``rewrite`` is one pure function for the life of the process."""


class Engine(ABC):
    """An `Encoding` by a byte-pair engine that gives the ids of a text and the bytes of ids."""

    name: str

    @abstractmethod
    def _encode(self, text: str) -> list[int]:
        """Return the ids of ``text``; may panic on a text that is too much for its pattern."""

    @abstractmethod
    def _decode(self, ids: list[int]) -> bytes:
        """Return the bytes that ``ids`` stand for."""

    def _is_reversible(self, text: str) -> bool:
        """Whether the bytes of a text's ids are the text's own bytes."""
        return not _SURROGATE.search(text)

    def count(self, text: str) -> int:
        """Return the tokens of ``text``."""
        return self._length(text) if len(text) <= PIECE else sum(map(self._length, pieces(text)))

    def count_rewritten(self, text: str, rewrite: Callable[[str], str]) -> int:
        """Return the tokens of ``rewrite(text)``."""
        return self.count(rewrite(text))

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most ``limit`` tokens, to the end of a sentence or a word where one is near."""
        if limit <= 0:
            return ""
        return cut_at(self.count, text, limit, self._longest(text, limit))

    def _longest(self, text: str, limit: int) -> int:
        if not self._is_reversible(text):
            return longest_prefix(self.count, text, limit)
        ids = self._first_ids(text, limit)
        if len(ids) <= limit:
            return len(text)
        # A prefix may merge otherwise than it did with what followed, so the cut is counted again.
        for kept in range(limit, 0, -1):
            # Tokens may end inside a character; what is left of it is dropped.
            end = whole_characters(text, len(self._decode(ids[:kept]).decode("utf-8", "ignore")))
            if self.count(text[:end]) <= limit:
                return end
        return 0

    def _first_ids(self, text: str, limit: int) -> list[int]:
        """Return ids of the beginning of ``text``: more than ``limit`` of them, or all."""
        window = 8 * limit + 64
        while True:
            ids = [id_ for piece in pieces(text[:window]) for id_ in self._ids(piece)]
            if len(ids) > limit or window >= len(text):
                return ids
            window *= 4

    def _length(self, text: str) -> int:
        return len(self._ids(text))

    def _ids(self, text: str) -> list[int]:
        try:
            return self._encode(text)
        except BaseException as error:
            if not gave_up(error) or len(text) < 2:
                raise
        middle = len(text) // 2  # a pattern that gave up on this much text will not on less
        return self._ids(text[:middle]) + self._ids(text[middle:])


def longest_prefix(count: Callable[[str], int], text: str, limit: int) -> int:
    """Return where the longest prefix of whole characters ends that ``count`` puts at ``limit`` or less."""
    low, high = 0, min(len(text), 8 * limit + 64)
    while count(text[:high]) <= limit:
        if high == len(text):
            return high
        low, high = high, min(len(text), 4 * high)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if count(text[:middle]) <= limit else (low, middle)
    end = whole_characters(text, low)
    return end if count(text[:end]) <= limit else low


def cut_at(count: Callable[[str], int], text: str, limit: int, end: int) -> str:
    """Return ``text`` up to ``end``, or to the end of a sentence or word before it where one is near."""
    edge = near_edge(text, end)
    return text[: edge if edge == end or count(text[:edge]) <= limit else end]


def without_surrogates(text: str) -> str:
    """Return ``text`` as tiktoken reads it: pairs joined, lone surrogates replaced.

    >>> without_surrogates("a\\ud83d\\ude00\\ud800") == "a\\U0001f600\\ufffd"
    True
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def gave_up(error: BaseException) -> bool:
    """Whether an engine panicked: pyo3's exception is no `Exception`, and has no importable name."""
    return type(error).__name__ == "PanicException"
