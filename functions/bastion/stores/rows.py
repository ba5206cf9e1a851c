"""What every store does with a row that is not what it must be: nothing is read out of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from contextshift.errors import StoreUnavailable

__all__ = ["object_of", "readable", "strings_of", "written"]


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """Turn what goes wrong in reading a stored row into StoreUnavailable, without a word of what it holds.

    A damaged row must neither end as a bug nor open more than the whole one would.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError):
        raise StoreUnavailable("something stored cannot be read") from None


def object_of(text: str) -> dict[str, Any]:
    """Return a stored JSON object. Raises ValueError for anything else."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def strings_of(text: str) -> list[str]:
    """Return a stored JSON list of strings. Raises ValueError for anything else."""
    value = json.loads(text)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("no list of strings")
    return value


def written(value: object) -> str:
    """Return JSON to be stored: as short as can be in UTF-8; half a surrogate pair is none and is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text
