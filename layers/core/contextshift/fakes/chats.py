"""Stored chats and libraries kept in memory, with the meaning of the real stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from contextshift.audit import AuditStatus
from contextshift.chats import (
    MAIN,
    Begun,
    BranchRecord,
    ChatRecord,
    Claim,
    Document,
    GenerationRecord,
    LibraryKind,
    LibraryRecord,
    LoadedChat,
    MessageRecord,
    Opened,
    Opening,
    Page,
    Saving,
    place_of,
)
from contextshift.errors import ChatNotFound, InvalidInput, MessageChanged
from contextshift.fakes.stores import Fallible, MemoryAuditStore
from contextshift.ports import AuditEnd, Clock, Commit, Ticket

__all__ = ["MemoryChats", "MemoryLibrary"]

_T = TypeVar("_T")


@dataclass(slots=True)
class _Generation:
    record: GenerationRecord
    expires: int
    cancelled: bool = False
    saved: MessageRecord | None = None


@dataclass(slots=True)
class _Stored:
    """What one life of a stored chat keeps."""

    chat: ChatRecord
    branches: dict[str, BranchRecord] = field(default_factory=lambda: {MAIN: BranchRecord(MAIN)})
    messages: dict[tuple[str, int], MessageRecord] = field(default_factory=dict)
    generations: dict[str, _Generation] = field(default_factory=dict)
    claims: dict[str, tuple[Claim, int]] = field(default_factory=dict)
    """What each idempotency key is bound to, and until when."""

    def path(self, branch: BranchRecord) -> list[MessageRecord]:
        """Return the messages of a branch's path, oldest first."""
        return [
            message
            for owner, last in branch.path
            for _, message in sorted((n, m) for (b, n), m in self.messages.items() if b == owner)
            if last is None or message.n <= last
        ]


class MemoryChats(Fallible):
    """A `ChatStore` in memory, over the lives of an audit store: a deletion there takes all that is here."""

    def __init__(self, audits: MemoryAuditStore, clock: Clock) -> None:
        super().__init__()
        self._audits = audits
        self._clock = clock

    async def create(self, account: str, chat: ChatRecord, messages: Sequence[Document] = ()) -> ChatRecord | None:
        """Create a chat with its first messages; see `ChatStore.create`."""
        self.check("create")
        if self._audits.living(account, chat.id) is not None:
            return None
        now = self._clock.now()
        life = self._audits.born(account, chat.id)
        stored = life.stored = _Stored(replace(chat, version=1, created_at=now, updated_at=now))
        stored.branches[MAIN] = BranchRecord(MAIN, created_at=now)
        self._appended(stored, stored.branches[MAIN], messages)
        return stored.chat

    async def chat(self, account: str, chat_id: str) -> ChatRecord:
        """Return a chat's document; see `ChatStore.chat`."""
        self.check("chat")
        return self._stored(account, chat_id).chat

    async def change(self, account: str, chat_id: str, document: Document, expected: int) -> ChatRecord | None:
        """Replace a chat's document; see `ChatStore.change`."""
        self.check("change")
        stored = self._stored(account, chat_id)
        if stored.chat.version != expected:
            return None
        stored.chat = replace(stored.chat, document=document, version=expected + 1, updated_at=self._clock.now())
        return stored.chat

    async def chats(self, account: str, user_id: str | None, limit: int, cursor: str | None) -> Page[ChatRecord]:
        """List chats, the newest first; see `ChatStore.chats`."""
        self.check("chats")
        found = [life.stored.chat for life in reversed(self._audits.lives_of(account)) if life.stored is not None]
        return _page([chat for chat in found if user_id is None or chat.user_id == user_id], limit, cursor)

    async def fork(self, account: str, chat_id: str, branch: BranchRecord) -> bool:
        """Add a branch; see `ChatStore.fork`."""
        self.check("fork")
        stored = self._stored(account, chat_id)
        if branch.id in stored.branches:
            return False
        stored.branches[branch.id] = replace(branch, created_at=self._clock.now(), last=branch.first - 1)
        return True

    async def branches(self, account: str, chat_id: str) -> Sequence[BranchRecord]:
        """Return all branches; see `ChatStore.branches`."""
        self.check("branches")
        return list(self._stored(account, chat_id).branches.values())

    async def append(
        self, account: str, chat_id: str, branch: str, documents: Sequence[Document]
    ) -> Sequence[MessageRecord] | None:
        """Add messages at a branch's end; see `ChatStore.append`."""
        self.check("append")
        stored = self._stored(account, chat_id)
        known = stored.branches.get(branch)
        return None if known is None else self._appended(stored, known, documents)

    async def messages(
        self, account: str, chat_id: str, branch: str, limit: int, cursor: str | None, *, newest_first: bool
    ) -> Page[MessageRecord] | None:
        """Return some messages of a branch's path; see `ChatStore.messages`."""
        self.check("messages")
        stored = self._stored(account, chat_id)
        known = stored.branches.get(branch)
        if known is None:
            return None
        path = stored.path(known)
        return _page(path[::-1] if newest_first else path, limit, cursor)

    async def message(self, account: str, chat_id: str, message: str) -> MessageRecord | None:
        """Return one message; see `ChatStore.message`."""
        self.check("message")
        stored, place = self._stored(account, chat_id), place_of(message)
        return None if place is None else stored.messages.get(place)

    async def edit(
        self, account: str, chat_id: str, message: str, document: Document, expected: int
    ) -> MessageRecord | None:
        """Replace a message's document; see `ChatStore.edit`."""
        self.check("edit")
        stored, place = self._stored(account, chat_id), place_of(message)
        present = None if place is None else stored.messages.get(place)
        return None if present is None else self._edited(stored, present, document, expected)

    async def remove(self, account: str, chat_id: str, message: str) -> bool:
        """Remove a message; see `ChatStore.remove`."""
        self.check("remove")
        stored, place = self._stored(account, chat_id), place_of(message)
        return place is not None and stored.messages.pop(place, None) is not None

    async def load(self, account: str, chat_id: str, branch: str) -> LoadedChat | None:
        """Return what a generation reads; see `ChatStore.load`."""
        self.check("load")
        return self._loaded(self._stored(account, chat_id), branch)

    async def begin_generation(
        self, account: str, chat_id: str, branch: str, generation_id: str, *, now: float, key: str | None = None
    ) -> Begun:
        """Take the next place in a stored chat's order, and read it; see `ChatStore.begin_generation`."""
        self.check("begin_generation")
        stored = self._stored(account, chat_id)
        ticket = await self._audits.begin(account, chat_id, generation_id, now=now, expires=None)
        return Begun(ticket, self._loaded(stored, branch), self._claimed(stored, key))

    async def open_generation(self, ticket: Ticket, opening: Opening) -> Opened:
        """Open a generation, all or nothing; see `ChatStore.open_generation`."""
        self.check("open_generation")
        stored = self._lived(ticket)
        claimed = self._claimed(stored, opening.key)
        if claimed is not None:
            return Opened(Commit.SUPERSEDED, claimed=claimed)
        if opening.key is not None:
            stored.claims[opening.key] = Claim(ticket.generation_id, opening.request), opening.expires
        await self._audits.prepare(ticket, opening.audit, opening.parts, expires=opening.audit_expires)
        commit = await self._audits.commit(ticket)
        branch = stored.branches.get(opening.branch.id)
        said = self._appended(stored, branch, [opening.said])[0] if branch and opening.said is not None else None
        stored.generations[ticket.generation_id] = _Generation(opening.generation, opening.expires)
        return Opened(commit, said)

    async def progress(self, ticket: Ticket, text: str, reasoning: str) -> bool:
        """Keep the text so far; see `ChatStore.progress`."""
        self.check("progress")
        life = self._audits.life(ticket)
        generation = None if life is None else life.stored.generations.get(ticket.generation_id)
        if generation is None:
            return True
        generation.record = replace(generation.record, text=text, reasoning=reasoning)
        return bool(generation.cancelled)

    async def end_generation(self, ticket: Ticket, end: AuditEnd, saving: Saving | None) -> MessageRecord | None:
        """End audit and generation and save the message; see `ChatStore.end_generation`."""
        self.check("end_generation")
        life = self._audits.life(ticket)
        if life is None or life.stored is None:
            return None
        stored: _Stored = life.stored
        generation = stored.generations.get(ticket.generation_id)
        if generation is None or generation.record.status.terminal:
            place = generation and generation.saved and (generation.saved.branch, generation.saved.n)
            return stored.messages.get(place) if place else None
        generation.saved = self._saved(stored, saving)
        saved = generation.saved.id if generation.saved else None
        generation.record = replace(generation.record, status=end.status, end=end, message=saved)
        await self._audits.finish(ticket, end)
        return generation.saved

    async def generation(self, account: str, chat_id: str, generation_id: str) -> GenerationRecord | None:
        """Return a generation; see `ChatStore.generation`."""
        self.check("generation")
        found = self._known(account, chat_id, generation_id)
        return found.record if found else None

    async def cancel(self, account: str, chat_id: str, generation_id: str) -> bool:
        """Ask for a generation to be cancelled; see `ChatStore.cancel`."""
        self.check("cancel")
        found = self._known(account, chat_id, generation_id)
        if found is not None and found.record.status is AuditStatus.PREPARED:
            found.cancelled = True
        return found is not None

    def _stored(self, account: str, chat_id: str) -> _Stored:
        life = self._audits.living(account, chat_id)
        if life is None or life.stored is None:
            raise ChatNotFound("no such chat")
        stored: _Stored = life.stored
        return stored

    def _known(self, account: str, chat_id: str, generation_id: str) -> _Generation | None:
        found = self._stored(account, chat_id).generations.get(generation_id)
        return None if found is None or found.expires <= self._clock.now() else found

    def _loaded(self, stored: _Stored, branch: str) -> LoadedChat | None:
        known = stored.branches.get(branch)
        return None if known is None else LoadedChat(stored.chat, known, stored.path(known))

    def _claimed(self, stored: _Stored, key: str | None) -> Claim | None:
        claim, expires = stored.claims.get(key or "", (None, 0))
        return claim if expires > self._clock.now() else None

    def _lived(self, ticket: Ticket) -> _Stored:
        life = self._audits.life(ticket)
        if life is None or life.stored is None:
            raise ChatNotFound("no such chat")
        stored: _Stored = life.stored
        return stored

    def _appended(self, stored: _Stored, branch: BranchRecord, documents: Sequence[Document]) -> list[MessageRecord]:
        now, added = self._clock.now(), []
        for document in documents:
            n = stored.branches[branch.id].last + 1
            stored.branches[branch.id] = replace(stored.branches[branch.id], last=n)
            added.append(MessageRecord(branch.id, n, document, 1, now, now))
            stored.messages[branch.id, n] = added[-1]
        return added

    def _edited(
        self, stored: _Stored, present: MessageRecord, document: Document, expected: int
    ) -> MessageRecord | None:
        if present.version != expected:
            return None
        changed = replace(present, document=document, version=expected + 1, updated_at=self._clock.now())
        stored.messages[present.branch, present.n] = changed
        return changed

    def _saved(self, stored: _Stored, saving: Saving | None) -> MessageRecord | None:
        if saving is None:
            return None
        branch = stored.branches.get(saving.branch)
        if branch is None:
            return None
        if saving.replaces is None:
            return self._appended(stored, branch, [saving.document])[0]
        present = stored.messages.get((saving.replaces.branch, saving.replaces.n))
        saved = present and self._edited(stored, present, saving.document, saving.replaces.version)
        if saved is None:
            raise MessageChanged("the message was changed meanwhile")
        return saved


class MemoryLibrary(Fallible):
    """A `LibraryStore` in memory."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._kept: dict[tuple[str, str, str], LibraryRecord] = {}

    async def put(
        self, account: str, kind: LibraryKind, record: LibraryRecord, expected: int | None
    ) -> LibraryRecord | None:
        """Store a document as the next version; see `LibraryStore.put`."""
        self.check("put")
        present = self._kept.get((account, kind, record.id))
        version = present.version if present else 0
        if expected is not None and expected != version:
            return None
        now = self._clock.now()
        created = present.created_at if present else now
        stored = replace(record, version=version + 1, created_at=created, updated_at=now)
        self._kept[account, kind, record.id] = stored
        return stored

    async def get(self, account: str, kind: LibraryKind, ids: Sequence[str]) -> Sequence[LibraryRecord]:
        """Return those that there are; see `LibraryStore.get`."""
        self.check("get")
        return [found for id in ids if (found := self._kept.get((account, kind, id))) is not None]

    async def list(self, account: str, kind: LibraryKind, limit: int, cursor: str | None) -> Page[LibraryRecord]:
        """List a kind by id; see `LibraryStore.list`."""
        self.check("list")
        return _page(list(self._of(account, kind)), limit, cursor)

    async def remove(self, account: str, kind: LibraryKind, id: str) -> bool:
        """Remove one; see `LibraryStore.remove`."""
        self.check("remove")
        return self._kept.pop((account, kind, id), None) is not None

    def _of(self, account: str, kind: str) -> Iterator[LibraryRecord]:
        for owner, present, id in sorted(self._kept):
            if (owner, present) == (account, kind):
                yield self._kept[owner, present, id]


def _page(items: Sequence[_T], limit: int, cursor: str | None) -> Page[_T]:
    """Return a page; its cursor is how many came before, which a list that only grows at its start would break."""
    if cursor is not None and not (cursor.isdecimal() and len(cursor) < 10):
        raise InvalidInput("no cursor of this list", "cursor", "invalid_cursor")
    start = int(cursor or 0)
    rest: Mapping[str, Any] = {"cursor": str(start + limit)} if start + limit < len(items) else {}
    return Page(items[start : start + limit], rest.get("cursor"))
