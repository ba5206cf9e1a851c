"""What a fault at any single write of a generation may do: nothing that a reader can see.

Over ministack and again over dynalite, which does not return what made a condition fail.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from bastion.stores.dynamodb import DynamoAuditStore, RoundTrip
from contextshift.errors import StoreUnavailable
from contextshift.ports import Commit, KeyRecord, SettingsRecord, Ticket
from gateway.stores.conftest import Server
from gateway.stores.faults import FaultyClient, Killed, Overtaken, Recording, Throttled, killed_at, timeout_at
from gateway.stores.life import (
    ACCOUNT,
    MovableClock,
    begin,
    committed,
    completed,
    fresh_chat,
    owner,
    prepare,
)

pytestmark = pytest.mark.anyio

# A generation after another one: begin, 4 items of prepare, commit, end, and the 4 items it replaced.
WRITES = 11


@pytest.fixture(params=["ministack", "dynalite"])
def server(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(f"{request.param}_tables")
    return server


class Life:
    """One generation through a client of its own, noting how far it came."""

    def __init__(self, store: DynamoAuditStore, chat: str) -> None:
        self._store = store
        self._chat = chat
        self.ticket: Ticket | None = None
        self.outcome: Commit | None = None
        self.ended: bool | None = None

    async def run(self) -> None:
        self.ticket = await begin(self._store, self._chat)
        await prepare(self._store, self.ticket)
        self.outcome = await self._store.commit(self.ticket)
        if self.outcome is Commit.COMMITTED:
            self.ended = await self._store.finish(self.ticket, completed())
            await self._store.sweep(self.ticket)


async def test_a_generation_writes_as_often_as_these_tests_believe(server: Server, clock: MovableClock) -> None:
    chat, client = fresh_chat(), FaultyClient(server.client)
    await committed(server.audits(clock), chat)
    await Life(server.audits(clock, client), chat).run()
    assert client.writes == WRITES


@pytest.mark.parametrize("write", range(1, WRITES + 1))
async def test_a_writer_killed_before_any_write_leaves_a_whole_audit(
    server: Server, clock: MovableClock, write: int
) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    await committed(store, chat)
    life = Life(server.audits(clock, FaultyClient(server.client, before=killed_at(write))), chat)
    with pytest.raises(Killed):
        await life.run()
    expected = 2 if life.outcome is Commit.COMMITTED else 1
    assert owner(await store.read(ACCOUNT, chat)) == (expected, 1)
    following = await committed(store, chat)
    await store.sweep(following)
    assert owner(await store.read(ACCOUNT, chat)) == (following.seq, 1)
    assert await server.places(following) == {following.seq}


@pytest.mark.parametrize("write", range(1, WRITES + 1))
async def test_any_lost_answer_is_success(server: Server, clock: MovableClock, write: int) -> None:
    # B84: the write succeeds on the server, its answer is lost, the second try's condition fails.
    chat, store = fresh_chat(), server.audits(clock)
    await committed(store, chat)
    life = Life(server.audits(clock, FaultyClient(server.client, after=timeout_at(write))), chat)
    await life.run()
    assert (life.outcome, life.ended) == (Commit.COMMITTED, True)
    assert life.ticket is not None
    audit = await store.read(ACCOUNT, chat)
    assert owner(audit) == (life.ticket.seq, 1)
    assert audit is not None
    assert audit.record.end == completed()
    assert await server.places(life.ticket) == {life.ticket.seq}


@pytest.mark.parametrize("write", range(1, WRITES + 1))
async def test_a_deletion_before_any_write_wins(server: Server, clock: MovableClock, write: int) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    first = await committed(store, chat)

    def delete(count: int) -> None:
        if count == write:
            assert asyncio.run(store.delete(ACCOUNT, chat))

    life = Life(server.audits(clock, FaultyClient(server.client, before=delete)), chat)
    await life.run()
    assert life.ticket is not None
    if life.ticket.epoch == first.epoch:
        assert await store.read(ACCOUNT, chat) is None
    else:  # deleted before it began: the generation is the first of a new life
        assert owner(await store.read(ACCOUNT, chat)) == (life.ticket.seq, 1)
    assert await server.places(first) == set()
    following = await committed(store, chat)
    assert owner(await store.read(ACCOUNT, chat)) == (following.seq, 1)


@pytest.mark.parametrize("write", range(1, 7))
async def test_a_deletion_and_a_killed_writer_leave_nothing_after_the_last_purge(
    server: Server, clock: MovableClock, write: int
) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    ticket = await begin(store, chat)
    assert await store.delete(ACCOUNT, chat)
    killed = FaultyClient(server.client, before=killed_at(write))
    with pytest.raises(Killed):  # the late writes are there, and their writer is not
        await _late(server.audits(clock, killed), ticket)
    assert await store.read(ACCOUNT, chat) is None
    following = await committed(store, chat)
    clock.time += 2 * 3600
    await store.sweep(following)
    assert await server.places(ticket) == set()
    assert owner(await store.read(ACCOUNT, chat)) == (following.seq, 1)
    assert await store.delete(ACCOUNT, chat)


async def _late(store: DynamoAuditStore, ticket: Ticket) -> None:
    await prepare(store, ticket)
    await store.commit(ticket)
    raise Killed


async def test_a_repeated_delete_resumes_a_purge_that_broke_off(server: Server, clock: MovableClock) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    for write in (2, 3, 4):
        ticket = await committed(store, chat)
        with pytest.raises(Killed):
            await server.audits(clock, FaultyClient(server.client, before=killed_at(write))).delete(ACCOUNT, chat)
        assert await store.read(ACCOUNT, chat) is None
        assert await server.places(ticket) != set()
        await store.delete(ACCOUNT, chat)
        assert await server.places(ticket) == set()


@pytest.mark.parametrize("write", range(1, 6))
async def test_a_delete_whose_answer_is_lost_was_done(server: Server, clock: MovableClock, write: int) -> None:
    chat = fresh_chat()
    ticket = await committed(server.audits(clock), chat)
    lossy = server.audits(clock, FaultyClient(server.client, after=timeout_at(write)))
    assert await lossy.delete(ACCOUNT, chat)
    assert await lossy.read(ACCOUNT, chat) is None
    assert await server.places(ticket) == set()


@pytest.mark.parametrize("write", range(1, 6))
async def test_a_second_attempt_killed_at_any_write_leaves_a_whole_audit(
    server: Server, clock: MovableClock, write: int
) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    ticket = await committed(store, chat)
    client = FaultyClient(server.client, before=killed_at(write))
    attempt = 2
    try:
        await prepare(server.audits(clock, client), ticket, attempt=2)
    except Killed:
        attempt = 1
    assert owner(await store.read(ACCOUNT, chat)) == (1, attempt)
    assert attempt == (2 if write == 5 else 1)


async def test_a_second_attempt_leaves_no_parts_of_the_first(server: Server, clock: MovableClock) -> None:
    store = server.audits(clock)
    ticket = await committed(store, fresh_chat())
    before = server.sort_keys(ticket)
    await prepare(store, ticket, attempt=2)
    await store.sweep(ticket)
    assert len(server.sort_keys(ticket)) == len(before)
    assert await store.finish(ticket, completed())
    await prepare(store, ticket, attempt=3)
    assert len(server.sort_keys(ticket)) == len(before)


async def test_a_busy_table_gets_everything_in_the_end(server: Server, clock: MovableClock) -> None:
    chat, busy = fresh_chat(), server.audits(clock, Throttled(server.client))
    ticket = await committed(busy, chat)
    assert owner(await busy.read(ACCOUNT, chat)) == (ticket.seq, 1)
    accounts = server.accounts(clock, Throttled(server.client))
    name = chat.replace("-", "_")
    await accounts.create_account(name, "pro")
    key = KeyRecord("f" * 40 + name, "f", name, frozenset())
    await accounts.put_key(key)
    await accounts.put_settings(name, SettingsRecord({"a": 1}, 1), 0)
    access = await accounts.access(key.hash, name)
    assert access is not None
    assert (access.plan, access.settings.version) == ("pro", 1)


async def test_a_lost_answer_of_an_administrator_is_success(server: Server, clock: MovableClock) -> None:
    name = fresh_chat().replace("-", "_")

    def lossy() -> FaultyClient:
        return FaultyClient(server.client, after=timeout_at(1))

    assert await server.accounts(clock, lossy()).create_account(name, "pro")
    assert await server.accounts(clock, lossy()).put_settings(name, SettingsRecord({}, 1), 0)
    assert await server.accounts(clock, lossy()).put_settings(name, SettingsRecord({"a": 1}, 2), 1)
    assert not await server.accounts(clock, lossy()).put_settings(name, SettingsRecord({"a": 2}, 2), 1)
    assert not await server.accounts(clock, lossy()).create_account(name, "pro")


async def test_a_chat_deleted_over_and_over_stays_small(server: Server, clock: MovableClock) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    for _ in range(40):
        await begin(store, chat)
        assert await store.delete(ACCOUNT, chat)
    head = server.client.get_item(TableName=server.chats, Key={"pk": {"S": f"C#{ACCOUNT}#{chat}"}, "sk": {"S": "H"}})
    assert len(json.dumps(head["Item"])) < 1024


def _always(error: Exception) -> Callable[[int], None]:
    def fault(count: int) -> None:
        raise error

    return fault


def _refusal(code: str, status: int = 400) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "secret"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "UpdateItem")


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (EndpointConnectionError(endpoint_url="http://store.example"), 2),
        (_refusal("ThrottlingException"), 2),
        (_refusal("WhoKnows", 503), 2),
        (_refusal("ValidationException"), 1),
        (_refusal("AccessDeniedException"), 1),
    ],
)
async def test_a_store_that_is_down_says_so_after_the_tries_that_may_help(
    server: Server, clock: MovableClock, error: Exception, tries: int
) -> None:
    client = FaultyClient(server.client, before=_always(error))
    with pytest.raises(StoreUnavailable) as caught:
        await begin(server.audits(clock, client), fresh_chat())
    assert client.writes == tries
    assert "secret" not in str(caught.value)


async def test_what_a_loser_cannot_remove_does_not_change_its_outcome(server: Server, clock: MovableClock) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    ticket = await begin(store, chat)
    await prepare(store, ticket)
    second = await committed(store, chat)

    def removal_fails(count: int) -> None:
        if count > 1:
            raise EndpointConnectionError(endpoint_url="http://store.example")

    loser = server.audits(clock, FaultyClient(server.client, before=removal_fails))
    assert await loser.commit(ticket) is Commit.SUPERSEDED
    await store.sweep(second)
    assert await server.places(second) == {2}


async def test_a_reader_that_is_overtaken_reads_the_newer_audit(server: Server, clock: MovableClock) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    await committed(store, chat)

    async def newer() -> None:
        await store.sweep(await committed(store, chat))

    reader = server.audits(clock, Overtaken(server.client, lambda: asyncio.run(newer())))
    assert owner(await reader.read(ACCOUNT, chat)) == (2, 1)


async def test_a_reader_overtaken_by_a_deletion_reads_nothing(server: Server, clock: MovableClock) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    await committed(store, chat)

    def delete() -> None:
        assert asyncio.run(store.delete(ACCOUNT, chat))

    assert await server.audits(clock, Overtaken(server.client, delete)).read(ACCOUNT, chat) is None


async def test_every_read_that_decides_is_strongly_consistent(server: Server, clock: MovableClock) -> None:
    # No emulator is ever inconsistent, so this can only be seen in the requests.
    client = Recording(server.client)
    chat, store, accounts = fresh_chat(), server.audits(clock, client), server.accounts(clock, client)
    name = chat.replace("-", "_")
    key = KeyRecord("d" * 40 + name, "d", name, frozenset())
    await accounts.put_key(key)
    for hint in (name, "other", None):
        await accounts.access(key.hash, hint)
    await accounts.account(name)
    await accounts.keys(name)
    await accounts.settings(name)
    await committed(store, chat)
    await store.read(ACCOUNT, chat)
    await store.delete(ACCOUNT, chat)
    assert len(client.reads) > 10
    assert all(request["ConsistentRead"] for request in client.reads)


async def test_a_damaged_audit_is_not_shown(server: Server, clock: MovableClock) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    ticket = await committed(store, chat)
    key = {"pk": {"S": f"C#{ACCOUNT}#{chat}#{ticket.epoch}"}, "sk": {"S": server.sort_keys(ticket)[-1]}}
    server.client.delete_item(TableName=server.chats, Key=key)
    with pytest.raises(StoreUnavailable):
        await store.read(ACCOUNT, chat)


async def test_an_item_of_a_later_schema_is_refused(server: Server, clock: MovableClock) -> None:
    chat, store = fresh_chat(), server.audits(clock)
    await committed(store, chat)
    server.client.update_item(
        TableName=server.chats,
        Key={"pk": {"S": f"C#{ACCOUNT}#{chat}"}, "sk": {"S": "H"}},
        UpdateExpression="SET #schema = :next",
        ExpressionAttributeNames={"#schema": "schema"},
        ExpressionAttributeValues={":next": {"N": "2"}},
    )
    with pytest.raises(StoreUnavailable):
        await store.read(ACCOUNT, chat)


async def test_every_item_says_its_schema_and_times(server: Server, clock: MovableClock) -> None:
    store, chat = server.audits(clock), fresh_chat()
    ticket = await committed(store, chat, expires=int(clock.now()) + 500)
    partition = f"C#{ACCOUNT}#{chat}"
    places = [(partition, "H"), *((f"{partition}#{ticket.epoch}", key) for key in server.sort_keys(ticket))]
    items = [
        server.client.get_item(TableName=server.chats, Key={"pk": {"S": pk}, "sk": {"S": sk}})["Item"]
        for pk, sk in places
    ]
    assert len(items) == 5
    assert all({"schema", "created_at", "updated_at", "expires"} <= item.keys() for item in items)


async def test_each_verb_takes_the_round_trips_of_the_design(ministack_tables: Server, clock: MovableClock) -> None:
    seen: list[RoundTrip] = []
    store = ministack_tables.audits(clock, meter=seen.append)
    accounts = ministack_tables.accounts(clock, meter=seen.append)
    chat = fresh_chat()
    name = chat.replace("-", "_")
    key = KeyRecord("e" * 40 + name, "e", name, frozenset({"call"}))
    await accounts.create_account(name, "pro")
    await accounts.put_key(key)
    await committed(store, chat)
    trips: dict[str, tuple[int, float, float]] = {}

    async def measured(verb: str, work: Any) -> Any:
        seen.clear()
        result = await work
        trips[verb] = (len(seen), sum(trip.read_units for trip in seen), sum(trip.write_units for trip in seen))
        return result

    await measured("access", accounts.access(key.hash, name))
    ticket = await measured("begin", begin(store, chat))
    await measured("prepare", prepare(store, ticket))
    await measured("commit", store.commit(ticket))
    await measured("finish", store.finish(ticket, completed()))
    await measured("sweep", store.sweep(ticket))
    await measured("read", store.read(ACCOUNT, chat))
    await measured("delete", store.delete(ACCOUNT, chat))
    print(trips)  # shown by pytest -rP: (round trips, read units, write units) of a small audit in 3 parts
    counts = {verb: count for verb, (count, _, _) in trips.items()}
    assert counts["access"] == counts["begin"] == counts["prepare"] == counts["commit"] == counts["finish"] == 1
    assert counts["read"] == 2
    assert counts["sweep"] == 3
    del trips["access"]  # ministack does not say what a BatchGetItem consumes
    assert all(read + write > 0 for _, read, write in trips.values())
