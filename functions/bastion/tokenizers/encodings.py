"""Byte-pair encodings behind one small seam: count a text, cut a text. One cached encoding a vocabulary.

`Encoding` is the seam: tiktoken stands behind it today, and a faster engine may tomorrow. tiktoken's
`Encoding` is built directly from checked ranks, so neither its downloads nor its cache folder come
into play. Text is always ordinary text: what looks like a control token is counted as its characters.

Two things would make tiktoken 0.14 fail, and neither reaches a caller. Lone surrogates are replaced
before encoding. Its pattern engine gives up, with a panic that is no `Exception`, on a run of about a
million whitespace characters; runs of more than 100,000 are encoded in pieces, which can differ
from the whole by a token or two a joint.

Counting is the hot loop of the service: what stands around the engine here costs a few hundred
nanoseconds a text, new or known. A long text is counted without making a list of its tokens, and
every count is remembered by the text's hash.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from bastion.tokenizers.vocab import load_ranks
from contextshift.pieces import whole_characters

__all__ = ["CountMemo", "Encoding", "LazyEncoding", "TiktokenEncoding", "shared_encoding"]

PIECE = 100_000
"""Longest whitespace run given to tiktoken at once, in characters. Ten times that makes it panic."""

_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {"cl100k_base": _CL100K, "o200k_base": _O200K}
"""How text is split before merging: `tiktoken_ext/openai_public.py` of tiktoken 0.14.0 (MIT, OpenAI)."""

_NEVER = "<|bastion: no special token is ever allowed|>"
_NOTHING: frozenset[str] = frozenset()
_LONG = 400
"""Characters from which tiktoken's token buffer is cheaper than its list."""

_SPACES = re.compile(r"\s*")
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


class TiktokenEncoding:
    """`Encoding` by tiktoken's `CoreBPE`, from ranks given. Building it takes about 0.2 s for o200k."""

    def __init__(self, name: str, ranks: dict[bytes, int]) -> None:
        from tiktoken import Encoding as Engine  # imported here: not on the way of requests that need no count

        self.name = name
        # Without any special token the search for them would stop at each character of `_length`'s text.
        special = {_NEVER: max(ranks.values()) + 1}
        self._engine = Engine(name, pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens=special)

    def count(self, text: str) -> int:
        """Return the tokens of ``text``."""
        size = len(text)
        if size < _LONG:
            return len(self._ids(text))
        if size <= PIECE:
            return self._length(text)
        return sum(map(self._length, _pieces(text)))

    def count_rewritten(self, text: str, rewrite: Callable[[str], str]) -> int:
        """Return the tokens of ``rewrite(text)``."""
        return self.count(rewrite(text))

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most ``limit`` tokens that ends with a whole character."""
        if limit <= 0:
            return ""
        if _SURROGATE.search(text):
            return self._bisect(text, limit)
        ids = self._first_ids(text, limit)
        if len(ids) <= limit:
            return text
        return self._checked(text, ids, limit)

    def _checked(self, text: str, ids: list[int], limit: int) -> str:
        # A prefix may merge otherwise than it did with what followed, so the cut is counted again.
        for kept in range(limit, 0, -1):
            end = whole_characters(text, len(self._decoded(ids[:kept])))
            if self.count(text[:end]) <= limit:
                return text[:end]
        return ""

    def _first_ids(self, text: str, limit: int) -> list[int]:
        """Return ids of the beginning of ``text``: more than ``limit`` of them, or all."""
        window = 8 * limit + 64
        while True:
            ids = [id_ for piece in _pieces(text[:window]) for id_ in self._ids(piece)]
            if len(ids) > limit or window >= len(text):
                return ids
            window *= 4

    def _decoded(self, ids: list[int]) -> str:
        # Tokens may end inside a character; what is left of it is dropped.
        return self._engine.decode_bytes(ids).decode("utf-8", "ignore")

    def _bisect(self, text: str, limit: int) -> str:
        if self.count(text) <= limit:
            return text
        low, high = 0, len(text)
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (middle, high) if self.count(text[:middle]) <= limit else (low, middle)
        return text[:low]

    def _length(self, text: str) -> int:
        """Return ``len(self._ids(text))`` from the buffer behind tiktoken's `encode_to_numpy`: 4 bytes a token."""
        try:
            buffer = self._engine._core_bpe.encode_to_tiktoken_buffer(text, _NOTHING)
            return memoryview(buffer).nbytes >> 2
        except (AttributeError, UnicodeEncodeError):  # a tiktoken without it; lone surrogates
            return len(self._ids(text))
        except BaseException as error:
            if not _gave_up(error):
                raise
            return len(self._ids(text))

    def _ids(self, text: str) -> list[int]:
        try:
            return self._engine.encode_ordinary(text)
        except BaseException as error:
            if not _gave_up(error) or len(text) < 2:
                raise
        middle = len(text) // 2  # a pattern that gave up on this much text will not on less
        return self._ids(text[:middle]) + self._ids(text[middle:])


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


_shared: dict[tuple[str, tuple[Path, ...]], LazyEncoding] = {}
_shared_lock = threading.Lock()


def shared_encoding(name: str, folders: Sequence[Path]) -> LazyEncoding:
    """Return the process's one encoding of a vocabulary from ``folders``; nothing is read before it counts."""
    key = (name, tuple(folders))
    with _shared_lock:
        if key not in _shared:
            _shared[key] = LazyEncoding(name, lambda: TiktokenEncoding(name, load_ranks(name, key[1])))
        return _shared[key]


def _gave_up(error: BaseException) -> bool:
    return type(error).__name__ == "PanicException"


def _pieces(text: str) -> Iterator[str]:
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
