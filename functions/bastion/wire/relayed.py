"""The relayed routes of OpenAI's API: where the model stands in a request, and what their answers report.

Bodies are JSON or forms and leave as they came, less ``routing``. What refers to objects that a provider keeps would
reach across accounts, since they share its key: such calls are refused, but for those that bring a key, or an endpoint,
of their own (`contextshift.references`). ``store`` passes: it only keeps, and what it kept can be had back by nobody
here, because every way to it is such a reference or a route that is not served.
"""

from __future__ import annotations

from dataclasses import dataclass

from bastion.wire.answers import JsonReader, SilentReader, StreamReader, relay_reader_for
from bastion.wire.openai_chat import REPLY_LIMIT, check_model_name, check_parameters
from contextshift.body import JsonBody
from contextshift.errors import ContextShiftError, InvalidInput
from contextshift.references import STATEFUL, kept_reference

__all__ = ["JsonRelayBody", "RelayDialect", "StatefulRoute", "default_model", "read_relayed"]

_DEFAULT_MODELS = {
    "/moderations": "omni-moderation-latest",
    "/images/generations": "dall-e-2",
    "/images/edits": "dall-e-2",
    "/images/variations": "dall-e-2",
}
"""What OpenAI takes where a request names no model (platform.openai.com/docs/api-reference, read 2026-11)."""
_REFERENCES = ("previous_response_id", "conversation")
"""Members of a response's request that name what a provider keeps."""
_REPLY_LIMITS = {"/responses": "max_output_tokens", "/completions": "max_tokens"}
_MOST_REPLIES = 1_000
_TEXT_ROUTES = {"/responses": "input", "/completions": "prompt", "/embeddings": "input", "/moderations": "input"}
"""The routes whose requests may be nothing but text, and where that stands."""
_TEXT_TYPES = frozenset(
    (
        "custom_tool_call",
        "custom_tool_call_output",
        "function_call",
        "function_call_output",
        "input_text",
        "message",
        "output_text",
        "reasoning",
        "reasoning_text",
        "refusal",
        "summary_text",
        "text",
    )
)
"""Kinds of items and parts that hold text, or lists of such parts: nothing that is not paid for by its bytes."""
_OWN_TOOLS = frozenset(("custom", "function"))
"""Kinds of tools that the caller runs. What a provider runs brings more into the prompt, and costs by itself."""


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
    path: str

    @property
    def size(self) -> int:
        """Bytes of it."""
        return len(self.body.raw)

    @property
    def reply(self) -> int | None:
        """The reply limit it asks for, in tokens, under the name that its route has for it."""
        asked: int | None = self.body.value.get(_REPLY_LIMITS.get(self.path, ""))
        return asked

    @property
    def replies(self) -> int:
        """How many replies it asks for: of completions, so many for each prompt."""
        if self.path != "/completions":
            return 1
        prompt = self.body.value.get("prompt")
        prompts = len(prompt) if isinstance(prompt, list) and not all(isinstance(one, int) for one in prompt) else 1
        return prompts * max(self._times("n"), self._times("best_of"))

    @property
    def only_text(self) -> bool:
        """Whether it is paid for by its text alone; what is not known for text is not taken for it."""
        if self.path not in _TEXT_ROUTES:
            return False
        value = self.body.value
        if self.path == "/responses" and any(value.get(name) for name in (*_REFERENCES, "prompt")):
            return False
        if self.path == "/completions" and not (self._times("n") and self._times("best_of")):
            return False
        said = [value.get(_TEXT_ROUTES[self.path]), value.get("instructions")]
        return _is_text(said) and _are_own(value.get("tools"))

    @property
    def reference(self) -> str | None:
        """The path of what refers to an object that a provider keeps, None where nothing does."""
        value = self.body.value
        if self.path == "/responses":
            named = [name for name in _REFERENCES if value.get(name) is not None]
            named += ["prompt.id"] * (isinstance(prompt := value.get("prompt"), dict) and prompt.get("id") is not None)
            if named or (named := _bare_references(value.get("input"))):
                return named[0]
        return kept_reference(value)

    def _times(self, name: str) -> int:
        """Return a number of replies; 0 where it cannot be one."""
        value = self.body.value.get(name)
        if value is None:
            return 1
        return value if isinstance(value, int) and 1 <= value <= _MOST_REPLIES else 0

    def sent(self, upstream_name: str) -> bytes:
        """Return the request as it came, less ``routing``, for the model as its provider calls it."""
        return self.body.spliced(upstream_name)


def read_relayed(body: JsonBody, path: str) -> JsonRelayBody:
    """Check a JSON request of a relayed route. Raises InvalidInput naming the field."""
    value = body.value
    if path == "/responses" and value.get("background"):
        raise InvalidInput("an answer cannot be fetched later here", "background", STATEFUL)
    limits = {_REPLY_LIMITS[path]: REPLY_LIMIT} if path in _REPLY_LIMITS else {}
    check_parameters(value, fields=limits)
    model = value.get("model")
    return JsonRelayBody(body, check_model_name(default_model(path) if model is None else model), path)


def default_model(path: str) -> str | None:
    """Return the model that a route takes where its request names none."""
    return _DEFAULT_MODELS.get(path)


def _bare_references(items: object) -> list[str]:
    """Return the paths of items that are nothing but an id: ``type`` may be left out of a reference."""
    if not isinstance(items, list):
        return []
    return [
        f"input[{index}].id"
        for index, item in enumerate(items)
        if isinstance(item, dict) and item.get("id") and item.get("type") is None and "role" not in item
    ]


def _are_own(tools: object) -> bool:
    """Whether all tools are ones that the caller runs."""
    if not isinstance(tools, list):
        return not tools
    kinds = [tool.get("type") if isinstance(tool, dict) else None for tool in tools]
    return all(isinstance(kind, str) and kind in _OWN_TOOLS for kind in kinds)


def _is_text(value: object) -> bool:
    """Whether a prompt is text, token ids, or items and parts of text; depth is bounded by what a body may hold."""
    if isinstance(value, list):
        return all(map(_is_text, value))
    if not isinstance(value, dict):
        return True
    kind = value.get("type")
    known = kind in _TEXT_TYPES if isinstance(kind, str) else kind is None and "role" in value
    return known and all(_is_text(value.get(name)) for name in ("content", "output", "summary"))
