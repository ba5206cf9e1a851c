"""Images and files inside parts of any other kind: a tool's result, an answer of a function, what nobody has named yet.

Providers show them to the model as they would at the top of a message, so they are lifted out whole and priced by the
same rules. What stays behind is text, and never base64.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contextshift.media import image_size

__all__ = ["IMAGE_PARTS", "MEDIA_PARTS", "Lifted", "inline_type", "is_data", "lift", "part_kind"]

IMAGE_PARTS = frozenset({"image_url", "input_image", "image"})
MEDIA_PARTS = frozenset({"input_audio", "audio", "file", "input_file", "document", "video_url", "input_video", "video"})

_PARTS = IMAGE_PARTS | MEDIA_PARTS

_INLINE_KEYS = ("inline_data", "inlineData", "file_data", "fileData")
_DATA_KEYS = frozenset(
    {"data", "base64", "b64_json", "blob", "bytes", "file_data", "image_data", "audio_data", "url", "image_url"}
    | {"encrypted_content"}
)
_SIGNATURE_KEYS = frozenset({"signature", "thought_signature", "thoughtSignature"})
"""Of thoughts, by Anthropic and Google: base64 that is checked and that no model reads."""
_PAYLOAD_KEYS = frozenset(
    {
        "source",
        "data",
        "url",
        "image_url",
        "input_audio",
        "audio",
        "file",
        "file_data",
        "file_id",
        "file_url",
        "video_url",
    }
)
"""A nested object is a part of its kind only with one of these: ``{"type": "file", "lines": 3}`` is plain JSON."""
_TYPE_KEYS = ("media_type", "mime_type", "mimeType", "format")
_READ = ("application/pdf", "audio/", "text/", "video/")
"""What some model takes beside images."""
_DATA_URL = re.compile(r"\s*data:([^,;]{0,200}+)[^,]{0,200};base64,", re.IGNORECASE)
# Possessive: a text that is no base64 after all is found out in one pass. Base64 is wrapped by line ends, never spaced.
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\r\n]++={0,2}[\r\n]*+\Z")
_BASE64_LEAST = 256


@dataclass(slots=True)
class Lifted:
    """Parts that were found inside others, in order."""

    images: list[Mapping[str, Any]] = field(default_factory=list)
    media: list[Mapping[str, Any]] = field(default_factory=list)


def lift(value: object, found: Lifted | None = None) -> object:
    """Return a copy of JSON without its images, files and base64; what they were is added to ``found``.

    Raises RecursionError on nesting deeper than the interpreter's stack.

    >>> picture, found = {"type": "image", "url": "https://a/b.png"}, Lifted()
    >>> lift({"type": "tool_result", "content": [picture, "seen"]}, found), found.images == [picture]
    ({'type': 'tool_result', 'content': ['seen']}, True)
    """
    return _lifted(value, "", {}, found if found is not None else Lifted())


def part_kind(part: Mapping[str, Any]) -> str:
    """Return a part's ``type``: ``text`` where it has none, nothing where it is no text."""
    kind = part.get("type", "text")
    return kind if isinstance(kind, str) else ""


def inline_type(part: Mapping[str, Any]) -> str | None:
    """Return the MIME type of a part in Gemini's shape, which has no ``type``; None for other parts."""
    if "type" in part:
        return None
    for key in _INLINE_KEYS:
        if isinstance(inner := part.get(key), Mapping):
            media_type = inner.get("mime_type", inner.get("mimeType"))
            return media_type.lower() if isinstance(media_type, str) else ""
    return None


def is_data(text: str, key: str) -> bool:
    """Whether a value is binary data as text: a data URL, or long base64 under a key that usually holds it."""
    if _DATA_URL.match(text):
        return True
    return (
        (key in _DATA_KEYS or key in _SIGNATURE_KEYS) and len(text) >= _BASE64_LEAST and _BASE64.match(text) is not None
    )


def _lifted(value: object, key: str, beside: Mapping[str, Any], found: Lifted) -> object:
    """Return ``value``, which stands under ``key`` ``beside`` other fields, without its data."""
    if isinstance(value, str):
        if not is_data(value, key):
            return value
        if key not in _SIGNATURE_KEYS:
            _sort_loose(value, beside, found)
        return ""
    if _is_part(value, found):
        return ""
    if isinstance(value, Mapping):
        return {name: _lifted(item, str(name), value, found) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lifted(item, key, beside, found) for item in value if not _is_part(item, found)]
    return value


def _is_part(value: object, found: Lifted) -> bool:
    """Whether an item of a list is an image or a file by itself; it is added to ``found``."""
    if not isinstance(value, Mapping):
        return False
    media_type, kind = inline_type(value), part_kind(value)
    if media_type is None and not (kind in _PARTS and not _PAYLOAD_KEYS.isdisjoint(value)):
        return False
    image = kind in IMAGE_PARTS if media_type is None else media_type.startswith("image/")
    (found.images if image else found.media).append(value)
    return True


def _sort_loose(data: str, beside: Mapping[str, Any], found: Lifted) -> None:
    """Add data that is in no part we know, by its type, else by its first bytes; what no model takes is left out."""
    named = _DATA_URL.match(data)
    media_type = named[1].strip().lower() if named else _type_beside(beside)
    image = {"type": "image", "data": data}
    if media_type.startswith("image/") or (not media_type and image_size(image)):
        found.images.append(image)
    elif media_type.startswith(_READ):
        found.media.append({"type": "file", "media_type": media_type, "data": data})


def _type_beside(fields: Mapping[str, Any]) -> str:
    named = (fields.get(key) for key in _TYPE_KEYS)
    return next((text.lower() for text in named if isinstance(text, str) and "/" in text), "")
