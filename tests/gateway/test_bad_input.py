"""Nothing a client sends makes a 500: a 4xx with a stable code and the path, nothing sent, nothing stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bastion.bootstrap import Ports
from contextshift.fakes import FixedClock, MemoryAccounts, MemoryAuditStore
from gateway.world import World, chat, worlds

ROUTED = {"routing": {"chat_id": "c"}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    yield from worlds(tmp_path_factory.mktemp("world"))


def message(**fields: Any) -> dict[str, Any]:
    return {"model": "small", "messages": [fields], **ROUTED}


BAD: list[tuple[Any, str | None, str]] = [
    (b"", None, "invalid_json"),
    (b"{", None, "invalid_json"),
    (b"\xff\xfe", None, "invalid_utf8"),
    (b"[]", None, "invalid_type"),
    (b"NaN", None, "invalid_number"),
    (b"[-Infinity]", None, "invalid_number"),
    (b"[" + b"1" * 2000 + b"]", None, "invalid_number"),
    (b'{"model": "small", "messages": [], "seed": 1e999}', "seed", "invalid_number"),
    ('{"model": "small", "me\u017f\u017fages": []}'.encode(), "me\u017f\u017fages", "ambiguous_key"),
    (b'{"model": "small", "model": "small"}', "model", "repeated_key"),
    (b'{"Model": "small"}', "Model", "ambiguous_key"),
    (
        b'{"model": "small", "messages": [{"role": "user", "content": "a\\ud800b"}]}',
        "messages[0].content",
        "lone_surrogate",
    ),
    (b'{"model": "small", "messages": [], "temperature": NaN}', "temperature", "invalid_number"),
    (b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}", None, "too_deep"),
    ({}, "model", "missing"),
    ({"model": None, "messages": []}, "model", "missing"),
    ({"model": 3, "messages": []}, "model", "invalid_type"),
    ({"model": "", "messages": []}, "model", "invalid_type"),
    ({"model": "small"}, "messages", "missing"),
    ({"model": "small", "messages": "hi"}, "messages", "invalid_type"),
    ({"model": "small", "messages": []}, "messages", "empty_array"),
    ({"model": "small", "messages": [{"role": "user", "content": "x"}] * 10_001}, "messages", "too_many_messages"),
    ({"model": "small", "messages": ["hi"]}, "messages[0]", "invalid_value"),
    ({"model": "small", "messages": [None]}, "messages[0]", "invalid_value"),
    (message(content="x"), "messages[0].role", "invalid_value"),
    (message(role=1, content="x"), "messages[0].role", "invalid_value"),
    (message(role="user"), "messages[0].content", "missing"),
    (message(role="tool", tool_call_id="a"), "messages[0].content", "missing"),
    (message(role="user", content=3), "messages[0].content", "invalid_value"),
    (message(role="user", content={"text": "x"}), "messages[0].content", "invalid_value"),
    (message(role="user", content=["x"]), "messages[0].content[0]", "invalid_type"),
    (message(role="assistant", tool_calls="x"), "messages[0].tool_calls", "invalid_type"),
    (message(role="assistant", tool_calls=["x"]), "messages[0].tool_calls[0]", "invalid_type"),
    (chat(("user", 1), max_tokens=-1, **ROUTED), "max_tokens", "invalid_type"),
    (chat(("user", 1), max_tokens=1.5, **ROUTED), "max_tokens", "invalid_type"),
    (chat(("user", 1), max_tokens="10", **ROUTED), "max_tokens", "invalid_type"),
    (chat(("user", 1), max_completion_tokens=True, **ROUTED), "max_completion_tokens", "invalid_type"),
    (chat(("user", 1), stream="yes", **ROUTED), "stream", "invalid_type"),
    (chat(("user", 1), tools={}, **ROUTED), "tools", "invalid_type"),
    (chat(("user", 1), tools=[1], **ROUTED), "tools", "invalid_type"),
    (chat(("user", 1), response_format="json", **ROUTED), "response_format", "invalid_type"),
    (chat(("user", 1), routing=[]), "routing", "invalid_type"),
    (chat(("user", 1), routing={"chat_id": "c", "swapping": True}), "routing.swapping", "unknown_setting"),
    (chat(("user", 1), routing={"chat_id": "c", "headroom": 2}), "routing.headroom", "invalid_type"),
    (chat(("user", 1), routing={"chat_id": "../c"}), "routing.chat_id", "invalid_type"),
    (chat(("user", 1), routing={"chat_id": "c", "pin": [5]}), "routing.pin[0]", "invalid_index"),
    (chat(("user", 1), routing={"chat_id": "c", "context_strategy": "nope"}), None, "STRATEGY_NOT_IN_PLAN"),
    (chat(("user", 1), model="nope", **ROUTED), "model", "model_not_found"),
]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/chat/completions/count", "/api/v2/context-preview"])
@pytest.mark.parametrize(("body", "param", "code"), BAD)
def test_bad_input_is_refused_by_code_and_path(world: World, path: str, body: Any, param: str | None, code: str):
    answer = world.post(body, path)
    assert 400 <= answer.status_code < 500
    error = answer.json()["error"]
    if path.startswith("/v1"):
        assert (error["param"], error["code"]) == (param, code)
    else:
        assert error.get("path") == param
        assert error["code"].isupper()
    assert world.upstream.calls == []
    assert world.audit("c").status_code == 404


def test_a_routing_header_is_given_once(world: World):
    twice = [("x-bastion-routing", "{}"), ("x-bastion-routing", '{"regions": ["us"]}')]
    sent = [("authorization", "Bearer sk-acme"), *twice]
    answer = world.client.post(world.url + "/v1/chat/completions", json=chat(("user", 1)), headers=sent)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "X-Bastion-Routing")
    assert not world.upstream.calls


@pytest.mark.parametrize("header", ["x", "[]", '{"headroom": NaN}', '{"unknown": 1}', '{"a": 1, "a": 1}', "é"])
def test_a_bad_routing_header_is_named(world: World, header: str):
    answer = world.post(chat(("user", 1)), **{"X-Bastion-Routing": header.encode("latin-1")})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith("X-Bastion-Routing")


def test_a_body_over_the_stated_size_is_a_413_however_it_is_sent(world: World):
    large = json.dumps(chat(("user", "x" * 20_000_001))).encode()
    assert world.post(large).status_code == 413

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(large), 1_000_000):
            yield large[start : start + 1_000_000]

    headers = {"authorization": "Bearer sk-acme"}
    answer = world.client.post(world.url + "/v1/chat/completions", content=chunks(), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    assert world.upstream.calls == []


odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(
    [
        "model",
        "messages",
        "routing",
        "max_tokens",
        "max_completion_tokens",
        "stream",
        "tools",
        "functions",
        "response_format",
        "tool_choice",
        "modalities",
        "stream_options",
        "function_call",
        "n",
        "stop",
    ]
)
odd_messages = st.lists(
    st.dictionaries(
        st.sampled_from(
            [
                "role",
                "content",
                "tool_calls",
                "tool_call_id",
                "name",
                "function_call",
                "meta",
                "pinned",
                "refusal",
                "audio",
            ]
        ),
        odd | st.sampled_from(["user", "assistant", "tool", "system"]),
        max_size=5,
    ),
    max_size=4,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.dictionaries(names, odd, max_size=6), odd_messages, st.booleans(), st.sampled_from(["small", "gpt-4o", "wild-1"])
)
def test_no_json_whatsoever_makes_a_500(world: World, body: dict[str, Any], talk: list[Any], use: bool, model: str):
    if use:
        body = {**body, "model": model, "messages": talk}
    raw = json.dumps(body).encode("utf-8", "replace")
    for path in ("/v1/chat/completions/count", "/api/v2/context-preview", "/v1/chat/completions"):
        answer = world.post(raw, path)
        assert answer.status_code < 500, (raw, answer.text)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_whatsoever_make_a_500(world: World, raw: bytes):
    assert 400 <= world.post(raw).status_code < 500


@pytest.mark.parametrize("chat_id", ["%2e%2e", "a b", "é", "x" * 200, "a%2Fb", "%00"])
def test_an_impossible_chat_id_is_simply_not_found(world: World, chat_id: str):
    assert world.audit(chat_id).status_code == 404


def test_an_unknown_include_is_refused(world: World):
    assert world.audit("c", query="?include=everything").json()["error"]["path"] == "include"


def test_a_bug_of_ours_is_a_plain_500_and_its_log_holds_no_text(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    class Broken(MemoryAuditStore):
        async def read(self, account: str, chat_id: str) -> Any:
            raise RuntimeError("a secret prompt")

    ports = Ports(accounts=MemoryAccounts(), audits=Broken(FixedClock()))
    with caplog.at_level("INFO", logger="bastion"):
        for one in worlds(tmp_path, ports=ports):
            answer = one.audit("c")
            assert (answer.status_code, answer.json()["error"]["message"]) == (500, "internal error")
            assert answer.headers["x-request-id"] in caplog.text
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text
