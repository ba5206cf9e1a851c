"""A stored chat's own items: branches, messages and its document, read and changed within one life of the chat.

Every change is a transaction that also checks the head: in a chat that was deleted meanwhile it leaves nothing.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bastion.stores.dynamodb.actions import Action, checking, putting, updating
from bastion.stores.dynamodb.client import Cancelled, Table
from bastion.stores.dynamodb.conditions import ABSENT, CHAT, counts_on, is_version, lives_in
from bastion.stores.dynamodb.documents import Documents, size_of
from bastion.stores.dynamodb.items import (
    Item,
    Key,
    check_schema,
    head_key,
    integer_of,
    life_partition,
    number,
    number_of,
    stamps,
    text,
    text_of,
    text_or_none,
)
from bastion.stores.dynamodb.places import CFG, branch_sk, key_at, message_sk, owner_of
from bastion.stores.dynamodb.records import head_of
from contextshift.chats import BranchRecord, ChatRecord, Document, LoadedChat, MessageRecord
from contextshift.errors import ChatNotFound, StoreUnavailable
from contextshift.paths import LAST_N, Stretch, stretches
from contextshift.ports import Clock, Ticket

__all__ = ["TRIES", "Conversation", "Life", "Replaced", "branch_item", "branch_of", "chat_of", "life_of", "message_of"]

TRIES = 12
_PAUSE_SECONDS = 0.02
_ACTIONS, _BYTES = 90, 3_000_000
"""What one transaction takes, with room for what goes with messages: DynamoDB allows 100 actions, 4 MB."""


class Replaced(Exception):
    """Raise when what was to be changed is not as it was read."""


@dataclass(frozen=True, slots=True)
class Life:
    """One life of a stored chat."""

    account: str
    chat: str
    epoch: str

    @property
    def partition(self) -> str:
        """Where all it owns is."""
        return life_partition(self.account, self.chat, self.epoch)

    def key(self, sort: str) -> Key:
        """Return the key of something it owns."""
        return key_at(self.partition, sort)

    def lives(self) -> Action:
        """Return the action that lets a transaction be only while this life is lived."""
        return checking(head_key(self.account, self.chat), *lives_in(self.epoch))


def life_of(ticket: Ticket) -> Life:
    """Return the life a ticket was taken in."""
    return Life(ticket.account, ticket.chat_id, ticket.epoch)


def chat_of(chat_id: str, item: Item, document: Mapping[str, Any]) -> ChatRecord:
    """Read a chat."""
    return ChatRecord(chat_id, document, text_or_none(item, "user_id"), *_stamps_of(item))


def message_of(item: Item, document: Mapping[str, Any]) -> MessageRecord:
    """Read a message."""
    return MessageRecord(text_of(item, "branch"), integer_of(item, "n"), document, *_stamps_of(item))


def branch_of(item: Item) -> BranchRecord:
    """Read a branch."""
    lineage = tuple((owner, last) for owner, last in json.loads(text_of(check_schema(item), "lineage")))
    return BranchRecord(
        text_of(item, "id"),
        lineage,
        text_or_none(item, "name"),
        number_of(item, "created_at"),
        integer_of(item, "last"),
    )


def branch_item(life: Life, branch: BranchRecord, write: str, last: int, now: float) -> Item:
    """Return a branch as an item, its numbers given up to ``last``."""
    name = {} if branch.name is None else {"name": text(branch.name)}
    said = {"id": text(branch.id), "lineage": text(json.dumps(branch.lineage)), "last": number(last)}
    return life.key(branch_sk(branch.id)) | said | name | {"write": text(write)} | stamps(now)


class Conversation:
    """What a life of a chat owns, over one table."""

    def __init__(self, table: Table, documents: Documents, clock: Clock) -> None:
        self.table = table
        self.documents = documents
        self._clock = clock

    async def living(self, account: str, chat_id: str) -> Life:
        """Return the life a stored chat has now. Raises ChatNotFound."""
        item = await self.table.get(head_key(account, chat_id))
        head = None if item is None else head_of(item, self._clock.now())
        if head is None or head.epoch is None or head.kind != CHAT:
            raise ChatNotFound("no such chat")
        return Life(account, chat_id, head.epoch)

    async def branch(self, life: Life, branch: str) -> BranchRecord | None:
        """Return a branch, None where there is none."""
        item = await self.table.get(life.key(branch_sk(branch)))
        return None if item is None else branch_of(item)

    async def load(self, life: Life, branch: str, *, also: Sequence[Key] = ()) -> tuple[LoadedChat | None, list[Item]]:
        """Read what a generation reads of a life, and what there is under ``also``. Raises ChatNotFound.

        Messages are read beside the branch that counts them: what it does not count yet was added meanwhile.
        """
        items, own = await asyncio.gather(
            self.table.get_all([life.key(CFG), life.key(branch_sk(branch)), *also]),
            self.read(life, (branch, 1, LAST_N)),
        )
        by_key = {text_of(item, "sk"): item for item in items}
        more = [by_key[key["sk"]["S"]] for key in also if key["sk"]["S"] in by_key]
        whole = await self.documents.whole([by_key[CFG]] if CFG in by_key else [])
        if not whole:
            raise ChatNotFound("no such chat")
        if branch_sk(branch) not in by_key:
            return None, more
        known = branch_of(by_key[branch_sk(branch)])
        shared = [stretch for stretch in stretches(known) if stretch[0] != branch]
        before = await asyncio.gather(*(self.read(life, stretch) for stretch in shared))
        messages = [message for stretch in before for message in stretch]
        messages += [message for message in own if message.n <= known.last]
        return LoadedChat(chat_of(life.chat, *whole[0]), known, messages), more

    async def read(
        self, life: Life, stretch: Stretch, *, most: int | None = None, descending: bool = False
    ) -> list[MessageRecord]:
        """Read one stretch of messages, or the first ``most`` of it."""
        branch, first, last = stretch
        low, high = message_sk(branch, first), message_sk(branch, last)
        items = await self.table.query(life.partition, low, high, most=most, descending=descending)
        return [message_of(*pair) for pair in await self.documents.whole(items)]

    async def append(self, life: Life, branch: str, documents: Sequence[Document]) -> list[MessageRecord] | None:
        """Add messages at a branch's end; None where there is no such branch.

        More than a transaction holds are written in several: the first takes numbers for all of them, so that
        nobody's come between. Where a later one fails, the error is raised and what was written stays.
        """
        if not documents:
            return None if await self.branch(life, branch) is None else []
        written = [await self.documents.written(life.partition, f"M#{branch}", document) for document in documents]
        for attempt in range(TRIES):
            known = await self.branch(life, branch)
            if known is None:
                await self._undo(life, branch, written)
                return None
            items = self.message_items(life, branch, known.last + 1, written)
            counting = updating(
                life.key(branch_sk(branch)),
                counts_on(known.last, len(items), self._clock.now()),
            )
            if await self._appended(life, counting, items):
                return [message_of(item, document) for item, document in zip(items, documents, strict=True)]
            await asyncio.sleep(_PAUSE_SECONDS * attempt * random.random())
        raise StoreUnavailable("too many write to the chat at once")

    def message_items(self, life: Life, branch: str, first: int, written: Sequence[Item]) -> list[Item]:
        """Return new messages as items, from the attributes of their documents."""
        now = self._clock.now()
        return [
            life.key(message_sk(branch, n))
            | {"branch": text(branch), "n": number(n), "version": number(1)}
            | attributes
            | stamps(now)
            for n, attributes in enumerate(written, first)
        ]

    async def replace(self, life: Life, item: Item, document: Document, expected: int) -> Item:
        """Replace the document of an item that was read. Raises Replaced or ChatNotFound."""
        if integer_of(item, "version") != expected:
            raise Replaced
        changed, action = await self.replacement(life, item, document)
        try:
            await self.table.transact([life.lives(), action])
        except Cancelled as refused:
            if not await self.is_ours(changed):
                await self.documents.discard([changed])
                raise ChatNotFound("no such chat") if refused.failed[0] else Replaced from refused
        await self.documents.discard([item])
        return changed

    async def replacement(self, life: Life, item: Item, document: Document) -> tuple[Item, Action]:
        """Return an item with another document as its next version, and the action that writes it."""
        version = integer_of(item, "version")
        kept = {name: value for name, value in item.items() if name not in ("doc", "parts", "sha", "write")}
        changed = (
            kept
            | await self.documents.written(life.partition, owner_of(item), document)
            | {"version": number(version + 1)}
            | stamps(self._clock.now(), number_of(item, "created_at"))
        )
        return changed, putting(changed, *is_version(version))

    async def _appended(self, life: Life, counting: Action, items: Sequence[Item]) -> bool:
        """Write messages; False where others took their numbers. Raises ChatNotFound."""
        first: list[Action] = [counting]
        for batch in _batches(items):
            actions = [life.lives(), *first, *(putting(item, ABSENT) for item in batch)]
            try:
                await self.table.transact(actions)
            except Cancelled as refused:
                if not await self.is_ours(batch[0]):
                    if refused.failed[0]:
                        await self.documents.discard(items)
                        raise ChatNotFound("no such chat") from refused
                    return False
            first = []
        return True

    async def is_ours(self, item: Item) -> bool:
        """Say whether an item is stored as this write made it: a transaction's answer was lost."""
        stored = await self.table.get({"pk": item["pk"], "sk": item["sk"]})
        return stored is not None and stored.get("write") == item["write"]

    async def _undo(self, life: Life, branch: str, written: Sequence[Item]) -> None:
        await self.documents.discard(self.message_items(life, branch, 1, written))


def _batches(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Split items into what transactions take."""
    batch: list[Item] = []
    size = 0
    for item in items:
        if batch and (len(batch) == _ACTIONS or size + size_of(item) > _BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += size_of(item)
    if batch:
        yield batch


def _stamps_of(item: Item) -> tuple[int, float, float]:
    check_schema(item)
    return integer_of(item, "version"), number_of(item, "created_at"), number_of(item, "updated_at")
