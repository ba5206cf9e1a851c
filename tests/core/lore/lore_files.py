"""Generated cards, books and World Info, and the files that carry them, written without the code under test."""

from __future__ import annotations

import base64
import io
import json
import zipfile
import zlib
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
numbers = st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9, allow_nan=False)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)
unknown = st.dictionaries(names.map("x_".__add__), anything, max_size=3)
"""Fields that nobody knows."""

positions = st.integers(0, 7)
maybe_flag = st.none() | st.booleans()
counts = st.integers(0, 1000)

_EXTENSIONS: dict[str, st.SearchStrategy[Any]] = {
    "position": positions,
    "exclude_recursion": st.booleans(),
    "prevent_recursion": st.booleans(),
    "delay_until_recursion": st.booleans() | counts,
    "probability": st.integers(0, 100) | st.none(),
    "useProbability": st.booleans(),
    "sticky": st.none() | counts,
    "cooldown": st.none() | counts,
    "delay": st.none() | counts,
    "group": texts,
    "group_override": st.booleans(),
    "group_weight": st.none() | counts,
    "ignore_budget": st.booleans(),
    "scan_depth": st.none() | counts,
    "depth": counts,
    "role": st.none() | st.integers(0, 2),
    "selectiveLogic": st.integers(0, 3),
    "outlet_name": texts,
    "match_whole_words": maybe_flag,
    "case_sensitive": maybe_flag,
    "vectorized": st.booleans(),
    "triggers": st.lists(texts, max_size=2),
}

entry_extensions = st.builds(
    lambda known, other: {**other, **known}, st.fixed_dictionaries({}, optional=_EXTENSIONS), unknown
)

v3_entries = st.builds(
    lambda known, other: {**other, **known},
    st.fixed_dictionaries(
        {
            "keys": st.lists(texts, max_size=3),
            "content": texts,
            "extensions": entry_extensions,
            "enabled": st.booleans(),
            "insertion_order": numbers,
            "use_regex": st.booleans(),
        },
        optional={
            "constant": st.booleans(),
            "case_sensitive": st.booleans(),
            "name": texts,
            "priority": numbers,
            "id": st.integers(0, 9) | texts,
            "comment": texts,
            "selective": st.booleans(),
            "secondary_keys": st.lists(texts, max_size=3),
            "position": st.sampled_from(["before_char", "after_char", ""]),
        },
    ),
    unknown,
)

books = st.builds(
    lambda known, other: {**other, **known},
    st.fixed_dictionaries(
        {"extensions": unknown, "entries": st.lists(v3_entries, max_size=4)},
        optional={
            "name": texts,
            "description": texts,
            "scan_depth": counts,
            "token_budget": counts,
            "recursive_scanning": st.booleans(),
        },
    ),
    unknown,
)

lorebooks_v3 = st.builds(lambda book, other: {**other, "spec": "lorebook_v3", "data": book}, books, unknown)

_V2_TEXTS = dict.fromkeys(
    (
        "name",
        "description",
        "personality",
        "scenario",
        "first_mes",
        "mes_example",
        "creator_notes",
        "system_prompt",
        "post_history_instructions",
        "creator",
        "character_version",
    ),
    texts,
)
_V2_DATA: dict[str, st.SearchStrategy[Any]] = {
    **_V2_TEXTS,
    "alternate_greetings": st.lists(texts, max_size=3),
    "tags": st.lists(texts, max_size=3),
    "extensions": st.builds(
        lambda note, other: {**other, **note},
        st.fixed_dictionaries(
            {},
            optional={
                "depth_prompt": st.fixed_dictionaries(
                    {},
                    optional={
                        "prompt": texts,
                        "depth": counts,
                        "role": st.sampled_from(["system", "user", "assistant"]),
                    },
                ),
                "world": texts,
                "talkativeness": st.just("0.5"),
            },
        ),
        unknown,
    ),
}


def _card(spec: str, version: str, data: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.builds(
        lambda data, inside, outside: {**outside, "spec": spec, "spec_version": version, "data": {**inside, **data}},
        data,
        unknown,
        unknown,
    )


cards_v2 = _card("chara_card_v2", "2.0", st.fixed_dictionaries(_V2_DATA, optional={"character_book": books}))
cards_v3 = _card(
    "chara_card_v3",
    "3.0",
    st.fixed_dictionaries(
        {**_V2_DATA, "group_only_greetings": st.lists(texts, max_size=2)},
        optional={
            "character_book": books,
            "nickname": texts,
            "assets": st.lists(
                st.fixed_dictionaries({"type": texts, "uri": texts, "name": texts, "ext": texts}), max_size=2
            ),
            "creator_notes_multilingual": st.dictionaries(st.sampled_from(["en", "ko"]), texts),
            "source": st.lists(texts, max_size=2),
            "creation_date": counts,
            "modification_date": counts,
        },
    ),
)
cards_v1 = st.builds(
    lambda data, other: {**other, **data},
    st.fixed_dictionaries(
        dict.fromkeys(("name", "description", "personality", "scenario", "first_mes", "mes_example"), texts)
    ),
    unknown,
)

_WORLD_INFO: dict[str, st.SearchStrategy[Any]] = {
    "key": st.lists(texts, max_size=3),
    "keysecondary": st.lists(texts, max_size=3),
    "comment": texts,
    "content": texts,
    "constant": st.booleans(),
    "vectorized": st.booleans(),
    "selective": st.booleans(),
    "selectiveLogic": st.integers(0, 3),
    "addMemo": st.booleans(),
    "order": numbers,
    "position": positions,
    "disable": st.booleans(),
    "ignoreBudget": st.booleans(),
    "excludeRecursion": st.booleans(),
    "preventRecursion": st.booleans(),
    "delayUntilRecursion": st.booleans() | counts,
    "probability": st.integers(0, 100),
    "useProbability": st.booleans(),
    "depth": counts,
    "outletName": texts,
    "group": texts,
    "groupOverride": st.booleans(),
    "groupWeight": counts,
    "scanDepth": st.none() | counts,
    "caseSensitive": maybe_flag,
    "matchWholeWords": maybe_flag,
    "useGroupScoring": maybe_flag,
    "automationId": texts,
    "role": st.none() | st.integers(0, 2),
    "sticky": st.none() | counts,
    "cooldown": st.none() | counts,
    "delay": st.none() | counts,
    "displayIndex": counts,
    "triggers": st.lists(texts, max_size=2),
    "characterFilter": st.just({"isExclude": False, "names": [], "tags": []}),
}
"""Every field of a World Info entry but ``uid``."""

_OTHER_SPELLINGS: dict[str, st.SearchStrategy[Any]] = {
    "exclude_recursion": st.booleans(),
    "use_probability": st.booleans(),
    "keys": st.lists(texts, max_size=2),
    "enabled": maybe_flag,
    "case_sensitive": maybe_flag,
    "id": st.integers(0, 5) | texts,
}
world_info_entries = st.builds(
    lambda known, strays, extensions, other: {**other, **strays, **known, **extensions},
    st.fixed_dictionaries({}, optional={**_WORLD_INFO, "uid": st.integers(0, 9)}),
    st.just({}) | st.fixed_dictionaries({}, optional=_OTHER_SPELLINGS),
    st.just({}) | st.fixed_dictionaries({"extensions": entry_extensions | st.none()}),
    unknown,
)
world_infos = st.builds(
    lambda entries, other: {**other, "entries": entries},
    st.dictionaries(st.integers(0, 20).map(str) | names, world_info_entries, max_size=4),
    unknown,
)
full_world_info_entries = st.fixed_dictionaries({**_WORLD_INFO, "uid": st.integers(0, 9)})


def as_json(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def chunk(kind: bytes, data: bytes, crc: int | None = None) -> bytes:
    crc = zlib.crc32(kind + data) if crc is None else crc
    return len(data).to_bytes(4, "big") + kind + data + crc.to_bytes(4, "big")


SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEAD = SIGNATURE + chunk(b"IHDR", bytes((0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0)))
PIXELS = chunk(b"IDAT", zlib.compress(b"\0\0"))
END = chunk(b"IEND", b"")


def card_chunk(keyword: str, document: object, kind: bytes = b"tEXt", crc: int | None = None) -> bytes:
    packed = base64.b64encode(as_json(document))
    if kind == b"zTXt":
        return chunk(kind, keyword.encode() + b"\0\0" + zlib.compress(packed), crc)
    if kind == b"iTXt":
        return chunk(kind, keyword.encode() + b"\0\0\0en\0" + keyword.encode() + b"\0" + packed, crc)
    return chunk(kind, keyword.encode() + b"\0" + packed, crc)


def png(*chunks: bytes) -> bytes:
    return b"".join((HEAD, *chunks, PIXELS, END))


def charx(document: object, files: dict[str, bytes] | None = None, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, data in (files or {}).items():
            archive.writestr(name, data)
        archive.writestr("card.json", as_json(document))
    return packed.getvalue()


def card(**data: Any) -> Json:
    """A V3 card of a few words, with ``data`` beside its name."""
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": {"name": "Ada", **data}}


def world_info(**entry: Any) -> Json:
    """World Info of one entry."""
    return {"entries": {"0": {"uid": 0, "key": ["moon"], "content": "It is full.", **entry}}}


def lorebook(**entry: Any) -> Json:
    """A V3 lorebook of one entry."""
    return {
        "spec": "lorebook_v3",
        "data": {"extensions": {}, "entries": [{"keys": ["moon"], "content": "Full.", **entry}]},
    }
