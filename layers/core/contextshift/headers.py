"""Response headers: their names, and their values as structured fields.

Values follow RFC 9651 (Structured Field Values for HTTP): lists and dictionaries of items with
parameters, ASCII on every host. Text that is not ASCII becomes a display string (section 3.3.8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "GENERATION_ID",
    "SETTINGS",
    "TOKENS",
    "TRUNCATED",
    "WARNING",
    "Bare",
    "Token",
    "Warning_",
    "sf_dictionary",
    "sf_item",
    "sf_list",
]

WARNING = "X-Bastion-Context-Warning"
TRUNCATED = "X-Bastion-Context-Truncated"
TOKENS = "X-Bastion-Context-Tokens"
SETTINGS = "X-Bastion-Context-Settings"
GENERATION_ID = "X-Bastion-Generation-Id"

Bare = bool | int | float | str | Sequence[str]
"""What an item holds; a sequence of strings becomes an inner list."""
Warning_ = tuple[str, Mapping[str, Bare]]
"""A warning's token, such as ``swapped``, and its parameters."""

_TOKEN = re.compile(r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*\Z")
_LIMIT = 999_999_999_999_999


class Token(str):
    """A string that is written as a bare token."""

    __slots__ = ()


def sf_item(value: Bare, parameters: Mapping[str, Bare] | None = None) -> str:
    """Serialise one item with its parameters.

    >>> sf_item(Token("swapped"), {"to": "模型", "needed": 9120})
    'swapped;to=%"%e6%a8%a1%e5%9e%8b";needed=9120'
    """
    return _bare(value) + _parameters(parameters or {})


def sf_list(items: Iterable[tuple[Bare, Mapping[str, Bare]]]) -> str:
    """Serialise a list of items."""
    return ", ".join(sf_item(value, parameters) for value, parameters in items)


def sf_dictionary(members: Mapping[str, Bare | tuple[Bare, Mapping[str, Bare]]]) -> str:
    """Serialise a dictionary; a member is a value, or a value with parameters.

    >>> sf_dictionary({"prompt": 900, "approximate": False, "a": (True, {"level": Token("plan")})})
    'prompt=900, approximate=?0, a=?1;level=plan'
    """
    written: list[str] = []
    for key, member in members.items():
        value, parameters = member if isinstance(member, tuple) else (member, {})
        # Section 4.1.2 omits "=?1"; it is written here all the same, as parsers must take it and readers want it.
        written.append(f"{key}={sf_item(value, parameters)}")
    return ", ".join(written)


def _parameters(parameters: Mapping[str, Bare]) -> str:
    return "".join(f";{key}={_bare(value)}" for key, value in parameters.items())


def _bare(value: Bare) -> str:
    if isinstance(value, bool):
        return "?1" if value else "?0"
    if isinstance(value, int):
        return str(max(-_LIMIT, min(_LIMIT, value)))
    if isinstance(value, float):
        return _decimal(value)
    if not isinstance(value, str):
        return "(" + " ".join(map(_bare, value)) + ")"
    if isinstance(value, Token) and _TOKEN.match(value):
        return str(value)
    if value.isascii() and value.isprintable():
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return '%"' + "".join(_display(byte) for byte in value.encode("utf-8", "replace")) + '"'


def _decimal(value: float) -> str:
    """Write a decimal (section 4.1.5: 12 digits and three places); what does not fit into one becomes a string."""
    if abs(value) >= 1e12 or round(value, 3) != value:
        return f'"{value!r}"'
    text = f"{value:.3f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def _display(byte: int) -> str:
    return chr(byte) if 0x20 <= byte <= 0x7E and byte not in b'%"' else f"%{byte:02x}"
