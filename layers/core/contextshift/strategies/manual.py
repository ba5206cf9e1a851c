"""``manual``: what its owner marked leaves first, even when all would fit; then as ``truncate``."""

from __future__ import annotations

from contextshift.messages import is_manually_excluded
from contextshift.reasons import Reason
from contextshift.strategies.base import Proposal, Situation

__all__ = ["Manual"]


class Manual:
    """Removes the groups that hold a marked block, except protected ones; the host truncates what remains.

    ::

        before  S  U1 A1(excluded)  U2        after  S  U1  U2
    """

    id = "manual"
    acts_when_fitting = True

    def propose(self, situation: Situation) -> Proposal:
        """Remove every marked group whole."""
        marked = [index for index, message in enumerate(situation.messages) if is_manually_excluded(message)]
        return Proposal(
            {
                member: Reason.MANUAL
                for first in situation.removable_groups(marked)
                for member in situation.groups.group(first)
            }
        )
