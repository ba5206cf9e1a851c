"""Requests as DynamoDB takes them: what a batch does, what a transaction does, under which conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bastion.stores.dynamodb.conditions import Change, names_in
from bastion.stores.dynamodb.items import Attribute, Item, Key

__all__ = ["Action", "checking", "conditional", "deletion", "only_if", "put", "putting", "ranged", "updating"]


def put(item: Item) -> dict[str, Any]:
    """Return the write request of a batch that puts ``item``."""
    return {"PutRequest": {"Item": item}}


def deletion(key: Key) -> dict[str, Any]:
    """Return the write request of a batch that deletes what is under ``key``."""
    return {"DeleteRequest": {"Key": key}}


Action = tuple[str, dict[str, Any]]
"""One of a transaction's changes: its kind, and the request without the table."""


def putting(item: Item, condition: str | None = None, values: Mapping[str, Attribute] | None = None) -> Action:
    """Return the action that writes ``item`` whole, if ``condition`` holds."""
    return "Put", {"Item": item} | _expressions(values or {}, condition=condition)


def updating(key: Key, change: Change) -> Action:
    """Return the action that changes one item."""
    return "Update", {"Key": key} | _expressions(change.values, update=change.update, condition=change.condition)


def checking(key: Key, condition: str, values: Mapping[str, Attribute]) -> Action:
    """Return the action that changes nothing, and nothing of its transaction is done unless ``condition`` holds."""
    return "ConditionCheck", {"Key": key} | _expressions(values, condition=condition)


def _expressions(
    values: Mapping[str, Attribute], *, condition: str | None = None, update: str | None = None
) -> dict[str, Any]:
    request: dict[str, Any] = {"ExpressionAttributeNames": names_in(update, condition)}
    said = {"UpdateExpression": update, "ConditionExpression": condition}
    request |= {name: expression for name, expression in said.items() if expression is not None}
    return request | ({"ExpressionAttributeValues": dict(values)} if values else {})


def only_if(condition: str | None) -> dict[str, Any]:
    """Return a condition's clauses; what is stored comes back with the refusal where the server can."""
    if condition is None:
        return {}
    return {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def conditional(condition: str, values: Mapping[str, Attribute]) -> dict[str, Any]:
    """Return a condition with its names and values."""
    request = only_if(condition) | {"ExpressionAttributeNames": names_in(condition)}
    return request | ({"ExpressionAttributeValues": dict(values)} if values else {})


def ranged(table: str, partition: str, low: str, high: str, only: Sequence[str]) -> dict[str, Any]:
    """Return a query of one partition; ``only`` names attributes."""
    condition = "#pk = :pk AND #sk BETWEEN :low AND :high"
    projection = ", ".join(f"#{name}" for name in only)
    request = {
        "TableName": table,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": names_in(condition, projection),
        "ExpressionAttributeValues": {":pk": {"S": partition}, ":low": {"S": low}, ":high": {"S": high}},
    }
    return request | ({"ProjectionExpression": projection} if only else {})
