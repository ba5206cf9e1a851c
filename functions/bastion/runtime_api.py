"""Lambda's runtime API, from the side of a runtime that streams its answers.

Sources: "Using the Lambda runtime API for custom runtimes" and "Custom runtimes: response streaming" in the
Lambda guide. An answer is one chunked POST; a failure after its start goes into trailers, one before it to
`/error`, one at import to `/init/error`.
"""

import asyncio
import base64
import json
import logging
import time
import traceback
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

logger = logging.getLogger("bastion.streaming")

INTEGRATION_RESPONSE = "application/vnd.awslambda.http-integration-response"


@dataclass(frozen=True)
class Invocation:
    """One call of the function; also the context object that its scope carries as `aws.context`."""

    aws_request_id: str
    deadline: float
    """When Lambda ends it, in seconds since the epoch."""
    invoked_function_arn: str
    trace_id: str | None
    event: Any

    def get_remaining_time_in_millis(self) -> int:
        """How long this invocation may still run."""
        return max(0, int((self.deadline - time.time()) * 1000))


class RuntimeApi:
    """Lambda's runtime API at `address`, as given in AWS_LAMBDA_RUNTIME_API."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.host, _, port = address.partition(":")
        self.port = int(port or 80)

    def next(self) -> Invocation:
        """Waits for the next invocation, however long that takes. Nothing else is to be done then: it blocks."""
        headers, body = self._call("GET", "invocation/next")
        return Invocation(
            aws_request_id=headers["lambda-runtime-aws-request-id"],
            deadline=int(headers["lambda-runtime-deadline-ms"]) / 1000,
            invoked_function_arn=headers.get("lambda-runtime-invoked-function-arn", ""),
            trace_id=headers.get("lambda-runtime-trace-id"),
            event=json.loads(body),
        )

    def answer(self, request_id: str, result: object) -> None:
        """The whole answer of an invocation that is no HTTP request."""
        self._call("POST", f"invocation/{request_id}/response", json.dumps(result).encode())

    def fail(self, request_id: str, error: BaseException) -> None:
        """Ends an invocation of which nothing was sent yet."""
        self._call("POST", f"invocation/{request_id}/error", error_body(error), error_type(error))

    def fail_init(self, error: BaseException) -> None:
        """Tells that this process will never take an invocation."""
        self._call("POST", "init/error", error_body(error, with_message=True), error_type(error))

    async def open_stream(self, request_id: str) -> "ResponseStream":
        """Starts the chunked answer of one invocation."""
        # asyncio sets TCP_NODELAY itself: a chunk leaves when it is written.
        reader, writer = await asyncio.open_connection(self.host, self.port)
        head = (
            f"POST /2018-06-01/runtime/invocation/{request_id}/response HTTP/1.1\r\n"
            f"Host: {self.address}\r\n"
            f"Content-Type: {INTEGRATION_RESPONSE}\r\n"
            "Lambda-Runtime-Function-Response-Mode: streaming\r\n"
            "Transfer-Encoding: chunked\r\n"
            "Trailer: Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body\r\n"
            "Connection: close\r\n\r\n"
        )
        writer.write(head.encode("ascii"))
        return ResponseStream(reader, writer)

    def _call(
        self, method: str, path: str, body: bytes | None = None, kind: str | None = None
    ) -> tuple[dict[str, str], bytes]:
        connection = HTTPConnection(self.host, self.port, timeout=None)  # /next may answer after hours
        headers = {"Content-Type": "application/json"}
        if kind is not None:
            headers["Lambda-Runtime-Function-Error-Type"] = kind
        try:
            connection.request(method, f"/2018-06-01/runtime/{path}", body, headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            verb = path.rpartition("/")[2]
            raise RuntimeError(f"the runtime API answered {response.status} to {method} {verb}")
        return {name.lower(): value for name, value in response.getheaders()}, content


class ResponseStream:
    """One chunked POST to the runtime API. Where Lambda has cut it, writing raises OSError, as ASGI asks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def write(self, data: bytes) -> None:
        """Sends `data` as a chunk of its own, now."""
        if data:
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self, error: BaseException | None = None) -> None:
        """Sends the last chunk, with an error in its trailers if there was one, and waits for the receipt."""
        self._writer.write(b"0\r\n" + (_trailers(error) if error else b"") + b"\r\n")
        try:
            await self._writer.drain()
            receipt = (await self._reader.readline()).decode("latin-1").rstrip()
            if not receipt.startswith("HTTP/1.1 2"):
                logger.error("the runtime API answered a streamed response with %r", receipt)
        finally:
            self._writer.close()


def error_type(error: BaseException) -> str:
    """The name by which Lambda counts and logs this error."""
    return f"Function.{type(error).__name__}"


def error_body(error: BaseException, *, with_message: bool = False) -> bytes:
    """What Lambda logs of an error. Messages may quote a prompt, so only those of the start are told."""
    return json.dumps(
        {
            "errorType": error_type(error),
            "errorMessage": str(error) if with_message else type(error).__name__,
            "stackTrace": traceback.format_tb(error.__traceback__),
        }
    ).encode("ascii")


def _trailers(error: BaseException) -> bytes:
    body = base64.b64encode(error_body(error)).decode("ascii")
    return (
        f"Lambda-Runtime-Function-Error-Type: {error_type(error)}\r\nLambda-Runtime-Function-Error-Body: {body}\r\n"
    ).encode("ascii")


def log_failure(error: BaseException) -> None:
    """Logs the kind of an error and where it happened; its message may quote a prompt and is left out."""
    logger.error("%s\n%s", error_type(error), "".join(traceback.format_tb(error.__traceback__)))
