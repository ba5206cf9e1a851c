"""A DynamoDB client that fails where it is told to: before a write, after it, or in part.

A request is passed on or not; nothing of ours is replaced. Batches go one item at a time, so that "before
each write" means each item.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ReadTimeoutError

WRITES = frozenset({"put_item", "update_item", "batch_write_item"})


class Killed(Exception):
    """The process ended here, as far as the store is concerned."""


class FaultyClient:
    """Counts writes, one for each item, and calls ``before`` and ``after`` with the count.

    ``before`` raises to keep a write from the server; ``after`` raises to lose its answer.
    """

    def __init__(
        self,
        client: Any,
        *,
        before: Callable[[int], None] | None = None,
        after: Callable[[int], None] | None = None,
    ) -> None:
        self._client = client
        self._before = before or _nothing
        self._after = after or _nothing
        self.writes = 0

    def get_item(self, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.get_item(**request)
        return answer

    def query(self, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.query(**request)
        return answer

    def batch_get_item(self, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.batch_get_item(**request)
        return answer

    def put_item(self, **request: Any) -> dict[str, Any]:
        return self._write("put_item", request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        return self._write("update_item", request)

    def delete_item(self, **request: Any) -> dict[str, Any]:
        return self._write("delete_item", request)

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        return self._write("transact_write_items", request)

    def batch_write_item(self, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        for table, requests in request["RequestItems"].items():
            for single in requests:
                answer = self._write("batch_write_item", {"RequestItems": {table: [single]}})
        return answer

    def _write(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        self.writes += 1
        count = self.writes
        self._before(count)
        answer: dict[str, Any] = getattr(self._client, operation)(**request)
        self._after(count)
        return answer


class Throttled(FaultyClient):
    """Does one item of each batch of writes, two of each of reads, and hands the rest back, as a busy DynamoDB does."""

    def batch_write_item(self, **request: Any) -> dict[str, Any]:
        ((table, requests),) = request["RequestItems"].items()
        answer = self._write("batch_write_item", {"RequestItems": {table: requests[:1]}})
        return answer | {"UnprocessedItems": {table: requests[1:]} if requests[1:] else {}}

    def batch_get_item(self, **request: Any) -> dict[str, Any]:
        ((table, wanted),) = request["RequestItems"].items()
        first, rest = wanted["Keys"][:2], wanted["Keys"][2:]
        answer: dict[str, Any] = self._client.batch_get_item(RequestItems={table: wanted | {"Keys": first}})
        return answer | {"UnprocessedKeys": {table: wanted | {"Keys": rest}} if rest else {}}


class Recording(FaultyClient):
    """Remembers what its reads ask for."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.reads: list[dict[str, Any]] = []

    def get_item(self, **request: Any) -> dict[str, Any]:
        self.reads.append(request)
        return super().get_item(**request)

    def query(self, **request: Any) -> dict[str, Any]:
        self.reads.append(request)
        return super().query(**request)

    def batch_get_item(self, **request: Any) -> dict[str, Any]:
        self.reads.extend(request["RequestItems"].values())
        return super().batch_get_item(**request)


class Rounds:
    """Remembers which requests were under way together: each of ``seen`` is one round trip, however many went in it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._under_way = 0
        self.seen: list[list[str]] = []

    def __getattr__(self, operation: str) -> Any:
        def call(**request: Any) -> Any:
            with self._lock:
                if self._under_way == 0:
                    self.seen.append([])
                self._under_way += 1
                self.seen[-1].append(operation)
            time.sleep(0.02)  # as on a network: what is asked for at once is under way together
            try:
                return getattr(self._client, operation)(**request)
            finally:
                with self._lock:
                    self._under_way -= 1

        return call


class Overtaken(FaultyClient):
    """Lets something happen right before its first query: between the two reads of a reader."""

    def __init__(self, client: Any, meanwhile: Callable[[], None]) -> None:
        super().__init__(client)
        self._meanwhile: Callable[[], None] | None = meanwhile

    def query(self, **request: Any) -> dict[str, Any]:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().query(**request)


def killed_at(write: int) -> Callable[[int], None]:
    """Return a fault that ends the writer at a write."""

    def fault(count: int) -> None:
        if count >= write:
            raise Killed

    return fault


def timeout_at(write: int) -> Callable[[int], None]:
    """Return a fault that times one write out."""

    def fault(count: int) -> None:
        if count == write:
            raise ReadTimeoutError(endpoint_url="http://store.example")

    return fault


def _nothing(count: int) -> None:
    pass
