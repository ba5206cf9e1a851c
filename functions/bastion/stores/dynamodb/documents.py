"""Documents of any size: compressed, inside their item where it holds them, else in immutable parts beside it.

Parts are written before their item, under keys that only this write uses; the item names the write and carries
the hash of the whole. So a reader finds all of one version or misses a part, never a mixture; who misses one
reads the item again. Whoever replaces or removes an item removes its parts afterwards.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections.abc import Iterable
from typing import Any

from bastion.stores.dynamodb.actions import deletion, put
from bastion.stores.dynamodb.client import Table
from bastion.stores.dynamodb.items import Item, Key, check_schema, integer_of, number, stamps, text, text_of
from bastion.stores.dynamodb.places import owner_of, part_key
from bastion.stores.dynamodb.records import Torn
from contextshift.chats import Document
from contextshift.errors import StoreUnavailable
from contextshift.ports import Clock, Random

__all__ = ["PART_BYTES", "Documents", "compressed", "decompressed", "part_keys", "size_of"]

PART_BYTES = 300_000
_SMALL_BYTES = 1_000
"""Below this an item is one write unit as it is."""
_WRITE_BYTES = 10
_READ_TRIES = 10
_PARTS_AT_ONCE = 8


def compressed(document: Document) -> bytes:
    """Return a document as bytes. ASCII, because half a surrogate pair is no UTF-8."""
    plain = json.dumps(dict(document), separators=(",", ":")).encode("ascii")
    return plain if len(plain) < _SMALL_BYTES else zlib.compress(plain)


def decompressed(data: bytes) -> dict[str, Any]:
    """Return the document of bytes; JSON begins with a brace, which no zlib stream does."""
    document: dict[str, Any] = json.loads(data if data.startswith(b"{") else zlib.decompress(data))
    return document


def size_of(item: Item) -> int:
    """Return about how much of a transaction an item takes, in bytes."""
    return len(item["doc"]["B"]) * 4 // 3 + 1_000 if "doc" in item else 1_000


class Documents:
    """The documents of one table; ``part_bytes`` is how much of one an item takes."""

    def __init__(self, table: Table, *, clock: Clock, random: Random, part_bytes: int = PART_BYTES) -> None:
        self.part_bytes = part_bytes
        self._table = table
        self._clock = clock
        self._random = random

    def token(self) -> str:
        """Return what names one write."""
        return self._random.token(_WRITE_BYTES).hex()

    async def written(self, partition: str, owner: str, document: Document) -> Item:
        """Write a document's parts, if it has any, and return the attributes of its item."""
        data, write = compressed(document), self.token()
        if len(data) <= self.part_bytes:
            return {"doc": {"B": data}, "write": text(write)}
        parts = [data[start : start + self.part_bytes] for start in range(0, len(data), self.part_bytes)]
        common = stamps(self._clock.now())
        # Eight at a time: a request must come through within the time limit of the client.
        for start in range(0, len(parts), _PARTS_AT_ONCE):
            await self._table.write_all(
                [
                    put(part_key(partition, owner, write, index) | {"data": {"B": part}} | common)
                    for index, part in enumerate(parts[start : start + _PARTS_AT_ONCE], start)
                ]
            )
        sha = hashlib.sha256(data).hexdigest()
        return {"parts": number(len(parts)), "sha": text(sha), "write": text(write)}

    async def read(self, item: Item) -> dict[str, Any]:
        """Return an item's document. Raises Torn where a part is missing."""
        check_schema(item)
        if "doc" in item:
            return decompressed(bytes(item["doc"]["B"]))
        keys = part_keys(item)
        found = {text_of(part, "sk"): part for part in await self._table.get_all(keys)}
        data = b"".join(bytes(found[sk]["data"]["B"]) for key in keys if (sk := key["sk"]["S"]) in found)
        if hashlib.sha256(data).hexdigest() != text_of(item, "sha"):
            raise Torn
        return decompressed(data)

    async def get(self, key: Key) -> tuple[Item, dict[str, Any]] | None:
        """Return an item with its document, None where there is none."""
        for _ in range(_READ_TRIES):
            item = await self._table.get(key)
            if item is None:
                return None
            with contextlib.suppress(Torn):
                return item, await self.read(item)
        raise StoreUnavailable("a document is damaged")

    async def whole(self, items: Iterable[Item]) -> list[tuple[Item, dict[str, Any]]]:
        """Return items with their documents; those that change meanwhile as they are then, without the removed."""
        found: list[tuple[Item, dict[str, Any]] | None] = []
        for item in items:
            try:
                found.append((item, await self.read(item)))
            except Torn:
                found.append(await self.get({"pk": item["pk"], "sk": item["sk"]}))
        return [pair for pair in found if pair is not None]

    async def discard(self, items: Iterable[Item]) -> None:
        """Remove the parts of items that are replaced, removed or were never stored.

        What cannot be removed now is unreadable, and goes with the life it belongs to.
        """
        keys = [key for item in items for key in part_keys(item)]
        with contextlib.suppress(StoreUnavailable):
            await self._table.write_all([deletion(key) for key in keys])


def part_keys(item: Item) -> list[Key]:
    """Return where an item's parts are; none for one that holds its document itself."""
    partition, write = text_of(item, "pk"), text_of(item, "write")
    return [part_key(partition, owner_of(item), write, index) for index in range(integer_of(item, "parts"))]
