"""A resolver and a network that do as they are told, and say what was asked of them."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
PUBLIC = "93.184.215.14"
OTHER_PUBLIC = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


class ScriptedResolver:
    """Gives each answer once, in order, and the last one for ever; an exception is raised."""

    def __init__(self, *answers: Sequence[str] | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class ScriptedNetwork(httpcore.AsyncNetworkBackend):
    """Takes connections to any address but those that are dead, and answers each request on them with ``answer``."""

    def __init__(self, answer: bytes = OK, dead: Iterable[str] = ()) -> None:
        self.answer = answer
        self.dead = frozenset(dead)
        self.connected: list[tuple[str, int]] = []
        self.names: list[str | None] = []
        self.written: list[bytes] = []

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        self.connected.append((host, port))
        if host in self.dead:
            raise httpcore.ConnectError("refused")
        return _Stream(self)


class _Stream(httpcore.AsyncNetworkStream):
    def __init__(self, network: ScriptedNetwork) -> None:
        self._network = network
        self._waiting = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        given, self._waiting = self._waiting[:max_bytes], self._waiting[max_bytes:]
        return given

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._network.written.append(buffer)
        if buffer.startswith(b"POST "):
            self._waiting = self._network.answer

    async def aclose(self) -> None:
        """Nothing to let go of."""

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        self._network.names.append(server_hostname)
        return self

    def get_extra_info(self, info: str) -> Any:
        return False if info == "is_readable" else None


class Loopback(httpcore.AsyncNetworkBackend):
    """Connects to a port of this machine, whatever public address it is given, and says which that was."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._real = httpcore.AnyIOBackend()
        self.connected: list[str] = []

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *_: Any, **__: Any
    ) -> httpcore.AsyncNetworkStream:
        self.connected.append(host)
        return await self._real.connect_tcp("127.0.0.1", self._port, timeout)
