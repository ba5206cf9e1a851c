"""How many pages a PDF has, counted without reading it: from its first two megabytes, and never raising."""

from __future__ import annotations

import re
import zlib

from contextshift.media.data import Embedded

__all__ = ["PAGE_BYTES", "pdf_pages"]

PAGE_BYTES = 50_000
"""Of a file whose pages cannot be counted, one is taken for each 50 kB begun: a rough guess."""

_LOOK = 1 << 21
_STREAMS, _STREAM = 32, 1 << 16
"""So many object streams are unpacked, each up to 64 kB: no archive bomb goes off here."""
_LEAST_PAGE = 40
"""Bytes of the least page object; of a claim of more pages than fit, the rest is not believed."""

_LINEARIZED = re.compile(rb"/Linearized.{0,200}?/N\s{0,4}(\d{1,7})", re.DOTALL)
_PAGE = re.compile(rb"/Type\s{0,4}/Page(?![A-Za-z])")
_PAGES = re.compile(rb"/Type\s{0,4}/Pages(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s{0,4}(\d{1,7})")
_NEAR = 300


def pdf_pages(data: Embedded) -> int | None:
    """Return the pages of a PDF, by its own count or by its page objects; None for what is no PDF."""
    start = data.read(0, 1_024)
    if b"%PDF-" not in start:
        return None
    linearized = _LINEARIZED.search(start)
    body = data.read(0, _LOOK)
    pages, counted = _counted(body)
    counted = max(counted, int(linearized[1]) if linearized else 0)  # of before what was appended later
    for unpacked in _object_streams(body):
        more, tree = _counted(unpacked)
        pages, counted = pages + more, max(counted, tree)
    by_size = -(-data.size // PAGE_BYTES)
    if not counted and (not pages or data.size > _LOOK):  # the page tree lies elsewhere
        return max(pages, by_size, 1)
    return _believed(max(pages, counted), data.size)


def _counted(body: bytes) -> tuple[int, int]:
    """Return how many page objects there are, and the largest count of a page tree."""
    pages, counted = sum(1 for _ in _PAGE.finditer(body)), 0
    for tree, _ in zip(_PAGES.finditer(body), range(_STREAMS), strict=False):
        near = body[max(0, tree.start() - _NEAR) : tree.end() + _NEAR]
        counted = max(counted, *(int(count) for count in _COUNT.findall(near)), 0)
    return pages, counted


def _object_streams(body: bytes) -> list[bytes]:
    unpacked: list[bytes] = []
    position = -1
    for _ in range(_STREAMS):
        position = body.find(b"/ObjStm", position + 1)
        if position < 0:
            break
        start = body.find(b"stream", position, position + 1_024)
        if start >= 0:
            unpacked.append(_unpacked(body[start + 6 : start + 6 + _STREAM].lstrip(b"\r\n")))
    return unpacked


def _unpacked(packed: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(packed, _STREAM)
    except zlib.error:
        return b""


def _believed(pages: int, size: int) -> int:
    return max(1, min(pages, size // _LEAST_PAGE + 1))
