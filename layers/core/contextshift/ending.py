"""How a generation ends in its chat: audit, generation and message at once, and a text that somebody's edit met."""

from __future__ import annotations

import asyncio
import contextlib

from contextshift.audit import AuditStatus
from contextshift.chats import ChatStore, MessageRecord, Saving
from contextshift.errors import MessageChanged, StoreError
from contextshift.ports import AuditEnd, Ticket
from contextshift.replying import Reply, saving
from contextshift.staging import Staged

__all__ = ["Ending"]

_SAVES = 50
"""More than ever write to one message at once; each time that one of them fails another has succeeded."""
_PAUSE = 0.005


class Ending:
    """Writes the end of one generation of a ``kind`` (`Wanted.type`) in a branch."""

    def __init__(self, chats: ChatStore, branch: str, kind: str, staged: Staged) -> None:
        self._chats = chats
        self._branch = branch
        self._kind = kind
        self._staged = staged

    async def written(self, ticket: Ticket, end: AuditEnd, reply: Reply) -> MessageRecord | None:
        """End audit and generation and save the reply; return the message it became. Raises a StoreError.

        Where somebody changes the message between reading and writing, it is read and written anew: nothing has
        ended before the reply is in it. One that was removed takes no reply, the generation keeps its text.
        """
        with contextlib.suppress(StoreError):
            await self._chats.progress(ticket, reply.text, reply.reasoning)
        for attempt in range(_SAVES):
            kept = await self._kept(ticket, end, reply)
            try:
                return await self._chats.end_generation(ticket, end, kept)
            except MessageChanged:
                await asyncio.sleep(_PAUSE * min(attempt, 10))
        return await self._chats.end_generation(ticket, end, None)

    async def _kept(self, ticket: Ticket, end: AuditEnd, reply: Reply) -> Saving | None:
        """Return what the reply writes into the conversation, as the message that it changes is by now."""
        staged = self._staged.target
        target = None if staged is None else await self._now(ticket, staged)
        if staged is not None and target is None:
            return None
        return saving(
            self._kind,
            reply,
            self._branch,
            target,
            staged=None if staged is None else staged.document,
            generation_id=ticket.generation_id,
            speaker_id=self._staged.speaker_id,
            lore_state=self._staged.lore_state,
            partial=end.status is not AuditStatus.COMPLETED,
            shared=target is not None and await self._shared(ticket, target),
        )

    async def _shared(self, ticket: Ticket, target: MessageRecord) -> bool:
        """Say whether another branch goes through the message that is replaced, or may do so."""
        if self._kind != "regenerate":
            return False
        try:
            branches = await self._chats.branches(ticket.account, ticket.chat_id)
        except StoreError:
            return True
        return any(owner == target.branch and target.n <= last for one in branches for owner, last in one.lineage)

    async def _now(self, ticket: Ticket, staged: MessageRecord) -> MessageRecord | None:
        """Return the message that is changed as it is by now, None where it was removed."""
        try:
            return await self._chats.message(ticket.account, ticket.chat_id, staged.id)
        except StoreError:
            return staged  # it may still be as it was; the store says when it is not
