"""A message taken apart into what can cost tokens: texts, calls, images, other media, and the rest.

Every counter prices the same pieces, each in its own way, so what is *seen* in a message is decided
once, here. Nothing here raises on odd fields: a counter must answer for any mapping that JSON can hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contextshift.nested import IMAGE_PARTS, MEDIA_PARTS, Lifted, inline_type, is_data, lift, part_kind

__all__ = [
    "Call",
    "Pieces",
    "compact_json",
    "parsed_arguments",
    "take_apart",
    "without_data",
]

TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Part types whose named field is text the model reads: chat completions and the Responses API."""

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str)


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
    """Parts of other types as compact JSON, their images, files and binary data left out."""


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


def without_data(value: object) -> object:
    """Return a copy of ``value`` with base64 data emptied: data URLs anywhere, long base64 under the usual keys.

    Nesting deeper than the interpreter's stack gives the empty text.
    """
    try:
        return _without_data(value, "")
    except RecursionError:
        return ""


def _without_data(value: object, key: str) -> object:
    if isinstance(value, str):
        return "" if is_data(value, key) else value
    if isinstance(value, Mapping):
        return {name: _without_data(item, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_data(item, key) for item in value]
    return value


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
    elif (media_type := inline_type(part)) is not None:
        (pieces.images if media_type.startswith("image/") else pieces.media).append(part)
    elif part_kind(part) in IMAGE_PARTS:
        pieces.images.append(part)
    elif part_kind(part) in MEDIA_PARTS:
        pieces.media.append(part)
    else:
        pieces.others.append(_json_without_media(part, pieces))


def _text_of(part: Mapping[str, Any]) -> str | None:
    text = part.get(TEXT_PARTS.get(part_kind(part), ""))
    return text if isinstance(text, str) else None


def _json_without_media(part: Mapping[str, Any], pieces: Pieces) -> str:
    """Return a part of another kind as JSON; images and files in it go to ``pieces``."""
    found = Lifted()
    try:
        rest = compact_json(lift(part, found))
    except RecursionError:
        rest = ""
    pieces.images += found.images
    pieces.media += found.media
    return rest


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
