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
from contextshift.cutting import cut_at, cut_to_fit

__all__ = ["Encoding", "Engine", "gave_up", "without_surrogates"]

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
        if not self._is_reversible(text):
            return cut_to_fit(lambda prefix: self.count(prefix) <= limit, text, 8 * limit + 64)
        return cut_at(lambda prefix: self.count(prefix) <= limit, text, self._longest(text, limit))

    def _longest(self, text: str, limit: int) -> int:
        """Return where about the longest prefix of ``limit`` tokens ends: tokens may end inside a character."""
        ids = self._first_ids(text, limit)
        if len(ids) <= limit:
            return len(text)
        return len(self._decode(ids[:limit]).decode("utf-8", "ignore"))

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


def without_surrogates(text: str) -> str:
    """Return ``text`` as tiktoken reads it: pairs joined, lone surrogates replaced.

    >>> without_surrogates("a\\ud83d\\ude00\\ud800") == "a\\U0001f600\\ufffd"
    True
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def gave_up(error: BaseException) -> bool:
    """Whether an engine panicked: pyo3's exception is no `Exception`, and has no importable name."""
    return type(error).__name__ == "PanicException"
