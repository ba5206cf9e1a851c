"""Tools are rendered as openai-harmony prints them."""

from __future__ import annotations

from typing import Any

import pytest

from bastion.tokenizers.typescript import render_tool, render_tools

LOOKUP = {
    "name": "look_up",
    "description": "Look something up.\nOnce.",
    "parameters": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for"},
            "kind": {"type": "string", "enum": ["book", "film"]},
            "limit": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "span": {"type": "object", "properties": {"from": {"type": "number"}, "to": {"type": "number"}}},
        },
        "required": ["query"],
    },
}
RENDERED = """namespace functions {

// Look something up.
// Once.
type look_up = (_: {
// What to look for
query: string,
kind?: "book" | "film",
limit?: number,
tags?: string[],
span?: {
from?: number,
to?: number,
},
}) => any;

type stop = () => any;

} // namespace functions"""


def test_a_namespace_reads_as_typescript() -> None:
    stop = {"name": "stop", "description": "", "parameters": {"type": "object", "properties": {}}}
    assert render_tools([render_tool(LOOKUP), render_tool(stop)]) == RENDERED


def test_a_tool_says_whether_its_properties_are_described() -> None:
    bare = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    assert render_tool(bare).undescribed
    assert not render_tool(LOOKUP).undescribed
    assert not render_tool({"name": "f"}).undescribed


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        (LOOKUP["parameters"], True),
        ({"type": "object", "additionalProperties": False, "properties": {}}, True),
        (None, True),
        ({"type": "object", "$defs": {}}, False),
        ({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}, False),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}, False),
        ({"type": "object", "properties": {"a": True}}, False),
        ({"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "array"}}}}, False),
    ],
)
def test_a_schema_it_does_not_cover_is_not_plain(schema: Any, plain: bool) -> None:
    assert render_tool({"name": "f", "parameters": schema}).plain is plain


class Name(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_work_grows_with_the_number_of_properties() -> None:
    names = [Name(f"p{n}") for n in range(400)]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names[::-1]}
    nested = {"type": "object", "properties": {"all": schema}}
    Name.compared = 0
    for parameters in (schema, nested):
        assert "?: string" not in render_tool({"name": "f", "parameters": parameters}).text
    assert Name.compared < 10 * len(names)


def test_a_property_of_many_kinds_is_read_once_a_kind() -> None:
    schema = {"type": ["string", "integer", "null", "array"], "items": {"type": "boolean"}}
    rendered = render_tool({"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}).text
    assert "a?: string | number | null | boolean[]," in rendered


@pytest.mark.parametrize(
    "tool",
    [
        {},
        {"type": "web_search"},
        {"type": "custom", "custom": {"name": "f", "format": {"type": "grammar"}}},
        {"type": "custom", "name": "f", "format": {"type": "grammar"}},
        {"name": 1, "parameters": {}},
        {"name": "f", "parameters": ["x"]},
        {"name": "f", "parameters": {"properties": ["x"]}},
    ],
)
def test_what_is_no_function_is_not_plain(tool: Any) -> None:
    assert not render_tool(tool).plain


def test_it_says_what_only_harmony_reads() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "string", "description": "x"}}}
    for said, schema in ((True, inner), (True, {"type": "string", "title": "T"}), (False, {"description": "x"})):
        parameters = {"type": "object", "properties": {"a": schema}}
        assert render_tool({"name": "f", "parameters": parameters}).passed_over is said
