"""Stored chats as their stores see them: documents with a version, messages in the order of one tree.

A chat is one tree of messages; a branch is a path through it: what its ancestors said up to the fork points, then its
own. What a message or a chat says is a JSON document that the store keeps and never reads; ids, order, versions and
lives are the store's. A message's id tells its place (`message_id`), so reading it needs no index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from contextshift.audit import AuditStatus
from contextshift.ports import AuditEnd, AuditRecord, Commit, Ticket

__all__ = [
    "MAIN",
    "Begun",
    "BranchRecord",
    "ChatRecord",
    "ChatStore",
    "Claim",
    "GenerationRecord",
    "LibraryKind",
    "LibraryRecord",
    "LibraryStore",
    "LoadedChat",
    "MessageRecord",
    "Opened",
    "Opening",
    "Page",
    "Saving",
    "message_id",
    "place_of",
]

MAIN = "main"
"""The branch that every chat has."""
LibraryKind = str
"""``character``, ``persona``, ``lorebook`` or ``memory``."""
Document = Mapping[str, Any]
_PLACE = re.compile(r"(?P<branch>[A-Za-z0-9_-]{1,64})\.(?P<n>[1-9][0-9]{0,8})\Z")
_T = TypeVar("_T")


def message_id(branch: str, n: int) -> str:
    """Return the id of a branch's n-th own message.

    >>> message_id("main", 12), place_of("main.12")
    ('main.12', ('main', 12))
    """
    return f"{branch}.{n}"


def place_of(message: str) -> tuple[str, int] | None:
    """Return (branch, n) of a message id, None for what is no such id."""
    found = _PLACE.match(message)
    return (found["branch"], int(found["n"])) if found else None


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A chat's own document."""

    id: str
    document: Document
    user_id: str | None = None
    """Immutable, like the id: lists are made by it."""
    version: int = 1
    created_at: float = 0.0
    updated_at: float = 0.0


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """A message at its place."""

    branch: str
    n: int
    """Its number in its branch, from 1; forks count on where their parent was left."""
    document: Document
    version: int = 1
    created_at: float = 0.0
    updated_at: float = 0.0

    @property
    def id(self) -> str:
        """Its id, which is its place."""
        return message_id(self.branch, self.n)


@dataclass(frozen=True, slots=True)
class BranchRecord:
    """A branch: which of whose messages it is made of."""

    id: str
    lineage: tuple[tuple[str, int], ...] = ()
    """(branch, last shared n) of its ancestors, the root first; its own messages follow."""
    name: str | None = None
    created_at: float = 0.0
    last: int = 0
    """The highest number that its own messages were given; a removed one's is not given again."""

    @property
    def first(self) -> int:
        """The number that its first own message gets."""
        return self.lineage[-1][1] + 1 if self.lineage else 1

    @property
    def path(self) -> tuple[tuple[str, int | None], ...]:
        """(branch, last n) of all its messages, oldest first; None: to the end."""
        return (*self.lineage, (self.id, None))

    def forked_at(self, branch: str, n: int) -> tuple[tuple[str, int], ...] | None:
        """Return the lineage of a fork after the message (``branch``, ``n``), None where it is not on this path.

        >>> BranchRecord("b", (("main", 4),)).forked_at("main", 2)
        (('main', 2),)
        """
        shared: list[tuple[str, int]] = []
        for owner, last in self.path:
            if owner == branch:
                return (*shared, (branch, n)) if last is None or n <= last else None
            shared.append((owner, last or 0))
        return None


@dataclass(frozen=True, slots=True)
class Page(Generic[_T]):
    """Some of many, and where to go on."""

    items: Sequence[_T]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class LoadedChat:
    """What a generation reads of a chat, as one snapshot as near as the store can make it."""

    chat: ChatRecord
    branch: BranchRecord
    messages: Sequence[MessageRecord]
    """Of the branch's whole path, oldest first."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What a generation's end writes into the conversation, together with the end or not at all."""

    document: Document
    branch: str
    replaces: MessageRecord | None = None
    """The message that is changed, if it is still as it was read; None: a new one at the branch's end."""


@dataclass(frozen=True, slots=True)
class GenerationRecord:
    """A generation of a chat, as another process may ask for it."""

    id: str
    document: Document
    """Its type, branch and what else its caller keeps of it."""
    status: AuditStatus
    created_at: float
    deadline: float
    text: str = ""
    """What was generated so far; a second or so behind."""
    reasoning: str = ""
    message: str | None = None
    """The message that it was saved as."""
    end: AuditEnd | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """What an idempotency key is bound to."""

    generation_id: str
    request: str
    """SHA-256 of the request that bound it."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A generation's place in its chat's order, and what it reads there."""

    ticket: Ticket
    loaded: LoadedChat | None
    """None where there is no such branch."""
    claimed: Claim | None = None
    """What the idempotency key asked for is bound to already."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What makes a begun generation known: all of it is written, or nothing."""

    generation: GenerationRecord
    expires: int
    """Epoch seconds until which generation and key are kept."""
    audit: AuditRecord
    parts: Sequence[bytes]
    audit_expires: int | None
    branch: BranchRecord
    """As it was read."""
    said: Document | None = None
    """What the user said, added at the branch's end."""
    key: str | None = None
    """The idempotency key, hashed; bound to the generation until ``expires``."""
    request: str = ""
    """SHA-256 of the request, bound with the key."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What became of an opening."""

    commit: Commit
    """Of its audit: a later generation's may be the newest already, and then this one's is not kept."""
    said: MessageRecord | None = None
    claimed: Claim | None = None
    """Another generation has the idempotency key, and nothing was written."""


class ChatStore(Protocol):
    """Keeps chats, their branches, messages and generations. Every method may raise StoreUnavailable.

    Every method but `create` and `chats` raises ChatNotFound where the account has no such living chat.
    """

    async def create(self, account: str, chat: ChatRecord, messages: Sequence[Document] = ()) -> ChatRecord | None:
        """Create a chat with its first messages on `MAIN`; None where the account has a living one of this id.

        A living chat of the proxy counts. Version and times of ``chat`` are the store's to say.
        """

    async def chat(self, account: str, chat_id: str) -> ChatRecord:
        """Return a chat's document."""

    async def change(self, account: str, chat_id: str, document: Document, expected: int) -> ChatRecord | None:
        """Replace a chat's document if its version still is ``expected``, else return None."""

    async def chats(self, account: str, user_id: str | None, limit: int, cursor: str | None) -> Page[ChatRecord]:
        """List an account's chats, or one user's, the newest first. Raises InvalidInput for a cursor not its own."""

    async def fork(self, account: str, chat_id: str, branch: BranchRecord) -> bool:
        """Add a branch; False where there is one of this id."""

    async def branches(self, account: str, chat_id: str) -> Sequence[BranchRecord]:
        """Return all branches, `MAIN` first, then as they were made."""

    async def append(
        self, account: str, chat_id: str, branch: str, documents: Sequence[Document]
    ) -> Sequence[MessageRecord] | None:
        """Add messages at a branch's end, in this order and none between them; None where there is no such branch."""

    async def messages(
        self, account: str, chat_id: str, branch: str, limit: int, cursor: str | None, *, newest_first: bool
    ) -> Page[MessageRecord] | None:
        """Return some messages of a branch's path; None where there is no such branch."""

    async def message(self, account: str, chat_id: str, message: str) -> MessageRecord | None:
        """Return one message, None where there is none."""

    async def edit(
        self, account: str, chat_id: str, message: str, document: Document, expected: int
    ) -> MessageRecord | None:
        """Replace a message's document if its version still is ``expected``, else return None."""

    async def remove(self, account: str, chat_id: str, message: str) -> bool:
        """Remove a message, from every branch that shares it; False where there was none. Its id is not given again."""

    async def load(self, account: str, chat_id: str, branch: str) -> LoadedChat | None:
        """Return what a generation reads, in as few trips as there can be; None where there is no such branch."""

    async def begin_generation(
        self, account: str, chat_id: str, branch: str, generation_id: str, *, now: float, key: str | None = None
    ) -> Begun:
        """Take the next place in the order of a stored chat, as `AuditWriter.begin` does for the proxy's, and read it.

        Beside the counter nothing is written. ``key`` is an idempotency key, hashed.
        """

    async def open_generation(self, ticket: Ticket, opening: Opening) -> Opened:
        """Open a generation: its record, its audit as the newest, its key and what the user said, all or nothing.

        Raises ChatNotFound where the ticket's life is over.
        """

    async def progress(self, ticket: Ticket, text: str, reasoning: str) -> bool:
        """Keep the text so far; return whether somebody asked to cancel, or the chat is gone."""

    async def end_generation(self, ticket: Ticket, end: AuditEnd, saving: Saving | None) -> MessageRecord | None:
        """End audit and generation and save the message, all or nothing; a repeat returns what was saved, as it is now.

        None where nothing was to be saved, where it was never opened, or where the chat was deleted. Raises
        MessageChanged where ``replaces`` was changed or removed meanwhile: nothing has ended then, and the caller
        tries again with the message as it is.
        """

    async def generation(self, account: str, chat_id: str, generation_id: str) -> GenerationRecord | None:
        """Return a generation, None where there is none."""

    async def cancel(self, account: str, chat_id: str, generation_id: str) -> bool:
        """Ask for a generation to be cancelled; False where there is none. The one that runs it sees it in time."""


@dataclass(frozen=True, slots=True)
class LibraryRecord:
    """Something of an account's library."""

    id: str
    document: Document
    version: int = 1
    created_at: float = 0.0
    updated_at: float = 0.0
    index: Document = field(default_factory=dict)
    """What lists show without the document."""


class LibraryStore(Protocol):
    """Keeps characters, personas, lorebooks and memories, of any size. Methods may raise StoreUnavailable."""

    async def put(
        self, account: str, kind: LibraryKind, record: LibraryRecord, expected: int | None
    ) -> LibraryRecord | None:
        """Store a document as the next version; None where ``expected`` (0: none yet; None: any) does not hold."""

    async def get(self, account: str, kind: LibraryKind, ids: Sequence[str]) -> Sequence[LibraryRecord]:
        """Return those that there are, in the order asked for."""

    async def list(self, account: str, kind: LibraryKind, limit: int, cursor: str | None) -> Page[LibraryRecord]:
        """List a kind by id. Raises InvalidInput for a cursor not its own."""

    async def remove(self, account: str, kind: LibraryKind, id: str) -> bool:
        """Remove one; False where there was none."""
