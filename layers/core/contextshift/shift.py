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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from contextshift.budget import Budget, as_budget
from contextshift.errors import ContextShiftError, CounterFault, InvalidInput, TokenBudgetExceeded
from contextshift.groups import Groups, group_messages
from contextshift.messages import HISTORY_SOURCES, Message, check_messages, source_of
from contextshift.protection import protect
from contextshift.reasons import Reason
from contextshift.registry import ContextStrategyRegistry
from contextshift.strategies import Departure, Proposal, Situation, Strategy
from contextshift.tokens import CountTokens, TokenizerProfile

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
]

_TRUNCATE = "truncate"
_REGISTRY = ContextStrategyRegistry()


@dataclass(frozen=True, slots=True)
class Excluded:
    """A block that left."""

    message: Message
    reason: Reason
    tokens: int
    group: int
    """Index of the first member of its group."""
    index: int
    """Where it stood in the input."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """A block that became shorter; ``message`` stands in `ShiftResult.kept`."""

    message: Message
    original: Message
    tokens_before: int
    tokens_after: int
    index: int


@dataclass(frozen=True, slots=True)
class ShiftResult:
    """What became of a conversation."""

    kept: list[Message]
    """What fits, in the original order; the caller's own objects but for shortened ones."""
    excluded: list[Excluded]
    """What left, in the order of leaving."""
    truncated: list[Truncated]
    tokens: int
    """The whole prompt that remains: kept messages and fixed costs."""
    strategy: str
    diagnostics: list[Mapping[str, Any]] = field(default_factory=list)


def shift_context(
    messages: Sequence[Message],
    count_tokens: CountTokens,
    budget: int | Budget,
    *,
    strategy: str | Strategy = _TRUNCATE,
    headroom: float = 0.0,
    rules: Iterable[str] = (),
    pinned: Iterable[int] = (),
    registry: ContextStrategyRegistry = _REGISTRY,
) -> ShiftResult:
    """Fit a conversation to a token budget by removing or shortening its least important blocks.

    ``messages`` are plain mappings and are never changed. ``count_tokens`` prices one whole message, once.
    ``budget`` is a number of tokens or a `Budget`. ``pinned`` protects by index what the messages do not
    pin themselves. Raises TokenBudgetExceeded when protected blocks and fixed costs alone do not fit,
    InvalidInput for what cannot be read, CounterFault when the counter fails.

    >>> talk = [{"role": "user", "content": "one two three"}, {"role": "user", "content": "four"}]
    >>> result = shift_context(talk, lambda message: len(message["content"].split()), 2)
    >>> [message["content"] for message in result.kept], result.excluded[0].reason.value
    (['four'], 'context-shift')
    """
    check_messages(messages)
    profile = getattr(count_tokens, "profile", None) or TokenizerProfile("custom")
    situation = situate(
        messages,
        count_messages(messages, count_tokens),
        as_budget(budget),
        profile,
        headroom=headroom,
        rules=rules,
        pinned=pinned,
    )
    return shift_situation(situation, registry.get(strategy) if isinstance(strategy, str) else strategy)


def count_messages(messages: Sequence[Message], count_tokens: CountTokens) -> list[int]:
    """Count every message once. Raises CounterFault, naming the index, unless each count is an int of 0 or more."""
    counts: list[int] = []
    for index, message in enumerate(messages):
        try:
            tokens = count_tokens(message)
        except ContextShiftError:
            raise
        except Exception as error:
            raise CounterFault(f"the token counter raised {type(error).__name__}", index) from error
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
            raise CounterFault("the token counter must return a whole number, not negative", index)
        counts.append(tokens)
    return counts


def situate(
    messages: Sequence[Message],
    tokens: Sequence[int],
    budget: Budget,
    profile: TokenizerProfile,
    *,
    headroom: float = 0.0,
    rules: Iterable[str] = (),
    pinned: Iterable[int] = (),
) -> Situation:
    """Decide groups and protection, once: everything after this only looks them up."""
    if not 0 <= headroom < 1:
        raise InvalidInput("headroom must be at least 0 and below 1", "headroom")
    groups = group_messages(messages)
    protected = protect(messages, groups)
    for index in pinned:
        for member in groups.group(index):
            protected.setdefault(member, Reason.PINNED if member == index else Reason.GROUP)
    allowance = budget.allowance(profile)
    return Situation(messages, tokens, groups, protected, allowance, budget, profile, headroom, frozenset(rules))


def shift_situation(situation: Situation, strategy: Strategy) -> ShiftResult:
    """`shift_context` for messages that are already checked, counted and judged."""
    diagnostics = grouping_diagnostics(situation.groups)
    messages, tokens = situation.messages, situation.tokens
    total = situation.total
    if total <= situation.allowance and not strategy.acts_when_fitting:
        return ShiftResult(list(messages), [], [], total + situation.budget.fixed, strategy.id, diagnostics)
    if sum(tokens[index] for index in situation.protected) > situation.allowance:
        raise TokenBudgetExceeded(breakdown(situation, situation.protected))
    departures = _departures(situation, strategy, diagnostics)
    gone = {departure.index for departure in departures}
    kept = [message for index, message in enumerate(messages) if index not in gone]
    excluded = [
        Excluded(messages[d.index], d.reason, tokens[d.index], situation.groups.of[d.index], d.index)
        for d in departures
    ]
    used = total - sum(item.tokens for item in excluded) + situation.budget.fixed
    return ShiftResult(kept, excluded, [], used, strategy.id, diagnostics)


def breakdown(situation: Situation, counted: Iterable[int]) -> dict[str, int]:
    """Say what takes the room, over the messages ``counted`` by index; see `TokenBudgetExceeded`."""
    budget = situation.budget
    shares = {"system": 0, "tools": budget.fixed, "history": 0, "current_turn": 0}
    for index in counted:
        shares[_share(situation, index)] += situation.tokens[index]
    prompt = sum(shares.values())
    over = prompt + situation.profile.margin_tokens(prompt) - budget.limit
    return {**shares, "reserve": budget.reserve, "over_by": over}


def _share(situation: Situation, index: int) -> str:
    reason = situation.protected.get(index)
    if reason is Reason.CURRENT_TURN:
        return "current_turn"
    message = situation.messages[index]
    if reason is Reason.SYSTEM or source_of(message) not in HISTORY_SOURCES:
        return "system"
    return "history"


def _departures(situation: Situation, strategy: Strategy, diagnostics: list[Mapping[str, Any]]) -> Sequence[Departure]:
    """Return what leaves: the strategy's proposal if it keeps every promise, finished by truncation."""
    proposal = strategy.propose(situation)
    broken = _broken_promise(situation, proposal)
    if broken is not None:
        diagnostics.append({"code": "proposal-refused", "strategy": strategy.id, "promise": broken})
        proposal = Proposal()
    gone = {departure.index: departure for departure in proposal.departures}
    rest = [index for index in range(len(situation.messages)) if index not in gone]
    if sum(situation.tokens[index] for index in rest) <= situation.allowance:
        return list(gone.values())
    finish = _REGISTRY.get(_TRUNCATE).propose(_without(situation, rest))
    return [*gone.values(), *(Departure(rest[d.index], d.reason) for d in finish.departures)]


def _without(situation: Situation, rest: Sequence[int]) -> Situation:
    """Return the situation of the messages ``rest`` alone; protection is carried along, not decided anew."""
    place = {index: position for position, index in enumerate(rest)}
    messages = [situation.messages[index] for index in rest]
    return replace(
        situation,
        messages=messages,
        tokens=[situation.tokens[index] for index in rest],
        groups=group_messages(messages),
        protected={place[index]: reason for index, reason in situation.protected.items()},
    )


def _broken_promise(situation: Situation, proposal: Proposal) -> str | None:
    """Return the promise that a proposal breaks, None if it keeps them all."""
    leaving = [departure.index for departure in proposal.departures]
    checks: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("identity", lambda: not all(0 <= index < len(situation.messages) for index in leaving)),
        ("identity", lambda: len(set(leaving)) != len(leaving)),
        ("protection", lambda: any(index in situation.protected for index in leaving)),
        ("groups", lambda: _splits_a_group(situation, set(leaving))),
    )
    return next((name for name, broken in checks if broken()), None)


def _splits_a_group(situation: Situation, leaving: set[int]) -> bool:
    return any(
        0 < sum(member in leaving for member in members) < len(members) for members in situation.groups.members.values()
    )


def grouping_diagnostics(groups: Groups) -> list[Mapping[str, Any]]:
    """Report calls that nobody answered and results that nobody asked for; both pass through."""
    found: list[Mapping[str, Any]] = []
    if groups.unanswered:
        found.append({"code": "unanswered-call", "indices": list(groups.unanswered)})
    if groups.orphans:
        found.append({"code": "orphan-tool-result", "indices": list(groups.orphans)})
    return found
