"""The stores under test, each with a way to look at what it keeps."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bastion.stores.dynamodb import DynamoAccounts, DynamoAuditStore, DynamoChats, DynamoLibrary
from bastion.stores.dynamodb.documents import decompressed
from bastion.stores.dynamodb.items import life_partition
from bastion.stores.sqlite import SqliteAccounts, SqliteAuditStore, SqliteChats, SqliteDatabase, SqliteLibrary
from contextshift.chats import LibraryStore
from contextshift.fakes.chats import MemoryChats, MemoryLibrary
from contextshift.fakes.stores import MemoryAccounts, MemoryAuditStore
from contextshift.ports import AccountAdmin, Ticket
from gateway import emulators
from gateway.stores.life import ACCOUNT, Kept, MovableClock, SystemRandom
from gateway.stores.talk import Talk

ALL_STORES = ("memory", "sqlite", "ministack", "dynalite")
CHAT_STORES = ("memory", "sqlite", "ministack")
"""dynalite knows no transactions."""


@dataclass(frozen=True)
class Server:
    """A DynamoDB-compatible server with our two tables in it."""

    endpoint: str
    client: Any
    control: str
    chats: str

    def audits(self, clock: MovableClock, client: Any = None, **options: Any) -> DynamoAuditStore:
        return DynamoAuditStore(client or self.client, self.chats, clock=clock, random=SystemRandom(), **options)

    def accounts(self, clock: MovableClock, client: Any = None, **options: Any) -> DynamoAccounts:
        return DynamoAccounts(client or self.client, self.control, clock=clock, random=SystemRandom(), **options)

    def stored(self, clock: MovableClock, client: Any = None, **options: Any) -> DynamoChats:
        return DynamoChats(client or self.client, self.chats, clock=clock, random=SystemRandom(), **options)

    def library(self, clock: MovableClock, client: Any = None, **options: Any) -> DynamoLibrary:
        return DynamoLibrary(client or self.client, self.chats, clock=clock, random=SystemRandom(), **options)

    def talk(self, clock: MovableClock, client: Any = None, **options: Any) -> Talk:
        """Return the store of chats, in an account of its own."""
        account = f"a{secrets.token_hex(6)}"

        async def holds(text: str) -> bool:
            return any(text in line for line in self.lines(account))

        return Talk(self.stored(clock, client, **options), self.audits(clock, client), clock, holds, account)

    def lines(self, account: str) -> list[str]:
        """Return all items that are an account's, save heads of deleted chats, documents legible."""
        pages = self.client.get_paginator("scan").paginate(TableName=self.chats, ConsistentRead=True)
        own = [item for page in pages for item in page["Items"] if account in item["pk"]["S"].split("#")]
        return [repr(_legible(item)) for item in own if "buried" not in item]

    def sort_keys(self, ticket: Ticket) -> list[str]:
        """Return the sort keys in the partition of a ticket's life."""
        partition = life_partition(ticket.account, ticket.chat_id, ticket.epoch)
        condition = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": partition}}}
        items = self.client.query(TableName=self.chats, ConsistentRead=True, **condition)["Items"]
        return [item["sk"]["S"] for item in items]

    async def places(self, ticket: Ticket) -> set[int]:
        return {int(key.split("#")[1]) for key in self.sort_keys(ticket)}


def _legible(item: dict[str, Any]) -> dict[str, Any]:
    return item | {
        name: decompressed(bytes(item[name]["B"])) for name in ("doc", "said") if name in item and "B" in item[name]
    }


def _server(endpoint: str) -> Server:
    client = emulators.client_for(endpoint)
    names = emulators.create_tables(client, prefix=f"t{secrets.token_hex(4)}-")
    return Server(endpoint, client, names["ControlTable"], names["ChatsTable"])


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture(scope="session")
def ministack_tables(ministack: str) -> Server:
    return _server(ministack)


@pytest.fixture
def empty_tables(ministack: str) -> Server:
    """Tables that nobody else uses, so that all of them can be looked through."""
    return _server(ministack)


@pytest.fixture(scope="session")
def dynalite_tables(dynalite: str) -> Server:
    return _server(dynalite)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "new folder" / "bastion.db")
    yield database
    database.close()


@pytest.fixture(params=ALL_STORES)
def kept(request: pytest.FixtureRequest, clock: MovableClock) -> Kept:
    """Every audit store in turn."""
    return _kept(request, clock)


@pytest.fixture(params=ALL_STORES)
def accounts(request: pytest.FixtureRequest, clock: MovableClock) -> AccountAdmin:
    """Every account store in turn."""
    if request.param == "memory":
        return MemoryAccounts(clock)
    if request.param == "sqlite":
        return SqliteAccounts(request.getfixturevalue("database"), clock=clock)
    server: Server = request.getfixturevalue(f"{request.param}_tables")
    return server.accounts(clock)


def _kept(request: pytest.FixtureRequest, clock: MovableClock) -> Kept:
    if request.param == "memory":
        return _memory(clock)
    if request.param == "sqlite":
        return _sqlite(request.getfixturevalue("database"), clock)
    server: Server = request.getfixturevalue(f"{request.param}_tables")
    return Kept(server.audits(clock), server.places)


def _memory(clock: MovableClock) -> Kept:
    store = MemoryAuditStore(clock)

    async def places(ticket: Ticket) -> set[int]:
        return {int(gid.split("-")[0]) for gid in store.kept(ticket)}

    return Kept(store, places)


def _sqlite(database: SqliteDatabase, clock: MovableClock) -> Kept:
    async def places(ticket: Ticket) -> set[int]:
        query = "SELECT seq FROM records WHERE epoch = ? UNION SELECT seq FROM parts WHERE epoch = ?"
        rows = await database.read(lambda db: db.execute(query, (ticket.epoch, ticket.epoch)).fetchall())
        return {row[0] for row in rows}

    return Kept(SqliteAuditStore(database, clock=clock, random=SystemRandom()), places)


@pytest.fixture(params=CHAT_STORES)
def talk(request: pytest.FixtureRequest, clock: MovableClock) -> Talk:
    """Every store of chats in turn, in an account nobody else uses."""
    return talk_of(request, clock, request.param)


def talk_of(request: pytest.FixtureRequest, clock: MovableClock, store: str) -> Talk:
    """Return a store of chats by its name."""
    if store == "memory":
        return memory_talk(clock)
    if store == "ministack":
        return request.getfixturevalue("ministack_tables").talk(clock)  # type: ignore[no-any-return]
    return _talk_of_database(request.getfixturevalue("database"), clock)


def memory_talk(clock: MovableClock) -> Talk:
    """Return the store of chats in memory."""
    audits = MemoryAuditStore(clock)

    async def holds(text: str) -> bool:
        return text in repr(audits.lives_of(ACCOUNT))

    return Talk(MemoryChats(audits, clock), audits, clock, holds)


def sqlite_talk(path: Path, clock: MovableClock) -> tuple[SqliteDatabase, Talk]:
    """Return a store of chats in a file of its own."""
    database = SqliteDatabase(path)
    return database, _talk_of_database(database, clock)


def _talk_of_database(database: SqliteDatabase, clock: MovableClock) -> Talk:
    async def holds(text: str) -> bool:
        return await database.read(lambda db: any(text in line for line in db.iterdump()))

    options: dict[str, Any] = {"clock": clock, "random": SystemRandom()}
    return Talk(SqliteChats(database, **options), SqliteAuditStore(database, **options), clock, holds)


@pytest.fixture(params=ALL_STORES)
def library(request: pytest.FixtureRequest, clock: MovableClock) -> LibraryStore:
    """Every library in turn."""
    if request.param == "memory":
        return MemoryLibrary(clock)
    if request.param == "sqlite":
        return SqliteLibrary(request.getfixturevalue("database"), clock=clock)
    server: Server = request.getfixturevalue(f"{request.param}_tables")
    return server.library(clock)
