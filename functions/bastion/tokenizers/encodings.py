"""Byte-pair encodings behind one small seam: count a text, cut a text. One cached encoding a vocabulary.

splintr counts (o200k is ready in 40 ms, tiktoken's takes 330); tiktoken stands in for it on the texts where the
two may differ, on what splintr refuses, and where splintr is not there. Nothing is imported or loaded before the
first count that needs it, and every count is remembered by the text's hash: counting is the service's hot loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from bastion.tokenizers.engine import Encoding
from bastion.tokenizers.memo import CountMemo
from bastion.tokenizers.vocab import VOCABULARIES, find, load_ranks

__all__ = ["CountMemo", "Encoding", "LazyEncoding", "has_encoding", "shared_encoding"]


class LazyEncoding:
    """`Encoding` that is made at its first use, once, by whichever thread comes first."""

    def __init__(self, name: str, make: Callable[[], Encoding]) -> None:
        self.name = name
        self._make = make
        self._made: Encoding | None = None
        self._lock = threading.Lock()
        self._memo = CountMemo()

    def count(self, text: str) -> int:
        """Return the tokens of ``text``, remembered by its hash."""
        return self._memo.count(text, self._encoded)

    def count_rewritten(self, text: str, rewrite: Callable[[str], str]) -> int:
        """Return the tokens of ``rewrite(text)``, remembered by the hash of ``text``."""
        return self._memo.count_rewritten(text, rewrite, self._encoded)

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most ``limit`` tokens."""
        return self._encoding.cut(text, limit)

    def _encoded(self, text: str) -> int:
        return (self._made or self._encoding).count(text)

    @property
    def _encoding(self) -> Encoding:
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
        return self._made


_shared: dict[tuple[str, tuple[Path, ...]], LazyEncoding] = {}
_shared_lock = threading.Lock()


def shared_encoding(name: str, folders: Sequence[Path]) -> LazyEncoding:
    """Return the process's one encoding of a vocabulary; nothing is imported or read before it counts.

    ``folders`` are where tiktoken's vocabularies are looked for, should they be needed.
    """
    key = (name, tuple(folders))
    with _shared_lock:
        if key not in _shared:
            _shared[key] = LazyEncoding(name, lambda: _make(*key))
        return _shared[key]


def has_encoding(name: str, folders: Sequence[Path]) -> bool:
    """Whether `shared_encoding` could count: splintr is installed, or the vocabulary is in one of ``folders``."""
    return _fast_is_there() or (name in VOCABULARIES and find(name, folders) is not None)


@cache
def _fast_is_there() -> bool:
    return PathFinder.find_spec("splintr") is not None


def _make(name: str, folders: tuple[Path, ...]) -> Encoding:
    exact = _tiktoken(name, folders) if name in VOCABULARIES and find(name, folders) else None
    try:
        from bastion.tokenizers.splintr_engine import SplintrEncoding

        return SplintrEncoding(name, exact)
    except ImportError:
        if exact is None:
            raise
        return exact


def _tiktoken(name: str, folders: tuple[Path, ...]) -> LazyEncoding:
    """Return tiktoken's encoding; importing it and reading its vocabulary wait for a text that needs it."""

    def make() -> Encoding:
        from bastion.tokenizers.tiktoken_engine import TiktokenEncoding

        return TiktokenEncoding(name, load_ranks(name, folders))

    return LazyEncoding(name, make)
