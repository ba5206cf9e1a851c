"""Casting: what of an account's library a chat refers to, read and typed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from contextshift.chats import LibraryRecord, Page
from contextshift.lore.books import read_book
from contextshift.lore.cards import read_card
from contextshift.lore.model import Book, Card
from contextshift.scene import Character, Persona
from contextshift.settings import Overrides

__all__ = ["MOST_MEMORIES", "Cast", "LibraryReader", "Shelf", "Wanted", "card_book_id", "load_cast"]

MOST_MEMORIES = 10_000
"""Memories of an account that are looked at for one prompt, in the order of their ids; a diagnostic tells of more."""
_PAGE = 1_000
"""Memories that are read in one trip: most accounts have fewer."""
_T = TypeVar("_T", Card, Book)


class LibraryReader(Protocol):
    """The part of a `LibraryStore` that casting needs."""

    async def get(self, account: str, kind: str, ids: Sequence[str]) -> Sequence[LibraryRecord]:
        """Return those that there are; see `LibraryStore.get`."""

    async def list(self, account: str, kind: str, limit: int, cursor: str | None) -> Page[LibraryRecord]:
        """List a kind by id; see `LibraryStore.list`."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Everything of the library that a chat refers to."""

    characters: Sequence[Character] = ()
    persona: Persona | None = None
    books: Sequence[Book] = ()
    memories: Sequence[tuple[str, Mapping[str, Any]]] = ()
    missing: Sequence[str] = ()
    """References to what is not there (any more), as ``character:ann``."""
    notes: Sequence[Mapping[str, Any]] = ()
    """What was found while reading, for the diagnostics."""

    def character(self, id: str | None) -> Character | None:
        """Return a character by its id, the first where none is named."""
        return next((one for one in self.characters if id is None or one.id == id), None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be generated."""

    type: str = "normal"
    user_message: str | None = None
    model: str | None = None
    overrides: Overrides = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    prefill: str = ""
    speaker_id: str | None = None
    prompt: str | None = None
    """Of a quiet generation: the instruction at its end."""
    include_reasoning: bool = False


def card_book_id(character: str) -> str:
    """Return the id of a character's own book, with a sign that no id of a lorebook holds.

    >>> card_book_id("ann")
    'character@ann'
    """
    return f"character@{character}"


class Shelf:
    """Cards and books as they were read, by what they were read from: a book of thousands is typed once.

    Bounded in number; a version that is replaced, or a thing that is made anew, has another place.
    """

    def __init__(self, most: int = 128) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[object, ...], Card | Book] = OrderedDict()

    def card(self, account: str, record: LibraryRecord) -> Card:
        """Return the card of a stored character."""
        return self._read("card", account, record, lambda: read_card(record.document, book_id=card_book_id(record.id)))

    def book(self, account: str, record: LibraryRecord) -> Book:
        """Return a stored lorebook."""
        return self._read("book", account, record, lambda: read_book(record.document, id=record.id))

    def _read(self, kind: str, account: str, record: LibraryRecord, make: Callable[[], _T]) -> _T:
        place = (kind, account, record.id, record.version, record.created_at, record.updated_at)
        found: Any = self._kept.get(place)
        if found is None:
            found = self._kept[place] = make()
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(place)
        typed: _T = found
        return typed


async def load_cast(
    library: LibraryReader, account: str, chat_id: str | None, chat: Mapping[str, Any], shelf: Shelf
) -> Cast:
    """Read what a chat refers to; what is gone is named in ``missing``. Raises StoreUnavailable."""
    participants = chat.get("participants") or ()
    character_ids = _unique(one.get("character_id") for one in participants)
    persona_ids = _unique([chat.get("persona"), *(one.get("persona_id") for one in participants)])
    book_ids = _unique(chat.get("lorebooks") or ())
    characters, personas, books, memories = await asyncio.gather(
        _read(library, account, "character", character_ids),
        _read(library, account, "persona", persona_ids[:1]),
        _read(library, account, "lorebook", book_ids),
        _memories(library, account),
    )
    cards = [Character(one.id, shelf.card(account, one)) for one in characters]
    own = [character.card.book for character in cards if character.card.book is not None]
    known, more = memories
    wanted = {"character": character_ids, "persona": persona_ids[:1], "lorebook": book_ids}
    found = {"character": characters, "persona": personas, "lorebook": books}
    return Cast(
        cards,
        _persona(personas[0]) if personas else None,
        [*own, *(shelf.book(account, one) for one in books)],
        [(id, memory) for id, memory in known if _concerns(memory, chat_id, chat, character_ids)],
        [f"{kind}:{id}" for kind, ids in wanted.items() for id in ids if id not in {one.id for one in found[kind]}],
        [{"code": "memories-not-read", "read": len(known)}] if more else (),
    )


async def _read(library: LibraryReader, account: str, kind: str, ids: Sequence[str]) -> Sequence[LibraryRecord]:
    return await library.get(account, kind, ids) if ids else ()


async def _memories(library: LibraryReader, account: str) -> tuple[list[tuple[str, Mapping[str, Any]]], bool]:
    """Return an account's memories, and whether there are more than are looked at."""
    known: list[tuple[str, Mapping[str, Any]]] = []
    cursor: str | None = None
    while len(known) < MOST_MEMORIES:
        page = await library.list(account, "memory", min(_PAGE, MOST_MEMORIES - len(known)), cursor)
        known += [(one.id, one.document) for one in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    return known, cursor is not None


def _persona(record: LibraryRecord) -> Persona:
    return Persona(record.id, str(record.document.get("name", "")), str(record.document.get("description", "")))


def _concerns(
    memory: Mapping[str, Any], chat_id: str | None, chat: Mapping[str, Any], characters: Sequence[str]
) -> bool:
    """Whether a memory belongs to a chat: each part of its scope that is named must be the chat's."""
    scopes = {"chat_id": [chat_id], "user_id": [chat.get("user_id")], "character_id": characters}
    return all(memory.get(name) is None or memory[name] in allowed for name, allowed in scopes.items())


def _unique(ids: Any) -> list[str]:
    return list(dict.fromkeys(str(id) for id in ids if id is not None))
