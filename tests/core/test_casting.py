"""What of an account's library a chat refers to, and that nothing of it is lost on the way."""

from __future__ import annotations

import asyncio

import pytest

from contextshift.casting import MOST_MEMORIES, Cast, Shelf, card_book_id, load_cast
from contextshift.chats import LibraryRecord
from contextshift.fakes import FixedClock, MemoryLibrary

BOOK = {"entries": [{"keys": ["x"], "content": "lore", "enabled": True, "insertion_order": 1}]}
CARD = {"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Coll", "character_book": BOOK}}


class CountingLibrary(MemoryLibrary):
    lists = 0

    async def list(self, account, kind, limit, cursor):  # type: ignore[no-untyped-def]
        self.lists += 1
        return await super().list(account, kind, limit, cursor)


def library_with(**kinds: dict[str, dict]) -> CountingLibrary:  # type: ignore[type-arg]
    library = CountingLibrary(FixedClock(0))

    async def fill() -> None:
        for kind, documents in kinds.items():
            for id, document in documents.items():
                await library.put("a", kind, LibraryRecord(id, document), None)

    asyncio.run(fill())
    return library


def load(library: MemoryLibrary, chat: dict[str, object]) -> Cast:
    return asyncio.run(load_cast(library, "a", "c", chat, Shelf()))


def test_a_lorebook_may_have_any_id_beside_a_character_s_own_book():
    ids = ["character:coll", "character.coll", "character-coll", "coll"]
    library = library_with(character={"coll": CARD}, lorebook=dict.fromkeys(ids, BOOK))
    found = load(library, {"participants": [{"id": "p", "character_id": "coll"}], "lorebooks": ids})
    assert [book.id for book in found.books] == [card_book_id("coll"), *ids]
    assert len({book.id for book in found.books}) == 5


@pytest.mark.parametrize("others", [5, 999, 1000, 2500])
def test_memories_of_a_chat_are_found_among_all_of_the_account(others: int):
    foreign = {f"a{n:05}": {"text": "x", "chat_id": "other"} for n in range(others)}
    library = library_with(memory={**foreign, "z": {"text": "mine", "chat_id": "c", "pinned": True}})
    found = load(library, {})
    assert [id for id, _ in found.memories] == ["z"]
    assert not found.notes
    assert library.lists == -(-(others + 1) // 1000)


def test_memories_beyond_the_bound_are_told_of():
    library = library_with(memory={f"m{n:05}": {"text": "x"} for n in range(MOST_MEMORIES + 1)})
    found = load(library, {})
    assert [id for id, _ in found.memories] == [f"m{n:05}" for n in range(MOST_MEMORIES)]
    assert found.notes == [{"code": "memories-not-read", "read": MOST_MEMORIES}]
