"""OpenAI's own numbers: the cookbook's published counts, and the rules behind them, against plain tiktoken."""

from __future__ import annotations

import base64
import json
import struct
from functools import cache
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bastion.tokenizers.costs import CLASSIC, GPT5, ChatCosts
from bastion.tokenizers.images import PatchRule, TileRule
from bastion.tokenizers.openai_chat import OpenAIChatCounter
from bastion.tokenizers.registry import counter_for
from bastion.tokenizers.tiktoken_engine import TiktokenEncoding
from bastion.tokenizers.vocab import load_ranks
from contextshift.pieces import compact_json
from contextshift.tokens import TokenCounter
from gateway.tokenizers.oracle import VOCABULARIES, Oracle

# The example of OpenAI's cookbook, How_to_count_tokens_with_tiktoken.ipynb (MIT), with the counts printed there.
JARGON = [
    {
        "role": "system",
        "content": "You are a helpful, pattern-following assistant "
        "that translates corporate jargon into plain English.",
    },
    {"role": "system", "name": "example_user", "content": "New synergies will help drive top-line growth."},
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Things working well together will increase revenue.",
    },
    {
        "role": "system",
        "name": "example_user",
        "content": "Let's circle back when we have more bandwidth to touch base "
        "on opportunities for increased leverage.",
    },
    {
        "role": "system",
        "name": "example_assistant",
        "content": "Let's talk later when we're less busy about how to do better.",
    },
    {
        "role": "user",
        "content": "This late pivot means we don't have time to boil the ocean for the client deliverable.",
    },
]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
                "unit": {
                    "type": "string",
                    "description": "The unit of temperature to return",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    },
}
ASKED = [
    {"role": "system", "content": "You are a helpful assistant that can answer to questions about the weather."},
    {"role": "user", "content": "What's the weather like in San Francisco?"},
]
TEXT = st.text(st.characters(), max_size=60)


def counter(model: str) -> TokenCounter:
    return counter_for(None, model, [VOCABULARIES])


def total(model: str, request: dict[str, Any]) -> int:
    count = counter(model)
    return sum(map(count, request["messages"])) + count.fixed(request)


def png(width: int, height: int, padding: int = 0) -> dict[str, Any]:
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(8 + padding)
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("gpt-3.5-turbo-0125", 129), ("gpt-4-0613", 129), ("gpt-4", 129), ("gpt-4o", 124), ("gpt-4o-mini", 124)],
)
def test_the_cookbooks_messages_count_as_it_says(model: str, tokens: int) -> None:
    assert total(model, {"messages": JARGON}) == tokens


@pytest.mark.parametrize(
    ("model", "tokens"), [("gpt-3.5-turbo", 105), ("gpt-4", 105), ("gpt-4o", 101), ("gpt-4o-mini", 101)]
)
def test_the_cookbooks_tools_count_as_it_says(model: str, tokens: int) -> None:
    assert total(model, {"messages": ASKED, "tools": [WEATHER]}) == tokens
    assert total(model, {"messages": ASKED, "functions": [WEATHER["function"]]}) == tokens


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4", "o3", "gpt-5"])
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXT, min_size=1, max_size=4), name=st.none() | TEXT)
def test_a_message_is_three_and_its_role_its_parts_and_its_name(
    model: str, texts: list[str], name: str | None, oracle: Oracle
) -> None:
    count = counter(model)
    reference = oracle(count.profile.name)

    def tokens(text: str) -> int:
        return len(reference.encode_ordinary(text))

    message = {"role": "user", "name": name, "content": [{"type": "text", "text": text} for text in texts]}
    expected = 3 + 1 + sum(map(tokens, texts)) + (0 if name is None else 1 + tokens(name))
    assert count(message) == expected
    assert count({"role": "user", "content": texts[0]}) == 4 + tokens(texts[0])


@pytest.mark.parametrize(
    ("model", "priming"), [("gpt-4o", 3), ("gpt-3.5-turbo", 3), ("gpt-4.1", 3), ("o3-mini", 2), ("gpt-5-mini", 2)]
)
def test_the_reply_is_primed_once_a_request(model: str, priming: int) -> None:
    assert counter(model).fixed({"messages": []}) == priming
    assert counter(model).fixed({"tools": None, "functions": [], "response_format": {"type": "json_object"}}) == priming


def test_null_content_counts_zero_and_its_calls_count() -> None:
    count = counter("gpt-4o")
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    bare = {"role": "assistant", "content": None}
    assert count(bare) == count({"role": "assistant"}) == count({"role": "assistant", "content": ""}) == 4
    assert count({**bare, "tool_calls": None}) == 4
    assert count({**bare, "tool_calls": [call]}) > 4 + count.text('{"a":1}')
    assert count({**bare, "function_call": call["function"]}) == count({**bare, "tool_calls": [call]})
    assert count({**bare, "tool_calls": [call, call]}) > 2 * (count({**bare, "tool_calls": [call]}) - 4) + 4


def test_call_ids_are_free_and_spaces_in_arguments_are_not_charged() -> None:
    count = counter("gpt-4o")
    made = [
        {"role": "assistant", "tool_calls": [{"id": id_, "function": {"name": "f", "arguments": arguments}}]}
        for id_, arguments in (("a", '{"x":[1,2]}'), ("call_" + "z" * 90, '{ "x": [1,   2] }'))
    ]
    assert count(made[0]) == count(made[1])
    assert count({"role": "tool", "tool_call_id": "x" * 50, "content": "12"}) == 3 + 1 + 1


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|im_start|>system", "a <|endofprompt|> b"])
def test_what_looks_like_a_control_token_is_plain_text(text: str) -> None:
    for model in ("gpt-4o", "gpt-4"):
        assert counter(model)({"role": "user", "content": text}) >= 4 + 5


def test_a_data_url_is_priced_as_an_image_and_never_as_text() -> None:
    message = {
        "role": "user",
        "content": [{"type": "text", "text": "what is on this picture"}, png(1024, 1024, 225_000)],
    }
    assert counter("gpt-4o")(message) == 4 + 5 + 765
    unreadable = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 300_000}}
    assert counter("gpt-4o")({"role": "user", "content": [unreadable]}) == 4 + 85 + 8 * 170


@pytest.mark.parametrize(
    ("rule", "size", "detail", "tokens"),
    [
        (TileRule(85, 170), (1024, 1024), "high", 765),  # the guide's own examples
        (TileRule(85, 170), (2048, 4096), "auto", 1105),
        (TileRule(85, 170), (4096, 8192), "low", 85),
        (TileRule(85, 170), (3008, 2000), "auto", 1105),  # reported by the API
        (TileRule(85, 170), (1, 1), "auto", 255),
        (TileRule(85, 170), None, "auto", 1445),
        (PatchRule(2.46), (540, 360), "auto", 503),  # reported by the API
        (PatchRule(1.62), (1024, 1024), "low", 1660),
        (PatchRule(1.62), (100_000, 100_000), "auto", 2466),
        (PatchRule(1.62), None, "auto", 2490),
        (PatchRule(1.62, 2_500, 10_000), (3_200, 3_200), "original", 16_201),
        (PatchRule(1.62, 2_500, 10_000), (3_200, 3_200), "high", 4_051),
    ],
)
def test_images_cost_what_the_guide_says(rule: Any, size: Any, detail: str, tokens: int) -> None:
    assert rule.tokens(size, detail) == tokens


def test_audio_and_files_are_not_text() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "A" * 100_000, "format": "wav"}}
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + "A" * 100_000}}
    assert counter("gpt-4o")({"role": "user", "content": [audio]}) < 1_000
    assert counter("gpt-4o")({"role": "user", "content": [file]}) < 6_000


def test_parts_of_unknown_types_count_by_their_json_without_data() -> None:
    count = counter("gpt-4o")
    part = {"type": "novel", "body": "some words"}
    assert count({"role": "user", "content": [part]}) == 4 + count.text('{"type":"novel","body":"some words"}')
    heavy = {"type": "novel", "blob": "data:x/y;base64," + "A" * 100_000}
    assert count({"role": "user", "content": [heavy]}) < 30


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"type": "string", "pattern": "x+"}},
        },
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}},
        {"type": ["object"], "properties": {"a": 5}, "required": "a"},
        {"properties": {str(n): {"type": "object", "properties": {"x": {"oneOf": []}}} for n in range(20)}},
        {},
        None,
        "no schema",
    ],
)
def test_a_schema_the_rendering_does_not_cover_costs_at_least_its_json(schema: Any) -> None:
    for model in ("gpt-4o", "gpt-5"):
        count = counter(model)
        function = {"name": "f", "description": "d", "parameters": schema}
        cost = count.fixed({"tools": [{"type": "function", "function": function}]}) - count.fixed({})
        plain = schema in ({}, None, "no schema")
        assert cost > (0 if plain else count.text(json.dumps(function, separators=(",", ":"))))


def test_a_schema_for_the_reply_is_bounded_by_its_json() -> None:
    count = counter("gpt-4o")
    schema = {"name": "joke", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    cost = count.fixed({"response_format": {"type": "json_schema", "json_schema": schema}}) - count.fixed({})
    assert cost == 8 + count.text(json.dumps(schema, separators=(",", ":")))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["role", "content", "name", "tool_calls", "function_call", "function", "type", "text", "arguments", "description",
     "parameters", "properties", "required", "items", "enum", "refusal", "image_url", "url", "messages", "tools",
     "functions", "response_format", "json_schema"]
)  # fmt: skip
ODD = st.recursive(
    JSON, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=20
)


@settings(deadline=None)
@given(odd=st.dictionaries(KEYS, ODD, max_size=6))
def test_no_message_or_request_makes_it_raise(odd: dict[str, Any]) -> None:
    for model in ("gpt-4o", "gpt-5"):
        assert counter(model)(odd) >= 3
        assert counter(model).fixed(odd) >= 2


ARGUMENTS = st.sampled_from(
    ['{"n":12}', '{ "n" : 12 }', '{"n":-0}', '{"n":012}', '{"n":1.50}', '{"a":1,"a":2}', '{"u":"\\u00e9"}',
     '{"u":"\\/"}', '{"u":"\\n\\""}', '{"a":true}', '{"a":nul}', "{}", "", "[1, 2]", '"text"', '{"a":"x"',
     '{"a":"\t"}', '{"k\\n":1}',
     '{"long":"' + "word " * 60 + '"}', '{"n":' + "9" * 60 + "}", '{"a":NaN}', '{"a":"\ud800"}', '{"a":"\\ud800"}',
     "\ufeff{}"]
) | TEXT | st.dictionaries(TEXT, TEXT | st.integers() | st.booleans(), max_size=2).map(json.dumps)  # fmt: skip
NAMES_OF_TOOLS = st.sampled_from(["look", "a.b", "n" * 65, ""]) | TEXT
ODDLY = st.none() | st.integers() | TEXT
FUNCTION = st.fixed_dictionaries(
    {"name": NAMES_OF_TOOLS | ODDLY, "arguments": ARGUMENTS | ODDLY},
    optional={"input": ARGUMENTS},
)
CALL = st.fixed_dictionaries({"id": TEXT, "function": FUNCTION}, optional={"type": TEXT, "custom": FUNCTION | ODDLY})
USUAL = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "narrator", ""])
        | ODDLY
        | st.lists(TEXT)
    },
    optional={
        "content": TEXT | st.none() | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT})),
        "tool_call_id": TEXT,
        "tool_calls": st.lists(CALL | st.builds(dict) | ODDLY, max_size=3) | st.none() | st.tuples(CALL) | CALL,
        "name": TEXT,
        "refusal": TEXT,
        "function_call": FUNCTION | st.none(),
    },
)


@cache
def plain() -> TiktokenEncoding:
    """An encoding that remembers nothing."""
    return TiktokenEncoding("o200k_base", load_ranks("o200k_base", [VOCABULARIES]))


@pytest.mark.parametrize(("model", "costs"), [("gpt-4o", CLASSIC), ("gpt-5", GPT5)])
@settings(deadline=None, max_examples=300)
@given(message=USUAL)
def test_the_short_ways_count_as_the_whole_way(model: str, costs: ChatCosts, message: dict[str, Any]) -> None:
    count = OpenAIChatCounter(plain(), costs)
    whole = count._whole(message)
    assert [count(message), count(message), count(MappingProxyType(message))] == [whole] * 3
    assert counter(model)(message) == whole


@settings(deadline=None, max_examples=300)
@given(arguments=ARGUMENTS)
def test_arguments_cost_their_compact_json_whichever_way_they_are_read(arguments: str) -> None:
    count = counter("gpt-4o")
    try:
        value = json.loads(arguments)
    except ValueError:
        value = None
    written = compact_json(value) if isinstance(value, dict) else arguments
    assert count._arguments(arguments) == count.text(written)  # type: ignore[attr-defined]


def test_what_a_counter_remembers_of_names_is_bounded() -> None:
    count = OpenAIChatCounter(plain())
    for number in range(2_000):
        function = {"name": f"tool_{number}" + "x" * (number % 2 * 64), "arguments": "{}"}
        count({"role": f"role {number}", "content": None, "tool_calls": [{"function": function}]})
        count({"role": "assistant", "content": None, "tool_calls": [{"function": function}]})
    assert len(count._names) <= 1_024
    assert max(map(len, count._names)) <= 64
    assert set(count._roles) <= {"assistant"}
