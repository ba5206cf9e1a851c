"""The Lambda handler of ApiFunction: the app behind Mangum, one buffered answer an invocation.

Mangum runs every invocation on one event loop and the app is made once, at import, so connections outlive a request.
Its limits are API Gateway's and Lambda's: 29 seconds, and 6 MB an answer; `bastion.streaming` has neither.
"""

import json
import time
from typing import Any

from mangum import Mangum
from mangum.adapter import DEFAULT_TEXT_MIME_TYPES

from bastion.bootstrap import lambda_app
from bastion.lambda_events import (
    PONG,
    App,
    Context,
    Event,
    Receive,
    Scope,
    Send,
    ascii_headers,
    is_ping,
    normalised,
)

# Sent as text; every other type goes out as base64, which only a gateway set up for it decodes.
TEXT_TYPES = [*DEFAULT_TEXT_MIME_TYPES, "application/x-ndjson", "application/problem+json", "text/event-stream"]

# Lambda's own limit, less room for the envelope; beyond it the client would get an unexplained 502.
LARGEST_BODY = 6_291_556 - 65_536


def handler(event: object, context: Context) -> dict[str, Any]:
    """Answers an API Gateway request (REST, HTTP API or function URL) or the scheduled ping."""
    if is_ping(event):
        return dict(PONG)
    return _within_limit(_mangum(normalised(event), context))


def with_deadline(app: App) -> App:
    """An app that finds in `scope["bastion.deadline"]` the epoch second at which its invocation ends."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        context: Context = scope["aws.context"]
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
    headers = {"content-type": "application/json", "x-should-retry": "false"}
    return {"statusCode": 502, "headers": headers, "body": json.dumps({"error": error}), "isBase64Encoded": False}


_mangum = Mangum(with_deadline(ascii_headers(lambda_app())), lifespan="off", text_mime_types=TEXT_TYPES)
