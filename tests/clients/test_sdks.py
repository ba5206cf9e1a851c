"""The real OpenAI SDKs, for Python and for Node, against the demo on loopback."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from bastion.app import create_app
from bastion.bootstrap import bootstrap
from bastion.config import Config
from serving import Upstream, gateway, serve

HERE = Path(__file__).parent
KEY = "sk-local-demo"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The demo, as `make run` serves it."""
    config = Config.from_environ({"BASTION_DATA": str(tmp_path_factory.mktemp("data"))})
    with serve(create_app(bootstrap(config))) as address:
        yield address + "/v1"


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url, api_key=KEY) as one:
        yield one


def words(count: int) -> str:
    return " ".join(["w"] * count)


def say(content: str, role: str = "user") -> Any:
    return {"role": role, "content": content}


def test_python_plain(client: openai.OpenAI):
    raw = client.chat.completions.with_raw_response.create(model="demo-small", messages=[say("good morning")])
    answer = raw.parse()
    assert answer.choices[0].message.content == "You said: good morning"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 2
    assert raw.headers["x-bastion-context-tokens"].startswith("prompt=2, budget=45")


def test_python_streamed(client: openai.OpenAI):
    stream = client.chat.completions.create(
        model="demo-small",
        messages=[say("good morning")],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "You said: good morning"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == 2


def test_python_async_streamed(url: str):
    async def talk() -> str:
        async with openai.AsyncOpenAI(base_url=url, api_key=KEY) as client:
            stream = await client.chat.completions.create(model="demo-small", messages=[say("hello")], stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    assert asyncio.run(talk()) == "You said: hello"


def test_python_tools(client: openai.OpenAI):
    tools: Any = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]
    first = client.chat.completions.create(
        model="demo-medium", messages=[say("what time is it")], tools=tools, tool_choice="required"
    )
    called = first.choices[0].message
    assert called.tool_calls
    result: Any = {"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": "noon"}
    talk: Any = [say("what time is it"), called.model_dump(), result]
    second = client.chat.completions.create(model="demo-medium", messages=talk, tools=tools)
    assert second.choices[0].message.content == "You said: what time is it"


@pytest.mark.parametrize("stream", [False, True])
def test_python_overflow_is_the_sdks_own_bad_request_error(client: openai.OpenAI, stream: bool):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="demo-small", messages=[say(words(100))], stream=stream)
    assert caught.value.code == "context_length_exceeded"
    assert "maximum context length is 60 tokens" in caught.value.message


def test_python_sees_its_own_classes_for_every_kind_of_refusal(client: openai.OpenAI, url: str):
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="nothing", messages=[say("x")])
    with pytest.raises(openai.PermissionDeniedError):
        client.chat.completions.create(
            model="demo-small", messages=[say("x")], extra_body={"routing": {"regions": ["mars"]}}
        )
    with openai.OpenAI(base_url=url, api_key="sk-nobody") as stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def test_python_swap_and_settings_in_the_body(client: openai.OpenAI):
    raw = client.chat.completions.with_raw_response.create(
        model="demo-small",
        max_tokens=10,
        messages=[say(words(50)), say("hi")],
        extra_body={"routing": {"context_swapping": True}},
    )
    assert 'swapped;from="demo-small";to="demo-medium"' in raw.headers["x-bastion-context-warning"]


def test_python_does_not_retry_after_our_504(tmp_path: Path):
    upstream = Upstream(pause=5.0)
    with gateway(tmp_path, upstream, BASTION_TIMEOUT="1") as address:
        with openai.OpenAI(base_url=address + "/v1", api_key="sk-acme", max_retries=3) as client:
            with pytest.raises(openai.InternalServerError) as caught:
                client.chat.completions.create(model="small", messages=[say("x")])
    assert caught.value.status_code == 504
    assert len(upstream.calls) == 1


def node(url: str, key: str = KEY, script: str = "node_client.mjs") -> Any:
    done = subprocess.run(
        ["node", str(HERE / script), url, key], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_node_sees_what_python_sees(url: str):
    seen = node(url)
    assert seen["plain"]["text"] == seen["streamed"]["text"] == "You said: good morning"
    assert seen["plain"]["usage"] == seen["streamed"]["usage"] == 2
    assert seen["plain"]["tokens"].startswith("prompt=2, budget=45")
    assert seen["streamed"]["several"]
    assert seen["tools"] == {"called": "now", "text": "You said: what time is it"}
    assert seen["truncated"] == {"truncated": "true"}
    overflow = seen["overflow"]
    assert (overflow["error"], overflow["status"], overflow["code"]) == (
        "BadRequestError",
        400,
        "context_length_exceeded",
    )
    assert seen["models"]["names"] == ["demo-small", "demo-medium", "demo-large", "demo-gpt"]


def test_node_does_not_retry_after_our_504(tmp_path: Path):
    upstream = Upstream(pause=5.0)
    with gateway(tmp_path, upstream, BASTION_TIMEOUT="1") as address:
        seen = node(address + "/v1", "sk-acme", "node_timeout.mjs")
    assert seen == {"error": "InternalServerError", "status": 504}
    assert len(upstream.calls) == 1
