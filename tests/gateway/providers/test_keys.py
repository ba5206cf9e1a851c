"""Keys: how they are written, what they are bound to, and how long one that was read is used."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bastion.providers.keys import (
    REFRESH_AFTER,
    TRY_AGAIN_AFTER,
    USABLE_FOR,
    CachedKey,
    ProviderKey,
    parse_key,
)
from bastion.providers.origins import origin_of
from contextshift.errors import ProviderError, ProviderKeyMissing, ProviderKeyOrigin, ProviderKeyUnavailable
from contextshift.fakes import FixedClock

keys = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1).filter(lambda key: key[0] != "{")
ORIGIN = "https://api.example.com"


# -- as they are written -----------------------------------------------------------------------------


@given(keys)
def test_every_way_to_write_a_key_says_the_same_key(key):
    for text, field in (
        (key, None),
        (f" {key}\n", None),
        (json.dumps({"api_key": key}), None),
        (json.dumps({"OPENAI_API_KEY": key}), None),
        (json.dumps({"OPENAI_API_KEY": key, "OTHER": "x"}), "OPENAI_API_KEY"),
        (json.dumps({"OPENAI_API_KEY": {"api_key": key}, "OTHER": "x"}), "OPENAI_API_KEY"),
        (json.dumps({"OPENAI_API_KEY": json.dumps({"api_key": key})}), "OPENAI_API_KEY"),
    ):
        assert parse_key(text, field) == ProviderKey(key)


def test_a_key_may_say_its_origin_and_its_account():
    text = json.dumps({"api_key": "k", "origin": "https://API.example.com:443/v1", "account": "acme"})
    assert parse_key(text) == ProviderKey("k", ORIGIN, "acme")
    assert parse_key(json.dumps({"A": json.loads(text), "B": "x"}), "A") == ProviderKey("k", ORIGIN, "acme")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", None), ("two words", None), ("schlüssel-geheim", None), ("geheim\r\nx: y", None), ("{geheim", None),
        ('{"a": "geheim", "b": "geheim"}', None), ('{"api_key": 7}', None), ('{"api_key": ""}', None), ("{}", None),
        ('{"api_key": "geheim", "origin": "nowhere"}', None), ('{"api_key": "geheim", "origin": 3}', None),
        ('{"api_key": "geheim", "base_url": "https://a.example"}', None), ('{"A": "geheim"}', "B"), ("geheim", "A"),
        ('{"A": ["geheim"]}', "A"), ('{"api_key": "geheim", "origin": "https://u:geheim@a.example"}', None),
        ("{" + '"a":{' * 100_000, None), ("geheim" * 1000, None),
    ],
)  # fmt: skip
def test_what_is_no_key_is_refused_and_never_quoted(text, field):
    with pytest.raises(ProviderKeyMissing) as refused:
        parse_key(text, field)
    assert "geheim" not in str(refused.value)


def test_no_key_shows_in_a_representation():
    assert "geheim" not in repr(ProviderKey("geheim", ORIGIN, "acme"))


# -- bound -------------------------------------------------------------------------------------------


@given(st.sampled_from([None, ORIGIN]))
def test_a_key_goes_to_its_own_origin(bound):
    assert ProviderKey("k", bound).for_origin(ORIGIN).origin == ORIGIN


@pytest.mark.parametrize(
    "other",
    ["http://api.example.com", "https://api.example.com:8443", "https://example.com", "https://api.example.com.evil.example"],
)  # fmt: skip
def test_a_key_goes_to_no_other_origin(other):
    with pytest.raises(ProviderKeyOrigin):
        ProviderKey("k", ORIGIN).for_origin(origin_of(other))
    with pytest.raises(ProviderKeyOrigin):
        ProviderKey("k").for_origin(ORIGIN).for_origin(origin_of(other))


@pytest.mark.parametrize(
    "url", ["", "api.example.com", "ftp://a.example", "https://", "https://a@b.example", "https:///x"]
)
def test_what_has_no_origin_is_refused(url):
    with pytest.raises(ValueError):
        origin_of(url)


# -- cached ------------------------------------------------------------------------------------------


class Source:
    """A secret that changes, fails, and waits as it is told."""

    def __init__(self, value: str | ProviderError = "k1") -> None:
        self.value = value
        self.reads = 0
        self.gate: asyncio.Event | None = None
        self.clock = FixedClock()
        self.key = CachedKey(self.read, self.clock)

    async def read(self) -> ProviderKey:
        self.reads += 1
        value = self.value
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(value, ProviderError):
            raise value
        return ProviderKey(value)

    async def get(self) -> str:
        return (await self.key.get()).text

    async def settled(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


def test_nothing_is_read_before_it_is_needed_and_then_once_for_all_that_wait():
    async def inside() -> None:
        source = Source()
        await source.settled()
        assert source.reads == 0
        source.gate = asyncio.Event()
        waiting = [asyncio.create_task(source.get()) for _ in range(20)]
        await source.settled()
        source.gate.set()
        assert await asyncio.gather(*waiting) == ["k1"] * 20
        assert source.reads == 1

    asyncio.run(inside())


def test_a_client_that_goes_away_does_not_break_off_the_reading_that_others_wait_for():
    async def inside() -> None:
        source = Source()
        source.gate = asyncio.Event()
        one, other = asyncio.create_task(source.get()), asyncio.create_task(source.get())
        await source.settled()
        one.cancel()
        source.gate.set()
        assert await other == "k1"
        assert source.reads == 1

    asyncio.run(inside())


def test_a_key_is_read_again_beside_its_use():
    async def inside() -> None:
        source = Source()
        await source.get()
        source.value = "k2"
        source.clock.advance(REFRESH_AFTER - 1)
        assert await source.get() == "k1"
        await source.settled()
        assert source.reads == 1
        source.clock.advance(1)
        source.gate = asyncio.Event()
        assert [await source.get() for _ in range(3)] == ["k1"] * 3  # nobody waits
        source.gate.set()
        await source.settled()
        assert await source.get() == "k2"
        assert source.reads == 2

    asyncio.run(inside())


def test_a_key_that_cannot_be_read_again_is_used_until_the_hard_limit():
    async def inside() -> None:
        source = Source()
        await source.get()
        source.value = ProviderKeyUnavailable("down")
        for _ in range(10):
            source.clock.advance(USABLE_FOR / 10 - 1)
            assert await source.get() == "k1"
            await source.settled()
        source.clock.advance(20)
        with pytest.raises(ProviderKeyUnavailable):
            await source.get()
        source.value = "k2"
        source.clock.advance(TRY_AGAIN_AFTER)
        assert await source.get() == "k2"

    asyncio.run(inside())


def test_a_secret_that_is_missing_is_asked_for_once_in_a_while_and_found_when_it_is_there():
    async def inside() -> None:
        source = Source(ProviderKeyMissing("nothing there"))
        for _ in range(5):
            with pytest.raises(ProviderKeyMissing):
                await source.get()
        assert source.reads == 1
        source.value = "k1"
        source.clock.advance(TRY_AGAIN_AFTER)
        assert await source.get() == "k1"

    asyncio.run(inside())


def test_a_key_that_was_replaced_is_found_by_the_call_after_the_one_that_was_refused():
    async def inside() -> None:
        source = Source()
        key = await source.key.get()
        source.value = "k2"
        source.clock.advance(TRY_AGAIN_AFTER)
        source.key.refused(key)
        assert await source.get() == "k2"
        source.key.refused(key)  # a late answer to a call made with the old one
        assert await source.get() == "k2"
        assert source.reads == 2

    asyncio.run(inside())


def test_a_provider_that_refuses_every_key_does_not_have_it_read_at_every_call():
    async def inside() -> None:
        source = Source()
        for _ in range(50):
            source.key.refused(await source.key.get())
            source.clock.advance(TRY_AGAIN_AFTER / 10)
        assert source.reads <= 6

    asyncio.run(inside())


def test_a_refused_key_that_cannot_be_read_again_is_still_used():
    async def inside() -> None:
        source = Source()
        key = await source.key.get()
        source.value = ProviderKeyUnavailable("down")
        source.clock.advance(TRY_AGAIN_AFTER)
        source.key.refused(key)
        assert await source.get() == "k1"

    asyncio.run(inside())
