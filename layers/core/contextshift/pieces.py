"""A message taken apart into what can cost tokens: texts, calls, images, other media, and the rest.

Every counter prices the same pieces, each in its own way, so what is *seen* in a message is decided
once, here. Nothing here raises on odd fields: a counter must answer for any mapping that JSON can hold.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Call", "Pieces", "compact_json", "parsed_arguments", "take_apart", "whole_characters", "without_data"]

TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Part types whose named field is text the model reads: chat completions and the Responses API."""

IMAGE_PARTS = frozenset({"image_url", "input_image", "image"})
MEDIA_PARTS = frozenset({"input_audio", "audio", "file", "input_file", "document", "video_url", "input_video", "video"})

_DATA_KEYS = frozenset(
    {"data", "base64", "b64_json", "bytes", "file_data", "image_data", "audio_data", "url", "image_url"}
)
_DATA_URL = re.compile(r"\s*data:[^,]{0,200};base64,", re.IGNORECASE)
# Possessive: a text that is no base64 after all is found out in one pass. Base64 is wrapped by line ends, never spaced.
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\r\n]++={0,2}[\r\n]*+\Z")
_BASE64_LEAST = 256
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str)
_JOINERS = "\u200d\ufe0e\ufe0f"
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_LONGEST_CLUSTER = 32


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool, as the assistant made it."""

    name: str
    arguments: str
    """As they stand in the message: JSON that may be broken, or a custom tool's free input."""


@dataclass(slots=True)
class Pieces:
    """What of one message can cost tokens, in order; each list may be empty."""

    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    images: list[Mapping[str, Any]] = field(default_factory=list)
    media: list[Mapping[str, Any]] = field(default_factory=list)
    """Audio, files and video, as the parts stand."""
    others: list[str] = field(default_factory=list)
    """Parts of unknown types as compact JSON, their binary data left out."""


def take_apart(message: Mapping[str, Any]) -> Pieces:
    """Return the pieces of ``message``; never raises, ``None`` fields are as good as absent."""
    pieces = Pieces()
    for part in _parts(message.get("content")):
        _sort_in(part, pieces)
    pieces.calls = [*_calls(message.get("tool_calls")), *_function_call(message.get("function_call"))]
    return pieces


def compact_json(value: object) -> str:
    """Return ``value`` as JSON without spaces, non-ASCII as it is.

    What JSON cannot hold is written as Python would; nesting deeper than the interpreter's stack
    (the service refuses more than 100 levels) gives the empty text.

    >>> compact_json({"a": [1, "é"]})
    '{"a":[1,"é"]}'
    """
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        return ""
    except (TypeError, ValueError):
        return repr(value)


def parsed_arguments(arguments: str) -> dict[str, Any] | None:
    """Return call arguments as an object, None where they are no JSON or no object."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def without_data(value: object, key: str = "") -> object:
    """Return a copy of ``value`` with base64 data emptied: data URLs anywhere, long base64 under the usual keys."""
    if isinstance(value, str):
        return "" if _is_data(value, key) else value
    if isinstance(value, Mapping):
        return {name: without_data(item, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_data(item, key) for item in value]
    return value


def whole_characters(text: str, end: int) -> int:
    """Return the largest position up to ``end`` at which cutting ``text`` splits no visible character.

    Accents, emoji modifiers and joined emoji stay with what they modify, within reason: a cluster of
    more than 32 code points is cut. This is a light form of Unicode's grapheme clusters (UAX #29).
    """
    position = end
    while 0 < position < len(text) and _continues(text, position):
        position -= 1
        if end - position >= _LONGEST_CLUSTER:
            return end
    return position


def _continues(text: str, position: int) -> bool:
    after, before = text[position], text[position - 1]
    if after.isascii():
        return after == "\n" and before == "\r"
    modifier = after in _JOINERS or _SKIN_TONES[0] <= after <= _SKIN_TONES[1]
    return modifier or before == "\u200d" or unicodedata.combining(after) != 0


def _parts(content: object) -> Iterable[object]:
    if content is None:
        return ()
    return content if isinstance(content, list | tuple) else (content,)


def _sort_in(part: object, pieces: Pieces) -> None:
    if isinstance(part, str):
        pieces.texts.append(part)
    elif not isinstance(part, Mapping):
        pieces.others.append(compact_json(part))
    elif (text := _text_of(part)) is not None:
        pieces.texts.append(text)
    elif _kind(part) in IMAGE_PARTS:
        pieces.images.append(part)
    elif _kind(part) in MEDIA_PARTS:
        pieces.media.append(part)
    else:
        pieces.others.append(_json_without_data(part))


def _kind(part: Mapping[str, Any]) -> str:
    kind = part.get("type", "text")
    return kind if isinstance(kind, str) else ""


def _text_of(part: Mapping[str, Any]) -> str | None:
    text = part.get(TEXT_PARTS.get(_kind(part), ""))
    return text if isinstance(text, str) else None


def _json_without_data(part: Mapping[str, Any]) -> str:
    try:
        return compact_json(without_data(part))
    except RecursionError:
        return ""


def _is_data(text: str, key: str) -> bool:
    if _DATA_URL.match(text):
        return True
    return key in _DATA_KEYS and len(text) >= _BASE64_LEAST and _BASE64.match(text) is not None


def _calls(calls: object) -> Iterable[Call]:
    for call in calls if isinstance(calls, list | tuple) else ():
        if isinstance(call, Mapping):
            yield from _function_call(call.get("function"))
            yield from _function_call(call.get("custom"))


def _function_call(function: object) -> Iterable[Call]:
    if isinstance(function, Mapping):
        arguments = function.get("arguments", function.get("input"))
        yield Call(_as_text(function.get("name")), _as_text(arguments))


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact_json(value)
