"""JSON as files bring it: read once, and only what every reader can store and send on.

Refused with the place of the fault: what is not UTF-8 or not JSON, NaN and Infinity, numbers too large for any
reader, lone surrogates, nesting over 100, and more values than a file of honest size has (RFC 8259, sections 4 to 9).
A key given twice in one object is tolerated: the last counts.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from contextshift.errors import InvalidInput
from contextshift.lore.notices import NoticeCode, Notices, inner
from contextshift.vouching import MAX_DEPTH, MAX_DIGITS

__all__ = ["MAX_VALUES", "check_tree", "read_json"]

MAX_VALUES = 1_000_000
"""Commas and brackets in a text: each may stand for a value that takes some hundred bytes of memory."""
_MAX_BITS = int(MAX_DIGITS * math.log2(10)) + 1


def read_json(data: bytes, path: str, notices: Notices) -> Any:
    """Return the value. ``path`` says where in the upload the JSON was found, "" for the upload itself.

    Raises InvalidInput with a stable ``reason``.
    """
    text = _decoded(data, path)
    if sum(map(text.count, ",[{")) > MAX_VALUES:
        raise InvalidInput(f"the JSON holds more than {MAX_VALUES} values", path or None, "too_many_values")
    repeated = False

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        value = dict(found)
        repeated = repeated or len(value) != len(found)
        return value

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_constant)
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise InvalidInput(message, path or None, "invalid_json") from None
    except RecursionError:
        raise _too_deep(path) from None
    except ValueError:
        raise InvalidInput("the JSON holds a number that is none", path or None, "invalid_number") from None
    if repeated:
        notices.add(path, NoticeCode.REPEATED_KEY)
    return value


def check_tree(value: object, path: str = "", depth: int = 0) -> None:
    """Refuse, with its path, what JSON that is stored and sent on must not hold. Raises InvalidInput."""
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, dict | list):
        if depth >= MAX_DEPTH:
            raise _too_deep(path)
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict):
                _check_key(name, path)
            if item is not None and item is not True and item is not False:
                check_tree(item, inner(path, name), depth + 1)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput("a number must be finite", path or None, "invalid_number")
    elif isinstance(value, int):
        if value.bit_length() > _MAX_BITS:
            raise InvalidInput(f"a number has over {MAX_DIGITS} digits", path or None, "invalid_number")
    elif value is not None:
        raise InvalidInput("not a JSON value", path or None, "invalid_type")


def _decoded(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 (byte {error.start})", path or None, "invalid_utf8") from None


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


def _check_key(name: object, path: str) -> None:
    if not isinstance(name, str):
        raise InvalidInput("a key must be text", path or None, "invalid_type")
    _check_text(name, path)


def _check_text(text: str, path: str) -> None:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidInput("a lone surrogate is not text", path or None, "lone_surrogate")


def _too_deep(path: str) -> InvalidInput:
    # The path of what is too deep is itself too long to help.
    return InvalidInput(f"nested more than {MAX_DEPTH} deep", path.partition(".")[0] or None, "too_deep")
