"""What a strategy is: it sees the conversation and *proposes*; the host checks, recounts and decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from contextshift.budget import Budget
from contextshift.groups import Groups
from contextshift.messages import Message
from contextshift.reasons import Reason
from contextshift.tokens import CountTokens, TokenizerProfile

__all__ = ["Proposal", "Situation", "Strategy", "with_text"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a strategy would do: which blocks leave, what becomes shorter, what is summed up."""

    departures: Mapping[int, Reason] = field(default_factory=dict)
    """Indices of the blocks that leave, in this order, each with the reason."""
    replacements: Mapping[int, str] = field(default_factory=dict)
    """New text of unprotected blocks, by index; see `with_text`."""
    summary: str | None = None
    """Text that stands, as a user message, right before the current user input, or the group that this belongs to."""
    diagnostics: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a strategy may look at. All lists are by message index; tokens are whole messages."""

    messages: Sequence[Message]
    tokens: Sequence[int]
    groups: Groups
    protected: Mapping[int, Reason]
    current: int | None
    """The current user input; None in an empty conversation."""
    total: int
    """Tokens of all messages."""
    allowance: int
    """Tokens the messages may use together."""
    budget: Budget
    """The budget the allowance comes from: limit, reserve and fixed costs."""
    profile: TokenizerProfile
    count: CountTokens
    """Prices a message made on the way; a `TokenCounter` prices and cuts bare texts, too."""
    headroom: float = 0.0
    rules: frozenset[str] = frozenset()

    @property
    def over(self) -> int:
        """Tokens that must become free; 0 or less where all fits."""
        return self.total - self.allowance

    def removable_groups(self, indices: Iterable[int]) -> Iterable[int]:
        """Yield the unprotected groups among ``indices``, once each, named by their first member."""
        of, protected = self.groups.of, self.protected
        seen: set[int] = set()
        for index in indices:
            first = of[index]
            if first not in seen and first not in protected:
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


def with_text(message: Message, text: str) -> dict[str, Any]:
    """Return a copy of a message that says ``text``: as its content, or as the content of its tool results.

    Parts that are tool results keep their ids, and with them their place in their group.

    >>> with_text({"role": "tool", "tool_call_id": "a", "content": "long"}, "short")
    {'role': 'tool', 'tool_call_id': 'a', 'content': 'short'}
    """
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    if not any(_is_result(part) for part in parts):
        return {**message, "content": text}
    return {**message, "content": [{**part, "content": text} if _is_result(part) else part for part in parts]}


def _is_result(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "tool_result"
