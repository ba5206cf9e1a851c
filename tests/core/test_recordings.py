"""How long recordings last and how many pages files have, read from headers made by hand."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextshift.media import media_kind, media_pages, media_seconds, media_tokens, plain_text
from contextshift.media.data import Embedded
from contextshift.media.documents import pdf_pages
from contextshift.media.recordings import recording_seconds


def embedded(data: bytes) -> Embedded:
    return Embedded(base64.b64encode(data).decode())


def box(name: bytes, inside: bytes, long: bool = False) -> bytes:
    if long:
        return struct.pack(">I4sQ", 1, name, len(inside) + 16) + inside
    return struct.pack(">I4s", len(inside) + 8, name) + inside


def wav(seconds: int, rate: int = 16_000, claimed: int | None = None) -> bytes:
    size = seconds * rate * 2
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16)
    data = struct.pack("<4sI", b"data", size if claimed is None else claimed) + bytes(size)
    return b"RIFF\0\0\0\0WAVE" + struct.pack("<4sI", b"LIST", 3) + b"abc\0" + form + data


FLAC = b"fLaC\0\0\0\x22" + bytes(10) + ((44_100 << 44) | (441_000)).to_bytes(8, "big") + bytes(50_000)
OPUS = b"OggS" + bytes(24) + b"OpusHead" + bytes(30_000) + b"OggS\0\x04" + struct.pack("<q", 480_000) + bytes(40)
VORBIS = b"OggS" + bytes(24) + b"\x01vorbis" + struct.pack("<IBI", 0, 1, 8_000) + bytes(30_000)
VORBIS += b"OggS\0\x04" + struct.pack("<q", 80_000) + bytes(40)
MVHD = struct.pack(">IIIII", 0, 0, 0, 1_000, 10_000) + bytes(80)
MVHD_LONG = struct.pack(">IQQIQ", 1 << 24, 0, 0, 1_000, 10_000) + bytes(80)
FTYP = box(b"ftyp", b"M4A \0\0\0\0")
MP4 = FTYP + box(b"mdat", bytes(50_000)) + box(b"moov", box(b"udta", bytes(9)) + box(b"mvhd", MVHD))
MP4_LONG = FTYP + box(b"mdat", bytes(50_000), long=True) + box(b"moov", box(b"mvhd", MVHD_LONG))
WEBM = b"\x1aE\xdf\xa3" + bytes(20) + b"\x2a\xd7\xb1\x83\x0f\x42\x40" + b"\x44\x89\x88" + struct.pack(">d", 10_000.0)
WEBM += bytes(50_000)
FRAME = b"\xff\xfb\x90\x00"  # MPEG 1, layer III, 128 kbit/s, 44.1 kHz
ID3 = b"ID3\x04\0\0" + bytes((0, 0, 0x02, 0x58))  # 344 bytes follow
MP3 = ID3 + bytes(344) + FRAME + bytes(160_000 - 4)
MP3_VARIABLE = FRAME + bytes(32) + b"Xing" + struct.pack(">II", 1, 383) + bytes(60_000)
MP3_SPEECH = b"\xff\xf3\x40\x00" + bytes(40_000 - 4)  # MPEG 2, 32 kbit/s

RECORDINGS = {
    "wav": wav(10),
    "wav-streamed": wav(10, claimed=0xFFFF_FFFF),
    "wav-zero": wav(10, claimed=0),
    "wav-boast": wav(10, claimed=0x7FFF_FFFF),
    "flac": FLAC,
    "opus": OPUS,
    "vorbis": VORBIS,
    "mp4": MP4,
    "mp4-long": MP4_LONG,
    "webm": WEBM,
    "mp3": MP3,
    "mp3-variable": MP3_VARIABLE,
    "mp3-speech": MP3_SPEECH,
}


@pytest.mark.parametrize("data", RECORDINGS.values(), ids=RECORDINGS)
def test_the_length_is_read_from_the_header(data: bytes) -> None:
    assert recording_seconds(embedded(data)) == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no recording",
        b"RIFF\0\0\0\0WAVE" + struct.pack("<4sI", b"LIST", 0) * 100_000,
        b"RIFF\0\0\0\0WAVE" + struct.pack("<4sI", b"data", 100) + bytes(100),  # no rate
        b"OggS" + bytes(1_000),
        FTYP * 100,
        FTYP + box(b"moov", box(b"mvhd", bytes(100))),
        FTYP + struct.pack(">I4s", 2, b"mdat"),
        WEBM[:31] + b"\x44\x89\x88" + struct.pack(">d", float("nan")) + bytes(20),
        b"\xff" * 1_000_000,
        b"ID3\x04\0\0\x7f\x7f\x7f\x7f",
    ],
)
def test_what_does_not_tell_has_no_length(data: bytes) -> None:
    assert recording_seconds(embedded(data)) is None


def test_a_length_that_the_data_cannot_hold_is_not_believed() -> None:
    ages = FTYP + box(b"moov", box(b"mvhd", struct.pack(">IIIII", 0, 0, 0, 1, 0xFFFF_FFFF) + bytes(80)))
    assert recording_seconds(embedded(ages)) == pytest.approx(1, abs=1)


def audio(data: bytes, format_: str) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(data).decode(), "format": format_}}


def test_a_recording_without_a_header_is_weighed_by_its_format() -> None:
    assert media_seconds(audio(bytes(48_000), "pcm16")) == 1
    assert media_seconds(audio(bytes(48_000), "g711_ulaw")) == 6
    assert media_seconds(audio(bytes(48_000), "aac")) == 12
    film = "data:video/x-unknown;base64," + base64.b64encode(bytes(48_000)).decode()
    assert media_seconds({"type": "video_url", "video_url": {"url": film}}) == pytest.approx(1.92)
    assert media_tokens(audio(wav(10), "wav")) == 320


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (audio(b"", "wav"), "audio"),
        ({"type": "video_url", "video_url": {"url": "https://e.example/a.mp4"}}, "video"),
        ({"inline_data": {"mime_type": "audio/mp3", "data": ""}}, "audio"),
        ({"inlineData": {"mimeType": "video/mp4", "data": ""}}, "video"),
        ({"type": "file", "file": {"file_data": "data:audio/wav;base64,AAAA"}}, "audio"),
        ({"type": "file", "file": {"filename": "Notes.MD", "file_data": "AAAA"}}, "text"),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hello"}}, "text"),
        ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": ""}}, "file"),
        ({"type": 5, "file": None, "source": 7}, "file"),
    ],
)
def test_a_parts_kind_is_told_by_its_types(part: dict[str, Any], kind: str) -> None:
    assert media_kind(part) == kind


def test_a_file_of_text_is_priced_by_what_it_says() -> None:
    data = base64.b64encode("two wörds".encode()).decode()
    files = [
        {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64," + data}},
        {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": data}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "two wörds"}},
    ]
    for file in files:
        assert plain_text(file) == "two wörds"
        assert media_tokens(file) == 10
        assert media_tokens(file, lambda text: len(text.split())) == 2
    assert media_tokens({"type": "file", "file": {"filename": "a.txt", "file_id": "file-1"}}) == 3_000


def pdf(body: bytes, padding: int = 0) -> bytes:
    return b"%PDF-1.7\n" + body + bytes(padding)


PAGES = b"1 0 obj <</Type /Pages /Kids [] /Count 7>> endobj\n"
PAGE = b"2 0 obj <</Type/Page /Parent 1 0 R>> endobj\n"


def packed(body: bytes) -> bytes:
    return b"3 0 obj <</Type /ObjStm /N 9 /First 60>> stream\r\n" + zlib.compress(body) + b"\nendstream endobj\n"


@pytest.mark.parametrize(
    ("data", "pages"),
    [
        (pdf(PAGE * 5), 5),
        (pdf(PAGES + PAGE * 3, padding=500), 7),  # the tree knows better
        (pdf(b"<</Type /Outlines /Count 500>>" + b" " * 400 + PAGE * 2), 2),
        (pdf(packed(PAGES + PAGE * 7), padding=500), 7),
        (pdf(packed(PAGE * 30) + packed(PAGE * 30), padding=9_000), 60),
        (pdf(b"4 0 obj <</Linearized 1 /L 9999 /O 5 /N 12 /T 9>> endobj" + PAGE, padding=900), 12),
        (pdf(b"", padding=120_000), 3),  # nothing to count: by size
        (pdf(PAGE, padding=3_000_000), 61),  # the tree is out of sight: by size
        (pdf(b"<</Type /Pages /Count 9999999>>"), 2),  # a boast
        (pdf(b"/ObjStm stream\n" * 1_000 + packed(b"\0" * 50_000_000)), 2),  # an archive bomb
        (b"no pdf at all", None),
        (b"", None),
    ],
)
def test_pages_are_counted(data: bytes, pages: int | None) -> None:
    assert pdf_pages(embedded(data)) == pages


def test_a_file_that_is_no_pdf_has_pages_by_its_size() -> None:
    part = {"type": "file", "file": {"filename": "a.docx", "file_data": base64.b64encode(bytes(120_000)).decode()}}
    assert media_pages(part) == 3
    assert media_pages({"type": "file", "file": {"file_id": "file-1"}}) == 1


STARTS = [b"", *(data[:90] for data in RECORDINGS.values()), pdf(PAGES), pdf(packed(PAGE))[:60]]


@settings(deadline=None)
@given(st.binary(max_size=400), st.sampled_from(STARTS))
def test_no_bytes_make_them_raise(data: bytes, start: bytes) -> None:
    seconds, pages = recording_seconds(embedded(start + data)), pdf_pages(embedded(start + data))
    assert seconds is None or seconds > 0
    assert pages is None or pages > 0


def test_a_header_that_says_too_little_is_not_believed() -> None:
    whole = wav(100)
    at = whole.index(b"data") + 4
    form = whole.index(b"fmt ")
    for lying in (
        whole[:at] + (320).to_bytes(4, "little") + whole[at + 4 :],
        whole[: form + 16] + (1 << 30).to_bytes(4, "little") + whole[form + 20 :],
    ):
        assert media_seconds(audio(lying, "wav")) == pytest.approx(100, abs=0.1)


@pytest.mark.parametrize("kind", ["application/octet-stream", "application/javascript", "application/x-ndjson", ""])
@pytest.mark.parametrize("text", ["2026-12-01 started\n" * 99, "é" * 999])
def test_a_file_that_reads_as_text_is_text_whatever_it_is_called(kind: str, text: str) -> None:
    data = f"data:{kind};base64," + base64.b64encode(text.encode()).decode()
    assert media_kind({"type": "file", "file": {"filename": "a.log", "file_data": data}}) == "text"
    assert media_tokens({"type": "file", "file": {"filename": "a.log", "file_data": data}}, len) == len(text)


@pytest.mark.parametrize("data", [b"%PDF-1.7 text", b"PK\3\4\0\0", b"\xff\xfe\x00", b"GIF89a\x01\x00", b""])
def test_what_is_no_text_is_a_file(data: bytes) -> None:
    url = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    assert media_kind({"type": "file", "file": {"file_data": url}}) == "file"


def test_a_pdf_has_the_pages_that_were_appended_to_it() -> None:
    pdf = b"%PDF-1.7\n<< /Linearized 1 /N 1 >>\n" + b"<< /Type /Page /Contents 1 0 R /Resources 2 0 R >>\n" * 300
    url = "data:application/pdf;base64," + base64.b64encode(pdf).decode()
    assert media_pages({"type": "file", "file": {"file_data": url}}) == 300
