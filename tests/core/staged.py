"""Prompts of chats staged and decided without a server, for tests: what a library would bring is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contextshift.audit import render_document
from contextshift.casting import Cast, Wanted
from contextshift.catalogue import Catalogue, Model
from contextshift.chats import MessageRecord
from contextshift.lore.model import Book, Card
from contextshift.planner import Planned, Planner
from contextshift.ports import Access, KeyRecord, SettingsRecord
from contextshift.scene import Character, Persona
from contextshift.settings import Plan
from contextshift.staging import Staged, Staging, sent_messages
from contextshift.words import WordCounter
from core.lore.waking import search

ANN = {"id": "ann", "kind": "character", "character_id": "ann"}
BEN = {"id": "ben", "kind": "character", "character_id": "ben"}
ME = {"id": "me", "kind": "user"}


def model(name: str = "asked", window: int = 10_000, **fields: Any) -> Model:
    return Model(name=name, provider="main", upstream_name=name, context_window=window, **fields)


def said(*messages: tuple[str, str] | dict[str, Any]) -> list[MessageRecord]:
    """Return a chat's messages, from (role, text) or whole documents."""
    documents = [one if isinstance(one, dict) else {"role": one[0], "content": one[1]} for one in messages]
    return [MessageRecord("main", n, document) for n, document in enumerate(documents, 1)]


def cast(*cards: Card, books: Sequence[Book] = (), persona: str | None = None, memories: Sequence[Any] = ()) -> Cast:
    """Return a cast; a character's id is its name in small letters, and its own book is in scope before the others."""
    people = [Character(card.name.lower(), card) for card in cards]
    own = [card.book for card in cards if card.book is not None]
    return Cast(people, Persona("p", persona, "") if persona else None, [*own, *books], memories)


class Table:
    """An account's models, in front of which prompts are staged."""

    def __init__(self, *models: Model) -> None:
        self.models = models or (model(),)
        catalogue = Catalogue({one.name: one for one in self.models})
        self.planner = Planner(catalogue, {"pro": Plan("pro", {"smart_truncation": True})}, lambda _: WordCounter())
        self.access = Access(KeyRecord("hash", "key", "a", frozenset()), "a", "pro", SettingsRecord())

    def staged(
        self,
        messages: Sequence[MessageRecord],
        cast: Cast | None = None,
        chat: dict[str, Any] | None = None,
        **wanted: Any,
    ) -> Staged:
        document = {"model": self.models[0].name, **(chat or {})}
        staging = Staging(
            self.planner,
            self.access,
            document,
            messages,
            cast or Cast(),
            Wanted(**wanted),
            seed="s",
            now=0.0,
            search=search,
        )
        return staging.stage()

    def planned(self, messages: Sequence[MessageRecord], *more: Any, **wanted: Any) -> Planned:
        return self.planner.decide(self.staged(messages, *more, **wanted).question)


def sent(planned: Planned) -> list[dict[str, Any]]:
    return sent_messages(planned.decision, planned.question)


def audit(planned: Planned) -> dict[str, Any]:
    return render_document(planned.document(), ("content", "messages"))


def entries(planned: Planned) -> dict[str, dict[str, Any]]:
    """Return the audit's entries by id."""
    listed = audit(planned)["entries"]
    found = {one["id"]: one for one in listed}
    assert len(found) == len(listed), "two entries of one id"
    return found
