"""The order of leaving, and how far to go: what the strategies share.

Orphans; what interceptors added; examples; memories, then optional lore, lowest priority first; then history,
oldest group first. The order does not depend on the budget, and what leaves is always a beginning of it: so a
larger budget never keeps fewer tokens, and shifting again changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import contains
from typing import Any, NamedTuple

from contextshift.messages import (
    HISTORY_SOURCES,
    LIST,
    Message,
    Role,
    Source,
    content_parts,
    is_user_turn,
    meta_number,
    source_of,
)
from contextshift.reasons import Reason
from contextshift.strategies.base import Situation

__all__ = [
    "USER_FIRST",
    "Leaving",
    "Shelves",
    "breakpoints_last",
    "by_priority",
    "extras_by_priority",
    "lost_breakpoints",
    "shelve",
    "unaligned",
]

USER_FIRST = "user_first"
"""Rule of targets that want history to start with a user message."""
_INSTRUCTIONS = (Role.SYSTEM, Role.DEVELOPER)
_EXTRAS = (Source.INTERCEPTOR, Source.EXAMPLE, Source.MEMORY, Source.LORE)
"""In the order of `Shelves`."""
_BREAKPOINT = "cache_control"


class Leaving:
    """What leaves, group by group, and how many tokens that frees."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self.tokens = situation.tokens
        """By index; a strategy that shortens first puts the shorter counts here."""
        self.gone: dict[int, Reason] = {}
        """By index, in the order of leaving."""
        self.over = situation.over
        """Tokens that must still become free."""

    def orphans(self) -> None:
        """Let all results without a call go, when anything must."""
        if self.over > 0:
            for index in self._situation.groups.orphans:
                if index not in self._situation.protected:
                    self._leave(index, Reason.ORPHAN_TOOL_RESULT)

    def until_it_fits(self, indices: Iterable[int]) -> None:
        """Let groups go in this order until the rest fits, whole groups at a time."""
        situation, gone = self._situation, self.gone
        of, protected = situation.groups.of, situation.protected
        members, tokens = situation.groups.members, self.tokens
        over = self.over
        for index in indices:
            if over <= 0:
                break
            first = of[index]
            if index in gone or first in protected:
                continue
            if first in members:
                for member in members[first]:
                    gone[member] = Reason.CONTEXT_SHIFT
                    over -= tokens[member]
            else:
                gone[index] = Reason.CONTEXT_SHIFT
                over -= tokens[index]
        self.over = over

    def in_steps(self) -> None:
        """Round what must still become free up to the next multiple of headroom x budget.

        Anchored at the start of the history, the cut point of a growing conversation then stays where it is
        for many turns, and with it the prefix that the provider's prompt cache holds.
        """
        step = self._situation.headroom * self._situation.budget.limit
        if self.over > 0 and step >= 1:
            self.over = math.ceil(math.ceil(self.over / step) * step)

    def _leave(self, index: int, reason: Reason) -> None:
        for member in self._situation.groups.group(index):
            self.gone[member] = reason
            self.over -= self.tokens[member]


class Shelves(NamedTuple):
    """Indices of a conversation by what they are, each as they stand."""

    added: list[int]
    """By interceptors."""
    examples: list[int]
    memories: list[int]
    lore: list[int]
    history: Sequence[int]
    """As it stands, which is its order of leaving but for `breakpoints_last`."""


def shelve(situation: Situation) -> Shelves:
    """Sort a conversation onto shelves."""
    messages = situation.messages
    shelves = Shelves([], [], [], [], range(len(messages)))
    if any(map(contains, messages, repeat("meta"))):
        spoken: list[int] = []
        places: dict[str | None, list[int]] = dict(zip(_EXTRAS, shelves[:4], strict=True))
        for index, message in enumerate(messages):
            source = source_of(message) if "meta" in message else None
            places.get(source, spoken).append(index)
        shelves = shelves._replace(history=spoken)
    return shelves


def by_priority(situation: Situation, indices: Sequence[int]) -> list[int]:
    """Return memories or lore, lowest ``meta.priority`` first."""
    return sorted(indices, key=lambda index: meta_number(situation.messages[index], "priority"))


def extras_by_priority(situation: Situation, shelves: Shelves) -> list[int]:
    """Return all that leaves before history: additions, examples, memories, lore."""
    ranked = by_priority(situation, shelves.memories) + by_priority(situation, shelves.lore)
    return [*shelves.added, *shelves.examples, *ranked]


def breakpoints_last(situation: Situation, history: Sequence[int]) -> Sequence[int]:
    """Return history in its order of leaving: groups with a client's cache breakpoint behind those of their age step.

    An age step is headroom x budget, from where ``history`` begins: what one cut takes is whole steps. Where no cut
    goes in steps, or there is no breakpoint, this is ``history`` itself; else each group stands by its first member.
    """
    step = situation.headroom * situation.budget.limit
    if step < 1 or not any(map(_has_breakpoint, situation.messages)):
        return history
    of = situation.groups.of
    marked = {of[index] for index, message in enumerate(situation.messages) if _has_breakpoint(message)}
    age = 0
    ranked: list[tuple[int, bool, int]] = []
    for position, first in enumerate(groups := list(situation.removable_groups(history))):
        ranked.append((int(age / step), first in marked, position))
        age += sum(situation.tokens[member] for member in situation.groups.group(first))
    return [groups[position] for _, _, position in sorted(ranked)]


def unaligned(situation: Situation, gone: Iterable[int]) -> list[int]:
    """Return the history before the first user message, whole groups; a protected block ends it.

    For targets with the rule `USER_FIRST`, once something has left (``gone``). What an interceptor added goes with it,
    but for what it says as a user.
    """
    leaving = dict.fromkeys(gone)
    known = len(leaving)
    for index, message in enumerate(situation.messages):
        if index in leaving or message.get("role") in _INSTRUCTIONS:
            continue
        source, stays = source_of(message), is_user_turn(message) or index in situation.protected
        if source not in HISTORY_SOURCES and (stays or source != Source.INTERCEPTOR):
            continue
        if stays:
            break
        leaving |= dict.fromkeys(situation.groups.group(index))
    return list(leaving)[known:]


def lost_breakpoints(
    messages: Sequence[Message] | Mapping[int, Message], gone: Iterable[int], changed: Mapping[int, Message]
) -> list[Mapping[str, Any]]:
    """Report a client's cache breakpoints that are sent no more: their prefix must be written to the cache anew."""
    stripped = (index for index, message in changed.items() if not _has_breakpoint(message))
    lost = [index for index in chain(gone, stripped) if _has_breakpoint(messages[index])]
    return [{"code": "cache-breakpoint-lost", "indices": sorted(lost)}] if lost else []


def _has_breakpoint(message: Message) -> bool:
    if _BREAKPOINT in message:
        return True
    if isinstance(message.get("content"), LIST):
        return any(_BREAKPOINT in part for part in content_parts(message))
    return False
