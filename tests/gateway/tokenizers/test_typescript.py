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
