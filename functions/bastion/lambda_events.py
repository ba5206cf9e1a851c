"""What arrives at a Lambda function: API Gateway's requests, the scheduled ping, and what is neither.

Both functions read events through this module, so they agree on paths, headers and addresses. Mangum's
handlers make an ASGI scope of a request; what they stumble over is put right here first. Source of the event
formats, in the API Gateway guide: "Lambda proxy integrations" (REST) and "Payload format version 2.0" (HTTP
API, function URL).
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Event = dict[str, Any]
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PONG = {"status": "ok"}


class UnknownEvent(ValueError):
    """The function was invoked with something that is neither a request nor a ping."""

    def __init__(self, event: object) -> None:
        shape = f"with keys {sorted(map(str, event))}" if isinstance(event, dict) else type(event).__name__
        super().__init__(f"expected an API Gateway request or a scheduled ping, got an event {shape}")


def is_ping(event: object) -> bool:
    """Whether this is the schedule that keeps an instance warm (an EventBridge event)."""
    return isinstance(event, dict) and event.get("source") == "aws.events"


def normalised(event: object) -> Event:
    """The same request without what Mangum refuses: null members, a stage in the path, an odd Host header.

    Raises `UnknownEvent` for anything that is not a request.
    """
    if not isinstance(event, dict) or not isinstance(event.get("requestContext"), dict):
        raise UnknownEvent(event)
    if event.get("version") == "2.0":
        return _normalised_v2(event)
    if not isinstance(event.get("httpMethod"), str):
        raise UnknownEvent(event)
    return _normalised_v1(event)


def _normalised_v1(event: Event) -> Event:
    context = event["requestContext"]
    path = event.get("path") or "/"
    stage = context.get("stage")
    # A REST API's own address has the stage in `requestContext.path` and not in `path`, which then is exact.
    if context.get("path") != f"/{stage}{path}":
        path = without_stage(path, stage)
    identity = context.get("identity") or {}
    return {
        **event,
        "resource": event.get("resource") or path,
        "path": path,
        "headers": _plain_headers(event.get("headers"), context),
        "multiValueHeaders": _plain_multi_headers(event.get("multiValueHeaders"), context),
        "requestContext": {**context, "identity": {**identity, "sourceIp": identity.get("sourceIp") or ""}},
    }


def _normalised_v2(event: Event) -> Event:
    context = event["requestContext"]
    http = context.get("http")
    if not isinstance(http, dict) or not isinstance(http.get("method"), str):
        raise UnknownEvent(event)
    path = without_stage(http.get("path") or event.get("rawPath") or "/", context.get("stage"))
    return {
        **event,
        "rawPath": path,
        "rawQueryString": event.get("rawQueryString") or "",
        "headers": _plain_headers(event.get("headers"), context),
        "requestContext": {**context, "http": {**http, "path": path, "sourceIp": http.get("sourceIp") or ""}},
    }


def without_stage(path: str, stage: str | None) -> str:
    """`/prod/v1/models` at stage `prod` is `/v1/models`; `/product/7` stays what it is."""
    if not stage or stage == "$default":
        return path
    if path == f"/{stage}":
        return "/"
    return path.removeprefix(f"/{stage}") if path.startswith(f"/{stage}/") else path


def _plain_headers(headers: Mapping[str, Any] | None, context: Mapping[str, Any]) -> dict[str, str]:
    plain = {name: str(value) for name, value in (headers or {}).items() if value is not None}
    usable = ((name, _usable(name, value, context)) for name, value in plain.items())
    return {name: value for name, value in usable if value is not None}


def _plain_multi_headers(
    headers: Mapping[str, list[Any] | None] | None, context: Mapping[str, Any]
) -> dict[str, list[str]]:
    plain: dict[str, list[str]] = {}
    for name, values in (headers or {}).items():
        usable = (_usable(name, str(value), context) for value in values or [])
        kept = [value for value in usable if value is not None]
        if kept:
            plain[name] = kept
    return plain


_PORT_DIGITS = 5


def _usable(name: str, value: str, context: Mapping[str, Any]) -> str | None:
    """The value; for a Host that Mangum cannot take apart (IPv6, an odd port) the API's own name."""
    match name.lower():
        case "host":
            host, colon, port = value.partition(":")
            return value if host and (not colon or _is_port(port)) else context.get("domainName")
        case "x-forwarded-port":
            return value if _is_port(value) else None
    return value


def _is_port(text: str) -> bool:
    return len(text) <= _PORT_DIGITS and text.isascii() and text.isdecimal()


def ascii_headers(app: App) -> App:
    """An app whose response headers are ASCII; Mangum and the prelude of a stream fail on anything else."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def ascii_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                pairs = [(bytes(name), _ascii(bytes(value))) for name, value in message.get("headers", ())]
                message = {**message, "headers": pairs}
            await send(message)

        await app(scope, receive, ascii_send)

    return wrapped


def _ascii(value: bytes) -> bytes:
    return value if value.isascii() else value.decode("latin-1").encode("ascii", "replace")
