"""Secondary keys, chance, inclusion groups and the budget: who of the woken entries is in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from contextshift.lore.activation_ports import Expand, LoreSettings
from contextshift.lore.macros import hidden_keys
from contextshift.lore.model import Book, SecondaryLogic
from contextshift.lore.plans import PlannedEntry
from contextshift.reasons import Lore

__all__ = ["Budget", "Taken", "Texts", "Woken", "by_rank", "decides", "group_losers", "lucky"]


@dataclass(slots=True)
class Woken:
    """An entry that something woke."""

    planned: PlannedEntry
    cause: str
    woken_by: str | None
    matched: frozenset[int] = frozenset()
    """Indexes of its primary keys that were found."""
    sticky: bool = False

    @property
    def relevance(self) -> float:
        """The share of its primary keys that were found; 1 for one that needs none."""
        if self.planned.entry.constant or self.cause == Lore.DECORATOR or not self.planned.keys:
            return 1.0
        return len(self.matched) / len(self.planned.keys)


@dataclass(frozen=True, slots=True)
class Taken:
    """An entry that is in, with its text for the prompt."""

    woken: Woken
    text: str
    tokens: int
    number: int
    """Of its book."""


@dataclass(frozen=True, slots=True)
class Texts:
    """What is done with the texts of woken entries: counted, and their macros replaced for prompt and recursion."""

    count: Callable[[str], int]
    expand: Expand
    expand_hidden: Expand | None = None
    expand_of: Mapping[str, Expand] = field(default_factory=dict)
    """By id of the book, in place of ``expand``."""

    def expanded(self, book: Book, text: str) -> str:
        """Return a text of a book with its macros replaced."""
        return self.expand_of.get(book.id, self.expand)(text)

    def scanned(self, book: Book, text: str) -> str:
        """Return a text of a book for recursion to scan: with the keys that it hides from the prompt."""
        if self.expand_hidden is not None and book.id not in self.expand_of:
            return self.expand_hidden(text)
        hidden = hidden_keys(text)
        return self.expanded(book, text) + (f"\n{self.expanded(book, hidden)}" if hidden else "")


def decides(logic: SecondaryLogic, found: Sequence[bool]) -> bool:
    """Whether secondary keys, each found or not, let their entry in."""
    match logic:
        case SecondaryLogic.AND_ANY:
            return any(found)
        case SecondaryLogic.NOT_ALL:
            return not all(found)
        case SecondaryLogic.NOT_ANY:
            return not any(found)
        case SecondaryLogic.AND_ALL:
            return all(found)


def lucky(woken: Woken, chance: Callable[[str], float]) -> bool:
    """Whether chance lets an entry in. One that stays from an earlier turn had its luck then."""
    probability = woken.planned.entry.probability
    if probability >= 100 or woken.sticky:
        return True
    return chance(f"probability:{woken.planned.label}") * 100 < probability


def group_losers(
    woken: Sequence[Woken], won: dict[str, str], chance: Callable[[str], float]
) -> list[tuple[Woken, str, str]]:
    """Return who leaves because another of its inclusion group stays: the entry, the group, the winner's label.

    ``won``: groups whose winner is in from an earlier step. Of those that stay from an earlier turn one wins, as in
    SillyTavern; else, of those with ``group_override``, the one of highest order; else chance by weight. An entry
    of several groups must win in each. Groups of one name are one, across books.
    """
    losers: list[tuple[Woken, str, str]] = []
    staying = list(woken)
    for name in dict.fromkeys(name for entry in woken for name in entry.planned.entry.groups):
        members = [entry for entry in staying if name in entry.planned.entry.groups]
        if not members or (len(members) == 1 and name not in won):
            continue
        winner = None if name in won else _winner(members, name, chance)
        label = won[name] if winner is None else winner.planned.label
        losers += [(entry, name, label) for entry in members if entry is not winner]
        staying = [entry for entry in staying if entry is winner or name not in entry.planned.entry.groups]
    return losers


def _winner(members: Sequence[Woken], name: str, chance: Callable[[str], float]) -> Woken:
    pool = [entry for entry in members if entry.sticky] or members
    first = [entry for entry in pool if entry.planned.entry.group_override]
    if first:
        return max(first, key=lambda entry: entry.planned.entry.insertion_order)
    weights = [max(0.0, entry.planned.entry.group_weight) for entry in pool]
    left = chance(f"group:{name}") * sum(weights)
    for entry, weight in zip(pool, weights, strict=True):
        left -= weight
        if left < 0:
            return entry
    return pool[0] if not any(weights) else next(e for e, w in zip(reversed(pool), reversed(weights), strict=True) if w)


def by_rank(woken: Sequence[Woken]) -> list[Woken]:
    """Return entries in the order in which the budget takes them: higher rank first, then the books' order."""
    return sorted(woken, key=lambda entry: -entry.planned.rank)


@dataclass(slots=True)
class Budget:
    """What the books and the account may still spend."""

    settings: LoreSettings
    books: dict[str, int | None]
    """Tokens left of each book's own; None: no budget of its own."""
    left: int | None
    """Tokens left of the account's."""
    ended: set[str] = field(default_factory=set)
    """Books whose list has ended (``stop_at_budget``)."""

    @classmethod
    def of(cls, books: Sequence[Book], settings: LoreSettings) -> Budget:
        """Return the whole budget."""
        return cls(settings, {book.id: book.token_budget for book in books}, settings.budget_tokens)

    def take(self, planned: PlannedEntry, tokens: int) -> str | None:
        """Charge an entry and return None, or return what kept it out: ``book``, ``account`` or ``stopped``.

        One that does not fit is passed over; with ``stop_at_budget`` it ends the list of its book.
        ``ignore_budget`` is taken in any case and charged to nobody.
        """
        if planned.entry.ignore_budget:
            return None
        book = planned.book
        if book.id in self.ended:
            return "stopped"
        own = self.books[book.id]
        short = "book" if own is not None and tokens > own else None
        short = short or ("account" if self.left is not None and tokens > self.left else None)
        if short is not None:
            if book.stop_at_budget or self.settings.stop_at_budget:
                self.ended.add(book.id)
            return short
        self.books[book.id] = None if own is None else own - tokens
        self.left = None if self.left is None else self.left - tokens
        return None
