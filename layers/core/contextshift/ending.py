"""How a generation ends in its chat: audit, generation and message at once, and a text that somebody's edit met."""

from __future__ import annotations

import contextlib

from contextshift.audit import AuditStatus
from contextshift.chats import ChatStore, MessageRecord, Saving
from contextshift.errors import StoreError
from contextshift.ports import AuditEnd, Ticket
from contextshift.replying import Reply, saving
from contextshift.staging import Staged

__all__ = ["Ending"]

_SAVES = 3


class Ending:
    """Writes the end of one generation of a ``kind`` (`Wanted.type`) in a branch."""

    def __init__(self, chats: ChatStore, branch: str, kind: str, staged: Staged) -> None:
        self._chats = chats
        self._branch = branch
        self._kind = kind
        self._staged = staged

    async def written(self, ticket: Ticket, end: AuditEnd, reply: Reply) -> MessageRecord | None:
        """End audit and generation and save the reply; return the message it became. Raises a StoreError."""
        with contextlib.suppress(StoreError):
            await self._chats.progress(ticket, reply.text, reply.reasoning)
        kept = await self._kept(ticket, end, reply)
        message = await self._chats.end_generation(ticket, end, kept)
        if message is None and kept is not None and kept.replaces is not None:
            return await self._saved_again(ticket, end, reply)
        return message

    async def _kept(self, ticket: Ticket, end: AuditEnd, reply: Reply) -> Saving | None:
        """Return what the reply writes into the conversation, as the message that it changes is by now."""
        return saving(
            self._kind,
            reply,
            self._branch,
            await self._target(ticket),
            generation_id=ticket.generation_id,
            speaker_id=self._staged.speaker_id,
            lore_state=self._staged.lore_state,
            partial=end.status is not AuditStatus.COMPLETED,
        )

    async def _saved_again(self, ticket: Ticket, end: AuditEnd, reply: Reply) -> MessageRecord | None:
        """Save a reply whose message somebody changed in between: the generation has ended, its text is not lost."""
        for _ in range(_SAVES):
            kept = await self._kept(ticket, end, reply)
            if kept is None or kept.replaces is None:
                return None
            target = kept.replaces
            saved = await self._chats.edit(ticket.account, ticket.chat_id, target.id, kept.document, target.version)
            if saved is not None:
                return saved
        return None

    async def _target(self, ticket: Ticket) -> MessageRecord | None:
        """Return the message that is changed as it is by now: somebody may have pinned it meanwhile."""
        target = self._staged.target
        if target is None:
            return None
        with contextlib.suppress(StoreError):
            return await self._chats.message(ticket.account, ticket.chat_id, target.id) or target
        return target
