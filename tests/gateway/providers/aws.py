"""Secrets Manager and the Parameter Store as far as keys need them: their JSON 1.1 protocol over real HTTP.

Both services' protocol (AWS JSON 1.1): a POST whose header X-Amz-Target names the operation; errors are JSON with
``__type``.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from serving import serve


@dataclass
class Aws:
    """What it holds, what it was asked, and how it fails: an error by name, with its HTTP status."""

    secrets: dict[str, str | bytes] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    failing: tuple[int, str] | None = None
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    signed_for: list[str] = field(default_factory=list)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        raw = b""
        while True:
            message = await receive()
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.signed_for.append(headers["authorization"].split("Credential=")[1].split(",")[0])
        status, answer = self._answered(headers["x-amz-target"], json.loads(raw))
        head = [(b"content-type", b"application/x-amz-json-1.1")]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    def _answered(self, target: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.asked.append((target, request))
        if self.failing is not None:
            return self.failing[0], {"__type": self.failing[1], "message": "not for user arn:aws:iam::1:role/hidden"}
        if target == "secretsmanager.GetSecretValue":
            value = self.secrets.get(request["SecretId"])
            if value is None:
                return 400, {"__type": "ResourceNotFoundException", "Message": "can't find it"}
            if isinstance(value, bytes):
                return 200, {"Name": "n", "SecretBinary": base64.b64encode(value).decode()}
            return 200, {"Name": "n", "SecretString": value}
        assert target == "AmazonSSM.GetParameter"
        assert request["WithDecryption"] is True
        if request["Name"] not in self.parameters:
            return 400, {"__type": "ParameterNotFound", "message": ""}
        value = self.parameters[request["Name"]]
        return 200, {"Parameter": {"Name": request["Name"], "Type": "SecureString", "Value": value}}


@contextlib.contextmanager
def aws() -> Iterator[tuple[Aws, str]]:
    held = Aws()
    with serve(held) as url:
        yield held, url
