"""Pictures and archives that carry cards: tolerated damage is said, bombs and lies are refused, nothing is written."""

from __future__ import annotations

import base64
import io
import json
import struct
import tracemalloc
import zipfile
import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextshift.errors import InvalidInput, UploadTooLarge
from contextshift.lore import charx, png
from contextshift.lore.exports import export_png
from contextshift.lore.imports import MAX_INFLATED, MAX_UPLOAD, Imported, import_file
from core.lore import lore_files as files

ADA = files.card()
EVE = files.card(name="Eve")
V2 = {"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Ada"}}


def warned(data: bytes) -> list[tuple[str, str]]:
    return [(notice.path, str(notice.code)) for notice in import_file(data).warnings]


def refused(data: bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        import_file(data)
    return caught.value


# -- PNG -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [b"tEXt", b"zTXt", b"iTXt"])
@pytest.mark.parametrize("keyword", ["ccv3", "chara", "Chara"])
def test_a_card_is_found_in_every_kind_of_text_chunk(kind, keyword):
    data = files.png(files.card_chunk(keyword, ADA, kind))
    assert import_file(data).document == ADA
    assert warned(data) == []


def test_a_compressed_international_chunk_is_read():
    packed = zlib.compress(base64.b64encode(files.as_json(ADA)))
    assert import_file(files.png(files.chunk(b"iTXt", b"ccv3\0\1\0en\0x\0" + packed))).document == ADA


def test_ccv3_wins_and_a_chara_that_tells_another_character_is_said():
    data = files.png(files.card_chunk("chara", V2), files.card_chunk("ccv3", ADA))
    assert import_file(data).document == ADA
    assert warned(data) == []
    other = files.png(files.card_chunk("chara", EVE), files.card_chunk("ccv3", ADA))
    assert import_file(other).document == ADA
    assert warned(other) == [("chara", "chara-differs")]


BROKEN = [
    files.chunk(b"tEXt", b"ccv3\0not base64!"),
    files.chunk(b"tEXt", b"ccv3\0" + base64.b64encode(b"{")),
    files.chunk(b"tEXt", b"ccv3\0" + base64.b64encode(b"[]")),
    files.chunk(b"zTXt", b"ccv3\0\0not deflated"),
    files.chunk(b"zTXt", b"ccv3\0\0" + zlib.compress(b"x" * 1000)[:-8]),
    files.chunk(b"tEXt", b"ccv3"),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_ccv3_falls_back_to_chara_and_is_said(broken):
    data = files.png(broken, files.card_chunk("chara", ADA))
    assert import_file(data).document == ADA
    assert ("ccv3", "unreadable-chunk") in warned(data)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_chunk_alone_is_refused_by_its_name(broken):
    assert refused(files.png(broken)).path == "ccv3"


def test_a_wrong_crc_is_forgiven_and_said():
    assert warned(files.png(files.card_chunk("ccv3", ADA, crc=1))) == [("ccv3", "bad-crc")]


def test_two_chunks_of_one_name_are_said_and_the_first_counts():
    data = files.png(files.card_chunk("chara", ADA), files.card_chunk("chara", EVE))
    assert import_file(data).document == ADA
    assert warned(data) == [("chara", "repeated-chunk")]


def test_json_as_it_is_in_a_chunk_is_read_and_said():
    data = files.png(files.chunk(b"tEXt", b"chara\0" + json.dumps(ADA).encode()))
    assert import_file(data).document == ADA
    assert warned(data) == [("chara", "not-base64")]


def test_base64_with_line_ends_and_without_padding_is_read():
    packed = base64.b64encode(files.as_json(files.card(description="x" * 100)) + b" ")
    lines = b"\r\n".join(packed[at : at + 76] for at in range(0, len(packed), 76)).rstrip(b"=")
    assert import_file(files.png(files.chunk(b"tEXt", b"chara\0" + lines))).document["data"]["description"] == "x" * 100


def test_a_picture_cut_short_is_read_as_far_as_its_card_and_not_written_to():
    whole = files.png(files.card_chunk("ccv3", ADA))
    for cut in (whole[: -len(files.END)], whole[:-1], whole[: -len(files.END) - 3]):
        assert import_file(cut).document == ADA
        assert warned(cut) == [("", "truncated")]
        with pytest.raises(InvalidInput):
            export_png(ADA, cut)


def test_files_of_the_card_in_its_picture_are_said_not_to_be_kept():
    asset = files.chunk(b"tEXt", b"chara-ext-asset_:0\0" + base64.b64encode(b"picture"))
    assert warned(files.png(files.card_chunk("ccv3", ADA), asset)) == [("assets", "assets-not-kept")]


@pytest.mark.parametrize(
    "data",
    [
        files.png(),
        files.SIGNATURE,
        files.SIGNATURE + b"\xff\xff\xff\xfftEXt",
        files.SIGNATURE + b"\xff\xff\xff\xfftEXtccv3\0" + base64.b64encode(files.as_json(ADA)),
        files.SIGNATURE + b"\0\0",
        files.END + files.card_chunk("ccv3", ADA),
        files.HEAD + files.END + files.card_chunk("ccv3", ADA),
    ],
)
def test_a_picture_without_a_readable_card_is_refused(data):
    refused(data)


def test_text_that_inflates_over_the_limit_is_refused_and_never_held():
    bomb = zlib.compress(b"A" * (MAX_INFLATED + 1), 9)
    assert isinstance(peak_bound(files.png(files.chunk(b"zTXt", b"chara\0\0" + bomb))), UploadTooLarge)
    half = zlib.compress(b"A" * (MAX_INFLATED // 2 + 1), 9)
    twice = files.png(*[files.chunk(b"zTXt", b"chara\0\0" + half)] * 2)
    assert isinstance(peak_bound(twice), UploadTooLarge), "the limit is the upload's, not a chunk's"


def test_a_picture_of_too_many_chunks_is_refused():
    data = files.HEAD + files.chunk(b"teSt", b"") * png.MAX_CHUNKS
    assert refused(data).reason == "too_many_chunks"
    assert import_file(files.png(*[files.chunk(b"teSt", b"")] * 5000, files.card_chunk("ccv3", ADA))).document == ADA


def test_a_file_over_the_limit_is_refused():
    error = refused(b"x" * (MAX_UPLOAD + 1))
    assert isinstance(error, UploadTooLarge)
    assert (error.code, error.limit) == ("UPLOAD_TOO_LARGE", MAX_UPLOAD)


def test_the_picture_we_make_is_a_picture():
    chunks = list(png.chunks(png.blank_png()))
    assert [chunk.type for chunk in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    assert all(chunk.sound for chunk in chunks)
    assert zlib.decompress(chunks[1].data) == b"\0\x80"


# -- charx ---------------------------------------------------------------------------------------------


def test_a_charx_is_read_and_what_stands_beside_the_card_is_said_not_to_be_kept():
    assert import_file(files.charx(ADA)).document == ADA
    assert import_file(files.charx(ADA, method=zipfile.ZIP_STORED)).document == ADA
    assert warned(files.charx(ADA, {"assets/icon/images/main.png": b"picture"})) == [("assets", "assets-not-kept")]


def test_no_name_in_an_archive_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["../../evil", "/etc/evil", "C:\\evil", "assets/../../evil", "card.json/"]
    assert import_file(files.charx(ADA, dict.fromkeys(names, b"x"))).document == ADA
    assert list(tmp_path.iterdir()) == []


def test_a_zip_comment_and_streamed_entries_are_read():
    packed = io.BytesIO()
    with zipfile.ZipFile(Unseekable(packed), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("card.json", files.as_json(ADA))
        archive.comment = b"PK\5\6 is not the end"
    assert import_file(packed.getvalue()).document == ADA


class Unseekable:
    """A stream that makes zipfile write sizes after the data."""

    def __init__(self, inner: io.BytesIO) -> None:
        self.inner = inner

    def write(self, data: bytes) -> int:
        return self.inner.write(data)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_are_refused(method):
    assert refused(files.charx(ADA, method=method)).reason == "unsupported_zip"


def test_an_encrypted_card_is_refused():
    assert refused(directory_edited(files.charx(ADA), 8, 1)).reason == "unsupported_zip"


def directory_edited(data: bytes, at: int, value: int, form: str = "<H") -> bytes:
    """Write ``value`` into the directory's entry of card.json, the last one, at offset ``at``."""
    edited = bytearray(data)
    struct.pack_into(form, edited, data.rfind(b"PK\1\2") + at, value)
    return bytes(edited)


SIZE, PACKED, CRC, METHOD, OFFSET = 24, 20, 16, 10, 42


@pytest.mark.parametrize(
    ("at", "value", "form"),
    [(SIZE, 3, "<L"), (SIZE, 3000, "<L"), (PACKED, 3, "<L"), (PACKED, 10**6, "<L"), (CRC, 1, "<L"), (METHOD, 0, "<H"),
     (METHOD, 99, "<H"), (OFFSET, 5, "<L"), (OFFSET, 10**6, "<L"), (OFFSET, 0xFFFFFFFF, "<L"), (28, 0xFFFF, "<H")],
)  # fmt: skip
def test_a_directory_that_lies_is_refused(at, value, form):
    refused(directory_edited(files.charx(ADA), at, value, form))


def test_a_size_that_lies_to_hide_a_bomb_is_refused_without_inflating_it():
    bomb = files.charx("A" * (MAX_INFLATED + 1))
    assert isinstance(peak_bound(bomb), UploadTooLarge)
    assert not isinstance(peak_bound(directory_edited(bomb, SIZE, 1000, "<L")), UploadTooLarge)


def test_sizes_that_together_are_over_the_limit_are_refused():
    files_beside = {f"assets/{n}": b"\0" * (MAX_INFLATED // 4) for n in range(4)}
    assert isinstance(peak_bound(files.charx(ADA, files_beside)), UploadTooLarge)


def test_a_card_that_deflates_further_than_text_does_is_refused():
    assert isinstance(refused(files.charx("A" * 30_000_000)), UploadTooLarge)


def test_an_archive_in_an_archive_is_not_opened():
    inner = files.charx(ADA, {"zeros": b"\0" * 30_000_000})
    assert import_file(files.charx(ADA, {"inner.zip": inner, "again.charx": inner})).document == ADA


def test_entries_that_share_bytes_are_refused():
    plain = files.charx(ADA)
    at, end = plain.rfind(b"PK\1\2"), plain.rfind(b"PK\5\6")
    entry = bytearray(plain[at:end])
    other = bytes(entry).replace(b"card.json", b"core.json")
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, 2 * len(entry), at, 0)
    assert "overlap" in str(refused(plain[:at] + other + entry + tail))


def test_two_cards_and_none_are_refused():
    with pytest.warns(UserWarning, match="Duplicate name"):
        two = files.charx(ADA, {"card.json": files.as_json(EVE)})
    assert refused(two).reason == "missing_card"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("folder/card.json", files.as_json(ADA))
    assert refused(packed.getvalue()).reason == "missing_card"
    assert refused(b"PK\5\6" + bytes(18)).reason == "missing_card"


def test_an_archive_of_too_many_entries_is_refused():
    crowd = {f"assets/{number}": b"" for number in range(charx.MAX_ENTRIES)}
    assert refused(files.charx(ADA, crowd)).reason == "too_many_entries"


def test_zip64_is_refused():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("card.json", files.as_json(ADA))
    data = packed.getvalue()
    at = data.rfind(b"PK\5\6")
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, 0, 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)
    assert refused(data[:at] + record + locator + data[at:]).reason == "unsupported_zip"


# -- anything ------------------------------------------------------------------------------------------


def peak_bound(data: bytes) -> InvalidInput:
    """Refuse ``data`` within a peak of memory that a small function has."""
    tracemalloc.start()
    try:
        return refused(data)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3 * MAX_INFLATED, f"{peak >> 20} MiB"


def attempt(data: bytes) -> None:
    try:
        assert isinstance(import_file(data), Imported)
    except InvalidInput as error:
        assert error.code
        assert error.reason


heads = st.sampled_from(
    [b"", files.SIGNATURE, files.HEAD, b"PK\3\4", b"PK\5\6", b"{", b'{"entries":', b'{"data":{"name":']
)


@given(heads, st.binary(max_size=200))
def test_random_bytes_are_imported_or_refused(head, data):
    attempt(head + data)


SEEDS = [
    files.as_json(
        files.card(character_book={"entries": [{"keys": ["a"], "content": "b", "extensions": {"position": 4}}]})
    ),
    files.as_json(files.world_info(order=3, probability=50, selectiveLogic=1, position=4, role=2)),
    files.png(files.card_chunk("chara", V2, b"zTXt"), files.card_chunk("ccv3", ADA, b"iTXt")),
    files.png(files.card_chunk("chara", V2)),
    files.charx(ADA, {"assets/a.png": b"picture"}),
    files.charx(ADA, method=zipfile.ZIP_STORED),
]


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(SEEDS),
    st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from(["set", "cut", "put"]), st.binary(min_size=1, max_size=8)),
        min_size=1,
        max_size=4,
    ),
)
def test_mutated_files_are_imported_or_refused(seed, edits):
    data = seed
    for place, edit, value in edits:
        at = int(place * len(data))
        if edit == "set":
            data = data[:at] + value + data[at + len(value) :]
        elif edit == "cut":
            data = data[:at] + data[at + len(value) :]
        else:
            data = data[:at] + value + data[at:]
    attempt(data)


@settings(max_examples=300)
@given(
    files.anything | st.dictionaries(st.sampled_from(["spec", "data", "entries", "name", "first_mes"]), files.anything)
)
def test_any_json_is_imported_or_refused(document):
    attempt(files.as_json(document))


odd = st.sampled_from([None, True, 0, -1, 1.5, 10**400, 1e300, "", "4", "x", [], [1], [None], {}, {"a": 1}])


@settings(max_examples=400)
@given(
    st.sampled_from([files.lorebook, files.world_info]),
    st.dictionaries(
        st.sampled_from(sorted({*files._WORLD_INFO, *files._EXTENSIONS, "keys", "uid", "id", "enabled", "extensions"})),
        odd,
        max_size=4,
    ),
)
def test_odd_values_in_known_fields_are_imported_or_refused(make, entry):
    attempt(files.as_json(make(**entry)))
    attempt(files.as_json(make(extensions=entry)))
