"""The OpenAI SDKs on the relayed routes and on recoveries, before an upstream that records what it gets."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from serving import Upstream, gateway

HERE = Path(__file__).parent
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "large",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hello", "annotations": []}],
        }
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 3,
        "output_tokens": 1,
        "total_tokens": 4,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}
EMBEDDING = {
    "object": "list",
    "model": "large",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.25, 0.5]}],
    "usage": {"prompt_tokens": 2, "total_tokens": 2},
}


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
def url(tmp_path: Path, upstream: Upstream) -> Iterator[str]:
    with gateway(tmp_path, upstream) as address:
        yield address + "/v1"


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url, api_key="sk-acme", max_retries=0) as one:
        yield one


def test_python_responses(client: openai.OpenAI, upstream: Upstream):
    upstream.body = json.dumps(RESPONSE).encode()
    answer = client.responses.create(model="small", input="hi")
    assert answer.output_text == "hello"
    assert (upstream.last.path, upstream.last.json["model"]) == ("/v1/responses", "upstream-small")


def test_python_streamed_responses(client: openai.OpenAI, upstream: Upstream):
    async def events() -> AsyncIterator[bytes]:
        delta = {"type": "response.output_text.delta", "delta": "hel", "item_id": "m", "output_index": 0}
        for event in (
            {**delta, "content_index": 0, "sequence_number": 1},
            {"type": "response.completed", "response": RESPONSE},
        ):
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            await asyncio.sleep(0)

    upstream.headers, upstream.body = [("content-type", "text/event-stream")], events
    kinds = [event.type for event in client.responses.create(model="large", input="hi", stream=True)]
    assert kinds == ["response.output_text.delta", "response.completed"]


def test_python_embeddings(client: openai.OpenAI, upstream: Upstream):
    upstream.body = json.dumps(EMBEDDING).encode()
    answer = client.embeddings.create(model="large", input=["hi"], encoding_format="float")
    assert answer.data[0].embedding == [0.25, 0.5]
    assert answer.usage.prompt_tokens == 2


def test_python_transcription_sends_its_file_whole(client: openai.OpenAI, upstream: Upstream):
    upstream.body = b'{"text": "hello"}'
    sound = bytes(range(256)) * 100
    assert client.audio.transcriptions.create(model="small", file=("a.wav", sound)).text == "hello"
    assert sound in upstream.last.body
    assert b"upstream-small" in upstream.last.body


def test_python_speech_comes_back_as_bytes(client: openai.OpenAI, upstream: Upstream):
    upstream.headers, upstream.body = [("content-type", "audio/mpeg")], bytes(range(256))
    assert client.audio.speech.create(model="large", voice="alloy", input="hi").content == bytes(range(256))


def test_python_moderation(client: openai.OpenAI, upstream: Upstream):
    upstream.body = b'{"id": "modr-1", "model": "large", "results": []}'
    assert client.moderations.create(model="large", input="hi").id == "modr-1"


def test_python_sees_files_as_not_found(client: openai.OpenAI):
    with pytest.raises(openai.NotFoundError) as caught:
        client.files.list()
    assert caught.value.code == "stateful_not_supported"


def test_python_sees_an_upstream_s_overflow_as_its_own_error_in_a_stream(client: openai.OpenAI, upstream: Upstream):
    async def events() -> AsyncIterator[bytes]:
        yield b'data: {"choices":[],"error":{"message":"prompt is too long: 9 tokens > 8 maximum","code":400}}\n\n'

    upstream.headers, upstream.body = [("content-type", "text/event-stream")], events
    said: Any = [{"role": "user", "content": "hi"}]
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="large", messages=said, stream=True)
    assert caught.value.code == "context_length_exceeded"
    assert "maximum context length is 8 tokens" in caught.value.message


def test_node_sees_the_same(url: str, upstream: Upstream):
    upstream.then(json.dumps(RESPONSE).encode())
    upstream.then(json.dumps(EMBEDDING).encode())
    upstream.then(b'{"text": "hello"}')
    upstream.then(bytes(range(256)), content_type="audio/mpeg")
    upstream.then(b'{"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}', 400)
    done = subprocess.run(
        ["node", str(HERE / "node_relays.mjs"), url, "sk-acme"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "responses": "hello",
        "embedding": [0.25, 0.5],
        "transcription": "hello",
        "speech": 256,
        "overflow": {"error": "BadRequestError", "code": "context_length_exceeded"},
    }
