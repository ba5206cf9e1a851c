"""StreamFunction as built: Lambda's own way of starting it, wrapper and all, under our runtime API."""

import json
import os
import queue
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import artefact
import pytest
from provider import ANSWER
from provider import event as provider_event
from rie import Emulator, emulator
from runtime_api import RuntimeApi
from sample_events import load_event
from world import World

WRAPPER = artefact.BUILD / "StreamFunction/bastion/streaming-bootstrap"
# What Lambda hands to a wrapper: the interpreter, and the managed bootstrap that it is to replace.
COMMAND: list[str | Path] = [WRAPPER, artefact.PYTHON, "/var/runtime/bootstrap.py"]


@contextmanager
def stream_function(api: RuntimeApi, **more: str) -> Iterator["subprocess.Popen[bytes]"]:
    environment = artefact.environment("StreamFunction", AWS_LAMBDA_RUNTIME_API=api.address, **more)
    process = subprocess.Popen(
        COMMAND,
        cwd=artefact.BUILD / "StreamFunction",
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(5)


@pytest.mark.parametrize("name", ["rest-health", "rest-health-staged", "http-health", "http-health-staged"])
def test_health_is_streamed_whatever_the_event_version_and_the_stage(name: str, runtime_api: RuntimeApi) -> None:
    with stream_function(runtime_api):
        answer = runtime_api.invoke(load_event(name)).wait()
    assert answer.prelude["statusCode"] == 200
    assert json.loads(answer.body)["status"] == "ok"
    assert answer.trailers == {}


def test_pings_and_unknown_events_leave_it_running(runtime_api: RuntimeApi) -> None:
    with stream_function(runtime_api):
        ping = runtime_api.invoke(load_event("scheduled-ping")).wait()
        unknown = runtime_api.invoke({"Records": []}).wait()
        health = runtime_api.invoke(load_event("rest-health")).wait()
    assert ping.body == b'{"status": "ok"}'
    assert unknown.error is not None
    assert unknown.error["errorType"] == "Function.UnknownEvent"
    assert health.prelude["statusCode"] == 200


def test_a_start_that_fails_is_an_init_error(runtime_api: RuntimeApi, tmp_path: Path) -> None:
    (tmp_path / "starlette.py").write_text("raise ImportError('no starlette today')")
    with stream_function(runtime_api, PYTHONPATH=f"{tmp_path}{os.pathsep}{artefact.python_path('')}") as process:
        assert process.wait(20) == 1
    try:
        error = runtime_api.init_errors.get_nowait()
    except queue.Empty:
        pytest.fail("nothing was reported")
    assert error["errorType"] == "Function.ImportError"
    assert "no starlette today" in error["errorMessage"]


def test_awss_own_emulator_takes_its_answers_too(tmp_path: Path) -> None:
    with emulator("StreamFunction", COMMAND, tmp_path / "log", _HANDLER="bastion.streaming.main") as function:
        assert_streamed(function, "rest-health")
        assert_streamed(function, "http-health-staged")


def assert_streamed(function: Emulator, name: str) -> None:
    prelude, _, body = function.invoke_raw(load_event(name)).partition(b"\x00" * 8)
    assert json.loads(prelude)["statusCode"] == 200
    assert json.loads(body)["status"] == "ok"


def streamed_call(world: World, name: str) -> Any:
    event = world.signed(load_event(name), **{"x-bastion-routing": json.dumps({"chat_id": f"stream-{name}"})})
    event["body"] = json.dumps({**json.loads(event["body"]), "stream": True})
    return event


@pytest.mark.parametrize("name", ["rest-chat-completions", "http-chat-completions"])
def test_the_providers_first_words_arrive_before_it_says_the_next(
    name: str, world: World, runtime_api: RuntimeApi
) -> None:
    world.provider.gate.clear()
    with stream_function(runtime_api, **world.environment):
        answer = runtime_api.invoke(streamed_call(world, name))
        answer.wait_for_body(b'"one"')
        assert b'"two"' not in answer.body
        assert not answer.ended
        world.provider.gate.set()
        answer.wait()
    assert answer.prelude["statusCode"] == 200
    assert answer.prelude["headers"]["content-type"].startswith("text/event-stream")
    assert "x-bastion-context-tokens" in answer.prelude["headers"]
    assert answer.body == provider_event("one") + provider_event("two") + b"data: [DONE]\n\n"
    assert answer.trailers == {}


def test_the_audit_of_a_stream_is_ended_when_the_next_call_comes(world: World, runtime_api: RuntimeApi) -> None:
    read = world.signed(load_event("rest-health"))
    read["path"] = "/api/v2/chats/stream-rest-chat-completions/context-audit"
    read["requestContext"]["path"] = f"/prod{read['path']}"
    with stream_function(runtime_api, **world.environment):
        runtime_api.invoke(streamed_call(world, "rest-chat-completions")).wait()
        audit = json.loads(runtime_api.invoke(read).wait().body)
    assert audit["status"] == "completed"


def test_an_unstreamed_answer_goes_the_same_way(world: World, runtime_api: RuntimeApi) -> None:
    with stream_function(runtime_api, **world.environment):
        answer = runtime_api.invoke(world.signed(load_event("rest-chat-completions-base64"))).wait()
    assert answer.prelude["statusCode"] == 200
    assert "content-length" not in answer.prelude["headers"]
    assert json.loads(answer.body) == ANSWER
