"""Waking entries: the scan of the messages, the steps of recursion, and what each entry says to being found.

Where SillyTavern and Character Card V3 differ or say nothing:

- Disabled, then a greeting of another index, then ``delay``, then ``cooldown`` keep an entry out in any case;
  ``@@activate`` then lets it in in any case, and ``@@dont_activate`` keeps it out.
- A constant is active also with ``use_regex``; secondary and excluded keys are ignored there, as V3 says.
- An entry is left out by a pattern of its own that faults, also where another key of it is found. What needs no
  key (constant, ``@@activate``) is not looked for, and no pattern of it can fault.
- Recursion goes from and to entries of books that ask for it, also from one book to another; a step scans the texts
  that the step before let in. What it looks for beside its keys (secondary keys) may stand anywhere in what was
  scanned so far. Entries that wait for a step of recursion come in it also where nothing new woke.
- An entry without text for a prompt is active, and may wake others by its hidden keys, but is out (``empty``).
- What is remembered for later turns is remembered of entries that were in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextshift.lore.activation_ports import LoreSettings, Turn
from contextshift.lore.choosing import Budget, Taken, Texts, Woken, by_rank, decides, group_losers, lucky
from contextshift.lore.matching import ScanText
from contextshift.lore.model import Book
from contextshift.lore.patterns import PatternFault
from contextshift.lore.plans import KeyFinder, Outcome, Plan, PlannedEntry, compile_book, compile_keys
from contextshift.lore.turns import Memory
from contextshift.reasons import Lore

__all__ = ["Waking"]

_SEPARATOR = "\n"


@dataclass(slots=True)
class _Found:
    """Primary keys of an entry that were found, and what woke it."""

    planned: PlannedEntry
    matched: set[int]
    cause: str = Lore.KEY
    by: str | None = None

    @property
    def woken_by(self) -> str | None:
        return self.by or (self.planned.keys[min(self.matched)].written if self.matched else None)


class Waking:
    """One activation: what was found, who is settled, what is left of the budget."""

    def __init__(
        self,
        books: Sequence[Book],
        messages: Sequence[str],
        settings: LoreSettings,
        turn: Turn,
        finder: KeyFinder,
        texts: Texts,
    ) -> None:
        self.books = books
        self.plans = [compile_book(book) for book in books]
        self.numbers = {book.id: number for number, book in enumerate(books)}
        if len(self.numbers) < len(books):
            raise ValueError("two books of one id")
        self.messages = messages
        self.settings = settings
        self.turn = turn
        self.finder = finder
        self.texts = texts
        self.memory = Memory(turn)
        self.budget = Budget.of(books, settings)
        self.windows: dict[tuple[int, int], ScanText] = {}
        self.scanned: list[str] = []
        """Texts that recursion has scanned."""
        self.taken: list[Taken] = []
        self.fates: dict[tuple[int, int], Outcome] = {}
        """Of entries that are settled, by number of the book and index."""
        self.held: dict[tuple[int, int], tuple[_Found, Outcome]] = {}
        """Entries that a later step may still let in, and their outcome if none does."""
        self.won: dict[str, str] = {}
        self.faults: list[Mapping[str, Any]] = []

    # -- scans ---------------------------------------------------------------------------------------

    def first_scan(self) -> None:
        """Scan the messages."""
        found: list[_Found] = []
        for plan, book in zip(self.plans, self.books, strict=True):
            by_index: dict[int, _Found] = {}
            for depth in {*plan.indexed, *plan.searched}:
                self._scan(plan, depth, self._window(book, depth, 0), by_index, None)
            remembered = (plan.places[id] for id in self.memory.known(book) if id in plan.places)
            for index in (*plan.always, *(index for index in remembered if plan.entries[index].entry.enabled)):
                by_index.setdefault(index, _Found(plan.entries[index], set()))
            found += (by_index[index] for index in sorted(by_index))
        self._decide(found, 0)

    def recursion(self) -> None:
        """Scan what the step before let in, until nothing wakes or the limits are reached."""
        step, seen = 0, 0
        while True:
            fresh = [taken.woken.planned for taken in self.taken[seen:] if _wakes(taken.woken.planned)]
            seen = len(self.taken)
            next_step = self._next_step(step, bool(fresh))
            if next_step is None:
                return
            step = next_step
            self._recurse(step, [(planned.label, self.texts.scanned(planned.book, planned.body)) for planned in fresh])

    def _next_step(self, step: int, fresh: bool) -> int | None:
        if fresh:
            return step + 1 if any(self._recurses(book, step + 1) for book in self.books) else None
        waiting = [
            (max(step + 1, found.planned.entry.delay_until_recursion), found.planned.book)
            for found, outcome in self.held.values()
            if outcome.reason == Lore.RECURSION_ONLY and _wakeable(found.planned)
        ]
        return min((level for level, book in waiting if self._recurses(book, level)), default=None)

    def _recurse(self, step: int, texts: Sequence[tuple[str, str]]) -> None:
        self.scanned += (text for _, text in texts)
        found: list[_Found] = []
        scans = [(label, ScanText(text)) for label, text in texts]
        for number, (plan, book) in enumerate(zip(self.plans, self.books, strict=True)):
            if not self._recurses(book, step):
                continue
            by_index: dict[int, _Found] = {
                index: held for (at, index), (held, _) in self.held.items() if at == number and _wakeable(held.planned)
            }
            for label, text in scans:
                for depth in {*plan.indexed, *plan.searched}:
                    if self._depth(book, depth):
                        self._scan(plan, depth, text, by_index, label)
            found += (by_index[index] for index in sorted(by_index) if _wakeable(plan.entries[index]))
        self._decide(found, step)

    def _recurses(self, book: Book, step: int) -> bool:
        limits = [limit for limit in (book.recursion_limit, self.settings.recursion_limit) if limit is not None]
        return book.recursive_scanning and all(step <= limit for limit in limits)

    def _scan(
        self, plan: Plan, depth: int | None, text: ScanText | None, found: dict[int, _Found], by: str | None
    ) -> None:
        """Add what a text wakes to ``found``; ``by``: the entry whose text it is."""
        if text is None:
            return
        if depth in plan.indexed:
            for index, key in plan.indexed[depth].found(text, lambda at: self._open(plan.entries[at[0]], by)):
                self._note(plan.entries[index], key, found, by)
        for index, key in plan.searched.get(depth, ()):
            planned = plan.entries[index]
            if self._open(planned, by) and self._finds(planned, key, text):
                self._note(planned, key, found, by)

    def _open(self, planned: PlannedEntry, by: str | None) -> bool:
        """Whether it may matter that a key of an entry is found: looking for it costs time."""
        return self._at(planned) not in self.fates and (by is None or _wakeable(planned))

    def _note(self, planned: PlannedEntry, key: int, found: dict[int, _Found], by: str | None) -> None:
        known = found.get(planned.index)
        if known is None:
            known = found[planned.index] = _Found(planned, set(), Lore.RECURSION if by else Lore.KEY, by)
        elif not known.matched and by:
            known.cause, known.by = Lore.RECURSION, by
        known.matched.add(key)

    def _finds(self, planned: PlannedEntry, key: int, text: ScanText) -> bool:
        try:
            return self.finder.finds(planned.keys[key], text, planned.book)
        except PatternFault as fault:
            self._fault(planned, fault)
            return False

    def _fault(self, planned: PlannedEntry, fault: PatternFault) -> None:
        self._out(planned, fault.reason, detail=fault.key)
        where = {"book": planned.book.id, "entry": planned.entry.id}
        self.faults.append({"code": fault.reason, **where, "key": fault.key})

    # -- texts ---------------------------------------------------------------------------------------

    def _depth(self, book: Book, own: int | None) -> int:
        depth = next(d for d in (own, book.scan_depth, self.settings.scan_depth) if d is not None)
        return min(depth, len(self.messages)) if depth and self.messages else depth

    def _window(self, book: Book, own: int | None, scanned: int) -> ScanText | None:
        """Return the newest messages, and after them the first ``scanned`` texts of recursion."""
        depth = self._depth(book, own)
        if not depth:
            return None
        if (depth, scanned) not in self.windows:
            texts = (*self.messages[-depth:], *self.scanned[:scanned])
            self.windows[depth, scanned] = ScanText(_SEPARATOR.join(texts))
        return self.windows[depth, scanned]

    # -- decisions -----------------------------------------------------------------------------------

    def _decide(self, found: Iterable[_Found], step: int) -> None:
        """Let in who of the found may come in this step."""
        woken = [entry for each in found for entry in self._judged(each, step)]
        for entry in [entry for entry in woken if not lucky(entry, self.turn.chance)]:
            self._out(entry.planned, Lore.PROBABILITY)
            woken.remove(entry)
        for entry, group, winner in group_losers(woken, self.won, self.turn.chance):
            self._out(entry.planned, Lore.GROUP, detail=f"{group}: {winner}")
            woken.remove(entry)
        for entry in by_rank(woken):
            self._charge(entry)

    def _charge(self, woken: Woken) -> None:
        planned = woken.planned
        text = self.texts.expanded(planned.book, planned.body)
        tokens = self.texts.count(text) if text.strip() else 0
        short = self.budget.take(planned, tokens)
        if short is not None:
            self._out(planned, Lore.LORE_BUDGET, tokens=tokens, detail=short)
            return
        self.taken.append(Taken(woken, text, tokens, self.numbers[planned.book.id]))
        self.won |= dict.fromkeys(planned.entry.groups, planned.label)
        if text.strip():
            self._settle(planned, planned.outcome(woken.cause, included=True, tokens=tokens, detail=woken.woken_by))
        else:
            self._out(planned, Lore.EMPTY)

    def _judged(self, found: _Found, step: int) -> Sequence[Woken]:
        """Return the entry as woken, or nothing and note what keeps it out."""
        planned = found.planned
        if self._at(planned) in self.fates:
            return ()
        cause = self._cause(found)
        if cause is None:
            return ()
        barred = self._barred(planned)
        if barred is not None:
            self._out(planned, barred)
        elif planned.entry.delay_until_recursion > step:
            self._hold(found, Lore.RECURSION_ONLY)
        elif cause in (Lore.KEY, Lore.RECURSION) and not self._agrees(found):
            pass
        else:
            by = found.woken_by if cause in (Lore.KEY, Lore.RECURSION) else None
            sticky = self.memory.sticky(planned.book, planned.entry)
            return (Woken(planned, cause, by, frozenset(found.matched), sticky),)
        return ()

    def _cause(self, found: _Found) -> str | None:
        """Return what wakes an entry, by what is said of it and by its keys; None: nothing."""
        book, entry, said = found.planned.book, found.planned.entry, found.planned.said
        if said.activate or (said.keep_activate_after_match and self.memory.matched(book, entry)):
            return Lore.DECORATOR
        if self.memory.sticky(book, entry):
            return Lore.STICKY
        return Lore.CONSTANT if entry.constant else (found.cause if found.matched else None)

    def _barred(self, planned: PlannedEntry) -> Lore | None:
        """Return what keeps an entry out whatever woke it."""
        book, entry, said, turn = planned.book, planned.entry, planned.said, self.turn
        if None not in (said.is_greeting, turn.greeting) and said.is_greeting != turn.greeting:
            return Lore.DECORATOR_OFF
        if turn.messages < entry.delay:
            return Lore.DELAY
        if self.memory.cooling(book, entry):
            return Lore.COOLDOWN
        matched = self.memory.matched(book, entry)
        if said.activate:
            return None
        if said.dont_activate or (said.dont_activate_after_match and matched):
            return Lore.DECORATOR_OFF
        if self.memory.sticky(book, entry) or (said.keep_activate_after_match and matched):
            return None
        replies = turn.messages if turn.replies is None else turn.replies
        early = replies < (said.activate_only_after or 0)
        return Lore.DECORATOR_OFF if early or replies % (said.activate_only_every or 1) else None

    def _agrees(self, found: _Found) -> bool:
        """Whether secondary, additional and excluded keys let an entry in; notes what they do not."""
        planned = found.planned
        entry, said = planned.entry, planned.said
        ruled = bool(entry.secondary_keys or said.exclude_keys) and not entry.use_regex
        if not ruled and not said.additional_keys:
            return True
        text = self._window(planned.book, planned.scan_depth, len(self.scanned))
        if text is None:
            return False
        try:
            if said.additional_keys and not any(self._found(planned, said.additional_keys, text)):
                return self._hold(found, Lore.SECONDARY_KEYS)
            if ruled and any(self._found(planned, said.exclude_keys, text)):
                self._out(planned, Lore.SECONDARY_KEYS)
                return False
            if ruled and entry.secondary_keys:
                secondary = list(self._found(planned, entry.secondary_keys, text))
                if not decides(entry.secondary_logic, secondary):
                    return self._hold(found, Lore.SECONDARY_KEYS)
        except PatternFault as fault:
            self._fault(planned, fault)
            return False
        return True

    def _found(self, planned: PlannedEntry, written: tuple[str, ...], text: ScanText) -> Iterable[bool]:
        return (
            self.finder.finds(key, text, planned.book) for key in compile_keys(planned.book, planned.entry, written)
        )

    # -- outcomes ------------------------------------------------------------------------------------

    def _at(self, planned: PlannedEntry) -> tuple[int, int]:
        return self.numbers[planned.book.id], planned.index

    def _settle(self, planned: PlannedEntry, outcome: Outcome) -> None:
        self.held.pop(self._at(planned), None)
        self.fates[self._at(planned)] = outcome

    def _out(self, planned: PlannedEntry, reason: str, tokens: int = 0, detail: str | None = None) -> None:
        self._settle(planned, planned.outcome(reason, tokens=tokens, detail=detail))

    def _hold(self, found: _Found, reason: Lore) -> bool:
        self.held[self._at(found.planned)] = found, found.planned.outcome(reason, detail=found.woken_by)
        return False

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return what became of every entry of every book, in the books' order."""
        outcomes = [list(plan.outcomes) for plan in self.plans]
        for (number, index), (_, outcome) in self.held.items():
            outcomes[number][index] = outcome
        for (number, index), outcome in self.fates.items():
            outcomes[number][index] = outcome
        return tuple(outcome for of_book in outcomes for outcome in of_book)


def _wakes(planned: PlannedEntry) -> bool:
    return planned.book.recursive_scanning and not planned.entry.prevent_recursion


def _wakeable(planned: PlannedEntry) -> bool:
    return not planned.entry.exclude_recursion
