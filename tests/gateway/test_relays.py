"""The relayed routes: bytes as they came both ways, the model's rules in force, nothing that lives at a provider."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
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


@pytest.mark.parametrize("header", [("content-length", "1000"), ("content-encoding", "gzip")])
def test_where_an_error_event_cannot_follow_the_connection_breaks_off(world: World, header: tuple[str, str]):
    event = b"data: {}\n\n"
    for path in ("/v1/responses", "/v1/chat/completions")[: 1 if header[0] == "content-length" else 2]:
        world.upstream.headers = [("content-type", "text/event-stream"), header]
        world.upstream.body = stream(event, RuntimeError("reset"))
        body = {"model": "large", "input": "x", "messages": [{"role": "user", "content": "x"}], "stream": True}
        headers = {"authorization": "Bearer sk-acme"}
        with world.client.stream("POST", world.url + path, json=body, headers=headers) as answer:
            came: list[bytes] = []
            with pytest.raises(httpx.RemoteProtocolError):
                came.extend(answer.iter_raw())
        assert b"".join(came) in (event, b"")


def test_a_query_is_passed_on_and_what_is_configured_stays(world: World):
    world.post({"model": "large"}, "/v1/embeddings?api-version=9&a=b%20c&%61pi-version=8&d&include[]=x&a=%C3%A9")
    query = parse_qsl(world.upstream.last.query, keep_blank_values=True)
    assert query == [("a", "b c"), ("d", ""), ("include[]", "x"), ("a", "é"), ("api-version", "7")]
    world.post({"model": "large"}, "/v1/embeddings")
    assert world.upstream.last.query == "api-version=7"


@pytest.mark.parametrize("query", ["a=" + "x" * 9000, 'a="'])
def test_what_is_no_query_is_a_400(world: World, query: str):
    status, raw = asyncio.run(asked(world, query))
    assert (status, json.loads(raw)["error"]["code"]) == (400, "invalid_query")
    assert not world.upstream.calls


async def asked(world: World, query: str) -> tuple[int, bytes]:
    """Ask with a query as it stands: clients tidy it up."""
    host, port = world.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"POST /v1/embeddings?{query} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-acme\r\n"
        'connection: close\r\ncontent-length: 17\r\n\r\n{"model":"large"}'.encode()
    )
    head, _, raw = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), raw


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


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": {"id": "conv_1"}}, "conversation"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "pmpt_1", "version": "2"}}, "prompt.id"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].id"),
        ({"input": [{"role": "user", "content": "x"}, {"id": "msg_1"}]}, "input[1].id"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
            "input[0].content[0].file_id",
        ),
        ({"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}, "tools[0].vector_store_ids"),
        ({"tools": [{"type": "code_interpreter", "container": "cntr_1"}]}, "tools[0].container"),
        (
            {"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["f"]}}]},
            "tools[0].container.file_ids",
        ),
        (
            {"tools": [{"type": "image_generation", "input_image_mask": {"file_id": "f"}}]},
            "tools[0].input_image_mask.file_id",
        ),
    ],
)
def test_a_response_may_not_lean_on_what_the_provider_keeps(world: World, body: dict[str, Any], path: str):
    answer = world.post({"model": "large", "input": "x", **body}, "/v1/responses")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "stateful_not_supported")
    assert answer.json()["error"]["param"] == path
    assert not world.upstream.calls


def test_a_file_that_the_provider_keeps_is_refused_in_a_chat_too(world: World):
    part = {"type": "file", "file": {"file_id": "file-1"}}
    answer = world.post({"model": "large", "messages": [{"role": "user", "content": [part]}]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "stateful_not_supported")
    assert answer.json()["error"]["param"] == "messages[0].content[0].file.file_id"


@pytest.mark.parametrize(
    "body",
    [
        {"input": '{"file_id": "file-1"}', "store": True, "metadata": {"file_id": "mine"}},
        {"input": [{"type": "function_call", "arguments": '{"file_id": "f"}', "name": "f", "call_id": "c"}]},
        {"tools": [{"type": "function", "name": "f", "parameters": {"properties": {"file_id": {"type": "string"}}}}]},
        {"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": []}}], "conversation": None},
        {
            "input": [
                {
                    "type": "message",
                    "role": "assistant",
                    "id": "msg_1",
                    "content": [
                        {"type": "output_text", "text": "x", "annotations": [{"type": "file_citation", "file_id": "f"}]}
                    ],
                }
            ]
        },
    ],
)
def test_what_a_caller_or_a_model_wrote_refers_to_nothing(world: World, body: dict[str, Any]):
    assert world.post({"model": "large", "input": "x", **body}, "/v1/responses").status_code == 200


# -- the ceiling of what a call may cost ---------------------------------------------------------------------


HUGE = int("1" + "0" * 900)


@pytest.mark.parametrize("key", ["sk-acme", "sk-strict"])
@pytest.mark.parametrize("limit", [HUGE, -1_000_000_000, 1e6, "9", True, 1_000_000_001, [1]])
@pytest.mark.parametrize(("route", "name"), [("/responses", "max_output_tokens"), ("/completions", "max_tokens")])
def test_a_reply_limit_is_a_number_of_tokens(world: World, route: str, name: str, limit: Any, key: str):
    answer = world.post({"model": "large", "input": "x", name: limit}, "/v1" + route, key=key)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)
    assert not world.upstream.calls


PICTURE = {"type": "input_image", "image_url": "https://example.org/a.png"}


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/responses", {"max_output_tokens": 1_000_000}),
        ("/responses", {"input": "x" * 400, "max_tokens": -1_000_000_000}),
        ("/embeddings", {"input": "x" * 400, "max_tokens": -1_000_000_000}),
        ("/responses", {"input": [{"role": "user", "content": [PICTURE]}]}),
        ("/responses", {"input": [{"type": "something_new", "content": "x"}]}),
        ("/responses", {"tools": [{"type": "web_search"}]}),
        ("/responses", {"tools": 5}),
        ("/embeddings", {"input": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}),
        ("/completions", {"prompt": "x", "max_tokens": 2, "n": 100}),
        ("/completions", {"prompt": "x", "max_tokens": 2, "best_of": 100}),
        ("/completions", {"prompt": ["x"] * 10, "max_tokens": 4}),
        ("/images/generations", {}),
        ("/audio/speech", {}),
    ],
)
def test_a_cost_ceiling_holds_against_whatever_may_be_paid_for(world: World, route: str, body: dict[str, Any]):
    answer = world.post({"model": "large", "input": "x", **body}, "/v1" + route, key="sk-strict")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "model_not_allowed")
    assert not world.upstream.calls


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/responses", {"input": "x", "max_output_tokens": 1, "max_tokens": 10**9}),
        ("/completions", {"prompt": [1, 2], "max_tokens": 1}),
    ],
)
def test_text_under_the_ceiling_is_relayed(world: World, route: str, body: dict[str, Any]):
    assert world.post({"model": "small", **body}, "/v1" + route, key="sk-strict").status_code == 200


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


FORM = "multipart/form-data; boundary=b0"
TWICE = form("a")[0].replace(b'name="file"; filename="a.wav"', b'name="model"')
DISGUISED = [
    b'name="x"\r\ncontent-disposition: form-data; name="model"',
    b'name="model"\r\ncontent-disposition: form-data; name="x"',
    b'name="mod\\el"',
    b"name=\"x\"; name*=UTF-8''model",
    b'name="x"; name*0="mod"; name*1="el"',
    b'name="x"; name="model"',
    b'NAME="x"; name="model"',
    b'name="x"; filename="\\"; name="model"; y="z"',
    b'name=" model"',
    b"filename=x",
    b'name="x"\r\ncontent-transfer-encoding: base64',
    b'name="x"\r\ncontent-type: multipart/mixed; boundary=c',
    b'name="x"\r\n\r\n\n--b0\ncontent-disposition: form-data; name="model"',
]
"""Parts in which some parsers find a model's name and others none."""


def part(disposition: bytes, value: bytes) -> bytes:
    """Return a form with one more part before the model's."""
    return b"--b0\r\ncontent-disposition: form-data; " + disposition + b"\r\n\r\n" + value + b"\r\n" + form()[0]


@pytest.mark.parametrize(
    ("raw", "kind", "code"),
    [
        (*form(None), "missing"),
        (form()[0], "multipart/form-data", "invalid_form"),
        (b"rubbish", "multipart/form-data; boundary=b0", "invalid_form"),
        (TWICE, FORM, "duplicate_key"),
        (form("large")[0].replace(b"large", b"x" * 257), FORM, "too_long"),
        (form("lar\x00ge")[0], FORM, "invalid_value"),
        (form("large\r\nx")[0], FORM, "invalid_value"),
        (form("")[0], FORM, "invalid_type"),
        (form("large")[0] + form("small")[0], FORM, "invalid_form"),
        (form("large")[0] + b"x", FORM, "invalid_form"),
        (form("large")[0], FORM + "; boundary=b1", "invalid_form"),
        (part(b'name="x"; ' + b"; ".join(b"p%d=x" % one for one in range(2_000)), b"x"), FORM, "invalid_form"),
        (part(b'name="routing"', b"{}"), FORM, "unsupported_field"),
        *((part(disposition, b"small"), FORM, "invalid_form") for disposition in DISGUISED),
        (part(b'name="model"; filename="m.txt"', b"large"), FORM, "invalid_type"),
        (part(b'name="model"\r\ncontent-type: text/plain; charset=utf-16', b"large"), FORM, "invalid_type"),
    ],
)
def test_a_form_that_cannot_be_read_is_a_400(world: World, raw: bytes, kind: str, code: str):
    answer = world.post(raw, "/v1/audio/transcriptions", **{"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


@pytest.mark.parametrize("route", ["/images/edits", "/images/variations"])
def test_a_form_without_a_model_asks_for_the_route_s_default(world: World, route: str):
    raw, kind = form(None)
    answer = world.post(raw, "/v1" + route, **{"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")  # this catalogue lacks it
    assert read_form(raw, kind, route).model == "dall-e-2"
    assert read_form(raw, kind, route).sent("another") == raw


@given(
    model=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30),
    boundary=st.text("abcdefXYZ0123456789-", min_size=1, max_size=60),
    other=st.text("gh", min_size=1, max_size=5),
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_form_leaves_as_it_came_but_for_the_model_s_name(model: str, boundary: str, other: str):
    raw, kind = form(model, boundary)
    path = "/audio/transcriptions"
    if f"--{boundary}".encode() in raw.replace(f"--{boundary}".encode(), b"", 3):
        return
    read = read_form(raw, kind, path)
    assert read.model == model
    assert read.sent(model) == raw
    assert read_form(read.sent(other), kind, path).model == other


@given(st.binary(max_size=300))
def test_any_bytes_are_a_form_or_invalid_input(raw: bytes):
    try:
        read = read_form(
            b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\n' + raw,
            "multipart/form-data; boundary=b",
            "/x",
        )
    except InvalidInput:
        return
    assert read.model.encode() == read.raw[read.start : read.end]
