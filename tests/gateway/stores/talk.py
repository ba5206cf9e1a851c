"""What the tests of stored chats share: a store with the audits whose lives it hangs on, and a generation's steps."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from contextshift.audit import AuditStatus
from contextshift.chats import MAIN, Begun, ChatRecord, ChatStore, GenerationRecord, MessageRecord, Opening, Saving
from contextshift.ports import AuditStore, Ticket
from gateway.stores.life import ACCOUNT, MovableClock, completed, document, record_of, split

CHAT = "c-1"
SOON = 600


@dataclass(frozen=True)
class Talk:
    """A chat store under test, in an account of its own."""

    chats: ChatStore
    audits: AuditStore
    clock: MovableClock
    holds: Callable[[str], Awaitable[bool]]
    """Whether anything that is kept, of any account, holds a text or is under a key that does."""
    account: str = ACCOUNT

    async def created(self, chat: str = CHAT, *said: str, user: str | None = None) -> ChatRecord:
        record = await self.chats.create(
            self.account, ChatRecord(chat, {"title": chat}, user), [says(text) for text in said]
        )
        assert record is not None
        return record

    async def begun(self, chat: str = CHAT, **wished: Any) -> Ticket:
        """Bring a generation to where the provider is called."""
        begun = await self.placed(chat)
        opened = await self.chats.open_generation(begun.ticket, self.opening(begun, **wished))
        assert opened.claimed is None
        return begun.ticket

    async def placed(self, chat: str = CHAT, branch: str = MAIN, key: str | None = None) -> Begun:
        """Take the next place in the order of a chat."""
        now = self.clock.now()
        return await self.chats.begin_generation(self.account, chat, branch, secrets.token_hex(4), now=now, key=key)

    def opening(self, begun: Begun, size: int = 900, **wished: Any) -> Opening:
        """Return the opening of a begun generation, with an audit of about ``size`` bytes."""
        assert begun.loaded is not None
        now = self.clock.now()
        parts = split(document(begun.ticket, size))
        audit = record_of(begun.ticket, parts, now=now)
        generation = GenerationRecord(
            begun.ticket.generation_id, {"type": "normal"}, AuditStatus.PREPARED, now, now + 30
        )
        opening = Opening(generation, int(now) + SOON, audit, parts, None, begun.loaded.branch)
        return replace(opening, **wished)

    async def ended(self, ticket: Ticket, saving: Saving | None) -> MessageRecord | None:
        return await self.chats.end_generation(ticket, completed(), saving)

    async def said(self, chat: str = CHAT, branch: str = "main") -> list[str]:
        """Return what a branch says, as a generation reads it."""
        loaded = await self.chats.load(self.account, chat, branch)
        assert loaded is not None
        return [message.document["text"] for message in loaded.messages]


def says(text: str) -> dict[str, object]:
    return {"role": "user", "text": text, "meta": {"a": [1, None, 0.5, "é\ud800"]}}
