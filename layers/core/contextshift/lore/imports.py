"""The one door for files: whatever a user uploads becomes a document to store, or a typed refusal.

A file is told by its first bytes, never by a name: PNG or APNG with a card, ``.charx``, or JSON (Card V1, V2, V3,
``lorebook_v3``, a bare character book, SillyTavern's World Info). Nothing is written to disk, fetched or executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from contextshift.errors import InvalidInput, UploadTooLarge
from contextshift.lore import charx, png
from contextshift.lore.books import canonical_book, looks_like_book, read_book
from contextshift.lore.cards import canonical_card, looks_like_card, read_card
from contextshift.lore.jsontext import check_tree, read_json
from contextshift.lore.notices import Notice, NoticeCode, Notices

__all__ = ["MAX_INFLATED", "MAX_UPLOAD", "Imported", "Kind", "import_document", "import_file"]

MAX_UPLOAD = 10 * 1024 * 1024
"""Bytes of an uploaded file."""
MAX_INFLATED = 40 * 1024 * 1024
"""Bytes it may inflate to."""

_FOREIGN = {"lorebookVersion": None, "kind": ("memory", "character"), "type": ("risu",)}
"""Marks of NovelAI's, Agnai's and RisuAI's own formats, which have other fields; None: whatever the value."""
_PICTURES = (b"\xff\xd8\xff", b"GIF8", b"RIFF")
_COMPARED = (
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "system_prompt",
    "post_history_instructions",
    "alternate_greetings",
)
"""What ``chara`` and ``ccv3`` should agree on; a backfilled ``chara`` may differ in its notes and its book."""


class Kind(StrEnum):
    """What a file holds."""

    CARD = "card"
    LOREBOOK = "lorebook"


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file became."""

    kind: Kind
    document: dict[str, Any]
    """The V3 JSON to store: ``chara_card_v3`` or ``lorebook_v3``, unknown fields kept."""
    warnings: tuple[Notice, ...] = ()


def import_file(data: bytes) -> Imported:
    """Read an uploaded file.

    Raises UploadTooLarge over ``MAX_UPLOAD`` bytes, or over ``MAX_INFLATED`` inflated; InvalidInput, with the path of
    the field where there is one, for everything else that is not a card or a lorebook.

    >>> import_file(b'{"name": "Ada", "first_mes": "Hello."}').kind
    <Kind.CARD: 'card'>
    """
    if len(data) > MAX_UPLOAD:
        raise UploadTooLarge(f"the file is over {MAX_UPLOAD} bytes", MAX_UPLOAD)
    notices = Notices()
    if data.startswith(png.SIGNATURE):
        return _imported(_from_png(data, notices), notices)
    if data.startswith(charx.SIGNATURES):
        return _imported(_from_charx(data, notices), notices)
    if data.startswith(_PICTURES):
        raise InvalidInput("of pictures only PNG can carry a card", None, "unknown_format")
    return _imported(read_json(data, "", notices), notices)


def import_document(document: object, path: str = "") -> Imported:
    """Read a card or a lorebook that is already parsed JSON, in any of its spellings.

    Raises InvalidInput, whose path stands below ``path``: the place of the document in a request.
    """
    try:
        return _imported(document, Notices())
    except InvalidInput as error:
        if not path:
            raise
        raise InvalidInput(str(error), f"{path}.{error.path}" if error.path else path, error.reason) from None


def _imported(document: object, notices: Notices) -> Imported:
    check_tree(document)
    if not isinstance(document, dict):
        raise InvalidInput("a card or a lorebook is a JSON object", None, "invalid_type")
    kind = _kind(document)
    if kind is Kind.CARD:
        read_card(document, notices=notices)
        return Imported(kind, canonical_card(document), notices.listed())
    read_book(document, id="", notices=notices)
    return Imported(kind, canonical_book(document), notices.listed())


def _kind(document: Mapping[str, Any]) -> Kind:
    for mark, values in _FOREIGN.items():
        if mark in document and "spec" not in document and (values is None or document[mark] in values):
            raise InvalidInput("an application's own format, which is not read", mark, "unknown_format")
    if looks_like_book(document):
        return Kind.LOREBOOK
    if looks_like_card(document):
        return Kind.CARD
    spec = "spec" if "spec" in document else None
    raise InvalidInput("neither a card (V1, V2, V3) nor a lorebook", spec, "unknown_format")


def _from_charx(data: bytes, notices: Notices) -> Any:
    text, has_more = charx.read_charx(data, MAX_INFLATED)
    if has_more:
        notices.add("assets", NoticeCode.ASSETS_NOT_KEPT)
    return read_json(text, charx.CARD_JSON, notices)


def _from_png(data: bytes, notices: Notices) -> Any:
    texts, unreadable, complete = png.card_texts(data, MAX_INFLATED)
    faults = [_fault(keyword) for keyword in unreadable]
    newer, older = (_first(keyword, texts, faults, notices) for keyword in (png.CCV3, png.CHARA))
    if not complete:
        notices.add("", NoticeCode.TRUNCATED)
    if png.has_assets(data):
        notices.add("assets", NoticeCode.ASSETS_NOT_KEPT)
    for fault in faults:
        notices.add(fault.path or "", NoticeCode.UNREADABLE_CHUNK)
    if newer is None and older is None:
        raise faults[0] if faults else InvalidInput("the picture holds no card", None, "missing_card")
    if newer is not None and older is not None and not _agree(newer, older):
        notices.add(png.CHARA, NoticeCode.CHARA_DIFFERS)
    return older if newer is None else newer


def _first(
    keyword: str, texts: list[png.CardText], faults: list[InvalidInput], notices: Notices
) -> dict[str, Any] | None:
    """Return the first readable card among the chunks of one keyword; what is wrong with others joins ``faults``."""
    own = [text for text in texts if text.keyword == keyword]
    if len(own) > 1:
        notices.add(keyword, NoticeCode.REPEATED_CHUNK)
    for text in own:
        try:
            found = _document(text, notices)
        except InvalidInput as fault:
            faults.append(fault)
            continue
        if not text.sound:
            notices.add(keyword, NoticeCode.BAD_CRC)
        return found
    return None


def _document(text: png.CardText, notices: Notices) -> dict[str, Any]:
    plain = text.text.lstrip().startswith(b"{")
    try:
        found = read_json(text.text if plain else png.unpacked(text.text), text.keyword, notices)
    except png.TextFault:
        raise _fault(text.keyword) from None
    if not isinstance(found, dict):
        raise InvalidInput("a card is a JSON object", text.keyword, "invalid_type")
    if plain:
        notices.add(text.keyword, NoticeCode.NOT_BASE64)
    return found


def _fault(keyword: str) -> InvalidInput:
    return InvalidInput("the chunk that should hold a card cannot be read", keyword, "invalid_png")


def _agree(newer: Mapping[str, Any], older: Mapping[str, Any]) -> bool:
    one, other = (card["data"] if isinstance(card.get("data"), dict) else card for card in (newer, older))
    return all(one[name] == other[name] for name in _COMPARED if name in one and name in other)
