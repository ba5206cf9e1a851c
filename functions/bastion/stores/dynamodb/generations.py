"""Generations of stored chats over the table ``chats``.

::

    begin_generation  1 UpdateItem          head: a place in the chat's order; then as `load` without its first
    open_generation   1 TransactWriteItems  head, audit, generation, key, message and branch, while the chat lives;
                                            before it 1 BatchWriteItem for each 25 parts of what it cannot hold
    progress          1 UpdateItem          the generation
    end_generation    1 GetItem             the branch, or the message that is replaced
                      1 TransactWriteItems  audit, generation, message and branch, while the chat lives
    generation        2 GetItem
    cancel            1 GetItem, 1 UpdateItem
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from bastion.stores.dynamodb.actions import Action, putting, updating
from bastion.stores.dynamodb.client import Cancelled, ConditionFailed, DynamoClient, Meter, Table
from bastion.stores.dynamodb.conditions import (
    ABSENT,
    cancels,
    counts_on,
    ends_generation,
    next_place_in_chat,
    once_ended,
    progresses,
)
from bastion.stores.dynamodb.conversation import TRIES, Conversation, Life, life_of, message_of
from bastion.stores.dynamodb.documents import PART_BYTES, Documents, decompressed
from bastion.stores.dynamodb.items import (
    Item,
    check_schema,
    expired,
    head_key,
    integer_of,
    number_of,
    record_sk,
    text_of,
    text_or_none,
)
from bastion.stores.dynamodb.openings import OpeningWay, claim_of, said_so_far
from bastion.stores.dynamodb.places import branch_sk, claim_sk, generation_sk, message_sk
from bastion.stores.dynamodb.records import end_item, end_of
from contextshift.audit import AuditStatus
from contextshift.chats import Begun, GenerationRecord, MessageRecord, Opened, Opening, Saving, message_id, place_of
from contextshift.errors import ChatNotFound, MessageChanged, StoreUnavailable
from contextshift.ports import AuditEnd, Clock, Random, Ticket

__all__ = ["DynamoGenerations"]

_PAUSE_SECONDS = 0.02


@dataclass(slots=True)
class _Ending:
    """A generation's end on its way: what of it can still be written."""

    ticket: Ticket
    end: AuditEnd
    saving: Saving | None
    audited: bool = True
    """Whether there is an audit to end; one that a later generation replaced is gone."""
    written: Item | None = None
    """The attributes of the message's document."""
    item: Item | None = None
    """The message as this try would save it."""
    before: Item | None = None
    """The message that it replaces."""
    actions: list[tuple[str, Action]] = field(default_factory=list)


class DynamoGenerations:
    """The generations' part of `DynamoChats`."""

    def __init__(
        self,
        client: DynamoClient,
        table: str,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
        part_bytes: int = PART_BYTES,
    ) -> None:
        self._table = Table(client, table, meter)
        self._documents = Documents(self._table, clock=clock, random=random, part_bytes=part_bytes)
        self._conversation = Conversation(self._table, self._documents, clock)
        self._clock = clock
        self._random = random

    async def begin_generation(
        self, account: str, chat_id: str, branch: str, generation_id: str, *, now: float, key: str | None = None
    ) -> Begun:
        """Take the next place in a stored chat's order, and read it; see `ChatStore.begin_generation`."""
        try:
            head = await self._table.update(head_key(account, chat_id), next_place_in_chat(now))
        except ConditionFailed as refused:
            raise ChatNotFound("no such chat") from refused
        life, seq = Life(account, chat_id, text_of(head, "epoch")), integer_of(head, "seq")
        claims = [] if key is None else [life.key(claim_sk(key))]
        loaded, found = await self._conversation.load(life, branch, also=claims)
        ticket = Ticket(account, chat_id, life.epoch, seq, f"{seq}-{generation_id}")
        return Begun(ticket, loaded, claim_of(found[0], now) if found else None)

    async def open_generation(self, ticket: Ticket, opening: Opening) -> Opened:
        """Open a generation in one transaction; see `ChatStore.open_generation`."""
        return await OpeningWay(self._table, self._conversation, self._clock, ticket, opening).opened()

    async def progress(self, ticket: Ticket, text: str, reasoning: str) -> bool:
        """Keep the text so far; see `ChatStore.progress`. Of what an item cannot hold the beginning is kept."""
        key = life_of(ticket).key(generation_sk(ticket.generation_id))
        try:
            item = await self._table.update(key, progresses(said_so_far(text, reasoning), self._clock.now()))
        except ConditionFailed:
            return True
        return "cancelled" in item

    async def end_generation(self, ticket: Ticket, end: AuditEnd, saving: Saving | None) -> MessageRecord | None:
        """End audit and generation and save the message, in one transaction; see `ChatStore.end_generation`.

        What cannot be written any more (the audit that a later generation replaced) is left out and the rest tried
        again. A repeat returns the message as it is then.
        """
        ending = _Ending(ticket, end, saving)
        for attempt in range(TRIES):
            if not await self._plan(ending):
                return await self._changed(ending)
            try:
                await self._table.transact([action for _, action in ending.actions])
            except Cancelled as refused:
                failed = {name for (name, _), no in zip(ending.actions, refused.failed, strict=True) if no}
                if failed & {"life", "generation"}:
                    return await self._already(ending)
                if "audit" in failed:
                    ending.audited = False
                if saving is not None and saving.replaces is not None:
                    await self._discard(ending)
            else:
                if ending.before is not None:
                    await self._documents.discard([ending.before])
                return _saved(ending)
            await asyncio.sleep(_PAUSE_SECONDS * attempt * random.random())
        raise StoreUnavailable("too many write to the chat at once")

    async def generation(self, account: str, chat_id: str, generation_id: str) -> GenerationRecord | None:
        """Return a generation; see `ChatStore.generation`."""
        life = await self._conversation.living(account, chat_id)
        item = await self._table.get(life.key(generation_sk(generation_id)))
        return None if item is None or expired(item, self._clock.now()) else _generation_of(item)

    async def cancel(self, account: str, chat_id: str, generation_id: str) -> bool:
        """Ask for a generation to be cancelled; see `ChatStore.cancel`."""
        life = await self._conversation.living(account, chat_id)
        key, now = life.key(generation_sk(generation_id)), self._clock.now()
        item: Item | None
        try:
            item = await self._table.update(key, cancels(now))
        except ConditionFailed as refused:
            item = refused.item or await self._table.get(key)
        return item is not None and not expired(item, now)

    async def _plan(self, ending: _Ending) -> bool:
        """Work out the transaction that ends a generation as things stand; False where what it replaces has changed."""
        ticket, now = ending.ticket, self._clock.now()
        life = life_of(ticket)
        ending.item = ending.before = None
        message = await self._message_actions(life, ending)
        if not message and ending.saving is not None and ending.saving.replaces is not None:
            return False
        saved = None if ending.item is None else message_id(*_place(ending.item))
        ended = ends_generation(end_item(ending.end), saved, now)
        ending.actions = [("life", life.lives())]
        ending.actions += [("generation", updating(life.key(generation_sk(ticket.generation_id)), ended))]
        ending.actions += [("message", action) for action in message]
        if ending.audited:
            audit = once_ended(ticket, end_item(ending.end), now)
            ending.actions += [("audit", updating(life.key(record_sk(ticket.seq)), audit))]
        return True

    async def _message_actions(self, life: Life, ending: _Ending) -> list[Action]:
        """Return what saves the message: nothing where none is to be, or what it replaces has changed."""
        saving = ending.saving
        if saving is None:
            return []
        if saving.replaces is not None:
            return await self._replacing(life, ending, saving.replaces)
        known = await self._conversation.branch(life, saving.branch)
        if known is None:
            return []
        if ending.written is None:
            ending.written = await self._documents.written(life.partition, f"M#{saving.branch}", saving.document)
        (item,) = self._conversation.message_items(life, saving.branch, known.last + 1, [ending.written])
        ending.item = item
        counting = counts_on(known.last, 1, self._clock.now())
        return [updating(life.key(branch_sk(saving.branch)), counting), putting(item, ABSENT)]

    async def _replacing(self, life: Life, ending: _Ending, read: MessageRecord) -> list[Action]:
        """Return what replaces a message, if it still is as it was read."""
        before = await self._table.get(life.key(message_sk(read.branch, read.n)))
        if before is None or integer_of(before, "version") != read.version or ending.saving is None:
            return []
        ending.before = before
        ending.item, action = await self._conversation.replacement(life, before, ending.saving.document)
        return [action]

    async def _changed(self, ending: _Ending) -> MessageRecord | None:
        """Raise MessageChanged, unless an end of ours whose answer was lost made the change, or the chat is gone."""
        ticket = ending.ticket
        stored = await self._table.get(life_of(ticket).key(generation_sk(ticket.generation_id)))
        if stored is None or AuditStatus(text_of(stored, "status")).terminal:
            return await self._already(ending)
        try:
            lives = await self._conversation.living(ticket.account, ticket.chat_id) == life_of(ticket)
        except ChatNotFound:
            lives = False
        if not lives:
            return None
        raise MessageChanged("the message was changed meanwhile")

    async def _already(self, ending: _Ending) -> MessageRecord | None:
        """Return what an ended generation saved; what this try wrote beside it goes."""
        life = life_of(ending.ticket)
        stored = await self._table.get(life.key(generation_sk(ending.ticket.generation_id)))
        place = place_of(text_of(stored, "message")) if stored is not None else None
        found = None if place is None else await self._documents.get(life.key(message_sk(*place)))
        if ending.item is not None and (found is None or found[0].get("write") != ending.item["write"]):
            await self._discard(ending)
        return None if found is None else message_of(*found)

    async def _discard(self, ending: _Ending) -> None:
        if ending.item is not None:
            await self._documents.discard([ending.item])


def _saved(ending: _Ending) -> MessageRecord | None:
    if ending.item is None or ending.saving is None:
        return None
    return message_of(ending.item, ending.saving.document)


def _place(item: Item) -> tuple[str, int]:
    return text_of(item, "branch"), integer_of(item, "n")


def _generation_of(item: Item) -> GenerationRecord:
    check_schema(item)
    said = decompressed(bytes(item["said"]["B"]))
    return GenerationRecord(
        id=text_of(item, "id"),
        document=decompressed(bytes(item["doc"]["B"])),
        status=AuditStatus(text_of(item, "status")),
        created_at=number_of(item, "created_at"),
        deadline=number_of(item, "deadline"),
        text=said["text"],
        reasoning=said["reasoning"],
        message=text_or_none(item, "message"),
        end=end_of(item),
    )
