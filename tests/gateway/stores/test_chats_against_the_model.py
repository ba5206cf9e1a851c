"""Whatever is done to a store of chats, it answers as the one in memory does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextshift.chats import (
    MAIN,
    Begun,
    BranchRecord,
    ChatRecord,
    Claim,
    GenerationRecord,
    LoadedChat,
    Opened,
    Saving,
    place_of,
)
from contextshift.errors import ChatNotFound, MessageChanged
from contextshift.ports import AuditRecord, Ticket
from gateway.stores.conftest import Server, memory_talk, sqlite_talk
from gateway.stores.life import MovableClock, completed
from gateway.stores.talk import Talk, says

CHATS = ("c1", "c2")
BRANCHES = (MAIN, "b1", "b2")

chat = st.sampled_from(CHATS)
branch = st.sampled_from(BRANCHES)
message = st.builds("{}.{}".format, branch, st.integers(1, 5))
version = st.integers(1, 3)
nth = st.integers(0, 3)
key = st.sampled_from([None, "k", "l"])
STEPS = st.one_of(
    st.tuples(st.just("create"), chat, st.sampled_from([None, "ann"]), st.integers(0, 3)),
    st.tuples(st.just("delete"), chat),
    st.tuples(st.just("change"), chat, version),
    st.tuples(st.just("list"), st.sampled_from([None, "ann"]), st.integers(1, 2)),
    st.tuples(st.just("fork"), chat, st.sampled_from(BRANCHES[1:]), branch, message),
    st.tuples(st.just("append"), chat, branch, st.integers(0, 3)),
    st.tuples(st.just("page"), chat, branch, st.integers(1, 3), st.booleans()),
    st.tuples(st.just("edit"), chat, message, version),
    st.tuples(st.just("remove"), chat, message),
    st.tuples(st.just("begin"), chat, branch, key),
    st.tuples(st.just("open"), nth, key, st.booleans()),
    st.tuples(st.just("progress"), nth),
    st.tuples(st.just("cancel"), nth),
    st.tuples(
        st.just("end"),
        nth,
        st.one_of(st.none(), st.just("new"), message, st.builds("stale {}".format, message)),
        branch,
    ),
)
FIRST = [("begin", "c1", MAIN, None), ("open", 0, "k", True), ("begin", "c1", MAIN, None), ("open", 1, None, False)]
# A chat with something in it and two generations first: what is done to none is soon said.
PROGRAMS = st.lists(STEPS, min_size=8, max_size=40).map(lambda steps: [("create", "c1", "ann", 3), *FIRST, *steps])


@dataclass
class Run:
    """One store that takes steps."""

    talk: Talk
    begun: list[Begun] = field(default_factory=list)
    opened: list[Ticket] = field(default_factory=list)
    count: int = 0

    async def step(self, name: str, *values: Any) -> Any:
        self.count += 1
        self.talk.clock.time += 1
        try:
            outcome = await getattr(self, f"_{name}")(*values)
        except ChatNotFound:
            outcome = "no such chat"
        except MessageChanged:
            outcome = "changed meanwhile"
        return outcome, [await self._state(chat) for chat in CHATS]

    async def _state(self, chat: str) -> Any:
        """Return all that can be read of a chat."""
        account, chats = self.talk.account, self.talk.chats
        try:
            branches = await chats.branches(account, chat)
            loaded = [await chats.load(account, chat, branch.id) for branch in branches]
            known = [await chats.generation(account, chat, begun.ticket.generation_id) for begun in self.begun]
            audit = await self.talk.audits.read(account, chat)
        except ChatNotFound:
            return "no such chat"
        return branches, [_listed(one) for one in loaded], known, audit and audit.record

    def _said(self, many: int) -> list[dict[str, object]]:
        return [says(f"{self.count}.{n}") for n in range(many)]

    async def _create(self, chat: str, user: str | None, many: int) -> Any:
        return await self.talk.chats.create(self.talk.account, ChatRecord(chat, {"n": 0}, user), self._said(many))

    async def _delete(self, chat: str) -> Any:
        return await self.talk.audits.delete(self.talk.account, chat)

    async def _change(self, chat: str, expected: int) -> Any:
        return await self.talk.chats.change(self.talk.account, chat, {"n": self.count}, expected)

    async def _list(self, user: str | None, limit: int) -> Any:
        return await _all(lambda cursor: self.talk.chats.chats(self.talk.account, user, limit, cursor))

    async def _page(self, chat: str, branch: str, limit: int, newest_first: bool) -> Any:
        if await self.talk.chats.load(self.talk.account, chat, branch) is None:
            return None
        return await _all(
            lambda cursor: self.talk.chats.messages(
                self.talk.account, chat, branch, limit, cursor, newest_first=newest_first
            )
        )

    async def _fork(self, chat: str, new: str, parent: str, message: str) -> Any:
        known = {branch.id: branch for branch in await self.talk.chats.branches(self.talk.account, chat)}
        place = place_of(message)
        lineage = known[parent].forked_at(*place) if place and parent in known else None
        if lineage is None or await self.talk.chats.message(self.talk.account, chat, message) is None:
            return None
        return await self.talk.chats.fork(self.talk.account, chat, BranchRecord(new, lineage, "name"))

    async def _append(self, chat: str, branch: str, many: int) -> Any:
        return await self.talk.chats.append(self.talk.account, chat, branch, self._said(many))

    async def _edit(self, chat: str, message: str, expected: int) -> Any:
        return await self.talk.chats.edit(self.talk.account, chat, message, says(f"edit {self.count}"), expected)

    async def _remove(self, chat: str, message: str) -> Any:
        return await self.talk.chats.remove(self.talk.account, chat, message)

    async def _begin(self, chat: str, branch: str, key: str | None) -> Any:
        now = self.talk.clock.now()
        begun = await self.talk.chats.begin_generation(
            self.talk.account, chat, branch, f"g{self.count}", now=now, key=key
        )
        self.begun.append(begun)
        return begun.claimed, _listed(begun.loaded)

    async def _open(self, nth: int, key: str | None, speaks: bool) -> Any:
        begun = self.begun[nth] if nth < len(self.begun) else None
        if begun is None or begun.loaded is None or begun.ticket in self.opened:
            return None
        (said,) = self._said(1)
        wished = {"key": key, "request": f"r{self.count}", "said": said if speaks else None}
        outcome = await self.talk.chats.open_generation(begun.ticket, self.talk.opening(begun, **wished))
        if outcome.claimed is None:
            self.opened.append(begun.ticket)
            await self.talk.audits.sweep(begun.ticket)
        return outcome

    async def _progress(self, nth: int) -> Any:
        ticket = self._ticket(nth)
        return ticket and await self.talk.chats.progress(ticket, f"text {self.count}", "hm")

    async def _cancel(self, nth: int) -> Any:
        ticket = self._ticket(nth)
        return ticket and await self.talk.chats.cancel(self.talk.account, ticket.chat_id, ticket.generation_id)

    async def _end(self, nth: int, how: str | None, branch: str) -> Any:
        ticket = self._ticket(nth)
        if ticket is None:
            return None
        saving = None
        try:
            if how == "new" and await self.talk.chats.load(self.talk.account, ticket.chat_id, branch):
                saving = Saving(says(f"reply {self.count}"), branch)
            elif how and how != "new":
                read = await self.talk.chats.message(self.talk.account, ticket.chat_id, how.removeprefix("stale "))
                read = replace(read, version=read.version + 1) if read and how.startswith("stale") else read
                saving = read and Saving(says(f"reply {self.count}"), MAIN, read)
        except ChatNotFound:
            saving = Saving(says("too late"), MAIN)
        return await self.talk.chats.end_generation(ticket, completed(float(self.count)), saving)

    def _ticket(self, nth: int) -> Ticket | None:
        return self.begun[nth].ticket if nth < len(self.begun) else None


def _listed(loaded: LoadedChat | None) -> Any:
    return loaded and (loaded.chat, loaded.branch, list(loaded.messages))


async def _all(read: Callable[[str | None], Any]) -> list[Any]:
    found, cursor = [], None
    while True:
        page = await read(cursor)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


async def _compared(talk: Talk, program: list[tuple[Any, ...]]) -> None:
    model = Run(memory_talk(MovableClock(talk.clock.time)))
    tested = Run(talk)
    for step in program:
        assert _said(await tested.step(*step)) == _said(await model.step(*step)), step


def _said(answer: Any) -> Any:
    """Return an answer without the number before a generation's id: how a store counts lives is its own."""
    if isinstance(answer, str):
        return re.sub(r"\A\d+-g", "g", answer)
    if isinstance(answer, list | tuple):
        return [_said(one) for one in answer]
    if isinstance(answer, GenerationRecord):
        return replace(answer, id=_said(answer.id))
    if isinstance(answer, Claim):
        return replace(answer, generation_id=_said(answer.generation_id))
    if isinstance(answer, Opened):
        return answer.commit, answer.said, _said(answer.claimed)
    if isinstance(answer, AuditRecord):
        return replace(answer, generation_id=_said(answer.generation_id), sha="")  # of a document with the id in it
    return answer


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=PROGRAMS)
def test_sqlite_answers_as_the_model(tmp_path_factory: pytest.TempPathFactory, program: list[tuple[Any, ...]]) -> None:
    database, talk = sqlite_talk(tmp_path_factory.mktemp("model") / "chats.db", MovableClock())
    try:
        asyncio.run(_compared(talk, program))
    finally:
        database.close()


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=PROGRAMS)
def test_dynamodb_answers_as_the_model(ministack_tables: Server, program: list[tuple[Any, ...]]) -> None:
    asyncio.run(_compared(ministack_tables.talk(MovableClock()), program))
