"""Families beside OpenAI's: their formats' overhead as their templates write it, and bounds where nothing is public."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bastion.tokenizers.families import FAMILIES, family_of
from bastion.tokenizers.registry import counter_for
from bastion.tokenizers.scaled import Factors, ScaledEncoding
from contextshift.catalogue import Catalogue, Model
from contextshift.fit import Action, Decision, fit
from contextshift.measuring import Question
from contextshift.registry import ContextStrategyRegistry
from contextshift.settings import Settings
from contextshift.tokens import slack_of
from gateway.tokenizers.fuzz import strings
from gateway.tokenizers.oracle import VOCABULARIES

USER = {"role": "user", "content": "hello"}
SYSTEM = {"role": "system", "content": "hello"}
REPLY = {"role": "assistant", "content": "hello"}
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}},
}


def overhead(model: str, messages: list[dict[str, Any]], **more: Any) -> int:
    count = counter_for(None, model, [VOCABULARIES])
    total = sum(map(count, messages)) + count.fixed({"messages": messages, **more})
    return total - len(messages) * count.text("hello")


@pytest.mark.parametrize(
    ("model", "one", "further"),
    [
        ("llama3-8b-8192", 10, 5),
        ("llama-3.3-70b", 35, 5),
        ("qwen/qwen3-32b", 8, 5),
        ("mistral-large-latest", 3, 2),
        ("mistral-small-latest", 15, 2),
        ("mixtral-8x7b", 9, 8),
        ("deepseek-chat", 3, 1),
        ("deepseek-reasoner", 5, 1),
        ("deepseek-r1", 5, 1),
        ("glm-4.7", 5, 3),
        ("glm-5.2", 12, 3),
        ("gpt-oss-120b", 67, 4),
        ("kimi-k2", 23, 4),
        ("gemini-1.5-flash", 1, 0),
        ("gemini-2.5-flash", 1, 1),
        ("claude-sonnet-4-5", 7, 4),
        ("claude-opus-4-8", 11, 3),
    ],
)
def test_a_message_costs_what_its_template_puts_around_it(model: str, one: int, further: int) -> None:
    assert overhead(model, [USER]) == one
    assert overhead(model, [USER, USER]) == one + further


def test_a_system_message_costs_what_the_format_makes_of_it() -> None:
    assert overhead("claude-sonnet-4-5", [SYSTEM, USER]) == overhead("claude-sonnet-4-5", [USER])
    assert overhead("llama-3.3-70b", [SYSTEM, USER]) == 35  # one is there in any case, with the date in it
    assert overhead("deepseek-chat", [SYSTEM, USER]) == 3
    assert overhead("mistral-large-latest", [SYSTEM, USER, REPLY, USER]) == 8


def test_how_much_to_think_costs_where_it_is_written_into_the_prompt() -> None:
    assert overhead("qwen3-32b", [USER], reasoning_effort="none") == 12
    assert overhead("qwen3-32b", [USER], reasoning_effort="default") == 8
    assert overhead("claude-sonnet-4-5", [USER], thinking={"type": "enabled"}) == 7 + 29
    assert overhead("gpt-4o", [USER], reasoning_effort="low") == overhead("gpt-4o", [USER])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.prefix)
def test_tools_calls_images_and_schemas_add_to_every_family(family: Any) -> None:
    count = counter_for(None, family.prefix, [VOCABULARIES])
    assert count.profile.name == family.profile
    assert count.fixed({"tools": [TOOL]}) > count.fixed({}) + 5
    assert count.fixed({"tools": [TOOL, TOOL]}) > count.fixed({"tools": [TOOL]})
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    assert count.fixed({"response_format": schema}) > count.fixed({})
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    assert count({"role": "assistant", "content": None, "tool_calls": [call]}) > 8
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert count({"role": "user", "content": [picture]}) >= 85
    for odd in ({}, {"role": 1}, {"role": "narrator", "content": "x"}, {"content": [None, 1, {"type": "?"}]}):
        assert count(odd) >= 0


@settings(deadline=None, max_examples=60)
@given(text=st.text(max_size=80), limit=st.integers(0, 60))
def test_an_estimate_by_factors_is_never_under_its_base_nor_over_the_bytes(text: str, limit: int) -> None:
    count, base = counter_for("claude", "x", [VOCABULARIES]), counter_for("o200k_base", "x", [VOCABULARIES])
    size = len(text.encode("utf-8", "surrogatepass"))
    assert base.text(text) * 0.8 <= count.text(text) <= 1.5 * size + 3
    short = count.cut(text, limit)
    assert text.startswith(short)
    assert count.text(short) <= limit


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("The committee met on Tuesday and agreed to publish it.", 1.6),
        ("L'été à Besançon, où l'on s'ennuie déjà, était très agréable.", 1.9),
        ("委员会星期二开会，同意在六月之前公布其全部调查结果。", 1.9),
        ("Комитет собрался во вторник и решил опубликовать отчёт.", 2.2),
        ("समिति की बैठक मंगलवार को हुई और निर्णय लिया गया।", 3.0),
    ],
)
def test_each_script_takes_its_own_factor(text: str, least: float) -> None:
    base = counter_for("o200k_base", "x", [VOCABULARIES]).text(text)
    assert counter_for("claude", "x", [VOCABULARIES]).text(text) >= least * base


def test_the_bound_by_bytes_holds_whatever_the_factors() -> None:
    class Many:
        name = "many"

        def count(self, text: str) -> int:
            return 100 * len(text)

        def cut(self, text: str, limit: int) -> str:
            raise AssertionError("only counted here")

        count_rewritten = cut  # type: ignore[assignment]

    encoding = ScaledEncoding("x", Many(), Factors(2, 2, 2, 2, 2))  # type: ignore[arg-type]
    for text in strings(300, seed=3):
        assert encoding.count(text) <= 1.5 * len(text.encode("utf-8", "surrogatepass")) + 3


def test_families_that_reason_are_found_by_their_longer_names() -> None:
    assert family_of("deepseek-r1-distill-qwen-32b").profile == "qwen3"  # type: ignore[union-attr]
    assert family_of("deepseek-r1-distill-llama-70b").profile == "llama3"  # type: ignore[union-attr]
    assert family_of("qwen3-coder-480b").prefix == "qwen3-coder"  # type: ignore[union-attr]


INDENTED = [
    "llama-3.3-70b",
    "mistral-large-latest",
    "qwen3-32b",
    "deepseek-chat",
    "glm-4.6",
    "kimi-k2",
    "gemini-2.5-pro",
]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}


LONG = "a grammar of many rules " * 200


@pytest.mark.parametrize("model", INDENTED)
def test_tools_that_a_template_may_indent_are_bounded_indented(model: str) -> None:
    count, request = counter_for(None, model), {"tools": [WEATHER, WEATHER]}
    plain, indented = json.dumps(WEATHER, ensure_ascii=False), json.dumps(WEATHER, ensure_ascii=False, indent=4)
    assert slack_of(count, request) == 2 * (count.text(indented) - count.text(plain)) > 0
    assert slack_of(count, {}) == slack_of(count, {"tools": []}) == 0


def test_tools_too_large_to_indent_are_bounded_unwritten() -> None:
    counter = counter_for(None, "llama-3.3-70b")
    for size, depth in ((200, 90), (300, 88)):  # more spaces than are written
        inner: Any = list(range(size * 60))
        for _ in range(depth):
            inner = [inner]
        tool = {"type": "function", "function": {"name": "f", "parameters": {"default": inner}}}
        plain, indented = json.dumps(tool, ensure_ascii=False), json.dumps(tool, ensure_ascii=False, indent=4)
        assert slack_of(counter, {"tools": [tool]}) >= counter.text(indented) - counter.text(plain)


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5", "gpt-oss-120b"])
@pytest.mark.parametrize(
    "tool",
    [
        {"type": "custom", "custom": {"name": "f", "format": {"type": "grammar", "grammar": {"definition": LONG}}}},
        {"type": "custom", "name": "f", "format": {"type": "grammar", "definition": LONG}},
        {"type": "web_search", "user_location": {"city": LONG}},
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"properties": {"a": {"items": [{"enum": LONG}]}}}},
        },
        {"type": "function", "function": {"name": "f", "parameters": {"additionalProperties": {"description": LONG}}}},
    ],
    ids=["custom", "flat", "hosted", "tuple", "additional"],
)
def test_no_tool_is_counted_as_if_it_said_nothing(model: str, tool: Any) -> None:
    counter = counter_for(None, model)
    assert counter.fixed({"tools": [tool]}) >= counter.text(LONG)


def test_gpt_oss_reads_descriptions_at_every_depth() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "string", "description": LONG}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": inner}}}}
    counter = counter_for(None, "gpt-oss-120b")
    assert counter.fixed({"tools": [tool]}) >= counter.text(LONG) > counter_for(None, "gpt-4o").fixed({"tools": [tool]})


def test_tools_nested_deeper_than_the_stack_are_answered_all_the_same() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"a": deep}
    for model in ("gpt-4o", "llama-3.3-70b", "claude-sonnet-4-6"):
        count, request = counter_for(None, model), {"tools": [{"function": {"name": "f", "parameters": deep}}, deep]}
        assert count.fixed(request) >= 0
        assert slack_of(count, request) >= 0


def test_tools_whose_rendering_is_known_have_no_slack() -> None:
    assert slack_of(counter_for(None, "gpt-4o"), {"tools": [WEATHER]}) == 0
    assert slack_of(counter_for(None, "claude-sonnet-4-6"), {"tools": [WEATHER]}) == 0


def test_a_picture_among_the_examples_of_a_tool_adds_no_slack() -> None:
    count = counter_for(None, "llama-3.3-70b")
    pictured = {**WEATHER, "icon": "data:image/png;base64," + "A" * 9_000}
    assert slack_of(count, {"tools": [pictured]}) < slack_of(count, {"tools": [WEATHER]}) + 20


def test_every_chat_format_we_have_texts_of_holds_something_back() -> None:
    for model in ("gpt-4o", "o3", "gpt-5", "gpt-oss-120b", "llama-3.3-70b", "mistral-large", "qwen3-32b", "glm-4.6"):
        profile = counter_for(None, model).profile
        assert 0 < profile.margin_tokens(0) <= 44
        assert not profile.approximate


@pytest.mark.parametrize("model", ["gpt-4o", "llama-3.3-70b", "gemini-2.5-pro", "claude-sonnet-4-6"])
def test_a_request_with_tools_fits_by_its_bound_and_not_by_its_count(model: str) -> None:
    counter, talk = counter_for(None, model), [SYSTEM, USER]
    request = {"model": "m", "messages": talk, "tools": [WEATHER], "max_tokens": 50}
    count = sum(map(counter, talk)) + counter.fixed(request)
    margin = counter.profile.margin_tokens(count) + slack_of(counter, request)

    def decide(window: int) -> Decision:
        known = Model("m", "main", "m", context_window=window)
        question = Question(known, talk, request, Settings())
        return fit(question, Catalogue({"m": known}), lambda _: counter, ContextStrategyRegistry())

    assert (decide(count + margin + 50).asked.prompt, decide(count + margin + 50).asked.margin) == (count, margin)
    assert decide(count + margin + 50).action is Action.NONE
    assert decide(count + margin + 49).action is Action.REFUSE
