"""``.charx`` files: a zip with ``card.json`` at its root, and files beside it that are not read.

The directory at the end is read as APPNOTE 6.3.10 lays it out (sections 4.3.7, 4.3.12, 4.3.16), by hand: of a file that
anybody may have written we trust no number. One entry is inflated, up to a limit counted while inflating; no name in
the file is ever a path. Entries that overlap, encryption, zip64 and methods other than stored and deflated are refused.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from contextshift.errors import InvalidInput, UploadTooLarge

__all__ = ["CARD_JSON", "MAX_ENTRIES", "MAX_RATIO", "SIGNATURES", "ZipEntry", "read_charx"]

SIGNATURES = (b"PK\3\4", b"PK\5\6")
"""How a zip begins: with an entry, or with the end of an empty directory."""
CARD_JSON = "card.json"
MAX_ENTRIES = 2000
MAX_RATIO = 200
"""Inflated to deflated size of ``card.json`` beyond the first megabyte: JSON text comes to a tenth of it."""
_RATIO_FREE = 1 << 20
_END = struct.Struct("<4s4H2LH")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_MAX_COMMENT = 0xFFFF
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_STORED, _DEFLATED = 0, 8


class ZipEntry(NamedTuple):
    """An entry of the directory, as far as we look at it. Sizes in bytes; ``offset`` is that of its local header."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int


def read_charx(data: bytes, limit: int) -> tuple[bytes, bool]:
    """Return the bytes of ``card.json``, and whether other files stand beside it.

    Raises InvalidInput for what is no such zip, and UploadTooLarge where it says that, or proves to, inflate to
    over ``limit`` bytes.
    """
    entries, start = _directory(data)
    if sum(entry.size for entry in entries) > limit:
        raise UploadTooLarge("the archive inflates to more than an upload may hold", limit)
    _check_overlap(entries, start)
    cards = [entry for entry in entries if entry.name == CARD_JSON]
    if len(cards) != 1:
        raise _broken("the archive must hold one card.json at its root", "missing_card")
    beside = any(entry.size for entry in entries if entry.name != CARD_JSON)
    return _content(data, cards[0], limit), beside


def _directory(data: bytes) -> tuple[list[ZipEntry], int]:
    """Return the entries, with offsets into ``data``, and where the directory starts."""
    at = _end_record(data)
    _, disk, first_disk, here, total, size, offset, _ = _END.unpack_from(data, at)
    if data[max(0, at - 20) : at][:4] == b"PK\6\7" or 0xFFFF in (here, total) or 0xFFFFFFFF in (size, offset):
        raise _broken("zip64 archives are not read", "unsupported_zip")
    if disk or first_disk or here != total or size > at:
        raise _broken("the archive's directory is broken")
    if total > MAX_ENTRIES:
        raise _broken(f"the archive has more than {MAX_ENTRIES} entries", "too_many_entries")
    start = at - size
    before = start - offset  # bytes that stand before the archive proper
    if before < 0:
        raise _broken("the archive's directory is broken")
    return [_moved(entry, before) for entry in _listed(data[start:at], total)], start


def _end_record(data: bytes) -> int:
    """Return where the end record stands: the last whose comment ends the file."""
    earliest = max(0, len(data) - _END.size - _MAX_COMMENT)
    at = data.rfind(b"PK\5\6", earliest)
    while at >= 0:
        if at + _END.size + int.from_bytes(data[at + _END.size - 2 : at + _END.size], "little") == len(data):
            return at
        at = data.rfind(b"PK\5\6", earliest, at + 3)
    raise _broken("not a whole zip archive")


def _listed(directory: bytes, total: int) -> list[ZipEntry]:
    entries: list[ZipEntry] = []
    at = 0
    for _ in range(total):
        if at + _ENTRY.size > len(directory):
            raise _broken("the archive's directory is broken")
        mark, _, _, flags, method, _, _, crc, packed, size, named, extra, comment, *_, offset = _ENTRY.unpack_from(
            directory, at
        )
        if mark != b"PK\1\2":
            raise _broken("the archive's directory is broken")
        at += _ENTRY.size
        name = directory[at : at + named].decode("utf-8", "replace")
        entries.append(ZipEntry(name, flags, method, crc, packed, size, offset))
        at += named + extra + comment
    if at != len(directory):
        raise _broken("the archive's directory is broken")
    return entries


def _moved(entry: ZipEntry, by: int) -> ZipEntry:
    return entry._replace(offset=entry.offset + by)


def _check_overlap(entries: list[ZipEntry], end: int) -> None:
    """Refuse entries that share bytes: one way to make a small archive inflate to anything."""
    for entry in sorted(entries, key=lambda entry: entry.offset, reverse=True):
        if entry.offset + _LOCAL.size + entry.packed > end:
            raise _broken("entries of the archive overlap")
        end = entry.offset


def _content(data: bytes, entry: ZipEntry, limit: int) -> bytes:
    if entry.flags & _ENCRYPTED:
        raise _broken("card.json is encrypted", "unsupported_zip")
    if entry.method not in (_STORED, _DEFLATED):
        raise _broken("card.json is compressed by a method that is not read", "unsupported_zip")
    mark, *_, named, extra = _LOCAL.unpack_from(data, entry.offset)
    start = entry.offset + _LOCAL.size + named + extra
    packed = data[start : start + entry.packed]
    if mark != b"PK\3\4" or len(packed) != entry.packed:
        raise _broken("card.json is cut short")
    if entry.size > max(_RATIO_FREE, MAX_RATIO * entry.packed):
        raise UploadTooLarge("card.json inflates further than text does", limit, CARD_JSON)
    text = packed if entry.method == _STORED else _inflated(packed, entry.size)
    if len(text) != entry.size or zlib.crc32(text) != entry.crc:
        raise _broken("card.json is not what the archive says it is")
    return text


def _inflated(packed: bytes, size: int) -> bytes:
    """Inflate to ``size`` bytes, or one more where there are more."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        text = inflater.decompress(packed, size + 1)
    except zlib.error:
        raise _broken("card.json cannot be inflated") from None
    if not inflater.eof and len(text) <= size:
        raise _broken("card.json is cut short")
    return text


def _broken(message: str, reason: str = "invalid_zip") -> InvalidInput:
    return InvalidInput(message, CARD_JSON if "card.json" in message else None, reason)
