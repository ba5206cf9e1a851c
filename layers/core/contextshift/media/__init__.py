"""What images, audio and files say about themselves, read from their first bytes: no pixel is decoded.

A data URL is base64, never text: it is priced by the size of what it holds. Nothing is fetched; a
plain URL tells nothing, and the counter that asked falls back on its own cap.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["ImageSize", "data_bytes", "image_detail", "image_size", "media_tokens"]

ImageSize = tuple[int, int]
"""Width and height in pixels."""

_HEADER_BYTES = 1 << 16
_JPEG_BYTES = 1 << 20
"""JPEG keeps its size behind comments, thumbnails and colour profiles, seldom behind more than this."""

AUDIO_TOKENS_PER_BYTE = 32 / 4_000
"""32 tokens a second (Gemini, published 2026; OpenAI 10) at 32 kbit/s, the least common speech bit rate."""

PAGE_TOKENS, PAGE_BYTES = 2_000, 50_000
"""A rough page of a file: text and picture (Anthropic's PDF guide, 2026: 1,500-3,000 a page), one per 50 kB begun."""

_MEDIA_PATHS = (("input_audio", "data"), ("file", "file_data"), ("file_data",), ("source", "data"), ("data",))
_IMAGE_PATHS = (("image_url", "url"), ("image_url",), ("source", "data"), ("source", "url"), ("url",), ("data",))


def image_size(part: Mapping[str, Any]) -> ImageSize | None:
    """Return the size of an image part's embedded PNG, JPEG, GIF or WebP; None where it cannot be told."""
    payload = _payload(_first_text(part, _IMAGE_PATHS))
    if payload is None:
        return None
    head = _decode(payload, _HEADER_BYTES)
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head) or _jpeg(_decode(payload, _JPEG_BYTES))
    size = _png(head) or _gif(head) or _webp(head)
    return size if size and min(size) > 0 else None


def image_detail(part: Mapping[str, Any]) -> str:
    """Return an image part's ``detail``: ``low``, ``high``, ``auto``, …; ``auto`` where not given."""
    inner = part.get("image_url")
    detail = inner.get("detail") if isinstance(inner, Mapping) else part.get("detail")
    return detail if isinstance(detail, str) else "auto"


def data_bytes(part: Mapping[str, Any]) -> int:
    """Return how many bytes a media part embeds as base64; 0 for ids and URLs."""
    text = _first_text(part, _MEDIA_PATHS) or ""
    return len(text.partition(",")[2] if text.startswith("data:") else text) * 3 // 4


def media_tokens(part: Mapping[str, Any]) -> int:
    """Return an upper guess, in tokens, for an audio, file or video part, from the size of its data."""
    size = data_bytes(part)
    if "audio" in str(part.get("type")):
        return max(1, round(size * AUDIO_TOKENS_PER_BYTE))
    return PAGE_TOKENS * max(1, -(-size // PAGE_BYTES))


def _first_text(part: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> str | None:
    for path in paths:
        value: object = part
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, str):
            return value
    return None


def _payload(text: str | None) -> str | None:
    if text is None or text.startswith(("http:", "https:")):
        return None
    return text.partition(",")[2] if text.startswith("data:") else text


def _decode(payload: str, size: int) -> bytes:
    head = payload[: size * 4 // 3 // 4 * 4].encode("ascii", "ignore")
    try:
        return binascii.a2b_base64(head)
    except binascii.Error:  # wrong padding: the data is broken, or was cut by whoever sent it
        return b""


def _png(head: bytes) -> ImageSize | None:
    if not head.startswith(b"\x89PNG\r\n\x1a\n") or len(head) < 24:
        return None
    return _pair(">II", head, 16)


def _gif(head: bytes) -> ImageSize | None:
    return _pair("<HH", head, 6) if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10 else None


def _webp(head: bytes) -> ImageSize | None:
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP" or len(head) < 30:
        return None
    if head[12:16] == b"VP8X":
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if head[12:16] == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = _pair("<HH", head, 26)
    return width & 0x3FFF, height & 0x3FFF


def _jpeg(data: bytes) -> ImageSize | None:
    position = 2
    while position + 9 <= len(data) and data[position] == 0xFF:
        marker, length = data[position + 1], int.from_bytes(data[position + 2 : position + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame header, whatever the coding
            height, width = _pair(">HH", data, position + 5)
            return (width, height) if width and height else None
        position += 2 + length
    return None


def _pair(layout: str, data: bytes, offset: int) -> tuple[int, int]:
    first, second = struct.unpack_from(layout, data, offset)
    return int(first), int(second)
