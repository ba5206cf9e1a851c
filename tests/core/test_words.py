"""The `words` tokenizer, where every number can be checked by eye."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextshift.tokens import TokenCounter
from contextshift.words import WordCounter

count = WordCounter()
TEXT = st.text(alphabet=st.sampled_from("ab é漢\n\t\u00a0\u2003\x1c"), max_size=60)


def call(arguments: Any) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": "some name", "arguments": arguments}}


def test_it_is_a_token_counter_of_exact_profile() -> None:
    assert isinstance(count, TokenCounter)
    assert (count.profile.name, count.profile.approximate, count.profile.margin) == ("words", False, 0.0)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "user", "content": "three small words"}, 3),
        ({"role": "user", "content": "  spaced\u2003out\n\ntext "}, 3),
        ({"role": "user", "name": "not counted at all", "content": "one"}, 1),
        ({"role": "assistant", "content": None}, 0),
        ({"role": "assistant"}, 0),
        ({"role": "tool", "tool_call_id": "not counted", "content": "two words"}, 2),
        ({"role": "user", "content": [{"type": "text", "text": "a b"}, {"type": "text", "text": "c"}]}, 3),
        ({"role": "user", "content": [{"type": "input_text", "text": "a b"}]}, 2),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://e.example/a b c"}}]}, 0),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not"}]}, 3),
    ],
)
def test_words_of_content_count_and_nothing_else_does(message: dict[str, Any], words: int) -> None:
    assert count(message) == words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"city": "New York", "note": "be quick about it"}', 6),
        ('{"two words": "one"}', 1),
        ('{"n": 12, "list": ["a b", "c"], "deep": {"x": "y z"}}', 5),
        ('{"flag": true, "none": null}', 2),
        ("{}", 0),
        ('{"broken": "json that', 3),
        ('["a list", "of two"]', 4),
        ('"just a string"', 3),
        ("", 0),
        (None, 0),
    ],
)
def test_call_arguments_count_by_their_top_level_values(arguments: Any, words: int) -> None:
    assert count({"role": "assistant", "content": None, "tool_calls": [call(arguments)]}) == words
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": arguments}}
    assert count(legacy) == words


def test_each_of_several_calls_counts_beside_the_content() -> None:
    message = {"role": "assistant", "content": "let me see", "tool_calls": [call('{"a": "x y"}'), call('{"b": "z"}')]}
    assert count(message) == 6


def test_a_schema_of_four_hundred_words_costs_four_hundred() -> None:
    words = " ".join(["word"] * 400)
    tools = [{"type": "function", "function": {"name": "f", "description": words, "parameters": {}}}]
    assert count.fixed({"messages": [], "tools": tools}) == 400
    assert count.fixed({"functions": [tools[0]["function"]]}) == 400


@pytest.mark.parametrize("request_", [{}, {"tools": None}, {"tools": []}, {"response_format": {"type": "json_object"}}])
def test_without_tools_nothing_is_fixed(request_: dict[str, Any]) -> None:
    assert count.fixed(request_) == 0


def test_parts_of_unknown_types_count_by_their_compact_json() -> None:
    assert count({"role": "user", "content": [{"type": "novel", "body": "three words here"}]}) == 3


@settings(deadline=None)
@given(TEXT, st.integers(-1, 20))
def test_a_cut_is_a_prefix_of_at_most_the_limit_that_ends_with_a_word(text: str, limit: int) -> None:
    short = count.cut(text, limit)
    assert text.startswith(short)
    assert count.text(short) == min(max(limit, 0), count.text(text))
    if short not in ("", text):
        assert not short[-1].isspace()
        assert text[len(short)].isspace()


@settings(deadline=None)
@given(TEXT, TEXT)
def test_words_add_up_over_a_space(left: str, right: str) -> None:
    assert count.text(f"{left} {right}") == count.text(left) + count.text(right)
