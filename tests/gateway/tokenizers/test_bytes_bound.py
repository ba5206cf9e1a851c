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
messages = st.lists(
    st.one_of(
        st.builds(lambda r, c: {"role": r, "content": c}, st.sampled_from(["user", "system", "assistant"]), texts),
        st.builds(lambda r, n, c: {"role": r, "name": n, "content": c}, st.sampled_from(["user", "who"]), texts, texts),
        st.builds(lambda c: {"role": "user", "content": [{"type": "text", "text": c}]}, texts),
    ),
    min_size=1,
    max_size=6,
)


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
DIGITS = {"type": "object", "properties": {"x": {"type": "array", "default": [n % 10 for n in range(300)]}}}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "request_",
    [
        {"tools": [TOOL] * 150},
        {"tools": [{}] * 3_000},
        {"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": DIGITS}}]},
        {"messages": [{"role": "user", "content": [{"type": "zzz", "v": [1e15] * 900}]}]},
        {
            "messages": [
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": f"[{'1e15,' * 900}1]"}}],
                }
            ]
        },
    ],
    ids=["many tools", "empty tools", "a result", "digits", "an unknown part", "arguments"],
)
def test_bytes_prove_nothing_of_what_is_rendered_anew(profile: str, request_: dict[str, Any]):
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **request_}
    model = Model("m", "p", "m", context_window=10_000_000)
    question = Question(model, request["messages"], request, Settings(), size=1)
    assert proved_by_bytes(question, counter_for(profile, "")) is None


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
    @given(messages)
    def check(talk: list[dict[str, Any]]) -> None:
        request: dict[str, Any] = {"model": "m", "messages": talk}
        raw = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        question = Question(model, talk, request, Settings(), size=len(raw))
        proved = proved_by_bytes(question, counter)
        assert proved is not None
        measured = measure(question, model, counter)
        assert proved.prompt >= measured.prompt
        assert proved.prompt + proved.margin >= measured.prompt + measured.margin

    check()
