"""An account's characters, personas, lorebooks and memories over the table ``chats``.

::

    put     1 GetItem, 1 PutItem; 1 BatchWriteItem for each 8 parts and 1 Query beyond 300 KB compressed
    get     1 BatchGetItem for each 100, and for the parts of each large one
    list    1 Query, and 1 BatchGetItem for the parts of each large one
    remove  1 GetItem, 1 DeleteItem, and 1 Query for parts

A reader never sees a mixture: see `documents`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bastion.stores.dynamodb.actions import deletion
from bastion.stores.dynamodb.client import ConditionFailed, DynamoClient, Meter, Table
from bastion.stores.dynamodb.conditions import is_version, is_write
from bastion.stores.dynamodb.documents import PART_BYTES, Documents, part_keys
from bastion.stores.dynamodb.items import (
    Item,
    account_partition,
    integer_of,
    key_of,
    number,
    number_of,
    stamps,
    text,
    text_of,
)
from bastion.stores.dynamodb.places import library_key, library_sk, owner_of
from contextshift.chats import LibraryKind, LibraryRecord, Page
from contextshift.errors import InvalidInput, StoreUnavailable
from contextshift.ports import Clock, Random

__all__ = ["DynamoLibrary"]

_TRIES = 12
_CURSOR = "after:"
_ABANDONED_SECONDS = 3600
"""No write takes longer: older parts that no item names were left by a writer that was killed."""


class DynamoLibrary:
    """A `LibraryStore` over DynamoDB. Every method raises StoreUnavailable when two tries have failed."""

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
        self._clock = clock

    async def put(
        self, account: str, kind: LibraryKind, record: LibraryRecord, expected: int | None
    ) -> LibraryRecord | None:
        """Store a document as the next version; see `LibraryStore.put`."""
        key, attributes = library_key(account, kind, record.id), None
        for _ in range(_TRIES):
            before = await self._table.get(key)
            version = 0 if before is None else integer_of(before, "version")
            if expected not in (None, version):
                return None
            if attributes is None:
                owner = library_sk(kind, record.id)
                attributes = await self._documents.written(account_partition(account), owner, record.document)
            item = key | attributes | self._said(record, before, version + 1)
            if await self._stored(item, version):
                await self._tidy(item, before)
                return _record_of(item, record.document)
            if expected is not None:
                await self._documents.discard([item])
                return None
        raise StoreUnavailable("too many write it at once")

    async def get(self, account: str, kind: LibraryKind, ids: Sequence[str]) -> Sequence[LibraryRecord]:
        """Return those that there are; see `LibraryStore.get`."""
        keys = [library_key(account, kind, id) for id in dict.fromkeys(ids)]
        whole = await self._documents.whole(await self._table.get_all(keys))
        found = {text_of(item, "id"): _record_of(item, document) for item, document in whole}
        return [found[id] for id in ids if id in found]

    async def list(self, account: str, kind: LibraryKind, limit: int, cursor: str | None) -> Page[LibraryRecord]:
        """List a kind by id; see `LibraryStore.list`."""
        if cursor is not None and not cursor.startswith(_CURSOR):
            raise InvalidInput("no cursor of this list", "cursor", "invalid_cursor")
        # A space comes before all that may follow in a longer id.
        low = library_sk(kind, (cursor or "").removeprefix(_CURSOR) + " ")
        items = await self._table.query(account_partition(account), low, library_sk(kind, "~"), most=limit + 1)
        whole = await self._documents.whole(items[:limit])
        more = _CURSOR + text_of(items[limit - 1], "id") if len(items) > limit else None
        return Page([_record_of(*pair) for pair in whole], more)

    async def remove(self, account: str, kind: LibraryKind, id: str) -> bool:
        """Remove one; see `LibraryStore.remove`. Of two at once both may be told that they did."""
        key = library_key(account, kind, id)
        for seen in range(_TRIES):
            item = await self._table.get(key)
            if item is None:
                return seen > 0
            try:
                await self._table.delete(key, *is_write(text_of(item, "write")))
            except ConditionFailed:
                continue  # replaced meanwhile, or removed: perhaps by us, and the answer was lost
            await self._tidy(None, item)
            return True
        raise StoreUnavailable("too many write it at once")

    def _said(self, record: LibraryRecord, before: Item | None, version: int) -> Item:
        now = self._clock.now()
        said = {
            "id": text(record.id),
            "index": text(json.dumps(dict(record.index))),
            "version": number(version),
        }
        return said | stamps(now, None if before is None else number_of(before, "created_at"))

    async def _stored(self, item: Item, version: int) -> bool:
        """Write an item in place of a version; False where that is not there any more."""
        try:
            await self._table.put(item, *is_version(version))
        except ConditionFailed as refused:
            stored = refused.item or await self._table.get(key_of(item))
            return stored is not None and stored.get("write") == item["write"]
        return True

    async def _tidy(self, item: Item | None, before: Item | None) -> None:
        """Remove the parts of what was replaced or removed, and those that killed writers left."""
        if before is not None:
            await self._documents.discard([before])
        some = item or before
        if some is None or not any("parts" in one for one in (item, before) if one is not None):
            return
        prefix = f"P#{owner_of(some)}#"
        only = ("pk", "sk", "created_at")
        found = await self._table.query(text_of(some, "pk"), prefix, prefix + "~", only=only)
        kept = {key["sk"]["S"] for key in part_keys(item or {})}
        old = self._clock.now() - _ABANDONED_SECONDS
        left = [i for i in found if text_of(i, "sk") not in kept and number_of(i, "created_at") < old]
        await self._table.write_all([deletion(key_of(i)) for i in left])


def _record_of(item: Item, document: Mapping[str, Any]) -> LibraryRecord:
    return LibraryRecord(
        id=text_of(item, "id"),
        document=document,
        version=integer_of(item, "version"),
        created_at=number_of(item, "created_at"),
        updated_at=number_of(item, "updated_at"),
        index=json.loads(text_of(item, "index")),
    )
