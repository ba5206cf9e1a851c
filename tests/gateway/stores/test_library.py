"""The contract of libraries, over every one of them."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from contextshift.chats import LibraryRecord, LibraryStore
from contextshift.errors import InvalidInput
from gateway.stores.life import MovableClock, fresh_chat

pytestmark = pytest.mark.anyio
KIND = "lorebook"


@pytest.fixture
def account() -> str:
    return fresh_chat()


async def test_what_is_put_is_got(library: LibraryStore, clock: MovableClock, account: str) -> None:
    record = LibraryRecord("elves", {"entries": [{"é\ud800": None}]}, index={"name": "Elves"})
    stored = await library.put(account, KIND, record, 0)
    assert stored == replace(record, version=1, created_at=clock.now(), updated_at=clock.now())
    assert list(await library.get(account, KIND, ["elves"])) == [stored]
    clock.time += 5
    second = await library.put(account, KIND, replace(record, document={}), None)
    assert second == replace(stored, document={}, version=2, updated_at=clock.now())
    assert list(await library.get(account, KIND, ["none", "elves", "elves"])) == [second, second]


async def test_a_version_is_replaced_only_by_who_read_it(library: LibraryStore, account: str) -> None:
    record = LibraryRecord("elves", {"n": 0})
    assert await library.put(account, KIND, record, 1) is None
    assert await library.put(account, KIND, record, 0)
    assert await library.put(account, KIND, record, 0) is None
    tries = [library.put(account, KIND, LibraryRecord("elves", {"n": n}), 1) for n in range(5)]
    (won,) = [stored for stored in await asyncio.gather(*tries) if stored is not None]
    assert list(await library.get(account, KIND, ["elves"])) == [won]


async def test_every_unconditional_put_counts(library: LibraryStore, account: str) -> None:
    tries = [library.put(account, KIND, LibraryRecord("elves", {"n": n}), None) for n in range(5)]
    versions = [stored.version for stored in await asyncio.gather(*tries) if stored is not None]
    assert sorted(versions) == [1, 2, 3, 4, 5]


async def test_kinds_and_accounts_are_apart(library: LibraryStore, account: str) -> None:
    await library.put(account, KIND, LibraryRecord("x", {}), 0)
    assert not await library.get(account, "character", ["x"])
    assert not await library.get("other", KIND, ["x"])
    assert not await library.remove(account, "persona", "x")
    assert (await library.list(account, "memory", 5, None)).items == []


async def test_a_kind_is_listed_by_id_page_by_page(library: LibraryStore, account: str) -> None:
    ids = ["B", "a", "a-1", "a.1", "b", "c"]
    for id in reversed(ids):
        await library.put(account, KIND, LibraryRecord(id, {"text": "x"}, index={"name": id}), None)
    await library.remove(account, KIND, "b")
    found, cursor = [], None
    while True:
        page = await library.list(account, KIND, 2, cursor)
        found += [(record.id, record.index) for record in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [(id, {"name": id}) for id in ids if id != "b"]
    for wrong in ("", "x", "é"):
        with pytest.raises(InvalidInput):
            await library.list(account, KIND, 2, wrong)


async def test_a_removed_one_is_gone_and_may_begin_anew(library: LibraryStore, account: str) -> None:
    await library.put(account, KIND, LibraryRecord("x", {"n": 1}), 0)
    assert await library.remove(account, KIND, "x")
    assert not await library.remove(account, KIND, "x")
    assert not await library.get(account, KIND, ["x"])
    stored = await library.put(account, KIND, LibraryRecord("x", {"n": 2}), 0)
    assert stored is not None
    assert stored.version == 1


async def test_a_large_one_is_stored_whole_and_read_whole_while_it_changes(library: LibraryStore, account: str) -> None:
    text = "".join(random.Random(2).choices("0123456789abcdef", k=1_500_000))
    await library.put(account, KIND, LibraryRecord("x", {"a": 0, "text": text, "b": 0}), 0)

    async def write(n: int) -> None:
        await library.put(account, KIND, LibraryRecord("x", {"a": n, "text": text, "b": n}), None)

    async def read() -> None:
        (record,) = await library.get(account, KIND, ["x"])
        assert record.document["a"] == record.document["b"]
        assert record.document["text"] == text

    await asyncio.gather(*(work for n in range(1, 4) for work in (write(n), read(), read())))
    (record,) = await library.get(account, KIND, ["x"])
    assert record.version == 4
    assert (await library.list(account, KIND, 1, None)).items[0].id == "x"
