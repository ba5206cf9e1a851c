"""Books, chats and an engine of patterns for the tests of activation."""

from __future__ import annotations

import re
from typing import Any

from contextshift.lore.activation import Activation, activate
from contextshift.lore.activation_ports import LoreSettings, Turn
from contextshift.lore.model import Book, Entry
from contextshift.lore.patterns import PatternInvalid, PatternTimeout
from contextshift.words import WordCounter

count = WordCounter().text


def search(source: str, flags: str, text: str) -> bool:
    """The standard engine, for tame patterns; the sources ``slow`` and ``[`` fault."""
    if source == "slow":
        raise PatternTimeout
    try:
        return re.search(source, text, re.IGNORECASE if "i" in flags else 0) is not None
    except re.error:
        raise PatternInvalid from None


def entry(id: str, content: str = "lore", *keys: str, **fields: Any) -> Entry:
    return Entry(id, content, keys, **fields)


def book(*entries: Entry, id: str = "b", **fields: Any) -> Book:
    return Book(id, entries, **fields)


def wake(books: Book | list[Book], *messages: str, turn: Turn | None = None, **more: Any) -> Activation:
    books = [books] if isinstance(books, Book) else books
    settings = more.pop("settings", LoreSettings())
    more = {"count": count, "search": search, **more}
    return activate(books, messages, settings=settings, turn=turn or Turn(), **more)


def inside(found: Activation) -> set[str]:
    return {active.entry.id for active in found.entries}


def reasons(found: Activation) -> dict[str, str]:
    return {outcome.entry: outcome.reason for outcome in found.outcomes}
