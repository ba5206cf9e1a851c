"""``middle-out``: the beginning of a conversation often says what it is about; its middle leaves first."""

from __future__ import annotations

from contextshift.strategies.base import Proposal, Situation
from contextshift.strategies.leaving import Leaving, extras_by_priority, shelve

__all__ = ["MiddleOut"]


class MiddleOut:
    """Keeps the oldest history up to a quarter of the budget; what follows it leaves, oldest first.

    ::

        before  S  U1 A1  U2 A2  U3 A3  U4        after  S  U1 A1  U3 A3  U4
                          ^^^^^ the middle leaves
    """

    id = "middle-out"
    acts_when_fitting = False

    def propose(self, situation: Situation) -> Proposal:
        """Remove extras, then the middle, then, where that is not enough, the beginning."""
        leaving = Leaving(situation)
        shelves = shelve(situation)
        beginning, middle = _parted(situation, list(situation.removable_groups(shelves.history)))
        leaving.orphans()
        leaving.until_it_fits(extras_by_priority(situation, shelves))
        leaving.in_steps()
        leaving.until_it_fits(middle)
        leaving.until_it_fits(beginning)
        leaving.align_first_turn()
        return Proposal(leaving.gone, diagnostics=leaving.diagnostics())


def _parted(situation: Situation, groups: list[int]) -> tuple[list[int], list[int]]:
    """Part history into the oldest groups that fill at most a quarter of the budget, and the rest."""
    quarter = situation.budget.limit // 4
    filled = 0
    for position, first in enumerate(groups):
        filled += sum(situation.tokens[member] for member in situation.groups.group(first))
        if filled > quarter:
            return groups[:position], groups[position:]
    return groups, []
