"""``middle-out``: the beginning of a conversation often says what it is about; its middle leaves first."""

from __future__ import annotations

from contextshift.strategies.base import Proposal, Situation
from contextshift.strategies.leaving import Leaving, breakpoints_last, extras_by_priority, shelve

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
        """Remove extras, then the middle in steps, then, where all of it is not enough, no more than needed."""
        leaving = Leaving(situation)
        shelves = shelve(situation)
        beginning, middle = _parted(situation, list(situation.removable_groups(shelves.history)))
        leaving.orphans()
        leaving.until_it_fits(extras_by_priority(situation, shelves))
        needed = leaving.over
        leaving.in_steps()
        spare = leaving.over - needed
        leaving.until_it_fits(breakpoints_last(situation, middle))
        leaving.over -= spare  # of the beginning, the oldest and dearest, nothing leaves for a round number
        leaving.until_it_fits(beginning)
        return Proposal(leaving.gone)


def _parted(situation: Situation, groups: list[int]) -> tuple[list[int], list[int]]:
    """Part history into the oldest groups that fill at most a quarter of the budget, and the rest."""
    quarter = situation.budget.limit // 4
    filled = 0
    for position, first in enumerate(groups):
        filled += sum(situation.tokens[member] for member in situation.groups.group(first))
        if filled > quarter:
            return groups[:position], groups[position:]
    return groups, []
