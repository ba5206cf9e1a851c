"""Read and write units and round trips of each call, as dynalite reports them (ministack leaves some out).

Stored chats need transactions, which dynalite does not know: their lines are ministack's, which tells no units of
batches and few of queries. A request that a server says no units of shows as 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from bastion.stores.dynamodb import DynamoAccounts, DynamoAuditStore, DynamoChats
from bastion.stores.dynamodb.client import RoundTrip
from contextshift.audit import AuditStatus, pack
from contextshift.chats import MAIN, ChatRecord, GenerationRecord, Opening, Saving
from contextshift.fakes import CountingRandom, FixedClock
from contextshift.ports import AuditEnd, AuditRecord, KeyRecord, SettingsRecord
from gateway import emulators


def main() -> None:
    """Print one line a call."""
    print(f"{'call':<34}{'round trips':>12}{'read units':>12}{'write units':>12}")
    with emulators.dynalite() as endpoint:
        asyncio.run(measured(endpoint))
    with emulators.ministack() as endpoint:
        asyncio.run(measured_chats(endpoint))


async def measured(endpoint: str) -> None:
    """Measure each call over one server."""
    client = emulators.client_for(endpoint)
    tables = emulators.create_tables(client, prefix="bench")
    seen: list[RoundTrip] = []
    clock, random = FixedClock(), CountingRandom()
    accounts = DynamoAccounts(client, tables["ControlTable"], clock=clock, random=random, meter=seen.append)
    audits = DynamoAuditStore(client, tables["ChatsTable"], clock=clock, random=random, meter=seen.append)
    await accounts.create_account("acme", "pro")
    await accounts.put_key(KeyRecord("hash", "id", "acme", frozenset({"call"})))
    await accounts.put_settings("acme", SettingsRecord({"context_swapping": True}, 1), 0)

    line = lines_of(seen)
    await line("authenticate, account, settings", accounts.access("hash", "acme"))
    await line("  within 5 s of it", accounts.access("hash", "acme"))
    for label, size in (("10 blocks", 10), ("600 blocks of 1 KB", 600)):
        document = {"entries": [{"id": n, "content": f"{n} é " * 160} for n in range(size)]}
        parts, sha = pack(document)
        for turn in ("first", "second"):
            ticket = await line(f"{label}, {turn}: begin", audits.begin("acme", label[:2], "g", now=1, expires=None))
            record = AuditRecord(ticket.generation_id, AuditStatus.PREPARED, 1.0, 2.0, len(parts), sha)
            await line("  prepare", audits.prepare(ticket, record, parts, expires=None))
            await line("  commit", audits.commit(ticket))
            await line("  finish", audits.finish(ticket, AuditEnd(AuditStatus.COMPLETED, 2.0)))
            await line("  sweep", audits.sweep(ticket))
        await line("  read", audits.read("acme", label[:2]))
        await line("  delete", audits.delete("acme", label[:2]))


async def measured_chats(endpoint: str) -> None:
    """Measure a generation in a stored chat of 200 messages."""
    client = emulators.client_for(endpoint)
    table = emulators.create_tables(client, prefix="bench")["ChatsTable"]
    seen: list[RoundTrip] = []
    clock = FixedClock()
    chats = DynamoChats(client, table, clock=clock, random=CountingRandom(), meter=seen.append)
    line = lines_of(seen)
    said = [{"role": "user", "content": f"{n} é " * 60} for n in range(200)]
    await line("chat of 200 messages: create", chats.create("acme", ChatRecord("c", {"model": "m"}), said))
    begun = await line("  begin_generation", chats.begin_generation("acme", "c", MAIN, "g", now=1, key="k"))
    ticket, loaded = begun.ticket, begun.loaded
    parts, sha = pack({"entries": [{"id": n, "content": one["content"]} for n, one in enumerate(said)]})
    generation = GenerationRecord(ticket.generation_id, {"type": "normal"}, AuditStatus.PREPARED, 1.0, 2.0)
    audit = AuditRecord(ticket.generation_id, AuditStatus.PREPARED, 1.0, 2.0, len(parts), sha)
    opening = Opening(generation, 10**10, audit, parts, None, loaded.branch, said=said[0], key="k", request="r")
    await line("  open_generation", chats.open_generation(ticket, opening))
    await line("  progress", chats.progress(ticket, "so far", ""))
    end = AuditEnd(AuditStatus.COMPLETED, 2.0)
    await line("  end_generation", chats.end_generation(ticket, end, Saving(said[0], MAIN)))
    await line("  load", chats.load("acme", "c", MAIN))


def lines_of(seen: list[RoundTrip]) -> Callable[[str, Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]]:
    """Return what awaits some work and prints what it took."""

    async def line(name: str, work: Coroutine[Any, Any, Any]) -> Any:
        seen.clear()
        result = await work
        reads, writes = sum(trip.read_units for trip in seen), sum(trip.write_units for trip in seen)
        print(f"{name:<34}{len(seen):>12}{reads:>12.1f}{writes:>12.1f}")
        return result

    return line
