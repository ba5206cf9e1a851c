"""`shift_context`: what a conversation becomes under a budget, and why.

The host of strategies. It decides once what is protected and what belongs together, counts every block
once, asks a strategy for a proposal, refuses one that breaks a promise, and finishes by truncation what
does not fit yet. Whatever a strategy says, the result fits by the host's own count or the error is
raised. Laws (each a property test): the result fits or raises; protected blocks stay, the very objects;
no group is split; order is kept; every block is accounted for exactly once; shifting again changes
nothing; what fits comes back as it came; a larger budget never keeps fewer tokens; each block is
tokenised once; the work is linear in the number of blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from contextshift.arguments import check_headroom, check_strategy, checked_pins, checked_rules
from contextshift.budget import Budget, as_budget
from contextshift.errors import TokenBudgetExceeded
from contextshift.groups import Groups, carried_groups, gaps_outside, group_messages
from contextshift.guard import Guard
from contextshift.hosting import acts_when_fitting, name_of, propose
from contextshift.messages import HISTORY_SOURCES, Message, Source, check_messages, source_of
from contextshift.protection import protect
from contextshift.reasons import Reason
from contextshift.registry import ContextStrategyRegistry
from contextshift.strategies import (
    USER_FIRST,
    Proposal,
    Situation,
    Strategy,
    Truncate,
    lost_breakpoints,
    unaligned,
    with_text,
)
from contextshift.tokens import CountTokens, TokenizerProfile, count_one, counter_fault

__all__ = [
    "Excluded",
    "ShiftResult",
    "Truncated",
    "breakdown",
    "count_messages",
    "grouping_diagnostics",
    "shift_context",
    "shift_situation",
    "situate",
    "subset",
]

_REGISTRY = ContextStrategyRegistry()
_TRUNCATE = Truncate()


@dataclass(slots=True)
class Excluded:
    """A block that left."""

    message: Message
    reason: Reason
    tokens: int
    group: int
    """Index of the first member of its group."""
    index: int
    """Where it stood in the input."""


@dataclass(slots=True)
class Truncated:
    """A block with another text; ``message`` stands in `ShiftResult.kept`."""

    message: Message
    original: Message
    tokens_before: int
    tokens_after: int
    index: int


@dataclass(frozen=True, slots=True)
class ShiftResult:
    """What became of a conversation."""

    kept: list[Message]
    """What fits, in the original order; the caller's own objects but for shortened ones and a summary."""
    excluded: list[Excluded]
    """What left, in the order of leaving."""
    truncated: list[Truncated]
    """What became shorter."""
    tokens: int
    """The whole prompt that remains: kept messages and fixed costs."""
    strategy: str
    diagnostics: list[Mapping[str, Any]] = field(default_factory=list)
    origins: list[int | None] = field(default_factory=list)
    """Where each kept message stood in the input; None for one that was made on the way."""
    summary: Message | None = None
    """The summary among ``kept``, where there is one."""
    edited: list[Truncated] = field(default_factory=list)
    """What says something else, because an interceptor made it so; such a block is not among ``truncated``."""


def shift_context(
    messages: Sequence[Message],
    count_tokens: CountTokens,
    budget: int | Budget,
    *,
    strategy: str | Strategy = "truncate",
    headroom: float = 0.0,
    rules: Iterable[str] = (),
    pinned: Iterable[int] = (),
    registry: ContextStrategyRegistry = _REGISTRY,
) -> ShiftResult:
    """Fit a conversation to a token budget by removing or shortening its least important blocks.

    ``messages`` are plain mappings and are never changed. ``count_tokens`` prices one whole message, once.
    ``budget`` is a number of tokens or a `Budget`. ``pinned`` protects by index what the messages do not
    pin themselves. Raises TokenBudgetExceeded when protected blocks and fixed costs alone do not fit,
    InvalidInput with the ``path`` of what cannot be read, CounterFault when the counter fails.

    >>> talk = [{"role": "user", "content": "one two three"}, {"role": "user", "content": "four"}]
    >>> result = shift_context(talk, lambda message: len(message["content"].split()), 2)
    >>> [message["content"] for message in result.kept], result.excluded[0].reason.value
    (['four'], 'context-shift')
    """
    check_messages(messages)
    chosen = registry.get(strategy) if isinstance(strategy, str) else strategy
    check_strategy(chosen)
    situation = situate(
        messages,
        count_messages(messages, count_tokens),
        as_budget(budget),
        count_tokens,
        headroom=headroom,
        rules=checked_rules(rules),
        pinned=pinned,
    )
    return shift_situation(situation, chosen, registry.guard, strategy if isinstance(strategy, str) else None)


def count_messages(messages: Sequence[Message], count_tokens: CountTokens) -> list[int]:
    """Count every message once. Raises CounterFault, with the index, unless each count is an int of 0 or more."""
    counts: list[int] = []
    for index, message in enumerate(messages):
        try:
            tokens = count_tokens(message)
        except Exception as error:
            raise counter_fault(error, index) from error
        if type(tokens) is not int or tokens < 0:
            raise counter_fault(None, index)
        counts.append(tokens)
    return counts


def situate(
    messages: Sequence[Message],
    tokens: Sequence[int],
    budget: Budget,
    count_tokens: CountTokens,
    *,
    headroom: float = 0.0,
    rules: Iterable[str] = (),
    pinned: Iterable[int] = (),
) -> Situation:
    """Decide groups and protection, once: everything after this only looks them up."""
    check_headroom(headroom)
    groups = group_messages(messages)
    protection = protect(messages, groups)
    for index in checked_pins(pinned, len(messages)):
        for member in groups.group(index):
            protection.reasons.setdefault(member, Reason.PINNED if member == index else Reason.GROUP)
    profile = getattr(count_tokens, "profile", None) or TokenizerProfile("custom")
    return Situation(
        messages,
        tokens,
        groups,
        protection.reasons,
        protection.current,
        sum(tokens),
        budget.allowance(profile),
        budget,
        profile,
        count_tokens,
        headroom,
        frozenset(rules),
    )


def shift_situation(
    situation: Situation, strategy: Strategy, guard: Guard, registered: str | None = None
) -> ShiftResult:
    """`shift_context` for messages that are already checked, counted and judged.

    The result names the strategy as it is ``registered``, or as it calls itself.
    """
    name = registered or name_of(strategy)
    found = grouping_diagnostics(situation.groups)
    if situation.over <= 0 and not acts_when_fitting(strategy, guard):
        return _as_it_came(situation, name, found)
    if sum(situation.tokens[index] for index in situation.protected) > situation.allowance:
        raise TokenBudgetExceeded(breakdown(situation, situation.protected))
    proposal = propose(strategy, name, situation, guard, found)
    draft = _Draft(situation, proposal)
    draft.finish(found)
    return draft.result(name, found)


def breakdown(situation: Situation, counted: Iterable[int]) -> dict[str, int]:
    """Say what takes the room, over the messages ``counted`` by index; see `TokenBudgetExceeded`."""
    budget = situation.budget
    shares = {"system": 0, "tools": budget.fixed, "history": 0, "current_turn": 0}
    for index in counted:
        shares[_share(situation, index)] += situation.tokens[index]
    prompt = sum(shares.values())
    over = prompt + situation.profile.margin_tokens(prompt) + budget.slack - budget.limit
    return {**shares, "reserve": budget.reserve, "over_by": over}


def grouping_diagnostics(groups: Groups) -> list[Mapping[str, Any]]:
    """Report calls that nobody answered and results that nobody asked for; both pass through."""
    found: list[Mapping[str, Any]] = []
    if groups.unanswered:
        found.append({"code": "unanswered-call", "indices": list(groups.unanswered)})
    if groups.orphans:
        found.append({"code": "orphan-tool-result", "indices": list(groups.orphans)})
    return found


def subset(situation: Situation, rest: Sequence[int], messages: Sequence[Message], tokens: Sequence[int]) -> Situation:
    """Return the situation of the messages ``rest`` alone; protection and groups are carried along."""
    place = {index: position for position, index in enumerate(rest)}
    protected = {place[index]: reason for index, reason in situation.protected.items() if index in place}
    return replace(
        situation,
        messages=messages,
        tokens=tokens,
        groups=carried_groups(situation.groups, rest),
        protected=protected,
        current=None if situation.current is None else place.get(situation.current),
        total=sum(tokens),
    )


def _share(situation: Situation, index: int) -> str:
    reason = situation.protected.get(index)
    if reason is Reason.CURRENT_TURN:
        return "current_turn"
    message = situation.messages[index]
    if reason is Reason.SYSTEM or source_of(message) not in HISTORY_SOURCES:
        return "system"
    return "history"


def _as_it_came(situation: Situation, strategy: str, found: list[Mapping[str, Any]]) -> ShiftResult:
    used = situation.total + situation.budget.fixed
    origins: list[int | None] = list(range(len(situation.messages)))
    return ShiftResult(list(situation.messages), [], [], used, strategy, found, origins)


class _Draft:
    """A proposal carried out on paper: what is gone, what is shorter, and what that makes together."""

    def __init__(self, situation: Situation, proposal: Proposal) -> None:
        self._situation = situation
        self._gone = dict(proposal.departures)
        self._shorter: dict[int, tuple[Message, int]] = {}
        self._summary: tuple[Message, int] | None = None
        self._total = situation.total - sum(map(situation.tokens.__getitem__, self._gone))
        for index, text in proposal.replacements.items():
            self._shorten(index, text)
        if proposal.summary is not None:
            self._add_summary(proposal.summary)

    def finish(self, found: list[Mapping[str, Any]]) -> None:
        """Make it fit, whatever was proposed: without a summary that is too large, then by truncation.

        Then the history's first turn is the one the target wants, whoever made the cut.
        """
        situation = self._situation
        if self._total > situation.allowance and self._summary is not None:
            found.append({"code": "summary-dropped"})
            self._total -= self._summary[1]
            self._summary = None
        if self._total > situation.allowance:
            self._truncate(found)
        if self._gone and USER_FIRST in situation.rules:
            for index in unaligned(situation, self._gone):
                self._leave(index, Reason.TURN_ALIGNMENT)
        shorter = {index: message for index, (message, _) in self._shorter.items()}
        found += lost_breakpoints(situation.messages, self._gone, shorter)

    def _truncate(self, found: list[Mapping[str, Any]]) -> None:
        situation = self._situation
        rest = [index for index in range(len(situation.messages)) if index not in self._gone]
        messages = [self._message(index) for index in rest]
        finish = _TRUNCATE.propose(subset(situation, rest, messages, [self._tokens(index) for index in rest]))
        for position, reason in finish.departures.items():
            self._leave(rest[position], reason)

    def _leave(self, index: int, reason: Reason) -> None:
        self._total -= self._tokens(index)
        self._gone[index] = reason
        self._shorter.pop(index, None)

    def result(self, strategy: str, found: list[Mapping[str, Any]]) -> ShiftResult:
        """Return what became of the conversation."""
        situation, gone = self._situation, self._gone
        messages, tokens, of = situation.messages, situation.tokens, situation.groups.of
        origins: list[int | None] = [index for index in range(len(messages)) if index not in gone]
        kept = [messages[index] for index in origins if index is not None]
        if self._shorter:
            kept = [self._message(index) for index in origins if index is not None]
        if self._summary is not None:
            place = gaps_outside(carried_groups(situation.groups, origins))[origins.index(situation.current)]
            kept.insert(place, self._summary[0])
            origins.insert(place, None)
        return ShiftResult(
            kept,
            [Excluded(messages[i], reason, tokens[i], of[i], i) for i, reason in gone.items()],
            [Truncated(new, messages[i], tokens[i], after, i) for i, (new, after) in sorted(self._shorter.items())],
            self._total + situation.budget.fixed,
            strategy,
            found,
            origins,
            None if self._summary is None else self._summary[0],
        )

    def _message(self, index: int) -> Message:
        return self._shorter[index][0] if index in self._shorter else self._situation.messages[index]

    def _tokens(self, index: int) -> int:
        return self._shorter[index][1] if index in self._shorter else self._situation.tokens[index]

    def _shorten(self, index: int, text: str) -> None:
        """Take a replacement that really is shorter by the host's own count."""
        message = with_text(self._situation.messages[index], text)
        before, after = self._situation.tokens[index], count_one(self._situation.count, message, index)
        if after < before:
            self._shorter[index] = (message, after)
            self._total -= before - after

    def _add_summary(self, text: str) -> None:
        """Take a summary that is smaller than what left."""
        message = {"role": "user", "content": text, "meta": {"source": str(Source.SUMMARY)}}
        tokens = count_one(self._situation.count, message)
        if tokens < sum(self._situation.tokens[index] for index in self._gone):
            self._summary = (message, tokens)
            self._total += tokens
