"""The demo model answers what it can, and says so where it cannot."""

from __future__ import annotations

import json

import pytest

from bastion.providers.echo import EchoProvider
from contextshift.fakes import FixedClock
from contextshift.ports import ProviderCall

pytestmark = pytest.mark.anyio


async def _answer(path: str, body: bytes) -> tuple[int, dict[str, object]]:
    answer = await EchoProvider(FixedClock(), lambda request: 7).send(ProviderCall(path, body))
    return answer.status, json.loads(b"".join([chunk async for chunk in answer.chunks()]))


@pytest.mark.parametrize("path", ["/responses", "/completions", "/embeddings", "/images/edits", "/audio/speech"])
@pytest.mark.parametrize("body", [b'{"model": "demo-small", "input": "hi"}', b"--form\r\n\xff", b""])
async def test_other_routes_are_told_that_there_is_no_such_thing(path: str, body: bytes) -> None:
    status, said = await _answer(path, body)
    assert (status, said["error"]["code"]) == (404, "unknown_url")  # type: ignore[index]


async def test_a_chat_completion_is_answered() -> None:
    status, said = await _answer(
        "/chat/completions", b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
    )
    assert (status, said["usage"]) == (200, {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})
