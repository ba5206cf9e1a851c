"""The bound that bytes give is never below the count, for every profile that claims it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bastion.tokenizers.registry import TOKENIZERS, counter_for
from contextshift.catalogue import Model
from contextshift.measuring import Question, measure, proved_by_bytes
from contextshift.settings import Settings

PROFILES = [name for name in TOKENIZERS if counter_for(name, "").profile.bytes_bound is not None]
texts = st.text(max_size=60)
functions = st.fixed_dictionaries(
    {"name": st.from_regex(r"[a-z_]{1,64}", fullmatch=True)},
    optional={
        "description": texts,
        "parameters": st.just({"type": "object", "properties": {"a": {"type": "string", "description": "x\ny\nz"}}}),
    },
)
calls = st.lists(
    st.builds(
        lambda f, a: {"id": "c", "type": "function", "function": {"name": f["name"], "arguments": a}}, functions, texts
    ),
    min_size=1,
    max_size=3,
)
messages = st.lists(
    st.one_of(
        st.builds(lambda r, c: {"role": r, "content": c}, st.sampled_from(["user", "system", "assistant"]), texts),
        st.builds(lambda c: {"role": "assistant", "content": None, "tool_calls": c}, calls),
        st.builds(lambda c: {"role": "tool", "tool_call_id": "c", "content": c}, texts),
        st.builds(lambda c: {"role": "user", "content": [{"type": "text", "text": c}]}, texts),
    ),
    min_size=1,
    max_size=6,
)


def test_some_profiles_claim_a_bound():
    assert {"o200k_base", "cl100k_base", "gemma3", "qwen3"} <= set(PROFILES)


def test_a_family_whose_vocabulary_is_a_guess_by_factors_claims_none():
    for model in ("claude-sonnet-4-6", "nova-pro", "grok-4", "nobody-knows"):
        assert counter_for(None, model).profile.bytes_bound is None
    assert counter_for(None, "gemini-2.5-pro").profile.bytes_bound == 1.0


GROWS = "\U0001d160\u0958\ufb2c\u0344 "
"""Composed, these are longer than they were, the first and the third three times."""


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "text", [GROWS * 50, "\u2581" * 99, "\U0010ffff" * 99, "\x00\x01" * 99, "\uac00\u1161" * 99, " " * 99, "a"]
)
def test_the_texts_that_cost_most_cost_no_more_than_the_bound(profile: str, text: str):
    counter = counter_for(profile, "")
    assert counter.text(text) <= len(text.encode()) * (counter.profile.bytes_bound or 0) + 1


@pytest.mark.parametrize("profile", PROFILES)
def test_the_bound_holds(profile: str):
    counter = counter_for(profile, "")
    model = Model("m", "p", "m", context_window=10_000_000)

    @settings(max_examples=60, deadline=None)
    @given(messages, st.lists(functions, max_size=3))
    def check(talk: list[dict[str, Any]], tools: list[dict[str, Any]]) -> None:
        request: dict[str, Any] = {"model": "m", "messages": talk}
        if tools:
            request["tools"] = [{"type": "function", "function": tool} for tool in tools]
        raw = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        question = Question(model, talk, request, Settings(), size=len(raw))
        proved = proved_by_bytes(question, counter)
        assert proved is not None
        measured = measure(question, model, counter)
        assert proved.prompt >= measured.prompt
        assert proved.prompt + proved.margin >= measured.prompt + measured.margin

    check()
