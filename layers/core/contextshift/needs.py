"""What a request asks of a model, read off the request itself: capabilities, parameters with their values, a reply.

Capabilities go by these names: ``tools``, ``custom_tools``, ``json_schema``, ``reasoning``, ``web_search``, ``vision``,
``audio``, ``video``, ``files``, ``image_output``. A tool of another type than ``function`` is asked for by its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextshift.budget import requested_reply
from contextshift.media import media_kind
from contextshift.messages import Message, content_parts
from contextshift.pieces import take_apart

__all__ = ["PARAMETER_CAPABILITIES", "Limit", "Needs", "needs_of"]


@dataclass(frozen=True, slots=True)
class Limit:
    """Which values of one parameter a model takes; a bound that is None does not bind.

    >>> Limit(most=1).accepts(0.7), Limit(only=("low", "high")).accepts("minimal"), Limit(most_items=4).accepts("END")
    (True, False, True)
    """

    least: float | None = None
    most: float | None = None
    most_items: int | None = None
    """Entries of a list or an object; a text counts as one entry, as a single ``stop`` does."""
    only: tuple[str | float | bool, ...] | None = None

    def accepts(self, value: object) -> bool:
        """Whether the model takes the value; one that cannot be compared is not known to be taken."""
        if self.only is not None and not any(value == one and type(value) in _like(one) for one in self.only):
            return False
        if self.most_items is not None and _items(value) > self.most_items:
            return False
        if self.least is None and self.most is None:
            return True
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


def _like(value: object) -> tuple[type, ...]:
    """Return the types that equal values may have: 1 is 1.0, but it is not true."""
    return (int, float) if type(value) in (int, float) else (type(value),)


def _items(value: object) -> int:
    return len(value) if isinstance(value, list | Mapping) else 1


@dataclass(frozen=True, slots=True)
class Needs:
    """What a model must have to take a request as it is."""

    capabilities: tuple[str, ...]
    parameters: Mapping[str, Any]
    """Every top-level field that is set, ``null`` being unset, with its value."""
    reply: int | None
    """The reply limit asked for, in tokens."""


PARAMETER_CAPABILITIES: Mapping[str, str] = {
    "tools": "tools",
    "functions": "tools",
    "tool_choice": "tools",
    "function_call": "tools",
    "parallel_tool_calls": "tools",
    "reasoning_effort": "reasoning",
    "reasoning": "reasoning",
    "web_search_options": "web_search",
    "audio": "audio",
}
"""Which capability a parameter makes no sense without."""
_TELLING = ("reasoning_effort", "reasoning", "web_search_options", "audio")
"""Parameters that ask for their capability by being set; those of tools do so only where there are tools."""
_MODALITIES = {"audio": "audio", "image": "image_output", "video": "video_output"}
_TOOL_TYPES = {"function": "tools", "custom": "custom_tools"}
_PART_CAPABILITIES = {
    "image_url": "vision",
    "input_image": "vision",
    "image": "vision",
    "input_audio": "audio",
    "audio_url": "audio",
    "audio": "audio",
    "document": "files",
    "file": "files",
    "input_file": "files",
    "input_video": "video",
    "video": "video",
    "video_url": "video",
}


def needs_of(request: Mapping[str, Any], messages: Sequence[Message]) -> Needs:
    """Read off a request which capabilities and parameters it uses."""
    found: dict[str, None] = {}
    _needs_of_parameters(request, found)
    for message in messages:
        if message.get("tool_calls") or message.get("function_call") or message.get("role") in ("tool", "function"):
            found["tools"] = None
        if message.get("role") == "assistant" and message.get("audio"):
            found["audio"] = None
        for part in content_parts(message):
            found |= dict.fromkeys(_capabilities(part))
    set_parameters = {name: value for name, value in request.items() if value is not None}
    return Needs(tuple(found), set_parameters, requested_reply(request))


def _needs_of_parameters(request: Mapping[str, Any], found: dict[str, None]) -> None:
    tools = request.get("tools")
    if tools or request.get("functions"):
        found["tools"] = None
    for tool in tools if isinstance(tools, list) else ():
        kind = tool.get("type") if isinstance(tool, Mapping) else None
        if isinstance(kind, str):
            found[_tool_capability(kind)] = None
    response_format = request.get("response_format")
    if isinstance(response_format, Mapping) and response_format.get("type") == "json_schema":
        found["json_schema"] = None
    modalities = request.get("modalities")
    for modality in modalities if isinstance(modalities, list) else ():
        if isinstance(modality, str) and modality in _MODALITIES:
            found[_MODALITIES[modality]] = None
    for name in _TELLING:
        if request.get(name) is not None:
            found[PARAMETER_CAPABILITIES[name]] = None


def _tool_capability(kind: str) -> str:
    """Return what a tool's type asks for; a provider dates its own (``web_search_preview_2025_03_11``)."""
    return "web_search" if kind.startswith("web_search") else _TOOL_TYPES.get(kind, kind)


def _capabilities(part: Mapping[str, Any]) -> Iterable[str]:
    """Return what a part asks of a model: by its type, else by the images and files inside it."""
    capability = _PART_CAPABILITIES.get(str(part.get("type")))
    if capability or isinstance(part.get("text"), str):
        return (capability,) if capability else ()
    pieces = take_apart({"content": [part]})
    media = ({"file": "files", "text": "files"}.get(kind, kind) for kind in map(media_kind, pieces.media))
    return (*(("vision",) if pieces.images else ()), *media)
