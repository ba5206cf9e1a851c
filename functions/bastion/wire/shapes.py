"""Reading JSON into the types of ``/api/v2``, and writing them: one place that says what is wrong and where.

A type is a `msgspec.Struct`; the same types make ``/openapi.json``. Beside the snake_case names of the types, the
camelCase spellings are taken; what is free-form (metadata, variables, parameters) is left as it came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from contextshift.errors import InvalidInput

__all__ = ["Shape", "read", "write"]

_T = TypeVar("_T", bound="Shape")
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_PLACE = re.compile(r"\A(?P<message>.*?)(?: - at `(?P<path>(?:key in )?\$?.*)`)?\Z", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)


class Shape(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A JSON object of the API."""


def read(kind: type[_T], value: object) -> _T:
    """Return ``value`` as a ``kind``. Raises InvalidInput with the path of the field at fault.

    >>> class Point(Shape):
    ...     max_x: int
    >>> read(Point, {"maxX": 1})
    Point(max_x=1)
    """
    try:
        return msgspec.convert(_snake(kind, value, ""), type=kind)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None


def write(shape: Shape) -> Any:
    """Return a shape as JSON values; what is unset is left out."""
    return msgspec.to_builtins(shape)


def _invalid(said: str) -> InvalidInput:
    place = _PLACE.match(said)
    assert place is not None
    path = (place["path"] or "").removeprefix("$").removeprefix(".")
    for pattern, reason in ((_UNKNOWN, "unknown_field"), (_MISSING, "missing")):
        found = pattern.match(place["message"])
        if found is not None:
            name = found["name"]
            full = f"{path}.{name}" if path else name
            told = "there is no such field" if reason == "unknown_field" else "the field is required"
            return InvalidInput(told, full[:200], reason)
    return InvalidInput(_plain(place["message"]), path or None, "invalid_type")


def _plain(message: str) -> str:
    """Return msgspec's words without anything that the client wrote."""
    return message.split(", got ", 1)[0] if message.startswith("Expected") else "the value is not valid"


def _snake(kind: Any, value: Any, path: str) -> Any:
    """Return ``value`` with the camelCase names of known fields in snake_case, as deep as the types go."""
    if isinstance(value, list):
        inner = _item_kind(kind)
        return value if inner is None else [_snake(inner, item, f"{path}[{n}]") for n, item in enumerate(value)]
    shape = _shape_of(kind)
    if shape is None or not isinstance(value, Mapping):
        return value
    fields = _fields(shape)
    snake: dict[str, Any] = {}
    for spelling, item in value.items():
        lowered = _CAMEL.sub(lambda match: "_" + match[1].lower(), spelling)
        name = lowered if lowered in fields else spelling
        here = f"{path}.{spelling}" if path else spelling
        if name in snake:
            raise InvalidInput("given twice, in two spellings", here, "repeated_key")
        snake[name] = _snake(fields[name], item, here) if name in fields else item
    return snake


@cache
def _fields(shape: type[Shape]) -> dict[str, Any]:
    return get_type_hints(shape)


def _shape_of(kind: Any) -> type[Shape] | None:
    """Return the shape that a type is, or that it may be."""
    if isinstance(kind, type) and issubclass(kind, Shape):
        return kind
    return next((found for one in get_args(kind) if (found := _shape_of(one)) is not None), None)


def _item_kind(kind: Any) -> Any:
    """Return the type of a list's items, None where it is no list of shapes."""
    for one in (kind, *get_args(kind)):
        if getattr(one, "__origin__", None) is list:
            return get_args(one)[0]
    return None
