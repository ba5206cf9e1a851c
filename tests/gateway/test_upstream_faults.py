"""What an upstream may do wrong: a clear error with a stable code, bounded time and memory, the audit ended."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.test_streaming import EVENTS, ended, stream
from gateway.world import World, chat, worlds
from serving import completion

REFUSAL = json.dumps(
    {
        "error": {
            "message": "This model's maximum context length is 50 tokens. However, your messages resulted in "
            "60 tokens.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
    }
).encode()
SHORT = (("system", 2), ("user", 20), ("assistant", 10), ("user", 3))
"""35 words: they fit `small`."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield from worlds(tmp_path)


def request(*said: tuple[str, int | str], **fields: Any) -> dict[str, Any]:
    routing = {"chat_id": "c", **fields.pop("routing", {})}
    return chat(*(said or SHORT), routing=routing, max_tokens=5, **fields)


# -- overflows that only the upstream saw ------------------------------------------------------------------


def test_a_prompt_that_the_upstream_refuses_is_sent_once_more_and_strictly_smaller(world: World):
    world.upstream.then(REFUSAL, 400)
    answer = world.post(request())
    assert answer.status_code == 200
    first, second = (len(call.json["messages"]) for call in world.upstream.calls)
    assert second < first
    assert answer.headers["x-bastion-context-truncated"] == "true"
    said = answer.headers["x-bastion-context-warning"]
    assert 'upstream-overflow;model="small";kind=context-length;limit=50;requested=60' in said
    audit = world.audit("c").json()
    assert (audit["status"], audit["action"]) == ("completed", "shift")
    assert audit["diagnostics"][0] == {
        "code": "upstream-overflow",
        "model": "small",
        "kind": "context-length",
        "limit": 50,
        "requested": 60,
    }
    assert len(audit["messages"]) == second


def test_a_second_refusal_is_the_end(world: World):
    world.upstream.status, world.upstream.body = 400, REFUSAL
    answer = world.post(request())
    assert len(world.upstream.calls) == 2
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "context_length_exceeded")
    assert error["details"] == {"kind": "context_length", "limit": 50, "requested": 60, "reported_by": "provider"}
    assert answer.headers["x-should-retry"] == "false"
    assert "maximum context length is 50 tokens" in error["message"]
    audit = world.audit("c").json()
    assert (audit["status"], audit["error_code"]) == ("failed", "TOKEN_BUDGET_EXCEEDED")


def test_without_leave_to_cut_or_swap_the_refusal_comes_back_in_our_words(world: World):
    world.upstream.status, world.upstream.body = 400, REFUSAL
    answer = world.post(request(routing={"smart_truncation": False}))
    assert len(world.upstream.calls) == 1
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert "prompt=35" in answer.headers["x-bastion-context-tokens"]


def test_what_is_protected_is_not_cut_to_please_an_upstream(world: World):
    world.upstream.status, world.upstream.body = 400, REFUSAL
    answer = world.post(request(("system", 2), ("user", 33)))
    assert (answer.json()["error"]["code"], len(world.upstream.calls)) == ("context_length_exceeded", 1)


def test_where_swapping_is_allowed_a_refused_prompt_goes_to_a_larger_model_whole(world: World):
    world.upstream.then(REFUSAL, 400)
    answer = world.post(request(routing={"context_swapping": True}))
    assert [call.json["model"] for call in world.upstream.calls] == ["upstream-small", "large"]
    assert world.upstream.last.json["messages"] == world.upstream.calls[0].json["messages"]
    assert "swapped" in answer.headers["x-bastion-context-warning"]
    assert world.audit("c").json()["model"]["used"] == "large"


@pytest.mark.parametrize("numbers", [True, False])
def test_a_model_of_unknown_window_is_cut_only_by_a_limit_that_its_provider_said(world: World, numbers: bool):
    refusal = REFUSAL if numbers else b'{"error": {"code": "context_length_exceeded", "message": "too long"}}'
    world.upstream.then(refusal, 400)
    answer = world.post(request(model="wild-1"))
    assert answer.status_code == (200 if numbers else 400)
    assert len(world.upstream.calls) == (2 if numbers else 1)


def test_without_numbers_a_quarter_less_is_tried(world: World):
    world.upstream.then(b'{"error": {"code": "context_length_exceeded", "message": "too long"}}', 400)
    answer = world.post(request())
    assert answer.status_code == 200
    assert len(world.upstream.last.json["messages"]) < 4


ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'


@pytest.mark.parametrize(
    "before", [b"", b": processing\n\n", b'data: {"choices":[],"prompt_filter_results":[]}\n\n', ROLE]
)
def test_b48_an_overflow_inside_a_200_stream_is_a_json_400(world: World, before: bytes):
    event = b"data: " + json.dumps({"choices": [], **json.loads(REFUSAL)}).encode() + b"\n\n"
    world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], stream(before, event)
    answer = world.post(request(stream=True, routing={"smart_truncation": False}))
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert ended(world)["status"] == "failed"


@pytest.mark.parametrize("streams", [True, False])
def test_b48_an_error_beside_an_empty_choice_is_one_too(world: World, streams: bool):
    empty = {"index": 0, "delta" if streams else "message": {"content": ""}, "finish_reason": "error"}
    error = json.loads(REFUSAL)["error"]
    for answer in ({"choices": [empty], "error": error}, {"choices": [{**empty, "error": error}]}):
        if streams:
            events = b"data: " + json.dumps(answer).encode() + b"\n\ndata: [DONE]\n\n"
            world.upstream.then(stream(events), content_type="text/event-stream")
        else:
            world.upstream.then(json.dumps(answer).encode())
        assert world.post(request(stream=streams)).headers["x-bastion-context-truncated"] == "true"


def test_a_stream_whose_lines_end_with_a_carriage_return_is_not_held(world: World):
    events = [event.replace(b"\n", b"\r") for event in EVENTS]
    world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], stream(*events)
    assert world.post(request(stream=True)).content == b"".join(events)
    assert ended(world)["usage"]["prompt_tokens"] == 40


def test_b48_or_one_recovery_of_which_the_client_sees_only_the_second_stream(world: World):
    event = b"data: " + REFUSAL.replace(b"\n", b"") + b"\n\n"
    world.upstream.then(stream(event), content_type="text/event-stream")
    world.upstream.then(stream(*EVENTS), content_type="text/event-stream")
    answer = world.post(request(stream=True))
    assert answer.content == b"".join(EVENTS)
    assert answer.headers["x-bastion-context-truncated"] == "true"
    assert ended(world)["status"] == "completed"


def test_after_the_first_content_an_error_is_passed_on_as_it_came(world: World):
    event = b"data: " + REFUSAL.replace(b"\n", b"") + b"\n\n"
    world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], stream(EVENTS[0], event)
    assert world.post(request(stream=True)).content == EVENTS[0] + event
    assert (ended(world)["error_code"], len(world.upstream.calls)) == ("UPSTREAM_STREAM_ERROR", 1)


def test_another_error_in_place_of_a_stream_is_passed_on_as_it_came(world: World):
    event = b'data: {"error":{"message":"no","code":"server_error"}}\n\n'
    world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], stream(event)
    assert world.post(request(stream=True)).content == event
    assert ended(world)["status"] == "failed"


def test_an_overflow_inside_a_200_answer_is_recognised_too(world: World):
    world.upstream.then(REFUSAL, 200)
    assert world.post(request()).headers["x-bastion-context-truncated"] == "true"


ABSURD = ["1" + "0" * 400, "-5", "true", "1e999", "NaN", '"9"', "1000000000001", "[1]"]


@pytest.mark.parametrize("number", ABSURD)
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "cached_tokens"])
def test_absurd_usage_costs_nobody_an_answer(world: World, number: str, name: str):
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    if name == "cached_tokens":
        usage["prompt_tokens_details"] = {name: "?"}
    else:
        usage[name] = "?"
    body = completion(usage=usage).replace(b'"?"', number.encode())
    world.upstream.body = body
    answer = world.post(request())
    assert (answer.status_code, answer.content) == (200, body)
    assert ended(world)["status"] == "completed"
    events = b"data: " + b"".join(body.split(b"\n")) + b"\n\ndata: [DONE]\n\n"
    world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], stream(events)
    assert world.post(request(stream=True)).content == events
    assert ended(world)["status"] == "completed"


@pytest.mark.parametrize("number", ABSURD)
def test_absurd_numbers_of_a_refusal_pass_with_it(world: World, number: str):
    refusal = b'{"error":{"message":"x","n_prompt_tokens":%s,"n_ctx":100}}' % number.encode()
    world.upstream.then(refusal, 400)
    answer = world.post(request())
    assert (answer.status_code, answer.content) == (400, refusal)


# -- answers that make no sense -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (completion()[:-20], "application/json"),
        (b"<html>welcome</html>", "text/html"),
        (b'{"choices": "\xff\xfe"}', "application/json"),
        (b"", "application/json"),
        (b"[1]", "application/json"),
        (b"[" * 100_000, "application/json"),
    ],
    ids=["truncated", "html", "invalid utf-8", "empty", "no object", "nested"],
)
def test_a_good_status_without_an_answer_is_a_502(world: World, body: bytes, kind: str):
    world.upstream.headers, world.upstream.body = [("content-type", kind)], body
    answer = world.post(request())
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_broken")
    assert answer.headers["x-should-retry"] == "false"
    assert (ended(world)["status"], len(world.upstream.calls)) == ("failed", 1)


def test_an_error_page_keeps_its_status_and_bytes(world: World):
    world.upstream.status, world.upstream.body = 503, b"<html>busy</html>"
    world.upstream.headers = [("content-type", "text/html")]
    answer = world.post(request())
    assert (answer.status_code, answer.content) == (503, b"<html>busy</html>")
    assert ended(world)["error_code"] == "UPSTREAM_503"


def test_a_redirect_is_not_followed_and_not_passed_on(world: World):
    world.upstream.status, world.upstream.headers = (
        307,
        [("location", "http://127.0.0.1:9/v1"), ("content-length", "0")],
    )
    world.upstream.body = b""
    assert (world.post(request()).status_code, ended(world)["error_code"]) == (502, "PROVIDER_BROKEN")


def test_a_stream_without_any_event_is_never_an_empty_success(world: World):
    for chunks in ((), (b": only a comment\n\n",)):
        world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], stream(*chunks)
        answer = world.post(request(stream=True))
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_broken")


def test_events_of_the_wrong_type_are_a_stream_where_one_was_asked_for(world: World):
    world.upstream.headers, world.upstream.body = [("content-type", "text/plain")], stream(*EVENTS)
    assert world.post(request(stream=True)).content == b"".join(EVENTS)
    assert ended(world)["usage"]["prompt_tokens"] == 40


def test_an_endless_comment_is_let_go_of_at_the_deadline(tmp_path: Path):
    async def waiting() -> AsyncIterator[bytes]:
        while True:
            yield b": wait\n\n"
            await asyncio.sleep(0.05)

    for world in worlds(tmp_path, BASTION_TIMEOUT="1"):
        world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], waiting
        answer = world.post(request(stream=True))
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "upstream_timeout")
        assert answer.headers["x-should-retry"] == "false"
        assert ended(world)["error_code"] == "PROVIDER_TIMEOUT"


def test_a_stream_whose_first_content_is_too_late_is_a_504_and_a_buffered_answer_may_take_its_time(tmp_path: Path):
    async def late() -> AsyncIterator[bytes]:
        await asyncio.sleep(1.5)
        yield EVENTS[0]

    for world in worlds(tmp_path, BASTION_FIRST_BYTE_TIMEOUT="1"):
        world.upstream.pause = 1.2
        assert world.post(request()).status_code == 200
        world.upstream.pause = 0
        world.upstream.headers, world.upstream.body = [("content-type", "text/event-stream")], late
        assert world.post(request(stream=True)).status_code == 504


def test_slow_drips_end_at_the_deadline(tmp_path: Path):
    async def drips() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    for world in worlds(tmp_path, BASTION_TIMEOUT="1"):
        world.upstream.body = drips
        assert (world.post(request()).status_code, ended(world)["error_code"]) == (504, "PROVIDER_TIMEOUT")


# -- repeats -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
def test_an_upstream_that_puts_us_off_for_a_moment_is_asked_again(world: World, status: int):
    world.upstream.then(b'{"error": {"message": "busy"}}', status, retry_after="0")
    assert world.post(request()).status_code == 200
    assert len(world.upstream.calls) == 2
    assert world.upstream.calls[0].body == world.upstream.calls[1].body


@pytest.mark.parametrize(("status", "headers"), [(429, {"retry_after": "20"}), (429, {}), (500, {"retry_after": "0"})])
def test_a_long_wait_or_another_error_is_the_client_s_to_judge(world: World, status: int, headers: dict[str, str]):
    world.upstream.then(b'{"error": {"message": "busy"}}', status, **headers)
    answer = world.post(request())
    assert (answer.status_code, len(world.upstream.calls)) == (status, 1)
    assert answer.headers.get("retry-after") == headers.get("retry_after")
    assert answer.content == b'{"error": {"message": "busy"}}'


def test_whether_to_ask_again_is_the_upstream_s_to_say(world: World):
    world.upstream.then(b'{"error": {"message": "no"}}', 500, x_should_retry="false")
    assert world.post(request()).headers["x-should-retry"] == "false"
    world.upstream.then(b'{"error": {"message": "no"}}', 500, x_should_retry="false")
    assert world.post({"model": "large", "input": "x"}, "/v1/embeddings").headers["x-should-retry"] == "false"


def test_an_upstream_that_is_always_busy_is_asked_three_times(world: World):
    world.upstream.status, world.upstream.body = 503, b"{}"
    world.upstream.headers += [("retry-after-ms", "10")]
    assert (world.post(request()).status_code, len(world.upstream.calls)) == (503, 3)


def test_repeats_stay_within_the_deadline(tmp_path: Path):
    for world in worlds(tmp_path, BASTION_TIMEOUT="1"):
        world.upstream.status, world.upstream.body = 503, b"{}"
        world.upstream.headers += [("retry-after", "1")]
        started = time.monotonic()
        assert (world.post(request()).status_code, len(world.upstream.calls)) == (503, 1)
        assert time.monotonic() - started < 1


def test_an_upstream_that_cannot_be_reached_is_a_502_that_says_so(world: World):
    answer = world.post(request(model="unreachable"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unreachable")
    assert ended(world)["error_code"] == "PROVIDER_UNREACHABLE"
