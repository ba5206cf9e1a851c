"""Cutting a text to n tokens, by every counter alike: never over, never inside a character, best at an edge."""

from __future__ import annotations

import time
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bastion.tokenizers.registry import counter_for
from contextshift.cutting import whole_characters
from contextshift.tokens import TokenCounter
from gateway.tokenizers.oracle import VOCABULARIES

NAMES = ["words", "estimate", "o200k_base", "cl100k_base"]
WORDS = st.sampled_from(
    ["the", "quick", "fox.", "“Why?”", "naïve", "漢字とかな。", "\U0001f469\u200d\U0001f4bb", "e\u0301e\u0301",
     "\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea", "नमस्ते", "<|endoftext|>",
     "supercalifragilistic", "3.14", "\n\n", "\ud800"]
)  # fmt: skip
PROSE = st.lists(WORDS, max_size=60).map(" ".join)
TEXT = PROSE | st.text(st.characters(), max_size=120) | st.text("ab .\n", max_size=200)
slow = settings(deadline=None, max_examples=150)


@cache
def counter(name: str) -> TokenCounter:
    return counter_for(name, "any", [VOCABULARIES])


@pytest.mark.parametrize("name", NAMES)
@slow
@given(text=TEXT, limit=st.integers(-1, 80))
def test_a_cut_is_a_prefix_never_over_and_all_of_what_fits(name: str, text: str, limit: int) -> None:
    count = counter(name)
    short = count.cut(text, limit)
    assert text.startswith(short)
    assert count.text(short) <= max(limit, 0)
    if count.text(text) <= limit and limit > 0:
        assert short == text


@pytest.mark.parametrize("name", NAMES)
@slow
@given(text=TEXT, limit=st.integers(1, 80))
def test_a_cut_splits_no_character_that_is_seen_as_one(name: str, text: str, limit: int) -> None:
    end = len(counter(name).cut(text, limit))
    assert whole_characters(text, end) == end


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_of_prose_ends_with_a_word_and_loses_little(name: str) -> None:
    text = "The quick brown fox jumps over the lazy dog, and nobody minds. " * 400
    count = counter(name)
    for limit in (10, 40, 100, 1_000, 3_000):
        short = count.cut(text, limit)
        assert not text[len(short)].isalnum() or not short[-1].isalnum()
        assert count.text(short) >= limit * 0.85 - 8


@pytest.mark.parametrize("name", ["estimate", "o200k_base", "cl100k_base"])
def test_a_cut_ends_with_a_sentence_that_ends_near(name: str) -> None:
    text = "One fine day it rained cats and dogs. Nobody had seen such a thing. " * 200
    assert counter(name).cut(text, 2_000)[-1] == "."


@pytest.mark.parametrize("text", ["word " * 4_000_000, "a" * 5_000_000, "漢" * 5_000_000], ids=["words", "a", "han"])
@pytest.mark.parametrize("name", ["estimate", "o200k_base", "cl100k_base"])
def test_a_cut_of_a_huge_text_looks_at_its_beginning_only(name: str, text: str) -> None:
    count = counter(name)
    count.text("warm")
    began = time.process_time()
    assert 0 < len(count.cut(text, 50)) < 2_000
    assert time.process_time() - began < 0.2
