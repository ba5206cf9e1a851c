"""Opening a generation over the table ``chats``: one transaction, which also makes its audit the chat's newest.

What it cannot hold is written before, where nobody can read it yet, and goes again if the transaction is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import random

from bastion.stores.dynamodb.actions import Action, put, putting, updating
from bastion.stores.dynamodb.client import Cancelled, Table
from bastion.stores.dynamodb.conditions import ABSENT, becomes_newest, counts_on, unclaimed
from bastion.stores.dynamodb.conversation import TRIES, Conversation, Life, life_of, message_of
from bastion.stores.dynamodb.documents import PART_BYTES, compressed
from bastion.stores.dynamodb.items import (
    Item,
    expired,
    expiring,
    head_key,
    number,
    stamps,
    text,
    text_of,
)
from bastion.stores.dynamodb.places import branch_sk, claim_sk, generation_sk
from bastion.stores.dynamodb.records import end_item, head_of, part_items, record_item
from bastion.stores.dynamodb.removal import remove_own
from contextshift.chats import Claim, GenerationRecord, Opened, Opening
from contextshift.errors import ChatNotFound, StoreUnavailable
from contextshift.ports import Clock, Commit, Ticket

__all__ = ["OpeningWay", "claim_of", "said_so_far"]

_PAUSE_SECONDS = 0.02
_HELD_BYTES, _HELD_PARTS = 100_000, 20
"""An audit up to this size goes with the transaction: one trip less for twice its write units."""


def claim_of(item: Item | None, now: float) -> Claim | None:
    """Read what a key is bound to, None where nothing is stored or its time is over."""
    if item is None or expired(item, now):
        return None
    return Claim(text_of(item, "gid"), text_of(item, "request"))


class OpeningWay:
    """One generation's opening on its way."""

    def __init__(
        self, table: Table, conversation: Conversation, clock: Clock, ticket: Ticket, opening: Opening
    ) -> None:
        self._table = table
        self._conversation = conversation
        self._clock = clock
        self._ticket = ticket
        self._opening = opening
        self._life = life_of(ticket)
        self._now = clock.now()
        self._last = opening.branch.last
        self._commit = Commit.COMMITTED
        self._written: Item | None = None
        """The attributes of what the user said."""
        self._parts = part_items(ticket, opening.audit.attempt, opening.parts, opening.audit_expires, self._now)
        self._held = len(self._parts) <= _HELD_PARTS and sum(map(len, opening.parts)) <= _HELD_BYTES

    async def opened(self) -> Opened:
        """Open it; see `ChatStore.open_generation`."""
        await self._write_before()
        for attempt in range(TRIES):
            message = self._message()
            actions = self._actions(message)
            try:
                await self._table.transact([action for _, action in actions])
            except Cancelled as refused:
                failed = {name for (name, _), no in zip(actions, refused.failed, strict=True) if no}
                if "generation" not in failed:  # else it is there: the answer of our first try was lost
                    claimed = await self._why_not(failed)
                    if claimed is not None:
                        return Opened(Commit.SUPERSEDED, claimed=claimed)
                    await asyncio.sleep(_PAUSE_SECONDS * attempt * random.random())
                    continue
            if self._commit is not Commit.COMMITTED:
                await self._remove_parts()
            said = None if message is None else message_of(message, self._opening.said or {})
            return Opened(self._commit, said)
        raise StoreUnavailable("too many write to the chat at once")

    async def _write_before(self) -> None:
        if self._opening.said is not None:
            owner = f"M#{self._opening.branch.id}"
            self._written = await self._conversation.documents.written(self._life.partition, owner, self._opening.said)
        if not self._held:
            await self._table.write_all([put(item) for item in self._parts])

    def _message(self) -> Item | None:
        """Return what the user said as an item at the branch's end."""
        if self._written is None:
            return None
        branch = self._opening.branch.id
        return self._conversation.message_items(self._life, branch, self._last + 1, [self._written])[0]

    def _actions(self, message: Item | None) -> list[tuple[str, Action]]:
        """Return the transaction as things stand, each of its actions with what a refusal of it is about."""
        opening, life = self._opening, self._life
        generation = _generation_item(life, opening.generation, opening.expires, self._now)
        actions = [*self._audit_actions(), ("generation", putting(generation, ABSENT))]
        if opening.key is not None:
            said = {"gid": text(self._ticket.generation_id), "request": text(opening.request)}
            binding = life.key(claim_sk(opening.key)) | said | expiring(opening.expires) | stamps(self._now)
            actions += [("claim", putting(binding, *unclaimed(self._now)))]
        if message is not None:
            counting = updating(life.key(branch_sk(opening.branch.id)), counts_on(self._last, 1, self._now))
            actions += [("branch", counting), ("branch", putting(message, ABSENT))]
        return actions

    def _audit_actions(self) -> list[tuple[str, Action]]:
        """Return what makes the audit the newest; nothing but the check of the life where a later one is already."""
        if self._commit is not Commit.COMMITTED:
            return [("head", self._life.lives())]
        ticket, opening = self._ticket, self._opening
        head = updating(head_key(ticket.account, ticket.chat_id), becomes_newest(ticket, self._now))
        record = record_item(ticket, opening.audit, opening.audit_expires, self._now)
        written = [record, *(self._parts if self._held else ())]
        return [("head", head), *(("audit", putting(item)) for item in written)]

    async def _why_not(self, failed: set[str]) -> Claim | None:
        """Look at what refused; return whose the key is, or None where it may be tried again."""
        if "head" in failed:
            item = await self._table.get(head_key(self._ticket.account, self._ticket.chat_id))
            if item is None or head_of(item, self._now).epoch != self._ticket.epoch:
                await self._remove_all()
                raise ChatNotFound("no such chat")
            self._commit = Commit.SUPERSEDED
        if "claim" in failed and self._opening.key is not None:
            stored = await self._table.get(self._life.key(claim_sk(self._opening.key)))
            claimed = claim_of(stored, self._now)
            if claimed is not None:
                await self._remove_all()
                return claimed
        if "branch" in failed:
            known = await self._conversation.branch(self._life, self._opening.branch.id)
            if known is None:
                await self._remove_all()
                raise ChatNotFound("no such branch")
            self._last = known.last
        return None

    async def _remove_all(self) -> None:
        """Remove what was written before; what cannot be removed now is unreadable, and goes with its life."""
        await self._remove_parts()
        message = self._message()
        if message is not None:
            await self._conversation.documents.discard([message])

    async def _remove_parts(self) -> None:
        if not self._held:
            with contextlib.suppress(StoreUnavailable):
                await remove_own(self._table, self._ticket)


def said_so_far(text: str, reasoning: str) -> bytes:
    """Return what was said so far as far as an item holds it: reasoning goes first, then the end of the text."""
    said = compressed({"text": text, "reasoning": reasoning})
    while len(said) > PART_BYTES:
        reasoning, text = "", text if reasoning else text[: len(text) // 2]
        said = compressed({"text": text, "reasoning": reasoning})
    return said


def _generation_item(life: Life, generation: GenerationRecord, expires: int, now: float) -> Item:
    ended = {} if generation.end is None else end_item(generation.end)
    message = {} if generation.message is None else {"message": text(generation.message)}
    return {
        **life.key(generation_sk(generation.id)),
        "id": text(generation.id),
        "doc": {"B": compressed(generation.document)},
        "said": {"B": said_so_far(generation.text, generation.reasoning)},
        "status": text(generation.status.value),
        "deadline": number(generation.deadline),
        **ended,
        **message,
        **expiring(expires),
        **stamps(now, generation.created_at),
    }
