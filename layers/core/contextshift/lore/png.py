"""Cards inside PNG and APNG pictures: a text chunk ``ccv3`` or ``chara`` that holds base64 of UTF-8 JSON.

Chunks are read as PNG's third edition lays them out (length, type, data, CRC; sections 5.3 and 11.3.3). ``tEXt``,
``zTXt`` and ``iTXt`` are all read, since tools differ; ``tEXt`` is written, as the card's specification asks. Nothing
is decoded but text, and no text beyond the bytes that an upload may inflate to.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from contextshift.errors import InvalidInput, UploadTooLarge

__all__ = [
    "CCV3",
    "CHARA",
    "MAX_CHUNKS",
    "SIGNATURE",
    "CardText",
    "Chunk",
    "TextFault",
    "blank_png",
    "card_texts",
    "chunks",
    "embed",
    "has_assets",
    "unpacked",
]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHARA = "chara"
CCV3 = "ccv3"
MAX_CHUNKS = 100_000
_TEXT_TYPES = (b"tEXt", b"zTXt", b"iTXt")
_MAX_KEYWORD = 79
_OVERHEAD = 12


class Chunk(NamedTuple):
    """A chunk of a picture, and whether its bytes are all there and its CRC is right."""

    type: bytes
    data: bytes
    raw: bytes
    """As it stands in the file: length, type, data, CRC."""
    complete: bool

    @property
    def sound(self) -> bool:
        """Whether the CRC is that of the type and the data."""
        return self.complete and zlib.crc32(self.raw[4:-4]) == int.from_bytes(self.raw[-4:], "big")


class CardText(NamedTuple):
    """A chunk that holds a card: its keyword in lower case, the text behind it, and whether the CRC is right."""

    keyword: str
    text: bytes
    sound: bool


class TextFault(Exception):
    """Raise for a text chunk that cannot be read."""


def chunks(picture: bytes) -> Iterator[Chunk]:
    """Yield the chunks up to ``IEND``; the last one may be incomplete. Raises InvalidInput for what is no PNG."""
    if not picture.startswith(SIGNATURE):
        raise InvalidInput("not a PNG picture", None, "invalid_png")
    at = len(SIGNATURE)
    for number in range(MAX_CHUNKS + 1):
        if at >= len(picture):
            return
        if number == MAX_CHUNKS:
            raise InvalidInput(f"the picture has more than {MAX_CHUNKS} chunks", None, "too_many_chunks")
        length = int.from_bytes(picture[at : at + 4], "big")
        end = at + length + _OVERHEAD
        chunk_type = picture[at + 4 : at + 8]
        yield Chunk(chunk_type, picture[at + 8 : end - 4], picture[at:end], end <= len(picture))
        if chunk_type == b"IEND":
            return
        at = end


def card_texts(picture: bytes, limit: int) -> tuple[list[CardText], list[str], bool]:
    """Return the card chunks in order, the keywords of those that cannot be read, and whether the file is whole.

    Raises InvalidInput for what is no PNG and UploadTooLarge where the texts inflate to over ``limit`` bytes.
    """
    found: list[CardText] = []
    unreadable: list[str] = []
    last, whole, room = b"", True, limit
    for chunk in chunks(picture):
        last, whole = chunk.type, whole and chunk.complete
        keyword = _keyword(chunk)
        if keyword not in (CHARA, CCV3):
            continue
        try:
            text = _text(chunk, room)
        except TextFault:
            unreadable.append(keyword)
            continue
        room -= len(text)
        if room < 0:
            raise UploadTooLarge("the picture's text inflates to more than an upload may hold", limit, keyword)
        found.append(CardText(keyword, text, chunk.sound))
    return found, unreadable, whole and last == b"IEND"


def has_assets(picture: bytes) -> bool:
    """Whether the picture carries files of the card beside it (``chara-ext-asset_:…``)."""
    return any(c.type in _TEXT_TYPES and c.data.startswith(b"chara-ext-asset_") for c in chunks(picture))


def unpacked(text: bytes) -> bytes:
    """Return the JSON bytes behind base64 text; line ends in it and missing padding are forgiven.

    Raises TextFault where it is not base64.
    """
    packed = b"".join(text.split()).rstrip(b"=")
    try:
        return binascii.a2b_base64(packed + b"=" * (-len(packed) % 4), strict_mode=True)
    except binascii.Error:
        raise TextFault from None


def embed(json_text: bytes, picture: bytes | None = None) -> bytes:
    """Return ``picture``, or a blank one, with the card in its ``ccv3`` chunk, before ``IEND``.

    Card chunks that it had are replaced, so that it tells one character; every other byte stays as it is.
    Raises InvalidInput for what is no PNG, or a broken one.
    """
    picture = blank_png() if picture is None else picture
    kept: list[bytes] = [SIGNATURE]
    size = len(SIGNATURE)
    for chunk in chunks(picture):
        if not chunk.complete:
            break
        size += len(chunk.raw)
        if chunk.type == b"IEND":
            card = _chunk(b"tEXt", CCV3.encode() + b"\0" + base64.b64encode(json_text))
            return b"".join((*kept, card, chunk.raw, picture[size:]))
        if _keyword(chunk) not in (CHARA, CCV3):
            kept.append(chunk.raw)
    raise InvalidInput("the picture is cut short", None, "invalid_png")


def blank_png() -> bytes:
    """Return the smallest picture: one grey pixel."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\x80")
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(chunk_type: bytes, data: bytes) -> bytes:
    body = chunk_type + data
    return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def _keyword(chunk: Chunk) -> str:
    if chunk.type not in _TEXT_TYPES:
        return ""
    return chunk.data[: _MAX_KEYWORD + 1].partition(b"\0")[0].decode("latin-1").lower()


def _text(chunk: Chunk, room: int) -> bytes:
    """Return the text of a text chunk, or more than ``room`` bytes of one too long. Raises TextFault."""
    if not chunk.complete:
        raise TextFault
    rest = chunk.data.partition(b"\0")[2]
    if chunk.type == b"tEXt":
        return rest
    if chunk.type == b"zTXt":
        return _inflated(rest[1:], room)
    packed, body = rest[:1] == b"\1", rest[2:]
    text = body.partition(b"\0")[2].partition(b"\0")[2]
    return _inflated(text, room) if packed else text


def _inflated(data: bytes, room: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(data, room + 1)
    except zlib.error:
        raise TextFault from None
    if not inflater.eof and len(text) <= room:
        raise TextFault
    return text
