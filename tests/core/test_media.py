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

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + bytes(16)
GIF = b"GIF89a" + struct.pack("<HH", 64, 48) + bytes(16)
WEBP_X = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
WEBP_L = b"RIFF\0\0\0\0WEBPVP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 639 | 479 << 14) + bytes(8)
WEBP = b"RIFF\0\0\0\0WEBPVP8 " + bytes(4) + bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", 640, 480)
FRAME = struct.pack(">BBHBHH", 0xFF, 0xC2, 17, 8, 480, 640)
JPEG = b"\xff\xd8" + struct.pack(">BBH", 0xFF, 0xE0, 16) + bytes(14) + FRAME + bytes(12)
JPEG_LATE = b"\xff\xd8" + (struct.pack(">BBH", 0xFF, 0xE1, 60_002) + bytes(60_000)) * 3 + FRAME + bytes(12)


def image(data: bytes, **extra: object) -> dict[str, Any]:
    url = "data:image/any;base64," + base64.b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": url, **extra}}


@pytest.mark.parametrize("data", [PNG, WEBP_X, WEBP_L, WEBP, JPEG, JPEG_LATE])
def test_the_size_is_read_from_the_header(data: bytes) -> None:
    assert image_size(image(data)) == (640, 480)


def test_the_size_is_found_in_each_shape_of_part() -> None:
    text = base64.b64encode(GIF).decode()
    assert image_size(image(GIF)) == (64, 48)
    assert image_size({"type": "input_image", "image_url": "data:image/gif;base64," + text}) == (64, 48)
    assert image_size({"type": "image", "source": {"type": "base64", "data": text}}) == (64, 48)


@pytest.mark.parametrize("data", [b"", b"no image at all", PNG[:20], JPEG[:12], PNG[:16] + bytes(8)])
def test_what_is_no_image_has_no_size(data: bytes) -> None:
    assert image_size(image(data)) is None


@settings(deadline=None)
@given(st.binary(max_size=64), st.sampled_from([b"", PNG[:12], JPEG[:4], GIF[:6], WEBP_X[:16], WEBP[:16]]))
def test_no_bytes_make_it_raise(data: bytes, start: bytes) -> None:
    size = image_size(image(start + data))
    assert size is None or min(size) >= 0


def test_a_url_is_not_looked_into() -> None:
    assert image_size({"type": "image_url", "image_url": {"url": "https://e.example/i.png"}}) is None
    assert image_size({"type": "image_url", "image_url": None}) is None


def test_the_detail_is_auto_unless_given() -> None:
    assert image_detail(image(PNG)) == "auto"
    assert image_detail(image(PNG, detail="low")) == "low"
    assert image_detail({"type": "input_image", "image_url": "x", "detail": "high"}) == "high"


def test_an_image_is_estimated_by_its_size_up_to_a_cap() -> None:
    assert estimate_image(image(PNG)) < IMAGE_CAP
    assert estimate_image(image(b"unreadable")) == IMAGE_CAP


def test_audio_and_files_are_weighed_by_their_data_and_not_read_as_text() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "A" * 400_000, "format": "wav"}}
    file = {"type": "file", "file": {"file_data": "data:application/pdf;base64," + "A" * 400_000}}
    assert data_bytes(audio) == data_bytes(file) == 300_000
    assert media_tokens(audio) == 2_400
    assert media_tokens(file) == 12_000
    assert media_tokens({"type": "file", "file": {"file_id": "file-1"}}) == 2_000
