"""Every generation ends once, whoever goes away or breaks, and nothing of one caller reaches another."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bastion.bootstrap import Ports
from contextshift.errors import StoreUnavailable
from contextshift.fakes import FixedClock, MemoryAccounts, MemoryAuditStore
from contextshift.ports import AuditEnd, Commit, Ticket
from gateway.test_streaming import EVENTS, ended, stream
from gateway.world import World, chat, worlds
from serving import completion


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield from worlds(tmp_path)


class SlowEnds(MemoryAuditStore):
    """A store whose last writes take their time."""

    async def finish(self, ticket: Ticket, end: AuditEnd) -> bool:
        await asyncio.sleep(0.3)
        return await super().finish(ticket, end)

    async def sweep(self, ticket: Ticket) -> None:
        await asyncio.sleep(0.3)
        await super().sweep(ticket)


class LostCommit(MemoryAuditStore):
    """A store whose commit happens, and whose answer to it is lost."""

    async def commit(self, ticket: Ticket) -> Commit:
        await super().commit(ticket)
        raise StoreUnavailable("the answer was lost")


def request(**fields: Any) -> dict[str, Any]:
    return chat(("user", 3), routing={"chat_id": "c"}, **fields)


def hang_up_after(world: World, marker: bytes, body: dict[str, Any]) -> None:
    """Read a stream up to a marker and close the connection."""
    headers = {"authorization": "Bearer sk-acme"}
    url = world.url + "/v1/chat/completions"
    seen = b""
    with httpx.Client(trust_env=False) as client, client.stream("POST", url, json=body, headers=headers) as answer:
        for chunk in answer.iter_raw():
            seen += chunk
            if marker in seen:
                return


def test_a_client_that_closes_right_after_the_end_leaves_a_completed_audit(tmp_path: Path):
    audits = SlowEnds(FixedClock(time.time()))
    for world in worlds(tmp_path, ports=Ports(accounts=MemoryAccounts(), audits=audits)):
        world.upstream.headers = [("content-type", "text/event-stream")]
        world.upstream.body = stream(*EVENTS)
        hang_up_after(world, b"[DONE]", request(stream=True))
        assert ended(world)["status"] in ("completed", "cancelled")


def test_a_client_that_leaves_before_its_buffered_answer_stops_the_upstream(world: World):
    async def thinking() -> AsyncIterator[bytes]:
        for _ in range(200):
            await asyncio.sleep(0.05)
            yield b" "

    world.upstream.body = thinking
    headers = {"authorization": "Bearer sk-acme"}
    with httpx.Client(trust_env=False, timeout=0.5) as client, pytest.raises(httpx.ReadTimeout):
        client.post(world.url + "/v1/chat/completions", json=request(), headers=headers)
    assert ended(world)["status"] == "cancelled"
    assert world.upstream.disconnected.wait(10)


def test_a_client_that_stops_reading_does_not_hold_the_upstream_beyond_the_deadline(tmp_path: Path):
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield EVENTS[0] * 2000
            await asyncio.sleep(0.001)  # lets this server see that its client has gone

    for world in worlds(tmp_path, BASTION_TIMEOUT="1"):
        world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], endless
        headers = {"authorization": "Bearer sk-acme"}
        url = world.url + "/v1/chat/completions"
        with world.client.stream("POST", url, json=request(stream=True), headers=headers) as answer:
            chunks = answer.iter_raw()  # held, and not read on: the connection stays open
            next(chunks)
            assert world.upstream.disconnected.wait(15)
        assert ended(world)["status"] in ("failed", "cancelled")


def test_a_commit_whose_answer_is_lost_is_ended_all_the_same(tmp_path: Path):
    audits = LostCommit(FixedClock(time.time()))
    for world in worlds(tmp_path, ports=Ports(accounts=MemoryAccounts(), audits=audits)):
        answer = world.post(request())
        assert answer.headers["x-bastion-context-warning"] == "audit-unavailable"
        assert world.audit("c").json()["status"] == "completed"


def test_a_bug_on_the_way_ends_the_audit_too(tmp_path: Path):
    class Broken:
        async def send(self, _call: Any) -> Any:
            raise RuntimeError("a bug")

    audits = MemoryAuditStore(FixedClock(time.time()))
    ports = Ports(accounts=MemoryAccounts(), audits=audits, providers={"main": Broken()})
    for world in worlds(tmp_path, ports=ports):
        answer = world.post(request())
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
        assert answer.headers["x-bastion-generation-id"]
        relayed = world.post({"model": "large", "input": "x"}, "/v1/embeddings")
        assert (relayed.status_code, bool(relayed.headers["x-bastion-generation-id"])) == (500, True)
        audit = world.audit("c").json()
        assert (audit["status"], audit["error_code"]) == ("failed", "INTERNAL_ERROR")


def test_a_client_that_leaves_while_it_uploads_is_no_fault(world: World, caplog: pytest.LogCaptureFixture):
    host, port = world.url.removeprefix("http://").split(":")
    with caplog.at_level(logging.INFO, "bastion"):
        with socket.create_connection((host, int(port))) as raw:
            head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-acme\r\n"
            raw.sendall(f"{head}content-length: 1000\r\n\r\n{{".encode())
            time.sleep(0.2)
        time.sleep(0.3)
        assert world.post(request()).status_code == 200
    assert '"event":"call"' in caplog.text
    assert '"event":"fault"' not in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("PUT", "/api/v2/chats", "GET, HEAD, POST"),
        ("PUT", "/api/v2/chats/c", "DELETE, GET, HEAD, PATCH"),
    ],
)
def test_a_405_says_what_is_allowed(world: World, method: str, path: str, allowed: str):
    answer = world.client.request(method, world.url + path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_an_error_event_never_runs_into_a_torn_one(world: World):
    world.upstream.headers = [("content-type", "Text/Event-Stream")]
    world.upstream.body = stream(EVENTS[0], EVENTS[1][:20], RuntimeError("reset"))
    content = world.post(request(stream=True)).content
    event = content.rsplit(b"\n\n", 2)[-2]
    assert json.loads(event.removeprefix(b"data: "))["error"]["code"] == "upstream_broken"


def test_an_error_inside_a_200_is_a_failed_audit_and_an_untouched_answer(world: World):
    world.upstream.body = b'{"error": {"message": "no"}}'
    answer = world.post(request())
    assert (answer.status_code, answer.content) == (200, world.upstream.body)
    audit = world.audit("c").json()
    assert (audit["status"], audit["error_code"]) == ("failed", "UPSTREAM_ERROR")


def test_a_compressed_answer_keeps_its_encoding_and_is_not_taken_for_broken(world: World):
    world.upstream.headers += [("content-encoding", "gzip")]
    world.upstream.body = gzip.compress(completion("héllo"))
    answer = world.post(request())
    assert answer.json()["choices"][0]["message"]["content"] == "héllo"
    assert world.audit("c").json()["status"] == "completed"


def test_a_cookie_of_an_upstream_never_goes_out_with_another_call(world: World):
    world.upstream.headers += [("set-cookie", "session=acme")]
    for key in ("sk-acme", "sk-other"):
        world.post(chat(("user", 1)), key=key)
        assert "cookie" not in world.upstream.last.headers


def test_forwarded_headers_may_hold_any_bytes(world: World):
    assert world.post(request(), **{"idempotency-key": "é".encode("latin-1")}).status_code == 200
    assert world.upstream.last.headers["idempotency-key"] == "é"


def test_headers_stay_small_whatever_is_asked(world: World):
    answer = world.post(chat(("user", 1), routing={"pin": [0] * 40_000}))
    assert "pin=40000;level=request" in answer.headers["x-bastion-context-settings"]
    long_name = world.post(chat(("user", 1), model="wild-" + "x" * 300))
    assert (long_name.status_code, long_name.json()["error"]["code"]) == (400, "too_long")
    names = world.post(chat(("user", 1), routing={"regions": ["x" * 65]}))
    assert names.json()["error"]["param"] == "routing.regions"


def test_amounts_that_no_decimal_holds_are_shown_all_the_same(world: World):
    answer = world.post(chat(("user", 1), routing={"max_cost_usd": 1e300}))
    assert 'max_cost_usd="1e+300"' in answer.headers["x-bastion-context-settings"]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_a_limit_beyond_all_reason_is_refused(world: World, field: str):
    assert world.post(chat(("user", 1), model="wild-1", **{field: 10**400})).json()["error"]["param"] == field


def test_a_refusal_for_its_cost_is_measured_kept_and_said(world: World):
    answer = world.post(chat(("user", 90), model="large", max_tokens=90, routing={"chat_id": "c"}), key="sk-strict")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "model_not_allowed")
    assert "prompt=90" in answer.headers["x-bastion-context-tokens"]
    assert world.audit("c", key="sk-strict").json()["error_code"] == "MODEL_NOT_ALLOWED"


def test_a_trailing_slash_is_a_plain_404(world: World):
    answer = world.post(chat(("user", 1)), "/v1/chat/completions/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_url")


def test_texts_made_to_be_slow_are_counted_at_once(world: World):
    """Each of these took seconds to minutes by a pattern or a rendering that was not linear."""
    odd = {"role": "user", "content": [{"type": "x", "data": " " * 100_000 + "!"}]}
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(4):
        deep = {"type": ["object"] * 250, "properties": {"a": deep}}
    tool = {"type": "function", "function": {"name": "f", "parameters": deep}}
    counted = world.post({"model": "gpt-4o", "messages": [odd], "tools": [tool]}, "/v1/chat/completions/count").json()
    assert len(counted["messages"]) == 1
    assert counted["prompt_tokens"] < 20_000


def test_a_snapshot_of_a_listed_model_may_be_used_and_one_of_another_may_not(world: World):
    assert world.post(chat(("user", 1), model="small-2024-08-06"), key="sk-other").status_code == 200
    assert world.post(chat(("user", 1), model="large-2024-08-06"), key="sk-other").status_code == 403
