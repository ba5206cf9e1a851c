"""The streaming runtime against a runtime API of our own, with apps that each show one thing."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from runtime_api import RuntimeApi
from sample_events import load_event

from bastion import streaming
from bastion.lambda_events import App, Receive, Scope, Send
from bastion.runtime_api import RuntimeApi as Client

ROOT = Path(__file__).parents[2]
REQUEST = load_event("http-chat-completions")
PATIENCE = 20.0

Run = Callable[[App], None]


@pytest.fixture
def run(runtime_api: RuntimeApi) -> Iterator[Run]:
    """Serves an app in a thread until the test ends."""
    threads = []

    def start(app: App) -> None:
        def serve() -> None:
            with pytest.raises(RuntimeError, match="answered 410 to GET next"):
                streaming.serve(app, Client(runtime_api.address))

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[-1].start()

    yield start
    runtime_api.waiting.put(None)
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


async def start(send: Send, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def body(send: Send, data: bytes = b"", *, more: bool = False) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    await start(send, 200, (b"content-type", b"application/json"))
    await body(send, message["body"])


def test_a_chunk_arrives_before_the_next_one_is_produced(run: Run, runtime_api: RuntimeApi) -> None:
    seen = threading.Event()

    async def waits_for_its_reader(scope: Scope, receive: Receive, send: Send) -> None:
        await start(send, 200, (b"content-type", b"text/event-stream"))
        await body(send, b"data: one\n\n", more=True)
        assert await asyncio.to_thread(seen.wait, PATIENCE)
        await body(send, b"data: two\n\n", more=True)
        await body(send)

    run(waits_for_its_reader)
    answer = runtime_api.invoke(REQUEST)
    answer.wait_for_body(b"data: one\n\n")
    assert b"two" not in answer.body
    assert not answer.ended
    seen.set()
    assert answer.wait().body == b"data: one\n\ndata: two\n\n"
    assert answer.chunks[1:] == [b"data: one\n\n", b"data: two\n\n"]
    assert answer.trailers == {}


def test_the_prelude_carries_status_headers_and_cookies(run: Run, runtime_api: RuntimeApi) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await start(
            send,
            201,
            (b"Content-Type", b"text/plain"),
            (b"content-length", b"2"),
            (b"connection", b"keep-alive"),
            (b"transfer-encoding", b"chunked"),
            (b"vary", b"origin"),
            (b"vary", b"accept"),
            (b"set-cookie", b"a=1, 2"),
            (b"set-cookie", b"b=2"),
            (b"x-note", "é".encode("latin-1")),
        )
        await body(send, b"ok")

    run(app)
    answer = runtime_api.invoke(REQUEST).wait()
    assert answer.headers["content-type"] == "application/vnd.awslambda.http-integration-response"
    assert answer.headers["lambda-runtime-function-response-mode"] == "streaming"
    assert answer.prelude == {
        "statusCode": 201,
        "headers": {"content-type": "text/plain", "vary": "origin, accept", "x-note": "?"},
        "cookies": ["a=1, 2", "b=2"],
    }
    assert answer.body == b"ok"


@pytest.mark.parametrize("status", [204, 302, 304])
def test_an_answer_without_a_body_has_a_prelude_and_an_end(status: int, run: Run, runtime_api: RuntimeApi) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await start(send, status)
        await body(send)

    run(app)
    answer = runtime_api.invoke(REQUEST).wait()
    assert answer.prelude["statusCode"] == status
    assert answer.chunks[0].endswith(b"\x00" * 8)
    assert (answer.body, answer.trailers) == (b"", {})


def test_a_failure_in_the_middle_goes_into_trailers(run: Run, runtime_api: RuntimeApi) -> None:
    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        await start(send)
        await body(send, b"half", more=True)
        raise LookupError("the prompt said: secret")

    run(breaks)
    answer = runtime_api.invoke(REQUEST).wait()
    assert answer.body == b"half"
    assert answer.trailers["lambda-runtime-function-error-type"] == "Function.LookupError"
    assert answer.streamed_error["errorType"] == "Function.LookupError"
    assert "in breaks" in "".join(answer.streamed_error["stackTrace"])
    assert "secret" not in str(answer.streamed_error["errorMessage"])


def test_an_answer_that_just_stops_is_not_taken_for_a_complete_one(run: Run, runtime_api: RuntimeApi) -> None:
    async def stops(scope: Scope, receive: Receive, send: Send) -> None:
        await start(send)
        await body(send, b"half", more=True)

    run(stops)
    assert "lambda-runtime-function-error-type" in runtime_api.invoke(REQUEST).wait().trailers


def test_a_failure_before_the_start_is_an_invocation_error(run: Run, runtime_api: RuntimeApi) -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise LookupError("the prompt said: secret")

    run(fails)
    answer = runtime_api.invoke(REQUEST).wait()
    assert answer.chunks == []
    assert answer.error is not None
    assert answer.error["errorType"] == "Function.LookupError"
    assert "secret" not in answer.error["errorMessage"]


def test_a_failure_after_the_end_changes_nothing(run: Run, runtime_api: RuntimeApi) -> None:
    async def late(scope: Scope, receive: Receive, send: Send) -> None:
        await echo(scope, receive, send)
        raise LookupError

    run(late)
    first = runtime_api.invoke(REQUEST).wait()
    second = runtime_api.invoke(REQUEST).wait()
    assert first.error is second.error is None
    assert first.trailers == second.trailers == {}


def test_disconnect_is_told_only_when_the_answer_is_over(run: Run, runtime_api: RuntimeApi) -> None:
    order: list[str] = []

    async def watches(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

        async def watch() -> None:
            order.append((await receive())["type"])

        watcher = asyncio.create_task(watch())
        await start(send)
        await body(send, b"x", more=True)
        await asyncio.sleep(0.05)
        order.append("end")
        await body(send)
        await watcher

    run(watches)
    runtime_api.invoke(REQUEST).wait()
    runtime_api.invoke(REQUEST).wait()
    assert order[:2] == ["end", "http.disconnect"]


def test_a_cut_connection_is_an_oserror_of_send_and_a_disconnect(run: Run, runtime_api: RuntimeApi) -> None:
    seen: list[str] = []

    async def talks(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await start(send)
        try:
            while True:
                await body(send, b"x" * 65536, more=True)
        except OSError:
            seen.append((await receive())["type"])

    run(talks)
    runtime_api.invoke(REQUEST, cut_after=3)
    second = runtime_api.invoke(load_event("scheduled-ping")).wait()
    assert seen == ["http.disconnect"]
    assert second.error is None


def test_the_scope_says_when_the_invocation_ends(run: Run, runtime_api: RuntimeApi) -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        await echo(scope, receive, send)

    run(app)
    before = time.time()
    runtime_api.invoke(REQUEST, seconds=100).wait()
    assert before + 99.9 < scopes[0]["bastion.deadline"] < time.time() + 100.1
    assert 0 < scopes[0]["aws.context"].get_remaining_time_in_millis() <= 100_000


def test_work_left_behind_ends_before_the_next_invocation(run: Run, runtime_api: RuntimeApi) -> None:
    order: list[str] = []
    tasks = set()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        order.append("request")

        async def sweep() -> None:
            await asyncio.sleep(0.05)
            order.append("swept")

        tasks.add(asyncio.create_task(sweep()))
        await echo(scope, receive, send)

    run(app)
    runtime_api.invoke(REQUEST)
    runtime_api.invoke(REQUEST).wait()
    assert order[:3] == ["request", "swept", "request"]


def test_the_trace_id_is_the_invocations_own(run: Run, runtime_api: RuntimeApi) -> None:
    seen: list[str | None] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(os.environ.get("_X_AMZN_TRACE_ID"))
        await echo(scope, receive, send)

    run(app)
    runtime_api.invoke(REQUEST, trace_id="Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700").wait()
    runtime_api.invoke(REQUEST).wait()
    assert seen == ["Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700", None]


def test_a_ping_is_answered_without_the_app(run: Run, runtime_api: RuntimeApi) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("a ping reached the app")

    run(app)
    answer = runtime_api.invoke(load_event("scheduled-ping")).wait()
    assert answer.body == b'{"status": "ok"}'
    assert "lambda-runtime-function-response-mode" not in answer.headers


@pytest.mark.parametrize("event", [{"Records": [{"body": "x"}]}, [], "text", None, {"requestContext": {}}])
def test_an_unknown_event_is_a_clear_error_and_the_next_one_is_served(
    event: Any, run: Run, runtime_api: RuntimeApi
) -> None:
    run(echo)
    refused = runtime_api.invoke(event).wait()
    assert refused.error is not None
    assert refused.error["errorType"] == "Function.UnknownEvent"
    assert runtime_api.invoke(REQUEST).wait().prelude["statusCode"] == 200


@pytest.mark.parametrize("kind", ["rest", "http"])
@pytest.mark.parametrize("variant", ["", "-base64", "-staged"])
def test_every_event_variant_is_the_same_request(kind: str, variant: str, run: Run, runtime_api: RuntimeApi) -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        await echo(scope, receive, send)

    run(app)
    answer = runtime_api.invoke(load_event(f"{kind}-chat-completions{variant}")).wait()
    assert answer.body.decode() == load_event("rest-chat-completions")["body"]
    assert (scopes[0]["method"], scopes[0]["path"]) == ("POST", "/v1/chat/completions")
    headers = {bytes(name): bytes(value) for name, value in scopes[0]["headers"]}
    assert headers[b"content-type"] == b"application/json"


def test_a_failing_start_is_reported_and_ends_the_process(runtime_api: RuntimeApi) -> None:
    code = """
from bastion.streaming import main
def load():
    raise KeyError("BASTION_CHATS_TABLE")
main(load)
"""
    environment = {
        **os.environ,
        "AWS_LAMBDA_RUNTIME_API": runtime_api.address,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "functions"), str(ROOT / "layers/core")]),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, timeout=PATIENCE, capture_output=True, check=False
    )
    error = runtime_api.init_errors.get(timeout=PATIENCE)
    assert done.returncode == 1
    assert error["errorType"] == "Function.KeyError"
    assert "BASTION_CHATS_TABLE" in error["errorMessage"]
