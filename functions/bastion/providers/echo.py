"""The built-in demo model: says back what the user said, counts as its model would, and calls tools if told to.

It answers like an OpenAI-compatible upstream, buffered and streamed, so that everything but the intelligence
of a real one can be tried without a key or a network.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from contextshift.budget import requested_reply
from contextshift.messages import content_parts
from contextshift.ports import Clock, ProviderAnswer, ProviderCall

__all__ = ["EchoProvider"]

_NO_ROUTE = json.dumps(
    {
        "error": {
            "message": "The demo model answers chat completions only; configure a provider for this route.",
            "type": "invalid_request_error",
            "param": None,
            "code": "unknown_url",
        }
    }
).encode()
CountPrompt = Callable[[Mapping[str, Any]], int]


class EchoProvider:
    """Answers with the last user message."""

    def __init__(self, clock: Clock, count_prompt: CountPrompt, pause: float = 0.0) -> None:
        self._clock = clock
        self._count_prompt = count_prompt
        self._pause = pause

    async def send(self, call: ProviderCall) -> ProviderAnswer:
        """Answer a chat completion; other routes it has none for, and says so as OpenAI would."""
        if call.path.partition("?")[0].rstrip("/") != "/chat/completions":
            return _EchoAnswer("application/json", [_NO_ROUTE], 0.0, status=404)
        request = json.loads(call.body)
        reply = _reply_to(request)
        usage = self._usage(request, reply)
        head = {"id": "chatcmpl-echo", "created": int(self._clock.now()), "model": request.get("model")}
        if request.get("stream"):
            events = list(_events(head, reply, usage if _wants_usage(request) else None))
            return _EchoAnswer("text/event-stream; charset=utf-8", events, self._pause)
        choice = {"index": 0, "message": reply, "finish_reason": _finish(reply), "logprobs": None}
        answer = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return _EchoAnswer("application/json", [json.dumps(answer, ensure_ascii=False).encode()], 0.0)

    def _usage(self, request: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, int]:
        prompt = self._count_prompt(request)
        completion = len(str(reply.get("content") or "").split())
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


class _EchoAnswer:
    """An answer that is already there."""

    def __init__(self, content_type: str, chunks: Sequence[bytes], pause: float, status: int = 200) -> None:
        self.status = status
        self.headers: Sequence[tuple[str, str]] = [("content-type", content_type)]
        self._chunks = chunks
        self._pause = pause

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the answer, with a pause between events."""
        for chunk in self._chunks:
            yield chunk
            await asyncio.sleep(self._pause)

    async def aclose(self) -> None:
        """Nothing to let go of."""


def _reply_to(request: Mapping[str, Any]) -> dict[str, Any]:
    tool = _tool_to_call(request)
    if tool is not None:
        call = {"id": "call_echo", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    words = _last_user_text(request).split()
    limit = requested_reply(request)
    said = " ".join(["You", "said:", *words][:limit])
    return {"role": "assistant", "content": said, "refusal": None}


def _tool_to_call(request: Mapping[str, Any]) -> str | None:
    """Return the tool that the request insists on; after a tool's result the echo speaks again."""
    choice, tools = request.get("tool_choice"), request.get("tools")
    messages = request.get("messages") or []
    if not tools or (messages and messages[-1].get("role") == "tool"):
        return None
    if isinstance(choice, Mapping):
        return _function_name(choice)
    return _function_name(tools[0]) if choice == "required" else None


def _function_name(holder: Mapping[str, Any]) -> str | None:
    function = holder.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else None


def _last_user_text(request: Mapping[str, Any]) -> str:
    for message in reversed(request.get("messages") or []):
        if message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            return " ".join(str(part["text"]) for part in content_parts(message) if "text" in part)
    return ""


def _wants_usage(request: Mapping[str, Any]) -> bool:
    options = request.get("stream_options")
    return isinstance(options, Mapping) and options.get("include_usage") is True


def _finish(reply: Mapping[str, Any]) -> str:
    return "tool_calls" if reply.get("tool_calls") else "stop"


def _events(head: Mapping[str, Any], reply: Mapping[str, Any], usage: Mapping[str, int] | None) -> Iterator[bytes]:
    def event(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**head, "object": "chat.completion.chunk", "choices": [choice]})

    yield event({"role": "assistant", "content": ""})
    if reply.get("tool_calls"):
        yield event({"tool_calls": [{"index": 0, **reply["tool_calls"][0]}]})
    for position, word in enumerate(str(reply.get("content") or "").split()):
        yield event({"content": word if position == 0 else " " + word})
    yield event({}, _finish(reply))
    if usage is not None:
        yield _event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
