"""What a caller of `shift_context` may give beside messages and budget; what is wrong is named by its argument."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from contextshift.errors import InvalidInput

__all__ = ["RULES", "check_headroom", "check_strategy", "checked_pins", "checked_rules"]

RULES = frozenset(("one_system_message", "system_first_only", "user_first"))
"""Rules that are known. Of these `shift_context` follows ``user_first``; the others are of assembly."""


def check_headroom(headroom: Any) -> None:
    """Raise InvalidInput unless this is a number of at least 0 and below 1."""
    if isinstance(headroom, bool) or not isinstance(headroom, int | float) or not 0 <= headroom < 1:
        raise InvalidInput("headroom must be a number, at least 0 and below 1", "headroom")


def checked_pins(pinned: Any, count: int) -> list[int]:
    """Return the indices. Raises InvalidInput, naming the place, unless each is that of one of ``count`` messages."""
    pins = _listed(pinned, "pinned", "message indices")
    for place, index in enumerate(pins):
        if isinstance(index, bool) or not isinstance(index, int):
            raise InvalidInput("a message index must be a whole number", f"pinned[{place}]", "invalid_type")
        if not 0 <= index < count:
            raise InvalidInput("there is no such message to pin", f"pinned[{place}]", "invalid_index")
    return pins


def checked_rules(rules: Any) -> frozenset[str]:
    """Return the rules. Raises InvalidInput, naming the place, for one that nobody knows.

    A single text is refused: it would be read letter by letter.
    """
    listed = _listed(rules, "rules", "names of rules")
    for place, rule in enumerate(listed):
        if not isinstance(rule, str) or rule not in RULES:
            known = ", ".join(sorted(RULES))
            raise InvalidInput(f"there is no such rule; known: {known}", f"rules[{place}]", "unknown_rule")
    return frozenset(listed)


def check_strategy(strategy: object) -> None:
    """Raise InvalidInput unless this can be asked for a proposal."""
    if not callable(getattr(strategy, "propose", None)):
        raise InvalidInput("a strategy is the name of one, or an object that proposes", "strategy", "invalid_type")


def _listed(given: Any, name: str, what: str) -> list[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(f"{name} must be a list of {what}", name, "invalid_type")
    return list(given)
