"""The contract of stored chats, over every store of them."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import replace

import pytest

from contextshift.audit import AuditStatus
from contextshift.chats import MAIN, BranchRecord, ChatRecord, Claim, MessageRecord, Saving
from contextshift.errors import ChatNotFound, InvalidInput, MessageChanged
from contextshift.ports import Commit, Ticket
from gateway.stores.life import begin, committed, completed, failed, owner, prepare
from gateway.stores.talk import CHAT, SOON, Talk, says

pytestmark = pytest.mark.anyio


async def test_a_created_chat_is_read_as_it_was_made(talk: Talk) -> None:
    made = await talk.chats.create(talk.account, ChatRecord(CHAT, {"title": "Tea", "n": [1.5, None]}, "ann"))
    now = talk.clock.now()
    assert made == ChatRecord(CHAT, {"title": "Tea", "n": [1.5, None]}, "ann", 1, now, now)
    assert await talk.chats.chat(talk.account, CHAT) == made
    assert [branch.id for branch in await talk.chats.branches(talk.account, CHAT)] == [MAIN]
    assert await talk.said() == []


async def test_a_chat_is_created_once(talk: Talk) -> None:
    await talk.created(CHAT, "hi")
    assert await talk.chats.create(talk.account, ChatRecord(CHAT, {}), [says("other")]) is None
    assert await talk.said() == ["hi"]
    assert not await talk.holds("other")


async def test_of_concurrent_creations_one_wins(talk: Talk) -> None:
    tries = [talk.chats.create(talk.account, ChatRecord(CHAT, {"n": n}), [says(f"by {n}")]) for n in range(5)]
    (won,) = [record for record in await asyncio.gather(*tries) if record is not None]
    assert await talk.chats.chat(talk.account, CHAT) == won
    assert await talk.said() == [f"by {won.document['n']}"]
    for n in range(5):
        assert await talk.holds(f"by {n}") is (n == won.document["n"])


async def test_a_chat_of_the_proxy_is_no_stored_chat_and_takes_its_name(talk: Talk) -> None:
    ticket = await committed(talk.audits, CHAT, account=talk.account)
    assert await talk.chats.create(talk.account, ChatRecord(CHAT, {})) is None
    with pytest.raises(ChatNotFound):
        await talk.chats.chat(talk.account, CHAT)
    with pytest.raises(ChatNotFound):
        await talk.placed()
    audit = await talk.audits.read(talk.account, CHAT)
    assert audit is not None
    assert audit.record.generation_id == ticket.generation_id


async def test_an_expired_chat_of_the_proxy_gives_its_name_free(talk: Talk) -> None:
    await committed(talk.audits, CHAT, account=talk.account, expires=int(talk.clock.now()) + 100)
    talk.clock.time += 200
    await talk.created()
    assert await talk.audits.read(talk.account, CHAT) is None
    assert (await talk.begun()).seq >= 1


async def test_a_call_of_the_proxy_in_a_stored_chat_never_lets_it_expire(talk: Talk) -> None:
    await talk.created(CHAT, "hi")
    ticket = await begin(talk.audits, CHAT, account=talk.account, expires=int(talk.clock.now()) + 5)
    await prepare(talk.audits, ticket)
    assert await talk.audits.commit(ticket) is Commit.COMMITTED
    talk.clock.time += 3600
    assert await talk.said() == ["hi"]
    assert await talk.audits.read(talk.account, CHAT) is not None
    assert (await talk.begun()).seq == ticket.seq + 1


async def test_a_document_changes_only_from_the_version_that_was_read(talk: Talk) -> None:
    made = await talk.created()
    talk.clock.time += 5
    changed = await talk.chats.change(talk.account, CHAT, {"title": "new"}, 1)
    assert changed == replace(made, document={"title": "new"}, version=2, updated_at=talk.clock.now())
    assert await talk.chats.change(talk.account, CHAT, {"title": "late"}, 1) is None
    assert await talk.chats.chat(talk.account, CHAT) == changed


async def test_of_concurrent_changes_of_one_version_one_wins(talk: Talk) -> None:
    await talk.created()
    outcomes = await asyncio.gather(*(talk.chats.change(talk.account, CHAT, {"n": n}, 1) for n in range(6)))
    (won,) = [outcome for outcome in outcomes if outcome is not None]
    assert await talk.chats.chat(talk.account, CHAT) == won


async def test_chats_are_listed_newest_first_page_by_page(talk: Talk) -> None:
    for n in range(7):
        talk.clock.time += 1
        await talk.created(f"c-{n}", user="ann" if n % 2 else "bob")
    assert await _listed(talk, None, 3) == [f"c-{n}" for n in (6, 5, 4, 3, 2, 1, 0)]
    assert await _listed(talk, "ann", 2) == ["c-5", "c-3", "c-1"]
    assert await _listed(talk, "nobody", 2) == []
    assert await talk.audits.delete(talk.account, "c-3")
    assert await _listed(talk, "ann", 1) == ["c-5", "c-1"]
    assert await _listed(talk, None, 100) == [f"c-{n}" for n in (6, 5, 4, 2, 1, 0)]
    page = await talk.chats.chats("other", None, 5, None)
    assert (list(page.items), page.cursor) == ([], None)


async def test_a_list_shows_chats_as_they_are_now_and_once(talk: Talk) -> None:
    await talk.created(user="ann")
    await talk.audits.delete(talk.account, CHAT)
    talk.clock.time += 1
    await talk.created(user="ann")
    changed = await talk.chats.change(talk.account, CHAT, {"title": "now"}, 1)
    for user in ("ann", None):
        assert list((await talk.chats.chats(talk.account, user, 5, None)).items) == [changed]


@pytest.mark.parametrize("cursor", ["", "x", "-1", "é", "main.1.2", "9" * 40])
async def test_a_cursor_of_no_list_is_refused(talk: Talk, cursor: str) -> None:
    await talk.created(CHAT, "hi")
    with pytest.raises(InvalidInput) as caught:
        await talk.chats.chats(talk.account, None, 5, cursor)
    assert caught.value.path == "cursor"
    with pytest.raises(InvalidInput):
        await talk.chats.messages(talk.account, CHAT, MAIN, 5, cursor, newest_first=True)


async def _listed(talk: Talk, user: str | None, limit: int) -> list[str]:
    found, cursor = [], None
    while True:
        page = await talk.chats.chats(talk.account, user, limit, cursor)
        assert len(page.items) <= limit
        found += [chat.id for chat in page.items]
        cursor = page.cursor
        if cursor is None:
            return found


async def test_messages_get_their_places_in_order(talk: Talk) -> None:
    await talk.created(CHAT, "a", "b")
    added = await talk.chats.append(talk.account, CHAT, MAIN, [says("c"), says("d")])
    assert added is not None
    now = talk.clock.now()
    assert added == [MessageRecord(MAIN, n, says(text), 1, now, now) for n, text in ((3, "c"), (4, "d"))]
    assert await talk.chats.message(talk.account, CHAT, "main.3") == added[0]
    assert await talk.chats.append(talk.account, CHAT, "elsewhere", [says("x")]) is None
    assert await talk.chats.append(talk.account, CHAT, MAIN, []) == []
    assert await talk.said() == ["a", "b", "c", "d"]


async def test_concurrent_appends_share_no_place_and_stay_together(talk: Talk) -> None:
    await talk.created()
    tries = [talk.chats.append(talk.account, CHAT, MAIN, [says(f"{n}a"), says(f"{n}b")]) for n in range(6)]
    added = [records for records in await asyncio.gather(*tries) if records is not None]
    assert sorted(record.n for records in added for record in records) == list(range(1, 13))
    said = await talk.said()
    assert [(a[0], a[1:], b[1:]) for a, b in zip(said[::2], said[1::2], strict=True)] == [
        (b[0], "a", "b") for b in said[1::2]
    ]


async def test_a_fork_shares_what_was_said_before_and_counts_on_from_there(talk: Talk) -> None:
    await talk.created(CHAT, "a", "b", "c")
    assert await talk.chats.fork(talk.account, CHAT, BranchRecord("b1", (("main", 2),), "What if"))
    assert not await talk.chats.fork(talk.account, CHAT, BranchRecord("b1"))
    assert not await talk.chats.fork(talk.account, CHAT, BranchRecord(MAIN))
    added = await talk.chats.append(talk.account, CHAT, "b1", [says("x"), says("y")])
    assert added is not None
    assert [message.id for message in added] == ["b1.3", "b1.4"]
    assert await talk.chats.fork(talk.account, CHAT, BranchRecord("b2", (("main", 2), ("b1", 3))))
    await talk.chats.append(talk.account, CHAT, "b2", [says("z")])
    assert await talk.said(branch="b2") == ["a", "b", "x", "z"]
    assert await talk.said(branch="b1") == ["a", "b", "x", "y"]
    assert await talk.said() == ["a", "b", "c"]
    branches = await talk.chats.branches(talk.account, CHAT)
    assert [(branch.id, branch.lineage, branch.name) for branch in branches] == [
        (MAIN, (), None),
        ("b1", (("main", 2),), "What if"),
        ("b2", (("main", 2), ("b1", 3)), None),
    ]
    assert branches[1].created_at == talk.clock.now()
    assert await talk.chats.load(talk.account, CHAT, "b3") is None


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 50])
async def test_messages_are_paged_along_a_path(talk: Talk, limit: int, newest_first: bool) -> None:
    await talk.created(CHAT, "a", "b", "c")
    await talk.chats.fork(talk.account, CHAT, BranchRecord("b1", (("main", 2),)))
    await talk.chats.append(talk.account, CHAT, "b1", [says("x"), says("y"), says("z")])
    await talk.chats.remove(talk.account, CHAT, "b1.4")
    said, cursor = [], None
    while True:
        page = await talk.chats.messages(talk.account, CHAT, "b1", limit, cursor, newest_first=newest_first)
        assert page is not None
        assert len(page.items) <= limit
        said += [message.document["text"] for message in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert said == (["z", "x", "b", "a"] if newest_first else ["a", "b", "x", "z"])
    assert await talk.chats.messages(talk.account, CHAT, "b2", limit, None, newest_first=newest_first) is None


async def test_a_message_is_edited_only_from_the_version_that_was_read(talk: Talk) -> None:
    await talk.created(CHAT, "a")
    made = await talk.chats.message(talk.account, CHAT, "main.1")
    assert made is not None
    talk.clock.time += 5
    edited = await talk.chats.edit(talk.account, CHAT, "main.1", says("A"), 1)
    assert edited == replace(made, document=says("A"), version=2, updated_at=talk.clock.now())
    assert await talk.chats.edit(talk.account, CHAT, "main.1", says("late"), 1) is None
    assert await talk.chats.edit(talk.account, CHAT, "main.9", says("none"), 1) is None
    assert await talk.chats.edit(talk.account, CHAT, "no id", says("none"), 1) is None
    assert await talk.chats.message(talk.account, CHAT, "main.1") == edited


async def test_of_concurrent_edits_of_one_version_one_wins(talk: Talk) -> None:
    await talk.created(CHAT, "a")
    tries = [talk.chats.edit(talk.account, CHAT, "main.1", says(str(n)), 1) for n in range(6)]
    (won,) = [outcome for outcome in await asyncio.gather(*tries) if outcome is not None]
    assert await talk.chats.message(talk.account, CHAT, "main.1") == won


async def test_a_removed_message_is_gone_from_every_branch_and_its_place_is_not_given_again(talk: Talk) -> None:
    await talk.created(CHAT, "a", "b")
    await talk.chats.fork(talk.account, CHAT, BranchRecord("b1", (("main", 2),)))
    assert await talk.chats.remove(talk.account, CHAT, "main.2")
    assert not await talk.chats.remove(talk.account, CHAT, "main.2")
    assert not await talk.chats.remove(talk.account, CHAT, "nonsense")
    assert await talk.chats.message(talk.account, CHAT, "main.2") is None
    added = await talk.chats.append(talk.account, CHAT, MAIN, [says("c")])
    assert added is not None
    assert added[0].n == 3
    assert await talk.said(branch="b1") == ["a"]


async def test_a_large_message_is_a_message(talk: Talk) -> None:
    # More than an item of DynamoDB holds, of what does not compress; more than a transaction holds in all.
    text = "".join(random.Random(1).choices("0123456789abcdefghijklmnopqrstuvwxyz", k=1_300_000))
    await talk.created(CHAT, "a", text)
    assert await talk.chats.append(talk.account, CHAT, MAIN, [says(text), says("b"), says(text)])
    assert await talk.said() == ["a", text, text, "b", text]
    edited = await talk.chats.edit(talk.account, CHAT, "main.5", says("small"), 1)
    assert edited is not None
    assert await talk.chats.edit(talk.account, CHAT, "main.1", says(text[::-1]), 1)
    assert await talk.said() == [text[::-1], text, text, "b", "small"]
    page = await talk.chats.messages(talk.account, CHAT, MAIN, 2, None, newest_first=False)
    assert page is not None
    assert [message.document for message in page.items] == [says(text[::-1]), says(text)]
    assert await talk.chats.remove(talk.account, CHAT, "main.2")
    assert await talk.chats.change(talk.account, CHAT, {"title": text}, 1)
    assert (await talk.chats.chat(talk.account, CHAT)).document == {"title": text}
    assert await talk.audits.delete(talk.account, CHAT)
    assert not await talk.holds(CHAT)


async def test_many_messages_are_created_at_once(talk: Talk) -> None:
    texts = [str(n) for n in range(230)]
    await talk.created(CHAT, *texts)
    assert await talk.said() == texts
    await talk.chats.append(talk.account, CHAT, MAIN, [says(text) for text in texts])
    assert await talk.said() == texts * 2


async def test_nothing_is_found_in_a_chat_that_is_not_there(talk: Talk) -> None:
    chats, account = talk.chats, talk.account
    verbs = [
        lambda: chats.chat(account, CHAT),
        lambda: chats.change(account, CHAT, {}, 1),
        lambda: chats.fork(account, CHAT, BranchRecord("b")),
        lambda: chats.branches(account, CHAT),
        lambda: chats.append(account, CHAT, MAIN, [says("x")]),
        lambda: chats.messages(account, CHAT, MAIN, 1, None, newest_first=True),
        lambda: chats.message(account, CHAT, "main.1"),
        lambda: chats.edit(account, CHAT, "main.1", {}, 1),
        lambda: chats.remove(account, CHAT, "main.1"),
        lambda: chats.load(account, CHAT, MAIN),
        lambda: chats.begin_generation(account, CHAT, MAIN, "g", now=1.0),
        lambda: chats.generation(account, CHAT, "g"),
        lambda: chats.cancel(account, CHAT, "g"),
    ]
    for verb in verbs:
        with pytest.raises(ChatNotFound):
            await verb()
    await talk.created()
    assert await talk.audits.delete(account, CHAT)
    for verb in verbs:
        with pytest.raises(ChatNotFound):
            await verb()


async def test_a_generation_is_known_while_it_runs_and_afterwards(talk: Talk) -> None:
    await talk.created(CHAT, "a")
    ticket = await talk.begun()
    assert await talk.chats.progress(ticket, "so f", "hm") is False
    running = await talk.chats.generation(talk.account, CHAT, ticket.generation_id)
    assert running is not None
    assert (running.status, running.text, running.reasoning, running.end) == (AuditStatus.PREPARED, "so f", "hm", None)
    assert (running.document, running.message) == ({"type": "normal"}, None)
    assert running.deadline == running.created_at + 30
    saved = await talk.ended(ticket, Saving(says("so far"), MAIN))
    assert saved is not None
    assert saved == await talk.chats.message(talk.account, CHAT, "main.2")
    ended = await talk.chats.generation(talk.account, CHAT, ticket.generation_id)
    assert ended is not None
    assert (ended.status, ended.end, ended.message) == (AuditStatus.COMPLETED, completed(), "main.2")
    audit = await talk.audits.read(talk.account, CHAT)
    assert audit is not None
    assert audit.record.end == completed()
    assert await talk.chats.generation(talk.account, CHAT, "other") is None


async def test_an_end_is_once_and_its_repeat_returns_what_was_saved(talk: Talk) -> None:
    await talk.created()
    ticket = await talk.begun()
    saved = await talk.ended(ticket, Saving(says("reply"), MAIN))
    assert await talk.ended(ticket, Saving(says("reply"), MAIN)) == saved
    assert await talk.chats.end_generation(ticket, failed(), Saving(says("other"), MAIN)) == saved
    assert await talk.said() == ["reply"]
    record = await talk.chats.generation(talk.account, CHAT, ticket.generation_id)
    assert record is not None
    assert record.end == completed()


async def test_an_end_may_save_nothing(talk: Talk) -> None:
    await talk.created()
    ticket = await talk.begun()
    assert await talk.chats.end_generation(ticket, failed(), None) is None
    assert await talk.chats.end_generation(ticket, failed(), None) is None
    record = await talk.chats.generation(talk.account, CHAT, ticket.generation_id)
    assert record is not None
    assert (record.end, record.message) == (failed(), None)


async def test_an_end_replaces_the_message_that_was_read_and_no_other(talk: Talk) -> None:
    await talk.created(CHAT, "a")
    read = await talk.chats.message(talk.account, CHAT, "main.1")
    saved = await talk.ended(await talk.begun(), Saving(says("a, and on"), MAIN, replaces=read))
    assert saved is not None
    assert (saved.version, await talk.said()) == (2, ["a, and on"])
    late = await talk.begun()
    with pytest.raises(MessageChanged):
        await talk.ended(late, Saving(says("late"), MAIN, replaces=read))
    record = await talk.chats.generation(talk.account, CHAT, late.generation_id)
    assert record is not None
    assert (record.status, record.message) == (AuditStatus.PREPARED, None)
    assert await talk.said() == ["a, and on"]
    again = await talk.ended(late, Saving(says("late"), MAIN, replaces=saved))
    assert again is not None
    assert await talk.ended(late, Saving(says("late"), MAIN, replaces=saved)) == again
    record = await talk.chats.generation(talk.account, CHAT, late.generation_id)
    assert record is not None
    assert (record.end, record.message) == (completed(), "main.1")


async def test_an_end_that_replaces_a_removed_message_ends_nothing(talk: Talk) -> None:
    await talk.created(CHAT, "a")
    read = await talk.chats.message(talk.account, CHAT, "main.1")
    ticket = await talk.begun()
    await talk.chats.remove(talk.account, CHAT, "main.1")
    with pytest.raises(MessageChanged):
        await talk.ended(ticket, Saving(says("b"), MAIN, replaces=read))
    assert await talk.ended(ticket, None) is None
    record = await talk.chats.generation(talk.account, CHAT, ticket.generation_id)
    assert record is not None
    assert (record.end, record.message, await talk.said()) == (completed(), None, [])


async def test_replies_that_change_one_message_at_once_are_all_in_it_and_linked(talk: Talk) -> None:
    await talk.created(CHAT, "")
    tickets = [await talk.begun() for _ in range(5)]

    async def end(ticket: Ticket) -> None:
        while True:
            read = await talk.chats.message(talk.account, CHAT, "main.1")
            assert read is not None
            said = says(f"{read.document['text']} {ticket.generation_id}")
            with contextlib.suppress(MessageChanged):
                assert await talk.ended(ticket, Saving(said, MAIN, replaces=read)) is not None
                return

    await asyncio.gather(*(end(ticket) for ticket in tickets))
    (said,) = await talk.said()
    assert sorted(said.split()) == sorted(ticket.generation_id for ticket in tickets)
    for ticket in tickets:
        record = await talk.chats.generation(talk.account, CHAT, ticket.generation_id)
        assert record is not None
        assert record.message == "main.1"


async def test_a_superseded_generation_still_saves_its_message(talk: Talk) -> None:
    await talk.created()
    first, second = await talk.begun(), await talk.begun()
    await talk.audits.sweep(second)
    assert await talk.ended(second, Saving(says("second"), MAIN))
    assert await talk.ended(first, Saving(says("first"), MAIN))
    assert await talk.said() == ["second", "first"]
    record = await talk.chats.generation(talk.account, CHAT, first.generation_id)
    assert record is not None
    assert record.status is AuditStatus.COMPLETED


async def test_concurrent_ends_share_no_place(talk: Talk) -> None:
    await talk.created()
    tickets = [await talk.begun() for _ in range(4)]
    ends = [talk.ended(ticket, Saving(says(ticket.generation_id), MAIN)) for ticket in (*tickets, *tickets)]
    saved = await asyncio.gather(*ends)
    assert sorted({message.n for message in saved if message}) == [1, 2, 3, 4]
    assert sorted(await talk.said()) == sorted(ticket.generation_id for ticket in tickets)


async def test_who_asks_to_cancel_is_heard(talk: Talk) -> None:
    await talk.created()
    ticket = await talk.begun()
    assert await talk.chats.cancel(talk.account, CHAT, ticket.generation_id)
    assert await talk.chats.progress(ticket, "x", "") is True
    assert not await talk.chats.cancel(talk.account, CHAT, "other")
    await talk.ended(ticket, None)
    assert await talk.chats.cancel(talk.account, CHAT, ticket.generation_id)


async def test_a_generation_is_opened_whole(talk: Talk) -> None:
    await talk.created(CHAT, "a")
    begun = await talk.placed()
    assert begun.loaded is not None
    assert ([message.document["text"] for message in begun.loaded.messages], begun.loaded.branch.last) == (["a"], 1)
    opened = await talk.chats.open_generation(begun.ticket, talk.opening(begun, said=says("b"), key="key"))
    assert (opened.commit, opened.said and opened.said.id, opened.claimed) == (Commit.COMMITTED, "main.2", None)
    assert owner(await talk.audits.read(talk.account, CHAT)) == (begun.ticket.seq, 1)
    assert await talk.chats.generation(talk.account, CHAT, begun.ticket.generation_id) is not None
    assert await talk.said() == ["a", "b"]
    assert (await talk.placed(branch="other")).loaded is None


async def test_what_was_said_since_a_generation_began_comes_before_its_message(talk: Talk) -> None:
    await talk.created(CHAT, "a", "b")
    await talk.chats.remove(talk.account, CHAT, "main.2")
    begun = await talk.placed()
    await talk.chats.append(talk.account, CHAT, MAIN, [says("c")])
    opened = await talk.chats.open_generation(begun.ticket, talk.opening(begun, said=says("d")))
    assert opened.said is not None
    assert (opened.said.id, await talk.said()) == ("main.4", ["a", "c", "d"])


@pytest.mark.parametrize("size", [900, 200_000])
async def test_a_generation_that_is_opened_late_takes_no_audit_from_a_later_one(talk: Talk, size: int) -> None:
    await talk.created()
    late = await talk.placed()
    later = await talk.begun()
    opened = await talk.chats.open_generation(late.ticket, talk.opening(late, size, said=says("late")))
    assert opened.commit is Commit.SUPERSEDED
    assert owner(await talk.audits.read(talk.account, CHAT)) == (later.seq, 1)
    assert await talk.said() == ["late"]
    assert await talk.ended(late.ticket, Saving(says("reply"), MAIN)) is not None
    record = await talk.chats.generation(talk.account, CHAT, late.ticket.generation_id)
    assert record is not None
    assert (record.end, await talk.said()) == (completed(), ["late", "reply"])


async def test_an_idempotency_key_belongs_to_the_first_that_claims_it(talk: Talk) -> None:
    await talk.created()
    first = await talk.begun(key="key", request="request")
    claim = Claim(first.generation_id, "request")
    assert (await talk.placed(key="key")).claimed == claim
    begun = await talk.placed(key="Key")
    assert begun.claimed is None
    for size in (900, 200_000):
        opening = talk.opening(begun, size, key="key", request="another", said=says("the secret" * 500))
        opened = await talk.chats.open_generation(begun.ticket, opening)
        assert (opened.claimed, opened.said) == (claim, None)
    assert not await talk.holds("the secret")
    assert await talk.said() == []
    assert owner(await talk.audits.read(talk.account, CHAT)) == (first.seq, 1)
    assert await talk.chats.generation(talk.account, CHAT, begun.ticket.generation_id) is None
    assert await talk.ended(begun.ticket, Saving(says("reply"), MAIN)) is None


async def test_of_concurrent_claims_one_wins(talk: Talk) -> None:
    await talk.created()
    begun = [await talk.placed(key="k") for _ in range(5)]
    opened = await asyncio.gather(
        *(
            talk.chats.open_generation(one.ticket, talk.opening(one, key="k", said=says(one.ticket.generation_id)))
            for one in begun
        )
    )
    (winner,) = [one.ticket for one, outcome in zip(begun, opened, strict=True) if outcome.claimed is None]
    assert {outcome.claimed for outcome in opened} == {None, Claim(winner.generation_id, "")}
    assert await talk.said() == [winner.generation_id]


async def test_concurrent_openings_all_keep_what_was_said(talk: Talk) -> None:
    await talk.created()
    begun = [await talk.placed() for _ in range(4)]
    opened = await asyncio.gather(
        *(talk.chats.open_generation(one.ticket, talk.opening(one, said=says(f"{one.ticket.seq}"))) for one in begun)
    )
    assert sorted(await talk.said()) == sorted(f"{one.ticket.seq}" for one in begun)
    assert sorted(outcome.said.n for outcome in opened if outcome.said) == [1, 2, 3, 4]
    assert owner(await talk.audits.read(talk.account, CHAT)) == (begun[-1].ticket.seq, 1)


async def test_what_is_told_to_expire_is_not_seen_afterwards(talk: Talk) -> None:
    await talk.created()
    first = await talk.begun(key="key", request="request")
    talk.clock.time += SOON + 1
    assert await talk.chats.generation(talk.account, CHAT, first.generation_id) is None
    assert not await talk.chats.cancel(talk.account, CHAT, first.generation_id)
    assert (await talk.placed(key="key")).claimed is None
    second = await talk.begun(key="key", request="new")
    assert (await talk.placed(key="key")).claimed == Claim(second.generation_id, "new")


async def test_a_deletion_takes_everything(talk: Talk) -> None:
    await talk.created(CHAT, "the secret", user="ann")
    await talk.chats.fork(talk.account, CHAT, BranchRecord("b1", (("main", 1),), "the secret"))
    await talk.chats.append(talk.account, CHAT, "b1", [says("the secret")])
    ticket = await talk.begun(key="key", request="the secret", said=says("the secret"))
    await talk.chats.progress(ticket, "the secret", "")
    assert await talk.holds("the secret")
    assert await talk.audits.delete(talk.account, CHAT)
    assert not await talk.holds("the secret")
    assert not await talk.audits.delete(talk.account, CHAT)


@pytest.mark.parametrize("size", [900, 200_000])
async def test_what_began_before_a_deletion_leaves_nothing(talk: Talk, size: int) -> None:
    await talk.created(user="ann")
    ticket = await talk.begun()
    late = await talk.placed()
    assert await talk.audits.delete(talk.account, CHAT)
    await talk.created(CHAT, "anew")
    assert await talk.chats.progress(ticket, "the secret", "the secret") is True
    assert await talk.ended(ticket, Saving(says("the secret"), MAIN)) is None
    opening = talk.opening(late, size, key="key", request="the secret", said=says("the secret" * 500))
    with pytest.raises(ChatNotFound):
        await talk.chats.open_generation(late.ticket, opening)
    assert not await talk.holds("the secret")
    assert await talk.said() == ["anew"]
    assert (await talk.begun()).epoch != ticket.epoch


async def test_accounts_are_apart(talk: Talk) -> None:
    await talk.created(CHAT, "mine")
    other = replace(talk, account=f"{talk.account}2")
    with pytest.raises(ChatNotFound):
        await other.chats.chat(other.account, CHAT)
    await other.created(CHAT, "theirs")
    assert (await talk.said(), await other.said()) == (["mine"], ["theirs"])
