"""Which entries of the books in scope a conversation wakes, and why each of the others sleeps.

Read off the books by `compile_book`, woken by `Waking`, and here put into the order of the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextshift.lore.activation_ports import Expand, LoreSettings, Search, Turn
from contextshift.lore.choosing import Taken, Texts
from contextshift.lore.model import Book, Entry, Place
from contextshift.lore.plans import KeyFinder, Outcome, PlannedEntry
from contextshift.lore.waking import Waking

__all__ = ["Activated", "Activation", "Outcome", "activate"]

_WITH_ROLE = (Place.AT_DEPTH, Place.REVERSE_DEPTH)
"""Where World Info's ``role`` holds; the decorator of this name holds everywhere."""
_PLACES = {place: number for number, place in enumerate(Place)}


@dataclass(frozen=True, slots=True)
class Activated:
    """An entry that is in."""

    book: str
    entry: Entry
    text: str
    """For the prompt: without decorators, macros replaced."""
    place: Place
    depth: int
    role: str
    cause: str
    """``key``, ``constant``, ``recursion``, ``decorator`` or ``sticky``."""
    woken_by: str | None
    """The key as written, or with ``recursion`` the entry that holds it, as ``book/entry``."""
    required: bool
    """Constant, and not ``@@ignore_on_max_context``."""
    relevance: float
    """0 to 1: the share of primary keys found; 1 for what needs none."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Activation:
    """What a conversation wakes."""

    entries: tuple[Activated, ...]
    """In the order of the prompt: place, ``insertion_order``, the books' order."""
    outcomes: tuple[Outcome, ...]
    """Every entry of every book once, in the books' order."""
    state: dict[str, Any]
    """`Turn.state` of the next turn, JSON; stored only where this one was a real turn, no preview."""
    diagnostics: tuple[Mapping[str, Any], ...]
    """``{code, book, entry, …}``: decorators that nobody knows, patterns that faulted."""


def activate(
    books: Sequence[Book],
    messages: Sequence[str],
    *,
    settings: LoreSettings,
    turn: Turn,
    count: Callable[[str], int],
    search: Search,
    expand: Expand = str,
    expand_hidden: Expand | None = None,
    expand_of: Mapping[str, Expand] | None = None,
) -> Activation:
    """Return what ``messages`` (the texts to scan, newest last) wake in ``books`` (their ids differ).

    ``count``: tokens of a text. ``search``: the engine of patterns; it raises PatternFault. ``expand`` replaces
    macros in contents and keys; ``expand_hidden`` does so in the texts that recursion scans, with what
    ``{{hidden_key:…}}`` holds (None: ``expand``, and what is hidden behind it); ``expand_of`` stands in for
    ``expand`` in single books, by their ids. Books are compiled once: hand in the same objects again.
    Raises ValueError for two books of one id.

    >>> book = Book("b", (Entry("1", "Dragons sleep.", keys=("dragon",)),))
    >>> found = activate([book], ["A dragon!"], settings=LoreSettings(), turn=Turn(), count=len,
    ...                  search=lambda source, flags, text: False)
    >>> [(entry.text, entry.woken_by) for entry in found.entries]
    [('Dragons sleep.', 'dragon')]
    """
    texts = Texts(count, expand, expand_hidden, expand_of or {})
    waking = Waking(books, messages, settings, turn, KeyFinder(search, texts.expanded), texts)
    waking.first_scan()
    waking.recursion()
    shown = sorted((taken for taken in waking.taken if taken.text.strip()), key=_order)
    return Activation(
        entries=tuple(map(_activated, shown)),
        outcomes=waking.outcomes(),
        state=waking.memory.after(books, (_remembered(taken.woken.planned) for taken in waking.taken)),
        diagnostics=(*(note for plan in waking.plans for note in plan.diagnostics), *waking.faults),
    )


def _order(taken: Taken) -> tuple[int, float, int, int]:
    planned = taken.woken.planned
    return _PLACES[planned.position[0]], planned.entry.insertion_order, taken.number, planned.index


def _activated(taken: Taken) -> Activated:
    woken, planned = taken.woken, taken.woken.planned
    place, depth = planned.position
    return Activated(
        book=planned.book.id,
        entry=planned.entry,
        text=taken.text,
        place=place,
        depth=depth,
        role=planned.said.role or (planned.entry.role if place in _WITH_ROLE else "system"),
        cause=woken.cause,
        woken_by=woken.woken_by,
        required=planned.entry.constant and not planned.said.ignore_on_max_context,
        relevance=woken.relevance,
        tokens=taken.tokens,
    )


def _remembered(planned: PlannedEntry) -> tuple[Book, Entry, bool]:
    said = planned.said
    return planned.book, planned.entry, said.keep_activate_after_match or said.dont_activate_after_match
