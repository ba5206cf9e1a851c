"""What must reach the provider exactly as given, decided once, before anything moves.

By source first: system, character and persona blocks, whatever is required or pinned. The rest of the
conversation by the role it was given: ``system`` and ``developer`` wherever they stand, roles nobody knows, the last
user message *u*, and the newest round. With *c* the last assistant message that made calls: if *c*
stands after *u*, the newest round is *c*, its results and all that follows; else it is all that follows
*u*. Older rounds of an agent's current turn are history. A group with a protected member is protected
whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from contextshift.groups import Groups, makes_calls
from contextshift.messages import (
    HISTORY_SOURCES,
    KNOWN_ROLES,
    Message,
    Role,
    Source,
    given_role,
    is_pinned,
    is_required,
    is_user_turn,
    source_of,
)
from contextshift.reasons import Reason

__all__ = ["Protection", "protect"]

_PROTECTED_SOURCES = frozenset((Source.SYSTEM, Source.CHARACTER, Source.PERSONA))
_PROTECTED_ROLES = frozenset((Role.SYSTEM, Role.DEVELOPER))
_PLAIN_ROLES = frozenset(role.value for role in KNOWN_ROLES - _PROTECTED_ROLES)
"""Bare strings: they are looked up, once for every message, quicker than members of an enumeration."""


class Protection(NamedTuple):
    """What is protected, and where the current turn begins."""

    reasons: dict[int, Reason]
    """The protected messages by index, each with the reason for it."""
    current: int | None
    """The current user input, or the last message where no user speaks; None in an empty conversation."""


def protect(messages: Sequence[Message], groups: Groups) -> Protection:
    """Decide what is protected.

    >>> from contextshift.groups import group_messages
    >>> talk = [{"role": "user"}, {"role": "assistant"}, {"role": "user"}]
    >>> protect(talk, group_messages(talk)).reasons
    {2: <Reason.CURRENT_TURN: 'protected-current-turn'>}
    """
    reasons: dict[int, Reason] = {}
    for index, message in enumerate(messages):
        if message.get("role") not in _PLAIN_ROLES or "meta" in message or "pinned" in message:
            reason = _own_reason(message)
            if reason is not None:
                reasons[index] = reason
    current, newest = _current_turn(messages)
    if current is not None:
        reasons.setdefault(current, Reason.CURRENT_TURN)
        for index in range(newest, len(messages)):
            if _is_history(messages[index]):
                reasons.setdefault(index, Reason.CURRENT_TURN)
    for members in groups.members.values():
        if not reasons.keys().isdisjoint(members):
            for member in members:
                reasons.setdefault(member, Reason.GROUP)
    return Protection(reasons, current)


def _own_reason(message: Message) -> Reason | None:
    """Return why a message is protected by itself, None where it is not."""
    role, source = given_role(message), source_of(message)
    spoken = source in HISTORY_SOURCES
    if source in _PROTECTED_SOURCES or (spoken and role in _PROTECTED_ROLES):
        return Reason.SYSTEM
    if is_pinned(message):
        return Reason.PINNED
    if is_required(message):
        return Reason.REQUIRED
    return Reason.UNKNOWN_ROLE if spoken and role not in KNOWN_ROLES else None


def _is_history(message: Message) -> bool:
    return "meta" not in message or source_of(message) in HISTORY_SOURCES


def _current_turn(messages: Sequence[Message]) -> tuple[int | None, int]:
    """Return the current user input and the start of the newest round."""
    last_call = last_spoken = None
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if not _is_history(message):
            continue
        if last_spoken is None:
            last_spoken = index
        if is_user_turn(message):
            return index, index if last_call is None else last_call
        if last_call is None and makes_calls(message):
            last_call = index
    if last_spoken is None:
        last_spoken = len(messages) - 1 if messages else None
    return last_spoken, len(messages)
