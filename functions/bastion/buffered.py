"""The Lambda handler of ApiFunction: the app behind Mangum, one buffered answer an invocation.

Mangum runs every invocation on one event loop and the app is made once, at import, so connections outlive a
request. Its limits are API Gateway's and Lambda's: 29 seconds, 6 MB an answer. `bastion.streaming` has neither.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from mangum import Mangum
from mangum.adapter import DEFAULT_TEXT_MIME_TYPES
from mangum.types import ASGI, LambdaContext

from bastion.bootstrap import lambda_app
from bastion.lambda_events import (
    PONG,
    App,
    Event,
    Receive,
    Scope,
    Send,
    ascii_headers,
    is_ping,
    normalised,
)

Handler = Callable[[object, LambdaContext], dict[str, Any]]

# Sent as text; every other type goes out as base64, which only a gateway set up for it decodes.
TEXT_TYPES = [*DEFAULT_TEXT_MIME_TYPES, "application/x-ndjson", "application/problem+json"]

# Lambda's own limit, less room for the envelope; beyond it the client would get an unexplained 502.
LARGEST_BODY = 6_291_556 - 65_536


def make_handler(app: App) -> Handler:
    """A Lambda handler for API Gateway's requests (REST, HTTP API, function URL) and the scheduled ping."""
    mangum = Mangum(with_deadline(ascii_headers(app)), lifespan="off", text_mime_types=TEXT_TYPES)

    def handle(event: object, context: LambdaContext) -> dict[str, Any]:
        if is_ping(event):
            return dict(PONG)
        return _within_limit(mangum(normalised(event), context))

    return handle


def with_deadline(app: App) -> ASGI:
    """An app that finds in `scope["bastion.deadline"]` the epoch second at which its invocation ends."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        context: LambdaContext = scope["aws.context"]
        scope["bastion.buffered"] = True  # so that a stream which breaks off becomes a clean error (`bastion.respond`)
        scope["bastion.deadline"] = time.time() + context.get_remaining_time_in_millis() / 1000
        await app(scope, receive, send)

    return wrapped


def _within_limit(response: Event) -> Event:
    body: str = response.get("body") or ""
    if len(body) < LARGEST_BODY // 12 or len(json.dumps(body)) <= LARGEST_BODY:  # JSON: at most 12 for 1
        return response
    error = {
        "message": "The answer is larger than this function may return; use the streaming function.",
        "type": "server_error",
        "param": None,
        "code": "response_too_large",
    }
    told = {k: v for k, v in (response.get("headers") or {}).items() if k.startswith(("access-control-", "x-"))}
    headers = {**told, "content-type": "application/json", "x-should-retry": "false"}
    return {
        "statusCode": 502,
        "headers": headers,
        "body": json.dumps({"error": error}),
        "isBase64Encoded": False,
    }


handler = make_handler(lambda_app())
