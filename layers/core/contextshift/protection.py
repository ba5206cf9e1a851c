"""What must reach the provider exactly as given, decided once, before anything moves.

By source first: system, character and persona blocks, whatever is required or pinned. The rest of the
conversation by role: ``system`` and ``developer`` wherever they stand, roles nobody knows, the last
user message *u*, and the newest round. With *c* the last assistant message that made calls: if *c*
stands after *u*, the newest round is *c*, its results and all that follows; else it is all that follows
*u*. Older rounds of an agent's current turn are history. A group with a protected member is protected
whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from contextshift.groups import Groups, makes_calls
from contextshift.messages import (
    HISTORY_SOURCES,
    KNOWN_ROLES,
    Message,
    Role,
    Source,
    is_pinned,
    is_required,
    is_user_turn,
    source_of,
)
from contextshift.reasons import Reason

__all__ = ["protect"]

_PROTECTED_SOURCES = frozenset((Source.SYSTEM, Source.CHARACTER, Source.PERSONA))
_PROTECTED_ROLES = frozenset((Role.SYSTEM, Role.DEVELOPER))


def protect(messages: Sequence[Message], groups: Groups) -> dict[int, Reason]:
    """Return the protected messages by index, each with the reason for it.

    >>> from contextshift.groups import group_messages
    >>> talk = [{"role": "user"}, {"role": "assistant"}, {"role": "user"}]
    >>> protect(talk, group_messages(talk))
    {2: <Reason.CURRENT_TURN: 'protected-current-turn'>}
    """
    sources = [source_of(message) if "meta" in message else None for message in messages]
    protected = _by_source_and_role(messages, sources)
    for index in _current_turn(messages, sources):
        protected.setdefault(index, Reason.CURRENT_TURN)
    for first, members in groups.members.items():
        if first in protected or any(member in protected for member in members):
            for member in members:
                protected.setdefault(member, Reason.GROUP)
    return protected


def _by_source_and_role(messages: Sequence[Message], sources: Sequence[str | None]) -> dict[int, Reason]:
    protected: dict[int, Reason] = {}
    for index, (message, source) in enumerate(zip(messages, sources, strict=True)):
        role = message.get("role")
        if source in _PROTECTED_SOURCES or (source in HISTORY_SOURCES and role in _PROTECTED_ROLES):
            protected[index] = Reason.SYSTEM
        elif is_pinned(message):
            protected[index] = Reason.PINNED
        elif is_required(message):
            protected[index] = Reason.REQUIRED
        elif source in HISTORY_SOURCES and role not in KNOWN_ROLES:
            protected[index] = Reason.UNKNOWN_ROLE
    return protected


def _current_turn(messages: Sequence[Message], sources: Sequence[str | None]) -> list[int]:
    """Return u and the newest round; without a user message, the last message of the conversation."""
    spoken = [index for index, source in enumerate(sources) if source in HISTORY_SOURCES]
    if not spoken:
        return [len(messages) - 1] if messages else []
    last_user = last_call = -1
    for index in reversed(spoken):
        message = messages[index]
        if last_user < 0 and is_user_turn(message):
            last_user = index
            break
        if last_call < 0 and makes_calls(message):
            last_call = index
    if last_user < 0:
        return [spoken[-1]]
    newest = last_call if last_call > last_user else last_user
    return [last_user, *(index for index in spoken if index >= newest)]
