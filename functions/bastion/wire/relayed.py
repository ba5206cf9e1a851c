"""The relayed routes of OpenAI's API: where the model stands in a request, and what their answers report.

Bodies are JSON or forms and leave as they came, less ``routing``. What refers to objects that a provider keeps would
reach across accounts, since they share its key: such calls are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bastion.wire.answers import JsonReader, SilentReader, StreamReader, relay_reader_for
from bastion.wire.openai_chat import MAX_MODEL_NAME
from contextshift.body import JsonBody
from contextshift.errors import ContextShiftError, InvalidInput

__all__ = ["JsonRelayBody", "RelayDialect", "StatefulRoute", "read_relayed"]

_DEFAULT_MODELS = {
    "/moderations": "omni-moderation-latest",
    "/images/generations": "dall-e-2",
    "/images/edits": "dall-e-2",
    "/images/variations": "dall-e-2",
}
"""What OpenAI takes where a request names no model (platform.openai.com/docs/api-reference, read 2026-11)."""
_STATEFUL = {"previous_response_id": None, "conversation": None, "background": True}
"""Members that refer to what a provider keeps, and the value that does so; None: any."""
_REPLY_LIMITS = ("max_output_tokens", "max_tokens", "max_completion_tokens")


class StatefulRoute(ContextShiftError):
    """Raise for a route that lives on objects kept by one provider: they would be shared by all accounts."""

    code = "STATEFUL_ROUTE"


@dataclass(frozen=True, slots=True)
class RelayDialect:
    """The dialect of one relayed route."""

    path: str

    def reader(self, content_type: str | None) -> JsonReader | StreamReader | SilentReader:
        """Return a fresh reader for an answer of this content type."""
        return relay_reader_for(content_type)


@dataclass(frozen=True, slots=True)
class JsonRelayBody:
    """A JSON request as it came."""

    body: JsonBody
    model: str

    @property
    def size(self) -> int:
        """Bytes of it."""
        return len(self.body.raw)

    @property
    def reply(self) -> int | None:
        """The largest reply limit it asks for, in tokens."""
        asked = [self.body.value.get(name) for name in _REPLY_LIMITS]
        return max((one for one in asked if isinstance(one, int) and not isinstance(one, bool)), default=None)

    def sent(self, upstream_name: str) -> bytes:
        """Return the request as it came, less ``routing``, for the model as its provider calls it."""
        return self.body.spliced(upstream_name)


def read_relayed(body: JsonBody, path: str) -> JsonRelayBody:
    """Check a JSON request of a relayed route. Raises InvalidInput naming the field."""
    value = body.value
    for name, bad in _STATEFUL.items():
        given = value.get(name)
        if path == "/responses" and given is not None and (bad is None or given == bad):
            raise InvalidInput("objects that a provider keeps cannot be used here", name, "stateful_not_supported")
    return JsonRelayBody(body, _model(value.get("model"), path))


def _model(model: Any, path: str) -> str:
    if model is None and path in _DEFAULT_MODELS:
        return _DEFAULT_MODELS[path]
    if not isinstance(model, str) or not model:
        raise InvalidInput("model must be the name of a model", "model", "missing" if model is None else "invalid_type")
    if len(model) > MAX_MODEL_NAME:
        raise InvalidInput(f"a model's name has at most {MAX_MODEL_NAME} characters", "model", "too_long")
    return model
