"""Where what a stored chat owns is, in the partition of its life, and where lists and libraries are.

::

    C#<account>#<chat>#<epoch>   CFG   B#<branch>   M#<branch>#<n>   G#<generation>   I#<sha256(key)>
                                 P#<owner>#<write>#<i>   parts of documents beyond an item
    L#<account>#<shard>          <created>#<chat>#<epoch>   all chats of an account
    U#<account>#<user>           <created>#<chat>#<epoch>   those of a user
    A#<account>                  CHAR#<id>  PERS#<id>  LORE#<id>  MEM#<id>   and their parts
"""

from __future__ import annotations

import hashlib
import zlib

from bastion.stores.dynamodb.items import Item, Key, account_partition, number_of, text, text_of, text_or_none
from contextshift.chats import LibraryKind

__all__ = [
    "CFG",
    "branch_sk",
    "claim_sk",
    "generation_sk",
    "index_keys",
    "index_sk",
    "key_at",
    "library_key",
    "library_sk",
    "list_partitions",
    "message_sk",
    "owner_of",
    "part_key",
]

CFG = "CFG"
_N_DIGITS = 9
_MICROS_DIGITS = 20
_SHARDS = 4
"""An account's creations spread over these: no one partition takes more than 1,000 writes a second."""
_LIBRARY = {"character": "CHAR", "persona": "PERS", "lorebook": "LORE", "memory": "MEM"}


def key_at(partition: str, sort: str) -> Key:
    """Return the key of a place."""
    return {"pk": text(partition), "sk": text(sort)}


def branch_sk(branch: str) -> str:
    """Return the sort key of a branch."""
    return f"B#{branch}"


def message_sk(branch: str, n: int) -> str:
    """Return the sort key of a message."""
    return f"M#{branch}#{n:0{_N_DIGITS}d}"


def generation_sk(generation_id: str) -> str:
    """Return the sort key of a generation."""
    return f"G#{generation_id}"


def claim_sk(key: str) -> str:
    """Return the sort key of an idempotency key."""
    return f"I#{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def part_key(partition: str, owner: str, write: str, index: int) -> Key:
    """Return where a part of the document is that one write left in an owner."""
    return key_at(partition, f"P#{owner}#{write}#{index:04d}")


def list_partitions(account: str, user_id: str | None) -> list[str]:
    """Return where a list of chats is."""
    if user_id is not None:
        return [f"U#{account}#{user_id}"]
    return [f"L#{account}#{shard}" for shard in range(_SHARDS)]


def index_sk(created_at: float, chat_id: str, epoch: str) -> str:
    """Return the place of a chat's life in its lists."""
    return f"{round(created_at * 1_000_000):0{_MICROS_DIGITS}d}#{chat_id}#{epoch}"


def index_keys(account: str, chat_id: str, configuration: Item) -> list[Key]:
    """Return where the chat of a ``CFG`` item is listed."""
    epoch, user_id = text_of(configuration, "pk").rpartition("#")[2], text_or_none(configuration, "user_id")
    sort = index_sk(number_of(configuration, "created_at"), chat_id, epoch)
    shard = list_partitions(account, None)[zlib.crc32(chat_id.encode()) % _SHARDS]
    users = [] if user_id is None else list_partitions(account, user_id)
    return [key_at(partition, sort) for partition in (shard, *users)]


def library_sk(kind: LibraryKind, id: str) -> str:
    """Return the sort key of something in a library."""
    return f"{_LIBRARY[kind]}#{id}"


def library_key(account: str, kind: LibraryKind, id: str) -> Key:
    """Return where something of an account's library is."""
    return key_at(account_partition(account), library_sk(kind, id))


def owner_of(item: Item) -> str:
    """Return under which name an item's parts are kept: its sort key, without a message's number."""
    sort = text_of(item, "sk")
    return sort.rpartition("#")[0] if sort.startswith("M#") else sort
