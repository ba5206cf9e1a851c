"""The decorators of Character Card V3: lines ``@@name value`` at the head of an entry's content.

A decorator that nobody knows, or whose value is none of its own, is ignored, and the ``@@@name value`` lines right
below it are tried in its stead, from top to bottom. Of two of one name the first counts. Lines and blank lines
down to the last decorator belong to no prompt.

Source: SPEC_V3.md, "Decorators" (github.com/kwaroran/character-card-spec-v3). Decorators for applications that are
no chats (``instruct_…``), for icons and for user interfaces are not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contextshift.lore.model import Place

__all__ = ["Decorators", "read_decorators"]

_LINE = re.compile(r"[ \t]*(@@@?)([A-Za-z_][A-Za-z0-9_]*)(?:[ \t]+(.*?))?[ \t]*\r?")
_NUMBER = re.compile(r"(-?[0-9]{1,9})(?:\.0*)?")
_COMMA = re.compile(r"(?<!\\),")
_POSITIONS = {
    "before_desc": Place.BEFORE_CHAR,
    "after_desc": Place.AFTER_CHAR,
    "personality": Place.PERSONALITY,
    "scenario": Place.SCENARIO,
}
_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Decorators:
    """What the head of an entry's content says; a value of None or empty says nothing."""

    activate: bool = False
    """In, whatever its keys say and other decorators but ``is_greeting``."""
    dont_activate: bool = False
    activate_only_after: int | None = None
    """Replies there must be."""
    activate_only_every: int | None = None
    """In where the number of replies is a multiple of it."""
    keep_activate_after_match: bool = False
    dont_activate_after_match: bool = False
    depth: int | None = None
    """Messages from the end; counts only without ``position``."""
    reverse_depth: int | None = None
    """Messages from the start; counts only without ``position`` and ``depth``."""
    role: str | None = None
    scan_depth: int | None = None
    position: Place | None = None
    additional_keys: tuple[str, ...] = ()
    """One of them must be found beside the entry's keys."""
    exclude_keys: tuple[str, ...] = ()
    """None of them may be found."""
    is_greeting: int | None = None
    """Only in chats that began with the greeting of this index."""
    ignore_on_max_context: bool = False
    """First to leave when room is short."""


def read_decorators(content: str) -> tuple[Decorators, str, tuple[str, ...]]:
    r"""Return the decorators of a content, the content without them, and the names of those ignored without a fallback.

    >>> read_decorators("@@only_here 4\n@@@depth 2\n\nThe keep burns.")[0].depth
    2
    """
    if not content.lstrip().startswith("@@"):
        return Decorators(), content, ()
    said: dict[str, Any] = {}
    ignored: list[str] = []
    open_name: str | None = None
    lines = content.split("\n")
    body = 0
    for number, line in enumerate(lines):
        found = _LINE.fullmatch(line)
        if found is None:
            if line.strip():
                break
            continue
        body = number + 1
        mark, name, value = found[1], found[2], found[3] or ""
        if mark == "@@":
            ignored += [open_name] if open_name else []
            open_name = None if _take(said, name, value) else name
        elif open_name and _take(said, name, value):
            open_name = None
    ignored += [open_name] if open_name else []
    if not body:
        return Decorators(), content, ()
    return Decorators(**said), "\n".join(lines[body:]).lstrip("\r\n"), tuple(ignored)


def _take(said: dict[str, Any], name: str, value: str) -> bool:
    """Keep what a decorator says; False where it is ignored."""
    if name in said:
        return True
    found = _VALUES[name](value) if name in _VALUES else None
    if found is not None:
        said[name] = found
    return found is not None


def _switch(value: str) -> bool | None:
    return {"": True, "true": True, "false": False}.get(value.lower())


def _number(value: str) -> int | None:
    found = _NUMBER.fullmatch(value)
    return int(found[1]) if found else None


def _count(value: str) -> int | None:
    number = _number(value)
    return number if number is not None and number >= 0 else None


def _depth(value: str) -> int | None:
    """Read a depth: below 1 is after the newest message, or before the oldest."""
    number = _number(value)
    return None if number is None else max(0, number)


def _role(value: str) -> str | None:
    return value if value in _ROLES else None


def _keys(value: str) -> tuple[str, ...] | None:
    return tuple(part.strip().replace("\\,", ",") for part in _COMMA.split(value) if part.strip()) or None


_VALUES: dict[str, Callable[[str], Any]] = {
    "activate": _switch,
    "dont_activate": _switch,
    "activate_only_after": _count,
    "activate_only_every": lambda value: _count(value) or None,
    "keep_activate_after_match": _switch,
    "dont_activate_after_match": _switch,
    "depth": _depth,
    "reverse_depth": _depth,
    "role": _role,
    "scan_depth": _count,
    "position": _POSITIONS.get,
    "additional_keys": _keys,
    "exclude_keys": _keys,
    "is_greeting": _count,
    "ignore_on_max_context": _switch,
}
"""What each reads its value with: None for a value that is none of its own."""
