"""Relevance by embeddings of an OpenAI-compatible provider (``POST /embeddings``), remembered by content."""

from __future__ import annotations

import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from contextshift.errors import ProviderBroken
from contextshift.ports import Provider, ProviderCall

__all__ = ["EmbeddingRelevance"]

Vector = tuple[float, ...]
_BATCH = 256
"""Texts of one request: below every provider's limit that we know (OpenAI: 2,048)."""
_LONGEST_TEXT = 8_000
"""Characters of a text that are embedded: models read about 8,000 tokens, and a beginning says what a text is about."""


class EmbeddingRelevance:
    """Rates texts by the cosine of their embedding with the question's, 0 where they point apart."""

    def __init__(self, provider: Provider, model: str, remembered: int = 4_096) -> None:
        self._provider = provider
        self._model = model
        self._remembered = remembered
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()

    async def rate(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return the relevance of each text. Raises a ProviderError."""
        vectors = await self._embedded([query, *texts])
        return [max(0.0, _dot(vectors[0], vector)) for vector in vectors[1:]]

    async def _embedded(self, texts: Sequence[str]) -> list[Vector]:
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        known = {key: self._vectors[key] for key in keys if key in self._vectors}
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in known}.items())
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            fetched = await self._fetch([text[:_LONGEST_TEXT] or " " for _, text in batch])
            known.update(zip((key for key, _ in batch), fetched, strict=True))
        for key, vector in known.items():
            self._remember(key, vector)
        return [known[key] for key in keys]

    def _remember(self, key: bytes, vector: Vector) -> None:
        self._vectors[key] = vector
        self._vectors.move_to_end(key)
        while len(self._vectors) > self._remembered:
            self._vectors.popitem(last=False)

    async def _fetch(self, texts: Sequence[str]) -> list[Vector]:
        body = json.dumps({"model": self._model, "input": texts}, ensure_ascii=False).encode("utf-8", "replace")
        answer = await self._provider.send(ProviderCall("/embeddings", body))
        try:
            raw = b"".join([chunk async for chunk in answer.chunks()])
        finally:
            await answer.aclose()
        if answer.status != 200:
            raise ProviderBroken(f"the embeddings provider answered {answer.status}")
        return _vectors_of(raw, len(texts))


def _vectors_of(raw: bytes, expected: int) -> list[Vector]:
    """Read an answer's vectors, in the order of the texts, each of length 1. Raises ProviderBroken."""
    try:
        rows: list[Mapping[str, Any]] = sorted(json.loads(raw)["data"], key=lambda row: row["index"])
        vectors = [_normalised([float(number) for number in row["embedding"]]) for row in rows]
    except (ValueError, TypeError, KeyError) as error:
        raise ProviderBroken("the embeddings make no sense") from error
    if len(vectors) != expected or len({len(vector) for vector in vectors}) > 1:
        raise ProviderBroken("the embeddings are not those that were asked for")
    return vectors


def _normalised(vector: Sequence[float]) -> Vector:
    length = math.sqrt(sum(number * number for number in vector)) or 1.0
    return tuple(number / length for number in vector)


def _dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
