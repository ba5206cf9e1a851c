"""Prompt tokens of OpenAI chat models, as their own usage reports count them.

Text is exact. Published: OpenAI's cookbook, `How_to_count_tokens_with_tiktoken.ipynb` (commit c81359c, read in 2026):
three tokens a message, one a name, three to prime the reply. Measured: every other constant here, on public test
recordings that hold a request and the usage OpenAI reported for it (2024-2026); each says on how many.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bastion.tokenizers.encodings import Encoding
from bastion.tokenizers.typescript import Rendering, render_tool, render_tools
from contextshift.media import image_detail, image_size, media_tokens
from contextshift.pieces import Call, compact_json, parsed_arguments, take_apart, without_data
from contextshift.tokens import TokenizerProfile

__all__ = ["CLASSIC", "GPT5", "REASONING", "ChatCosts", "ImageRule", "OpenAIChatCounter", "PatchRule", "TileRule"]

MESSAGE = 3
"""Role and boundaries of a message, beside the role's own name (cookbook)."""
NAME = 1
"""A message's ``name``, beside its text (cookbook)."""
RESPONSE_FORMAT = 8
"""Over the compact JSON of a reply's schema: never under on 12 recordings, over by 0-55."""
_SYSTEM_END = 200
"""Characters of a system message that are looked at for how a blank line joins its end."""

_ROLES = frozenset({"assistant", "developer", "function", "system", "tool", "user"})
_NAMES = 1_024
"""Names of tools whose tokens a counter remembers."""
_NAME_LENGTH = 64
"""Longest of them, in characters: OpenAI allows no more."""

_ONE_PAIR = re.compile(
    r"""\{"[^"\\\x00-\x1f]*+":(?:"(?:[^"\\\x00-\x1f]|\\["\\bfnrt])*+"|-?[1-9][0-9]*+|0|true|false|null)\}"""
)
"""JSON of one simple pair that is written as compactly as `compact_json` would: most calls of most tools."""
_PAIR_LENGTH = 128
"""Characters up to which the pattern is quicker than reading and writing."""


@dataclass(frozen=True, slots=True)
class ChatCosts:
    """What differs between generations of OpenAI's chat format, in tokens."""

    priming: int
    """Once a request."""
    call: int
    """A message's only call, beside its name, ``functions.`` with its name, and its arguments as compact JSON."""
    parallel_call: int = 13
    """Each of several calls in one message, likewise; never under on 31 recordings of tool history."""
    tools: int = 9
    """Once a request with tools."""
    tools_after_system: int = 5
    """The same where they are appended to a system or developer message, beside the blank line between."""
    first_described: int = 0
    """Once where the first tool has a description."""
    undescribed: int = 1
    """Saved for each tool that has properties, none of them described."""


CLASSIC = ChatCosts(priming=3, call=4)
"""gpt-3.5, gpt-4, gpt-4o, gpt-4.1, gpt-4.5 (34 recordings with tools or calls, 31 exact, none under)."""
REASONING = ChatCosts(priming=2, call=11, tools=90, tools_after_system=90, first_described=1, undescribed=0)
"""The o-series. No recording of its tools is public: they are bounded by gpt-5's."""
GPT5 = ChatCosts(priming=2, call=10, tools=90, tools_after_system=90, first_described=1)
"""gpt-5 and later, whose tools come with a preamble that no document shows (13 recordings, all exact)."""


@dataclass(frozen=True, slots=True)
class TileRule:
    """Images by tiles of 512 pixels, after fitting into 2,048 and the short side into 768 (vision guide, 2026)."""

    base: int
    tile: int

    def tokens(self, size: tuple[int, int] | None, detail: str) -> int:
        """Return the tokens of one image; of the largest there is where ``size`` is None."""
        if detail == "low":
            return self.base
        return self.base + self.tile * (_tiles(*size) if size else 8)


@dataclass(frozen=True, slots=True)
class PatchRule:
    """Images by patches of 32 pixels, at most ``cap``, times a model's factor (same guide).

    Reported usage is one more than the guide's number (3 recordings). ``detail`` changes nothing, but that
    ``original`` lifts the cap where a model knows it.
    """

    factor: float
    cap: int = 1_536
    original_cap: int = 0

    def tokens(self, size: tuple[int, int] | None, detail: str) -> int:
        """Return the tokens of one image; of the largest there is where ``size`` is None."""
        cap = max(self.cap, self.original_cap) if detail == "original" else self.cap
        patches = math.ceil(size[0] / 32) * math.ceil(size[1] / 32) if size else cap
        return math.ceil(round(min(patches, cap) * self.factor, 6)) + 1


ImageRule = TileRule | PatchRule


class OpenAIChatCounter:
    """A `TokenCounter` for OpenAI's chat completions. Safe across threads; what it remembers changes no count.

    Messages of the usual shapes (a role with text, a tool's result, calls) take a short way, which is a tenth
    of the time of taking a message apart, and gives the same number.
    """

    def __init__(self, encoding: Encoding, costs: ChatCosts = CLASSIC, images: ImageRule | None = None) -> None:
        self.profile = TokenizerProfile(encoding.name)
        self._encoding = encoding
        self._count = encoding.count
        self._costs = costs
        self._images = images or TileRule(85, 170)
        self._roles = _Roles(encoding.count)
        self._names: dict[str, int] = {}

    def __call__(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of one message with its overhead, as they add to the prompt's total."""
        try:
            tokens, content = self._roles[message["role"]], message["content"]
            size = len(message)
            if type(content) is str and (size == 2 or (size == 3 and "tool_call_id" in message)):
                return tokens + self._count(content)
            if size == 3 and (content is None or type(content) is str):
                return tokens + self._plain_calls(message["tool_calls"]) + (self._count(content) if content else 0)
        except (KeyError, TypeError):  # another shape, an unusual role
            pass
        return self._whole(message)

    def _whole(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of a message of any shape."""
        pieces, count = take_apart(message), self._encoding.count
        total = MESSAGE + self._field(message, "role") + sum(map(count, (*pieces.texts, *pieces.others)))
        total += self._field(message, "refusal") + self._calls(pieces.calls)
        if isinstance(message.get("name"), str):
            total += NAME + count(message["name"])
        total += sum(self._images.tokens(image_size(part), image_detail(part)) for part in pieces.images)
        return total + sum(map(media_tokens, pieces.media))

    def fixed(self, request: Mapping[str, Any]) -> int:
        """Return priming, tools (legacy functions too) and response format.

        Reads ``messages``, if the request has them, only for whether one is a system message.
        """
        return self._costs.priming + self._tools(request) + self._response_format(request)

    def text(self, text: str) -> int:
        """Return the tokens of a bare text."""
        return self._encoding.count(text)

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most ``limit`` tokens, whole characters only."""
        return self._encoding.cut(text, limit)

    def _field(self, message: Mapping[str, Any], name: str) -> int:
        value = message.get(name)
        return self._encoding.count(value) if isinstance(value, str) else 0

    def _calls(self, calls: list[Call]) -> int:
        overhead = self._costs.call if len(calls) == 1 else self._costs.parallel_call
        return sum(self._call(call) + overhead for call in calls)

    def _call(self, call: Call) -> int:
        # The model reads a call by its full name and as JSON of OpenAI's own making.
        return self._name(call.name) + self._arguments(call.arguments)

    def _plain_calls(self, calls: object) -> int:
        """Return the tokens of calls of functions in their usual shape; raises KeyError or TypeError on another."""
        if type(calls) is not list:
            raise TypeError
        total = 0
        for call in calls:
            function = call["function"]
            name, arguments = function["name"], function["arguments"]
            if type(name) is not str or type(arguments) is not str or "custom" in call:
                raise TypeError
            total += self._name(name) + self._arguments(arguments)
        return total + (self._costs.call if len(calls) == 1 else len(calls) * self._costs.parallel_call)

    def _name(self, name: str) -> int:
        tokens = self._names.get(name)
        if tokens is None:
            tokens = self._count(name) + self._count(f"functions.{name}")
            if len(name) <= _NAME_LENGTH and len(self._names) < _NAMES:
                self._names[name] = tokens
        return tokens

    def _arguments(self, arguments: str) -> int:
        if len(arguments) <= _PAIR_LENGTH and _ONE_PAIR.fullmatch(arguments):
            return self._count(arguments)
        return self._encoding.count_rewritten(arguments, _compact)

    def _tools(self, request: Mapping[str, Any]) -> int:
        functions = _functions(request)
        if not functions:
            return 0
        renderings = [render_tool(function) for function in functions]
        total = self._preamble(request) + self._encoding.count(render_tools(renderings))
        total += self._costs.first_described if functions[0].get("description") else 0
        total -= self._costs.undescribed * sum(rendering.undescribed for rendering in renderings)
        return total + self._excess(functions, renderings)

    def _preamble(self, request: Mapping[str, Any]) -> int:
        system = _system_text(request)
        if system is None:
            return self._costs.tools
        # A blank line is a token of its own after a word, and part of a full stop's token.
        count = self._encoding.count
        return self._costs.tools_after_system + count(f"{system}\n\n") - count(system)

    def _excess(self, functions: list[Mapping[str, Any]], renderings: list[Rendering]) -> int:
        """Return by how much the JSON of tools that the rendering does not cover exceeds their rendering."""
        count, total = self._encoding.count, 0
        for function, rendering in zip(functions, renderings, strict=True):
            if not rendering.plain:
                total += max(0, count(_declaration(function)) - count(rendering.text))
        return total

    def _response_format(self, request: Mapping[str, Any]) -> int:
        wanted = request.get("response_format")
        schema = wanted.get("json_schema") if isinstance(wanted, Mapping) else None
        return RESPONSE_FORMAT + self._encoding.count(compact_json(schema)) if schema is not None else 0


class _Roles(dict[str, int]):
    """Tokens of a message's frame by its role, each counted when it is first met; raises KeyError on unusual roles."""

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, role: str) -> int:
        if role not in _ROLES:
            raise KeyError(role)
        return self.setdefault(role, MESSAGE + self._count(role))


def _compact(arguments: str) -> str:
    """Return call arguments as compact JSON; what is no JSON object stays as it is."""
    value = parsed_arguments(arguments)
    return arguments if value is None else compact_json(value)


def _functions(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what the tools and legacy functions of a request declare; a tool of an unknown type as it stands."""
    found: list[Mapping[str, Any]] = []
    for key in ("tools", "functions"):
        tools = request.get(key)
        for tool in tools if isinstance(tools, list | tuple) else ():
            inner = tool.get("function") if isinstance(tool, Mapping) else None
            found.append(inner if isinstance(inner, Mapping) else _as_mapping(tool))
    return found


def _declaration(function: Mapping[str, Any]) -> str:
    known = {key: function[key] for key in ("name", "description", "parameters") if key in function}
    return compact_json(without_data(known or function))


def _as_mapping(tool: object) -> Mapping[str, Any]:
    return tool if isinstance(tool, Mapping) else {"tool": tool}


def _system_text(request: Mapping[str, Any]) -> str | None:
    """Return the end of the first system or developer message's text, None without such a message."""
    messages = request.get("messages")
    for message in messages if isinstance(messages, list | tuple) else ():
        if isinstance(message, Mapping) and message.get("role") in ("system", "developer"):
            return "".join(take_apart(message).texts)[-_SYSTEM_END:]
    return None


def _tiles(width: int, height: int) -> int:
    scale = min(1.0, 2048 / max(width, height))
    width, height = round(width * scale), round(height * scale)
    scale = min(1.0, 768 / min(width, height)) if min(width, height) else 1.0
    return math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
