"""One interceptor's answer, read into our own types and reconciled with what the host holds.

What other people's code returns is read inside its time limit and becomes plain JSON there, or a fault; nothing of
theirs is touched after that. Then what they may not do is put right: see `contextshift.interceptors`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from contextshift.groups import carried_groups, gaps_outside, group_messages
from contextshift.guard import plain
from contextshift.messages import HISTORY_SOURCES, Message, Role, Source, check_messages, is_user_turn, source_of
from contextshift.reasons import Reason
from contextshift.strategies import Situation
from contextshift.tokens import count_one

__all__ = ["Answered", "Block", "Held", "Intercepting", "note", "read_answer", "reconciled"]

_CLAIMS = frozenset(("pinned", "required", "source", "manualExcluded", "priority", "relevance"))
"""What an addition may not say of itself in ``meta``."""
_RESULT_ROLES = (Role.TOOL, Role.FUNCTION)
_LONGEST_ID = 9


@dataclass(slots=True)
class Block:
    """One message as an interceptor sees it: a copy, to keep, change, leave out or put beside others."""

    message: dict[str, Any]
    id: str | None = None
    """Names a block of the host's, in decimal digits; None for one that an interceptor makes."""
    protected: bool = False
    """Whether the host will restore it; for information."""


class Intercepting(Protocol):
    """The part of an interceptor that is asked here."""

    def intercept(self, blocks: list[Block]) -> Iterable[Block]:
        """Return the blocks to send, in order."""


@dataclass(frozen=True, slots=True)
class Held:
    """A block in the host's hands."""

    message: Message
    tokens: int
    origin: int | None
    """Where it stood in the conversation; None for a summary or an addition."""
    protected: Reason | None
    added_by: str | None = None
    summary: bool = False
    edited: bool = False
    """Whether an interceptor changed its text."""


class Answered(NamedTuple):
    """One block of an answer."""

    position: int | None
    """Which of the blocks held it is; None for an addition."""
    message: Message | None
    """What it says; None where that is what it said before."""


def read_answer(interceptor: Intercepting, held: Sequence[Held]) -> list[Answered]:
    """Ask, and read the answer. To be run in the guard: whatever is no JSON, or no id of ours, raises here."""
    blocks = [
        Block(copy.deepcopy(dict(one.message)), str(position), one.protected is not None)
        for position, one in enumerate(held)
    ]
    seen: set[int] = set()
    answer: list[Answered] = []
    for block in interceptor.intercept(blocks):
        position = _position(block.id, len(held))
        if position is None or position in seen:
            answer.append(Answered(None, plain(dict(block.message))))
        else:
            seen.add(position)
            answer.append(Answered(position, _changed(held[position].message, dict(block.message))))
    check_messages([one.message for one in answer if one.message is not None])
    return answer


def _position(name: object, count: int) -> int | None:
    if name is None:
        return None
    if not isinstance(name, str) or len(name) > _LONGEST_ID or not (str.isascii(name) and str.isdecimal(name)):
        raise ValueError("not an id")
    position = int(name)
    return position if position < count else None


def _changed(held: Message, given: dict[str, Any]) -> Message | None:
    """Return what an answer makes of a block: None where it is the same, and beside the content the host's own."""
    if given == held:
        return None
    if "content" in given and {**held, "content": None} == {**given, "content": None}:
        return {**held, "content": plain(given["content"])}
    changed: dict[str, Any] = plain(given)
    return changed


def reconciled(
    situation: Situation, name: str, held: Sequence[Held], journal: list[Mapping[str, Any]], answer: Sequence[Answered]
) -> list[Held]:
    """Return what the host holds after an answer; ``journal`` gets a note of each change, done or undone."""
    return _Reconciled(situation, name, held, journal).with_answer(answer)


class _Reconciled:
    def __init__(self, situation: Situation, name: str, held: Sequence[Held], journal: list[Mapping[str, Any]]) -> None:
        self._situation = situation
        self._name = name
        self._held = held
        self._journal = journal
        self._groups = carried_groups(situation.groups, [one.origin for one in held])

    def with_answer(self, answer: Sequence[Answered]) -> list[Held]:
        kept: dict[int, Message | None] = {}
        added: dict[int, list[Message]] = {}
        last = -1
        for position, message in answer:
            if position is None:
                added.setdefault(last + 1, []).append(message or {})
                continue
            kept[position] = message
            if position < last:
                self._note("reordered", position)
            last = max(last, position)
        self._restore(kept)
        placed = self._placed(added)
        result: list[Held] = []
        for position, one in enumerate(self._held):
            result += placed.get(position, ())
            if position in kept:
                result.append(self._edited(position, one, kept[position]))
        return [*result, *placed.get(len(self._held), ())]

    def _placed(self, added: Mapping[int, Sequence[Message]]) -> dict[int, list[Held]]:
        """Take the additions, by the gap they stand in: before the current user input, and inside no group."""
        gaps = gaps_outside(self._groups)
        current = self._current()
        placed: dict[int, list[Held]] = {}
        for gap in sorted(added):
            taken = [one for message in added[gap] if (one := self._addition(message)) is not None]
            placed.setdefault(gaps[min(gap, current)], []).extend(taken)
        return placed

    def _restore(self, kept: dict[int, Message | None]) -> None:
        """Bring back protected blocks, and groups of which a part was taken out."""
        present = {self._groups.of[position] for position in kept}
        for position, one in enumerate(self._held):
            if position in kept:
                continue
            if one.protected is not None or self._groups.of[position] in present:
                self._note("restored", position)
                kept[position] = None
            else:
                self._note("removed", position)

    def _current(self) -> int:
        """Return the position of the current user input, before which every addition stands."""
        for position, one in enumerate(self._held):
            if one.origin is not None and one.origin == self._situation.current:
                return position
        return len(self._held)

    def _edited(self, position: int, one: Held, message: Message | None) -> Held:
        """Take a changed text of an unprotected block; anything else about a block stays as it was."""
        if message is None or message == one.message:
            return one
        text = {**one.message, "content": message["content"]} if "content" in message else one.message
        if one.protected is not None or text != message or not _same_calls(one.message, text):
            self._note("edit-refused", position)
            return one
        original = None if one.origin is None else self._situation.messages[one.origin]
        said: Message = original if original is not None and text == original else text
        tokens = count_one(self._situation.count, said, one.origin)
        self._note("edited", position, tokens_before=one.tokens, tokens_after=tokens)
        return replace(one, message=said, tokens=tokens, edited=True)

    def _addition(self, given: Message) -> Held | None:
        """Take an addition, without whatever it claims to be; none that passes for a call, a result, or the user."""
        if self._is_forged(given):
            self._journal.append(note(self._name, "addition-refused"))
            return None
        meta = given.get("meta")
        own = {key: value for key, value in meta.items() if key not in _CLAIMS} if isinstance(meta, Mapping) else {}
        fields = {key: value for key, value in given.items() if key != "pinned"}
        message = {**fields, "meta": {**own, "source": str(Source.INTERCEPTOR)}}
        tokens = count_one(self._situation.count, message)
        self._journal.append(note(self._name, "added", tokens=tokens))
        return Held(message, tokens, None, None, self._name)

    def _is_forged(self, given: Message) -> bool:
        """Whether an addition makes calls, brings results, or would be the last thing that a user says."""
        alone = group_messages([given])
        if alone.orphans or alone.unanswered or given.get("tool_calls") or given.get("function_call"):
            return True
        if given.get("role") == Role.USER:
            current = self._situation.current
            last = None if current is None else self._situation.messages[current]
            return last is None or not is_user_turn(last) or source_of(last) not in HISTORY_SOURCES
        return given.get("role") in _RESULT_ROLES

    def _note(self, what: str, position: int, **more: Any) -> None:
        self._journal.append(note(self._name, what, index=self._held[position].origin, **more))


def _same_calls(one: Message, other: Message) -> bool:
    """Whether a changed content leaves a message in the same place among calls and results."""
    lone, changed = group_messages([one]), group_messages([other])
    return (lone.orphans, lone.unanswered) == (changed.orphans, changed.unanswered) and isinstance(
        other.get("content"), str
    )


def note(name: str, what: str, **more: Any) -> Mapping[str, Any]:
    """Return an entry of the journal."""
    return {"code": f"interceptor-{what}", "interceptor": name, **more}
