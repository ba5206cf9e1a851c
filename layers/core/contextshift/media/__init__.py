"""What images, audio and files say about themselves, read from their first bytes: no pixel is decoded.

A data URL is base64, never text: it is priced by what its header says, else by its size. Nothing is fetched; a
plain URL tells nothing, and the counter that asked falls back on its own cap. The parts may have the shape of
OpenAI's chat completions or Responses API, of Anthropic's messages, or of Gemini's (``inline_data``).

The guesses here are for a provider that nobody knows, and on the safe side; a counter that knows its provider
asks `media_kind`, `media_seconds` and `media_pages`, and prices them itself.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from contextshift.media.data import Embedded
from contextshift.media.pictures import ImageSize, picture_size

__all__ = [
    "AUDIO_RATE",
    "PAGE_TOKENS",
    "VIDEO_RATE",
    "ImageSize",
    "data_bytes",
    "image_detail",
    "image_size",
    "media_kind",
    "media_pages",
    "media_seconds",
    "media_tokens",
    "plain_text",
]

AUDIO_RATE, VIDEO_RATE = 32, 263
"""Tokens a second of audio and of video: Gemini's token page, 2026, the most that a provider publishes."""
PAGE_TOKENS = 3_000
"""A page of a file: the upper end of Anthropic's PDF guide (2026), 1,500-3,000 tokens of text."""

UNKNOWN_SECONDS = 60.0
"""Taken for a recording that is not in the request, only its address or id: a guess, nothing bounds it."""
UNKNOWN_PAGES = 1
"""The same for a file."""

_BYTES_A_SECOND = {"pcm16": 48_000, "g711": 8_000, "wav": 8_000, "flac": 8_000, "opus": 2_000, "ogg": 2_000}
"""The least a second takes by format: OpenAI's pcm16 at 24 kHz; 8 kHz, 8 bits; Opus for speech at 16 kbit/s."""
_OTHER_AUDIO, _VIDEO = 4_000, 25_000
"""32 kbit/s, the least common speech bit rate; 200 kbit/s, a small film."""

_INLINE = (("inline_data", "data"), ("inlineData", "data"))
_MEDIA_PATHS = (
    *(("input_audio", "data"), ("file", "file_data"), ("file_data",), ("source", "data"), ("data",), *_INLINE),
    *(("video_url", "url"), ("video_url",), ("audio_url", "url"), ("file_url",), ("file", "url"), ("url",)),
)
_IMAGE_PATHS = (
    *(("image_url", "url"), ("image_url",), ("source", "data"), ("source", "url"), ("url",), ("data",)),
    *_INLINE,
)
_TYPE_PATHS = (
    *(("input_audio", "format"), ("source", "media_type"), ("mime_type",), ("mimeType",), ("media_type",), ("format",)),
    *(("inline_data", "mime_type"), ("inlineData", "mimeType"), ("file", "format")),
    *(("file_data", "mime_type"), ("fileData", "mimeType"), ("file", "filename"), ("filename",), ("title",)),
)
_DETAIL_PATHS = (
    *(("image_url", "detail"), ("detail",), ("resolution",)),
    *(("media_resolution", "level"), ("media_resolution",), ("mediaResolution", "level"), ("mediaResolution",)),
)
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/x-yaml")
_TEXT_ENDS = (".txt", ".md", ".csv", ".json", ".xml", ".html", ".yaml", ".yml", ".py", ".js", ".ts")
_TYPE_LENGTH = 200
_TEXT_LOOK = 1_024
"""Bytes of a file that are looked at for whether it is text."""


def _utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def image_size(part: Mapping[str, Any]) -> ImageSize | None:
    """Return the size of an image part's embedded picture; None where it cannot be told."""
    data = _embedded(_first_text(part, _IMAGE_PATHS))
    return picture_size(data) if data else None


def image_detail(part: Mapping[str, Any]) -> str:
    """Return an image part's ``detail`` (or Gemini's ``media_resolution``) in lower case; ``auto`` if not given."""
    return (_first_text(part, _DETAIL_PATHS) or "auto").lower()


def data_bytes(part: Mapping[str, Any]) -> int:
    """Return how many bytes a media part embeds as base64; 0 for ids and URLs."""
    data = _embedded(_first_text(part, _MEDIA_PATHS))
    return data.size if data else 0


def media_kind(part: Mapping[str, Any]) -> str:
    """Return ``audio``, ``video``, ``text`` (a file of plain text) or ``file``, by the part's and its data's types.

    Logs, sources and their like have types by the dozen: what begins as UTF-8 without a zero byte is text.
    """
    kind, media_type = (_first_text(part, (("type",),)) or "")[:_TYPE_LENGTH], _media_type(part)
    for name in ("audio", "video"):
        if name in kind or media_type.startswith(f"{name}/"):
            return name
    said = media_type.startswith(_TEXT_TYPES) or media_type.endswith(_TEXT_ENDS)
    return "text" if said or _reads_as_text(part) else "file"


def media_seconds(part: Mapping[str, Any]) -> float:
    """Return how long an audio or video part lasts: by its header, else at most, by its size and format."""
    data = _embedded(_first_text(part, _MEDIA_PATHS))
    if data is None:
        return UNKNOWN_SECONDS
    from contextshift.media.recordings import recording_seconds  # here: few requests have a recording or a file

    return recording_seconds(data) or data.size / _least_rate(part)


def media_pages(part: Mapping[str, Any]) -> int:
    """Return the pages of a file part: a PDF's own, else one for each 50 kB begun."""
    from contextshift.media.documents import PAGE_BYTES, pdf_pages

    data = _embedded(_first_text(part, _MEDIA_PATHS))
    if data is None:
        return UNKNOWN_PAGES
    return pdf_pages(data) or max(1, -(-data.size // PAGE_BYTES))


def plain_text(part: Mapping[str, Any]) -> str | None:
    """Return what a file of plain text says, in base64 or, in Anthropic's ``text`` source, as it is; None if absent."""
    source = part.get("source")
    if isinstance(source, Mapping) and source.get("type") == "text" and isinstance(source.get("data"), str):
        return str(source["data"])
    data = _embedded(_first_text(part, _MEDIA_PATHS))
    return data.read(0, data.size).decode("utf-8", "replace") if data else None


def media_tokens(part: Mapping[str, Any], count_text: Callable[[str], int] = _utf8_bytes) -> int:
    """Return an upper guess, in tokens, for an audio, file or video part of a provider that nobody knows.

    ``count_text`` prices what a file of plain text says; by default a byte is a token, which is never too little.
    """
    kind = media_kind(part)
    if kind == "file":
        return PAGE_TOKENS * media_pages(part)
    if kind == "text":
        text = plain_text(part)
        return PAGE_TOKENS if text is None else max(1, count_text(text))
    return max(1, math.ceil(media_seconds(part) * (AUDIO_RATE if kind == "audio" else VIDEO_RATE)))


def _first_text(part: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> str | None:
    for path in paths:
        value: object = part
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, str):
            return value
    return None


def _embedded(text: str | None) -> Embedded | None:
    """Return the data of a data URL or of bare base64; None for an address, for nothing, and for SVG as text."""
    if not text:
        return None
    head = text[:_TYPE_LENGTH]
    if head[:5].lower() != "data:":
        return None if "://" in head else Embedded(text)
    comma = text.find(",", 0, 2 * _TYPE_LENGTH)
    return Embedded(text, comma + 1) if comma >= 0 else None


def _media_type(part: Mapping[str, Any]) -> str:
    """Return the MIME type, else the format or the file's name, in lower case; nothing where there is none."""
    text = (_first_text(part, _MEDIA_PATHS) or "")[:_TYPE_LENGTH]
    if text[:5].lower() == "data:":
        return text[5:].partition(",")[0].partition(";")[0].lower()
    return (_first_text(part, _TYPE_PATHS) or "")[-_TYPE_LENGTH:].lower()


def _reads_as_text(part: Mapping[str, Any]) -> bool:
    data = _embedded(_first_text(part, _MEDIA_PATHS))
    start = data.read(0, _TEXT_LOOK) if data else b""
    if not start or b"\0" in start or start.startswith(b"%PDF-"):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut
    except UnicodeDecodeError:
        return False
    return True


def _least_rate(part: Mapping[str, Any]) -> int:
    if media_kind(part) == "video":
        return _VIDEO
    media_type = _media_type(part)
    return next((rate for name, rate in _BYTES_A_SECOND.items() if name in media_type), _OTHER_AUDIO)
