"""Lore and memories on their way into a prompt: what is scanned, and what becomes a block or only an audit's entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from contextshift.audit import Entry
from contextshift.lore.activation import Activated, Activation, Outcome
from contextshift.lore.macros import hidden_keys
from contextshift.messages import Message, Role, Source
from contextshift.reasons import Lore, Reason
from contextshift.scene import LoreBlock, MemoryBlock

__all__ = ["lore_block", "memory_block", "outside_entries", "scanned_text"]


def scanned_text(message: Message) -> str:
    """Return what lore looks for its keys in: a message's text, with the keys that it hides."""
    content = message.get("content")
    if isinstance(content, str):
        return content + hidden_keys(content)
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def lore_block(one: Activated, character: str | None = None) -> LoreBlock:
    """Return the block of an entry that was woken; ``character`` is the one whose own book it is of."""
    return LoreBlock(
        f"{one.book}/{one.entry.id}",
        one.text,
        one.place,
        one.depth,
        one.role,
        one.required,
        one.relevance,
        one.entry.rank,
        one.cause,
        one.woken_by,
        character,
    )


def memory_block(id: str, document: Mapping[str, Any]) -> MemoryBlock:
    """Return the block of a memory."""
    required = document.get("pinned") is True
    return MemoryBlock(id, str(document.get("text", "")), required, document.get("relevance"), document.get("priority"))


def outside_entries(
    activation: Activation | None,
    blocks: Sequence[Message],
    switched_off: Sequence[Message],
    count: Callable[[Message], int],
) -> Iterator[Entry]:
    """Yield the audit's entries of what became no part of ``blocks``: first lore, in the books' order.

    ``switched_off`` are the blocks that the layout left out; ``count`` gives their tokens.
    """
    placed = {name for block in blocks for name in _names(block)}
    left = {name: block for block in switched_off for name in _names(block) if name not in placed}
    for outcome in activation.outcomes if activation else ():
        name = _name(outcome)
        if not outcome.included:
            yield _lore_entry(outcome, outcome.reason)
        elif left.pop(name, None) is not None:
            yield _lore_entry(outcome, Reason.BLOCK_DISABLED)
        elif name not in placed:
            yield _lore_entry(outcome, Lore.OUTLET_UNUSED)
    for block in switched_off:
        if block["meta"]["id"] in left:
            yield _disabled_entry(block, count(block))


def _names(block: Message) -> list[str]:
    """Return the ids of a block, and of what it holds."""
    meta = block["meta"]
    return [meta["id"], *(one["id"] for one in meta.get("held", ()))]


def _name(outcome: Outcome) -> str:
    return f"lore:{outcome.book}/{outcome.entry}"


def _lore_entry(outcome: Outcome, reason: str) -> Entry:
    name = _name(outcome)
    return Entry(
        id=name,
        source=str(Source.LORE),
        role=str(Role.SYSTEM),
        order=0,
        tokens=outcome.tokens,
        included=False,
        reason=str(reason),
        group=name,
        content=None,
        fields={},
        ref={"type": "lore", "id": name.removeprefix("lore:")},
        cause=outcome.reason if outcome.included else None,
        detail=outcome.detail,
    )


def _disabled_entry(block: Message, tokens: int) -> Entry:
    meta = block["meta"]
    return Entry(
        id=meta["id"],
        source=meta["source"],
        role=block["role"],
        order=0,
        tokens=tokens,
        included=False,
        reason=str(Reason.BLOCK_DISABLED),
        group=meta["id"],
        content=block["content"],
        fields={},
        ref=meta.get("ref"),
    )
