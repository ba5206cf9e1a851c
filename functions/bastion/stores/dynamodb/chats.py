"""Stored chats over the table ``chats``, in the partition of the life that their audits have.

::

    create    1 TransactWriteItems (head, document, branch, messages, lists); more where it holds more than one
    chat      2 GetItem
    change    2 GetItem, 1 TransactWriteItems
    chats     1 Query for each shard, at once; 1 BatchGetItem for each 50 chats
    fork      1 GetItem, 1 TransactWriteItems
    branches  1 GetItem, 1 Query
    append    2 GetItem, 1 TransactWriteItems for each 90 messages or 3 MB
    messages  2 GetItem, 1 Query for each stretch of the path
    message   2 GetItem
    edit      2 GetItem, 1 TransactWriteItems
    remove    2 GetItem, 1 DeleteItem
    load      1 GetItem, then at once 1 BatchGetItem and 1 Query; in a fork, then 1 Query for each ancestor, at once

A deletion is `DynamoAuditStore.delete`: it ends the life and purges all that is here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from bastion.stores.dynamodb.actions import Action, putting, updating
from bastion.stores.dynamodb.client import Cancelled, ConditionFailed
from bastion.stores.dynamodb.conditions import ABSENT, CHAT, MAKING, begins_chat, is_write, opens_chat
from bastion.stores.dynamodb.conversation import (
    TRIES,
    Life,
    Replaced,
    branch_item,
    branch_of,
    chat_of,
    message_of,
)
from bastion.stores.dynamodb.documents import compressed
from bastion.stores.dynamodb.generations import DynamoGenerations
from bastion.stores.dynamodb.items import Item, head_key, number, number_of, stamps, text, text_of
from bastion.stores.dynamodb.lists import index_items, listed
from bastion.stores.dynamodb.places import CFG, message_sk
from bastion.stores.dynamodb.records import head_of
from bastion.stores.dynamodb.removal import bury, purge
from contextshift.chats import (
    MAIN,
    BranchRecord,
    ChatRecord,
    Document,
    LoadedChat,
    MessageRecord,
    Page,
    place_of,
)
from contextshift.errors import ChatNotFound, StoreUnavailable
from contextshift.paths import stretches_after

__all__ = ["DynamoChats"]

_EPOCH_BYTES = 10
_CREATED_AT_ONCE = 90


class DynamoChats(DynamoGenerations):
    """A `ChatStore` over DynamoDB. Every method raises StoreUnavailable when two tries have failed."""

    async def create(self, account: str, chat: ChatRecord, messages: Sequence[Document] = ()) -> ChatRecord | None:
        """Create a chat with its first messages; see `ChatStore.create`.

        What a transaction cannot hold is written before anybody sees the chat. Where that fails, what was
        written is removed; if the process is killed the name stays taken until the chat is deleted.
        """
        life = Life(account, chat.id, self._random.token(_EPOCH_BYTES).hex())
        sizes = [len(compressed(document)) for document in (chat.document, *messages)]
        if len(sizes) <= _CREATED_AT_ONCE and sum(sizes) <= self._documents.part_bytes:
            return await self._born(life, chat, CHAT, messages)
        if await self._born(life, replace(chat, document={}), MAKING, ()) is None:
            return None
        try:
            return await self._furnished(life, chat, messages)
        except BaseException:
            with contextlib.suppress(StoreUnavailable):
                await self._unmade(life)
            raise

    async def chat(self, account: str, chat_id: str) -> ChatRecord:
        """Return a chat's document; see `ChatStore.chat`."""
        life = await self._conversation.living(account, chat_id)
        return chat_of(chat_id, *await self._configuration(life))

    async def change(self, account: str, chat_id: str, document: Document, expected: int) -> ChatRecord | None:
        """Replace a chat's document; see `ChatStore.change`."""
        life = await self._conversation.living(account, chat_id)
        item, _ = await self._configuration(life)
        try:
            return chat_of(chat_id, await self._conversation.replace(life, item, document, expected), document)
        except Replaced:
            return None

    async def chats(self, account: str, user_id: str | None, limit: int, cursor: str | None) -> Page[ChatRecord]:
        """List chats, the newest first; see `ChatStore.chats`."""
        return await listed(self._conversation, account, user_id, limit, cursor)

    async def fork(self, account: str, chat_id: str, branch: BranchRecord) -> bool:
        """Add a branch; see `ChatStore.fork`."""
        life = await self._conversation.living(account, chat_id)
        item = branch_item(life, branch, self._documents.token(), branch.first - 1, self._clock.now())
        try:
            await self._table.transact([life.lives(), putting(item, ABSENT)])
        except Cancelled as refused:
            if refused.failed[0]:
                raise _gone() from refused
            return await self._conversation.is_ours(item)
        return True

    async def branches(self, account: str, chat_id: str) -> Sequence[BranchRecord]:
        """Return all branches; see `ChatStore.branches`."""
        life = await self._conversation.living(account, chat_id)
        found = [branch_of(item) for item in await self._table.query(life.partition, "B#", "B#~")]
        return sorted(found, key=lambda branch: (branch.id != MAIN, branch.created_at, branch.id))

    async def append(
        self, account: str, chat_id: str, branch: str, documents: Sequence[Document]
    ) -> Sequence[MessageRecord] | None:
        """Add messages at a branch's end; see `ChatStore.append`, and `Conversation.append` for very many."""
        life = await self._conversation.living(account, chat_id)
        return await self._conversation.append(life, branch, documents)

    async def messages(
        self, account: str, chat_id: str, branch: str, limit: int, cursor: str | None, *, newest_first: bool
    ) -> Page[MessageRecord] | None:
        """Return some messages of a branch's path; see `ChatStore.messages`."""
        life = await self._conversation.living(account, chat_id)
        known = await self._conversation.branch(life, branch)
        if known is None:
            return None
        found: list[MessageRecord] = []
        for stretch in stretches_after(known, cursor, newest_first=newest_first):
            most = limit + 1 - len(found)
            found += await self._conversation.read(life, stretch, most=most, descending=newest_first)
            if len(found) > limit:
                break
        return Page(found[:limit], found[limit - 1].id if len(found) > limit else None)

    async def message(self, account: str, chat_id: str, message: str) -> MessageRecord | None:
        """Return one message; see `ChatStore.message`."""
        found = await self._message(await self._conversation.living(account, chat_id), message)
        return None if found is None else message_of(*found)

    async def edit(
        self, account: str, chat_id: str, message: str, document: Document, expected: int
    ) -> MessageRecord | None:
        """Replace a message's document; see `ChatStore.edit`."""
        life = await self._conversation.living(account, chat_id)
        found = await self._message(life, message)
        if found is None:
            return None
        try:
            return message_of(await self._conversation.replace(life, found[0], document, expected), document)
        except Replaced:
            return None

    async def remove(self, account: str, chat_id: str, message: str) -> bool:
        """Remove a message; see `ChatStore.remove`. Of two at once both may be told that they did."""
        life = await self._conversation.living(account, chat_id)
        for seen in range(TRIES):
            found = await self._message(life, message)
            if found is None:
                return seen > 0
            item, _ = found
            try:
                await self._table.delete({"pk": item["pk"], "sk": item["sk"]}, *is_write(text_of(item, "write")))
            except ConditionFailed:
                continue  # edited meanwhile, or removed: perhaps by us, and the answer was lost
            await self._documents.discard([item])
            return True
        raise StoreUnavailable("the message changes without end")

    async def load(self, account: str, chat_id: str, branch: str) -> LoadedChat | None:
        """Return what a generation reads; see `ChatStore.load`."""
        life = await self._conversation.living(account, chat_id)
        return (await self._conversation.load(life, branch))[0]

    async def _born(self, life: Life, chat: ChatRecord, kind: str, messages: Sequence[Document]) -> ChatRecord | None:
        """Begin a life with all that one transaction holds; None where the chat is alive already."""
        now = self._clock.now()
        configuration = await self._configured(life, chat, now)
        written = [await self._documents.written(life.partition, f"M#{MAIN}", document) for document in messages]
        items = [
            configuration,
            branch_item(life, BranchRecord(MAIN), self._documents.token(), len(messages), now),
            *self._conversation.message_items(life, MAIN, 1, written),
            *index_items(life, configuration, now),
        ]
        actions: list[Action] = [
            updating(head_key(life.account, life.chat), begins_chat(life.epoch, kind, now)),
            *(putting(item) for item in items),
        ]
        for _ in range(TRIES):
            try:
                await self._table.transact(actions)
            except Cancelled:
                if await self._is_free(life):
                    continue
                if not await self._is_alive(life):
                    return None
            return chat_of(chat.id, configuration, chat.document)
        raise StoreUnavailable("the chat is made and deleted without end")

    async def _furnished(self, life: Life, chat: ChatRecord, messages: Sequence[Document]) -> ChatRecord:
        """Write what did not fit, then let the chat be seen. One that is deleted meanwhile was created all the same."""
        empty = await self._table.get(life.key(CFG))
        created = self._clock.now() if empty is None else number_of(empty, "created_at")
        configuration = await self._configured(life, chat, created)
        try:
            await self._table.transact([life.lives(), putting(configuration)])
            await self._conversation.append(life, MAIN, messages)
            await self._table.update(head_key(life.account, life.chat), opens_chat(life.epoch, self._clock.now()))
        except (Cancelled, ConditionFailed, ChatNotFound):
            await self._documents.discard([configuration])
        return chat_of(chat.id, configuration, chat.document)

    async def _unmade(self, life: Life) -> None:
        """End and purge a life that could not be furnished."""
        now = self._clock.now()
        head = await bury(self._table, life.account, life.chat, life.epoch, now)
        if head is not None:
            await purge(self._table, life.account, life.chat, head, now)

    async def _configured(self, life: Life, chat: ChatRecord, now: float) -> Item:
        attributes = await self._documents.written(life.partition, CFG, chat.document)
        user = {} if chat.user_id is None else {"user_id": text(chat.user_id)}
        return life.key(CFG) | {"version": number(1)} | user | attributes | stamps(now)

    async def _is_free(self, life: Life) -> bool:
        """Say whether the name can be taken now: an expired chat of the proxy is deleted for it."""
        item = await self._table.get(head_key(life.account, life.chat))
        head = None if item is None else head_of(item, self._clock.now())
        if head is None or head.epoch is None:
            return True
        if not head.expired:
            return False
        await self._unmade(Life(life.account, life.chat, head.epoch))
        return True

    async def _is_alive(self, life: Life) -> bool:
        """Say whether the chat lives this very life: the answer of its making was lost."""
        item = await self._table.get(head_key(life.account, life.chat))
        return item is not None and text_of(item, "epoch") == life.epoch

    async def _configuration(self, life: Life) -> tuple[Item, Document]:
        found = await self._documents.get(life.key(CFG))
        if found is None:
            raise _gone()
        return found

    async def _message(self, life: Life, message: str) -> tuple[Item, Document] | None:
        place = place_of(message)
        return None if place is None else await self._documents.get(life.key(message_sk(*place)))


def _gone() -> ChatNotFound:
    return ChatNotFound("no such chat")
