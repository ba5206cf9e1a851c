"""Tool calls with their results: the blocks that stay or leave together.

Ids are not unique over a conversation: clients reuse ``call_0`` every turn, and one message may hold
the same id twice. So a result belongs to the *nearest* earlier assistant message that made a call of
its id *and still waits for it*, and a new call of an id closes the older unanswered ones. A group is
named by the index of its first member. One pass, linear in the number of blocks.

>>> call = {"role": "assistant", "tool_calls": [{"id": "a"}]}
>>> group_messages([call, {"role": "tool", "tool_call_id": "a"}, {"role": "user"}]).of
[0, 0, 2]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from contextshift.messages import LIST, OBJECT, Message, content_parts

__all__ = ["Groups", "carried_groups", "gaps_outside", "group_messages", "makes_calls"]

_ID_FIELDS = ("tool_call_id", "toolCallId", "callId", "tool_use_id", "call_id")
_RARE_CALL_FIELDS = frozenset(("function_call", *_ID_FIELDS))
_CALL_FIELDS = _RARE_CALL_FIELDS | {"tool_calls"}
"""An assistant message with none of these, and whose content is text, makes no call."""
_NEVER_RESULTS = frozenset(("system", "developer"))
_Key = str | tuple[str]
"""An id; or, for legacy function messages, a name in a tuple of its own, so that it never equals an id."""


@dataclass(slots=True)
class Groups:
    """The groups of a conversation, by message index."""

    of: list[int]
    """The group of each message: the index of the group's first member."""
    members: dict[int, list[int]] = field(default_factory=dict)
    """Members in order, of groups with more than one."""
    orphans: list[int] = field(default_factory=list)
    """Results whose call is not there."""
    unanswered: list[int] = field(default_factory=list)
    """Assistant messages with a call that nobody answered."""

    def group(self, index: int) -> Sequence[int]:
        """Return all members of the group of message ``index``, in order."""
        first = self.of[index]
        return self.members.get(first) or (first,)


class _Desk:
    """The calls that wait for their result, found by id, by name, or by age. A call is its number."""

    def __init__(self) -> None:
        self._assistants: list[int] = []
        """By call: the assistant message that made it."""
        self._open = bytearray()
        """By call: 1 while it waits."""
        self._waiting: dict[_Key, int | list[int]] = {}
        """By key: the call, or several calls of one message, the next to be answered last."""
        self._nearest = 0
        """The first call of the nearest assistant message that may still wait."""

    def opens(self, assistant: int, keys: Sequence[_Key | None]) -> None:
        """Take the calls of one assistant message; a key seen again closes the older calls of it."""
        self._nearest = first = len(self._assistants)
        if len(keys) == 1:
            self._assistants.append(assistant)
            self._open.append(1)
            if keys[0] is not None:
                self._waiting[keys[0]] = first
            return
        self._assistants += [assistant] * len(keys)
        self._open += b"\1" * len(keys)
        fresh: dict[_Key, int | list[int]] = {}
        for number in range(first + len(keys) - 1, first - 1, -1):
            key = keys[number - first]
            if key is not None:
                same = fresh.setdefault(key, [])
                assert isinstance(same, list)
                same.append(number)
        self._waiting.update(fresh)

    def answers(self, key: _Key | None) -> int | None:
        """Close the call that a result answers and return its assistant message, None for an orphan."""
        if key is None:
            return self._oldest_of_nearest()
        waiting = self._waiting.get(key)
        if isinstance(waiting, int):
            del self._waiting[key]
            if self._open[waiting]:
                return self._close(waiting)
            waiting = None
        while waiting:
            number = waiting.pop()
            if self._open[number]:
                return self._close(number)
        return None if isinstance(key, str) else self._oldest_of_nearest()

    def unanswered(self) -> list[int]:
        """Return the assistant messages with a call that nobody answered."""
        if 1 not in self._open:
            return []
        return sorted({one for one, waits in zip(self._assistants, self._open, strict=True) if waits})

    def _oldest_of_nearest(self) -> int | None:
        number = self._open.find(1, self._nearest)
        if number < 0:
            return None
        self._nearest = number + 1
        return self._close(number)

    def _close(self, number: int) -> int:
        self._open[number] = 0
        return self._assistants[number]


def group_messages(messages: Sequence[Message]) -> Groups:
    """Find the groups of a conversation; whatever stands between a call and its result is its own group."""
    parent = list(range(len(messages)))
    orphans: list[int] = []
    desk = _Desk()
    for index, message in enumerate(messages):
        role = message.get("role")
        plain = isinstance(message.get("content"), str)
        if role == "assistant":
            if not (plain and _CALL_FIELDS.isdisjoint(message)):
                keys = _call_keys(message)
                if keys:
                    desk.opens(index, keys)
        elif plain and role == "tool" and isinstance(key := message.get("tool_call_id"), str):
            caller = desk.answers(key)  # by far the most common result
            if caller is None:
                orphans.append(index)
            else:
                parent[index] = parent[caller]
        elif not (plain and role == "user") and role not in _NEVER_RESULTS:
            _seat(parent, orphans, index, [desk.answers(key) for key in _result_keys(message)])
    return _collect(parent, orphans, desk.unanswered())


def _seat(parent: list[int], orphans: list[int], index: int, callers: Sequence[int | None]) -> None:
    """Put a result with the assistant messages that it answers; one that answers nobody is an orphan."""
    alone = bool(callers)
    for assistant in callers:
        if assistant is not None:
            alone = False
            _join(parent, assistant, index)
    if alone:
        orphans.append(index)


def carried_groups(groups: Groups, rest: Sequence[int | None]) -> Groups:
    """Return the same groups over what remains of the messages: ``rest`` holds the old index of each, in order.

    None stands for a message that was not there: it is a group of its own. Groups are decided once, like
    protection: found anew among fewer or other messages, a result could join another call.
    """
    of: list[int] = []
    members: dict[int, list[int]] = {}
    firsts: dict[int, int] = {}
    for place, index in enumerate(rest):
        first = place if index is None else firsts.setdefault(groups.of[index], place)
        of.append(first)
        if first != place:
            members.setdefault(first, [first]).append(place)
    places = {index: place for place, index in enumerate(rest)}
    orphans = [places[index] for index in groups.orphans if index in places]
    return Groups(of, members, orphans, [places[index] for index in groups.unanswered if index in places])


def gaps_outside(groups: Groups) -> list[int]:
    """Return, for the gap before each message and the one after the last, the nearest earlier gap in no group.

    What is put between messages stands in such a gap: providers refuse what comes between a call and its result.

    >>> call, result = {"role": "assistant", "tool_calls": [{"id": "a"}]}, {"role": "tool", "tool_call_id": "a"}
    >>> gaps_outside(group_messages([{"role": "user"}, call, result]))
    [0, 1, 1, 3]
    """
    gaps: list[int] = []
    start = end = -1
    for place in range(len(groups.of) + 1):
        if place > end:
            start = place
        if place in groups.members:
            end = max(end, groups.members[place][-1])
        gaps.append(start)
    return gaps


def makes_calls(message: Message) -> bool:
    """Whether an assistant message calls a tool."""
    return message.get("role") == "assistant" and bool(_call_keys(message))


def _join(parent: list[int], one: int, other: int) -> None:
    """Unite two groups under the smaller index (a union-find with path halving: linear in practice)."""
    first = one if parent[one] == one else _root(parent, one)
    second = other if parent[other] == other else _root(parent, other)
    if first < second:
        parent[second] = first
    else:
        parent[first] = second


def _root(parent: list[int], index: int) -> int:
    while parent[index] != index:
        parent[index] = index = parent[parent[index]]
    return index


def _collect(parent: list[int], orphans: list[int], unanswered: list[int]) -> Groups:
    members: dict[int, list[int]] = {}
    for index, above in enumerate(parent):
        if above != index:
            first = parent[index] = parent[above]  # what stands before is settled already
            if first in members:
                members[first].append(index)
            else:
                members[first] = [first, index]
    return Groups(parent, members, orphans, unanswered)


def _call_keys(message: Message) -> list[_Key | None]:
    calls = message.get("tool_calls")
    keys: list[_Key | None] = []
    if isinstance(calls, LIST):
        keys = [_id_key(call.get("id")) if isinstance(call, OBJECT) else None for call in calls]
    if isinstance(message.get("content"), LIST):
        keys += [_id_key(part.get("id")) for part in content_parts(message) if part.get("type") == "tool_use"]
    if not _RARE_CALL_FIELDS.isdisjoint(message):
        legacy, own = message.get("function_call"), _own_id(message)
        if isinstance(legacy, Mapping):
            keys.append(_name_key(legacy.get("name")))
        if own is not None:
            keys.append(_id_key(own))
    return keys


def _result_keys(message: Message) -> Iterator[_Key | None]:
    role = message.get("role")
    own = None if role == "user" else _own_id(message)
    if own is not None:
        yield _id_key(own)
    parts = [part for part in content_parts(message) if part.get("type") == "tool_result"]
    for part in parts:
        yield _id_key(_own_id(part))
    if own is None and not parts:
        if role == "tool":
            yield None
        elif role == "function":
            yield _name_key(message.get("name"))


def _own_id(holder: Mapping[str, object]) -> object | None:
    for name in _ID_FIELDS:
        value = holder.get(name)
        if value is not None:
            return value
    return None


def _id_key(value: object) -> _Key | None:
    return value if isinstance(value, str) else None


def _name_key(value: object) -> _Key | None:
    return (value,) if isinstance(value, str) else None
