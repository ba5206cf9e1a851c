"""Streams over loopback: chunks as they are made, bytes untouched, and an audit that ends whatever happens."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bastion.app import create_app
from bastion.bootstrap import bootstrap
from gateway.world import LONG, World, chat, worlds
from serving import Upstream, config, serve

EVENTS = [
    b'data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"h\xc3\xa9"}}]}\n\n',
    b': a comment\r\n\r\ndata: {"id":"1","choices":[{"index":0,"delta":{"content":"llo"}}]}\r\n\r\n',
    b'data: {"id":"1","choices":[],"usage":{"prompt_tokens":40,"completion_tokens":2,"total_tokens":42,'
    b'"prompt_tokens_details":{"cached_tokens":8}}}\n\n',
    b"data: [DONE]\n\n",
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    for one in worlds(tmp_path):
        one.upstream.headers = [("content-type", "text/event-stream; charset=utf-8")]
        one.upstream.body = stream(*EVENTS)
        yield one


def stream(*chunks: bytes | Exception):
    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
            await asyncio.sleep(0)

    return body


def request(**fields: object) -> dict[str, object]:
    return chat(("user", 40), stream=True, routing={"chat_id": "c"}, **fields)


def ended(world: World, chat_id: str = "c") -> dict[str, object]:
    """Return the audit once it has ended."""
    for _ in range(100):
        audit = world.audit(chat_id).json()
        if audit.get("status") not in (None, "prepared"):
            return audit
        time.sleep(0.05)
    raise AssertionError(f"the audit never ended: {audit}")


def test_the_bytes_of_a_stream_are_untouched_and_its_usage_is_read(world: World):
    answer = world.post(request())
    assert answer.content == b"".join(EVENTS)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "x-bastion-context-tokens" in answer.headers
    audit = ended(world)
    assert audit["status"] == "completed"
    assert audit["usage"] == {
        "prompt_tokens": 40,
        "completion_tokens": 2,
        "total_tokens": 42,
        "cached_tokens": 8,
    }
    assert audit["cost"]["actual_usd"] == 0.000044


def test_usage_is_read_however_the_stream_is_cut(world: World):
    whole = b"".join(EVENTS)
    world.upstream.body = stream(*(whole[start : start + 7] for start in range(0, len(whole), 7)))
    assert world.post(request()).content == whole
    assert ended(world)["usage"]["prompt_tokens"] == 40


def test_without_reported_usage_our_own_counts_stand_marked(world: World):
    world.upstream.body = stream(EVENTS[0], EVENTS[-1])
    world.post(request())
    assert ended(world)["usage"] == {
        "prompt_tokens": 40,
        "completion_tokens": None,
        "total_tokens": None,
        "estimated": True,
    }


def test_the_first_chunk_arrives_before_the_upstream_has_made_the_second(world: World):
    first_seen = threading.Event()

    async def body() -> AsyncIterator[bytes]:
        yield EVENTS[0]
        await asyncio.get_running_loop().run_in_executor(None, first_seen.wait, 10)
        assert first_seen.is_set()
        yield EVENTS[-1]

    world.upstream.body = body
    headers = {"authorization": "Bearer sk-acme"}
    with world.client.stream("POST", world.url + "/v1/chat/completions", json=request(), headers=headers) as answer:
        chunks = answer.iter_raw()
        assert next(chunks) == EVENTS[0]
        first_seen.set()
        assert b"".join(chunks) == EVENTS[-1]


def test_b50_a_failure_in_mid_stream_is_one_error_event_and_a_failed_audit(world: World):
    world.upstream.body = stream(EVENTS[0], EVENTS[1], RuntimeError("reset"))
    content = world.post(request()).content
    assert content.startswith(EVENTS[0] + EVENTS[1])
    event = content.removeprefix(EVENTS[0] + EVENTS[1])
    assert event.startswith(b"data: ")
    assert event.count(b"data: ") == 1
    assert json.loads(event[6:])["error"]["code"] == "upstream_broken"
    audit = ended(world)
    assert (audit["status"], audit["error_code"]) == ("failed", "PROVIDER_BROKEN")


def test_b50_a_host_that_cannot_stream_answers_a_failure_in_mid_stream_with_a_clean_502(tmp_path: Path):
    upstream = Upstream(headers=[("content-type", "text/event-stream")])
    with serve(upstream) as address:
        app = create_app(bootstrap(config(tmp_path, address)))

        async def buffered(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "bastion.buffered": True}, receive, send)

        with serve(buffered) as url, httpx.Client(trust_env=False) as client:
            world = World(url, upstream, client)
            upstream.body = stream(*EVENTS)
            assert world.post(request()).content == b"".join(EVENTS)
            upstream.body = stream(EVENTS[0], EVENTS[1], RuntimeError("reset"))
            answer = world.post(request())
            assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_broken")
            assert answer.headers["x-should-retry"] == "false"
            assert ended(world)["status"] == "failed"


def test_a_client_that_goes_away_stops_the_upstream_and_cancels_the_audit(world: World):
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield EVENTS[0]
            await asyncio.sleep(0.01)

    world.upstream.body = endless
    headers = {"authorization": "Bearer sk-acme"}
    url = world.url + "/v1/chat/completions"
    with httpx.Client(trust_env=False) as client, client.stream("POST", url, json=request(), headers=headers) as answer:
        next(answer.iter_raw())
    assert ended(world)["status"] == "cancelled"
    assert world.upstream.disconnected.wait(10)


def test_a_deadline_in_mid_stream_ends_it_with_an_error_event(tmp_path: Path):
    async def slow() -> AsyncIterator[bytes]:
        yield EVENTS[0]
        await asyncio.sleep(5)

    for world in worlds(tmp_path, BASTION_TIMEOUT="1"):
        world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], slow
        content = world.post(request()).content
        assert content.startswith(EVENTS[0])
        assert json.loads(content[len(EVENTS[0]) + 6 :])["error"]["code"] == "upstream_timeout"
        assert ended(world)["error_code"] == "PROVIDER_TIMEOUT"


def test_a_stream_that_was_cut_says_so_in_its_headers(world: World):
    answer = world.post(chat(*LONG, max_tokens=10, stream=True))
    assert answer.headers["x-bastion-context-truncated"] == "true"
    assert len(world.upstream.last.json["messages"]) == 3


def test_an_upstream_that_answers_a_stream_with_json_is_passed_on_as_it_came(tmp_path: Path):
    for world in worlds(tmp_path):
        world.upstream.status, world.upstream.body = 400, b'{"error": {"message": "no"}}'
        answer = world.post(request())
        assert (answer.status_code, answer.content) == (400, world.upstream.body)
