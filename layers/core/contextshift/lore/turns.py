"""What entries remember between turns: sticky, cooldown, and V3's matched-before.

A turn is known by its mark, a number that grows along the chat, and the memory is a list of such marks: so a
regeneration finds its turn as it was, and a chat that was taken back forgets what has not happened.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from contextshift.lore.activation_ports import Turn
from contextshift.lore.model import Book, Entry

__all__ = ["Memory"]

_MAX_TURNS = 1000
_WOKEN = "woken"
_MATCHED = "matched"


class Memory:
    """What earlier turns left.

    Turns that follow the one an entry woke in: it stays for ``sticky`` of them, and for ``cooldown`` more it cannot
    be woken. What it was woken by while it stayed does not begin that anew (as in SillyTavern).
    """

    def __init__(self, turn: Turn) -> None:
        self._now = turn.messages if turn.mark is None else turn.mark
        self._turns = sorted(mark for mark in turn.state.get("turns", ()) if mark < self._now)
        self._records: dict[str, dict[str, dict[str, int]]] = {}
        for book, entries in turn.state.get("entries", {}).items():
            for entry, record in entries.items():
                past = {name: mark for name, mark in record.items() if mark < self._now}
                if past:
                    self._records.setdefault(book, {})[entry] = past

    def known(self, book: Book) -> Iterator[str]:
        """Yield the ids of entries of a book that something is remembered of."""
        yield from self._records.get(book.id, ())

    def sticky(self, book: Book, entry: Entry) -> bool:
        """Whether an entry stays from an earlier turn."""
        return 0 < self._turns_since(book, entry) <= entry.sticky

    def cooling(self, book: Book, entry: Entry) -> bool:
        """Whether an entry cannot be woken, since it was active not long ago."""
        return entry.sticky < self._turns_since(book, entry) <= entry.sticky + entry.cooldown

    def matched(self, book: Book, entry: Entry) -> bool:
        """Whether an entry was in an earlier prompt, if its decorators ask for it."""
        return _MATCHED in self._records.get(book.id, {}).get(entry.id, {})

    def after(self, books: Iterable[Book], active: Iterable[tuple[Book, Entry, bool]]) -> dict[str, Any]:
        """Return the memory after this turn, to be stored as JSON.

        ``active``: the entries that were in, each with whether a match is to be remembered for good. What is
        remembered of books that are not in scope stays.
        """
        scope = {book.id: book for book in books}
        entries = {id: dict(records) for id, records in self._records.items() if id not in scope}
        for book in scope.values():
            kept = self._lasting(book)
            if kept:
                entries[book.id] = kept
        for book, entry, remember in active:
            names = [_WOKEN] * bool(entry.sticky or entry.cooldown) + [_MATCHED] * remember
            for name in names:
                entries.setdefault(book.id, {}).setdefault(entry.id, {}).setdefault(name, self._now)
        woken = [r[_WOKEN] for records in entries.values() for r in records.values() if _WOKEN in r]
        since = min(woken, default=self._now)
        turns = [mark for mark in self._turns if mark > since]
        return {"turns": [*turns, self._now][-_MAX_TURNS:], "entries": entries}

    def _turns_since(self, book: Book, entry: Entry) -> int:
        """Return how many turns ago an entry woke; 0 where that is not known."""
        woken = self._records.get(book.id, {}).get(entry.id, {}).get(_WOKEN)
        return 0 if woken is None else len(self._turns) - bisect_right(self._turns, woken) + 1

    def _lasting(self, book: Book) -> dict[str, dict[str, int]]:
        """Return the records of a book that say something in this turn or later."""
        lasting: dict[str, dict[str, int]] = {}
        records = self._records.get(book.id, {})
        for entry in book.entries if records else ():
            record = dict(records.get(entry.id, {}))
            # In its last turn it is still kept: that turn may be generated again.
            if self._turns_since(book, entry) > entry.sticky + entry.cooldown:
                record.pop(_WOKEN, None)
            if record:
                lasting[entry.id] = record
        return lasting
