"""`POST /v1/chat/completions` over loopback: what the upstream gets, what the client sees, what is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bastion.bootstrap import Ports
from contextshift.fakes import FixedClock, MemoryAccounts, MemoryAuditStore
from gateway.world import LONG, World, chat, words, worlds
from serving import completion


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield from worlds(tmp_path)


TOKENS, WARNING, CUT = "x-bastion-context-tokens", "x-bastion-context-warning", "x-bastion-context-truncated"
SETTINGS, GENERATION = "x-bastion-context-settings", "x-bastion-generation-id"


# -- what passes unchanged ---------------------------------------------------------------------------


def test_a_request_that_fits_reaches_the_upstream_as_the_bytes_that_came(world: World):
    raw = (
        b'{ "messages":[ {"role":"user","content":"h\\u00e9 \xe6\xa8\xa1", "x": 1.0e2} ],\n  "model" : "large", "n":1 }'
    )
    answer = world.post(raw)
    assert answer.status_code == 200
    assert world.upstream.last.body == raw
    assert world.upstream.last.path == "/v1/chat/completions"
    assert CUT not in answer.headers
    assert WARNING not in answer.headers


def test_routing_is_taken_out_and_the_models_upstream_name_put_in(world: World):
    raw = b'{"model": "small", "routing": {"chat_id": "c"}, "messages": [{"role": "user", "content": "hi"}]}'
    world.post(raw)
    expected = b'{"model": "upstream-small", "messages": [{"role": "user", "content": "hi"}]}'
    assert world.upstream.last.body == expected


def test_the_answer_comes_back_byte_for_byte_with_its_status(world: World):
    world.upstream.body = completion("héllo  模型", prompt_tokens=1)
    answer = world.post(chat(("user", 1)))
    assert answer.content == world.upstream.body
    assert answer.headers["content-type"] == "application/json"


def test_headers_cross_by_an_allow_list_each_way(world: World):
    world.upstream.headers += [
        ("x-request-id", "req-1"),
        ("x-ratelimit-remaining-tokens", "9"),
        ("set-cookie", "a=b"),
        ("openai-organization", "org"),
    ]
    answer = world.post(
        chat(("user", 1)),
        **{
            "cookie": "session=1",
            "openai-organization": "org-mine",
            "x-stainless-lang": "python",
            "idempotency-key": "k1",
        },
    )
    sent = world.upstream.last.headers
    assert sent["authorization"] == "Bearer sk-upstream"
    assert (sent["x-extra"], sent["idempotency-key"]) == ("1", "k1")
    assert not {"cookie", "openai-organization", "x-stainless-lang"} & sent.keys()
    assert "sk-acme" not in str(sent)
    assert world.upstream.last.query == "api-version=7"
    assert answer.headers["x-request-id"] == "req-1"
    assert answer.headers["x-ratelimit-remaining-tokens"] == "9"
    assert not {"set-cookie", "openai-organization"} & answer.headers.keys()


def test_an_upstreams_error_comes_back_as_it_came_and_the_audit_ends_as_failed(world: World):
    world.upstream.status, world.upstream.body = 429, b'{"error": {"message": "slow down", "code": "rate"}}'
    world.upstream.headers += [("retry-after", "7")]
    answer = world.post(chat(("user", 1), routing={"chat_id": "c"}))
    assert (answer.status_code, answer.content) == (429, world.upstream.body)
    assert answer.headers["retry-after"] == "7"
    audit = world.audit("c").json()
    assert (audit["status"], audit["error_code"]) == ("failed", "UPSTREAM_429")
    assert "slow down" not in json.dumps(audit)


def test_paths_work_without_v1_too(world: World):
    assert world.post(chat(("user", 1)), "/chat/completions").status_code == 200


# -- what is done about a prompt that is too large -----------------------------------------------------


def test_history_is_cut_and_the_answer_says_so(world: World):
    answer = world.post(chat(*LONG, max_tokens=10))
    assert answer.headers[CUT] == "true"
    assert answer.headers[TOKENS] == "prompt=20, budget=50, reserve=10, margin=0, excluded=1, approximate=?0"
    assert [message["role"] for message in world.upstream.last.json["messages"]] == ["system", "assistant", "user"]


def test_b21_b24_kept_messages_keep_their_bytes_after_a_cut(world: World):
    kept = b'{ "content":"w \\u0077", "role":"user",  "odd":[1.0] }'
    raw = b'{"model":"small","messages":[{"role":"user","content":"%s"} , %s ]}' % (words(50).encode(), kept)
    world.post(raw)
    assert world.upstream.last.body == b'{"model":"upstream-small","messages":[%s ]}' % kept


def test_a_swap_names_both_models_and_counts_in_its_warning(world: World):
    answer = world.post(chat(*LONG, max_tokens=10, routing={"context_swapping": True}))
    assert answer.headers[WARNING] == 'swapped;from="small";to="large";needed=60;limit=50'
    assert world.upstream.last.json["model"] == "large"
    assert CUT not in answer.headers
    assert answer.headers[SETTINGS] == "context_swapping=?1;level=request, smart_truncation=?1;level=plan"


def test_b74_a_model_named_beyond_ascii_gives_an_ascii_header_and_a_readable_audit(world: World):
    request = chat(("user", 300), model="large", max_tokens=10, routing={"context_swapping": True, "chat_id": "c"})
    answer = world.post(request, key="sk-acme")
    assert answer.status_code == 200
    assert 'to=%"org/mod%c3%a8le"' in answer.headers[WARNING]
    assert all(value.isascii() for value in answer.headers.values())
    assert world.audit("c").json()["model"]["used"] == "org/modèle"


@pytest.mark.parametrize("stream", [False, True])
def test_overflow_is_a_400_in_the_known_wording_before_anything_is_sent(world: World, stream: bool):
    request = chat(("system", 60), ("user", 10), max_tokens=10, stream=stream, routing={"chat_id": "c"})
    answer = world.post(request)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"]) == (
        400,
        "context_length_exceeded",
        "invalid_request_error",
    )
    assert error["message"].startswith(
        "This model's maximum context length is 60 tokens. However, your messages resulted in 70 tokens. "
        "(context_length_exceeded)"
    )
    assert error["details"]["breakdown"]["over_by"] == 20
    assert answer.headers["x-should-retry"] == "false"
    assert answer.headers[TOKENS].startswith("prompt=70, budget=50, reserve=10")
    assert world.upstream.calls == []
    audit = world.audit("c").json()
    assert (audit["status"], audit["action"], audit["model"]["used"]) == ("failed", "refuse", None)
    assert audit["error_code"] == "TOKEN_BUDGET_EXCEEDED"
    assert len(audit["entries"]) == 2


def test_b37_a_reply_limit_at_fault_names_max_tokens_and_the_largest(world: World):
    answer = world.post(chat(("user", 5), ("assistant", 5), ("user", 5), max_tokens=55))
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["details"]["largest"]) == (400, "max_tokens", 20)
    assert world.upstream.calls == []


def test_b40_explicit_false_and_zero_win_and_null_means_not_set(world: World):
    routing = {"context_swapping": False, "reserve_tokens": 0, "smart_truncation": None}
    answer = world.post(chat(("user", 60), routing=routing))
    assert answer.headers[SETTINGS] == (
        "context_swapping=?0;level=request, smart_truncation=?1;level=plan, reserve_tokens=0;level=request"
    )
    assert "reserve=0" in answer.headers[TOKENS]


def test_routing_comes_from_the_header_where_the_body_has_none(world: World):
    header = {"X-Bastion-Routing": '{"context_swapping": true}'}
    assert WARNING in world.post(chat(*LONG, max_tokens=10), **header).headers
    body_wins = chat(*LONG, max_tokens=10, routing={"smart_truncation": True})
    assert WARNING not in world.post(body_wins, **header).headers
    wrong = world.post(chat(("user", 1)), **{"X-Bastion-Routing": '{"context_swapping": 1}'})
    assert wrong.json()["error"]["param"] == "X-Bastion-Routing.context_swapping"


def test_pinned_and_excluded_messages_are_named_by_index(world: World):
    world.post(chat(*LONG, max_tokens=10, routing={"pin": [1]}))
    assert [message["content"] for message in world.upstream.last.json["messages"]][1] == words(40)
    answer = world.post(chat(("user", 1), ("assistant", "out"), ("user", 1), routing={"exclude": [1]}))
    assert answer.headers[CUT] == "true"
    assert len(world.upstream.last.json["messages"]) == 2
    wrong = world.post(chat(("user", 1), routing={"pin": [1]}))
    assert wrong.json()["error"]["param"] == "routing.pin[0]"


def test_a_model_known_by_pattern_only_is_forwarded_estimated_and_uncut(world: World):
    answer = world.post(chat(("user", 5000), ("user", 1), model="wild-9", max_tokens=5))
    assert answer.status_code == 200
    assert "estimated" in answer.headers[WARNING]
    assert "unknown-window" in answer.headers[WARNING]
    assert len(world.upstream.last.json["messages"]) == 2


def test_a_silent_cut_by_the_upstream_is_told(world: World):
    world.upstream.body = completion(prompt_tokens=10)
    answer = world.post(chat(("user", 40), routing={"chat_id": "c"}))
    assert answer.headers[WARNING] == "silent-cut;counted=40;reported=10"
    assert {"code": "silent-cut", "counted": 40, "reported": 10} in world.audit("c").json()["diagnostics"]


@pytest.mark.parametrize("text", ["<|endoftext|><|im_start|>", "a" * 200_000, "\N{MAN}\u200d\N{WOMAN}" * 99])
def test_b27_lookalikes_of_control_tokens_are_plain_text(world: World, text: str):
    request = chat(("user", text), model="gpt-4o")
    answer = world.post(json.dumps(request, ensure_ascii=False).encode())
    assert answer.status_code == 200
    assert world.upstream.last.json["messages"][0]["content"] == text
    assert "approximate=?0" in answer.headers[TOKENS]


# -- who may -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Basic sk-acme", "Bearer nobody", "Bearer \xff"])
def test_without_a_good_key_nothing_is_done(world: World, authorization: str | None):
    headers = {} if authorization is None else {"authorization": authorization.encode("latin-1")}
    answer = world.client.post(world.url + "/v1/chat/completions", json=chat(("user", 1)), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    assert world.upstream.calls == []


def test_a_key_may_do_what_its_scopes_say(world: World):
    refused = world.post(chat(("user", 1)), key="sk-acme-preview")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "scope_missing")
    assert world.post(chat(("user", 1)), "/api/v2/context-preview", key="sk-acme-preview").status_code == 200
    assert world.audit("c", key="sk-acme-preview").status_code == 403


def test_models_are_those_the_account_may_use(world: World):
    missing = world.post(chat(("user", 1), model="nothing"))
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")
    forbidden = world.post(chat(("user", 1), model="large"), key="sk-other")
    assert (forbidden.status_code, forbidden.json()["error"]["code"]) == (403, "model_not_allowed")
    region = world.post(chat(("user", 1), model="plain"), key="sk-strict")
    assert region.json()["error"]["details"] == {"model": "plain", "rule": "compliance-region"}
    cost = world.post(chat(("user", 90), model="large", max_tokens=90), key="sk-strict")
    assert cost.json()["error"]["details"] == {"model": "large", "rule": "cost"}
    strategy = world.post(chat(("user", 1), routing={"context_strategy": "summarize"}))
    assert strategy.json()["error"]["code"] in ("STRATEGY_NOT_IN_PLAN", "unknown_strategy")
    assert world.upstream.calls == []


# -- failures ------------------------------------------------------------------------------------------


def test_an_unreachable_provider_is_a_502_that_may_be_tried_again(world: World):
    answer = world.post(chat(("user", 1), model="unreachable", routing={"chat_id": "c"}))
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unreachable")
    assert "x-should-retry" not in answer.headers
    assert GENERATION in answer.headers
    assert world.audit("c").json()["error_code"] == "PROVIDER_UNREACHABLE"


def test_our_deadline_is_a_504_that_must_not_be_tried_again(tmp_path: Path):
    for world in worlds(tmp_path, BASTION_TIMEOUT="1"):
        world.upstream.pause = 3.0
        answer = world.post(chat(("user", 1), routing={"chat_id": "c"}))
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "upstream_timeout")
        assert answer.headers["x-should-retry"] == "false"
        assert TOKENS in answer.headers
        assert world.audit("c").json()["error_code"] == "PROVIDER_TIMEOUT"


def failing(tmp_path: Path, *verbs: str) -> Iterator[tuple[World, MemoryAuditStore]]:
    clock = FixedClock()
    audits = MemoryAuditStore(clock)
    audits.failing.update(verbs)
    ports = Ports(accounts=MemoryAccounts(), audits=audits)
    for world in worlds(tmp_path, ports=ports):
        yield world, audits


@pytest.mark.parametrize("verb", ["begin", "prepare", "commit"])
def test_an_audit_that_cannot_be_written_warns_unless_the_account_requires_it(tmp_path: Path, verb: str):
    for world, _ in failing(tmp_path, verb):
        request = chat(("user", 1), routing={"chat_id": "c"})
        answer = world.post(request)
        assert (answer.status_code, answer.headers[WARNING]) == (200, "audit-unavailable")
        refused = world.post(request, key="sk-strict")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "store_unavailable")
        assert len(world.upstream.calls) == 1


@pytest.mark.parametrize("verb", ["finish", "sweep"])
def test_a_failed_end_never_changes_the_answer(tmp_path: Path, verb: str):
    for world, _ in failing(tmp_path, verb):
        answer = world.post(chat(("user", 1), routing={"chat_id": "c"}))
        assert answer.status_code == 200
        assert WARNING not in answer.headers


def test_settings_that_cannot_be_read_send_nothing(tmp_path: Path):
    clock = FixedClock()
    accounts = MemoryAccounts()
    accounts.failing.add("access")
    for world in worlds(tmp_path, ports=Ports(accounts=accounts, audits=MemoryAuditStore(clock))):
        answer = world.post(chat(("user", 1)), key="bst-acme-unknown")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_unavailable")
        assert world.upstream.calls == []


def test_every_call_leaves_one_event_without_content(world: World, caplog: pytest.LogCaptureFixture):
    with caplog.at_level("INFO", logger="bastion"):
        world.post(chat(("user", "a secret question"), routing={"chat_id": "c"}))
        world.post(chat(("user", "another secret " + words(90))))
    events = [json.loads(record.message) for record in caplog.records if record.name == "bastion"]
    assert [(event["event"], event["code"]) for event in events] == [("call", None), ("call", "TOKEN_BUDGET_EXCEEDED")]
    assert events[0]["account"] == "acme"
    assert events[0]["reported_tokens"] == 10_000
    assert "secret" not in caplog.text
    assert "sk-" not in caplog.text


def test_unknown_routes_and_methods_answer_in_openais_shape(world: World):
    for path in ("/v1/files", "/v1/nothing", "/"):
        answer = world.post(b"{}", path)
        assert answer.status_code == 404
        assert answer.json()["error"]["type"] == "invalid_request_error"
    wrong = world.get("/v1/chat/completions")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
    assert set(world.get("/api/v2/nothing").json()["error"]) == {"code", "message"}


def test_health_needs_no_account(world: World):
    assert httpx.get(world.url + "/health").json()["status"] == "ok"


# -- counting that is not needed -----------------------------------------------------------------------


def test_where_bytes_prove_that_it_fits_the_header_says_that_the_number_is_a_bound(world: World):
    request = chat(("user", 50), model="gpt-4o")
    bound = world.post(request).headers[TOKENS]
    assert "bound=?1" in bound
    named = world.post({**request, "routing": {"chat_id": "c"}}).headers[TOKENS]
    assert "bound" not in named
    exact = world.post(request, "/v1/chat/completions/count").json()["prompt_tokens"]
    assert named.startswith(f"prompt={exact},")
    assert int(bound.split(",")[0].removeprefix("prompt=")) > exact


def test_b54_a_silent_cut_is_told_even_where_nothing_was_counted(world: World):
    request = chat(("user", "The committee met on Tuesday and agreed to publish it. " * 500), model="gpt-4o")
    counted = world.post(request, "/v1/chat/completions/count").json()["prompt_tokens"]
    world.upstream.body = completion(prompt_tokens=counted // 3)
    answer = world.post(request)
    assert "bound=?1" in answer.headers[TOKENS]
    assert answer.headers[WARNING] == f"silent-cut;counted={counted};reported={counted // 3}"
    world.upstream.body = completion(prompt_tokens=counted)
    assert WARNING not in world.post(request).headers
