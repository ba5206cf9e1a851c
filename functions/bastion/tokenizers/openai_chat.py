"""Prompt tokens of a chat, as the providers' own usage reports count them.

One counter for every family: what differs is data, an `Encoding` for the texts, `ChatCosts` for what the format
adds, and the rules for images and other media. With OpenAI's the numbers are those that OpenAI reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from bastion.tokenizers.costs import CLASSIC, ChatCosts
from bastion.tokenizers.engine import Encoding
from bastion.tokenizers.images import GPT_4O, ImageRule
from bastion.tokenizers.media import OPENAI_MEDIA, MediaRule
from bastion.tokenizers.typescript import Rendering, render_tool, render_tools
from contextshift.media import image_detail, image_size
from contextshift.pieces import Call, compact_json, parsed_arguments, take_apart, without_data
from contextshift.tokens import TokenizerProfile

__all__ = ["OpenAIChatCounter"]

_SYSTEM_END = 200
"""Characters of a system message that are looked at for how a blank line joins its end."""

_EFFORT = ("reasoning_effort", "reasoning", "thinking")
_READ = ("name", "description", "parameters")
_FUNCTION = frozenset((*_READ, "strict", "type"))
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


_INDENT = 4
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"|([{}\[\],])')
"""What begins a line of indented JSON, and strings, to be passed over."""
_INDENTED_LENGTH, _INDENTED_SPACES, _SPACES_A_TOKEN = 50_000, 2_000_000, 8
"""Characters of JSON up to which it is indented unseen; spaces beyond which it never is; spaces that each vocabulary
counted so makes one token of, at the least."""


class OpenAIChatCounter:
    """A `TokenCounter` for one family of chat models, by default OpenAI's classic one.

    Safe across threads; what it remembers changes no count. Messages of the usual shapes (a role with text, a
    tool's result, calls) take a short way, which is a tenth of the time of taking a message apart, and gives the
    same number.
    """

    def __init__(
        self,
        encoding: Encoding,
        costs: ChatCosts = CLASSIC,
        images: ImageRule = GPT_4O,
        media: MediaRule = OPENAI_MEDIA,
        profile: TokenizerProfile | None = None,
    ) -> None:
        self.profile = profile or TokenizerProfile(encoding.name)
        self._encoding = encoding
        self._count = encoding.count
        self._costs = costs
        self._images = images
        self._media = media
        self._roles = _Roles(encoding.count, costs)
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
        total = self._roles.frame(message.get("role")) + sum(map(count, (*pieces.texts, *pieces.others)))
        total += self._field(message, "refusal") + self._calls(pieces.calls)
        if isinstance(message.get("name"), str):
            total += self._costs.name + count(message["name"])
        total += sum(self._images.tokens(image_size(part), image_detail(part)) for part in pieces.images)
        return total + sum(self._media.tokens(part, count) for part in pieces.media)

    def fixed(self, request: Mapping[str, Any]) -> int:
        """Return priming, tools (legacy functions too) and response format.

        Reads ``messages``, if the request has them, only for whether one is a system message.
        """
        total = self._costs.priming + self._tools(request) + self._response_format(request)
        if self._costs.no_system and _system_text(request) is None:
            total += self._costs.no_system
        return total + self._effort(request)

    def slack(self, request: Mapping[str, Any]) -> int:
        """Return what the count of the tools may be under by.

        Where a host reads them as JSON by the model's chat template, it may indent what we count on one line
        (Llama 3.1's template does, most others do not; Google does not say).
        """
        if self._costs.tool_rule != "whole":
            return self._costs.tool_slack * len(_functions(request)) if self._costs.tool_slack else 0
        return sum(self._indenting(_spaced_json(without_data(tool))) for tool in _whole_tools(request))

    def _indenting(self, text: str) -> int:
        """Return what indenting adds to JSON at the most; what would grow too large is bounded, not written."""
        if len(text) > _INDENTED_LENGTH:
            lines, spaces = _indentation(text)
            if spaces > _INDENTED_SPACES:
                return 2 * lines + spaces // _SPACES_A_TOKEN
        return max(0, self._encoding.count_rewritten(text, _indented) - self._count(text))

    def _effort(self, request: Mapping[str, Any]) -> int:
        said = [request[key] for key in _EFFORT if request.get(key)]
        if not said:
            return 0
        return self._costs.no_effort if said[0] in ("none", "disabled") else self._costs.effort

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
        if self._costs.tool_rule == "typescript":
            return self._namespace(request)
        declared = _functions(request) if self._costs.tool_rule == "declaration" else _whole_tools(request)
        texts = [_spaced_json(without_data(tool)) for tool in declared]
        return sum(map(self._count, texts)) + (self._costs.tools + self._costs.tool * len(texts) if texts else 0)

    def _namespace(self, request: Mapping[str, Any]) -> int:
        functions = _functions(request)
        if not functions:
            return 0
        renderings = [render_tool(function) for function in functions]
        total = self._preamble(request) + self._encoding.count(render_tools(renderings))
        total += self._costs.first_described if functions[0].get("description") else 0
        total -= self._costs.undescribed * sum(rendering.undescribed for rendering in renderings)
        return total + self._costs.tool * len(functions) + self._excess(functions, renderings)

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
            if not rendering.plain or (self._costs.reads_all and rendering.passed_over):
                total += max(0, count(_declaration(function)) - count(rendering.text))
        return total

    def _response_format(self, request: Mapping[str, Any]) -> int:
        wanted = request.get("response_format")
        if not isinstance(wanted, Mapping):
            return 0
        schema = wanted.get("json_schema")
        if schema is None:
            return self._costs.json_object if wanted.get("type") == "json_object" else 0
        return self._costs.response_format + self._encoding.count(compact_json(schema))


class _Roles(dict[str, int]):
    """Tokens of a message's frame by its role, each counted when it is first met; raises KeyError on unusual roles."""

    def __init__(self, count: Callable[[str], int], costs: ChatCosts) -> None:
        super().__init__()
        self._count = count
        self._costs = costs

    def __missing__(self, role: str) -> int:
        if role not in _ROLES:
            raise KeyError(role)
        return self.setdefault(role, self.frame(role))

    def frame(self, role: object) -> int:
        """Return the tokens of the frame of any role, and of none."""
        if not isinstance(role, str):
            return self._costs.frame
        own = self._costs.frames.get(role)
        if own is not None:
            return own
        return self._costs.frame + (self._count(role) if self._costs.named_roles else 0)


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


def _whole_tools(request: Mapping[str, Any]) -> list[object]:
    lists = [request.get(key) for key in ("tools", "functions")]
    return [tool for tools in lists if isinstance(tools, list | tuple) for tool in tools]


def _spaced_json(value: object) -> str:
    """Return JSON as Python and chat templates write it by default; it costs the same or more than compact JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return compact_json(value)


def _indentation(text: str) -> tuple[int, int]:
    """Return how many lines JSON takes indented, and how many spaces stand before them."""
    lines = spaces = depth = 0
    for mark in filter(None, _STRUCTURE.findall(text)):
        if mark in "}]":
            depth -= 1
        elif mark in "{[":
            depth += 1
        lines += 1
        spaces += _INDENT * depth
    return lines, spaces


def _indented(text: str) -> str:
    """Return JSON over as many lines as it has values; what cannot be read again stays as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=_INDENT)
    except (ValueError, RecursionError):
        return text


def _declaration(function: Mapping[str, Any]) -> str:
    """Return a function's JSON, and all of a tool that is none."""
    named = _FUNCTION.issuperset(function)
    return compact_json(without_data({key: function[key] for key in _READ if key in function} if named else function))


def _as_mapping(tool: object) -> Mapping[str, Any]:
    return tool if isinstance(tool, Mapping) else {"tool": tool}


def _system_text(request: Mapping[str, Any]) -> str | None:
    """Return the end of the first system or developer message's text, None without such a message."""
    messages = request.get("messages")
    for message in messages if isinstance(messages, list | tuple) else ():
        if isinstance(message, Mapping) and message.get("role") in ("system", "developer"):
            return "".join(take_apart(message).texts)[-_SYSTEM_END:]
    return None
