"""``clear-tool-results``: what a tool said long ago is rarely needed again, that it was called may be."""

from __future__ import annotations

from collections.abc import Iterator

from contextshift.strategies.base import Proposal, Situation, with_text
from contextshift.strategies.leaving import Leaving
from contextshift.tokens import count_one

__all__ = ["PLACEHOLDER", "ClearToolResults"]

PLACEHOLDER = "[cleared]"
"""What stands in the place of a cleared result; short, and never an instruction to the model."""


class ClearToolResults:
    """Replaces the contents of old tool results by a placeholder, oldest first; calls stay. Then as truncate.

    ::

        before  S  U1  A[a] T(a)"…10,000 rows…"  A  U2        after  S  U1  A[a] T(a)"[cleared]"  A  U2
    """

    id = "clear-tool-results"
    acts_when_fitting = False

    def propose(self, situation: Situation) -> Proposal:
        """Clear until the rest fits; the host truncates what is still over."""
        needed = Leaving(situation)
        needed.in_steps()
        cleared: dict[int, str] = {}
        for index in _results(situation):
            if needed.over <= 0:
                break
            cleared_message = with_text(situation.messages[index], PLACEHOLDER)
            saved = situation.tokens[index] - count_one(situation.count, cleared_message, index)
            if saved > 0:
                cleared[index] = PLACEHOLDER
                needed.over -= saved
        return Proposal(replacements=cleared)


def _results(situation: Situation) -> Iterator[int]:
    """Yield the unprotected results that belong to a call, oldest first."""
    for first in sorted(situation.groups.members):
        if first not in situation.protected:
            for member in situation.groups.members[first]:
                if situation.messages[member].get("role") != "assistant":
                    yield member
