"""Width and height from an image's header: PNG, JPEG, GIF, WebP, BMP, TIFF, HEIC and AVIF.

A camera's note that the picture is to be turned (EXIF orientation) is not read: no provider's rule changes
when width and height change places. Nothing here raises, and no header makes it read more than some 64 kB.
"""

from __future__ import annotations

import struct

from contextshift.media.data import Embedded

__all__ = ["ImageSize", "picture_size"]

ImageSize = tuple[int, int]
"""Width and height in pixels."""

_HEAD = 64
_SEGMENTS = 512
"""Of a JPEG's segments only so many are stepped over; one with a large colour profile has some fifty."""
_BOXES = 1 << 16
"""Bytes of a HEIC or AVIF that are searched for its sizes; they stand before the pixels."""
_BOX_SIZES = 256
_TIFF_FIELDS = 64


def picture_size(data: Embedded) -> ImageSize | None:
    """Return the size of the picture, None where its header is unknown, broken or says zero."""
    head = data.read(0, _HEAD)
    size = _size(head, data)
    return size if size and min(size) > 0 else None


def _size(head: bytes, data: Embedded) -> ImageSize | None:
    if head.startswith(b"\xff\xd8"):
        return _jpeg(data)
    if head[4:8] == b"ftyp":
        return _boxes(data.read(0, _BOXES))
    if head[:4] in (b"II*\0", b"MM\0*"):
        return _tiff(data, little=head[:1] == b"I")
    return _png(head) or _gif(head) or _webp(head) or _bmp(head)


def _png(head: bytes) -> ImageSize | None:
    if not head.startswith(b"\x89PNG\r\n\x1a\n") or len(head) < 24:
        return None
    return _pair(">II", head, 16)


def _gif(head: bytes) -> ImageSize | None:
    return _pair("<HH", head, 6) if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10 else None


def _bmp(head: bytes) -> ImageSize | None:
    if not head.startswith(b"BM") or len(head) < 26:
        return None
    if int.from_bytes(head[14:18], "little") == 12:
        return _pair("<HH", head, 18)
    width, height = _pair("<ii", head, 18)
    return abs(width), abs(height)  # a negative height says that the rows stand from top to bottom


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


def _jpeg(data: Embedded) -> ImageSize | None:
    position = 2
    for _ in range(_SEGMENTS):
        head = data.read(position, 9)
        if len(head) < 9 or head[0] != 0xFF:
            return None
        marker, length = head[1], int.from_bytes(head[2:4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame header, whatever the coding
            height, width = _pair(">HH", head, 5)
            return width, height
        if marker == 0xFF:  # padding before a marker
            position += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # markers that stand alone
            position += 2
        else:
            position += 2 + max(2, length)
    return None


def _tiff(data: Embedded, little: bool) -> ImageSize | None:
    order = "<" if little else ">"
    start = data.number(4, 4, little=little)
    fields = data.read(start + 2, 12 * min(_TIFF_FIELDS, data.number(start, 2, little=little)))
    found = {}
    for position in range(0, len(fields) - 11, 12):
        tag, kind = struct.unpack_from(f"{order}HH", fields, position)
        if tag in (256, 257) and kind in (3, 4):  # ImageWidth, ImageLength; SHORT or LONG
            value = fields[position + 8 : position + (10 if kind == 3 else 12)]
            found[tag] = int.from_bytes(value, "little" if little else "big")
    return (found[256], found[257]) if len(found) == 2 else None


def _boxes(head: bytes) -> ImageSize | None:
    """Return the largest of the sizes (`ispe`) that a HEIC or AVIF lists: its own, its tiles', its thumbnail's."""
    sizes: list[ImageSize] = []
    position = head.find(b"ispe")
    while 0 <= position <= len(head) - 16 and len(sizes) < _BOX_SIZES:
        sizes.append(_pair(">II", head, position + 8))
        position = head.find(b"ispe", position + 4)
    return max(sizes, key=lambda size: size[0] * size[1], default=None)


def _pair(layout: str, data: bytes, offset: int) -> tuple[int, int]:
    first, second = struct.unpack_from(layout, data, offset)
    return int(first), int(second)
