"""What the endpoint adds to a call, on loopback, side by side with calling the same upstream directly."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from bastion.app import create_app
from bastion.bootstrap import bootstrap
from serving import Upstream, config, serve

CALLS = 300


def main() -> None:
    """Print p50 and p95 of both, what is added, and requests a second at 16 in flight."""
    upstream = Upstream()
    with tempfile.TemporaryDirectory() as folder, serve(upstream) as direct:
        app = create_app(bootstrap(config(Path(folder), direct)))
        with serve(app) as url:
            titles = f"{'messages':>9}{'chat':>6}{'direct p50':>12}{'bastion p50':>13}"
            print(titles + f"{'added ms':>10}{'p95':>8}{'req/s at 16':>13}")
            for messages in (10, 100):
                for chat in (None, "bench"):
                    row(direct, url, messages, chat)


def row(direct: str, url: str, messages: int, chat: str | None) -> None:
    """Measure one line."""
    said = "The committee met on Tuesday and agreed to publish what it had found, in full, by June. " * 3
    talk = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} {said}"} for n in range(messages - 1)]
    body = {"model": "gpt-4o", "messages": [*talk, {"role": "user", "content": "And now?"}]}
    if chat:
        body["routing"] = {"chat_id": chat}
    raw = json.dumps(body).encode()
    straight, through = timed(direct, raw), timed(url, raw)
    p50, p95 = statistics.median(through), sorted(through)[int(len(through) * 0.95)]
    base = statistics.median(straight)
    line = f"{messages:>9}{'yes' if chat else 'no':>6}{base:>12.2f}{p50:>13.2f}{p50 - base:>10.2f}{p95:>8.2f}"
    print(line + f"{throughput(url, raw):>13.0f}")


def timed(url: str, raw: bytes) -> list[float]:
    """Return the duration of each call in milliseconds, one at a time over one connection."""
    headers = {"authorization": "Bearer sk-acme", "content-type": "application/json"}
    times = []
    with httpx.Client(trust_env=False, headers=headers) as client:
        for number in range(CALLS + 20):
            begun = time.perf_counter()
            client.post(url + "/v1/chat/completions", content=raw).raise_for_status()
            if number >= 20:
                times.append((time.perf_counter() - begun) * 1000)
    return times


def throughput(url: str, raw: bytes) -> float:
    """Return requests a second with 16 in flight (client and both servers share this process's interpreter)."""
    headers = {"authorization": "Bearer sk-acme", "content-type": "application/json"}
    with httpx.Client(trust_env=False, headers=headers, limits=httpx.Limits(max_connections=16)) as client:
        with ThreadPoolExecutor(16) as pool:
            begun = time.perf_counter()
            done = list(
                pool.map(lambda _: client.post(url + "/v1/chat/completions", content=raw).status_code, range(400))
            )
            assert set(done) == {200}
            return len(done) / (time.perf_counter() - begun)
