"""A process of its own that writes generations of one chat into a SQLite file, and says which it committed."""

from __future__ import annotations

import asyncio
import sys

from bastion.stores.sqlite import SqliteAuditStore, SqliteDatabase
from gateway.stores.life import MovableClock, SystemRandom, begin, completed, prepare


async def write(path: str, chat: str, generations: int) -> None:
    database = SqliteDatabase(path)
    store = SqliteAuditStore(database, clock=MovableClock(), random=SystemRandom())
    for _ in range(generations):
        ticket = await begin(store, chat)
        await prepare(store, ticket)
        outcome = await store.commit(ticket)
        await store.finish(ticket, completed())
        await store.sweep(ticket)
        print(ticket.seq, outcome.value, flush=True)
    database.close()


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], int(sys.argv[3])))
