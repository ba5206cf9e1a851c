"""Interceptors: other people's last look at a prompt, after the shift and before it is sent.

They run in order of priority, each on copies and within its time. The host then puts right what they may
not do: protected blocks come back, as they were and where they stood; order is kept; a group leaves whole or
not at all; only texts may change. What they add is never pinned, makes no call and brings no result, stands inside no
group, and stands before the current user input, so that it can never pass for it; where no user speaks, nothing is
added in a user's name. A mandatory recount and a final ``truncate`` follow, in which additions are
the first to leave. Every change stands in the diagnostics: the journal.

Each block of the conversation is then exactly one of: as given, shortened, edited (`ShiftResult.edited`: the text is
an interceptor's, whether or not it was shortened before), excluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from contextshift.groups import carried_groups
from contextshift.guard import INTERCEPTOR_SECONDS, Guard, PluginFault, plain
from contextshift.reasons import Reason
from contextshift.reconciling import Block, Held, note, read_answer, reconciled
from contextshift.shift import Excluded, ShiftResult, Truncated
from contextshift.strategies import USER_FIRST, Situation, Truncate, lost_breakpoints, unaligned
from contextshift.tokens import count_one

__all__ = ["Block", "Interceptor", "intercept"]

_TRUNCATE = Truncate()


class Interceptor(Protocol):
    """Looks at the whole prompt and returns what it should be."""

    @property
    def id(self) -> str:
        """The name in the journal."""

    @property
    def priority(self) -> int:
        """Lower runs first; equals by id."""

    def intercept(self, blocks: list[Block]) -> Iterable[Block]:
        """Return the blocks to send, in order."""


def intercept(
    situation: Situation, result: ShiftResult, interceptors: Sequence[Interceptor], guard: Guard
) -> ShiftResult:
    """Let interceptors change a shifted prompt, put right what they may not do, and make it fit again.

    ``situation`` is the one that was shifted to ``result``. No interceptor can raise from here.
    """
    held = _held(situation, result)
    journal: list[Mapping[str, Any]] = []
    for _, name, interceptor in sorted((_rank(one, guard) for one in interceptors), key=lambda ranked: ranked[:2]):
        try:
            answer = guard.run(interceptor, partial(read_answer, interceptor, held), INTERCEPTOR_SECONDS)
        except PluginFault as fault:
            journal.append(note(name, "failed", fault=fault.fault, error=fault.detail))
        else:
            held = reconciled(situation, name, held, journal, answer)
    if not journal:
        return result
    return _final(situation, result, held, journal)


def _held(situation: Situation, result: ShiftResult) -> list[Held]:
    shorter = {item.index: item.tokens_after for item in result.truncated}
    held: list[Held] = []
    for message, origin in zip(result.kept, result.origins, strict=True):
        if origin is None:
            tokens = count_one(situation.count, message)
            held.append(Held(message, tokens, None, None, summary=message is result.summary))
        else:
            tokens = shorter.get(origin, situation.tokens[origin])
            held.append(Held(message, tokens, origin, situation.protected.get(origin)))
    return held


def _rank(interceptor: Interceptor, guard: Guard) -> tuple[float, str, Interceptor]:
    """Return when an interceptor's turn is; one that cannot say comes last."""
    try:
        priority, name = guard.run(interceptor, lambda: (float(interceptor.priority), plain(interceptor.id)), 1.0)
    except PluginFault:
        return float("inf"), type(interceptor).__name__, interceptor
    return priority, str(name), interceptor


def _final(
    situation: Situation, result: ShiftResult, held: Sequence[Held], journal: list[Mapping[str, Any]]
) -> ShiftResult:
    """Recount, and truncate what does not fit any more; protection is the one decided at first."""
    gone = _leaving(situation, held)
    rest = [one for place, one in enumerate(held) if place not in gone]
    journal += [
        {"code": "final-truncation", "interceptor": held[place].added_by, "tokens": held[place].tokens}
        for place in gone
        if held[place].origin is None
    ]
    kept = {one.origin for one in rest}
    edited = _edited(situation, rest)
    later = _excluded_later(situation, result, kept, held, gone)
    changed = {one.origin for one in rest if one.edited}
    journal += _lost_later(situation, result, later, edited)
    return replace(
        result,
        kept=[one.message for one in rest],
        origins=[one.origin for one in rest],
        excluded=[*result.excluded, *later],
        truncated=[item for item in result.truncated if item.index in kept and item.index not in changed],
        edited=edited,
        tokens=sum(one.tokens for one in rest) + situation.budget.fixed,
        summary=next((one.message for one in rest if one.summary), None),
        diagnostics=[*result.diagnostics, *journal],
    )


def _leaving(situation: Situation, held: Sequence[Held]) -> dict[int, Reason]:
    """Return what of the blocks held must still leave, by place: for room, then for the target's first turn."""
    after = replace(
        situation,
        messages=[one.message for one in held],
        tokens=[one.tokens for one in held],
        groups=carried_groups(situation.groups, [one.origin for one in held]),
        protected={place: one.protected for place, one in enumerate(held) if one.protected is not None},
        current=None,
        total=sum(one.tokens for one in held),
    )
    gone = dict(_TRUNCATE.propose(after).departures) if after.over > 0 else {}
    if USER_FIRST in situation.rules and (gone or _missing(situation, held)):
        gone |= dict.fromkeys(unaligned(after, gone), Reason.TURN_ALIGNMENT)
    return gone


def _missing(situation: Situation, held: Sequence[Held]) -> bool:
    """Whether some block of the conversation has left already."""
    return sum(one.origin is not None for one in held) < len(situation.messages)


def _edited(situation: Situation, rest: Sequence[Held]) -> list[Truncated]:
    """Return the blocks that say what an interceptor made them say; one that says what it came with is as given."""
    messages, tokens = situation.messages, situation.tokens
    return [
        Truncated(one.message, messages[one.origin], tokens[one.origin], one.tokens, one.origin)
        for one in rest
        if one.edited and one.origin is not None and one.message is not messages[one.origin]
    ]


def _lost_later(
    situation: Situation, result: ShiftResult, later: Sequence[Excluded], edited: Sequence[Truncated]
) -> list[Mapping[str, Any]]:
    """Report the cache breakpoints that were lost after the shift."""
    shorter = {item.index: item.message for item in result.truncated}
    before = {index: shorter.get(index, message) for index, message in enumerate(situation.messages)}
    return lost_breakpoints(before, [item.index for item in later], {item.index: item.message for item in edited})


def _excluded_later(
    situation: Situation,
    result: ShiftResult,
    kept: set[int | None],
    held: Sequence[Held],
    gone: Mapping[int, Reason],
) -> list[Excluded]:
    """Return the blocks that left after the shift: taken out by an interceptor, or by the final truncation."""
    final = {held[place].origin: reason for place, reason in gone.items()}
    left = [index for index in result.origins if index is not None and index not in kept]
    return [
        Excluded(
            situation.messages[index],
            final.get(index, Reason.INTERCEPTOR),
            situation.tokens[index],
            situation.groups.of[index],
            index,
        )
        for index in left
    ]
