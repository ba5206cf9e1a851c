"""Lore and memories on their way into a prompt: what is scanned, and what becomes a block or only an audit's entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextshift.audit import Entry
from contextshift.lore.activation import Activated, Outcome
from contextshift.lore.macros import hidden_keys
from contextshift.messages import Message, Role, Source
from contextshift.scene import LoreBlock, MemoryBlock

__all__ = ["lore_block", "memory_block", "scanned_text", "unwoken_entry"]


def scanned_text(message: Message) -> str:
    """Return what lore looks for its keys in: a message's text, with the keys that it hides."""
    content = message.get("content")
    if isinstance(content, str):
        return content + hidden_keys(content)
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def lore_block(one: Activated) -> LoreBlock:
    """Return the block of an entry that was woken."""
    return LoreBlock(
        f"{one.book}/{one.entry.id}",
        one.text,
        one.place,
        one.depth,
        one.role,
        one.required,
        one.relevance,
        one.entry.rank,
    )


def memory_block(id: str, document: Mapping[str, Any]) -> MemoryBlock:
    """Return the block of a memory."""
    required = document.get("pinned") is True
    return MemoryBlock(id, str(document.get("text", "")), required, document.get("relevance"), document.get("priority"))


def unwoken_entry(outcome: Outcome) -> Entry:
    """Return the audit's entry of lore that did not become a block."""
    name = f"{outcome.book}/{outcome.entry}"
    return Entry(
        id=f"lore:{name}",
        source=str(Source.LORE),
        role=str(Role.SYSTEM),
        order=0,
        tokens=outcome.tokens,
        included=False,
        reason=outcome.reason,
        group=f"lore:{name}",
        content=None,
        fields={"detail": outcome.detail} if outcome.detail else {},
        ref={"type": "lore", "id": name},
    )
