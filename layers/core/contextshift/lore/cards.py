"""Character cards: V1, V2 and V3 as one stored document, and the typed view that prompts are made of.

The stored form is the V3 JSON, ``{"spec": "chara_card_v3", "spec_version": "3.0", "data": {...}}``. A V3 card is stored
as it came; of the older ones every field is kept, and what V3 requires beside them is filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextshift.errors import InvalidInput
from contextshift.lore.books import from_world_info, read_book
from contextshift.lore.fields import EXTENSIONS, Fields, Spot, is_inert, mapping, number, text, texts, whole
from contextshift.lore.model import Book, Card
from contextshift.lore.notices import NoticeCode, Notices, inner
from contextshift.lore.spellings import role

__all__ = ["CHARA_CARD_V2", "CHARA_CARD_V3", "canonical_card", "looks_like_card", "read_card"]

CHARA_CARD_V2 = "chara_card_v2"
CHARA_CARD_V3 = "chara_card_v3"
_VERSIONS = {CHARA_CARD_V2: "2.0", CHARA_CARD_V3: "3.0"}

_V1_FIELDS = ("description", "personality", "scenario", "first_mes", "mes_example")
_REQUIRED_TEXTS = (
    *_V1_FIELDS,
    "creator_notes",
    "system_prompt",
    "post_history_instructions",
    "creator",
    "character_version",
)
_REQUIRED_LISTS = ("alternate_greetings", "tags", "group_only_greetings")
_DEPTH_PROMPT = "depth_prompt"
_BOOK = "character_book"

_KNOWN = frozenset((*_REQUIRED_TEXTS, *_REQUIRED_LISTS, "name", "nickname", _BOOK, "spec", "spec_version")) | {
    "source",
    "creation_date",
    "modification_date",
}
"""What prompts use, and what by its definition is only kept and shown."""
_SHOWN_ONLY = frozenset({"avatar", "chat", "create_date", "creatorcomment", "fav", "metadata"})
"""What V1's applications wrote beside a card."""
_KNOWN_EXTENSIONS = frozenset({_DEPTH_PROMPT, "fav"})


def read_card(document: Mapping[str, Any], *, book_id: str = _BOOK, notices: Notices | None = None) -> Card:
    """Return the typed view of a card in any of its versions; ``book_id`` names its lorebook in audits.

    Raises InvalidInput with the path of the field at fault. Notes what is kept but not acted on.
    """
    card = Fields.of(document, "", Notices() if notices is None else notices)
    data = _data(card)
    _note_outside(card, data)
    data.unhonoured(_KNOWN | (_SHOWN_ONLY if data is card else frozenset()), _KNOWN_EXTENSIONS)
    _check_shown(data)
    note = _depth_prompt(data)
    name = data.take(text, None, "name")
    if name is None:
        raise InvalidInput("a card needs a name", inner(data.path, "name"), "missing_field")
    group_only = data.take(texts, (), "group_only_greetings")
    if group_only:
        data.note("group_only_greetings", NoticeCode.NOT_HONOURED)
    return Card(
        name=name,
        nickname=data.take(text, "", "nickname"),
        description=data.take(text, "", "description"),
        personality=data.take(text, "", "personality"),
        scenario=data.take(text, "", "scenario"),
        first_mes=data.take(text, "", "first_mes"),
        alternate_greetings=data.take(texts, (), "alternate_greetings"),
        group_only_greetings=group_only,
        mes_example=data.take(text, "", "mes_example"),
        system_prompt=data.take(text, "", "system_prompt"),
        post_history_instructions=data.take(text, "", "post_history_instructions"),
        depth_prompt=note.take(text, "", _lenient("prompt")),
        depth_prompt_depth=note.take(whole, 4, _lenient("depth")),
        depth_prompt_role=note.take(role, "system", _lenient("role")),
        book=_book(data, book_id),
    )


def canonical_card(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document to store for a card that `read_card` reads: V3, nothing left out.

    Fields of V1 become those of ``data``. A V3 card is returned as it is.
    """
    if document.get("spec") == CHARA_CARD_V3:
        return dict(document)
    versioned = isinstance(document.get("data"), dict)
    data = _filled(document["data"] if versioned else document)
    beside = document if versioned else {}
    return {**beside, "spec": CHARA_CARD_V3, "spec_version": _VERSIONS[CHARA_CARD_V3], "data": data}


def looks_like_card(document: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a card by its marks: a ``spec``, a ``data`` with a name, or V1's fields."""
    if str(document.get("spec", "")).startswith("chara_card"):
        return True
    data = document.get("data")
    if isinstance(data, dict):
        return "name" in data and "entries" not in data
    return "name" in document and any(field in document for field in _V1_FIELDS)


def _data(card: Fields) -> Fields:
    """Return the fields of the character: those of ``data``, or of a V1 card its own."""
    spec = card.data.get("spec")
    if spec is None and not isinstance(card.data.get("data"), dict):
        return card
    if not isinstance(spec, str) or spec not in _VERSIONS:
        card.note("spec", NoticeCode.UNKNOWN_SPEC)
    elif card.data.get("spec_version") != _VERSIONS[spec]:
        card.note("spec_version", NoticeCode.SPEC_VERSION)
    return Fields.of(card.data.get("data"), "data", card.notices)


def _note_outside(card: Fields, data: Fields) -> None:
    """Note what stands beside ``data``: a copy of V1's fields is for older applications, and should say the same."""
    if data is card:
        return
    for name, value in card.data.items():
        if name in ("spec", "spec_version", "data") or name in _SHOWN_ONLY or is_inert(value):
            continue
        if name not in data.data:
            card.note(name, NoticeCode.NOT_HONOURED)
        elif value != data.data[name]:
            card.note(name, NoticeCode.LEGACY_DIFFERS)


def _check_shown(data: Fields) -> None:
    """Check the kinds of what is shown only, so that whoever lists cards need not."""
    for name in ("creator_notes", "creator"):
        data.take(text, "", name)
    data.take(texts, (), "tags")
    data.take(text, "", _lenient("character_version"))
    data.take(texts, (), _lenient("source"))
    for name in ("creation_date", "modification_date"):
        data.take(number, 0, _lenient(name))


def _depth_prompt(data: Fields) -> Fields:
    path = inner(inner(data.path, EXTENSIONS), _DEPTH_PROMPT)
    return Fields(data.take(mapping, {}, Spot(_DEPTH_PROMPT, extension=True)), path, data.notices)


def _book(data: Fields, id: str) -> Book | None:
    found = data.take(mapping, None, _BOOK)
    return None if found is None else read_book(found, id=id, path=inner(data.path, _BOOK), notices=data.notices)


def _filled(older: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``data`` of an older card with what V3 requires; null is what it does not know."""
    data = dict(older)
    absent: dict[str, Any] = dict.fromkeys(_REQUIRED_TEXTS, "")
    absent |= {name: [] for name in _REQUIRED_LISTS} | {EXTENSIONS: {}}
    data |= {name: value for name, value in absent.items() if data.get(name) is None}
    book = data.get(_BOOK)
    if isinstance(book, dict):
        data[_BOOK] = _filled_book(from_world_info(book))
    return data


def _filled_book(book: dict[str, Any]) -> dict[str, Any]:
    absent: dict[str, Any] = {EXTENSIONS: {}, "entries": []}
    book |= {name: value for name, value in absent.items() if book.get(name) is None}
    if isinstance(book["entries"], list):
        book["entries"] = [{"use_regex": False, **entry} for entry in book["entries"]]
    return book


def _lenient(name: str) -> Spot:
    return Spot(name, strict=False)
