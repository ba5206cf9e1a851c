"""Interceptors: other people's last look at a prompt, after the shift and before it is sent.

They run in order of priority, each on copies and within its time. The host then puts right what they may
not do: protected blocks come back, as they were and where they stood; order is kept; a group leaves whole or
not at all; only texts may change; what they add is never pinned, and stands before the current user input,
so that it can never pass for it. A mandatory recount and a final ``truncate`` follow, in which additions are
the first to leave. Every change stands in the diagnostics: the journal.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from contextshift.groups import carried_groups, group_messages
from contextshift.guard import INTERCEPTOR_SECONDS, Guard, PluginFault
from contextshift.messages import Message, Source, check_messages
from contextshift.reasons import Reason
from contextshift.shift import Excluded, ShiftResult, count_messages
from contextshift.strategies import Situation, Truncate

__all__ = ["Block", "Interceptor", "intercept"]

_TRUNCATE = Truncate()
_CLAIMS = frozenset(("pinned", "required", "source", "manualExcluded", "priority", "relevance"))
"""What an addition may not say of itself in ``meta``."""


@dataclass(slots=True)
class Block:
    """One message as an interceptor sees it: a copy, to keep, change, leave out or put beside others."""

    message: dict[str, Any]
    id: str | None = None
    """Names a block of the host's; None for one that an interceptor makes."""
    protected: bool = False
    """Whether the host will restore it; for information."""


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


@dataclass(frozen=True, slots=True)
class _Held:
    """A block in the host's hands."""

    message: Message
    tokens: int
    origin: int | None
    """Where it stood in the conversation; None for a summary or an addition."""
    protected: Reason | None
    added_by: str | None = None


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
            answer = guard.run(interceptor, partial(_asked, interceptor, held), INTERCEPTOR_SECONDS)
        except PluginFault as fault:
            journal.append(_note(name, "failed", fault=fault.fault, error=fault.detail))
        else:
            held = _Reconciled(situation, name, held, journal).with_answer(answer)
    if not journal:
        return result
    return _final(situation, result, held, journal)


def _held(situation: Situation, result: ShiftResult) -> list[_Held]:
    shorter = {item.index: item.tokens_after for item in result.truncated}
    held: list[_Held] = []
    for message, origin in zip(result.kept, result.origins, strict=True):
        if origin is None:
            held.append(_Held(message, count_messages([message], situation.count)[0], None, None))
        else:
            tokens = shorter.get(origin, situation.tokens[origin])
            held.append(_Held(message, tokens, origin, situation.protected.get(origin)))
    return held


def _rank(interceptor: Interceptor, guard: Guard) -> tuple[float, str, Interceptor]:
    """Return when an interceptor's turn is; one that cannot say comes last."""
    try:
        priority, name = guard.run(interceptor, lambda: (float(interceptor.priority), str(interceptor.id)), 1.0)
    except PluginFault:
        return float("inf"), type(interceptor).__name__, interceptor
    return priority, name, interceptor


def _asked(interceptor: Interceptor, held: Sequence[_Held]) -> list[Block]:
    """Ask, inside the time limit, and read the answer into blocks of our own; nonsense raises here."""
    blocks = [
        Block(copy.deepcopy(dict(one.message)), str(position), one.protected is not None)
        for position, one in enumerate(held)
    ]
    answer = [Block(copy.deepcopy(dict(block.message)), block.id) for block in interceptor.intercept(blocks)]
    check_messages([block.message for block in answer])
    return answer


class _Reconciled:
    """One interceptor's answer, reconciled with what the host holds."""

    def __init__(
        self, situation: Situation, name: str, held: Sequence[_Held], journal: list[Mapping[str, Any]]
    ) -> None:
        self._situation = situation
        self._name = name
        self._held = held
        self._journal = journal

    def with_answer(self, answer: Sequence[Block]) -> list[_Held]:
        """Return what the host holds after it."""
        kept: dict[int, Block] = {}
        added: dict[int, list[Block]] = {}
        anchor = last = -1
        for block in answer:
            position = self._position(block)
            if position is None or position in kept:
                added.setdefault(anchor, []).append(block)
                continue
            kept[position] = block
            if position < last:
                self._note("reordered", position)
            last = anchor = max(last, position)
        self._restore(kept)
        limit = self._before_current()
        result = [self._addition(block) for at in sorted(added) if at < 0 for block in added[at]]
        for position, one in enumerate(self._held):
            if position == limit:
                result += [self._addition(block) for at in sorted(added) if at >= limit for block in added[at]]
            if position in kept:
                result.append(self._edited(position, one, kept[position].message))
            if position < limit:
                result += [self._addition(block) for block in added.get(position, ())]
        return result

    def _position(self, block: Block) -> int | None:
        if block.id is None or not block.id.isdecimal() or int(block.id) >= len(self._held):
            return None
        return int(block.id)

    def _restore(self, kept: dict[int, Block]) -> None:
        """Bring back protected blocks, and groups of which a part was taken out."""
        groups = carried_groups(self._situation.groups, [one.origin for one in self._held])
        for position, one in enumerate(self._held):
            if position in kept:
                continue
            whole = groups.group(position)
            if one.protected is not None or any(member in kept for member in whole):
                self._note("restored", position)
                kept[position] = Block(dict(one.message), str(position))
            else:
                self._note("removed", position)

    def _before_current(self) -> int:
        """Return the position of the current user input, before which every addition stands."""
        for position, one in enumerate(self._held):
            if one.origin is not None and one.origin == self._situation.current:
                return position
        return len(self._held)

    def _edited(self, position: int, one: _Held, message: Message) -> _Held:
        """Take a changed text of an unprotected block; anything else about a block stays as it was."""
        if message == one.message:
            return one
        text = {**one.message, "content": message["content"]} if "content" in message else one.message
        if one.protected is not None or text != message or not _same_calls(one.message, text):
            self._note("edit-refused", position)
            return one
        tokens = count_messages([text], self._situation.count)[0]
        self._note("edited", position, tokens_before=one.tokens, tokens_after=tokens)
        return replace(one, message=text, tokens=tokens)

    def _addition(self, block: Block) -> _Held:
        """Take an addition, without whatever it claims to be."""
        meta = block.message.get("meta")
        own = {key: value for key, value in meta.items() if key not in _CLAIMS} if isinstance(meta, Mapping) else {}
        fields = {key: value for key, value in block.message.items() if key != "pinned"}
        message = {**fields, "meta": {**own, "source": str(Source.INTERCEPTOR)}}
        tokens = count_messages([message], self._situation.count)[0]
        self._journal.append(_note(self._name, "added", tokens=tokens))
        return _Held(message, tokens, None, None, self._name)

    def _note(self, what: str, position: int, **more: Any) -> None:
        self._journal.append(_note(self._name, what, index=self._held[position].origin, **more))


def _same_calls(one: Message, other: Message) -> bool:
    """Whether a changed content leaves a message in the same place among calls and results."""
    lone, changed = group_messages([one]), group_messages([other])
    return (lone.orphans, lone.unanswered) == (changed.orphans, changed.unanswered) and isinstance(
        other.get("content"), str
    )


def _note(name: str, what: str, **more: Any) -> Mapping[str, Any]:
    return {"code": f"interceptor-{what}", "interceptor": name, **more}


def _final(
    situation: Situation, result: ShiftResult, held: Sequence[_Held], journal: list[Mapping[str, Any]]
) -> ShiftResult:
    """Recount, and truncate what does not fit any more; protection is the one decided at first."""
    messages = [one.message for one in held]
    after = replace(
        situation,
        messages=messages,
        tokens=[one.tokens for one in held],
        groups=carried_groups(situation.groups, [one.origin for one in held]),
        protected={place: one.protected for place, one in enumerate(held) if one.protected is not None},
        current=None,
        total=sum(one.tokens for one in held),
    )
    gone = _TRUNCATE.propose(after).departures if after.over > 0 else {}
    rest = [one for place, one in enumerate(held) if place not in gone]
    journal += [
        {"code": "final-truncation", "interceptor": held[place].added_by, "tokens": held[place].tokens}
        for place in gone
        if held[place].origin is None
    ]
    kept_origins = {one.origin for one in rest}
    return replace(
        result,
        kept=[one.message for one in rest],
        origins=[one.origin for one in rest],
        excluded=[*result.excluded, *_excluded_later(situation, result, kept_origins, held, gone)],
        truncated=[item for item in result.truncated if item.index in kept_origins],
        tokens=sum(one.tokens for one in rest) + situation.budget.fixed,
        summary=result.summary if any(one.message is result.summary for one in rest) else None,
        diagnostics=[*result.diagnostics, *journal],
    )


def _excluded_later(
    situation: Situation,
    result: ShiftResult,
    kept: set[int | None],
    held: Sequence[_Held],
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
