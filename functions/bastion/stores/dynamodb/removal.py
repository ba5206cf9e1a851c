"""What is deleted, and by whom: the sweep after a commit, a loser's own parts, and the purge of ended lives.

A deleted chat's audits go at once. A call that began before the deletion may still write parts after that;
its commit fails and it removes them itself. Only where it is killed in between do they stay: the tombstone
remembers the life, and a repeated DELETE, or the sweep of the chat's next life, purges it again. The purge
that comes after the longest call is the last. A chat deleted over and over is not remembered without bound:
beyond a few lives, what such a killed writer left goes with its own expiry.
"""

from __future__ import annotations

from collections.abc import Iterable

from bastion.stores.dynamodb.actions import deletion
from bastion.stores.dynamodb.client import ConditionFailed, Table
from bastion.stores.dynamodb.conditions import ends_life, forgets_lives
from bastion.stores.dynamodb.items import (
    Item,
    head_key,
    integer_of,
    key_of,
    life_partition,
    part_sk,
    record_sk,
    text_of,
    ticket_partition,
)
from bastion.stores.dynamodb.places import CFG, index_keys
from bastion.stores.dynamodb.records import Head, head_of
from contextshift.ports import Ticket

__all__ = ["bury", "purge", "remove_own", "remove_replaced"]

_FIRST, _LAST = " ", "~"
_KEYS = ("pk", "sk")
# The head stays under 1 KB, and a deletion within a few reads.
_MOST_LIVES = 16
# No call is allowed to last longer, on any host.
_LONGEST_CALL_SECONDS = 3600
_TOMBSTONE_SECONDS = 30 * 86400


async def remove_own(table: Table, ticket: Ticket, attempts: Iterable[int] | None = None) -> None:
    """Remove what a generation wrote: all of it, or the parts of some of its attempts."""
    partition, record = ticket_partition(ticket), record_sk(ticket.seq)
    if attempts is None:
        await _remove(table, await table.query(partition, record, record + _LAST, only=_KEYS))
        return
    for attempt in attempts:
        low, high = part_sk(ticket.seq, attempt, 0), f"{record}#{attempt:02d}{_LAST}"
        await _remove(table, await table.query(partition, low, high, only=_KEYS))


async def remove_replaced(table: Table, ticket: Ticket, current: int) -> None:
    """Remove all audits older than ``current``, and what an earlier attempt of ``current`` left.

    Which of them were ever committed does not matter: none can win any more. What an eventually consistent
    read misses is removed by the next sweep, at half the price.
    """
    newest = record_sk(current)
    found = await table.query(
        ticket_partition(ticket), record_sk(0), newest, only=(*_KEYS, "attempt"), consistent=False
    )
    await _remove(table, [item for item in found if text_of(item, "sk") != newest])
    if current == ticket.seq:
        attempt = max((integer_of(item, "attempt") for item in found if text_of(item, "sk") == newest), default=1)
        await remove_own(table, ticket, range(1, attempt))


async def bury(table: Table, account: str, chat_id: str, epoch: str, now: float) -> Head | None:
    """End one life and return the head after that.

    A refusal says that the life is over already: our own answer was lost, or another DELETE was first.
    """
    key, now = head_key(account, chat_id), int(now)
    tombstone = ends_life(epoch, now, now + _TOMBSTONE_SECONDS, now + _LONGEST_CALL_SECONDS)
    try:
        stored: Item | None = await table.update(key, tombstone)
    except ConditionFailed as refused:
        stored = await table.get(key) if refused.item is None else refused.item
    return None if stored is None else head_of(stored, now)


async def purge(table: Table, account: str, chat_id: str, head: Head, now: float) -> None:
    """Remove everything that ended lives owned, audits first; forget them where this purge is the last needed."""
    for epoch in head.buried:
        partition = life_partition(account, chat_id, epoch)
        items = await table.query(partition, _FIRST, _LAST, only=(*_KEYS, "user_id", "created_at"))
        await _remove(table, [item for item in items if text_of(item, "sk") != CFG])
        await _unlist(table, account, chat_id, [item for item in items if text_of(item, "sk") == CFG])
    if head.buried and (now >= head.purge_after or len(head.buried) > _MOST_LIVES):
        try:
            await table.update(head_key(account, chat_id), forgets_lives(head.buried, now))
        except ConditionFailed:
            return  # The table itself has deleted the tombstone: nothing is left to forget.


async def _unlist(table: Table, account: str, chat_id: str, configurations: Iterable[Item]) -> None:
    """Take a stored chat out of its lists, and then, last of all, away what says which lists these are."""
    for item in configurations:
        await table.write_all([deletion(key) for key in index_keys(account, chat_id, item)])
        await _remove(table, [item])


async def _remove(table: Table, items: Iterable[Item]) -> None:
    await table.write_all([deletion(key_of(item)) for item in items])
