"""The context audit: what one generation sent, and why each block stayed or left.

One audit per chat, the newest. Its document is written once, before the network call, and is immutable;
how the generation ended is a small record beside it. Here are its statuses with their legal moves, the
document's parts as stores keep them, and its rendering. Nothing here holds an upstream's body.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

__all__ = [
    "GENERATION_LOST",
    "GRACE",
    "INCLUDES",
    "PART_SIZE",
    "AuditStatus",
    "Entry",
    "kept_message",
    "lost",
    "pack",
    "render_document",
    "timestamp",
    "unpack",
]

PART_SIZE = 380_000
"""Bytes of one stored part: DynamoDB takes 400 KB an item, keys and attributes included."""
GRACE = 60.0
"""Seconds past its deadline after which a prepared audit counts as lost."""
GENERATION_LOST = "GENERATION_LOST"
INCLUDES = frozenset(("content", "messages"))
"""What ``include=`` may name."""


class AuditStatus(Enum):
    """Where an audit stands. The only legal moves: ``prepared`` to one of the others, once."""

    PREPARED = "prepared"
    """Written before the network call; the only status that may change."""
    COMPLETED = "completed"
    """The provider answered, and its answer went to the client whole."""
    FAILED = "failed"
    """No usable answer: refused for its size, unreachable, an error of the provider's, broken, too late, or lost."""
    CANCELLED = "cancelled"
    """The client went away or asked to stop."""

    @property
    def terminal(self) -> bool:
        """Whether the audit has ended and will not change again."""
        return self is not AuditStatus.PREPARED


@dataclass(frozen=True, slots=True)
class Entry:
    """One block of the prompt, whether it was sent or not."""

    id: str
    source: str
    role: str
    order: int
    tokens: int
    included: bool
    reason: str
    group: str
    content: Any
    fields: Mapping[str, Any]
    """What the message has beside role and content, such as ``tool_calls``."""
    ref: Mapping[str, str] | None = None
    within: str | None = None
    """The id of the entry whose text holds this one's, and with it its tokens; it goes where that one goes."""
    cause: str | None = None
    """What woke an entry of a lorebook, a word of `contextshift.reasons.Lore`."""
    detail: str | None = None
    """More on its reason or cause: a key, another entry, a budget."""
    tokens_before: int | None = None
    """Of a block that is sent with another text: what it came with. ``tokens`` is what is sent."""

    def document(self, audit_content: str) -> dict[str, Any]:
        """Return the entry as stored: texts whole, as SHA-256, or not at all (``full``, ``hashes``, ``none``)."""
        document: dict[str, Any] = {
            "id": self.id,
            "source": self.source,
            "role": self.role,
            "order": self.order,
            "tokens": self.tokens,
            "included": self.included,
            "reason": self.reason,
            "group": self.group,
            "content": _kept(self.content, audit_content),
        }
        if self.tokens_before is not None:
            document["tokens_before"] = self.tokens_before
        if self.fields:
            document["fields"] = _kept(dict(self.fields), audit_content)
        if self.ref:
            document["ref"] = dict(self.ref)
        if self.within is not None:
            document["within"] = self.within
        if self.cause is not None:
            document["cause"] = self.cause
        if self.detail is not None:
            document["detail"] = _kept(self.detail, audit_content)
        return document


def lost(status: AuditStatus, deadline: float, now: float) -> bool:
    """Whether a prepared audit's process must be gone: it then reads as failed with GENERATION_LOST."""
    return status is AuditStatus.PREPARED and now > deadline + GRACE


def timestamp(seconds: float) -> str:
    """Write a time as RFC 3339 in UTC, to the millisecond.

    >>> timestamp(0)
    '1970-01-01T00:00:00.000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def pack(document: Mapping[str, Any]) -> tuple[list[bytes], str]:
    """Compress a document into parts of at most `PART_SIZE` bytes; return them and the SHA-256 of all."""
    packed = gzip.compress(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(), 6, mtime=0)
    parts = [packed[start : start + PART_SIZE] for start in range(0, len(packed), PART_SIZE)]
    return parts, hashlib.sha256(packed).hexdigest()


def unpack(packed: bytes) -> dict[str, Any]:
    """Return the document that `pack` was given, from its joined parts."""
    document: dict[str, Any] = json.loads(gzip.decompress(packed))
    return document


def render_document(document: Mapping[str, Any], include: Collection[str]) -> dict[str, Any]:
    """Return an audit's document as asked for: with or without texts, messages as references or rendered."""
    shown = dict(document)
    entries: Sequence[Mapping[str, Any]] = document["entries"]
    if "messages" not in include:
        shown["messages"] = [_bare(message) for message in document["messages"]]
    else:
        by_id = {entry["id"]: entry for entry in entries}
        shown["messages"] = [_rendered(message, by_id) for message in document["messages"]]
    if "content" not in include:
        hidden = ("content", "fields")
        shown["entries"] = [{k: v for k, v in entry.items() if k not in hidden} for entry in entries]
    return shown


def _bare(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a sent message without its text: a reference, or the role of one that was changed."""
    return message if "entry" in message else {"role": message.get("role"), "changed": True}


def _rendered(message: Mapping[str, Any], entries: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    entry = entries.get(str(message.get("entry")))
    if entry is None:
        return message
    fields = entry.get("fields")
    rest = fields if isinstance(fields, Mapping) else {}
    return {"role": entry["role"], "content": entry["content"], **rest}


def kept_message(message: Mapping[str, Any], audit_content: str) -> dict[str, Any]:
    """Return a message that is no entry, as stored: its role, and the rest as ``audit_content`` allows."""
    return {key: value if key == "role" else _kept(value, audit_content) for key, value in message.items()}


def _kept(content: Any, audit_content: str) -> Any:
    if content is None or audit_content == "full":
        return content
    if audit_content == "hashes":
        plain = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return {"sha256": hashlib.sha256(plain.encode()).hexdigest()}
    return None
