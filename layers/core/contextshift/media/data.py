"""The bytes behind base64 text, decoded only where somebody reads them, however long the text is."""

from __future__ import annotations

import binascii

__all__ = ["Embedded"]

_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_WRAPPED_CHARACTERS = 1 << 20
"""Of base64 with line ends in it, which cannot be entered in the middle, only so much is looked at."""
_LINE = 200


class Embedded:
    """Base64 as bytes at any offset. Reading costs what is read, never raises, and broken data reads as nothing.

    >>> Embedded("AAECAwQFBgc=").read(3, 2)
    b'\\x03\\x04'
    """

    __slots__ = ("_start", "_text", "size")

    def __init__(self, text: str, start: int = 0) -> None:
        self.size = max(0, len(text) - start) * 3 // 4
        """Bytes there are, or up to two more."""
        if len(text[start : start + _LINE].split(None, 1)) > 1:
            text, start = "".join(text[start : start + _WRAPPED_CHARACTERS].split()), 0
        self._text, self._start = text, start

    def read(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``offset``."""
        if offset < 0 or size <= 0 or offset >= self.size:
            return b""
        first, last = offset // 3 * 4, -(-(offset + size) // 3) * 4
        quads = self._text[self._start + first : self._start + last].encode("ascii", "ignore").translate(_URL_SAFE)
        quads = quads.rstrip(b"=")
        quads = quads[: len(quads) - 1] if len(quads) % 4 == 1 else quads
        try:
            data = binascii.a2b_base64(quads + b"=" * (-len(quads) % 4))
        except binascii.Error:
            return b""
        return data[offset % 3 : offset % 3 + size]

    def number(self, offset: int, size: int, *, little: bool = False) -> int:
        """Return an unsigned integer of ``size`` bytes; 0 where the data has ended."""
        return int.from_bytes(self.read(offset, size), "little" if little else "big")
