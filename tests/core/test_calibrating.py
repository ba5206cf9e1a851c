"""Collecting samples: beside the calls, at most once a minute for an account, and kept while the store is down."""

from __future__ import annotations

import asyncio
import random

import pytest

from contextshift.calibrating import Calibrator
from contextshift.calibration import MOST_NAMES, Calibration, day_of
from contextshift.errors import StoreUnavailable
from contextshift.fakes import FixedClock, ListLog, MemoryAccounts
from contextshift.ports import Access, KeyRecord, SettingsRecord
from contextshift.tokens import TokenizerProfile

pytestmark = pytest.mark.anyio

ROUGH = TokenizerProfile("rough", approximate=True)
SOON = 0.02


class Watched(MemoryAccounts):
    """Notes every merge."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__(clock)
        self.merges: list[tuple[str, int, int]] = []

    async def merge_calibration(self, account: str, day: int, more: Calibration) -> None:
        self.merges.append((account, day, sum(many for *_, many in more)))
        await super().merge_calibration(account, day, more)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def store(clock: FixedClock) -> Watched:
    return Watched(clock)


def access_of(account: str = "acme", calibration: Calibration | None = None) -> Access:
    key = KeyRecord("0" * 64, "0", account, frozenset({"call"}))
    return Access(key, account, "pro", SettingsRecord(), calibration=calibration or Calibration())


def note(calibrator: Calibrator, many: int = 1, account: str = "acme", model: str = "m") -> None:
    for _ in range(many):
        calibrator.observe(access_of(account), model, ROUGH, 1_000, 1_000)


async def test_the_first_sample_is_merged_at_once_and_the_rest_of_the_minute_together(store, clock):
    calibrator = Calibrator(store, clock, every=60)
    note(calibrator)
    assert store.merges == []
    await asyncio.sleep(SOON)
    note(calibrator, 7)
    await asyncio.sleep(SOON)
    today = day_of(clock.now())
    assert store.merges == [("acme", today, 1)]
    await calibrator.aclose()
    assert store.merges == [("acme", today, 1), ("acme", today, 7)]
    assert await store.calibration("acme") == Calibration({"rough/m": {50: 8}})


async def test_each_account_has_its_own_minute(store, clock):
    calibrator = Calibrator(store, clock, every=SOON)
    note(calibrator, 3)
    note(calibrator, 2, "other")
    await asyncio.sleep(SOON / 2)
    note(calibrator)
    async with asyncio.timeout(10):
        while len(store.merges) < 3:
            await asyncio.sleep(SOON)
    today = day_of(clock.now())
    assert sorted(store.merges) == [("acme", today, 1), ("acme", today, 3), ("other", today, 2)]
    note(calibrator)
    await calibrator.aclose()
    assert len(store.merges) == 4


async def test_what_a_store_that_is_down_did_not_take_waits_and_is_not_lost(store, clock):
    log = ListLog()
    calibrator = Calibrator(store, clock, log, every=SOON)
    store.failing.add("merge_calibration")
    note(calibrator, 3)
    await asyncio.sleep(2 * SOON)
    note(calibrator, 2)
    store.failing.clear()
    await asyncio.sleep(5 * SOON)
    await calibrator.aclose()
    assert await store.calibration("acme") == Calibration({"rough/m": {50: 5}})
    assert log.events[0] == {"event": "calibration-waits", "account": "acme", "code": StoreUnavailable.code}


async def test_closing_tries_once_and_ends_although_the_store_is_down(store, clock):
    calibrator = Calibrator(store, clock, every=60)
    store.failing.add("merge_calibration")
    note(calibrator)
    await asyncio.sleep(SOON)
    await asyncio.wait_for(calibrator.aclose(), 1)
    assert len(store.merges) == 2
    note(calibrator)
    await calibrator.aclose()
    assert len(store.merges) == 2


async def test_a_merge_that_hangs_holds_up_nobody(store, clock):
    release = asyncio.Event()
    merge = store.merge_calibration

    async def slow(account: str, day: int, more: Calibration) -> None:
        await release.wait()
        await merge(account, day, more)

    store.merge_calibration = slow
    calibrator = Calibrator(store, clock, every=SOON)
    note(calibrator)
    await asyncio.sleep(SOON)
    note(calibrator, 4)
    release.set()
    await calibrator.aclose()
    assert [many for *_, many in store.merges] == [1, 4]


async def test_memory_is_bounded(store, clock, monkeypatch):
    monkeypatch.setattr("contextshift.calibrating.MOST_ACCOUNTS", 2)
    calibrator = Calibrator(store, clock, every=60)
    for index in range(MOST_NAMES + 5):
        note(calibrator, model=f"m{index}")
    for account in ("other", "third", "other"):
        note(calibrator, account=account)
    await calibrator.aclose()
    assert sorted(store.merges) == [("acme", day_of(clock.now()), MOST_NAMES), ("other", day_of(clock.now()), 2)]


async def test_an_account_that_has_its_fill_of_models_keeps_those(store, clock):
    full = Calibration({f"rough/m{index}": {50: 1} for index in range(MOST_NAMES)})
    calibrator = Calibrator(store, clock)
    for model in ("m0", "new"):
        calibrator.observe(access_of(calibration=full), model, ROUGH, 1_000, 900)
    await calibrator.aclose()
    assert await store.calibration("acme") == Calibration({"rough/m0": {45: 1}})


async def test_what_corrects_nothing_is_passed_over(store, clock):
    calibrator = Calibrator(store, clock)
    calibrator.observe(access_of(), "m", TokenizerProfile("exact"), 1_000, 900)
    calibrator.observe(access_of(), "m", ROUGH, 1_000, None)
    await calibrator.aclose()
    assert store.merges == []


async def test_a_request_sees_what_its_access_read_and_nothing_newer(store, clock):
    await store.create_account("acme", "pro")
    await store.put_key(KeyRecord("k", "k", "acme", frozenset({"call"})))
    before = await store.access("k", None)
    calibrator = Calibrator(store, clock)
    note(calibrator, 500)
    await calibrator.aclose()
    after = await store.access("k", None)
    assert before is not None
    assert after is not None
    assert (before.calibration, after.calibration) == (Calibration(), Calibration({"rough/m": {50: 500}}))


async def test_between_merges_no_task_is_left_for_a_lambda_to_wait_for(store, clock):
    calibrator = Calibrator(store, clock, every=60)
    others = asyncio.all_tasks()
    note(calibrator)
    await asyncio.wait(asyncio.all_tasks() - others, timeout=1)
    note(calibrator)
    assert asyncio.all_tasks() == others
    await calibrator.aclose()
    assert [many for *_, many in store.merges] == [1, 1]


@pytest.mark.parametrize("seed", range(8))
async def test_closing_while_minutes_end_loses_nothing_and_merges_nothing_twice(clock, seed):
    dice = random.Random(seed)

    class Slow(MemoryAccounts):
        reliable = False

        async def merge_calibration(self, account: str, day: int, more: Calibration) -> None:
            await asyncio.sleep(dice.random() / 1_000)
            if not self.reliable and dice.random() < 0.3:
                raise StoreUnavailable("down for a moment")
            await super().merge_calibration(account, day, more)

    store, accounts = Slow(clock), ("a", "b", "c")
    calibrator = Calibrator(store, clock, every=0.001)
    for _ in range(100):
        note(calibrator, account=dice.choice(accounts))
        await asyncio.sleep(dice.choice((0, 0.001)))
    store.reliable = True
    await calibrator.aclose()
    found = [await store.calibration(account) for account in accounts]
    assert sum(many for one in found for *_, many in one) == 100
