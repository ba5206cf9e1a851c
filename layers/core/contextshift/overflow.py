"""Whether an upstream's error says that the prompt is too long, and by which numbers.

First the structured code decides, then the wording (``overflow_wordings``), which must stand at the start of the
provider's own message: an error that quotes the user is never taken for an overflow. Anything else is ``None``: rate
limits, quotas, filters, and parameters such as a ``max_tokens`` above what the model can write, which no shorter prompt
would cure. ``string_above_max_length`` is none either: it limits the characters of one field, not the context.

Statuses that providers really answer with: 400 (nearly all), 413 (Anthropic and Google for bytes, Groq, Cloudflare,
GitHub Models), 422 (TGI, Together, AI21), 424 (Bedrock's ``ModelErrorException``), 429 (OpenAI, Azure and Groq for a
request above the whole allowance), 500 (Ollama, Databricks), 502 (OpenRouter around a provider's answer), and 200 with
the error inside (Bedrock and OpenRouter in streams, Responses events), where the error's own integer status counts.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from contextshift.overflow_wordings import CONTEXT, RATES, REQUEST, Wording, compiled

__all__ = ["Overflow", "OverflowKind", "recognise"]

MOST_PARTS = 24
"""Values of one answer that are looked at; real ones have at most ten."""
LONGEST_MESSAGE = 2_000
"""Characters of a message in which a wording is looked for."""
MOST_TOKENS = 10**12
"""A number above is no number of tokens: it is not read."""
LONGEST_DOCUMENT = 65_536
"""Characters of a text that is read as JSON: a gateway passing on a provider's document as text."""
REFUSING = frozenset({400, 413, 422, 424, 429, 500, 502})
"""The statuses of a refusal for length; see the module."""


class OverflowKind(StrEnum):
    """Which limit was exceeded; the value is the code of the error."""

    CONTEXT = "context_length"
    """The model's context, by the prompt or by the prompt with the room for its answer."""
    REQUEST = "request_too_large"
    """The size of one request: bytes, tokens of a request, or a whole allowance of tokens a minute."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """A recognised overflow, with the numbers of tokens that the provider gave, as the provider counted them."""

    kind: OverflowKind
    limit: int | None = None
    """The most that the provider takes."""
    requested: int | None = None
    """All that was asked for: the prompt, and the completion where the provider counts it against the same limit."""
    prompt: int | None = None
    """The prompt alone, where the provider tells it apart."""

    @property
    def completion(self) -> int | None:
        """What was reserved for the answer. At ``limit`` or above it, no prompt is short enough."""
        return None if self.requested is None or self.prompt is None else self.requested - self.prompt


_CODES: dict[str | int, OverflowKind] = {
    "context_length_exceeded": OverflowKind.CONTEXT,  # OpenAI, Azure, Groq, DeepSeek, Cerebras, Responses events
    "context_window_exceeded": OverflowKind.CONTEXT,  # gateways
    "exceed_context_size_error": OverflowKind.CONTEXT,  # llama.cpp, and Ollama since 0.34
    "model_max_prompt_tokens_exceeded": OverflowKind.CONTEXT,  # GitHub Copilot
    "tokens_too_long": OverflowKind.CONTEXT,  # Baidu
    336103: OverflowKind.CONTEXT,  # Baidu
    "1261": OverflowKind.CONTEXT,  # Zhipu
    1261: OverflowKind.CONTEXT,
    "request_too_large": OverflowKind.REQUEST,  # Anthropic, Groq
    "tokens_limit_reached": OverflowKind.REQUEST,  # GitHub Models
    "max_tokens_per_request": OverflowKind.REQUEST,  # OpenAI embeddings
}
_CODE_KEYS = ("code", "type", "error_code", "error_type")
_STATUSES: dict[str | int, int] = {one: int(one) for code in range(400, 600) for one in (code, str(code))}
_STATUS_KEYS = ("code", "status", "status_code", "http_code", "raw_status_code")

_EXCEPTIONS = ("validationException", "modelStreamErrorException", "modelErrorException")
_BELOW = {
    "answer": (
        "error",
        "errors",
        "message",
        "Message",
        "msg",
        "error_msg",
        "detail",
        "response",
        "base_resp",
        *_EXCEPTIONS,
    ),
    "error": ("message", "error", "metadata"),
    "errors": ("message",),
    "detail": ("message", "error"),
    "response": ("error",),
    "base_resp": ("status_msg",),
    "metadata": ("raw",),
    **dict.fromkeys(_EXCEPTIONS, ("message",)),
}
"""Where an error lies inside which part of an answer. What a caller fills (``response.metadata``) is never entered."""
_TEXTS = frozenset(
    {"answer", "error", "errors", "message", "Message", "msg", "error_msg", "detail", "status_msg", "raw"}
)
"""The parts that are messages when they are text."""

_WRAPPER = re.compile(
    r"\A(?:(?:litellm\.)?[A-Z][A-Za-z_]{1,60}(?:Error|Exception)(?: [A-Z][A-Za-z]{1,60}Error)?(?:: | - )"
    r"|An error occurred \([A-Za-z]{1,60}\) when calling the [A-Za-z]{1,60} operation(?: \([^()\n]{1,60}\))?: "
    r"|The model returned the following errors: |Mantle streaming error for requestId [\w-]{1,60}: "
    r"|(?:Error code: )?\[?[45][0-9]{2}(?: Bad Request)?\]?(?::| -)? )"
)
"""What SDKs, gateways and servers put before the provider's own sentence: classes and statuses, no caller's text."""
_MOST_WRAPPERS = 6
_LITELLM_BEHIND = re.compile(
    r"\.?\s{0,2}(?:\Z|Received Model Group=|Available Model Group Fallbacks=|No fallback model group found"
    r"|LiteLLM Retried: )"
)
"""What LiteLLM puts behind an answer that it shows."""


@dataclass(frozen=True, slots=True)
class _Said:
    """A message without its wrappers; ``named`` when one of those was LiteLLM's class for an overflow."""

    text: str
    named: bool
    wrapped: bool
    """Whether it had any."""


_Part = dict[str, Any] | _Said


def recognise(status: int, error: object) -> Overflow | None:
    """Return what an upstream's answer says of a prompt that is too long, or ``None`` when it says nothing of it.

    ``status`` is the HTTP status, ``error`` the whole parsed JSON answer, or one event of a stream, of any shape; a
    text that is not JSON may be given as it is. Never raises, and bounded in time whatever the answer holds.

    >>> recognise(400, {"error": {"message": "prompt is too long: 208,310 tokens > 200,000 maximum"}})
    Overflow(kind=<OverflowKind.CONTEXT: 'context_length'>, limit=200000, requested=208310, prompt=208310)
    >>> recognise(400, {"error": {"message": "Invalid value: 'prompt is too long: 9 tokens > 8 maximum'"}}) is None
    True
    """
    parts = tuple(_parts(error))
    if (status if status >= 400 else _own_status(parts) or 400) not in REFUSING:
        return None
    told = next(filter(None, map(_told, parts)), None)
    kind = next(filter(None, map(_named, parts)), None)
    return told if kind is None else replace(told or Overflow(kind), kind=kind)


# -- the parts of an answer ----------------------------------------------------------------------------


def _parts(answer: object) -> Iterator[_Part]:
    """Yield the documents and messages of an error, outermost first."""
    waiting = deque([("answer", answer)])
    for _ in range(MOST_PARTS):
        if not waiting:
            return
        place, found = waiting.popleft()
        if isinstance(found, dict):
            yield found
            waiting.extend((key, found[key]) for key in _BELOW.get(place, ()) if key in found)
        elif isinstance(found, list):
            waiting.extend((place, one) for one in found[:2])
        elif isinstance(found, str) and place in _TEXTS:
            said = _unwrapped(found[:LONGEST_DOCUMENT])
            yield said
            waiting.extend(("answer", inner) for inner in _documents(said))


def _unwrapped(text: str) -> _Said:
    text, named, wrapped = text.lstrip(), False, False
    for _ in range(_MOST_WRAPPERS):
        wrapper = _WRAPPER.match(text)
        if wrapper is None:
            break
        named = named or "ContextWindowExceededError" in wrapper[0]
        text, wrapped = text[wrapper.end() :], True
    return _Said(text, named, wrapped)


def _documents(said: _Said) -> Iterator[object]:
    """Yield the JSON object that a text is. With anything behind it, it may be what a caller sent, quoted.

    Only LiteLLM's own words may stand there: behind its class, it shows a provider's answer, also as Python's bytes.
    """
    text = said.text
    as_bytes = said.wrapped and text.startswith("b'")
    if as_bytes:
        text = text[2:].replace("\\'", "'")
    if not text.startswith("{"):
        return
    try:
        document, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return
    behind = text[end : end + LONGEST_MESSAGE]
    if as_bytes != behind.startswith("'"):
        return
    if not behind[as_bytes:].strip() or (said.wrapped and _LITELLM_BEHIND.match(behind, as_bytes)):
        yield document


def _own_status(parts: tuple[_Part, ...]) -> int | None:
    found = (part.get(key) for part in parts if isinstance(part, dict) for key in _STATUS_KEYS)
    return next((_STATUSES[one] for one in found if isinstance(one, str | int) and one in _STATUSES), None)


# -- what they say -------------------------------------------------------------------------------------


def _named(part: _Part) -> OverflowKind | None:
    if isinstance(part, _Said):
        return OverflowKind.CONTEXT if part.named else None
    codes = (part.get(key) for key in _CODE_KEYS)
    return next((_CODES[code] for code in codes if isinstance(code, str | int) and code in _CODES), None)


def _told(part: _Part) -> Overflow | None:
    if isinstance(part, dict):
        return _counted(part)
    message = part.text[:LONGEST_MESSAGE]
    if (numbers := _matched(CONTEXT, message)) is not None:
        return _overflow(OverflowKind.CONTEXT, numbers)
    if (numbers := _matched(REQUEST, message)) is not None:
        return _overflow(OverflowKind.REQUEST, numbers)
    if (numbers := _matched(RATES, message)) is not None and numbers.keys() >= {"limit", "requested"}:
        return _overflow(OverflowKind.REQUEST, numbers) if numbers["requested"] > numbers["limit"] else None
    return None


def _counted(document: dict[str, Any]) -> Overflow | None:
    """llama.cpp gives its numbers as fields."""
    prompt, limit = document.get("n_prompt_tokens"), document.get("n_ctx")
    if type(prompt) is int and type(limit) is int and MOST_TOKENS >= prompt >= limit > 0:
        return Overflow(OverflowKind.CONTEXT, limit, prompt, prompt)
    return None


def _matched(table: tuple[Wording, ...], message: str) -> dict[str, int] | None:
    found = next(filter(None, (pattern.match(message) for pattern in compiled(table))), None)
    if found is None:
        return None
    said = found.groupdict().items()
    numbers = {name: int(digits.replace(",", "")) for name, digits in said if digits is not None}
    return {name: number for name, number in numbers.items() if number <= MOST_TOKENS}


def _overflow(kind: OverflowKind, numbers: dict[str, int]) -> Overflow:
    limit, requested, prompt = map(numbers.get, ("limit", "requested", "prompt"))
    completion = numbers.get("completion")
    if limit is not None and "over" in numbers:
        requested = limit + numbers["over"]
    if requested is None and prompt is not None:
        requested = prompt + (completion or 0)
    if prompt is None and requested is not None and completion is not None and completion <= requested:
        prompt = requested - completion
    return Overflow(kind, limit, requested, prompt)
