"""What a call costs through Bastion, LiteLLM's proxy and Portkey's gateway, side by side in front of one mock upstream.

Each is a process of its own on loopback, and so is the upstream; this process is the client. Bastion counts every
prompt exactly, with a chat as well as without one; LiteLLM looks a price up, Portkey counts nothing. Added is a
median less the direct calls' of the same run. On a machine of two cores client, gateway and upstream share them.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.mock_upstream import CHUNKS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CALLS, TOGETHER, FLIGHTS = 400, 16, 1_600
SAID = "The committee met on Tuesday and agreed to publish what it had found, in full, by June. " * 3

BASTION = """
[providers.mock]
base_url = "http://127.0.0.1:{upstream}/v1"
[models."gpt-4o"]
provider = "mock"
context_window = 128000
max_output = 16384
[plans.pro]
smart_truncation = true
[accounts.acme]
plan = "pro"
api_keys = ["sk-bench"]
"""
LITELLM = """
model_list:
  - model_name: gpt-4o
    litellm_params: {{model: openai/gpt-4o, api_base: "http://127.0.0.1:{upstream}/v1", api_key: sk-mock}}
"""


@dataclass
class Target:
    """Something to call."""

    name: str
    port: int
    headers: Mapping[str, str] = field(default_factory=dict)
    pid: int | None = None
    routing: Mapping[str, Any] = field(default_factory=dict)


def main() -> None:
    """Print one line a target and length: added p50, p95, requests a second, microseconds a chunk, memory."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        upstream = free_port()
        running.enter_context(process([sys.executable, str(HERE / "mock_upstream.py"), str(upstream)], upstream))
        direct = Target("direct", upstream)
        targets = [direct, *gateways(Path(folder), upstream, running)]
        titles = f"{'':<18}{'messages':>9}{'p50 ms':>9}{'added':>8}{'p95':>8}"
        print(titles + f"{'req/s at 16':>13}{'us a chunk':>12}{'MB':>6}")
        for messages in (10, 100):
            base: float | None = None
            for target in targets:
                base = line(target, messages, base)


def line(target: Target, messages: int, base: float | None) -> float:
    """Measure and print one line; return the direct median."""
    raw = body(messages, target.routing)
    times = timed(target, raw)
    p50, p95 = statistics.median(times), sorted(times)[int(len(times) * 0.95)]
    base = p50 if base is None else base
    rate = asyncio.run(throughput(target, raw))
    times_streamed = [took for _ in range(3) if (took := streamed(target)) is not None]
    chunk = f"{min(times_streamed) * 1e6 / CHUNKS:>12.0f}" if times_streamed else f"{'fails':>12}"
    memory = f"{resident(target.pid):>6.0f}" if target.pid else f"{'':>6}"
    print(f"{target.name:<18}{messages:>9}{p50:>9.2f}{p50 - base:>8.2f}{p95:>8.2f}{rate:>13.0f}{chunk}{memory}")
    return base


def gateways(folder: Path, upstream: int, running: contextlib.ExitStack) -> Iterator[Target]:
    """Start each gateway that is installed."""
    port = free_port()
    (folder / "bastion.toml").write_text(BASTION.format(upstream=upstream))
    paths = f"{ROOT / 'layers/core'}:{ROOT / 'functions'}"
    environ = {"BASTION_CONFIG": str(folder / "bastion.toml"), "BASTION_DATA": str(folder), "PORT": str(port)}
    command = [sys.executable, "-m", "bastion.local"]
    pid = running.enter_context(process(command, port, {**environ, "PYTHONPATH": paths}))
    key = {"authorization": "Bearer sk-bench"}
    yield Target("bastion", port, key, pid)
    yield Target("bastion, a chat", port, key, pid, {"chat_id": "bench"})
    litellm = ROOT / ".venv-bench/bin/litellm"
    if litellm.exists():
        port = free_port()
        (folder / "litellm.yaml").write_text(LITELLM.format(upstream=upstream))
        command = [str(litellm), "--config", str(folder / "litellm.yaml"), "--port", str(port), "--host", "127.0.0.1"]
        master = "sk-" + "b" * 48
        environ = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": master}
        pid = running.enter_context(process(command, port, environ))
        yield Target("litellm proxy", port, {"authorization": f"Bearer {master}"}, pid)
    portkey = HERE / "node/node_modules/@portkey-ai/gateway/build/start-server.js"
    if portkey.exists() and (node := shutil.which("node")):
        port = free_port()
        pid = running.enter_context(process([node, str(portkey), "--headless", f"--port={port}"], port))
        host = f"http://127.0.0.1:{upstream}/v1"
        headers = {"authorization": "Bearer sk-any", "x-portkey-provider": "openai", "x-portkey-custom-host": host}
        yield Target("portkey", port, headers, pid)


def body(messages: int, routing: Mapping[str, Any]) -> bytes:
    """Return a conversation of so many messages."""
    talk = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} {SAID}"} for n in range(messages - 1)]
    request: dict[str, Any] = {"model": "gpt-4o", "messages": [*talk, {"role": "user", "content": "And now?"}]}
    return json.dumps({**request, "routing": dict(routing)} if routing else request).encode()


def timed(target: Target, raw: bytes) -> list[float]:
    """Return each call's milliseconds, one at a time over one connection."""
    times = []
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=60)
    headers = {"content-type": "application/json", **target.headers}
    for number in range(CALLS + 40):
        begun = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", raw, headers)
        answer = connection.getresponse()
        said = answer.read()
        took = time.perf_counter() - begun
        if answer.status != 200:
            raise RuntimeError(f"{target.name} answered {answer.status}: {said[:200]!r}")
        if number >= 40:
            times.append(took * 1000)
    connection.close()
    return times


def streamed(target: Target) -> float | None:
    """Return the seconds from a stream's first byte to its last, None where a peer does not stream (Portkey 1.15.2
    under Node 20.20: its gateway answers 500)."""
    raw = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}], "stream": True}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=60)
    connection.request("POST", "/v1/chat/completions", raw, {"content-type": "application/json", **target.headers})
    answer = connection.getresponse()
    begun = time.perf_counter()
    size = len(answer.read())
    took = time.perf_counter() - begun
    connection.close()
    if size >= CHUNKS * 50:
        return took
    if target.name.startswith("bastion"):
        raise RuntimeError(f"{target.name} streamed {size} bytes")
    return None


async def throughput(target: Target, raw: bytes) -> float:
    """Return requests a second with `TOGETHER` connections, each sending its next when the last is answered."""
    head = {"host": "bench", "content-type": "application/json", "content-length": str(len(raw)), **target.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    request = f"POST /v1/chat/completions HTTP/1.1\r\n{lines}\r\n".encode() + raw
    left = [FLIGHTS if target.name != "litellm proxy" else FLIGHTS // 4]
    total = left[0]

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=1 << 20)
        while left[0] > 0:
            left[0] -= 1
            writer.write(request)
            await read_answer(reader)
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(TOGETHER)))
    return total / (time.perf_counter() - begun)


async def read_answer(reader: asyncio.StreamReader) -> None:
    """Read one answer, by its length or by its chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise RuntimeError(head[:100].decode())
    if b"\r\ncontent-length:" in head:
        await reader.readexactly(int(head.split(b"\r\ncontent-length:")[1].split(b"\r\n")[0]))
        return
    while size := int(await reader.readline(), 16):
        await reader.readexactly(size + 2)
    await reader.readline()


@contextlib.contextmanager
def process(command: Sequence[str], port: int, environ: Mapping[str, str] | None = None) -> Iterator[int]:
    """Run a server until its port answers; yield its process id."""
    full = {**os.environ, **(environ or {})}
    running = subprocess.Popen(command, env=full, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, running)
        yield running.pid
    finally:
        running.terminate()
        running.wait(10)


def wait_for(port: int, running: subprocess.Popen[bytes]) -> None:
    """Wait until a port takes connections."""
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if running.poll() is not None:
            raise RuntimeError(f"{running.args!r} ended")
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on {port}")


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def resident(pid: int) -> float:
    """Return the resident memory of a process and its children, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    own = int(status.split("VmRSS:")[1].split()[0]) / 1024
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(resident(int(child)) for child in children)
