"""``truncate``: the least important groups leave until the rest fits.

Order of leaving: results without a call; examples; memories, then optional lore, lowest priority first;
then history, oldest group first. The order does not depend on the budget, and what leaves is always a
beginning of it: so a larger budget never keeps fewer tokens, and shifting again changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from contextshift.messages import HISTORY_SOURCES, Role, Source, is_user_turn, meta_number, source_of
from contextshift.reasons import Reason
from contextshift.strategies.base import Departure, Proposal, Situation

__all__ = ["Truncate", "departure_order"]

_INSTRUCTIONS = (Role.SYSTEM, Role.DEVELOPER)
USER_FIRST = "user_first"
"""Rule of targets that want history to start with a user message."""


class Truncate:
    """Removes whole groups in the fixed order of leaving; see the module."""

    id = "truncate"
    acts_when_fitting = False

    def propose(self, situation: Situation) -> Proposal:
        """Remove from the front of the order until the rest fits, then align the first turn if the target asks."""
        gone: dict[int, Reason] = {}
        over = situation.total - situation.allowance
        if over > 0:
            over -= _remove(situation, gone, _orphans(situation), Reason.ORPHAN_TOOL_RESULT)
        extras, history = departure_order(situation)
        over -= _remove_until(situation, gone, extras, over)
        _remove_until(situation, gone, history, _in_steps(situation, over))
        if USER_FIRST in situation.rules and gone:
            _align_first_turn(situation, gone)
        return Proposal([Departure(index, reason) for index, reason in gone.items()])


def _in_steps(situation: Situation, over: int) -> int:
    """Round what history must give up to the next multiple of headroom x budget.

    Anchored at the start of the history, the cut point of a growing conversation then stays where it is
    for many turns, and with it the prefix that the provider's prompt cache holds.
    """
    step = situation.headroom * situation.budget.limit
    if over <= 0 or step <= 0:
        return over
    return math.ceil(math.ceil(over / step) * step)


def departure_order(situation: Situation) -> tuple[Iterator[int], Iterator[int]]:
    """Return the removable groups but for orphans, least important first: the extras, then the history.

    Each group is named by its first member.
    """
    examples: list[int] = []
    memories: list[int] = []
    lore: list[int] = []
    history: list[int] = []
    shelf = {Source.EXAMPLE.value: examples, Source.MEMORY.value: memories, Source.LORE.value: lore}
    for index, message in enumerate(situation.messages):
        source = source_of(message) if "meta" in message else None
        shelf.get(source or "", history).append(index)
    for ranked in (memories, lore):
        ranked.sort(key=lambda index: meta_number(situation.messages[index], "priority"))
    return situation.removable_groups([*examples, *memories, *lore]), situation.removable_groups(history)


def _orphans(situation: Situation) -> list[int]:
    return [index for index in situation.groups.orphans if index not in situation.protected]


def _remove(situation: Situation, gone: dict[int, Reason], firsts: Sequence[int], reason: Reason) -> int:
    freed = 0
    for first in firsts:
        for member in situation.groups.group(first):
            gone[member] = reason
            freed += situation.tokens[member]
    return freed


def _remove_until(situation: Situation, gone: dict[int, Reason], firsts: Iterator[int], needed: int) -> int:
    """Remove groups in order until ``needed`` tokens are free; return how many became free."""
    freed = 0
    while freed < needed and (first := next(firsts, None)) is not None:
        if first not in gone:
            freed += _remove(situation, gone, [first], Reason.CONTEXT_SHIFT)
    return freed


def _align_first_turn(situation: Situation, gone: dict[int, Reason]) -> None:
    """Remove what stands before the first user message that stayed; a protected block ends the search."""
    for index, message in enumerate(situation.messages):
        if index in gone or message.get("role") in _INSTRUCTIONS or source_of(message) not in HISTORY_SOURCES:
            continue
        if is_user_turn(message) or index in situation.protected:
            return
        _remove(situation, gone, [situation.groups.of[index]], Reason.TURN_ALIGNMENT)
