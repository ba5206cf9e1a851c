"""Counts that are remembered: a client sends the same long history with each of its requests."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["CountMemo"]


class CountMemo:
    """Counts of texts by their hash: a client sends the same long history with each of its requests.

    No text is kept, only two numbers each: at most ``size`` pairs, some 8 MB of them by default. They stand in
    two generations. A full young one becomes the old one, and what is asked for again moves to the young one:
    close to least recently used, without a lock or an order to keep (a race can only forget). Python's own hash
    of a text has 64 bits and a secret of the process: the chance of a wrong answer is 1 in 2**48 a new text.
    """

    def __init__(self, size: int = 1 << 16, least: int = 16) -> None:
        self._half, self._least = max(1, size // 2), least
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def __len__(self) -> int:
        """Return how many counts are remembered."""
        return len(self._young) + len(self._old)

    def count(self, text: str, count: Callable[[str], int]) -> int:
        """Return ``count(text)``, from memory where the text was counted lately and is not shorter than ``least``."""
        if len(text) < self._least:
            return count(text)
        key = hash(text)
        tokens = self._young.get(key)
        if tokens is None:
            tokens = self._old.get(key)
            tokens = self._keep(key, count(text) if tokens is None else tokens)
        return tokens

    def count_rewritten(self, text: str, rewrite: Callable[[str], str], count: Callable[[str], int]) -> int:
        """Return ``count(rewrite(text))``, from memory where the same was asked lately."""
        key = hash((rewrite, text))
        tokens = self._young.get(key)
        if tokens is None:
            tokens = self._old.get(key)
            tokens = self._keep(key, count(rewrite(text)) if tokens is None else tokens)
        return tokens

    def _keep(self, key: int, tokens: int) -> int:
        young = self._young
        if len(young) >= self._half:
            self._old, self._young = young, {}
            young = self._young
        young[key] = tokens
        return tokens
