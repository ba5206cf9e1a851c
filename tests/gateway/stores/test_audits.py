"""The contract of audit stores, over every one of them."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
import zlib
from dataclasses import replace

import pytest

from contextshift.audit import AuditStatus
from contextshift.ports import Commit, Ticket
from gateway.stores.life import (
    ACCOUNT,
    Kept,
    MovableClock,
    begin,
    committed,
    completed,
    document,
    failed,
    fresh_chat,
    owner,
    prepare,
    record_of,
    split,
)

pytestmark = pytest.mark.anyio

PART_BYTES = 380_000


@pytest.fixture
def chat() -> str:
    return fresh_chat()


async def test_a_chat_nobody_used_has_no_audit(kept: Kept, chat: str) -> None:
    assert await kept.store.read(ACCOUNT, chat) is None


async def test_what_is_only_prepared_cannot_be_read(kept: Kept, chat: str) -> None:
    ticket = await begin(kept.store, chat)
    assert await kept.store.read(ACCOUNT, chat) is None
    await prepare(kept.store, ticket)
    assert await kept.store.read(ACCOUNT, chat) is None


async def test_a_committed_audit_is_read_as_it_was_prepared(kept: Kept, chat: str) -> None:
    ticket = await committed(kept.store, chat)
    audit = await kept.store.read(ACCOUNT, chat)
    assert audit is not None
    assert audit.document == document(ticket)
    assert audit.record.generation_id == ticket.generation_id == f"1-{ticket.generation_id[2:]}"
    assert (audit.record.status.value, audit.record.end, audit.record.attempt) == ("prepared", None, 1)
    assert audit.record.deadline == pytest.approx(time.time() + 30, abs=10)


async def test_an_empty_document_is_a_document(kept: Kept, chat: str) -> None:
    await committed(kept.store, chat, b"")
    audit = await kept.store.read(ACCOUNT, chat)
    assert audit is not None
    assert (audit.document, audit.record.parts) == (b"", 0)


async def test_begin_counts_on(kept: Kept, chat: str) -> None:
    tickets = [await begin(kept.store, chat) for _ in range(3)]
    assert [ticket.seq for ticket in tickets] == [1, 2, 3]
    assert len({ticket.epoch for ticket in tickets}) == 1


async def test_concurrent_begins_take_different_places(kept: Kept, chat: str) -> None:
    tickets = await asyncio.gather(*(begin(kept.store, chat) for _ in range(8)))
    assert sorted(ticket.seq for ticket in tickets) == list(range(1, 9))


async def test_chats_and_accounts_are_apart(kept: Kept, chat: str) -> None:
    await committed(kept.store, chat)
    assert await kept.store.read("other", chat) is None
    assert await kept.store.read(ACCOUNT, f"{chat}.2") is None
    assert not await kept.store.delete("other", chat)
    assert owner(await kept.store.read(ACCOUNT, chat)) == (1, 1)


async def test_the_end_of_an_audit_is_read_with_it(kept: Kept, chat: str) -> None:
    ticket = await committed(kept.store, chat)
    assert await kept.store.finish(ticket, completed())
    audit = await kept.store.read(ACCOUNT, chat)
    assert audit is not None
    assert (audit.record.status, audit.record.end) == (completed().status, completed())
    assert audit.document == document(ticket)


async def test_an_end_without_details_stays_without(kept: Kept, chat: str) -> None:
    ticket = await committed(kept.store, chat)
    assert await kept.store.finish(ticket, failed())
    audit = await kept.store.read(ACCOUNT, chat)
    assert audit is not None
    assert audit.record.end == failed()


async def test_the_same_end_again_is_success_and_keeps_the_first_time(kept: Kept, chat: str) -> None:
    ticket = await committed(kept.store, chat)
    assert await kept.store.finish(ticket, completed(1.5))
    assert await kept.store.finish(ticket, completed(9.5))
    audit = await kept.store.read(ACCOUNT, chat)
    assert audit is not None
    assert audit.record.end == completed(1.5)


async def test_an_audit_may_be_prepared_with_its_end_and_never_ends_again(kept: Kept, chat: str) -> None:
    ticket = await begin(kept.store, chat)
    parts = split(document(ticket))
    end = failed()
    record = replace(record_of(ticket, parts, now=time.time()), status=end.status, end=end)
    await kept.store.prepare(ticket, record, parts, expires=None)
    assert await kept.store.commit(ticket) is Commit.COMMITTED
    assert not await kept.store.finish(ticket, completed())
    audit = await kept.store.read(ACCOUNT, chat)
    assert audit is not None
    assert audit.record.status is AuditStatus.FAILED
    assert audit.record.end == end


async def test_another_end_is_refused_and_changes_nothing(kept: Kept, chat: str) -> None:
    ticket = await committed(kept.store, chat)
    assert await kept.store.finish(ticket, completed())
    assert not await kept.store.finish(ticket, failed())
    audit = await kept.store.read(ACCOUNT, chat)
    assert audit is not None
    assert audit.record.end == completed()


async def test_an_end_with_nothing_prepared_is_refused(kept: Kept, chat: str) -> None:
    assert not await kept.store.finish(await begin(kept.store, chat), completed())
    assert await kept.store.read(ACCOUNT, chat) is None


async def test_a_commit_again_is_still_committed(kept: Kept, chat: str) -> None:
    ticket = await committed(kept.store, chat)
    assert await kept.store.commit(ticket) is Commit.COMMITTED
    assert owner(await kept.store.read(ACCOUNT, chat)) == (1, 1)


async def test_a_later_generation_replaces_an_earlier_one(kept: Kept, chat: str) -> None:
    await committed(kept.store, chat)
    second = await committed(kept.store, chat)
    assert owner(await kept.store.read(ACCOUNT, chat)) == (2, 1)
    await kept.store.sweep(second)
    assert owner(await kept.store.read(ACCOUNT, chat)) == (2, 1)
    assert await kept.places(second) == {2}


async def test_who_began_earlier_loses_and_leaves_nothing(kept: Kept, chat: str) -> None:
    first = await begin(kept.store, chat)
    second = await committed(kept.store, chat)
    await prepare(kept.store, first)
    assert await kept.store.commit(first) is Commit.SUPERSEDED
    assert owner(await kept.store.read(ACCOUNT, chat)) == (2, 1)
    assert await kept.places(second) == {2}
    assert not await kept.store.finish(first, completed())


async def test_an_older_generation_that_ends_last_changes_nothing(kept: Kept, chat: str) -> None:
    # B85: g1 prepared, g2 prepared, g1 completed, g2 failed.
    first = await committed(kept.store, chat)
    second = await committed(kept.store, chat)
    await kept.store.finish(first, completed())
    assert await kept.store.finish(second, failed())
    await kept.store.finish(first, completed())
    audit = await kept.store.read(ACCOUNT, chat)
    assert audit is not None
    assert (audit.record.generation_id, audit.record.end) == (second.generation_id, failed())


async def test_an_end_after_the_sweep_is_refused_quietly(kept: Kept, chat: str) -> None:
    first = await committed(kept.store, chat)
    second = await committed(kept.store, chat)
    await kept.store.sweep(second)
    assert not await kept.store.finish(first, completed())
    assert await kept.places(second) == {2}


async def test_a_sweep_never_takes_the_newest(kept: Kept, chat: str) -> None:
    first = await committed(kept.store, chat)
    second = await begin(kept.store, chat)
    await prepare(kept.store, second)
    await kept.store.sweep(second)
    assert owner(await kept.store.read(ACCOUNT, chat)) == (1, 1)
    await committed(kept.store, chat)
    await kept.store.sweep(first)
    assert owner(await kept.store.read(ACCOUNT, chat)) == (3, 1)


async def test_a_second_attempt_replaces_the_first(kept: Kept, chat: str) -> None:
    ticket = await committed(kept.store, chat)
    await prepare(kept.store, ticket, attempt=2)
    assert owner(await kept.store.read(ACCOUNT, chat)) == (1, 2)
    assert await kept.store.commit(ticket) is Commit.COMMITTED
    await kept.store.sweep(ticket)
    assert owner(await kept.store.read(ACCOUNT, chat)) == (1, 2)
    assert await kept.store.finish(ticket, completed())


async def test_an_ended_audit_is_never_prepared_again(kept: Kept, chat: str) -> None:
    ticket = await committed(kept.store, chat)
    assert await kept.store.finish(ticket, completed())
    await prepare(kept.store, ticket, attempt=2)
    audit = await kept.store.read(ACCOUNT, chat)
    assert owner(audit) == (1, 1)
    assert audit is not None
    assert audit.record.end == completed()


async def test_a_deleted_chat_reads_as_absent_and_keeps_nothing(kept: Kept, chat: str) -> None:
    ticket = await committed(kept.store, chat)
    assert await kept.store.delete(ACCOUNT, chat)
    assert await kept.store.read(ACCOUNT, chat) is None
    assert await kept.places(ticket) == set()
    assert not await kept.store.delete(ACCOUNT, chat)


async def test_a_chat_that_never_was_cannot_be_deleted(kept: Kept, chat: str) -> None:
    assert not await kept.store.delete(ACCOUNT, chat)


async def test_a_call_begun_before_a_deletion_can_change_nothing(kept: Kept, chat: str) -> None:
    before = await committed(kept.store, chat)
    ticket = await begin(kept.store, chat)
    assert await kept.store.delete(ACCOUNT, chat)
    await prepare(kept.store, ticket)
    assert await kept.store.commit(ticket) is Commit.DELETED
    assert not await kept.store.finish(ticket, completed())
    assert not await kept.store.finish(before, completed())
    await kept.store.sweep(ticket)
    assert await kept.store.read(ACCOUNT, chat) is None
    assert await kept.places(ticket) == set()


async def test_a_deleted_chats_next_call_starts_a_new_life(kept: Kept, chat: str) -> None:
    late = await committed(kept.store, chat)
    assert await kept.store.delete(ACCOUNT, chat)
    ticket = await begin(kept.store, chat)
    assert ticket.epoch != late.epoch
    assert await kept.store.read(ACCOUNT, chat) is None
    await prepare(kept.store, ticket)
    assert await kept.store.commit(ticket) is Commit.COMMITTED
    assert await kept.store.commit(late) is Commit.DELETED
    assert owner(await kept.store.read(ACCOUNT, chat)) == (ticket.seq, 1)
    assert await kept.store.delete(ACCOUNT, chat)
    assert await kept.store.read(ACCOUNT, chat) is None


async def test_an_expired_audit_is_absent_from_that_second_on(kept: Kept, chat: str, clock: MovableClock) -> None:
    expires = int(clock.now()) + 1000
    await committed(kept.store, chat, expires=expires)
    clock.time = expires - 1.0
    assert await kept.store.read(ACCOUNT, chat) is not None
    clock.time = float(expires)
    assert await kept.store.read(ACCOUNT, chat) is None
    assert not await kept.store.delete(ACCOUNT, chat)


async def test_a_call_after_expiry_does_not_bring_the_old_audit_back(
    kept: Kept, chat: str, clock: MovableClock
) -> None:
    expires = int(clock.now()) + 1000
    await committed(kept.store, chat, expires=expires)
    clock.time = expires + 1.0
    ticket = await begin(kept.store, chat, expires=expires + 1000)
    assert await kept.store.read(ACCOUNT, chat) is None
    await prepare(kept.store, ticket, expires=expires + 1000)
    assert await kept.store.commit(ticket) is Commit.COMMITTED
    assert owner(await kept.store.read(ACCOUNT, chat)) == (ticket.seq, 1)


async def test_an_audit_without_expiry_outlives_one_with(kept: Kept, chat: str, clock: MovableClock) -> None:
    await committed(kept.store, chat, expires=int(clock.now()) + 10)
    await committed(kept.store, chat, expires=None)
    clock.time += 1e6
    assert owner(await kept.store.read(ACCOUNT, chat)) == (2, 1)


async def test_a_chat_is_kept_as_long_as_its_last_call_said(kept: Kept, chat: str, clock: MovableClock) -> None:
    await committed(kept.store, chat, expires=int(clock.now()) + 9000)
    await begin(kept.store, chat, expires=int(clock.now()) + 1000)
    clock.time += 1000
    assert await kept.store.read(ACCOUNT, chat) is None


async def test_ids_of_every_allowed_kind_are_apart(kept: Kept) -> None:
    stem = secrets.token_hex(4)
    chats = [f"{stem}{tail}" for tail in ("", ".", ":", "-", "_", ":a", "-a", ".A", "." * 100)]
    for chat in chats:
        await committed(kept.store, chat)
    assert [owner(await kept.store.read(ACCOUNT, chat)) for chat in chats] == [(1, 1)] * len(chats)


def _six_hundred_blocks() -> bytes:
    entries = [
        {"id": f"b{index}", "content": "".join(chr(0x4E00 + secrets.randbelow(20000)) for _ in range(340))}
        for index in range(600)
    ]
    return zlib.compress(json.dumps(entries, ensure_ascii=False).encode())


def _data_url() -> bytes:
    return b"data:image/png;base64," + base64.b64encode(secrets.token_bytes(786_432))


@pytest.mark.parametrize("make", [_six_hundred_blocks, _data_url])
async def test_a_big_audit_is_kept_whole(kept: Kept, chat: str, make: object) -> None:
    # B82: 600 blocks of 1 KB of multi-byte text, and a data-URL of 1 MB.
    assert callable(make)
    whole = make()
    first = await committed(kept.store, chat, whole, part_size=PART_BYTES)
    audit = await kept.store.read(ACCOUNT, chat)
    assert audit is not None
    assert audit.document == whole
    assert audit.record.parts == -(-len(whole) // PART_BYTES)
    second = await committed(kept.store, chat)
    await kept.store.sweep(second)
    assert await kept.places(first) == {2}


async def test_more_parts_than_one_batch_holds_are_kept(kept: Kept, chat: str) -> None:
    ticket: Ticket = await begin(kept.store, chat)
    whole = document(ticket, size=6000)
    await prepare(kept.store, ticket, whole, part_size=100)
    assert await kept.store.commit(ticket) is Commit.COMMITTED
    audit = await kept.store.read(ACCOUNT, chat)
    assert audit is not None
    assert audit.record.parts > 50
    assert audit.document == whole
    assert await kept.store.delete(ACCOUNT, chat)
    assert await kept.places(ticket) == set()
