"""OpenAI chat completions on the wire: what a request must look like before anything is done with it.

Field by field, so that a client is told the path of what is wrong. Unknown top-level fields and unknown
part types pass: the provider may know them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bastion.wire.answers import reader_for
from contextshift.body import JsonBody, parse_body
from contextshift.errors import InvalidBody, InvalidInput, InvalidMessage, InvalidSetting
from contextshift.messages import KNOWN_ROLES, Message, Role, check_messages
from contextshift.settings import MOST_TOKENS, Overrides, check_overrides

__all__ = [
    "MAX_MESSAGES",
    "REPLY_LIMIT",
    "ROUTING_HEADER",
    "Field",
    "OpenAIChat",
    "check_model_name",
    "check_parameters",
    "read_messages",
    "read_overrides",
]

MAX_MESSAGES = 10_000
MAX_MODEL_NAME = 256
ROUTING_HEADER = "X-Bastion-Routing"
Field = tuple[Callable[[Any], bool], str]
"""Which values a parameter takes, and how a client is told."""


class OpenAIChat:
    """The dialect of ``POST /v1/chat/completions``."""

    path = "/chat/completions"
    reader = staticmethod(reader_for)


def read_messages(body: JsonBody) -> Sequence[Message]:
    """Check a chat completion request and return its messages. Raises InvalidInput naming the field."""
    request = body.value
    check_model_name(request.get("model"))
    messages = request.get("messages")
    if not isinstance(messages, list):
        reason = _missing_or_wrong(request, "messages")
        raise InvalidInput("messages must be a list of messages", "messages", reason)
    if not messages:
        raise InvalidInput("messages must hold at least one message", "messages", "empty_array")
    if len(messages) > MAX_MESSAGES:
        raise InvalidInput(f"messages may hold at most {MAX_MESSAGES}", "messages", "too_many_messages")
    check_messages(messages)
    for index, message in enumerate(messages):
        _check_message(index, message)
    check_parameters(request)
    return messages


def check_model_name(model: object) -> str:
    """Return the model that a request names. Raises InvalidInput."""
    if not isinstance(model, str) or not model:
        raise InvalidInput("model must be the name of a model", "model", "missing" if model is None else "invalid_type")
    if len(model) > MAX_MODEL_NAME:
        raise InvalidInput(f"a model's name has at most {MAX_MODEL_NAME} characters", "model", "too_long")
    return model


def check_parameters(request: Mapping[str, Any], path: str = "", fields: Mapping[str, Field] | None = None) -> None:
    """Check the parameters that mean something to us; all others are the provider's. Raises InvalidInput."""
    for name, (test, expected) in (_FIELDS if fields is None else fields).items():
        value = request.get(name)
        if value is not None and not test(value):
            raise InvalidInput(f"{name} must be {expected}", path + name, "invalid_type")


def read_overrides(routing: object, header: str | None) -> Overrides:
    """Return the request's settings: ``routing`` of the body, else the header's JSON of the same names."""
    if routing is not None or header is None:
        return check_overrides(routing)
    try:
        given = parse_body(header.encode("latin-1")).value
    except InvalidBody as error:
        raise InvalidSetting(f"the header is not a JSON object: {error}", ROUTING_HEADER, error.reason) from None
    return check_overrides(given, ROUTING_HEADER)


def _check_message(index: int, message: Mapping[str, Any]) -> None:
    role = message["role"]
    if "content" not in message and role in KNOWN_ROLES and role != Role.ASSISTANT:
        raise InvalidMessage("content may be missing on an assistant message only", index, "content", "missing")
    content = message.get("content")
    if isinstance(content, list):
        for position, part in enumerate(content):
            if not isinstance(part, dict):
                raise InvalidMessage("a part must be an object", index, f"content[{position}]", "invalid_type")
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        raise InvalidMessage("tool_calls must be a list or null", index, "tool_calls", "invalid_type")
    for position, call in enumerate(calls):
        if not isinstance(call, dict):
            raise InvalidMessage("a call must be an object", index, f"tool_calls[{position}]", "invalid_type")


def _missing_or_wrong(request: Mapping[str, Any], name: str) -> str:
    return "invalid_type" if request.get(name) is not None else "missing"


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_limit(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


REPLY_LIMIT: Field = (_is_limit, "a whole number of tokens, 0 to 1,000,000,000")


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


_FIELDS: dict[str, Field] = {
    "stream": (_is_bool, "true or false"),
    "stream_options": (_is_object, "an object"),
    "max_tokens": REPLY_LIMIT,
    "max_completion_tokens": REPLY_LIMIT,
    "tools": (_is_objects, "a list of objects"),
    "functions": (_is_objects, "a list of objects"),
    "response_format": (_is_object, "an object"),
    "modalities": (lambda value: isinstance(value, list), "a list"),
}
