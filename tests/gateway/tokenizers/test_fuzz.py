"""The fast engine against tiktoken: the same counts on whatever a conversation may hold.

A quick run; `make bench ONLY=fuzz` takes 100,000 strings.
"""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bastion.tokenizers.encodings import LazyEncoding
from bastion.tokenizers.splintr_engine import SplintrEncoding
from bastion.tokenizers.tiktoken_engine import TiktokenEncoding
from bastion.tokenizers.vocab import load_ranks
from gateway.tokenizers.fuzz import PIECES, strings
from gateway.tokenizers.oracle import NAMES, VOCABULARIES, Oracle

slow = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@cache
def fast(name: str) -> SplintrEncoding:
    return SplintrEncoding(name, LazyEncoding(name, lambda: TiktokenEncoding(name, load_ranks(name, [VOCABULARIES]))))


@pytest.mark.parametrize("name", NAMES)
def test_five_thousand_strings_count_as_by_tiktoken(name: str, oracle: Oracle) -> None:
    encode, count = oracle(name).encode_ordinary, fast(name).count
    for text in strings(5_000, seed=20261130):
        assert count(text) == len(encode(text)), ascii(text)


@pytest.mark.parametrize("name", NAMES)
@slow
@given(text=st.text(st.characters()) | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_what_hypothesis_thinks_of_counts_as_by_tiktoken(name: str, text: str, oracle: Oracle) -> None:
    assert fast(name).count(text) == len(oracle(name).encode_ordinary(text))


@pytest.mark.parametrize("text", ["'\u017f", "it'\u017f", "x'\u017fy '\u017f", "A'\u017f\u017f" * 50])
def test_the_pair_that_it_splits_otherwise_is_left_to_tiktoken(text: str, oracle: Oracle) -> None:
    expected = len(oracle("o200k_base").encode_ordinary(text))
    assert fast("o200k_base").count(text) == expected
    assert SplintrEncoding("o200k_base").count(text) >= expected
    for limit in range(6):
        assert fast("o200k_base").count(fast("o200k_base").cut(text, limit)) <= limit


@pytest.mark.parametrize("name", ["llama3", "qwen3", "deepseek_v3", "mistral_v3", "gemma3", "glm4", "kimi_k2"])
def test_other_vocabularies_answer_for_any_text_within_their_bytes(name: str) -> None:
    encoding = SplintrEncoding(name)
    rng = random.Random(7)
    for text in strings(400, seed=8):
        tokens, size = encoding.count(text), len(text.encode("utf-8", "surrogatepass"))
        assert (tokens == 0) == (text == "")
        assert tokens <= (3 * size if name == "qwen3" else size + 1)
        limit = rng.randrange(40)
        short = encoding.cut(text, limit)
        assert text.startswith(short)
        assert encoding.count(short) <= limit
        if tokens <= limit:
            assert short == text
