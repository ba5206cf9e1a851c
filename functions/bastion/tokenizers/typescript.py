"""Tool schemas as OpenAI's models read them: a TypeScript namespace.

The rendering is the one that openai-harmony prints (`encoding.rs`, Apache-2.0, 2025); that chat completions of
older models follow it was measured on public recordings of reported usage, but for descriptions within properties and
titles, which those do not read. Tools it does not cover are marked (`Rendering.plain`), so that a counter can take a
safe bound instead. Work grows with the size of the schema, whatever it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from contextshift.pieces import compact_json

__all__ = ["Rendering", "render_tool", "render_tools"]

_RENDERED = frozenset({"type", "description", "enum", "items", "properties", "required", "title"})
_SILENT = frozenset({"additionalProperties", "$schema", "strict"})
_OF_A_FUNCTION = frozenset({"name", "description", "parameters", "strict", "type"})
_DEEPEST = 2
"""Nesting of objects up to which the rendering was found to match reported usage."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """One tool as text."""

    text: str
    plain: bool
    """Whether the schema uses only what the rendering covers."""
    undescribed: bool
    """Whether it has properties and none of them is described."""
    passed_over: bool
    """Whether it says something that openai-harmony would print and classic models do not read."""


def render_tool(function: Mapping[str, Any]) -> Rendering:
    """Render a function's ``name``, ``description`` and ``parameters``; never raises, odd tools are not ``plain``."""
    parameters = _mapping(function.get("parameters"))
    properties = _mapping(parameters.get("properties"))
    lines = [*_comment(function.get("description")), f"type {function.get('name', '')} = {_signature(parameters)};\n\n"]
    described = any(_mapping(schema).get("description") for schema in properties.values())
    known = isinstance(function.get("name"), str) and set(function) <= _OF_A_FUNCTION
    plain = known and isinstance(function.get("parameters") or {}, Mapping) and _is_plain(parameters, 0)
    passed_over = any(_says_more(_mapping(schema), 1) for schema in properties.values())
    return Rendering("".join(lines), plain, bool(properties) and not described, passed_over)


def render_tools(renderings: Iterable[Rendering]) -> str:
    """Return the whole namespace. It is one text to the model: tokens reach across from tool to tool."""
    return f"namespace functions {{\n\n{''.join(tool.text for tool in renderings)}}} // namespace functions"


def _signature(parameters: Mapping[str, Any]) -> str:
    if not _mapping(parameters.get("properties")):
        return "() => any"
    return f"(_: {{\n{''.join(_lines(parameters))}}}) => any"


def _lines(schema: Mapping[str, Any]) -> Iterator[str]:
    required = _required(schema)
    for name, value in _mapping(schema.get("properties")).items():
        inner = _mapping(value)
        yield from _comment(inner.get("description"))
        mark = "" if name in required else "?"
        yield f"{name}{mark}: {_type(inner, 0)},\n"


def _comment(description: object) -> Iterator[str]:
    if isinstance(description, str) and description:
        for line in description.split("\n"):
            yield f"// {line}\n"


def _required(schema: Mapping[str, Any]) -> frozenset[str]:
    required = schema.get("required")
    return frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()


def _type(schema: Mapping[str, Any], depth: int) -> str:
    return _type_of(schema, schema.get("type"), depth)


def _type_of(schema: Mapping[str, Any], kind: object, depth: int) -> str:
    """Return a schema as a type as if it were of one ``kind``, or of each of several."""
    enum = schema.get("enum")
    if depth > 2 * _DEEPEST:
        return "any"
    if isinstance(enum, list) and enum:
        return " | ".join(compact_json(item) for item in enum)
    if isinstance(kind, list):
        kinds = dict.fromkeys(item for item in kind if isinstance(item, str))  # each once, however often it is named
        return " | ".join(_type_of(schema, item, depth + 1) for item in kinds)
    if kind == "array":
        return _type(_mapping(schema.get("items")), depth + 1) + "[]"
    if kind == "object" and schema.get("properties"):
        return _inline(schema, depth)
    return {"integer": "number", "string": "string", "number": "number", "boolean": "boolean", "null": "null"}.get(
        kind if isinstance(kind, str) else "", kind if isinstance(kind, str) else "any"
    )


def _inline(schema: Mapping[str, Any], depth: int) -> str:
    required = _required(schema)
    fields = []
    for name, value in _mapping(schema.get("properties")).items():
        mark = "" if name in required else "?"
        fields.append(f"{name}{mark}: {_type(_mapping(value), depth + 1)},\n")
    return "{\n" + "".join(fields) + "}"


def _is_plain(schema: Mapping[str, Any], depth: int) -> bool:
    """Whether every keyword is covered and objects nest no deeper than measured."""
    if depth > _DEEPEST or not set(schema) <= _RENDERED | _SILENT:
        return False
    if depth == 0 and schema.get("description"):  # of the parameters as a whole: read, but not where they are rendered
        return False
    inner = [*_mapping(schema.get("properties")).values(), *([schema["items"]] if "items" in schema else ())]
    if not all(isinstance(one, Mapping) for one in (schema.get("properties", {}), *inner)):
        return False  # a tuple of schemas, or no schema at all
    if isinstance(schema.get("additionalProperties"), Mapping) or not isinstance(schema.get("enum", []), list):
        return False
    return isinstance(schema.get("type", "object"), str) and all(_is_plain(item, depth + 1) for item in inner)


def _says_more(schema: Mapping[str, Any], depth: int) -> bool:
    """Whether a property or anything in it has a title, or a description further in, or goes on beyond the deepest."""
    if schema.get("title") or (depth > 1 and schema.get("description")) or depth > 2 * _DEEPEST:
        return True
    inner = (*_mapping(schema.get("properties")).values(), schema.get("items"))
    return any(_says_more(_mapping(one), depth + 1) for one in inner if one)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
