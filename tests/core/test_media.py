"""Sizes of images and weights of audio and files, read from headers alone."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextshift.estimate import IMAGE_CAP, estimate_image
from contextshift.media import data_bytes, image_detail, image_size, media_tokens
from contextshift.media.data import Embedded

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + bytes(16)
GIF = b"GIF89a" + struct.pack("<HH", 64, 48) + bytes(16)
WEBP_X = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
WEBP_L = b"RIFF\0\0\0\0WEBPVP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 639 | 479 << 14) + bytes(8)
WEBP = b"RIFF\0\0\0\0WEBPVP8 " + bytes(4) + bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", 640, 480)
BMP = b"BM" + bytes(12) + struct.pack("<Iii", 40, 640, -480) + bytes(30)
BMP_OLD = b"BM" + bytes(12) + struct.pack("<IHH", 12, 640, 480) + bytes(30)
FRAME = struct.pack(">BBHBHH", 0xFF, 0xC2, 17, 8, 480, 640)
JPEG = b"\xff\xd8" + struct.pack(">BBH", 0xFF, 0xE0, 16) + bytes(14) + FRAME + bytes(12)
JPEG_ODD = b"\xff\xd8\xff\x01" + b"\xff\xff\xff" + FRAME + bytes(12)
JPEG_LATE = b"\xff\xd8" + (struct.pack(">BBH", 0xFF, 0xE1, 60_002) + bytes(60_000)) * 3 + FRAME + bytes(12)
JPEG_VERY_LATE = b"\xff\xd8" + (struct.pack(">BBH", 0xFF, 0xE2, 65_000) + bytes(64_998)) * 50 + FRAME + bytes(12)
SIZES_HEIC = b"".join(
    struct.pack(">I4sIII", 20, b"ispe", 0, width, height) for width, height in ((512, 512), (640, 480), (160, 120))
)
HEIC = struct.pack(">I4s4sI", 16, b"ftyp", b"heic", 0) + struct.pack(">I4s", 8, b"meta") + SIZES_HEIC
AVIF = HEIC.replace(b"heic", b"avif")


def tiff(order: str, kind: int) -> bytes:
    """A TIFF whose fields stand behind its pixels, as many writers leave them."""
    value = "HH" if kind == 3 else "I"
    pad = (0,) if kind == 3 else ()
    fields = b"".join(
        struct.pack(f"{order}HHI{value}", tag, kind, 1, number, *pad) for tag, number in ((256, 640), (257, 480))
    )
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return mark + struct.pack(f"{order}I", 100_008) + bytes(100_000) + struct.pack(f"{order}H", 2) + fields


def image(data: bytes, **extra: object) -> dict[str, Any]:
    url = "data:image/any;base64," + base64.b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": url, **extra}}


@pytest.mark.parametrize(
    "data",
    [
        *(PNG, WEBP_X, WEBP_L, WEBP, JPEG, JPEG_ODD, JPEG_LATE, JPEG_VERY_LATE, BMP, BMP_OLD, HEIC, AVIF),
        *(tiff(order, kind) for order in "<>" for kind in (3, 4)),
    ],
)
def test_the_size_is_read_from_the_header(data: bytes) -> None:
    assert image_size(image(data)) == (640, 480)


def test_the_size_is_found_in_each_shape_of_part() -> None:
    text = base64.b64encode(GIF).decode()
    assert image_size(image(GIF)) == (64, 48)
    assert image_size({"type": "input_image", "image_url": "data:image/gif;base64," + text}) == (64, 48)
    assert image_size({"type": "image", "source": {"type": "base64", "data": text}}) == (64, 48)
    assert image_size({"inline_data": {"mime_type": "image/gif", "data": text}}) == (64, 48)
    assert image_size({"inlineData": {"mimeType": "image/gif", "data": text}}) == (64, 48)
    assert image_size({"type": "image_url", "image_url": {"url": "DATA:image/gif;charset=x;base64," + text}}) == (
        64,
        48,
    )


@pytest.mark.parametrize("data", [PNG, JPEG_LATE, tiff("<", 4)])
def test_base64_may_be_wrapped_url_safe_and_without_padding(data: bytes) -> None:
    url = "data:image/any;base64,"
    for text in (
        base64.encodebytes(data).decode(),
        base64.encodebytes(data).decode().replace("\n", "\r\n"),
        base64.urlsafe_b64encode(data).decode(),
        base64.b64encode(data).decode().rstrip("="),
    ):
        assert image_size({"type": "image_url", "image_url": {"url": url + text}}) == (640, 480)


def test_only_what_is_read_is_decoded() -> None:
    data = bytes(range(256)) * 3
    embedded = Embedded(base64.b64encode(data).decode())
    for offset in range(0, 300, 7):
        assert embedded.read(offset, 11) == data[offset : offset + 11]
    assert embedded.read(len(data) - 2, 10) == data[-2:]
    assert embedded.read(len(data), 10) == embedded.read(-1, 4) == embedded.read(0, 0) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 0, 480),
        b"\xff\xd8" + b"\xff\xe0\x00\x00" * 200_000,  # segments of no length
        b"\xff\xd8" + b"\xff" * 1_000_000,
        b"II*\0" + b"\xff" * 100,
        HEIC[:40],
        b"BM" + bytes(100),
    ],
    ids=["zero", "segments", "padding", "tiff", "heic", "bmp"],
)
def test_a_hostile_header_has_no_size(data: bytes) -> None:
    assert image_size(image(data)) is None


def test_a_huge_claim_is_bounded_by_the_cap() -> None:
    for side in (2**31 - 1, 2**31, 2**32 - 1):
        huge = image(b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", side, side))
        assert image_size(huge) == (side, side)
        assert estimate_image(huge) == IMAGE_CAP


@pytest.mark.parametrize("data", [b"", b"no image at all", PNG[:20], JPEG[:12], PNG[:16] + bytes(8)])
def test_what_is_no_image_has_no_size(data: bytes) -> None:
    assert image_size(image(data)) is None


STARTS = [b"", PNG[:12], JPEG[:4], GIF[:6], WEBP_X[:16], WEBP[:16], BMP[:14], HEIC[:20], b"II*\0", b"MM\0*\0\0\0\x08"]


@settings(deadline=None)
@given(st.binary(max_size=64), st.sampled_from(STARTS))
def test_no_bytes_make_it_raise(data: bytes, start: bytes) -> None:
    size = image_size(image(start + data))
    assert size is None or min(size) >= 0


@settings(deadline=None)
@given(st.text(st.characters(), max_size=80), st.sampled_from(["", "data:image/png;base64,", "data:,", "data:"]))
def test_no_text_makes_it_raise(text: str, start: str) -> None:
    for part in (
        {"type": "image_url", "image_url": {"url": start + text}},
        {"type": "file", "file_data": start + text},
    ):
        assert image_size(part) is None or min(image_size(part) or ()) > 0
        assert media_tokens(part) > 0
        assert data_bytes(part) >= 0


def test_a_url_is_not_looked_into() -> None:
    assert image_size({"type": "image_url", "image_url": {"url": "https://e.example/i.png"}}) is None
    assert image_size({"type": "image_url", "image_url": None}) is None


def test_the_detail_is_auto_unless_given() -> None:
    assert image_detail(image(PNG)) == "auto"
    assert image_detail(image(PNG, detail="low")) == "low"
    assert image_detail({"type": "input_image", "image_url": "x", "detail": "high"}) == "high"
    level = {"media_resolution": {"level": "MEDIA_RESOLUTION_LOW"}}
    assert image_detail({"inline_data": {}, **level}) == "media_resolution_low"


def test_an_image_is_estimated_by_its_size_up_to_a_cap() -> None:
    assert estimate_image(image(PNG)) < IMAGE_CAP
    assert estimate_image(image(b"unreadable")) == IMAGE_CAP


def test_audio_and_files_are_weighed_by_their_data_and_not_read_as_text() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "A" * 400_000, "format": "wav"}}
    file = {"type": "file", "file": {"file_data": "data:application/pdf;base64," + "A" * 400_000}}
    assert data_bytes(audio) == data_bytes(file) == 300_000
    assert media_tokens(audio) == 1_200
    assert media_tokens(file) == 18_000
    assert media_tokens({"type": "file", "file": {"file_id": "file-1"}}) == 3_000
    assert media_tokens({"type": "audio_url", "audio_url": {"url": "https://e.example/a.mp3"}}) == 60 * 32
