"""``truncate``: the least important groups leave until the rest fits."""

from __future__ import annotations

from contextshift.strategies.base import Proposal, Situation
from contextshift.strategies.leaving import Leaving, breakpoints_last, extras_by_priority, shelve

__all__ = ["Truncate"]


class Truncate:
    """Removes whole groups in the order of leaving; see `contextshift.strategies.leaving`.

    ::

        before  S  U1 A1  U2 A2  U3        after  S  U2 A2  U3
                   ^^^^^ oldest leave
    """

    id = "truncate"
    acts_when_fitting = False

    def propose(self, situation: Situation) -> Proposal:
        """Remove from the front of the order until the rest fits; the host then aligns the first turn."""
        leaving = Leaving(situation)
        shelves = shelve(situation)
        leaving.orphans()
        leaving.until_it_fits(extras_by_priority(situation, shelves))
        leaving.in_steps()
        leaving.until_it_fits(breakpoints_last(situation, shelves.history))
        return Proposal(leaving.gone)
