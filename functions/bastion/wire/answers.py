"""What an OpenAI-shaped answer says of itself, read while its bytes pass by untouched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["JsonReader", "SilentReader", "StreamReader", "read_usage", "reader_for", "relay_reader_for"]

_MOST_TOKENS = 10**12
"""A number above is no number of tokens."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NO_CONTENT = frozenset(("role", "name"))
"""Members of a delta that say who speaks, and nothing yet."""
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
        self._body = bytearray()
        self._unread = False

    def feed(self, chunk: bytes) -> None:
        """Take more of the body."""
        if self._most is not None and len(self._body) + len(chunk) > self._most:
            self._unread = True
            self._body.clear()
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
        self.usage = read_usage(answer.get("usage"))
        failure = _failure(answer)
        if failure is not None:
            self.error = "UPSTREAM_ERROR"
        self.begun = bool(answer.get("choices")) if failure is None else any(map(_says, _choices(answer)))
        if not self.begun:
            self.failure = answer if failure is None else failure


class StreamReader:
    """Reads server-sent events as they pass (HTML standard, section 9.2), however they are cut into chunks.

    Content begins with the first choice that says something, or that ends: what comes before it, such as the role
    alone or a comment, can still be followed by an error in its place. Once an error came, nothing begins any more.
    """

    _reads_all = False
    """Whether every event is wanted, or after the first content only what tells of usage and errors."""

    def __init__(self) -> None:
        self.usage: dict[str, Any] | None = None
        self.error: str | None = None
        self.failure: object = None
        self.begun = False
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._kind = b""
        self._first = True
        self._after_return = False
        self._skipping = False

    def feed(self, chunk: bytes) -> None:
        """Take more of the stream. A line ends with a line feed, a carriage return, or both."""
        if not chunk:
            return
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_return = chunk.endswith(b"\r")
        *lines, rest = chunk.splitlines(keepends=True) or [b""]
        if rest.endswith((b"\n", b"\r")):
            lines, rest = [*lines, rest], b""
        for line in lines:
            self._line += line
            ended = bytes(self._line).rstrip(b"\r\n")
            self._line.clear()
            self._take_line(ended)
        self._line += rest
        if len(self._line) + self._size > _MAX_EVENT:
            self._skip()

    def end(self) -> None:
        """Read what stands after the last line's end, and the event that no empty line ended."""
        self.feed(b"\n\n")

    def _skip(self) -> None:
        """Let the rest of an event pass unread."""
        self._line.clear()
        self._data, self._size = [], 0
        self._skipping = True
        self._begin()

    def _begin(self) -> None:
        self.begun = self.begun or self.failure is None

    def _take_line(self, line: bytes) -> None:
        if self._first:
            self._first, line = False, line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            self._dispatch()
        elif not self._skipping:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._size += len(value) + 1
            elif name == b"event":
                self._kind = value.removeprefix(b" ")

    def _dispatch(self) -> None:
        """Read the event that an empty line ends."""
        data, kind = b"\n".join(self._data), self._kind
        self._data, self._size, self._kind, self._skipping = [], 0, b"", False
        failed = kind == b"error"
        if not data or not (failed or self._wants(data)):
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            event = data.decode("utf-8", "replace")
        if isinstance(event, dict):
            self._take(event, failed=failed)
        elif failed:
            self._fail(event)
        elif isinstance(event, str):
            self._begin()  # ``[DONE]``, or nothing that we could judge

    def _wants(self, data: bytes) -> bool:
        return self._reads_all or not self.begun or b'"usage"' in data or b'"error"' in data

    def _take(self, event: dict[str, Any], *, failed: bool = False) -> None:
        whole = event.get("response")  # the Responses API's last event holds the answer
        usage = whole.get("usage") if isinstance(whole, dict) else event.get("usage")
        self.usage = read_usage(usage) or self.usage
        failure = _failure(event)
        if failure is not None or failed or event.get("type") in ("error", "response.failed"):
            self._fail(event if failure is None else failure)
        elif any(_says(choice) or _ends(choice) for choice in _choices(event)):
            self._begin()

    def _fail(self, failure: object) -> None:
        self.error, self.failure = "UPSTREAM_STREAM_ERROR", failure


def _failure(answer: dict[str, Any]) -> dict[str, Any] | None:
    """Return what says that an answer or an event failed: of itself, or of one of its choices (as OpenRouter does)."""
    if answer.get("error"):
        return answer
    errors = [choice["error"] for choice in _choices(answer) if choice.get("error")]
    return {"error": errors[0]} if errors else None


def _says(choice: dict[str, Any]) -> bool:
    """Whether a choice says more than who speaks: text, reasoning, a tool's call, sound, or what we do not know."""
    said = choice.get("delta") or choice.get("message") or choice.get("text")
    if not isinstance(said, dict):
        return bool(said)
    return any(value for name, value in said.items() if name not in _NO_CONTENT)


def _ends(choice: dict[str, Any]) -> bool:
    return choice.get("finish_reason") not in (None, "error")


def _choices(answer: dict[str, Any]) -> list[dict[str, Any]]:
    choices = answer.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


def _count(value: object) -> int | None:
    """Return a number of tokens; None for what cannot be one, so that nothing is reckoned with it."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None
