"""Rehearsing a chat's next prompt: everything a generation does before it writes or sends, and nothing more.

A preview is a rehearsal and a decision; a generation rehearses too, and then acts. It holds readers only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from contextshift.casting import Cast, LibraryReader, Shelf, Wanted, load_cast
from contextshift.chats import ChatRecord, LoadedChat, MessageRecord
from contextshift.errors import ChatNotFound
from contextshift.finishing import intercepted
from contextshift.guard import Guard
from contextshift.interceptors import Interceptor
from contextshift.lore.activation_ports import Search
from contextshift.planner import Planned, Planner
from contextshift.ports import Access, Clock
from contextshift.staging import Staged, Staging

__all__ = ["ChatReader", "Rehearsal"]


class ChatReader(Protocol):
    """The part of a `ChatStore` that a rehearsal needs."""

    async def load(self, account: str, chat_id: str, branch: str) -> LoadedChat | None:
        """Return what a generation reads; see `ChatStore.load`."""

    async def chat(self, account: str, chat_id: str) -> ChatRecord:
        """Return a chat's document; see `ChatStore.chat`."""


class Rehearsal:
    """Stages prompts of stored chats, and of chats that a request brings whole."""

    def __init__(
        self,
        planner: Planner,
        chats: ChatReader,
        library: LibraryReader,
        clock: Clock,
        search: Callable[[], Search],
        interceptors: Sequence[Interceptor] = (),
    ) -> None:
        self._planner = planner
        self._chats = chats
        self._library = library
        self._clock = clock
        self._search = search
        self._shelf = Shelf()
        self._interceptors = tuple(interceptors)
        self._guard = Guard()

    async def check_chat(self, access: Access, chat_id: str) -> None:
        """Raise ChatNotFound where the account has no such chat."""
        await self._chats.chat(access.account, chat_id)

    async def opened(self, access: Access, chat_id: str, branch: str) -> Callable[[Wanted], Staged]:
        """Read a stored chat once, and return what stages any wish of it. Raises ChatNotFound.

        What it returns raises InvalidInput, and what models and settings raise.
        """
        return await self.loaded(access, await self._chats.load(access.account, chat_id, branch))

    async def loaded(self, access: Access, loaded: LoadedChat | None) -> Callable[[Wanted], Staged]:
        """Return what stages any wish of a chat that was read. Raises ChatNotFound where it has no such branch."""
        if loaded is None:
            raise ChatNotFound("the chat has no such branch")
        chat_id = loaded.chat.id
        document = {**loaded.chat.document, "user_id": loaded.chat.user_id}
        cast = await load_cast(self._library, access.account, chat_id, document, self._shelf)
        return lambda wanted: self.brought(access, chat_id, document, loaded.messages, cast, wanted)

    def brought(
        self,
        access: Access,
        name: str,
        chat: Mapping[str, Any],
        messages: Sequence[MessageRecord],
        cast: Cast,
        wanted: Wanted,
    ) -> Staged:
        """Stage a chat of which everything is at hand; ``name`` seeds its chances."""
        staging = Staging(
            self._planner,
            access,
            chat,
            messages,
            cast,
            wanted,
            seed=f"{access.account}/{name}",
            now=self._clock.now(),
            search=self._search(),
        )
        return staging.stage()

    async def decided(self, staged: Staged) -> Planned:
        """Return what would be sent of a staged prompt, and why: exact, for it is shown block by block."""
        planned = self._planner.decide(await self._planner.rated(staged.question))
        return intercepted(planned, self._interceptors, self._guard)
