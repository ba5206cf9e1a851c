"""What every request passes through: a request id, and an end to whatever nobody caught.

Pure ASGI. Logs are JSON lines on standard output, as CloudWatch reads them, and hold no prompt text, key or
secret: of an unexpected error its type and the code's own places, never its message.
"""

from __future__ import annotations

import json
import logging
import secrets
import traceback
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bastion.respond import CLIENT_GONE, Reply, TornAnswer, problem_reply
from contextshift.errors import ContextShiftError

__all__ = ["JsonEventLog", "Telemetry"]

_REQUEST_ID = b"x-request-id"


class JsonEventLog:
    """Writes each event as one JSON line through `logging`."""

    def __init__(self, name: str = "bastion") -> None:
        self._logger = logging.getLogger(name)

    def emit(self, event: Mapping[str, Any]) -> None:
        """Write one event."""
        self._logger.info(json.dumps(event, default=str, separators=(",", ":")))


class Telemetry:
    """Gives each response a request id and turns an unexpected error into a plain 500 and a log line."""

    def __init__(self, app: ASGIApp, log: JsonEventLog) -> None:
        self.app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = "req_" + secrets.token_hex(12)
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = message.setdefault("headers", [])
                if not any(name == _REQUEST_ID for name, _ in headers):
                    headers.append((_REQUEST_ID, request_id.encode()))
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except TornAnswer:
            raise  # its call's own event has told why
        except ClientDisconnect:
            if not started:  # nobody is there to receive it, but a host may wait for an answer
                await Reply(b"", CLIENT_GONE)(scope, receive, send_with_id)
        except Exception as error:  # the one place that must not let anything through
            self._log.emit(_fault(error, request_id))
            if started:
                raise
            await problem_reply(ContextShiftError("internal error"), scope["path"])(scope, receive, send_with_id)


def _fault(error: Exception, request_id: str) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return {"event": "fault", "request_id": request_id, "error": type(error).__name__, "at": places}
