"""Lorebooks: a card's ``character_book``, ``lorebook_v3`` and World Info, as one stored document and one typed view.

The stored form is ``{"spec": "lorebook_v3", "data": {...}}`` with every unknown field kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from contextshift.errors import InvalidInput
from contextshift.lore.fields import Fields, Spot, flag, text, whole
from contextshift.lore.model import Book
from contextshift.lore.notices import NoticeCode, Notices, inner
from contextshift.lore.spellings import IN_EXTENSIONS, RENAMED, own_id, read_entry

__all__ = ["LOREBOOK_V3", "canonical_book", "from_world_info", "looks_like_book", "read_book"]

LOREBOOK_V3 = "lorebook_v3"
_SETTINGS = {
    name: (Spot(name, extension=True), Spot(camel, extension=True), Spot(name, strict=False), Spot(camel, strict=False))
    for name, camel in (
        ("recursion_limit", "recursionLimit"),
        ("stop_at_budget", "stopAtBudget"),
        ("match_whole_words", "matchWholeWords"),
    )
}
_KNOWN_EXTENSIONS = frozenset(spot.name for spots in _SETTINGS.values() for spot in spots)
_KNOWN = _KNOWN_EXTENSIONS | {
    "name",
    "description",
    "scan_depth",
    "token_budget",
    "recursive_scanning",
    "entries",
    "originalData",  # SillyTavern's copy of the book it converted
}
_REQUIRED: dict[str, Any] = {"content": "", "insertion_order": 100, "use_regex": False, "constant": False}
_ENTRY_FIELDS = {
    "id",
    "keys",
    "secondary_keys",
    "content",
    "enabled",
    "insertion_order",
    "case_sensitive",
    "use_regex",
    "constant",
    "name",
    "priority",
    "comment",
    "selective",
}
"""V3's own, but for ``position`` and ``extensions``."""
_BOOK_FIELDS = {"name", "description", "scan_depth", "token_budget", "recursive_scanning"}


def read_book(document: Mapping[str, Any], *, id: str, path: str = "", notices: Notices | None = None) -> Book:
    """Return the typed view of a lorebook in any of its spellings; ``id`` names it in audits.

    ``path`` leads to it in the upload. Beside V3's fields ``extensions`` may hold ``recursion_limit`` (steps),
    ``stop_at_budget`` and ``match_whole_words``. Raises InvalidInput with the path of the field at fault.
    """
    found = Fields.of(document, path, Notices() if notices is None else notices)
    if _is_wrapped(found.data):
        found = Fields.of(found.data.get("data"), inner(path, "data"), found.notices)
    found.unhonoured(_KNOWN, _KNOWN_EXTENSIONS)
    items, world_info = _entries(found)
    ids = _unique([own_id(item.data, key) for item, key in items])
    return Book(
        id=id,
        entries=tuple(read_entry(item, own, world_info=world_info) for (item, _), own in zip(items, ids, strict=True)),
        name=found.take(text, "", "name"),
        scan_depth=found.take(whole, None, "scan_depth"),
        token_budget=found.take(whole, None, "token_budget"),
        recursive_scanning=found.take(flag, False, "recursive_scanning"),
        recursion_limit=found.take(whole, None, *_SETTINGS["recursion_limit"]),
        stop_at_budget=found.take(flag, False, *_SETTINGS["stop_at_budget"]),
        match_whole_words=found.take(flag, False, *_SETTINGS["match_whole_words"]),
    )


def canonical_book(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document to store for a lorebook that `read_book` reads: ``lorebook_v3``, nothing left out.

    A ``lorebook_v3`` document is returned as it is.
    """
    if not _is_wrapped(document):
        return {"spec": LOREBOOK_V3, "data": from_world_info(document)}
    data = document["data"]
    if document.get("spec") == LOREBOOK_V3 and not isinstance(data.get("entries"), dict):
        return dict(document)
    return {**document, "spec": LOREBOOK_V3, "data": from_world_info(data)}


def from_world_info(book: Mapping[str, Any]) -> dict[str, Any]:
    """Return a World Info book as a V3 lorebook; one that has a list of entries is returned as it is.

    What V3 has no name for goes to ``extensions``, as SillyTavern calls it there. Where that name is taken by
    another value, the field stays where it is, under its own name: `read_book` reads it there too.
    """
    entries = book.get("entries")
    if not isinstance(entries, dict):
        return dict(book)
    kept = dict(book.get("extensions") or {})
    made: dict[str, Any] = {}
    for name, value in book.items():
        if name in _BOOK_FIELDS:
            made[name] = value
        elif name not in ("entries", "extensions"):
            _put(made, kept, name, name, value)
    return {**made, "extensions": kept, "entries": [_from_entry(key, entry) for key, entry in entries.items()]}


def looks_like_book(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a lorebook by its marks."""
    return document.get("spec") == LOREBOOK_V3 or isinstance(document.get("entries"), dict | list)


def _is_wrapped(document: Mapping[str, Any]) -> bool:
    return document.get("spec") == LOREBOOK_V3 or ("entries" not in document and isinstance(document.get("data"), dict))


def _entries(found: Fields) -> tuple[Sequence[tuple[Fields, str | None]], bool]:
    """Return the entries, each with its World Info key, and whether they are World Info."""
    entries = found.data.get("entries")
    path = inner(found.path, "entries")
    if isinstance(entries, dict):
        return [(Fields.of(item, inner(path, key), found.notices), key) for key, item in entries.items()], True
    if isinstance(entries, list):
        return [(Fields.of(item, inner(path, index), found.notices), None) for index, item in enumerate(entries)], False
    if entries is not None:
        raise InvalidInput("must be a list of entries", path, "invalid_type")
    found.note("entries", NoticeCode.MISSING_FIELD)
    return [], False


def _unique(own: Sequence[str | None]) -> list[str]:
    """Return an id for each entry: its own, of two alike the first's; else its place, marked where that is taken."""
    first = {id: index for index, id in reversed(list(enumerate(own))) if id is not None}
    taken = set(first)
    ids: list[str] = []
    for index, id in enumerate(own):
        if id is not None and first[id] == index:
            ids.append(id)
            continue
        names = (str(index) if mark == 0 else f"{index}-{mark}" for mark in count())
        ids.append(next(name for name in names if name not in taken))
        taken.add(ids[-1])
    return ids


def _from_entry(key: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(entry.get("extensions") or {})
    made = {name: value for name, value in entry.items() if name in _ENTRY_FIELDS}
    for name, value in entry.items():
        if name in RENAMED:
            _rename(made, name, value)
        elif name == "position":
            _place(made, kept, value)
        elif name not in _ENTRY_FIELDS and name not in ("extensions", "disable"):
            _put(made, kept, name, IN_EXTENSIONS.get(name, name), value)
    made["enabled"] = not (entry.get("disable") or (entry.get("enabled") is not None and not entry["enabled"]))
    if own_id(made, None) is None:
        made, kept = made | {"id": _id(key)}, kept | ({} if made.get("id") is None else {"id": made["id"]})
    required = {"keys": [], **_REQUIRED}
    made |= {name: value for name, value in required.items() if made.get(name) is None}
    return made | {"extensions": kept}


def _put(top: dict[str, Any], kept: dict[str, Any], name: str, home: str, value: Any) -> None:
    """Put a field to its home in ``extensions``, or leave it at the top where the home holds something else."""
    if kept.get(home) is None or _same(kept[home], value):
        kept[home] = value
    elif value is not None:
        top[name] = value


def _rename(top: dict[str, Any], name: str, value: Any) -> None:
    home = RENAMED[name]
    if value is not None:
        free = top.get(home) is None or _same(top[home], value)
        top[home if free else name] = value


def _place(top: dict[str, Any], kept: dict[str, Any], value: Any) -> None:
    """Keep World Info's number in ``extensions``, and the nearest of V3's two words beside it."""
    if not isinstance(value, int | float):
        top["position"] = value
        return
    top["position"] = "before_char" if value == 0 else "after_char"
    _put(top, kept, "position", "position", value)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _id(key: str) -> int | str:
    return int(key) if key.isascii() and key.isdecimal() and len(key) < 16 and str(int(key)) == key else key
