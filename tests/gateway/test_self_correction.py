"""Reported usage corrects what is only estimated: seen from a client, through the whole gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bastion.bootstrap import Ports
from contextshift.calibration import UNCORRECTED, Calibration, day_of
from contextshift.fakes import FixedClock, MemoryAccounts, MemoryAuditStore
from contextshift.keys import hash_key
from contextshift.ports import KeyRecord, OverlayRecord, SettingsRecord
from gateway.world import World, chat, worlds
from serving import completion

KEY = "a-key-of-the-store"
SEEN = Calibration({"estimate/wild-a": {40: 500}})
REQUEST = chat(("user", 1_000), model="wild-a", routing={"chat_id": "c"})
NEAR = "gemini-2.5-pro"
"""Its counts are approximate, and bytes bound them."""
PREVIEW = "/api/v2/context-preview"


class Calibrated:
    """The gateway over a store that knows one account."""

    def __init__(self, world: World, accounts: MemoryAccounts) -> None:
        self.world = world
        self._accounts = accounts

    def count(self, body: dict[str, Any] = REQUEST) -> dict[str, Any]:
        counted: dict[str, Any] = self.world.post(body, "/v1/chat/completions/count", KEY).json()
        return counted

    def kept(self) -> Calibration:
        return asyncio.run(self._accounts.calibration("stored"))

    def kept_soon(self, expected: Calibration) -> bool:
        until = time.monotonic() + 10
        while self.kept() != expected and time.monotonic() < until:
            time.sleep(0.01)
        return self.kept() == expected


def gateway_of(folder: Path, seen: Calibration, **settings: object) -> Iterator[Calibrated]:
    clock = FixedClock()
    accounts = MemoryAccounts(clock)

    async def prepare() -> None:
        await accounts.create_account("stored", "hobby")
        await accounts.put_key(KeyRecord(hash_key(KEY), "k", "stored", frozenset({"call", "audit", "preview"})))
        await accounts.put_settings("stored", SettingsRecord(settings, 1), 0)
        await accounts.merge_calibration("stored", day_of(clock.now()), seen)
        await accounts.put_overlay(None, OverlayRecord({NEAR: {"provider": "main", "context_window": 1_000_000}}, 1), 0)

    asyncio.run(prepare())
    for world in worlds(folder, ports=Ports(clock=clock, accounts=accounts, audits=MemoryAuditStore(clock))):
        yield Calibrated(world, accounts)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Calibrated]:
    yield from gateway_of(tmp_path, Calibration())


@pytest.fixture
def seen(tmp_path: Path) -> Iterator[Calibrated]:
    yield from gateway_of(tmp_path, SEEN)


def test_an_answer_becomes_a_sample_in_the_store(plain: Calibrated):
    counted = plain.count()["prompt_tokens"]
    plain.world.upstream.body = completion(prompt_tokens=round(counted * 0.795))
    assert plain.world.post(REQUEST, key=KEY).status_code == 200
    assert plain.kept_soon(Calibration({"estimate/wild-a": {40: 1}}))


def test_what_was_seen_corrects_count_preview_and_audit_and_shows_in_each(seen: Calibrated):
    corrected = seen.count()
    expected = {"profile": "estimate", "approximate": True, "ratio": 0.8, "version": 40}
    other = seen.count(REQUEST | {"model": "wild-b"})
    assert {**expected, "margin": corrected["tokenizer"]["margin"]} == corrected["tokenizer"]
    assert 0.8 * other["prompt_tokens"] <= corrected["prompt_tokens"] <= 0.8 * other["prompt_tokens"] + 2
    assert "ratio" not in other["tokenizer"]
    assert seen.world.post(REQUEST, PREVIEW, KEY).json()["tokenizer"] == corrected["tokenizer"]
    assert seen.world.post(REQUEST, key=KEY).status_code == 200
    assert seen.world.audit("c", KEY).json()["tokenizer"] == corrected["tokenizer"]


def test_a_sample_taken_under_a_correction_is_of_the_count_before_it(seen: Calibrated):
    counted = seen.count()["prompt_tokens"]
    seen.world.upstream.body = completion(prompt_tokens=counted)
    seen.world.post(REQUEST, key=KEY)
    assert seen.kept_soon(Calibration({"estimate/wild-a": {40: 501}}))


@pytest.mark.parametrize("body", [b'{"choices": []}', completion(prompt_tokens=0), b"not json"])
def test_an_answer_without_usage_is_no_sample(plain: Calibrated, body: bytes):
    plain.world.upstream.body = body
    plain.world.post(REQUEST, key=KEY)
    time.sleep(0.1)
    assert plain.kept() == Calibration()


def test_an_error_and_an_exact_count_are_no_samples(plain: Calibrated):
    plain.world.post(chat(("user", 500), model="plain"), key=KEY)
    plain.world.upstream.status = 500
    plain.world.post(REQUEST, key=KEY)
    time.sleep(0.1)
    assert plain.kept() == Calibration()


def test_a_bound_by_bytes_is_no_count_and_no_sample(plain: Calibrated):
    named = {**REQUEST, "model": NEAR}
    unnamed = {name: value for name, value in named.items() if name != "routing"}
    counted = plain.count(named)["prompt_tokens"]
    plain.world.upstream.body = completion(prompt_tokens=counted)
    answer = plain.world.post(unnamed, key=KEY)
    assert "bound=?1" in answer.headers["x-bastion-context-tokens"]
    time.sleep(0.1)
    assert plain.kept() == Calibration()
    plain.world.post(named, key=KEY)
    assert plain.kept_soon(Calibration({f"gemma3/{NEAR}": {UNCORRECTED: 1}}))


@pytest.mark.parametrize(("model", "share"), [(NEAR, 0.5), ("wild-a", 0.4)])
def test_a_prompt_that_was_cut_is_told_and_is_no_sample(plain: Calibrated, model: str, share: float):
    request = {**REQUEST, "model": model}
    plain.world.upstream.body = completion(prompt_tokens=round(plain.count(request)["prompt_tokens"] * share))
    assert "silent-cut" in plain.world.post(request, key=KEY).headers["x-bastion-context-warning"]
    time.sleep(0.1)
    assert plain.kept() == Calibration()


def test_switched_off_nothing_is_corrected_or_kept(tmp_path: Path):
    for off in gateway_of(tmp_path, SEEN, calibration="off"):
        assert "ratio" not in off.count()["tokenizer"]
        off.world.post(REQUEST, key=KEY)
        time.sleep(0.1)
        assert off.kept() == SEEN
