"""``GET /openapi.json``: OpenAPI 3.1, made of the operations' own types."""

from __future__ import annotations

from typing import Any

import msgspec

from bastion.operations import OPERATIONS, Operation
from bastion.wire.documents import OpenAIProblem, Problem

__all__ = ["openapi_document"]

_FREE: dict[str, Any] = {"type": "object"}
_PARAMETERS: dict[str, dict[str, Any]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Items of a page."},
    "cursor": {"type": "string", "description": "From the page before."},
    "branch": {"type": "string", "description": "A branch of the chat; main where left out."},
    "order": {"enum": ["asc", "desc"], "description": "asc: oldest first."},
    "user_id": {"type": "string", "description": "Only this user's."},
    "include": {"type": "string", "description": "content, messages, or both with a comma."},
    "format": {"enum": ["json", "png"], "description": "json where left out."},
}
_ERRORS = (400, 401, 403, 404, 405, 409, 413, 500, 502, 503, 504)


def openapi_document(version: str) -> dict[str, Any]:
    """Return the whole document."""
    types = {one for operation in OPERATIONS for one in (operation.request, operation.response) if one is not None}
    types |= {Problem, OpenAIProblem}
    ordered = sorted(types, key=lambda one: one.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bastion",
            "version": version,
            "description": "An OpenAI-compatible endpoint that counts the prompt, makes it fit, and shows what it did.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {str(operation.status): _answer(operation), **_problems(operation)},
    }
    parameters = [*_path_parameters(operation.path), *map(_query_parameter, operation.query)]
    if parameters:
        shown["parameters"] = parameters
    if not operation.scopes:
        shown["security"] = []
    if operation.scopes:
        shown["x-scopes"] = list(operation.scopes)
    body = _body(operation)
    if body:
        shown["requestBody"] = {"required": True, "content": body}
    return shown


def _answer(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if operation.response is not None:
        content["application/json"] = {"schema": _reference(operation.response)}
    elif operation.free_answer is not None:
        content[operation.free_answer] = {"schema": _FREE}
    if operation.streams:
        content["text/event-stream"] = {"schema": {}}
    return {"description": operation.summary, **({"content": content} if content else {})}


def _problems(operation: Operation) -> dict[str, Any]:
    kind = Problem if operation.path.startswith("/api/") else OpenAIProblem
    schema = {"content": {"application/json": {"schema": _reference(kind)}}}
    return {str(status): {"description": "An error", **schema} for status in _ERRORS}


def _body(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if operation.request is not None:
        content["application/json"] = {"schema": _reference(operation.request)}
    if operation.free_body:
        content["application/json"] = {"schema": _FREE}
    if operation.bytes_body:
        kind = "multipart/form-data" if operation.free_body else "application/octet-stream"
        content[kind] = {"schema": {}}
    return content


def _reference(kind: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameter(name: str) -> dict[str, Any]:
    schema = dict(_PARAMETERS[name])
    return {"name": name, "in": "query", "description": schema.pop("description"), "schema": schema}
