"""Counting by tiktoken: the oracle of the tests, and the engine where the fast one may differ or is not there.

tiktoken's `Encoding` is built directly from checked ranks, so neither its downloads nor its cache folder come
into play. Two things would make tiktoken 0.14 fail, and neither reaches a caller. Lone surrogates are replaced
before encoding. Its pattern engine gives up, with a panic that is no `Exception`, on a run of about a
million whitespace characters; runs of more than 100,000 are encoded in pieces, which can differ
from the whole by a token or two a joint.
"""

from __future__ import annotations

import tiktoken

from bastion.tokenizers.engine import Engine, gave_up

__all__ = ["PATTERNS", "TiktokenEncoding"]

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


class TiktokenEncoding(Engine):
    """`Encoding` by tiktoken's `CoreBPE`, from ranks given. Building it takes about 0.2 s for o200k."""

    def __init__(self, name: str, ranks: dict[bytes, int]) -> None:
        self.name = name
        # Without any special token the search for them would stop at each character of `_length`'s text.
        special = {_NEVER: max(ranks.values()) + 1}
        self._engine = tiktoken.Encoding(name, pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens=special)

    def _length(self, text: str) -> int:
        """Return the number of ids; of a long text by the buffer behind `encode_to_numpy`, of 4 bytes a token."""
        if len(text) < _LONG:
            return len(self._ids(text))
        try:
            buffer = self._engine._core_bpe.encode_to_tiktoken_buffer(text, _NOTHING)
            return memoryview(buffer).nbytes >> 2
        except (AttributeError, UnicodeEncodeError):  # a tiktoken without it; lone surrogates
            return len(self._ids(text))
        except BaseException as error:
            if not gave_up(error):
                raise
            return len(self._ids(text))

    def _encode(self, text: str) -> list[int]:
        return self._engine.encode_ordinary(text)

    def _decode(self, ids: list[int]) -> bytes:
        return self._engine.decode_bytes(ids)
