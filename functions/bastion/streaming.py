"""The Lambda runtime of StreamFunction: it sends an answer while the app still writes it.

The managed Python runtime buffers, so `streaming-bootstrap` starts this module in its place. What API Gateway
and function URLs expect of a streamed answer: a JSON prelude with status and headers, eight NUL bytes, then
the body as it is ("Set up a Lambda proxy integration with payload response streaming", API Gateway guide).

Between two invocations the event loop stands still, as Lambda freezes the process then anyway. Nobody tells a
function that its client has left; `scope["bastion.deadline"]` is what bounds a request here.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from mangum.handlers import APIGateway, HTTPGateway
from mangum.types import LambdaConfig

from bastion.lambda_events import PONG, App, Message, Scope, ascii_headers, is_ping, normalised
from bastion.runtime_api import Invocation, ResponseStream, RuntimeApi, log_failure

PRELUDE_END = b"\x00" * 8
# The front door frames the body itself; these from the app would contradict it.
HOP_BY_HOP = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
# How long work that the app left behind (a last write, a sweep) may go on before the process is frozen.
LINGER_SECONDS = 5.0
_NO_CONFIG = LambdaConfig(api_gateway_base_path="/", text_mime_types=[], exclude_headers=[])


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
            return
        try:
            await self._stream.end(error)
        except OSError as cut:  # Lambda has ended the answer already
            log_failure(cut)


def prelude(start: Message) -> bytes:
    """The JSON before the body: status, headers, and cookies apart, since they cannot be joined."""
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for raw_name, raw_value in start.get("headers", ()):
        name, value = bytes(raw_name).decode("latin-1").lower(), bytes(raw_value).decode("latin-1")
        if name == "set-cookie":
            cookies.append(value)
        elif name not in HOP_BY_HOP:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return json.dumps({"statusCode": start["status"], "headers": headers, "cookies": cookies}).encode("ascii")


def asgi_request(invocation: Invocation) -> tuple[Scope, bytes]:
    """The ASGI scope and the body of an invocation by REST API, HTTP API or function URL."""
    event = normalised(invocation.event)
    gateway = HTTPGateway if event.get("version") == "2.0" else APIGateway
    context: Any = invocation
    request = gateway(event, context, _NO_CONFIG)
    scope = {
        **request.scope,
        # From 2.4 on `send` raises OSError once the client is gone; frameworks then need no watching task.
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "bastion.deadline": invocation.deadline,
    }
    return scope, request.body


async def respond(app: App, exchange: Exchange, scope: Scope) -> None:
    """Runs the app on one HTTP request; every way out of it ends the invocation."""
    error: BaseException | None = None
    try:
        await app(scope, exchange.receive, exchange.send)
    except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001 - Lambda must hear of any
        error = failure
        log_failure(failure)
    await exchange.finish(error)


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
            _handle(app, api, runner, api.next())


def _handle(app: App, api: RuntimeApi, runner: asyncio.Runner, invocation: Invocation) -> None:
    _publish_trace(invocation.trace_id)
    if is_ping(invocation.event):
        api.answer(invocation.aws_request_id, PONG)
        return
    try:
        scope, body = asgi_request(invocation)
    except Exception as refused:  # noqa: BLE001 - whatever is wrong with one event ends one invocation
        log_failure(refused)
        api.fail(invocation.aws_request_id, refused)
        return
    runner.run(respond(app, Exchange(api, invocation.aws_request_id, body), scope))
    runner.run(_let_background_work_end(invocation))


def _publish_trace(trace_id: str | None) -> None:
    if trace_id:
        os.environ["_X_AMZN_TRACE_ID"] = trace_id
    else:
        os.environ.pop("_X_AMZN_TRACE_ID", None)


def load_app() -> App:
    """The app as configured by the environment; imported late, so that a failing import is reported, too."""
    from bastion.bootstrap import lambda_app

    return lambda_app()


def main(load: Callable[[], App] = load_app) -> NoReturn:
    """The process: make the app once, then serve; a start that fails is told to Lambda."""
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        app = load()
    except Exception as error:  # noqa: BLE001 - Lambda must hear of any
        log_failure(error)
        api.fail_init(error)
        sys.exit(1)
    serve(app, api)


if __name__ == "__main__":
    main()
