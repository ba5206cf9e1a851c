"""A book made ready for scanning: its decorators read, its keys normalised and indexed. Made once a book."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Any
from unicodedata import normalize

from contextshift.lore.activation_ports import Search
from contextshift.lore.decorators import Decorators, read_decorators
from contextshift.lore.matching import KeyIndex, ScanText, TextKey, finds, text_key
from contextshift.lore.model import Book, Entry, Place
from contextshift.lore.patterns import PatternFault, parse_key
from contextshift.reasons import Lore

__all__ = ["Key", "KeyFinder", "Outcome", "Plan", "PlannedEntry", "compile_book", "compile_keys"]

_MACRO = re.compile(r"(?i)\{\{|<(?:user|bot|char)>")
_MAX_ENTRIES = 50_000

KeyAt = tuple[int, int]
"""Index of an entry in its book, index of a key of it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry of a book."""

    book: str
    entry: str
    included: bool
    reason: str
    """A word of `contextshift.reasons.Lore`."""
    tokens: int = 0
    """Of an entry that is in, or that did not fit the budget."""
    detail: str | None = None
    """What woke it (a key, or an entry as ``book/entry``); who won its group; the key or budget that kept it out."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key, as written and ready to be looked for. With neither text nor pattern, it is blank, or it holds macros."""

    written: str
    text: TextKey | None = None
    pattern: tuple[str, str] | None = None
    as_pattern: bool = False
    case_sensitive: bool = False
    whole_words: bool = False


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """An entry with what its decorators change."""

    book: Book
    index: int
    """In its book."""
    entry: Entry
    said: Decorators
    body: str
    keys: tuple[Key, ...]
    ignored: tuple[str, ...]
    """Decorators that nobody knows."""

    @property
    def label(self) -> str:
        """Its name in audits and for chance: ``book/entry``."""
        return f"{self.book.id}/{self.entry.id}"

    @property
    def position(self) -> tuple[Place, int]:
        """Where it stands and at what depth: by decorator, else by its own fields."""
        if self.said.position is not None:
            return self.said.position, self.entry.depth
        if self.said.depth is not None:
            return Place.AT_DEPTH, self.said.depth
        if self.said.reverse_depth is not None:
            return Place.REVERSE_DEPTH, self.said.reverse_depth
        return self.entry.place, self.entry.depth

    @property
    def scan_depth(self) -> int | None:
        """Messages to scan: by decorator, else its own; None: the book's."""
        return self.entry.scan_depth if self.said.scan_depth is None else self.said.scan_depth

    @property
    def rank(self) -> float:
        """The order of leaving under the budget: lower first."""
        return float("-inf") if self.said.ignore_on_max_context else self.entry.rank

    def outcome(self, reason: str, *, included: bool = False, tokens: int = 0, detail: str | None = None) -> Outcome:
        """Return what became of it."""
        return Outcome(self.book.id, self.entry.id, included, reason, tokens, detail)


@dataclass(frozen=True, slots=True)
class Plan:
    """A book, ready for scanning."""

    entries: tuple[PlannedEntry, ...]
    indexed: Mapping[int | None, KeyIndex[KeyAt]]
    """Keys that are text, by the scan depth of their entries (None: the book's)."""
    searched: Mapping[int | None, tuple[KeyAt, ...]]
    """Keys that are patterns or hold macros."""
    always: tuple[int, ...]
    """Entries that need no key."""
    outcomes: tuple[Outcome, ...]
    """Of every entry, where nothing wakes it."""
    places: Mapping[str, int]
    """Index by entry id."""
    diagnostics: tuple[Mapping[str, Any], ...]


class KeyFinder:
    """Looks for keys of every kind."""

    def __init__(self, search: Search, expand: Callable[[Book, str], str]) -> None:
        self._search = search
        self._expand = expand
        self._expanded: dict[tuple[str, Key], Key] = {}

    def finds(self, key: Key, text: ScanText, book: Book) -> bool:
        """Whether a key of a book is found in a text. Raises PatternFault."""
        if key.text is None and key.pattern is None:
            key = self._with_macros(key, book)
        if key.pattern is None:
            return key.text is not None and finds(key.text, text)
        try:
            return self._search(*key.pattern, text.raw)
        except PatternFault as fault:
            fault.key = key.written
            raise

    def _with_macros(self, key: Key, book: Book) -> Key:
        known = self._expanded.get((book.id, key))
        if known is None:
            kind = key.as_pattern, key.case_sensitive, key.whole_words
            known = self._expanded[book.id, key] = _key(key.written, self._expand(book, key.written), *kind)
        return known


class _Plans:
    """The newest plans, by identity: comparing two books of thousands of entries would cost what the plan saves.

    They hold their books, so that an identity is not given away, and 50,000 entries at most.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[int, tuple[Book, Plan]] = {}

    def plan(self, book: Book) -> Plan:
        with self._lock:
            kept = self._kept.pop(id(book), None)
            if kept is not None:
                self._kept[id(book)] = kept
                return kept[1]
        plan = _compile(book)
        with self._lock:
            self._kept[id(book)] = book, plan
            while len(self._kept) > 1 and self._size() > _MAX_ENTRIES:
                del self._kept[next(iter(self._kept))]
        return plan

    def _size(self) -> int:
        return sum(1 + len(plan.entries) for _, plan in self._kept.values())


_plans = _Plans()


def compile_book(book: Book) -> Plan:
    """Return the plan of a book: the one made before, where the same object was seen not long ago."""
    return _plans.plan(book)


def _compile(book: Book) -> Plan:
    entries = tuple(_planned(book, index, entry) for index, entry in enumerate(book.entries))
    texts: dict[int | None, list[tuple[TextKey, KeyAt]]] = {}
    searched: dict[int | None, list[KeyAt]] = {}
    for planned in entries:
        if not _is_looked_for(planned):
            continue
        for number, key in enumerate(planned.keys):
            if key.text is not None:
                texts.setdefault(planned.scan_depth, []).append((key.text, (planned.index, number)))
            else:
                searched.setdefault(planned.scan_depth, []).append((planned.index, number))
    return Plan(
        entries=entries,
        indexed=MappingProxyType({depth: KeyIndex(keys) for depth, keys in texts.items()}),
        searched=MappingProxyType({depth: tuple(keys) for depth, keys in searched.items()}),
        always=tuple(e.index for e in entries if e.entry.enabled and (e.entry.constant or e.said.activate)),
        outcomes=tuple(planned.outcome(_asleep(planned)) for planned in entries),
        places=MappingProxyType({planned.entry.id: planned.index for planned in entries}),
        diagnostics=tuple(note for planned in entries if planned.ignored for note in _notes(planned)),
    )


def _is_looked_for(planned: PlannedEntry) -> bool:
    entry, said = planned.entry, planned.said
    off = not entry.enabled or said.dont_activate or planned.scan_depth == 0
    return not (off or entry.constant or said.activate)


def _planned(book: Book, index: int, entry: Entry) -> PlannedEntry:
    said, body, ignored = read_decorators(entry.content)
    return PlannedEntry(book, index, entry, said, body, compile_keys(book, entry, entry.keys), ignored)


def compile_keys(book: Book, entry: Entry, written: tuple[str, ...]) -> tuple[Key, ...]:
    """Return keys of an entry, its primary or others, ready to be looked for."""
    whole = book.match_whole_words if entry.match_whole_words is None else entry.match_whole_words
    kind = entry.use_regex, bool(entry.case_sensitive), whole
    return tuple(Key(text, None, None, *kind) if _MACRO.search(text) else _key(text, text, *kind) for text in written)


def _key(written: str, text: str, as_pattern: bool, case_sensitive: bool, whole_words: bool) -> Key:
    pattern = parse_key(text.strip()) if "/" in text else None
    if pattern is None and as_pattern and text:
        pattern = text, "" if case_sensitive else "i"
    if pattern is not None:
        return Key(written, None, (normalize("NFC", pattern[0]), pattern[1]))
    return Key(written, text_key(text, case_sensitive=case_sensitive, whole_words=whole_words))


def _asleep(planned: PlannedEntry) -> Lore:
    if not planned.entry.enabled:
        return Lore.DISABLED
    return Lore.DECORATOR_OFF if planned.said.dont_activate and not planned.said.activate else Lore.NO_KEY_MATCH


def _notes(planned: PlannedEntry) -> list[Mapping[str, Any]]:
    where = {"code": "unknown-decorator", "book": planned.book.id, "entry": planned.entry.id}
    return [{**where, "decorator": name} for name in planned.ignored if planned.entry.enabled]
