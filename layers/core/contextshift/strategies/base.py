"""What a strategy is: it sees the conversation and *proposes*; the host checks, recounts and decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from contextshift.budget import Budget
from contextshift.groups import Groups
from contextshift.messages import Message
from contextshift.reasons import Reason
from contextshift.tokens import TokenizerProfile

__all__ = ["Departure", "Proposal", "Situation", "Strategy"]


@dataclass(frozen=True, slots=True)
class Departure:
    """One block that should leave, and why."""

    index: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a strategy would do: which blocks leave, in this order, and what becomes shorter."""

    departures: Sequence[Departure] = ()
    replacements: Mapping[int, str] = field(default_factory=dict)
    """New plain text of unprotected blocks, by index."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a strategy may look at. All lists are by message index; tokens are whole messages."""

    messages: Sequence[Message]
    tokens: Sequence[int]
    groups: Groups
    protected: Mapping[int, Reason]
    allowance: int
    """Tokens the messages may use together."""
    budget: Budget
    """The budget the allowance comes from: limit, reserve and fixed costs."""
    profile: TokenizerProfile
    headroom: float = 0.0
    rules: frozenset[str] = frozenset()

    @property
    def total(self) -> int:
        """Tokens of all messages."""
        return sum(self.tokens)

    def group_tokens(self, index: int) -> int:
        """Tokens of the whole group of a message."""
        return sum(self.tokens[member] for member in self.groups.group(index))

    def removable_groups(self, indices: Iterable[int]) -> Iterator[int]:
        """Yield the unprotected groups among ``indices``, each once, named by their first member, in this order."""
        seen: set[int] = set()
        for index in indices:
            first = self.groups.of[index]
            if first not in seen and first not in self.protected:
                seen.add(first)
                yield first


class Strategy(Protocol):
    """Proposes what leaves. Pure and deterministic: the same situation, the same proposal."""

    @property
    def id(self) -> str:
        """The name in settings, headers and audits, as ``truncate``."""

    @property
    def acts_when_fitting(self) -> bool:
        """Whether it must be asked even when everything fits (only ``manual``, of the built-in ones)."""

    def propose(self, situation: Situation) -> Proposal:
        """Return what should leave so that the rest fits ``situation.allowance``."""
