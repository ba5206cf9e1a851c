"""One boto3 client, called in threads: two tries, errors translated, round trips metered.

The adapter owns the retries (botocore's are off), so that a lost answer is handled in one place: the second
try of a conditional write may be refused because the first one succeeded, and only the store can tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from bastion.stores.dynamodb.conditions import Change, names_in
from bastion.stores.dynamodb.items import Attribute, Item, Key
from contextshift.errors import StoreUnavailable

__all__ = ["ConditionFailed", "DynamoClient", "Meter", "RoundTrip", "Table", "deletion", "dynamodb_client", "put"]

_CONNECT_SECONDS = 1.0
_READ_SECONDS = 3.0
_BATCH_WRITE = 25
_BATCH_GET = 100
_PAUSE_SECONDS = 0.05
# Between the tries of a batch that was done in part: throttling, as a rule.
_BATCH_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
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
    """The six verbs we use of boto3's low-level DynamoDB client."""

    def get_item(self, **request: Any) -> dict[str, Any]:
        """Read one item."""

    def put_item(self, **request: Any) -> dict[str, Any]:
        """Write one item whole."""

    def update_item(self, **request: Any) -> dict[str, Any]:
        """Change one item."""

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


def put(item: Item) -> dict[str, Any]:
    """Return the write request of a batch that puts ``item``."""
    return {"PutRequest": {"Item": item}}


def deletion(key: Key) -> dict[str, Any]:
    """Return the write request of a batch that deletes what is under ``key``."""
    return {"DeleteRequest": {"Key": key}}


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
        await self._call("put_item", TableName=self._name, Item=item, **_conditional(condition, values))

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
            **_only_if(change.condition),
        )
        return cast("Item", answer["Attributes"])

    async def query(
        self, partition: str, low: str, high: str, *, only: Sequence[str] = (), consistent: bool = True
    ) -> list[Item]:
        """Read what a partition holds from ``low`` to ``high``, both included; ``only`` names attributes."""
        found: list[Item] = []
        request = _range(self._name, partition, low, high, only) | {"ConsistentRead": consistent}
        while True:
            answer = await self._call("query", **request)
            found += answer.get("Items", ())
            if "LastEvaluatedKey" not in answer:
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
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind = _Passing if code in _PASSING or status >= 500 else StoreUnavailable
    # The code only: the server's message may quote values.
    return kind(f"DynamoDB {operation}: {code}")


def _only_if(condition: str | None) -> dict[str, Any]:
    """Return a condition's clauses; what is stored comes back with the refusal where the server can."""
    if condition is None:
        return {}
    return {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def _conditional(condition: str, values: Mapping[str, Attribute]) -> dict[str, Any]:
    request = _only_if(condition) | {"ExpressionAttributeNames": names_in(condition)}
    return request | ({"ExpressionAttributeValues": dict(values)} if values else {})


def _range(table: str, partition: str, low: str, high: str, only: Sequence[str]) -> dict[str, Any]:
    condition = "#pk = :pk AND #sk BETWEEN :low AND :high"
    projection = ", ".join(f"#{name}" for name in only)
    request = {
        "TableName": table,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": names_in(condition, projection),
        "ExpressionAttributeValues": {":pk": {"S": partition}, ":low": {"S": low}, ":high": {"S": high}},
    }
    return request | ({"ProjectionExpression": projection} if only else {})


def _batches(entries: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    starts: Iterable[int] = range(0, len(entries), size)
    return (entries[start : start + size] for start in starts)
