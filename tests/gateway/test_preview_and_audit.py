"""Preview and audit: the same plan, shown before and kept after; and nobody else's to see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bastion.bootstrap import Ports
from contextshift.audit import GRACE
from contextshift.fakes import FixedClock, MemoryAccounts, MemoryAuditStore
from gateway.world import LONG, World, chat, worlds

PREVIEW = "/api/v2/context-preview"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield from worlds(tmp_path)


TOOLS = [
    {"role": "system", "content": "w"},
    {"role": "user", "content": "w w w w w"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": " ".join(["w"] * 50)},
    {"role": "tool", "tool_call_id": "b", "content": "w w w w w"},
    {"role": "user", "content": "w w w"},
]


def test_b01_the_audit_lists_every_block_with_its_tokens_group_and_reason(world: World):
    request = {"model": "small", "messages": TOOLS, "max_tokens": 10, "routing": {"chat_id": "c"}}
    world.post(request)
    audit = world.audit("c").json()
    rows = [(e["id"], e["tokens"], e["included"], e["reason"], e["group"]) for e in audit["entries"]]
    assert rows == [
        ("m0", 1, True, "protected-system", "g0"),
        ("m1", 5, False, "context-shift", "g1"),
        ("m2", 0, False, "context-shift", "g2"),
        ("m3", 50, False, "context-shift", "g2"),
        ("m4", 5, False, "context-shift", "g2"),
        ("m5", 3, True, "protected-current-turn", "g5"),
    ]
    assert audit["messages"] == [TOOLS[0], TOOLS[5]] == world.upstream.last.json["messages"]
    assert audit["entries"][2]["fields"] == {"tool_calls": TOOLS[2]["tool_calls"]}
    assert audit["budget"] == {
        "window": 60,
        "max_input": None,
        "reserve": 10,
        "limit": 50,
        "prompt_tokens": 4,
        "fixed_tokens": 0,
    }
    assert audit["model"] == {"requested": "small", "used": "small", "provider": "main"}
    assert audit["tokenizer"] == {"profile": "words", "approximate": False, "margin": 0}
    assert audit["settings"]["smart_truncation"] == {"value": True, "level": "plan"}
    assert (audit["action"], audit["strategy"], audit["status"]) == ("shift", "truncate", "completed")
    assert audit["cost"]["estimated_usd"] == 0.000024
    assert audit["created_at"] <= audit["finished_at"]


@pytest.mark.parametrize(
    "request_body",
    [
        chat(("user", 1)),
        chat(*LONG, max_tokens=10),
        chat(*LONG, max_tokens=10, routing={"context_swapping": True}),
        {"model": "small", "messages": TOOLS, "max_tokens": 10},
    ],
)
def test_a_preview_shows_what_the_upstream_then_receives(world: World, request_body):
    preview = world.post(request_body, PREVIEW + "?include=messages,content")
    answer = world.post(request_body)
    shown, sent = preview.json(), world.upstream.last.json
    assert shown["messages"] == sent["messages"]
    upstream_names = {"small": "upstream-small", "large": "large"}
    assert upstream_names[shown["model"]["used"]] == sent["model"]
    for name in ("tokens", "settings"):
        header = f"x-bastion-context-{name}"
        assert preview.headers[header] == answer.headers[header]
    assert "generation_id" not in shown


def test_a_refusal_is_a_preview_like_any_other(world: World):
    preview = world.post(chat(("user", 100), max_tokens=1), PREVIEW)
    assert (preview.status_code, preview.json()["action"], preview.json()["model"]["used"]) == (200, "refuse", None)


def test_include_decides_what_preview_and_audit_show(world: World):
    request = chat(("user", "private words"), routing={"chat_id": "c"})
    bare = world.post(request, PREVIEW)
    assert "private" not in bare.text
    assert bare.json()["messages"] == [{"entry": "m0"}]
    assert "private" in world.post(request, PREVIEW + "?include=content").text
    world.post(request)
    assert "private" in world.audit("c").text
    assert "private" not in world.audit("c", query="?include=").text
    assert world.audit("c", query="?include=messages").json()["messages"] == request["messages"]


def test_a_preview_writes_nothing(tmp_path: Path):
    audits = MemoryAuditStore(FixedClock())
    audits.failing.update(("begin", "prepare", "commit", "finish", "sweep", "delete"))
    for world in worlds(tmp_path, ports=Ports(accounts=MemoryAccounts(), audits=audits)):
        assert world.post(chat(*LONG, max_tokens=10, routing={"chat_id": "c"}), PREVIEW).status_code == 200
        assert world.upstream.calls == []
        assert world.audit("c").status_code == 404


def test_what_cannot_be_previewed_yet_is_refused_and_not_guessed(world: World):
    assert world.post({**chat(("user", 1)), "chat_id": "c"}, PREVIEW).status_code == 404
    inline = world.post({**chat(("user", 1)), "character": {}}, PREVIEW)
    assert (inline.status_code, inline.json()["error"]["path"]) == (400, "character")


def test_the_newest_audit_is_the_one_that_is_kept(world: World):
    first = world.post(chat(("user", 1), routing={"chat_id": "c"}))
    second = world.post(chat(("user", 2), routing={"chat_id": "c"}))
    generations = [answer.headers["x-bastion-generation-id"] for answer in (first, second)]
    assert generations[0] != generations[1]
    assert world.audit("c").json()["generation_id"] == generations[1]


def test_another_accounts_chat_is_not_there(world: World):
    world.post(chat(("user", 1), routing={"chat_id": "c"}))
    assert world.audit("c", key="sk-other").status_code == 404
    headers = {"authorization": "Bearer sk-other"}
    assert world.client.delete(world.url + "/api/v2/chats/c", headers=headers).status_code == 404
    assert world.audit("c").status_code == 200


def test_deleting_a_chat_deletes_its_audit_and_a_new_life_may_begin(world: World):
    world.post(chat(("user", 1), routing={"chat_id": "c"}))
    headers = {"authorization": "Bearer sk-acme"}
    assert world.client.delete(world.url + "/api/v2/chats/c", headers=headers).status_code == 204
    assert world.audit("c").status_code == 404
    world.post(chat(("user", 2), routing={"chat_id": "c"}))
    assert world.audit("c").json()["entries"][0]["tokens"] == 2


def test_a_generation_whose_process_is_gone_reads_as_lost(tmp_path: Path):
    clock = FixedClock()
    audits = MemoryAuditStore(clock)
    audits.failing.add("finish")
    for world in worlds(tmp_path, ports=Ports(accounts=MemoryAccounts(), audits=audits, clock=clock)):
        world.post(chat(("user", 1), routing={"chat_id": "c"}))
        assert world.audit("c").json()["status"] == "prepared"
        clock.advance(600 + GRACE + 1)
        lost = world.audit("c").json()
        assert (lost["status"], lost["error_code"]) == ("failed", "GENERATION_LOST")


def test_an_audit_expires_with_its_plan(tmp_path: Path):
    clock = FixedClock()
    ports = Ports(accounts=MemoryAccounts(), audits=MemoryAuditStore(clock), clock=clock)
    for world in worlds(tmp_path, ports=ports):
        world.post(chat(("user", 1), routing={"chat_id": "c"}))
        clock.advance(6.9 * 86_400)
        assert world.audit("c").status_code == 200
        clock.advance(0.2 * 86_400)
        assert world.audit("c").status_code == 404


def test_it_survives_a_restart(tmp_path: Path):
    for world in worlds(tmp_path):
        world.post(chat(("user", 1), routing={"chat_id": "c"}))
    for world in worlds(tmp_path):
        assert world.audit("c").json()["status"] == "completed"


def test_the_count_is_exact_and_keeps_nothing(world: World):
    counted = world.post(chat(*LONG, max_tokens=10, routing={"chat_id": "c"}), "/v1/chat/completions/count").json()
    assert counted == {
        "object": "token_count",
        "model": "small",
        "prompt_tokens": 60,
        "fits": False,
        "tokenizer": {"profile": "words", "approximate": False, "margin": 0},
        "budget": {
            "window": 60,
            "max_input": None,
            "reserve": 10,
            "limit": 50,
            "prompt_tokens": 60,
            "fixed_tokens": 0,
        },
        "messages": [2, 40, 15, 3],
    }
    assert world.upstream.calls == []
    assert world.audit("c").status_code == 404


def test_models_are_listed_with_what_a_client_needs_to_choose(world: World):
    listed = {model["id"]: model for model in world.get("/v1/models").json()["data"]}
    assert set(listed) == {"small", "large", "plain", "org/modèle", "unreachable", "gpt-4o"}
    assert listed["small"]["context_length"] == listed["small"]["max_model_len"] == 60
    assert listed["small"]["pricing"]["output"] == 2.0
    assert [model["id"] for model in world.get("/v1/models", "sk-other").json()["data"]] == ["small"]
    assert "plain" not in {model["id"] for model in world.get("/v1/models", "sk-strict").json()["data"]}


def test_one_model_is_shown_by_any_name_and_ids_may_hold_slashes(world: World):
    assert world.get("/v1/models/org/modèle").json()["id"] == "org/modèle"
    assert world.get("/v1/models/gpt-4o-2024-08-06").json()["context_length"] == 128000
    assert world.get("/v1/models/nothing").json()["error"]["code"] == "model_not_found"
    assert world.get("/v1/models/large", "sk-other").status_code == 403


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/nothing"])
def test_cors_answers_a_preflight_without_a_key_and_exposes_our_headers(tmp_path: Path, path: str):
    origin = {"origin": "https://app.example"}
    for world in worlds(tmp_path, BASTION_CORS_ORIGINS="https://app.example"):
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,x-odd"}
        preflight = world.client.options(world.url + path, headers={**origin, **asked})
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == "https://app.example"
        assert preflight.headers["access-control-allow-headers"] == "authorization,x-odd"
        answer = world.post(chat(("user", 1)), path, **origin)
        exposed = answer.headers["access-control-expose-headers"].lower()
        assert {"x-bastion-context-tokens", "x-request-id", "retry-after"} <= set(exposed.split(", "))
        theirs = ["x-ratelimit-limit-tokens-day", "anthropic-ratelimit-tokens-reset", "request-id", "x-should-retry"]
        world.upstream.headers += [(name, "7") for name in theirs]
        answer = world.post(chat(("user", 1)), **origin)
        assert set(theirs) <= set(answer.headers["access-control-expose-headers"].split(", "))
        foreign = world.post(chat(("user", 1)), path, origin="https://evil.example")
        assert "access-control-allow-origin" not in foreign.headers
