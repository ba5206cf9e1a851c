"""What an OpenAI-shaped answer says of itself, read while its bytes pass by untouched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["JsonReader", "SilentReader", "StreamReader", "read_usage", "reader_for"]

_MAX_EVENT = 4 * 1024 * 1024
"""Bytes of one server-sent event beyond which it is passed on but not read."""


def reader_for(content_type: str) -> JsonReader | StreamReader | SilentReader:
    """Return the reader of an answer, by its content type."""
    kind = content_type.lower()
    if kind.startswith("text/event-stream"):
        return StreamReader()
    return JsonReader() if "json" in kind else SilentReader()


def read_usage(usage: object) -> dict[str, Any] | None:
    """Return prompt, completion, total and cached tokens of a ``usage`` object, None for anything else."""
    if not isinstance(usage, Mapping):
        return None
    numbers = {name: _count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    if numbers["prompt_tokens"] is None:
        return None
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    return numbers if cached is None else {**numbers, "cached_tokens": cached}


class SilentReader:
    """Reads nothing: the answer is neither JSON nor events, or it is compressed."""

    usage: dict[str, Any] | None = None
    error: str | None = None

    def feed(self, chunk: bytes) -> None:
        """Let it pass."""

    def end(self) -> None:
        """Nothing was read."""


class JsonReader:
    """Reads a whole JSON answer."""

    def __init__(self) -> None:
        self.usage: dict[str, Any] | None = None
        self.error: str | None = None
        self._body = b""

    def feed(self, chunk: bytes) -> None:
        """Take more of the body."""
        self._body += chunk

    def end(self) -> None:
        """Read the body."""
        try:
            answer = json.loads(self._body)
        except (ValueError, RecursionError):
            self.error = None if not self._body else "UPSTREAM_NOT_JSON"
            return
        if isinstance(answer, dict):
            self.usage = read_usage(answer.get("usage"))
            if answer.get("error"):
                self.error = "UPSTREAM_ERROR"


class StreamReader:
    """Reads server-sent events as they pass (HTML standard, section 9.2), however they are cut into chunks."""

    def __init__(self) -> None:
        self.usage: dict[str, Any] | None = None
        self.error: str | None = None
        self._line = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> None:
        """Take more of the stream."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._line += line
            if not self._skipping:
                self._read(bytes(self._line))
            self._line.clear()
            self._skipping = False
        self._line += rest
        if len(self._line) > _MAX_EVENT:
            self._line.clear()
            self._skipping = True

    def end(self) -> None:
        """Read what stands after the last line's end."""
        self.feed(b"\n")

    def _read(self, line: bytes) -> None:
        if not line.startswith(b"data:") or not (b'"usage"' in line or b'"error"' in line):
            return
        try:
            event = json.loads(line[5:])
        except (ValueError, RecursionError):
            return
        if isinstance(event, dict):
            self.usage = read_usage(event.get("usage")) or self.usage
            if event.get("error"):
                self.error = "UPSTREAM_STREAM_ERROR"


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
