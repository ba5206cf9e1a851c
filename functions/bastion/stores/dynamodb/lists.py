"""Lists of an account's chats: an index of what never changes, and one read of what does.

An entry is made with its chat and goes with it; one that is left over is passed over and removed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from bastion.stores.dynamodb.actions import deletion
from bastion.stores.dynamodb.conditions import CHAT
from bastion.stores.dynamodb.conversation import Conversation, Life, chat_of
from bastion.stores.dynamodb.items import Item, check_schema, head_key, key_of, stamps, text, text_of, text_or_none
from bastion.stores.dynamodb.places import CFG, index_keys, list_partitions
from contextshift.chats import ChatRecord, Page
from contextshift.errors import InvalidInput

__all__ = ["index_items", "listed"]

_CURSOR = re.compile(r"[0-9]{20}#[A-Za-z0-9._:-]{1,128}#[0-9a-f]+\Z")
_FIRST, _LAST = " ", "~"


def index_items(life: Life, configuration: Item, now: float) -> list[Item]:
    """Return a chat's entries in the lists it belongs to."""
    said = {"chat": text(life.chat), "epoch": text(life.epoch)}
    return [key | said | stamps(now) for key in index_keys(life.account, life.chat, configuration)]


async def listed(
    conversation: Conversation, account: str, user_id: str | None, limit: int, cursor: str | None
) -> Page[ChatRecord]:
    """Return a page of chats, the newest first. A cursor is the place of the last chat that was delivered."""
    if cursor is not None and not _CURSOR.match(cursor):
        raise InvalidInput("no cursor of this list", "cursor", "invalid_cursor")
    found: list[tuple[str, ChatRecord]] = []
    while len(found) <= limit:
        entries = await _entries(conversation, list_partitions(account, user_id), limit + 1, cursor)
        found += await _alive(conversation, account, entries)
        if len(entries) <= limit:
            break
        cursor = text_of(entries[-1], "sk")
    page = found[:limit]
    return Page([chat for _, chat in page], page[-1][0] if len(found) > limit else None)


async def _entries(conversation: Conversation, partitions: Sequence[str], most: int, cursor: str | None) -> list[Item]:
    """Return the next entries of all shards together."""
    # One place further than asked for: the cursor's own is passed over.
    high, more = (_LAST, most) if cursor is None else (cursor, most + 1)
    reads = [conversation.table.query(pk, _FIRST, high, most=more, descending=True) for pk in partitions]
    entries = [item for shard in await asyncio.gather(*reads) for item in shard if text_of(item, "sk") != cursor]
    return sorted(entries, key=lambda item: text_of(item, "sk"), reverse=True)[:most]


async def _alive(conversation: Conversation, account: str, entries: Sequence[Item]) -> list[tuple[str, ChatRecord]]:
    """Return (place, chat) of the entries whose chats live, and remove the others."""
    lives = [Life(account, text_of(check_schema(entry), "chat"), text_of(entry, "epoch")) for entry in entries]
    keys = [key for life in lives for key in (head_key(account, life.chat), life.key(CFG))]
    unique = {(key["pk"]["S"], key["sk"]["S"]): key for key in keys}
    stored = {(text_of(i, "pk"), text_of(i, "sk")): i for i in await conversation.table.get_all(list(unique.values()))}
    found: list[tuple[str, ChatRecord]] = []
    stale: list[Item] = []
    for entry, life in zip(entries, lives, strict=True):
        head = stored.get((head_key(account, life.chat)["pk"]["S"], "H"))
        configuration = stored.get((life.partition, CFG))
        if head is None or text_or_none(head, "epoch") != life.epoch:
            stale.append(entry)
        elif configuration is not None and text_of(head, "kind") == CHAT:
            whole = await conversation.documents.whole([configuration])
            found += [(text_of(entry, "sk"), chat_of(life.chat, *pair)) for pair in whole]
    await conversation.table.write_all([deletion(key_of(entry)) for entry in stale])
    return found
