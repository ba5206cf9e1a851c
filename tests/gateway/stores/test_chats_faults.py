"""What a fault at any single write to a stored chat may do over DynamoDB: nothing that a reader can see.

A chat is lived through once for each of its writes, and at that write the answer is lost, the chat deleted, or
the writer killed. One life fits into its items; in the other every document needs parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

from bastion.stores.dynamodb import DynamoLibrary, RoundTrip
from contextshift.chats import MAIN, BranchRecord, ChatRecord, LibraryRecord, Saving
from contextshift.errors import ChatNotFound, StoreUnavailable
from contextshift.ports import Commit
from gateway.stores.conftest import Server
from gateway.stores.faults import FaultyClient, Killed, Recording, killed_at, timeout_at
from gateway.stores.life import MovableClock, completed
from gateway.stores.talk import CHAT, Talk, says

pytestmark = pytest.mark.anyio

SMALL = "the secret"
LARGE = SMALL + "".join(random.Random(3).choices("0123456789abcdefghijklmnopqrstuvwxyz", k=4_000))
PART_BYTES = 2_000
SAID = ["b", "c", "edited", "said", "reply, and on"]


async def _life(talk: Talk, text: str) -> None:
    """Do everything once that writes."""
    chats, account = talk.chats, talk.account
    assert await chats.create(account, ChatRecord(CHAT, {"title": text}, "ann"), [says(f"a{text}"), says(f"b{text}")])
    added = await chats.append(account, CHAT, MAIN, [says(f"c{text}"), says(f"d{text}")])
    assert added is not None
    assert [message.id for message in added] == ["main.3", "main.4"]
    assert await chats.edit(account, CHAT, "main.4", says(f"edited{text}"), 1)
    assert await chats.change(account, CHAT, {"title": f"2{text}"}, 1)
    assert await chats.fork(account, CHAT, BranchRecord("b1", (("main", 2),), SMALL))
    assert await chats.remove(account, CHAT, "main.1")
    begun = await talk.placed(key="key")
    ticket = begun.ticket
    opening = talk.opening(begun, 50 * len(text), key="key", request=SMALL, said=says(f"said{text}"))
    opened = await chats.open_generation(ticket, opening)
    assert opened.said is not None
    assert (opened.said.id, opened.commit, opened.claimed) == ("main.5", Commit.COMMITTED, None)
    assert not await chats.progress(ticket, SMALL, SMALL)
    saved = await talk.ended(ticket, Saving(says(f"reply{text}"), MAIN))
    assert saved is not None
    ticket = await talk.begun()
    assert await chats.cancel(account, CHAT, ticket.generation_id)
    saved = await talk.ended(ticket, Saving(says(f"reply, and on{text}"), MAIN, replaces=saved))
    assert saved is not None
    assert (saved.id, saved.version) == ("main.6", 2)


async def _writes(server: Server, text: str) -> int:
    client = FaultyClient(server.client)
    await _life(server.talk(MovableClock(), client, part_bytes=PART_BYTES), text)
    return client.writes


async def _is_as_lived(talk: Talk, text: str) -> None:
    assert [one.removesuffix(text) for one in await talk.said()] == SAID
    chat = await talk.chats.chat(talk.account, CHAT)
    assert (chat.document["title"].removesuffix(text), chat.version) == ("2", 2)
    audit = await talk.audits.read(talk.account, CHAT)
    assert audit is not None
    assert audit.record.end == completed()
    record = await talk.chats.generation(talk.account, CHAT, audit.record.generation_id)
    assert record is not None
    assert (record.end, record.message) == (completed(), "main.6")


def _with(server: Server, talk: Talk, **faults: Callable[[int], None]) -> Talk:
    """Return the same account's store through a client with faults."""
    client = FaultyClient(server.client, **faults)
    chats, audits = server.stored(talk.clock, client, part_bytes=PART_BYTES), server.audits(talk.clock, client)
    return Talk(chats, audits, talk.clock, talk.holds, talk.account)


@pytest.mark.parametrize("text", [SMALL, LARGE], ids=["small", "large"])
async def test_any_lost_answer_is_success(empty_tables: Server, clock: MovableClock, text: str) -> None:
    for write in range(1, await _writes(empty_tables, text) + 1):
        talk = empty_tables.talk(clock)
        await _life(_with(empty_tables, talk, after=timeout_at(write)), text)
        await _is_as_lived(talk, text)


@pytest.mark.parametrize("text", [SMALL, LARGE], ids=["small", "large"])
async def test_a_deletion_before_any_write_leaves_nothing(empty_tables: Server, clock: MovableClock, text: str) -> None:
    for write in range(2, await _writes(empty_tables, text) + 1):
        talk = empty_tables.talk(clock)
        deleted: list[bool] = []

        def delete(count: int, talk: Talk = talk, write: int = write, deleted: list[bool] = deleted) -> None:
            if count == write:
                deleted.append(asyncio.run(talk.audits.delete(talk.account, CHAT)))

        with contextlib.suppress(ChatNotFound, AssertionError):
            await _life(_with(empty_tables, talk, before=delete), text)
        assert deleted, f"write {write} never came"
        if not deleted[0]:  # it came before the chat did
            await talk.audits.delete(talk.account, CHAT)
        assert not empty_tables.lines(talk.account), f"left behind at write {write}"


@pytest.mark.parametrize("text", [SMALL, LARGE], ids=["small", "large"])
async def test_a_writer_killed_before_any_write_leaves_a_whole_chat(
    empty_tables: Server, clock: MovableClock, text: str
) -> None:
    for write in range(1, await _writes(empty_tables, text) + 1):
        talk = empty_tables.talk(clock)
        with pytest.raises(Killed):
            await _life(_with(empty_tables, talk, before=killed_at(write)), text)
        with contextlib.suppress(ChatNotFound):
            said = await talk.said()
            assert [one.removesuffix(text) for one in said][:1] in (["a"], ["b"])
            assert all(one.endswith(text) for one in said)
            ticket = await talk.begun()
            assert await talk.ended(ticket, Saving(says("after"), MAIN))
            assert (await talk.said())[-1] == "after"
        await talk.audits.delete(talk.account, CHAT)
        assert not empty_tables.lines(talk.account), f"left behind at write {write}"


async def test_a_deletion_that_broke_off_is_resumed_to_the_end(empty_tables: Server, clock: MovableClock) -> None:
    write, done = 0, False
    while not done:
        write += 1
        talk = empty_tables.talk(clock)
        await _life(talk, SMALL)
        try:
            await _with(empty_tables, talk, before=killed_at(write)).audits.delete(talk.account, CHAT)
            done = True
        except Killed:
            page = await talk.chats.chats(talk.account, "ann", 5, None)
            assert [chat.id for chat in page.items] == ([CHAT] if write == 1 else [])
            await talk.audits.delete(talk.account, CHAT)
        assert not empty_tables.lines(talk.account)
    assert write > 10


async def test_a_list_entry_left_over_is_passed_over_and_removed(empty_tables: Server, clock: MovableClock) -> None:
    talk = empty_tables.talk(clock)
    await talk.created(user="ann")
    client, table = empty_tables.client, empty_tables.chats
    left = [i for page in client.get_paginator("scan").paginate(TableName=table) for i in page["Items"]]
    left = [i for i in left if i["pk"]["S"].startswith(("U#", "L#")) and f"#{talk.account}#" in i["pk"]["S"] + "#"]
    assert len(left) == 2
    await talk.audits.delete(talk.account, CHAT)
    for item in left:
        client.put_item(TableName=table, Item=item)
    await talk.created("c-2", user="ann")
    for user in (None, "ann"):
        page = await talk.chats.chats(talk.account, user, 1, None)
        assert [chat.id for chat in page.items] == ["c-2"]
    assert not await talk.holds(f"#{CHAT}#")


async def test_what_a_transaction_meets_passes(empty_tables: Server, clock: MovableClock) -> None:
    talk = empty_tables.talk(clock)
    await talk.created()
    refused = _refusal("TransactionConflict", "None")

    def meets_twice(count: int) -> None:
        if count <= 2:
            raise refused

    assert await _with(empty_tables, talk, before=meets_twice).chats.append(talk.account, CHAT, MAIN, [says("x")])

    def meets_always(count: int) -> None:
        raise refused

    with pytest.raises(StoreUnavailable):
        await _with(empty_tables, talk, before=meets_always).chats.append(talk.account, CHAT, MAIN, [says("x")])
    assert await talk.said() == ["x"]


def _refusal(*codes: str) -> Exception:
    response = {
        "Error": {"Code": "TransactionCanceledException", "Message": "secret"},
        "CancellationReasons": [{"Code": code} for code in codes],
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    return ClientError(response, "TransactWriteItems")  # type: ignore[arg-type]


async def test_every_read_that_decides_is_strongly_consistent(empty_tables: Server, clock: MovableClock) -> None:
    client = Recording(empty_tables.client)
    talk = empty_tables.talk(clock, client)
    await _life(talk, SMALL)
    await talk.said()
    await talk.chats.chats(talk.account, None, 5, None)
    await talk.chats.messages(talk.account, CHAT, "b1", 5, None, newest_first=True)
    await talk.audits.delete(talk.account, CHAT)
    assert len(client.reads) > 10
    assert all(request["ConsistentRead"] for request in client.reads)


async def test_a_library_write_killed_or_lost_at_any_step_leaves_one_whole_version(
    empty_tables: Server, clock: MovableClock
) -> None:
    account = f"a{random.getrandbits(40):x}"
    library = empty_tables.library(clock, part_bytes=PART_BYTES)

    def library_with(**faults: Callable[[int], None]) -> DynamoLibrary:
        return empty_tables.library(clock, FaultyClient(empty_tables.client, **faults), part_bytes=PART_BYTES)

    for write in range(1, 4):
        id = f"x{write}"
        await library.put(account, "lorebook", LibraryRecord(id, {"text": LARGE}), 0)
        with contextlib.suppress(Killed):
            await library_with(before=killed_at(write)).put(
                account, "lorebook", LibraryRecord(id, {"text": LARGE[::-1]}), 1
            )
        (record,) = await library.get(account, "lorebook", [id])
        assert record.document == {"text": LARGE if record.version == 1 else LARGE[::-1]}
        lossy = library_with(after=timeout_at(write))
        stored = await lossy.put(account, "lorebook", LibraryRecord(id, {"text": LARGE}), record.version)
        assert stored is not None
        clock.time += 4000
        assert await library.remove(account, "lorebook", id)
        assert not [line for line in empty_tables.lines(account) if f"#{id}" in line]


async def test_each_verb_takes_the_round_trips_of_the_design(empty_tables: Server, clock: MovableClock) -> None:
    seen: list[RoundTrip] = []
    plain = empty_tables.talk(clock)
    chats = empty_tables.stored(clock, meter=seen.append)
    talk = Talk(chats, plain.audits, clock, plain.holds, plain.account)
    trips: dict[str, tuple[int, float, float]] = {}

    async def measured(verb: str, work):  # type: ignore[no-untyped-def]
        seen.clear()
        result = await work
        trips[verb] = (len(seen), sum(trip.read_units for trip in seen), sum(trip.write_units for trip in seen))
        return result

    account = talk.account
    await measured("create", talk.created(CHAT, "hi", user="ann"))
    await measured("append", chats.append(account, CHAT, MAIN, [says("a")]))
    await measured("chat", chats.chat(account, CHAT))
    await measured("change", chats.change(account, CHAT, {}, 1))
    await measured("chats", chats.chats(account, None, 20, None))
    await measured("chats of a user", chats.chats(account, "ann", 20, None))
    await measured("fork", chats.fork(account, CHAT, BranchRecord("b1", (("main", 1),))))
    await measured("branches", chats.branches(account, CHAT))
    await measured("messages", chats.messages(account, CHAT, MAIN, 20, None, newest_first=True))
    await measured("message", chats.message(account, CHAT, "main.1"))
    await measured("edit", chats.edit(account, CHAT, "main.1", says("x"), 1))
    await measured("load", chats.load(account, CHAT, MAIN))
    await measured("load of a fork", chats.load(account, CHAT, "b1"))
    begun = await measured("begin_generation", talk.placed(key="k"))
    ticket = begun.ticket
    await measured("open_generation", chats.open_generation(ticket, talk.opening(begun, key="k", said=says("y"))))
    await measured("generation", chats.generation(account, CHAT, ticket.generation_id))
    await measured("progress", chats.progress(ticket, "text", ""))
    await measured("cancel", chats.cancel(account, CHAT, ticket.generation_id))
    await measured("end_generation", talk.ended(ticket, Saving(says("x"), MAIN)))
    await measured("remove", chats.remove(account, CHAT, "main.1"))
    print(trips)  # shown by pytest -rP: (round trips, read units, write units) of a small chat
    counts = {verb: count for verb, (count, _, _) in trips.items()}
    once = {"create", "open_generation", "progress"}
    assert {verb for verb, count in counts.items() if count == 1} == once
    assert counts["begin_generation"] == 3  # two after one another: the chat and its messages are read at once
    assert (counts["load"], counts["end_generation"], counts["load of a fork"]) == (3, 2, 4)
    assert (counts["chats"], counts["chats of a user"]) == (5, 2)
