"""What of a request refers to an object that a provider keeps: files, stored items, containers, vector stores.

An object belongs to the account that opened the call. All accounts of a deployment share its keys at the providers, so
a reference under such a key would reach what another account keeps there. Only who brings a key, or an endpoint, of
its own can mean objects of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from contextshift.errors import InvalidInput
from contextshift.messages import Message

__all__ = ["STATEFUL", "kept_reference", "message_reference", "refused"]

STATEFUL = "stateful_not_supported"
"""The reason of a refusal."""
_NAMING = re.compile(r"(?:[a-z_]*_)?file_ids?|vector_store_ids?|container_id|skill_id")
"""Names of members whose value names an object (OpenAI's API reference, read 2026-11)."""
_NOT_ENTERED = frozenset(("annotations", "arguments", "input_schema", "metadata", "parameters", "results", "schema"))
"""Members that hold what a caller or a model wrote: schemas, arguments, notes, and what an earlier answer cited."""


def kept_reference(value: object, path: str = "") -> str | None:
    """Return the path of the first reference inside a JSON value, None where there is none; text is never one.

    >>> kept_reference([{"type": "input_file", "file_id": "file-1"}], "input")
    'input[0].file_id'
    >>> kept_reference({"text": '{"file_id": "file-1"}', "metadata": {"file_id": "mine"}}) is None
    True
    """
    waiting: list[tuple[str, object]] = [(path, value)]
    while waiting:
        place, found = waiting.pop()
        if isinstance(found, Mapping):
            if (name := _named(found)) is not None:
                return f"{place}.{name}".lstrip(".")
            below = [(f"{place}.{key}".lstrip("."), one) for key, one in found.items() if key not in _NOT_ENTERED]
        elif isinstance(found, list):
            below = [(f"{place}[{index}]", one) for index, one in enumerate(found)]
        else:
            continue
        waiting.extend(one for one in reversed(below) if isinstance(one[1], Mapping | list))
    return None


def message_reference(messages: Sequence[Message]) -> str | None:
    """Return the path of the first reference in the parts of chat messages."""
    for index, message in enumerate(messages):
        content = message.get("content")
        if isinstance(content, list) and (found := kept_reference(content, f"messages[{index}].content")) is not None:
            return found
    return None


def refused(path: str) -> InvalidInput:
    """Return the error for a reference that is under a shared key."""
    return InvalidInput("objects that a provider keeps need a key of your own at the provider", path, STATEFUL)


def _named(found: Mapping[str, object]) -> str | None:
    """Return the member by which an object refers to another that is kept."""
    if found.get("type") == "item_reference":
        return "id"
    if isinstance(found.get("container"), str) and found["container"]:
        return "container"
    return next((key for key, one in found.items() if one and _NAMING.fullmatch(key)), None)
