"""The relayed routes: bytes as they came both ways, the model's rules in force, nothing that lives at a provider."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bastion.wire.multipart import read_form
from contextshift.errors import InvalidInput
from gateway.test_streaming import stream
from gateway.world import World, worlds

JSON_ROUTES = ["/responses", "/completions", "/embeddings", "/moderations", "/images/generations", "/audio/speech"]
SOUND = bytes(range(256)) * 40


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield from worlds(tmp_path)


def form(model: str | None = "large", boundary: str = "b0") -> tuple[bytes, str]:
    parts = [f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'.encode() + SOUND]
    if model is not None:
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\n{model}'.encode())
    return b"\r\n".join([*parts, f"--{boundary}--\r\n".encode()]), f"multipart/form-data; boundary={boundary}"


@pytest.mark.parametrize("prefix", ["/v1", ""])
@pytest.mark.parametrize("route", JSON_ROUTES)
def test_a_request_and_its_answer_pass_byte_for_byte(world: World, route: str, prefix: str):
    raw = b'{ "model":"large","input" : ["h\xc3\xa9llo"], "n":1.0 }'
    world.upstream.body = b'{"data":[ ],  "usage":{"prompt_tokens":3,"total_tokens":3}}'
    answer = world.post(raw, prefix + route)
    assert (world.upstream.last.path, world.upstream.last.body) == ("/v1" + route, raw)
    assert (answer.status_code, answer.content) == (200, world.upstream.body)
    assert answer.headers["x-bastion-context-tokens"] == "uncounted"
    assert answer.headers["x-bastion-generation-id"]


def test_the_model_is_called_as_its_provider_calls_it_and_routing_stays_here(world: World):
    world.post(b'{"input": "x", "routing": {"regions": ["eu"]}, "model": "small"}', "/v1/embeddings")
    assert world.upstream.last.body == b'{"input": "x", "model": "upstream-small"}'
    raw, kind = form("small")
    world.post(raw, "/v1/audio/transcriptions", **{"content-type": kind})
    assert world.upstream.last.body == raw.replace(b"small", b"upstream-small")
    assert world.upstream.last.headers["content-type"] == kind


def test_sound_and_pictures_come_back_as_they_are(world: World):
    world.upstream.headers, world.upstream.body = [("content-type", "audio/mpeg")], stream(SOUND, SOUND)
    answer = world.post({"model": "large", "input": "x"}, "/v1/audio/speech")
    assert (answer.content, answer.headers["content-type"]) == (SOUND + SOUND, "audio/mpeg")


def test_a_stream_of_events_is_relayed_and_its_usage_read(world: World, caplog: Any):
    usage = {"input_tokens": 7, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
    event = {"type": "response.completed", "response": {"usage": usage}}
    events = [b'event: a\ndata: {"type":"response.created"}\n\n', b"data: " + json.dumps(event).encode() + b"\n\n"]
    world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], stream(*events)
    with caplog.at_level(logging.INFO, "bastion"):
        answer = world.post({"model": "large", "input": "x", "stream": True}, "/v1/responses")
    assert answer.content == b"".join(events)
    logged = next(json.loads(one.message) for one in caplog.records if '"event":"call"' in one.message)
    assert (logged["action"], logged["used"], logged["reported_tokens"], logged["cached_tokens"]) == (
        "relay",
        "large",
        7,
        4,
    )
    assert logged["cost_usd"] == pytest.approx((7 * 2.0 + 2 * 4.0) / 1e6)


def test_errors_of_the_upstream_pass_as_they_came(world: World):
    world.upstream.status, world.upstream.body = 418, b"<teapot>"
    answer = world.post({"model": "large"}, "/v1/embeddings")
    assert (answer.status_code, answer.content) == (418, b"<teapot>")


def test_an_answer_that_breaks_off_breaks_off_here_too(world: World):
    world.upstream.headers, world.upstream.body = [("content-type", "audio/mpeg")], stream(SOUND, RuntimeError("reset"))
    with pytest.raises(Exception, match=r"incomplete|disconnected|closed"):
        world.post({"model": "large", "input": "x"}, "/v1/audio/speech")


def test_an_event_stream_that_breaks_off_ends_with_an_error_event(world: World):
    world.upstream.headers = [("content-type", "text/event-stream")]
    world.upstream.body = stream(b"data: {}\n\n", RuntimeError("reset"))
    last = world.post({"model": "large", "input": "x"}, "/v1/responses").content.split(b"data: ")[-1]
    assert json.loads(last)["error"]["code"] == "upstream_broken"


@pytest.mark.parametrize(
    ("key", "body", "status", "code"),
    [
        ("sk-other", {"model": "large"}, 403, "model_not_allowed"),
        ("sk-pro", {"model": "plain"}, 403, "model_not_allowed"),
        ("sk-strict", {"model": "large", "input": "x" * 400}, 403, "model_not_allowed"),
        ("sk-acme", {"model": "nobody"}, 404, "model_not_found"),
        ("sk-acme", {"input": "x"}, 400, "missing"),
        ("sk-acme", {"model": 7}, 400, "invalid_type"),
        ("sk-acme", {"model": "large", "routing": {"nope": 1}}, 400, "unknown_setting"),
        ("sk-none", {"model": "large"}, 401, "invalid_api_key"),
        ("sk-acme-admin", {"model": "large"}, 403, "scope_missing"),
    ],
)
def test_the_rules_of_counted_calls_hold(world: World, key: str, body: dict[str, Any], status: int, code: str):
    answer = world.post(body, "/v1/embeddings", key=key)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert not world.upstream.calls


def test_what_cannot_be_priced_is_not_sent_under_a_cost_ceiling(world: World):
    assert world.post({"model": "large", "input": "x"}, "/v1/images/generations", key="sk-strict").status_code == 403


@pytest.mark.parametrize(
    "body", [{"previous_response_id": "resp_1"}, {"conversation": {"id": "conv_1"}}, {"background": True}]
)
def test_a_response_may_not_lean_on_what_the_provider_keeps(world: World, body: dict[str, Any]):
    answer = world.post({"model": "large", "input": "x", **body}, "/v1/responses")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "stateful_not_supported")
    assert answer.json()["error"]["param"] == next(iter(body))


@pytest.mark.parametrize("path", ["/v1/files", "/v1/files/f1/content", "/v1/batches", "/v1/responses/r1", "/threads"])
def test_stateful_routes_are_refused(world: World, path: str):
    for answer in (world.get(path), world.post({"model": "large"}, path)):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "stateful_not_supported")
    assert world.get(path, key="sk-none").status_code == 401


@pytest.mark.parametrize("path", ["/v1/images/../files", "/v1/images/%2e%2e/files", "/v1/images/", "/v1/audio/a.b"])
def test_a_path_never_means_something_else_to_the_provider(world: World, path: str):
    import socket

    host, port = world.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as raw:  # clients tidy such paths up; attackers do not
        raw.sendall(
            f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-acme\r\ncontent-length: 17\r\n"
            'connection: close\r\n\r\n{"model":"large"}'.encode()
        )
        assert raw.recv(100).split()[1] == b"404"
    assert not world.upstream.calls


@pytest.mark.parametrize(
    ("raw", "kind", "code"),
    [
        (*form(None), "missing"),
        (form()[0], "multipart/form-data", "invalid_form"),
        (b"rubbish", "multipart/form-data; boundary=b0", "invalid_form"),
        (form("a")[0].replace(b'name="file"', b'name="model"'), "multipart/form-data; boundary=b0", "duplicate_key"),
    ],
)
def test_a_form_that_cannot_be_read_is_a_400(world: World, raw: bytes, kind: str, code: str):
    answer = world.post(raw, "/v1/audio/transcriptions", **{"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


@given(
    model=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30),
    boundary=st.text("abcdefXYZ0123456789-", min_size=1, max_size=60),
    other=st.text("gh", min_size=1, max_size=5),
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_form_leaves_as_it_came_but_for_the_model_s_name(model: str, boundary: str, other: str):
    raw, kind = form(model, boundary)
    if f"--{boundary}".encode() in raw.replace(f"--{boundary}".encode(), b"", 3):
        return
    read = read_form(raw, kind)
    assert read.model == model
    assert read.sent(model) == raw
    assert read_form(read.sent(other), kind).model == other


@given(st.binary(max_size=300))
def test_any_bytes_are_a_form_or_invalid_input(raw: bytes):
    try:
        read = read_form(
            b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\n' + raw, "multipart/form-data; boundary=b"
        )
    except InvalidInput:
        return
    assert read.model.encode() == read.raw[read.start : read.end]
