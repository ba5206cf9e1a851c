"""An error answer that quotes the key it was sent is found however it is cut, and any other passes whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bastion.providers.quoting import SHORTEST_KEY, unquoted
from contextshift.errors import ProviderKeyQuoted

KEY = 'sk/geheim"0123456789'


class Scripted:
    """An error answer in chunks."""

    def __init__(self, chunks: Sequence[bytes], header: str = "") -> None:
        self.status = 401
        self.headers = [("x-request-id", header)]
        self._chunks = chunks
        self.closed = False

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        self.closed = True


def read(answer: Scripted, key: str = KEY) -> tuple[bytes, bool]:
    """Return what comes of an answer, and whether it came to its end."""
    came = b""

    async def all_of_it() -> bool:
        nonlocal came
        try:
            async for chunk in (await unquoted(answer, key)).chunks():
                came += chunk
        except ProviderKeyQuoted as error:
            assert (error.upstream_status, KEY in str(error)) == (401, False)
            return False
        return True

    return (asyncio.run(all_of_it()), came)[::-1]


def cut(raw: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(one, len(raw)) for one in cuts})
    return [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]


@given(st.binary(max_size=60), st.binary(max_size=60), st.lists(st.integers(0, 150), max_size=8))
def test_any_other_error_passes_whole(before, after, cuts):
    raw = before + KEY[:-1].encode() + after
    if KEY.encode() not in raw:
        assert read(Scripted(cut(raw, cuts))) == (raw, True)


@given(
    st.sampled_from([KEY, json.dumps(KEY), json.dumps(KEY).replace("/", "\\/"), quote(KEY, safe="")]),
    st.binary(max_size=60),
    st.lists(st.integers(0, 150), max_size=8),
)
def test_nothing_comes_of_an_error_that_quotes_the_key(quoted, around, cuts):
    answer = Scripted(cut(around + quoted.encode() + around, cuts))
    assert read(answer) == (b"", False)
    assert answer.closed


@pytest.mark.parametrize("chunk", [1024, 300_000])
def test_far_into_an_error_the_key_breaks_it_off(chunk: int):
    raw = b"x" * 2_000_000 + KEY.encode() + b"x" * 10
    came, whole = read(Scripted([raw[at : at + chunk] for at in range(0, len(raw), chunk)]))
    assert not whole
    assert came == b"x" * len(came)


def test_a_header_may_not_quote_it_either():
    assert read(Scripted([b"{}"], header=KEY)) == (b"", False)


def test_a_word_that_opens_a_local_server_is_no_secret():
    word = "x" * (SHORTEST_KEY - 1)
    assert read(Scripted([word.encode()]), word) == (word.encode(), True)
