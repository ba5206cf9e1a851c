"""What the handler of ApiFunction adds to Mangum, with apps that each show one thing."""

import asyncio
import base64
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sample_events import load_event

from bastion.lambda_events import App, Receive, Scope, Send

Invoke = Callable[[App, Any], dict[str, Any]]
REQUESTS = ["rest-chat-completions", "http-chat-completions"]


class Context:
    """Lambda's context object, as far as a handler asks it."""

    def get_remaining_time_in_millis(self) -> int:
        return 28_000


@pytest.fixture(autouse=True)
def loop() -> Iterator[None]:
    """The process-wide loop that Mangum runs on; Lambda's process has one of its own."""
    own = asyncio.new_event_loop()
    asyncio.set_event_loop(own)
    yield
    asyncio.set_event_loop(None)
    own.close()


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Iterator[Invoke]:
    """Puts an event to an app. The module makes the real app when it is imported: here it makes none."""
    monkeypatch.setattr("bastion.bootstrap.lambda_app", lambda: answering(b"", b"text/plain"))
    module = importlib.import_module("bastion.buffered")

    def invoke(app: App, event: Any) -> dict[str, Any]:
        context: Any = Context()
        return module.make_handler(app)(event, context)

    yield invoke
    del sys.modules["bastion.buffered"]


def answering(body: bytes, content_type: bytes, *headers: tuple[bytes, bytes]) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        pairs = [(b"content-type", content_type), *headers]
        await send({"type": "http.response.start", "status": 200, "headers": pairs})
        await send({"type": "http.response.body", "body": body})

    return app


@pytest.mark.parametrize("name", REQUESTS)
def test_the_scope_says_when_the_invocation_ends(name: str, invoke: Invoke) -> None:
    deadlines: list[float] = []
    answer = answering(b"{}", b"application/json")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["bastion.buffered"]
        deadlines.append(scope["bastion.deadline"])
        await answer(scope, receive, send)

    before = time.time()
    invoke(app, load_event(name))
    assert before + 27.9 < deadlines[0] < time.time() + 28.1


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize(
    "content_type", [b"application/x-ndjson", b"text/event-stream", b"application/json; charset=utf-8"]
)
def test_text_goes_out_as_text(name: str, content_type: bytes, invoke: Invoke) -> None:
    answer = invoke(answering("é\n".encode(), content_type), load_event(name))
    assert (answer["body"], answer["isBase64Encoded"]) == ("é\n", False)


@pytest.mark.parametrize("name", REQUESTS)
def test_audio_goes_out_as_it_is(name: str, invoke: Invoke) -> None:
    answer = invoke(answering(b"\xff\xfb\x00", b"audio/mpeg"), load_event(name))
    assert answer["isBase64Encoded"] is True
    assert base64.b64decode(answer["body"]) == b"\xff\xfb\x00"


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("value", ["é".encode("latin-1"), "模型".encode()])
def test_a_header_that_is_not_ascii_does_not_cost_the_answer(name: str, value: bytes, invoke: Invoke) -> None:
    answer = invoke(answering(b"{}", b"application/json", (b"x-note", value)), load_event(name))
    assert answer["statusCode"] == 200
    assert answer["headers"]["x-note"].isascii()


@pytest.mark.parametrize("name", REQUESTS)
def test_several_cookies_stay_several(name: str, invoke: Invoke) -> None:
    cookies = ((b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"))
    answer = invoke(answering(b"{}", b"application/json", *cookies), load_event(name))
    kept = answer.get("cookies") or answer["multiValueHeaders"]["set-cookie"]
    assert kept == ["a=1", "b=2"]


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("body", [b"x" * 6_291_556, "\U0001f600".encode() * 600_000], ids=["long", "escaped"])
def test_an_answer_beyond_lambdas_limit_is_an_error_of_ours(name: str, body: bytes, invoke: Invoke) -> None:
    answer = invoke(answering(body, b"text/plain"), load_event(name))
    assert answer["statusCode"] == 502
    assert json.loads(answer["body"])["error"]["code"] == "response_too_large"


def test_the_largest_answer_within_the_limit_is_left_alone(invoke: Invoke) -> None:
    answer = invoke(answering(b"x" * 6_200_000, b"text/plain"), load_event("http-health"))
    assert answer["statusCode"] == 200
    assert len(json.dumps(answer)) < 6_291_556


def test_the_ping_does_not_reach_the_app(invoke: Invoke) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("a ping reached the app")

    assert invoke(app, load_event("scheduled-ping")) == {"status": "ok"}
