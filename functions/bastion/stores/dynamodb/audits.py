"""The life of an audit over the table ``chats``: one conditional write decides which generation is newest.

::

    begin    1 UpdateItem     head: a place in the chat's order (2 in a stored chat)
    prepare  1 BatchWriteItem record and parts (one more request for each 25 items)
    commit   1 UpdateItem     head: cur = my place, if no later one is there
    finish   1 UpdateItem     record: how it ended, if it has not ended
    sweep    1 GetItem, 1 Query, and 1 BatchWriteItem where something is to be removed
    read     1 GetItem, 1 Query
    delete   1 GetItem, 1 UpdateItem, 1 Query, 1 BatchWriteItem for each 25 items

No transaction is needed: what is not committed cannot be read, and what is committed does not change, save
its record, once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from bastion.stores.dynamodb.actions import put
from bastion.stores.dynamodb.client import ConditionFailed, DynamoClient, Meter, Table
from bastion.stores.dynamodb.conditions import (
    becomes_newest,
    next_place,
    next_place_in_chat,
    once_ended,
    still_prepared,
)
from bastion.stores.dynamodb.items import (
    Item,
    Key,
    head_key,
    integer_of,
    life_partition,
    record_sk,
    text,
    text_of,
    ticket_partition,
)
from bastion.stores.dynamodb.records import (
    Head,
    Torn,
    audit_of,
    end_item,
    head_of,
    part_items,
    record_item,
    same_end,
)
from bastion.stores.dynamodb.removal import bury, purge, remove_own, remove_replaced
from contextshift.errors import StoreUnavailable
from contextshift.ports import AuditEnd, AuditRecord, Clock, Commit, Random, StoredAudit, Ticket

__all__ = ["DynamoAuditStore"]

_EPOCH_BYTES = 10
# A reader starts again when a whole commit and its sweep passed between its two reads; more is damage.
_READ_TRIES = 10
_KIND_TRIES = 3


class DynamoAuditStore:
    """An `AuditStore` over DynamoDB. Every method raises StoreUnavailable when two tries have failed.

    ``client`` is boto3's (`dynamodb_client`) or anything with its six verbs; ``meter``, if given, is told
    every round trip with its capacity units.
    """

    def __init__(
        self, client: DynamoClient, table: str, *, clock: Clock, random: Random, meter: Meter | None = None
    ) -> None:
        self._table = Table(client, table, meter)
        self._clock = clock
        self._random = random

    async def begin(self, account: str, chat_id: str, generation_id: str, *, now: float, expires: int | None) -> Ticket:
        """Take the next place in the chat's order; see `AuditWriter.begin`."""
        fresh = self._random.token(_EPOCH_BYTES).hex()
        head = await self._next_place(head_key(account, chat_id), fresh, now, expires)
        seq = integer_of(head, "seq")
        return Ticket(account, chat_id, text_of(head, "epoch"), seq, f"{seq}-{generation_id}")

    async def prepare(
        self, ticket: Ticket, record: AuditRecord, parts: Sequence[bytes], *, expires: int | None
    ) -> None:
        """Write parts and record under keys of this generation's own; see `AuditWriter.prepare`.

        A later attempt (the one corrected retry) may already be readable, so its record waits for its parts.
        """
        now = self._clock.now()
        pieces = [put(item) for item in part_items(ticket, record.attempt, parts, expires, now)]
        item = record_item(ticket, record, expires, now)
        if record.attempt == 1:
            await self._table.write_all([*pieces, put(item)])
            return
        await self._table.write_all(pieces)
        try:
            await self._table.put(item, *still_prepared(ticket))
        except ConditionFailed:
            # Ended, replaced or deleted meanwhile: this attempt has no record to belong to.
            await remove_own(self._table, ticket, [record.attempt])

    async def commit(self, ticket: Ticket) -> Commit:
        """Make the prepared audit the newest; see `AuditWriter.commit`. A loser removes its own parts."""
        key = head_key(ticket.account, ticket.chat_id)
        try:
            await self._table.update(key, becomes_newest(ticket, self._clock.now()))
        except ConditionFailed as refused:
            outcome = self._why_not(ticket, await self._stored(refused, key))
        else:
            return Commit.COMMITTED
        if outcome is not Commit.COMMITTED:
            # The outcome stands. What stays behind is unreadable, and the next sweep or purge takes it.
            with contextlib.suppress(StoreUnavailable):
                await remove_own(self._table, ticket)
        return outcome

    async def finish(self, ticket: Ticket, end: AuditEnd) -> bool:
        """End a prepared audit once; see `AuditWriter.finish`. The same end counts whenever it came."""
        key = {"pk": text(ticket_partition(ticket)), "sk": text(record_sk(ticket.seq))}
        try:
            await self._table.update(key, once_ended(ticket, end_item(end), self._clock.now()))
        except ConditionFailed as refused:
            return same_end(await self._stored(refused, key), ticket, end)
        return True

    async def sweep(self, ticket: Ticket) -> None:
        """Remove what the chat's newest audit replaced, and ended lives whose last purge is due."""
        head = await self._head(ticket.account, ticket.chat_id)
        if head is None or head.epoch != ticket.epoch or head.current is None:
            return
        await remove_replaced(self._table, ticket, head.current)
        now = self._clock.now()
        if head.buried and now >= head.purge_after:
            await purge(self._table, ticket.account, ticket.chat_id, head, now)

    async def read(self, account: str, chat_id: str) -> StoredAudit | None:
        """Return the newest committed audit, None where there is none; see `AuditReader.read`."""
        for _ in range(_READ_TRIES):
            head = await self._head(account, chat_id)
            if head is None or head.expired or head.epoch is None or head.current is None:
                return None
            partition, record = life_partition(account, chat_id, head.epoch), record_sk(head.current)
            items = await self._table.query(partition, record, record + "~")
            with contextlib.suppress(Torn):
                return audit_of(head.current, items, self._clock.now())
        raise StoreUnavailable("the audit is damaged")

    async def delete(self, account: str, chat_id: str) -> bool:
        """End the chat's life and purge it; False where there was none, though an earlier purge is resumed."""
        head = await self._head(account, chat_id)
        lived = head is not None and head.epoch is not None and not head.expired
        if head is not None and head.epoch is not None:
            head = await bury(self._table, account, chat_id, head.epoch, self._clock.now())
        if head is not None:
            await purge(self._table, account, chat_id, head, self._clock.now())
        return lived

    async def _next_place(self, key: Key, fresh: str, now: float, expires: int | None) -> Item:
        """Take a place in a chat of either kind; one that changes its kind over and over is not waited for."""
        for change in (next_place(fresh, now, expires), next_place_in_chat(now)) * _KIND_TRIES:
            with contextlib.suppress(ConditionFailed):
                return await self._table.update(key, change)
        raise StoreUnavailable("the chat is being made")

    async def _head(self, account: str, chat_id: str) -> Head | None:
        item = await self._table.get(head_key(account, chat_id))
        return None if item is None else head_of(item, self._clock.now())

    async def _stored(self, refused: ConditionFailed, key: Key) -> Item | None:
        """Return what made a condition fail; some servers do not say, so it is read."""
        return await self._table.get(key) if refused.item is None else refused.item

    def _why_not(self, ticket: Ticket, stored: Item | None) -> Commit:
        head = None if stored is None else head_of(stored, self._clock.now())
        if head is None or head.epoch != ticket.epoch:
            return Commit.DELETED
        if head.current is None or head.current < ticket.seq:
            raise StoreUnavailable("the head's condition failed for no reason it shows")
        return Commit.COMMITTED if head.current == ticket.seq else Commit.SUPERSEDED
