"""Messages as they come: plain mappings in, the same plain mappings out, nothing lost.

The library never wraps or copies a message that it keeps: what stays is the caller's own object.
Beside the OpenAI fields it reads ``pinned`` (or ``meta.pinned``), ``meta.source``, ``meta.required``,
``meta.relevance``, ``meta.priority``, ``meta.manualExcluded`` and ``meta.givenRole`` (of a message that a target's
rules let speak in another role: the one it was given); every other field passes through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from contextshift.errors import InvalidInput, InvalidMessage

__all__ = [
    "HISTORY_SOURCES",
    "KNOWN_ROLES",
    "LIST",
    "OBJECT",
    "Message",
    "Role",
    "Source",
    "check_messages",
    "content_parts",
    "given_role",
    "is_manually_excluded",
    "is_pinned",
    "is_required",
    "is_user_turn",
    "meta_number",
    "source_of",
]

Message = Mapping[str, Any]
"""One message, and one block of the prompt."""


OBJECT = (dict, Mapping)
"""What counts as an object. Made once, the common type first: these checks run for every message."""
LIST = (list, tuple)
_CONTENT = (str, list, tuple)
_SEQUENCE = (list, Sequence)


class Role(StrEnum):
    """Roles whose meaning is known; a message of any other role passes through, protected."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    FUNCTION = "function"


KNOWN_ROLES = frozenset(Role)


class Source(StrEnum):
    """Where a block comes from, as ``meta.source`` says; a message that says nothing is judged by its role."""

    SYSTEM = "system"
    CHARACTER = "character"
    PERSONA = "persona"
    LORE = "lore"
    MEMORY = "memory"
    EXAMPLE = "example"
    HISTORY = "history"
    SUMMARY = "summary"
    INTERCEPTOR = "interceptor"


HISTORY_SOURCES = frozenset((None, Source.HISTORY))
"""Sources whose blocks are the conversation itself."""

_KNOWN_SOURCES = frozenset(Source)


def check_messages(messages: Sequence[Message]) -> None:
    """Raise InvalidMessage, naming index and field, unless every message is a mapping that can be read.

    ``content`` is a string, a list of parts, null, or missing. Unknown roles are no error. Raises InvalidInput where
    these are no sequence: a generator could be read only once.
    """
    if not isinstance(messages, _SEQUENCE) or isinstance(messages, str | bytes):
        raise InvalidInput("messages must be a sequence of messages", "messages", "invalid_type")
    for index, message in enumerate(messages):
        if not isinstance(message, OBJECT):
            raise InvalidMessage("a message must be an object", index)
        role = message.get("role")
        if not isinstance(role, str):
            raise InvalidMessage("a message needs a role, a string", index, "role")
        content = message.get("content")
        if content is not None and not isinstance(content, _CONTENT):
            raise InvalidMessage("content must be a string, a list of parts, or null", index, "content")


def source_of(message: Message) -> str | None:
    """Return the block's source, None for one that names none (or none that is known)."""
    meta = message.get("meta")
    source = meta.get("source") if isinstance(meta, OBJECT) else None
    return source if isinstance(source, str) and source in _KNOWN_SOURCES else None


def given_role(message: Message) -> Any:
    """Return the role a message was given, whatever role a target's rules let it speak in.

    >>> given_role({"role": "user", "meta": {"givenRole": "system"}})
    'system'
    """
    meta = message.get("meta")
    given = meta.get("givenRole") if isinstance(meta, OBJECT) else None
    return message.get("role") if given is None else given


def is_pinned(message: Message) -> bool:
    """Whether the block's owner pinned it."""
    return message.get("pinned") is True or _flag(message, "pinned")


def is_required(message: Message) -> bool:
    """Whether the block is required or constant, such as essential lore."""
    return _flag(message, "required")


def is_manually_excluded(message: Message) -> bool:
    """Whether the block's owner marked it to leave."""
    return _flag(message, "manualExcluded")


def meta_number(message: Message, name: str, default: float = 0.0) -> float:
    """Return a number from ``meta``, or ``default`` where it is missing or no number."""
    meta = message.get("meta")
    value = meta.get(name) if isinstance(meta, OBJECT) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return default
    return value


def content_parts(message: Message) -> Sequence[Mapping[str, Any]]:
    """Return the parts of list content that are objects; nothing for text."""
    content = message.get("content")
    if not isinstance(content, LIST):
        return ()
    return [part for part in content if isinstance(part, OBJECT)]


def is_user_turn(message: Message) -> bool:
    """Whether a user speaks here.

    A user message made of tool results alone is not the user's, nor is an instruction that a target takes as a user's.
    """
    if message.get("role") != Role.USER or ("meta" in message and given_role(message) != Role.USER):
        return False
    parts = content_parts(message)
    return not parts or any(part.get("type") != "tool_result" for part in parts)


def _flag(message: Message, name: str) -> bool:
    meta = message.get("meta")
    return isinstance(meta, OBJECT) and meta.get(name) is True
