"""A provider's own count of a chat-completions request: three endpoints, as data and one translation each.

Read in 2026: Anthropic ``POST /v1/messages/count_tokens``, Google ``POST /v1beta/models/{model}:countTokens``, OpenAI
``POST /v1/responses/input_tokens``. Counting there costs nothing, but the requests are sent, so it is for whoever has
a key and may send them. What an endpoint's API cannot say raises `Unsendable`, and nothing is sent.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ENDPOINTS", "Endpoint", "Refused", "Unsendable", "ask"]

TRIES = 4
BUSY = frozenset({408, 429, 500, 502, 503, 504, 529})
TIMEOUT = 60
FREE = frozenset(
    {"frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "n"}
    | {"parallel_tool_calls", "presence_penalty", "seed", "service_tier", "stop", "store", "stream", "stream_options"}
    | {"temperature", "top_k", "top_logprobs", "top_p", "user"}
)
"""Fields of a request that cost no prompt tokens and are not sent."""


class Unsendable(ValueError):
    """A request that the endpoint's API has no words for."""


class Refused(RuntimeError):
    """An answer that is no count; ``status`` is HTTP's, 0 where the answer has no number in it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class _Still(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key is for the host that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENER = urllib.request.build_opener(_Still)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how a provider counts."""

    api: str
    """As recordings name it."""
    base: str
    path: str
    """With ``{model}`` where the model's name goes."""
    key_name: str
    """Of the environment variable that holds the key."""
    headers: Callable[[str], dict[str, str]]
    body: Callable[[Mapping[str, Any], str], dict[str, Any]]
    """From a request and the model's name."""
    answer: str
    """The field that holds the count."""


def ask(
    endpoint: Endpoint,
    model: str,
    request: Mapping[str, Any],
    key: str,
    base: str = "",
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Return the provider's count; tries again where the endpoint is busy. Raises Unsendable, Refused and OSError."""
    body = json.dumps(_translated(endpoint, request, model)).encode()
    url = (base or endpoint.base).rstrip("/") + endpoint.path.format(model=model)
    call = urllib.request.Request(
        url, body, {"content-type": "application/json", **endpoint.headers(key)}, method="POST"
    )
    for attempt in range(TRIES):
        try:
            with OPENER.open(call, timeout=TIMEOUT) as answer:
                return _count(json.load(answer), endpoint.answer)
        except urllib.error.HTTPError as error:
            wait = error.headers.get("retry-after", "")
            error.close()
            if error.code not in BUSY or attempt == TRIES - 1:
                raise Refused(error.code) from None
            sleep(float(wait) if wait.isdecimal() else 2.0**attempt)
    raise AssertionError("the last try returns or raises")


def _translated(endpoint: Endpoint, request: Mapping[str, Any], model: str) -> dict[str, Any]:
    try:
        return endpoint.body(request, model)
    except (AttributeError, KeyError, TypeError):  # somebody's own file of requests
        raise Unsendable("an odd shape") from None


def _count(answer: Any, name: str) -> int:
    count = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(count, int) or isinstance(count, bool):
        raise Refused(0)
    return count


# -- what all three read ----------------------------------------------------------------------------------


def _parts(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield ``("text", text)`` and ``("image", data URL)``."""
    content = message.get("content")
    parts: list[Any] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            if part.get("text"):
                yield "text", part["text"]
        elif kind == "image_url" and part["image_url"]["url"].startswith("data:"):
            yield "image", part["image_url"]["url"]
        else:
            raise Unsendable(f"a part of type {kind}")


def _text(message: Mapping[str, Any]) -> str:
    parts = list(_parts(message))
    if any(kind != "text" for kind, _ in parts):
        raise Unsendable("an image where only text is taken")
    return "".join(text for _, text in parts)


def _image(url: str) -> tuple[str, str]:
    """Return the type and the base64 of a data URL."""
    head, comma, data = url.partition(",")
    if not comma or not head.endswith(";base64"):
        raise Unsendable("an image that is not base64")
    return head[5:].partition(";")[0], data


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the id, name and arguments of each call."""
    for call in message.get("tool_calls") or ():
        yield call.get("id") or "", call["function"]["name"], call["function"]["arguments"]


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Unsendable("arguments that are no JSON object")
    return value


def _declared(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tools = request.get("tools") or []
    if any("function" not in tool for tool in tools):
        raise Unsendable("a tool that is no function")
    return [tool["function"] for tool in tools]


def _is_system(message: Mapping[str, Any]) -> bool:
    return message.get("role") in ("system", "developer")


def _system(request: Mapping[str, Any]) -> list[str]:
    return [text for message in request["messages"] if _is_system(message) and (text := _text(message))]


def _merged(turns: list[tuple[str, list[dict[str, Any]]]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield turns, neighbours of one role as one; turns that say nothing are left out."""
    role, parts = "", list[dict[str, Any]]()
    for next_role, more in turns:
        if more and next_role == role:
            parts = [*parts, *more]
        elif more:
            if parts:
                yield role, parts
            role, parts = next_role, more
    if parts:
        yield role, parts


def _only(request: Mapping[str, Any], known: frozenset[str]) -> None:
    said = {key for key, value in request.items() if value}
    if strange := sorted(said - known - FREE):
        raise Unsendable(f"fields: {', '.join(strange)}")


# -- Anthropic --------------------------------------------------------------------------------------------


def _anthropic(request: Mapping[str, Any], model: str) -> dict[str, Any]:
    _only(request, frozenset({"model", "messages", "tools", "tool_choice", "thinking"}))
    turns = [_anthropic_turn(message) for message in request["messages"] if not _is_system(message)]
    messages = [{"role": role, "content": parts} for role, parts in _merged(turns)]
    body: dict[str, Any] = {"model": model, "messages": messages}
    if system := _system(request):
        body["system"] = [{"type": "text", "text": text} for text in system]
    if tools := _declared(request):
        body["tools"] = [_anthropic_tool(tool) for tool in tools]
    if tools and request.get("tool_choice"):
        body["tool_choice"] = _anthropic_choice(request["tool_choice"])
    if request.get("thinking"):
        body["thinking"] = request["thinking"]
    return body


def _anthropic_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    schema = tool.get("parameters") or {"type": "object", "properties": {}}
    return {"name": tool["name"], **_described(tool), "input_schema": schema}


def _anthropic_choice(choice: Any) -> dict[str, Any]:
    if isinstance(choice, dict):  # a recording may have Anthropic's own already
        return {"type": "tool", "name": choice["function"]["name"]} if "function" in choice else choice
    return {"type": {"auto": "auto", "none": "none", "required": "any"}[choice]}


def _anthropic_turn(message: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    parts: list[dict[str, Any]] = []
    for kind, value in _parts(message):
        if kind == "text":
            parts.append({"type": "text", "text": value})
        else:
            media_type, data = _image(value)
            parts.append({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
    if message["role"] == "tool":
        return "user", [{"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": parts}]
    uses = [
        {"type": "tool_use", "id": call, "name": name, "input": _arguments(text)}
        for call, name, text in _calls(message)
    ]
    return message["role"], [*parts, *uses]


def _described(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": tool["description"]} if tool.get("description") else {}


# -- Google -----------------------------------------------------------------------------------------------


def _gemini(request: Mapping[str, Any], model: str) -> dict[str, Any]:
    _only(request, frozenset({"model", "messages", "tools", "tool_choice"}))
    messages = request["messages"]
    names = {call: name for message in messages for call, name, _ in _calls(message)}
    turns = [_gemini_turn(message, names) for message in messages if not _is_system(message)]
    contents = [{"role": role, "parts": parts} for role, parts in _merged(turns)]
    whole: dict[str, Any] = {"model": f"models/{model}", "contents": contents}
    if system := _system(request):
        whole["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    if tools := _declared(request):
        whole["tools"] = [{"functionDeclarations": [_gemini_tool(tool) for tool in tools]}]
    return {"generateContentRequest": whole}


def _gemini_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"parametersJsonSchema": tool["parameters"]} if tool.get("parameters") else {}
    return {"name": tool["name"], **_described(tool), **schema}


def _gemini_turn(message: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, list[dict[str, Any]]]:
    if message["role"] == "tool":
        name = names.get(message.get("tool_call_id", ""), "")
        return "user", [{"functionResponse": {"name": name, "response": {"result": _text(message)}}}]
    parts: list[dict[str, Any]] = []
    for kind, value in _parts(message):
        if kind == "text":
            parts.append({"text": value})
        else:
            media_type, data = _image(value)
            parts.append({"inlineData": {"mimeType": media_type, "data": data}})
    calls = [{"functionCall": {"name": name, "args": _arguments(text)}} for _, name, text in _calls(message)]
    return "model" if message["role"] == "assistant" else "user", [*parts, *calls]


# -- OpenAI -----------------------------------------------------------------------------------------------


def _openai(request: Mapping[str, Any], model: str) -> dict[str, Any]:
    _only(request, frozenset({"model", "messages", "tools", "tool_choice", "reasoning_effort", "response_format"}))
    items = [item for message in request["messages"] for item in _openai_items(message)]
    body: dict[str, Any] = {"model": model, "input": items}
    if tools := _declared(request):
        body["tools"] = [{"type": "function", "strict": False, **tool} for tool in tools]
    if request.get("reasoning_effort"):
        body["reasoning"] = {"effort": request["reasoning_effort"]}
    wanted = request.get("response_format") or {}
    if wanted:
        body["text"] = {"format": {"type": wanted.get("type"), **wanted.get("json_schema", {})}}
    return body


def _openai_items(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if message["role"] == "tool":
        yield {"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": _text(message)}
        return
    said = "output_text" if message["role"] == "assistant" else "input_text"
    parts = [
        {"type": said, "text": value} if kind == "text" else {"type": "input_image", "image_url": value}
        for kind, value in _parts(message)
    ]
    if parts:
        yield {"role": message["role"], "content": parts}
    for call, name, text in _calls(message):
        yield {"type": "function_call", "call_id": call, "name": name, "arguments": text}


ENDPOINTS = {
    "anthropic": Endpoint(
        "anthropic.messages/count_tokens",
        "https://api.anthropic.com",
        "/v1/messages/count_tokens",
        "ANTHROPIC_API_KEY",
        lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
        _anthropic,
        "input_tokens",
    ),
    "gemini": Endpoint(
        "gemini.countTokens",
        "https://generativelanguage.googleapis.com",
        "/v1beta/models/{model}:countTokens",
        "GEMINI_API_KEY",
        lambda key: {"x-goog-api-key": key},
        _gemini,
        "totalTokens",
    ),
    "openai-responses": Endpoint(
        "responses",
        "https://api.openai.com",
        "/v1/responses/input_tokens",
        "OPENAI_API_KEY",
        lambda key: {"authorization": f"Bearer {key}"},
        _openai,
        "input_tokens",
    ),
}
"""By the name that ``BASTION_COUNT_ENDPOINT`` gives."""
