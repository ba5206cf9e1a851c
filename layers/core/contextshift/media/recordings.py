"""How long a recording lasts, from its header: WAV, MP3, FLAC, Ogg (Opus, Vorbis), MP4, M4A, MOV and WebM.

Reads a few headers and at most some 64 kB, and never raises. A length that the data could not hold at the
lowest of bit rates is not believed, nor one below what it takes at the format's highest.
"""

from __future__ import annotations

import math
import struct

from contextshift.media.data import Embedded

__all__ = ["recording_seconds"]

_LEAST_RATE = 250
"""Bytes a second, 2 kbit/s: below the lowest speech codecs."""
_TAIL = 1 << 16
"""An Ogg page is no longer than this."""
_CHUNKS = 64
_SYNC = 4_096
"""Bytes that may stand before the first frame of an MP3, and after the sound of a WAV: a WAV that says it is shorter by
more was written before the end was known."""
_MP3_MOST = 56_000
"""Bytes a second, the highest rate of `_MP3_RATES`."""

_MP3_RATES = {
    (True, 3): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 1): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 3): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 1): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
"""kbit/s by version 1 or not and by the layer's bits: ISO 11172-3 and 13818-3."""
_MP3_SAMPLES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}


def recording_seconds(data: Embedded) -> float | None:
    """Return the length in seconds; None where the header does not tell."""
    head = data.read(0, 64)
    seconds = _seconds(head, data)
    if seconds is None or not 0 < seconds < math.inf:
        return None
    return min(seconds, data.size / _LEAST_RATE + 1)


def _seconds(head: bytes, data: Embedded) -> float | None:
    if head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE":
        return _wav(data)
    if head[:4] == b"fLaC":
        fields = int.from_bytes(head[18:26], "big")
        return _ratio(fields & (1 << 36) - 1, fields >> 44)
    if head[:4] == b"OggS":
        return _ogg(data)
    if head[4:8] in (b"ftyp", b"moov"):
        return _mp4(data)
    if head[:4] == b"\x1aE\xdf\xa3":
        return _webm(data.read(0, _SYNC))
    return _mp3(head, data)


def _ratio(count: float, rate: float) -> float | None:
    return count / rate if rate else None


def _wav(data: Embedded) -> float | None:
    position, rate = 12, 0
    for _ in range(_CHUNKS):
        head = data.read(position, 20)
        if len(head) < 8:
            return None
        size = int.from_bytes(head[4:8], "little")
        if head[:4] == b"fmt ":
            rate = _wav_rate(data.read(position + 8, 14))
        elif head[:4] == b"data":
            rest = data.size - position - 8
            return _ratio(size if 0 <= rest - size < _SYNC else rest, rate)
        position += 8 + size + size % 2
    return None


def _wav_rate(form: bytes) -> int:
    """Return the bytes a second that a format chunk says, where it says it twice the fewer."""
    said, frames, frame = (int.from_bytes(form[a:b], "little") for a, b in ((8, 12), (4, 8), (12, 14)))
    return min(said, frames * frame) or said


def _ogg(data: Embedded) -> float | None:
    head, tail = data.read(0, 256), data.read(max(0, data.size - _TAIL - 2), _TAIL + 2)
    page, vorbis = tail.rfind(b"OggS"), head.find(b"\x01vorbis")
    rate = 48_000 if b"OpusHead" in head else 0
    if vorbis >= 0:
        rate = int.from_bytes(head[vorbis + 12 : vorbis + 16], "little")
    if page < 0:
        return None
    return _ratio(int.from_bytes(tail[page + 6 : page + 14], "little"), rate)


def _mp4(data: Embedded) -> float | None:
    moov = _box(data, 0, data.size, b"moov")
    header = _box(data, *moov, b"mvhd") if moov else None
    if header is None:
        return None
    start = header[0]
    if data.number(start, 1) == 1:  # the version with long dates
        return _ratio(data.number(start + 24, 8), data.number(start + 20, 4))
    return _ratio(data.number(start + 16, 4), data.number(start + 12, 4))


def _box(data: Embedded, start: int, end: int, name: bytes) -> tuple[int, int] | None:
    """Return where the inside of the first box of a name begins and ends."""
    for _ in range(_CHUNKS):
        head = data.read(start, 16)
        if len(head) < 8 or start >= end:
            return None
        size, inside = int.from_bytes(head[:4], "big"), 8
        if size == 1:
            size, inside = int.from_bytes(head[8:16], "big"), 16
        if head[4:8] == name:
            return start + inside, start + size if size else end
        if size < inside:  # to the end of the file, or nonsense
            return None
        start += size
    return None


def _webm(head: bytes) -> float | None:
    position = head.find(b"\x44\x89")  # the element Duration, a float
    width = {0x84: 4, 0x88: 8}.get(head[position + 2] if 0 <= position < len(head) - 10 else 0)
    if width is None:
        return None
    (ticks,) = struct.unpack_from(">f" if width == 4 else ">d", head, position + 3)
    scale = head.find(b"\x2a\xd7\xb1\x83")  # TimecodeScale, in nanoseconds
    tick = int.from_bytes(head[scale + 4 : scale + 7], "big") if scale >= 0 else 1_000_000
    return float(ticks) * tick / 1e9


def _mp3(head: bytes, data: Embedded) -> float | None:
    start = 0
    if head[:3] == b"ID3" and len(head) >= 10:
        start = 10 + sum((byte & 0x7F) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True))
    frames = data.read(start, _SYNC)
    position = frames.find(b"\xff")
    while 0 <= position < len(frames) - 4:
        seconds = _frames(frames[position : position + 256], data.size - start - position)
        if seconds is not None:
            return seconds
        position = frames.find(b"\xff", position + 1)
    return None


def _frames(frame: bytes, rest: int) -> float | None:
    """Return the seconds of ``rest`` bytes of frames like this one, None where it is no MPEG audio frame."""
    bits = int.from_bytes(frame[:4], "big")
    version, layer, rate, sampling = bits >> 19 & 3, bits >> 17 & 3, bits >> 12 & 15, bits >> 10 & 3
    if bits >> 21 != 0x7FF or version == 1 or layer == 0 or rate in (0, 15) or sampling == 3:
        return None
    tag = max(frame.find(b"Xing"), frame.find(b"Info"))
    if tag >= 0 and frame[tag + 7 : tag + 8] and frame[tag + 7] & 1:  # a variable rate, with the frames counted
        samples = 384 if layer == 3 else 1_152 if layer == 2 or version == 3 else 576
        counted = int.from_bytes(frame[tag + 8 : tag + 12], "big") * samples / _MP3_SAMPLES[version][sampling]
        return max(counted, rest / _MP3_MOST)
    return rest / (_MP3_RATES[version == 3, layer][rate - 1] * 125)
