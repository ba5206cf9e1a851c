"""What an OpenAI-shaped answer says of itself, read while its bytes pass by untouched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["JsonReader", "SilentReader", "StreamReader", "read_usage", "reader_for", "relay_reader_for"]

_MOST_TOKENS = 10**12
"""A number above is no number of tokens."""
_MAX_EVENT = 4 * 1024 * 1024
"""Bytes of one server-sent event beyond which it is passed on but not read."""


def reader_for(content_type: str | None) -> JsonReader | StreamReader | SilentReader:
    """Return the reader of an answer, by its content type; None is an answer that cannot be read."""
    if content_type is None:
        return SilentReader()
    return StreamReader() if content_type.lower().startswith("text/event-stream") else JsonReader()


def relay_reader_for(content_type: str | None) -> JsonReader | StreamReader | SilentReader:
    """Return the reader of an answer of any API: what is neither JSON nor events passes unread."""
    kind = (content_type or "").lower()
    if kind.startswith("text/event-stream"):
        return StreamReader()
    return JsonReader(_MAX_EVENT) if "json" in kind else SilentReader()


def read_usage(usage: object) -> dict[str, Any] | None:
    """Return prompt, completion, total and cached tokens of a ``usage`` object, None for anything else.

    The Responses API says ``input_tokens`` for the prompt and ``output_tokens`` for the completion.
    """
    if not isinstance(usage, Mapping):
        return None
    numbers = {name: _count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    if numbers["prompt_tokens"] is None:
        numbers["prompt_tokens"] = _count(usage.get("input_tokens"))
        numbers["completion_tokens"] = _count(usage.get("output_tokens"))
    if numbers["prompt_tokens"] is None:
        return None
    details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    return numbers if cached is None else {**numbers, "cached_tokens": cached}


class SilentReader:
    """Reads nothing: the answer is compressed, or no text."""

    usage: dict[str, Any] | None = None
    error: str | None = None
    failure: object = None
    begun = True

    def taken(self) -> list[Mapping[str, Any]]:
        """Return nothing: nothing was read."""
        return []

    def feed(self, chunk: bytes) -> None:
        """Let it pass."""

    def end(self) -> None:
        """Nothing was read."""


class JsonReader:
    """Reads a whole JSON answer; one of more than ``most`` bytes is let pass unread."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self.usage: dict[str, Any] | None = None
        self.error: str | None = None
        self.failure: object = None
        self.begun = False
        self.answer: dict[str, Any] | None = None
        self._body = b""
        self._unread = False

    def feed(self, chunk: bytes) -> None:
        """Take more of the body."""
        if self._most is not None and len(self._body) + len(chunk) > self._most:
            self._unread, self._body = True, b""
        if not self._unread:
            self._body += chunk

    def end(self) -> None:
        """Read the body."""
        if self._unread:
            return
        try:
            answer = json.loads(self._body.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            self.error = "UPSTREAM_NOT_JSON"
            return
        if not isinstance(answer, dict):
            self.error, self.failure = "UPSTREAM_NOT_JSON", answer
            return
        self.answer = answer
        self.begun = bool(answer.get("choices"))
        self.usage = read_usage(answer.get("usage"))
        if answer.get("error"):
            self.error = "UPSTREAM_ERROR"
        if not self.begun:
            self.failure = answer


class StreamReader:
    """Reads server-sent events as they pass (HTML standard, section 9.2), however they are cut into chunks."""

    def __init__(self) -> None:
        self.usage: dict[str, Any] | None = None
        self.error: str | None = None
        self.failure: object = None
        self.begun = False
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
            self.begun = True

    def end(self) -> None:
        """Read what stands after the last line's end."""
        self.feed(b"\n")

    def _read(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        if self.begun and b'"usage"' not in line and b'"error"' not in line:
            return
        try:
            event = json.loads(line[5:])
        except (ValueError, RecursionError):
            self.begun = True  # ``[DONE]``, or nothing that we could judge
            return
        if isinstance(event, dict):
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        whole = event.get("response")  # the Responses API's last event holds the answer
        usage = whole.get("usage") if isinstance(whole, dict) else event.get("usage")
        self.usage = read_usage(usage) or self.usage
        if event.get("error") or event.get("type") in ("error", "response.failed"):
            self.error, self.failure = "UPSTREAM_STREAM_ERROR", event
        self.begun = self.begun or bool(event.get("choices"))


def _count(value: object) -> int | None:
    """Return a number of tokens; None for what cannot be one, so that nothing is reckoned with it."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None
