"""A chat completion read for its chunks: what a generation shows and saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bastion.wire.answers import JsonReader, SilentReader, StreamReader

__all__ = ["OpenAIDeltas"]


class OpenAIDeltas:
    """The dialect of a generation: chat completions, of which every chunk is kept until it is taken."""

    path = "/chat/completions"

    def reader(self, content_type: str | None) -> StreamReader | JsonReader | SilentReader:
        """Return a fresh reader for an answer of this content type."""
        if content_type is None:
            return SilentReader()
        return _Chunks() if content_type.lower().startswith("text/event-stream") else _Whole()


class _Chunks(StreamReader):
    """Reads every event of a stream."""

    _reads_all = True

    def __init__(self) -> None:
        super().__init__()
        self._chunks: list[Mapping[str, Any]] = []

    def taken(self) -> list[Mapping[str, Any]]:
        """Return the chunks that were read since the last time."""
        chunks, self._chunks = self._chunks, []
        return chunks

    def _take(self, event: dict[str, Any], *, failed: bool = False) -> None:
        before = self.failure
        super()._take(event, failed=failed)
        if isinstance(event.get("choices"), list) and self.failure is before:
            self._chunks.append(event)


class _Whole(JsonReader):
    """Reads an answer that came in one piece: it is one chunk."""

    def taken(self) -> list[Mapping[str, Any]]:
        """Return the answer, once."""
        answer, self.answer = self.answer, None
        return [answer] if answer is not None and self.begun else []
