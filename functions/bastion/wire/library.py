"""The JSON of an account's library: characters, personas, lorebooks, memories."""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta

from bastion.wire.chats import Id, Name, Version
from bastion.wire.shapes import Shape

__all__ = [
    "ID",
    "Character",
    "CharacterPage",
    "Lorebook",
    "LorebookPage",
    "Memory",
    "MemoryPage",
    "NewCharacter",
    "NewLorebook",
    "NewMemory",
    "NewPersona",
    "Persona",
    "PersonaPage",
    "Warning_",
]

ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
"""What may name something of a library."""


class Warning_(Shape, kw_only=True):
    """Something that was kept, but is not acted on, or was mended."""

    path: str
    code: str
    message: str | None = None


class _Stored(Shape, kw_only=True):
    """What every stored thing says of itself."""

    id: str
    version: int
    created_at: str
    updated_at: str


class NewCharacter(Shape, kw_only=True):
    """A character to be made or replaced."""

    id: Id | None = None
    version: Version | None = None
    card: Annotated[dict[str, Any], Meta(description="A Character Card of version 1, 2 or 3.")]


class Character(_Stored, kw_only=True):
    """A character: its card as version 3, every unknown field kept."""

    name: str
    card: dict[str, Any]
    warnings: list[Warning_] = []


class CharacterPage(Shape, kw_only=True):
    """Some characters."""

    data: list[Character]
    next_cursor: str | None = None


class NewLorebook(Shape, kw_only=True):
    """A lorebook to be made or replaced."""

    id: Id | None = None
    version: Version | None = None
    book: Annotated[dict[str, Any], Meta(description="A `character_book`, a `lorebook_v3` or World Info.")]


class Lorebook(_Stored, kw_only=True):
    """A lorebook as `lorebook_v3` holds it, every unknown field kept."""

    name: str
    book: dict[str, Any]
    warnings: list[Warning_] = []


class LorebookPage(Shape, kw_only=True):
    """Some lorebooks."""

    data: list[Lorebook]
    next_cursor: str | None = None


class NewPersona(Shape, kw_only=True):
    """A persona to be made or replaced."""

    id: Id | None = None
    version: Version | None = None
    name: Name
    description: str = ""


class Persona(_Stored, kw_only=True):
    """Who the user plays."""

    name: str
    description: str


class PersonaPage(Shape, kw_only=True):
    """Some personas."""

    data: list[Persona]
    next_cursor: str | None = None


class NewMemory(Shape, kw_only=True):
    """A memory to be made or replaced. It is remembered in the chats that its scope names; without one, in all."""

    id: Id | None = None
    version: Version | None = None
    text: Annotated[str, Meta(min_length=1)]
    chat_id: Id | None = None
    character_id: Id | None = None
    user_id: Id | None = None
    priority: float = 0
    pinned: bool = False
    keys: list[str] = []
    metadata: dict[str, Any] = {}


class Memory(_Stored, kw_only=True):
    """Something that is remembered."""

    text: str
    chat_id: str | None = None
    character_id: str | None = None
    user_id: str | None = None
    priority: float = 0
    pinned: bool = False
    keys: list[str] = []
    metadata: dict[str, Any] = {}
    warnings: list[Warning_] = []


class MemoryPage(Shape, kw_only=True):
    """Some memories."""

    data: list[Memory]
    next_cursor: str | None = None
