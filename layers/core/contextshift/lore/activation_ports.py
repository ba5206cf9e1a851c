"""What activation takes from outside: the engine of patterns and the texts of a turn, as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = ["Expand", "LoreSettings", "Search", "Turn"]

Search: TypeAlias = Callable[[str, str, str], bool]
"""``search(source, flags, text)``: whether a pattern is found in a text. Raises PatternFault.

It limits its own time: a key's, and that of all calls of one request.
"""
Expand: TypeAlias = Callable[[str], str]
"""Return a text with its macros replaced."""


@dataclass(frozen=True, slots=True)
class LoreSettings:
    """An account's own, where a book or an entry says nothing else."""

    scan_depth: int = 4
    """Newest messages to scan; 0: keys never match."""
    budget_tokens: int | None = None
    """Tokens that lore of all books may take together; None: only the books' own budgets limit it."""
    recursion_limit: int | None = None
    """Steps of recursion at most, whatever a book says beyond it; None: no limit but the book's."""
    stop_at_budget: bool = False
    """As `Book.stop_at_budget`, for every book."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What turn rules count, and where chance comes from.

    A turn is told by ``mark``: with that of an earlier turn, or a smaller one, it is that turn again (a regeneration,
    or a chat taken back), and what later turns left in ``state`` does not count.
    """

    messages: int = 0
    """Messages of the chat so far, with the newest."""
    mark: int | None = None
    """A number that grows from turn to turn, whatever becomes of earlier messages; None: ``messages`` stands in."""
    greeting: int | None = None
    """Index of the greeting in use (``@@is_greeting``), -1 where it is none of them; None: unknown, the decorator is
    ignored."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """`Activation.state` of the last real turn; empty for a new chat."""
    chance: Callable[[str], float] = lambda _: 0.0
    """A number in [0, 1) for a label, ``probability:book/entry`` or ``group:name``: the same for the same turn.

    By default chance lets everything in."""
    replies: int | None = None
    """The character's messages among them, which V3's ``activate_only_…`` count; None: ``messages`` stands in."""
