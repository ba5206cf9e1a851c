"""Real servers on loopback: any ASGI app under uvicorn in a thread, and an upstream that records and obeys."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from bastion.app import create_app
from bastion.bootstrap import Ports, bootstrap
from bastion.config import Config


@contextlib.contextmanager
def serve(app: Callable[..., Awaitable[None]], **options: Any) -> Iterator[str]:
    """Serve an app on a free port of loopback; yield its base URL. ``options`` are uvicorn's."""
    # The protocol is named so that asyncio turns Nagle's delay off on what this socket accepts.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)  # from here on a client waits instead of being refused
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, lifespan="auto", **options))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


@dataclass
class Recorded:
    """A request as the upstream got it."""

    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def completion(text: str = "hello", prompt_tokens: int = 10_000, **fields: Any) -> bytes:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 2, "total_tokens": prompt_tokens + 2}
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return json.dumps({**answer, **fields}, indent=1).encode()


Body = bytes | Callable[[], AsyncIterator[bytes]]


@dataclass
class Upstream:
    """An upstream: it records what it gets and answers what it is told, first what is in its script."""

    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=lambda: [("content-type", "application/json")])
    body: Body = field(default_factory=completion)
    calls: list[Recorded] = field(default_factory=list)
    disconnected: threading.Event = field(default_factory=threading.Event)
    pause: float = 0.0
    script: list[tuple[int, list[tuple[str, str]], Body]] = field(default_factory=list)
    """Answers to give once each, before the one it gives for ever."""

    def then(self, body: Body, status: int = 200, **headers: str) -> None:
        """Put one answer into the script."""
        kind = headers.pop("content_type", "application/json")
        shown = [("content-type", kind), *((name.replace("_", "-"), value) for name, value in headers.items())]
        self.script.append((status, shown, body))

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        raw = b""
        while True:
            message = await receive()
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.calls.append(Recorded(scope["path"], scope["query_string"].decode(), headers, raw))
        await asyncio.sleep(self.pause)
        status, shown, body = self.script.pop(0) if self.script else (self.status, self.headers, self.body)
        encoded = [(name.encode(), value.encode()) for name, value in shown]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        if isinstance(body, bytes):
            await send({"type": "http.response.body", "body": body})
            return
        gone = asyncio.ensure_future(self._watch(receive))
        try:
            async for chunk in body():
                if gone.done():
                    return
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()

    async def _watch(self, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.disconnected.set()

    @property
    def last(self) -> Recorded:
        return self.calls[-1]


CONFIG = """
[providers.main]
base_url = "{upstream}/v1"
api_key_env = "MAIN_KEY"
headers = {{ x-extra = "1" }}
query = {{ api-version = "7" }}
models = ["wild-*"]
[providers.dead]
base_url = "http://127.0.0.1:9"

[models.small]
provider = "main"
upstream_name = "upstream-small"
context_window = 60
max_output = 20
tokenizer = "words"
capabilities = ["tools"]
regions = ["eu"]
input_price = 1.0
output_price = 2.0
[models.large]
provider = "main"
context_window = 200
tokenizer = "words"
capabilities = ["tools"]
regions = ["eu"]
input_price = 2.0
output_price = 4.0
[models.plain]
provider = "main"
context_window = 1000
tokenizer = "words"
regions = ["us"]
[models."org/modèle"]
provider = "main"
context_window = 400
tokenizer = "words"
regions = ["eu"]
[models.unreachable]
provider = "dead"
context_window = 1000
tokenizer = "words"
regions = ["eu"]
[models."gpt-4o"]
provider = "main"
context_window = 128000
max_output = 16384
regions = ["eu"]

[plans.hobby]
context_swapping = false
smart_truncation = true
strategies = ["truncate", "manual"]
audit_days = 7

[plans.pro]
context_swapping = false
smart_truncation = true
regions = ["us"]
max_cost_usd = 0.5

[accounts.pro]
plan = "pro"
api_keys = ["sk-pro"]
[accounts.pro.security]
regions = ["eu"]
max_cost_usd = 1.0

[accounts.acme]
plan = "hobby"
api_keys = ["sk-acme"]
admin_keys = ["sk-acme-admin"]
preview_keys = ["sk-acme-preview"]
[accounts.other]
plan = "hobby"
api_keys = ["sk-other"]
models = ["small"]
[accounts.strict]
plan = "hobby"
api_keys = ["sk-strict"]
[accounts.strict.security]
context_swapping = true
regions = ["eu"]
max_cost_usd = 0.0001
audit = "required"
"""


def config(folder: Path, upstream: str, **environ: str) -> Config:
    """Return the configuration above, for an upstream's address."""
    path = folder / "bastion.toml"
    path.write_text(CONFIG.format(upstream=upstream), "utf-8")
    return Config.from_environ(
        {"BASTION_CONFIG": str(path), "BASTION_DATA": str(folder / "data"), "MAIN_KEY": "sk-upstream", **environ}
    )


@contextlib.contextmanager
def gateway(folder: Path, upstream: Upstream, ports: Ports | None = None, **environ: str) -> Iterator[str]:
    """Serve Bastion in front of an upstream, both on loopback; yield Bastion's base URL."""
    with serve(upstream) as address, serve(create_app(bootstrap(config(folder, address, **environ), ports))) as url:
        yield url
