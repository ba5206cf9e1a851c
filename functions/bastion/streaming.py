"""The Lambda runtime of StreamFunction: it sends an answer while the app still writes it.

The managed Python runtime buffers, so `streaming-bootstrap` starts this module in its place. It speaks the Lambda
runtime API ("Using the Lambda runtime API for custom runtimes" and "Custom runtimes: response streaming" in the
Lambda guide): poll `/invocation/next`; POST the answer chunked, as `application/vnd.awslambda.http-integration-response`:
a JSON prelude with status and headers, eight NUL bytes, then the body as it is. A failure after the start goes into
trailers, one before it to `/error`, one at import to `/init/error`.

Between two invocations the event loop stands still, as Lambda freezes the process then anyway. Nobody tells a function
that its client has left; `scope["bastion.deadline"]` is what bounds a request here.
"""

import asyncio
import base64
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any, NoReturn

from mangum.handlers import APIGateway, HTTPGateway
from mangum.types import LambdaConfig

from bastion.lambda_events import PONG, App, Event, Message, Scope, ascii_headers, is_ping, normalised

logger = logging.getLogger("bastion.streaming")

PRELUDE_END = b"\x00" * 8
INTEGRATION_RESPONSE = "application/vnd.awslambda.http-integration-response"
# The front door frames the body itself; these from the app would contradict it.
HOP_BY_HOP = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
# How long work that the app left behind (a last write, a sweep) may go on before the process is frozen.
LINGER_SECONDS = 5.0
_NO_CONFIG = LambdaConfig(api_gateway_base_path="/", text_mime_types=[], exclude_headers=[])


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
        """Waits for the next invocation, however long that takes. Blocks: there is nothing else to do until then."""
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
        reader, writer = await asyncio.open_connection(self.host, self.port)  # asyncio sets TCP_NODELAY itself
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
            raise RuntimeError(f"the runtime API answered {response.status} to {method} {path.rpartition('/')[2]}")
        return {name.lower(): value for name, value in response.getheaders()}, content


class ResponseStream:
    """One chunked POST to the runtime API. Writing to one that Lambda has cut raises OSError, as ASGI asks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def write(self, data: bytes) -> None:
        """Sends `data` as a chunk of its own, now."""
        if data:
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self, error: BaseException | None = None) -> None:
        """Sends the last chunk, with the error in its trailers if there was one, and waits for the receipt."""
        self._writer.write(b"0\r\n" + (_trailers(error) if error else b"") + b"\r\n")
        try:
            await self._writer.drain()
            status = (await self._reader.readline()).split(b" ")
            if len(status) > 1 and not status[1].startswith(b"2"):
                logger.error("the runtime API answered %s to a streamed response", status[1].decode("ascii", "replace"))
        finally:
            self._writer.close()


class Exchange:
    """One HTTP request put to the app: the ASGI `receive` and `send`, and how far the answer has got."""

    def __init__(self, api: RuntimeApi, request_id: str, body: bytes) -> None:
        self._api = api
        self._request_id = request_id
        self._body: bytes | None = body
        self._stream: ResponseStream | None = None
        self._over = asyncio.Event()

    async def receive(self) -> Message:
        """The body, once; then nothing until the answer is over."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Passes on a part of the answer at once. The prelude does not wait for a body: there may be none."""
        if self._over.is_set():
            return
        try:
            if message["type"] == "http.response.start":
                self._stream = await self._api.open_stream(self._request_id)
                await self._stream.write(prelude(message) + PRELUDE_END)
            elif message["type"] == "http.response.body" and self._stream is not None:
                await self._stream.write(message.get("body", b""))
                if not message.get("more_body", False):
                    self._over.set()
                    await self._stream.end()
        except OSError:
            self._over.set()
            raise

    async def finish(self, error: BaseException | None) -> None:
        """Ends what the app left open; an answer that has no end of its own is an error of its invocation."""
        if self._over.is_set():
            return
        self._over.set()
        error = error or RuntimeError("the app ended without a complete response")
        if self._stream is None:
            self._api.fail(self._request_id, error)
        else:
            await self._stream.end(error)


def prelude(start: Message) -> bytes:
    """The JSON before the body: status, headers, and cookies apart, since they cannot be joined into one line."""
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for raw_name, raw_value in start.get("headers", ()):
        name, value = bytes(raw_name).decode("latin-1").lower(), bytes(raw_value).decode("latin-1")
        if name == "set-cookie":
            cookies.append(value)
        elif name not in HOP_BY_HOP:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return json.dumps({"statusCode": start["status"], "headers": headers, "cookies": cookies}).encode("ascii")


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
        f"Lambda-Runtime-Function-Error-Type: {error_type(error)}\r\n"
        f"Lambda-Runtime-Function-Error-Body: {body}\r\n"
    ).encode("ascii")


def asgi_request(invocation: Invocation) -> tuple[Scope, bytes]:
    """The ASGI scope and the body of an invocation by REST API, HTTP API or function URL."""
    event: Event = normalised(invocation.event)
    gateway = HTTPGateway if event.get("version") == "2.0" else APIGateway
    request = gateway(event, invocation, _NO_CONFIG)
    scope = {
        **request.scope,
        # From 2.4 on `send` raises OSError once the client is gone; frameworks then need no watching task.
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "bastion.deadline": invocation.deadline,
    }
    return scope, request.body


async def respond(app: App, api: RuntimeApi, invocation: Invocation) -> None:
    """Runs the app on one HTTP request; every way out of it ends the invocation."""
    scope, body = asgi_request(invocation)
    exchange = Exchange(api, invocation.aws_request_id, body)
    error: BaseException | None = None
    try:
        await app(scope, exchange.receive, exchange.send)
    except Exception as failure:  # noqa: BLE001 - the last frame: whatever it is, Lambda must hear of it
        error = failure
        _log_failure(failure)
    await exchange.finish(error)
    await _let_background_work_end(invocation)


async def _let_background_work_end(invocation: Invocation) -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    if rest:
        seconds = min(LINGER_SECONDS, invocation.get_remaining_time_in_millis() / 1000 - 0.5)
        await asyncio.wait(rest, timeout=max(0.0, seconds))


def serve(app: App, api: RuntimeApi) -> NoReturn:
    """Takes invocations one after the other until Lambda ends the process."""
    app = ascii_headers(app)
    with asyncio.Runner() as runner:
        while True:
            invocation = api.next()
            _publish_trace(invocation.trace_id)
            try:
                if is_ping(invocation.event):
                    api.answer(invocation.aws_request_id, PONG)
                else:
                    runner.run(respond(app, api, invocation))
            except ValueError as refused:  # an event that is no request, or one that cannot be read
                _log_failure(refused)
                api.fail(invocation.aws_request_id, refused)


def _publish_trace(trace_id: str | None) -> None:
    if trace_id:
        os.environ["_X_AMZN_TRACE_ID"] = trace_id
    else:
        os.environ.pop("_X_AMZN_TRACE_ID", None)


def _log_failure(error: BaseException) -> None:
    """The kind of an error and where it happened; its message may quote a prompt and is left out."""
    logger.error("%s\n%s", error_type(error), "".join(traceback.format_tb(error.__traceback__)))


def load_app() -> App:
    """The app as configured by the environment; imported late, so that a failing import is reported, too."""
    from bastion.bootstrap import lambda_app

    return lambda_app()


def main(load: Callable[[], App] = load_app) -> NoReturn:
    """The process: make the app once, then serve; a start that fails is told to Lambda."""
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        app = load()
    except Exception as error:  # noqa: BLE001 - whatever it is, Lambda must hear of it
        _log_failure(error)
        api.fail_init(error)
        sys.exit(1)
    serve(app, api)


if __name__ == "__main__":
    main()
