"""A client of the gateway under test, and the bodies it sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from serving import Upstream, gateway


def words(count: int) -> str:
    return " ".join(["w"] * count)


def chat(*messages: tuple[str, int | str], model: str = "small", **fields: Any) -> dict[str, Any]:
    spoken = [
        {"role": role, "content": words(content) if isinstance(content, int) else content} for role, content in messages
    ]
    return {"model": model, "messages": spoken, **fields}


LONG = (("system", 2), ("user", 40), ("assistant", 15), ("user", 3))
"""60 words: one too many for `small` with any reserve."""


@dataclass
class World:
    """The gateway with its upstream."""

    url: str
    upstream: Upstream
    client: httpx.Client

    def post(
        self, body: Any, path: str = "/v1/chat/completions", key: str = "sk-acme", **headers: str
    ) -> httpx.Response:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"authorization": f"Bearer {key}", "content-type": "application/json", **headers}
        return self.client.post(self.url + path, content=raw, headers=sent)

    def get(self, path: str, key: str = "sk-acme") -> httpx.Response:
        return self.client.get(self.url + path, headers={"authorization": f"Bearer {key}"})

    def audit(self, chat_id: str, key: str = "sk-acme", query: str = "") -> httpx.Response:
        return self.get(f"/api/v2/chats/{chat_id}/context-audit{query}", key)


def worlds(folder: Path, **options: Any) -> Iterator[World]:
    upstream = Upstream()
    with gateway(folder, upstream, **options) as url, httpx.Client(timeout=20, trust_env=False) as client:
        yield World(url, upstream, client)
