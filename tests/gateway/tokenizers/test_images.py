"""Images, audio and files by their providers' rules: the published checks, and that nothing costs more than the cap."""

from __future__ import annotations

import base64
import struct
import time
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bastion.tokenizers import images, media
from bastion.tokenizers.images import GridRule, ImageRule, LevelRule, PatchRule, PixelTileRule, TileRule
from bastion.tokenizers.media import MediaRule
from bastion.tokenizers.registry import counter_for
from contextshift.estimate import estimate_image
from contextshift.media import image_size, media_tokens
from gateway.tokenizers.oracle import VOCABULARIES

RULES: dict[str, ImageRule] = {
    name: value for name, value in vars(images).items() if name.isupper() and hasattr(value, "tokens")
}
MEDIA: dict[str, MediaRule] = {name: rule for name, rule in vars(media).items() if isinstance(rule, MediaRule)}
DETAILS = st.sampled_from(["auto", "low", "high", "original", "ultra_high", "media_resolution_low", "", "nonsense"])
SIDES = st.integers(1, 5_000) | st.integers(1, 2**32)


def png(width: int, height: int) -> bytes:
    """A whole picture, of one grey line after the other."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    pixels = zlib.compress(bytes((width + 1) * height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def as_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64," + base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("rule", "size", "detail", "tokens"),
    [
        (images.GPT_4O, (1024, 1024), "high", 765),  # OpenAI's guide
        (images.GPT_4O, (2048, 4096), "auto", 1_105),
        (images.GPT_4O, (4096, 8192), "low", 85),
        (images.GPT_4O, (3008, 2000), "auto", 1_105),  # reported usage
        (images.GPT_4O, (2000, 3008), "auto", 1_105),  # turned by its EXIF
        (images.GPT_4O, (512, 512), "high", 255),
        (images.GPT_4O, (10**9, 1), "high", 85 + 4 * 170),
        (images.GPT_4O_MINI, (1024, 1024), "high", 2_833 + 4 * 5_667),
        (images.GPT_4O_MINI, (1024, 1024), "low", 2_833),
        (images.O_SERIES, (1024, 1024), "high", 675),
        (images.GPT_5, (1024, 1024), "high", 630),
        (images.GPT_4_1_NANO, (540, 360), "auto", 503),  # reported; the guide's number is 502
        (PatchRule(1.2), (597, 566), "auto", 412),  # reported on gpt-5-mini
        (PatchRule(1.2), (400, 301), "auto", 157),
        (images.GPT_5_MINI, (597, 566), "auto", 556),  # the published factor, the safe one
        (PatchRule(1.0), (1024, 1024), "auto", 1_024 + 1),  # the guide's two examples, and the one more
        (PatchRule(1.0), (1800, 2400), "auto", 1_452 + 1),
        (PatchRule(1.0), (10**9, 1), "auto", 1_536 + 1),
        (images.GPT_5_4, (3_200, 3_200), "original", 16_201),
        (images.GPT_5_4, (3_200, 3_200), "high", 4_051),
        (images.CLAUDE, (1001, 1001), "auto", 1_296 + 3),  # recorded: 1,297-1,299
        (images.CLAUDE, (540, 360), "auto", 260 + 3),  # recorded: 263
        (images.CLAUDE, (4000, 3000), "auto", 1_600 + 3),
        (images.CLAUDE, (10_000, 28), "auto", 56 + 3),
        (images.CLAUDE_HIGH, (2576, 1449), "auto", 92 * 52 + 3),
        (images.CLAUDE_HIGH, (9999, 9999), "auto", 4_800),
        (images.GEMINI_2, (384, 384), "auto", 258),
        (images.GEMINI_2, (3008, 2000), "auto", 13 * 258),  # recorded: 3,354
        (images.GEMINI_2, (960, 540), "auto", 7 * 258),  # six tiles in Google's example
        (images.GEMINI_3, (1, 1), "auto", 1_120),
        (images.GEMINI_3, (9999, 9999), "low", 1_120),
        (images.GEMINI_3, None, "media_resolution_low", 280),
        (images.GEMINI_3, None, "ultra_high", 2_240),
        (images.UNKNOWN, (1, 1), "low", 1_120),
    ],
)
def test_an_image_costs_what_was_published_or_reported(rule: ImageRule, size: Any, detail: str, tokens: int) -> None:
    assert rule.tokens(size, detail) == tokens


@pytest.mark.parametrize("name", RULES)
@settings(deadline=None)
@given(width=SIDES, height=SIDES, detail=DETAILS)
def test_no_size_costs_nothing_or_more_than_an_unknown_one(name: str, width: int, height: int, detail: str) -> None:
    rule = RULES[name]
    tokens = rule.tokens((width, height), detail)
    assert 0 < tokens <= rule.tokens(None, detail) <= rule.tokens(None, "original") or detail == "ultra_high"
    assert rule.tokens((height, width), detail) == tokens


@settings(deadline=None)
@given(width=SIDES, height=SIDES)
def test_an_unknown_providers_image_costs_what_the_core_estimates(width: int, height: int) -> None:
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width % 2**32 or 1, height % 2**32 or 1)
    part = {"type": "image_url", "image_url": {"url": as_url(data)}}
    assert images.UNKNOWN.tokens(image_size(part), "auto") == estimate_image(part)


def test_rules_are_data() -> None:
    assert {type(rule) for rule in RULES.values()} >= {TileRule, PatchRule, GridRule, PixelTileRule, LevelRule}
    assert TileRule(85, 170) == images.GPT_4O


def prompt(model: str, *parts: dict[str, Any]) -> int:
    count = counter_for(None, model, [VOCABULARIES])
    return count({"role": "user", "content": list(parts)}) - count({"role": "user", "content": ""})


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5", "claude-sonnet-4-5", "nobody/knows"])
def test_a_picture_of_300_kb_is_never_text(model: str) -> None:
    """Case B26: base64 counted as text makes it a hundred thousand tokens."""
    url = as_url(png(1024, 1024) + bytes(225_000))
    text = {"type": "text", "text": "what is on this picture"}
    for image in (
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "input_image", "image_url": url},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": url.partition(",")[2]}},
        {"inline_data": {"mime_type": "image/png", "data": url.partition(",")[2]}},
        {"type": "nobody_knows", "image_url": url, "data": url.partition(",")[2]},
    ):
        assert prompt(model, text) <= prompt(model, text, image) <= prompt(model, text) + 5_000


def test_each_shape_of_part_is_priced_by_its_size() -> None:
    url = as_url(png(1024, 1024))
    assert prompt("gpt-4o", {"type": "image_url", "image_url": {"url": url}}) == 765
    assert prompt("gpt-4o", {"type": "image_url", "image_url": {"url": url, "detail": "low"}}) == 85
    assert prompt("gpt-4o", {"type": "input_image", "image_url": url, "detail": "HIGH"}) == 765
    source = {"type": "base64", "media_type": "image/png", "data": url.partition(",")[2]}
    assert prompt("gpt-4o", {"type": "image", "source": source}) == 765
    assert prompt("gpt-4o", {"type": "image_url", "image_url": {"url": "https://e.example/i.png"}}) == 85 + 8 * 170


@pytest.mark.parametrize(
    ("rule", "part", "tokens"),
    [
        (media.OPENAI_MEDIA, "audio", 100),
        (media.GEMINI_2_MEDIA, "audio", 320),
        (media.GEMINI_2_MEDIA, "pdf", 5 * 258),  # recorded: 1,290
        (media.GEMINI_3_MEDIA, "pdf", 5 * 1_120),
        (media.CLAUDE_MEDIA, "pdf", 5 * (3_000 + 1_603)),
        (media.OPENAI_MEDIA, "pdf", 5 * (1_500 + 1_105)),
        (media.GEMINI_2_MEDIA, "video", 2_630),
        (media.CLAUDE_MEDIA, "text", 2),
    ],
)
def test_audio_video_and_files_cost_by_their_headers(rule: MediaRule, part: str, tokens: int) -> None:
    assert rule.tokens(PARTS[part], lambda text: len(text.split())) == tokens


WAV = b"RIFF\0\0\0\0WAVE" + struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8_000, 8_000, 1, 8)
WAV += struct.pack("<4sI", b"data", 80_000) + bytes(80_000)
MVHD = struct.pack(">I4sIIIII", 100, b"mvhd", 0, 0, 0, 600, 6_000) + bytes(72)
MP4 = struct.pack(">I4s4s", 12, b"ftyp", b"isom") + struct.pack(">I4s", 108, b"moov") + MVHD + bytes(100_000)
PARTS: dict[str, dict[str, Any]] = {
    "audio": {"type": "input_audio", "input_audio": {"data": base64.b64encode(WAV).decode(), "format": "wav"}},
    "video": {"type": "video_url", "video_url": {"url": as_url(MP4, "video/mp4")}},
    "pdf": {"type": "file", "file": {"file_data": as_url(b"%PDF-1.4 " + b"<</Type /Page >>" * 5 + bytes(900))}},
    "text": {"type": "file", "file": {"filename": "a.txt", "file_data": as_url(b"two words", "text/plain")}},
}


def test_an_unknown_providers_media_cost_what_the_core_guesses() -> None:
    for part in PARTS.values():
        assert media.UNKNOWN_MEDIA.tokens(part, len) == media_tokens(part, len)


@pytest.mark.parametrize("name", MEDIA)
@settings(deadline=None)
@given(data=st.binary(max_size=200), start=st.sampled_from([b"", WAV[:40], MP4[:90], b"%PDF-1.4 <</Type /Page"]))
def test_no_bytes_make_a_rule_raise(name: str, data: bytes, start: bytes) -> None:
    for kind in ("audio/x", "video/x", "application/pdf", "text/plain", ""):
        part = {"type": "file", "file": {"file_data": as_url(start + data, kind)}}
        assert MEDIA[name].tokens(part) >= 1


@pytest.mark.parametrize(
    "start",
    [
        b"\xff\xd8" + b"\xff\xe0\0\2" * 100,
        b"%PDF-1.4 /ObjStm stream",
        WAV[:40],
        b"\xff" * 9_000,
        b"OggS",
        b"\0\0\0\x10ftypheic",
    ],
)
def test_a_hostile_header_before_twenty_megabytes_costs_no_time(start: bytes) -> None:
    url = as_url(start * 40 + bytes(20_000_000))
    parts = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "file", "file": {"file_data": url}},
        {"type": "input_audio", "input_audio": {"data": url}},
    ]
    began = time.process_time()
    assert prompt("gpt-4o", *parts) > 0
    assert time.process_time() - began < 0.5
