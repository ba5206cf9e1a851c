"""One boto3 client, called in threads: two tries, errors translated, round trips metered.

The adapter owns the retries (botocore's are off), so that a lost answer is handled in one place: the second
try of a conditional write may be refused because the first one succeeded, and only the store can tell.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from bastion.stores.dynamodb.actions import Action, conditional, only_if, ranged
from bastion.stores.dynamodb.conditions import Change, names_in
from bastion.stores.dynamodb.items import Attribute, Item, Key
from contextshift.errors import StoreUnavailable

__all__ = [
    "Cancelled",
    "ConditionFailed",
    "DynamoClient",
    "Meter",
    "RoundTrip",
    "Table",
    "dynamodb_client",
]

_CONNECT_SECONDS = 1.0
_READ_SECONDS = 3.0
_BATCH_WRITE = 25
_BATCH_GET = 100
_PAUSE_SECONDS = 0.05
# Between the tries of a batch that was done in part: throttling, as a rule.
_BATCH_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
_CONFLICT_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
_MET = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_READS = frozenset({"get_item", "query", "batch_get_item"})
# What repeating may cure; everything else that DynamoDB refuses, it refuses again.
_PASSING = frozenset(
    {
        "InternalServerError",
        "ItemCollectionSizeLimitExceededException",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionConflictException",
    }
)


class DynamoClient(Protocol):
    """The eight verbs we use of boto3's low-level DynamoDB client."""

    def get_item(self, **request: Any) -> dict[str, Any]:
        """Read one item."""

    def put_item(self, **request: Any) -> dict[str, Any]:
        """Write one item whole."""

    def update_item(self, **request: Any) -> dict[str, Any]:
        """Change one item."""

    def delete_item(self, **request: Any) -> dict[str, Any]:
        """Delete one item."""

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        """Change up to 100 items, all or none."""

    def query(self, **request: Any) -> dict[str, Any]:
        """Read a range of one partition."""

    def batch_get_item(self, **request: Any) -> dict[str, Any]:
        """Read up to 100 items."""

    def batch_write_item(self, **request: Any) -> dict[str, Any]:
        """Put and delete up to 25 items."""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One request to DynamoDB, and the capacity units it says it took (0 where it failed)."""

    operation: str
    read_units: float
    write_units: float


Meter = Callable[[RoundTrip], None]


class ConditionFailed(Exception):
    """Raise when a condition does not hold; ``item`` is what is stored, where the server says so."""

    def __init__(self, item: Item | None) -> None:
        super().__init__("the condition does not hold")
        self.item = item


class Cancelled(Exception):
    """Raise when a transaction was not made because conditions do not hold: of which of its actions, in order."""

    def __init__(self, failed: Sequence[bool]) -> None:
        super().__init__("the transaction was cancelled")
        self.failed = tuple(failed)


class _Conflict(StoreUnavailable):
    """Raise when a transaction met another one; it may be tried again."""


class _Passing(StoreUnavailable):
    """Raise when a second try may help, or has perhaps been done already: the answer may be what was lost."""


def dynamodb_client(*, endpoint: str | None = None, region: str | None = None) -> DynamoClient:
    """Make a boto3 client with our time limits and no retries of its own; ``endpoint`` is for emulators.

    Raises StoreUnavailable where boto3 cannot tell the region.
    """
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 1},
        max_pool_connections=32,
    )
    try:
        client = boto3.client("dynamodb", endpoint_url=endpoint, region_name=region, config=config)
    except BotoCoreError as error:
        raise StoreUnavailable(f"DynamoDB client: {type(error).__name__}") from error
    return cast("DynamoClient", client)


class Table:
    """One table in verbs of items. Every method raises StoreUnavailable after two tries."""

    def __init__(self, client: DynamoClient, name: str, meter: Meter | None = None) -> None:
        self._client = client
        self._name = name
        self._meter = meter

    async def get(self, key: Key) -> Item | None:
        """Read one item, strongly consistent."""
        answer = await self._call("get_item", TableName=self._name, Key=key, ConsistentRead=True)
        return answer.get("Item")

    async def put(self, item: Item, condition: str, values: Mapping[str, Attribute]) -> None:
        """Write one item whole if ``condition`` holds, else raise ConditionFailed."""
        await self._call("put_item", TableName=self._name, Item=item, **conditional(condition, values))

    async def update(self, key: Key, change: Change) -> Item:
        """Change one item and return it as it is then; raise ConditionFailed where the condition does not hold."""
        answer = await self._call(
            "update_item",
            TableName=self._name,
            Key=key,
            UpdateExpression=change.update,
            ExpressionAttributeNames=names_in(change.update, change.condition) | dict(change.names),
            ExpressionAttributeValues=dict(change.values),
            ReturnValues="ALL_NEW",
            **only_if(change.condition),
        )
        return cast("Item", answer["Attributes"])

    async def delete(self, key: Key, condition: str, values: Mapping[str, Attribute]) -> None:
        """Delete one item if ``condition`` holds, else raise ConditionFailed."""
        await self._call("delete_item", TableName=self._name, Key=key, **conditional(condition, values))

    async def transact(self, actions: Sequence[Action]) -> None:
        """Do all of up to 100 actions, or raise Cancelled. One that met another transaction is tried again."""
        items = [{kind: request | {"TableName": self._name}} for kind, request in actions]
        for pause in _CONFLICT_PAUSES:
            try:
                await self._call("transact_write_items", TransactItems=items)
            except _Conflict:
                await asyncio.sleep(pause * (0.5 + random.random()))
            else:
                return
        raise StoreUnavailable("DynamoDB transact_write_items: conflicts without end")

    async def query(
        self,
        partition: str,
        low: str,
        high: str,
        *,
        only: Sequence[str] = (),
        consistent: bool = True,
        most: int | None = None,
        descending: bool = False,
    ) -> list[Item]:
        """Read what a partition holds from ``low`` to ``high``, both included, or the first ``most`` of it.

        ``only`` names attributes; ``descending`` begins at ``high``.
        """
        found: list[Item] = []
        request = ranged(self._name, partition, low, high, only)
        request |= {"ConsistentRead": consistent, "ScanIndexForward": not descending}
        while True:
            if most is not None:
                request["Limit"] = most - len(found)
            answer = await self._call("query", **request)
            found += answer.get("Items", ())
            if "LastEvaluatedKey" not in answer or len(found) == most:
                return found
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    async def get_all(self, keys: Sequence[Key]) -> list[Item]:
        """Read the items that exist under ``keys``, strongly consistent, in no order: one round trip per 100."""
        found: list[Item] = []
        for batch in _batches(keys, _BATCH_GET):
            found += await self._get_batch(batch)
        return found

    async def write_all(self, requests: Sequence[dict[str, Any]]) -> None:
        """Do puts and deletions, unconditional and in no order: one round trip per 25."""
        for batch in _batches(requests, _BATCH_WRITE):
            await self._write_batch(batch)

    async def _get_batch(self, keys: Sequence[Key]) -> list[Item]:
        found: list[Item] = []
        left: dict[str, Any] = {self._name: {"Keys": list(keys), "ConsistentRead": True}}
        for pause in _BATCH_PAUSES:
            await asyncio.sleep(pause)
            answer = await self._call("batch_get_item", RequestItems=left)
            found += answer.get("Responses", {}).get(self._name, ())
            left = answer.get("UnprocessedKeys") or {}
            if not left:
                return found
        raise StoreUnavailable("DynamoDB batch_get_item: throttled")

    async def _write_batch(self, requests: Sequence[dict[str, Any]]) -> None:
        left: dict[str, Any] = {self._name: list(requests)}
        for pause in _BATCH_PAUSES:
            await asyncio.sleep(pause)
            answer = await self._call("batch_write_item", RequestItems=left)
            left = answer.get("UnprocessedItems") or {}
            if not left:
                return
        raise StoreUnavailable("DynamoDB batch_write_item: throttled")

    async def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        try:
            return await self._send(operation, request)
        except _Passing:
            await asyncio.sleep(_PAUSE_SECONDS)
        return await self._send(operation, request)

    async def _send(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if self._meter is not None:
            request = request | {"ReturnConsumedCapacity": "TOTAL"}
        answer: dict[str, Any] = {}
        try:
            answer = await asyncio.to_thread(getattr(self._client, operation), **request)
        except ClientError as error:
            raise _translated(operation, error) from error
        except BotoCoreError as error:
            raise _Passing(f"DynamoDB {operation}: {type(error).__name__}") from error
        finally:
            self._count(operation, answer)
        return answer

    def _count(self, operation: str, answer: dict[str, Any]) -> None:
        if self._meter is None:
            return
        spent = answer.get("ConsumedCapacity") or []
        units = sum(entry["CapacityUnits"] for entry in ([spent] if isinstance(spent, dict) else spent))
        read = operation in _READS
        self._meter(RoundTrip(operation, units if read else 0.0, 0.0 if read else units))


def _translated(operation: str, error: ClientError) -> Exception:
    code = error.response.get("Error", {}).get("Code", "unknown")
    if code == "ConditionalCheckFailedException":
        return ConditionFailed(cast("Item | None", error.response.get("Item")))
    if code == "TransactionCanceledException":
        return _cancelled(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind = _Passing if code in _PASSING or status >= 500 else StoreUnavailable
    # The code only: the server's message may quote values.
    return kind(f"DynamoDB {operation}: {code}")


def _cancelled(error: ClientError) -> Exception:
    """Say why a transaction was not made: conditions, or something that passes."""
    response: Mapping[str, Any] = error.response
    reasons = [reason.get("Code") or "None" for reason in response.get("CancellationReasons", ())]
    if "ConditionalCheckFailed" in reasons:
        return Cancelled([reason == "ConditionalCheckFailed" for reason in reasons])
    if all(reason == "None" or reason in _MET for reason in reasons):
        return _Conflict("DynamoDB transact_write_items: TransactionConflict")
    codes = ", ".join(sorted({reason for reason in reasons if reason != "None"}))
    return StoreUnavailable(f"DynamoDB transact_write_items: {codes}")


def _batches(entries: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    starts: Iterable[int] = range(0, len(entries), size)
    return (entries[start : start + size] for start in starts)
