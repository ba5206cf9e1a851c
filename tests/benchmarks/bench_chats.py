"""What a chat's next prompt costs: previews over HTTP with SQLite, of chats that fit and of chats cut to half."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from bastion.app import create_app
from bastion.bootstrap import bootstrap
from serving import config, serve

PREVIEWS = 200
SAID = "The committee met on Tuesday and agreed to publish what it had found, in full, by June."


def main() -> None:
    """Print a preview's p50 and p95 by the length of the chat."""
    with tempfile.TemporaryDirectory() as folder:
        services = bootstrap(config(Path(folder), "http://127.0.0.1:9"))
        app = create_app(services)
        with serve(app) as url:
            print(f"{'messages':>9}{'preview p50 ms':>16}{'p95':>8}{'cut to half: p50':>18}{'p95':>8}")
            for messages in (20, 200, 2_000):
                chat = make_chat(url, messages)
                fits = timed(url, {"chat_id": chat, "user_message": "And now?"})
                reserve = {"reserve_tokens": 128_000 - messages * 12}
                cut = timed(url, {"chat_id": chat, "user_message": "And now?", "routing": reserve})
                print(f"{messages:>9}{fits[0]:>16.2f}{fits[1]:>8.2f}{cut[0]:>18.2f}{cut[1]:>8.2f}")


def make_chat(url: str, messages: int) -> str:
    """Make a chat with a character, a book of 200 entries and so many messages."""
    headers = {"authorization": "Bearer sk-acme"}
    with httpx.Client(trust_env=False, base_url=f"{url}/api/v2", headers=headers, timeout=60) as client:
        card = {"name": "Ann", "description": SAID, "personality": SAID, "first_mes": "Hello."}
        entries = [
            {"keys": [f"key{n}"], "content": SAID, "enabled": True, "insertion_order": n, "extensions": {}}
            for n in range(200)
        ]
        character = client.post("/characters", json={"card": card}).raise_for_status().json()["id"]
        book = client.post("/lorebooks", json={"book": {"entries": entries}}).raise_for_status().json()["id"]
        people = [{"id": "ann", "kind": "character", "character_id": character}]
        new = {"model": "gpt-4o", "participants": people, "lorebooks": [book]}
        chat: str = client.post("/chats", json=new).raise_for_status().json()["id"]
        for n in range(messages):
            said = {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} key{n % 300} {SAID}"}
            client.post(f"/chats/{chat}/messages", json=said).raise_for_status()
    return chat


def timed(url: str, body: dict[str, Any]) -> tuple[float, float]:
    """Return p50 and p95 of a preview, in milliseconds."""
    times = []
    with httpx.Client(trust_env=False, headers={"authorization": "Bearer sk-acme"}, timeout=60) as client:
        for number in range(PREVIEWS + 10):
            begun = time.perf_counter()
            client.post(f"{url}/api/v2/context-preview", json=body).raise_for_status()
            if number >= 10:
                times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times), sorted(times)[int(len(times) * 0.95)]
