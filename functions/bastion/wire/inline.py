"""A conversation that a preview brings whole: its characters, persona, lore and memories beside its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bastion.wire import chats as wire
from bastion.wire.openai_chat import read_messages
from bastion.wire.shapes import Shape, read, write
from contextshift.body import JsonBody
from contextshift.casting import Cast, card_book_id
from contextshift.chats import MAIN, MessageRecord
from contextshift.errors import InvalidInput
from contextshift.lore.books import read_book
from contextshift.lore.cards import read_card
from contextshift.lore.imports import Kind, import_document
from contextshift.lore.model import Book
from contextshift.scene import Character, Persona

__all__ = ["Inline", "read_inline"]


_SAID = ("role", "content", "name", "tool_calls", "tool_call_id", "pinned", "meta", "speaker_id", "reasoning")
"""What a message may say of itself; what the pipeline keeps with stored ones is not a client's to say."""


class _Persona(Shape, kw_only=True):
    """Who the user plays."""

    name: str = "User"
    description: str = ""


class _Conversation(Shape, kw_only=True):
    """An inline conversation."""

    model: str
    messages: list[dict[str, Any]]
    character: dict[str, Any] | list[dict[str, Any]] | None = None
    persona: _Persona | str | None = None
    lorebooks: list[dict[str, Any]] = []
    memories: list[dict[str, Any] | str] = []
    variables: wire.Variables = {}
    author_note: wire.AuthorNote | None = None
    settings: dict[str, Any] = {}
    context_strategy: str | None = None
    routing: dict[str, Any] | None = None
    params: dict[str, Any] = {}
    prefill: str = ""
    user_message: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    tools: list[dict[str, Any]] | None = None
    temperature: float | None = None
    stream: bool | None = None


@dataclass(frozen=True, slots=True)
class Inline:
    """What an inline conversation is made of."""

    chat: Mapping[str, Any]
    messages: Sequence[MessageRecord]
    cast: Cast
    start: wire.GenerationStart


def read_inline(body: JsonBody) -> Inline:
    """Read an inline conversation. Raises InvalidInput with the path of the field at fault."""
    given = read(_Conversation, body.value)
    messages = read_messages(body)
    cards = [given.character] if isinstance(given.character, dict) else given.character or []
    characters = [_character(n, card, len(cards)) for n, card in enumerate(cards)]
    own = [one.card.book for one in characters if one.card.book is not None]
    books = [_book(n, book) for n, book in enumerate(given.lorebooks)]
    persona = _Persona(description=given.persona) if isinstance(given.persona, str) else given.persona
    cast = Cast(
        characters,
        Persona("inline", persona.name, persona.description) if persona else None,
        [*own, *books],
        [(str(n), {"text": one} if isinstance(one, str) else one) for n, one in enumerate(given.memories)],
    )
    openai = {"max_tokens", "max_completion_tokens", "tools", "temperature"}
    params = {name: value for name, value in write(given).items() if name in openai and value is not None}
    chat = {
        "model": given.model,
        "participants": [{"id": one.id, "kind": "character", "character_id": one.id} for one in characters],
        "variables": given.variables,
        "settings": given.settings,
        "author_note": write(given.author_note) if given.author_note else None,
        "context_strategy": None,
        "params": {**params, **given.params},
    }
    start = wire.GenerationStart(
        user_message=given.user_message,
        context_strategy=given.context_strategy,
        routing=given.routing,
        prefill=given.prefill,
    )
    said = [{name: value for name, value in one.items() if name in _SAID} for one in messages]
    return Inline(chat, [MessageRecord(MAIN, n, one) for n, one in enumerate(said, 1)], cast, start)


def _character(position: int, document: Mapping[str, Any], many: int) -> Character:
    path = "character" if many == 1 else f"character[{position}]"
    imported = import_document(document, path)
    if imported.kind is not Kind.CARD:
        raise InvalidInput("this is no character card", path, "wrong_kind")
    return Character(f"c{position}", read_card(imported.document, book_id=card_book_id(f"c{position}")))


def _book(position: int, document: Mapping[str, Any]) -> Book:
    path = f"lorebooks[{position}]"
    imported = import_document(document, path)
    if imported.kind is not Kind.LOREBOOK:
        raise InvalidInput("this is no lorebook", path, "wrong_kind")
    return read_book(imported.document, id=f"b{position}")
