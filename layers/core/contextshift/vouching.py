"""Reading a JSON body so that we can vouch for it: its values, and where its parts stand in the text.

What two JSON readers could understand differently cannot be vouched for, and is an InvalidBody: a
repeated key at the top level, in ``messages`` or in ``routing``; a top-level key equal to a known one but
for case; NaN or Infinity; numbers over 1,000 digits, or too large for any reader; nesting over 100; lone
surrogates (RFC 8259, sections 4, 6, 8 and 9).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # the decoder's own, in C
from typing import Any, NamedTuple, NoReturn

from contextshift.errors import InvalidBody

__all__ = ["ELEMENTS", "MAX_DEPTH", "MAX_DIGITS", "ROUTING", "Scan", "Span", "is_ambiguous", "scan"]

MAX_DEPTH = 100
MAX_DIGITS = 1000
ROUTING = "routing"
ELEMENTS = "messages"
_STRICT_MEMBERS = frozenset((ROUTING, ELEMENTS))

_KNOWN_KEYS = frozenset(
    (
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "routing",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    )
)
_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Span(NamedTuple):
    """Where something stands in the text; of a member, from its key."""

    start: int
    end: int


@dataclass(slots=True)
class Scan:
    """An object's values, and the places of its parts."""

    value: dict[str, Any]
    members: dict[str, Span]
    model: Span | None
    """Of the value of ``model``."""
    elements: list[Span]
    """Of the elements of ``messages``."""


def scan(text: str) -> Scan:
    """Read an object. Raises InvalidBody, with a stable ``reason`` and the path of what is at fault."""
    try:
        found = _Reader(text).read()
    except json.JSONDecodeError as error:
        message = f"the body is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise InvalidBody(message, None, "invalid_json") from None
    except RecursionError:
        raise _too_deep() from None
    if text.count("{") + text.count("[") > MAX_DEPTH and _deeper(found.value, MAX_DEPTH):
        raise _too_deep()
    if _SURROGATE.search(text):
        _check_surrogates(found.value)
    return found


class _Reader:
    """Walks the top level of an object by hand; everything below is the standard decoder's work."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.value: dict[str, Any] = {}
        self.members: dict[str, Span] = {}
        self.model: Span | None = None
        self.elements: list[Span] = []

    def read(self) -> Scan:
        """Read the whole text as one object."""
        self._skip_space()
        if self._peek() != "{":
            self._check_other_json()
            raise InvalidBody("the body must be a JSON object", None, "invalid_type")
        for _ in self._items("}"):
            self._member()
        self._skip_space()
        if self.at != len(self.text):
            raise json.JSONDecodeError("Extra data", self.text, self.at)
        return Scan(self.value, self.members, self.model, self.elements)

    def _check_other_json(self) -> None:
        """Raise for what is no JSON at all, so that only JSON of another kind is called that."""
        try:
            _LOOSE.decode(self.text)
        except _Unvouched as error:
            raise InvalidBody(error.message, None, error.reason) from None

    def _items(self, closing: str) -> Iterator[None]:
        """Step over brackets and commas, yielding at the start of each item."""
        self.at += 1
        self._skip_space()
        if self._peek() == closing:
            self.at += 1
            return
        while True:
            self._skip_space()
            yield
            self._skip_space()
            mark = self._peek()
            if mark not in (",", closing):
                raise json.JSONDecodeError("Expecting ',' delimiter", self.text, self.at)
            self.at += 1
            if mark == closing:
                return

    def _member(self) -> None:
        start = self.at
        if self._peek() != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", self.text, self.at)
        key, self.at = scanstring(self.text, self.at + 1, True)
        self._check_key(key)
        self._skip_space()
        if self._peek() != ":":
            raise json.JSONDecodeError("Expecting ':' delimiter", self.text, self.at)
        self.at += 1
        self._skip_space()
        value_start = self.at
        self.value[key] = self._elements() if key == ELEMENTS and self._peek() == "[" else self._scan(key)
        self.members[key] = Span(start, self.at)
        if key == "model":
            self.model = Span(value_start, self.at)

    def _elements(self) -> list[Any]:
        values: list[Any] = []
        for _ in self._items("]"):
            start = self.at
            values.append(self._scan(ELEMENTS, f"[{len(values)}]"))
            self.elements.append(Span(start, self.at))
        return values

    def _scan(self, key: str, suffix: str = "") -> Any:
        decoder = _STRICT if key in _STRICT_MEMBERS else _LOOSE
        try:
            value, self.at = decoder.raw_decode(self.text, self.at)
        except _Unvouched as error:
            raise InvalidBody(error.message, key + suffix, error.reason) from None
        return value

    def _check_key(self, key: str) -> None:
        if key in self.members:
            raise InvalidBody("a key is given twice", key, "repeated_key")
        if is_ambiguous(key):
            raise InvalidBody("a key differs from a known one only by case", key, "ambiguous_key")

    def _skip_space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]


def is_ambiguous(key: str) -> bool:
    """Whether a top-level key is none that is known, but for case: some readers would take it for that one.

    >>> is_ambiguous("Max_Tokens"), is_ambiguous("max_tokens"), is_ambiguous("mine")
    (True, False, False)
    """
    return key not in _KNOWN_KEYS and key.casefold() in _KNOWN_KEYS


class _Unvouched(ValueError):
    """Raise from a decoder hook; the reader adds the path."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


def _constant(name: str) -> NoReturn:
    raise _Unvouched(f"{name} is not JSON", "invalid_number")


def _integer(literal: str) -> int:
    _check_digits(literal)
    return int(literal)


def _real(literal: str) -> float:
    _check_digits(literal)
    value = float(literal)
    if math.isinf(value):
        raise _Unvouched("a number is too large for any reader", "invalid_number")
    return value


def _check_digits(literal: str) -> None:
    if len(literal) > MAX_DIGITS and sum(map(str.isdigit, literal)) > MAX_DIGITS:
        raise _Unvouched(f"a number has over {MAX_DIGITS} digits", "invalid_number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Unvouched("a key is given twice in one object", "repeated_key")
    return value


_LOOSE = json.JSONDecoder(parse_constant=_constant, parse_int=_integer, parse_float=_real)
_STRICT = json.JSONDecoder(parse_constant=_constant, parse_int=_integer, parse_float=_real, object_pairs_hook=_unique)


def _too_deep() -> InvalidBody:
    return InvalidBody(f"the body is nested more than {MAX_DEPTH} deep", None, "too_deep")


def _deeper(value: Any, levels: int) -> bool:
    """Whether containers are nested more than ``levels`` deep."""
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(item, levels - 1) for item in inner if isinstance(item, dict | list))


def _check_surrogates(value: Mapping[str, Any]) -> None:
    for path, text in _strings(value, ""):
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidBody("a lone surrogate is not text", path, "lone_surrogate")


def _strings(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            here = f"{path}.{key}" if path else key
            yield path or "body", key
            yield from _strings(item, here)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, f"{path}[{index}]")
