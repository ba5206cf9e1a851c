"""Counting, as the rest of the library sees it: the `TokenCounter` port and the profile behind a number.

A counter is a callable that prices one whole message. Message boundaries are special tokens in every
chat format we know, so a prompt's size is the sum of its messages and of what belongs to no message
(`TokenCounter.fixed`): removing a message subtracts its integer, and nothing is counted twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from contextshift.cutting import cut_to_fit
from contextshift.errors import ContextShiftError, CounterFault
from contextshift.pieces import take_apart

__all__ = [
    "CountTokens",
    "HedgedCounter",
    "TextCounter",
    "TokenCounter",
    "TokenizerProfile",
    "count_one",
    "counter_fault",
    "slack_of",
    "text_counter",
]

CountTokens = Callable[[Mapping[str, Any]], int]
"""The least a counter must be: tokens of one whole message."""


@dataclass(frozen=True, slots=True)
class TokenizerProfile:
    """Whose numbers these are, and how far to trust them."""

    name: str
    """Such as ``o200k_base``, ``words`` or ``estimate``."""
    approximate: bool = False
    margin: float = 0.0
    """Share of the prompt kept free on top of it: 0.02 holds two tokens back for every hundred."""
    least_margin: int = 0
    """Tokens kept free beside that share, however short the prompt: what hosts and snapshots of a family are known to
    differ by in what they put around the same messages."""
    ratio: float = 1.0
    """The factor by which reported usage has corrected these counts (`calibration`); 1 for none."""
    version: int = 0
    """Names the correction in force; 0 for none."""
    bytes_bound: float | None = None
    """Tokens that a byte of UTF-8 makes at the most, where that is proved (1 for byte-level BPE); None elsewhere."""
    least_ratio: float = 0.6
    """How far reported usage may lower these counts: beside a counter that is nearly right, less is a prompt that was
    cut, not a better number."""

    def margin_tokens(self, prompt: int) -> int:
        """Return the margin for a prompt of ``prompt`` tokens, rounded up. Prompt and margin are the safe bound.

        >>> TokenizerProfile("estimate", True, 0.02).margin_tokens(101)
        3
        >>> TokenizerProfile("llama3", least_margin=18).margin_tokens(101)
        18
        """
        return self.least_margin + (math.ceil(prompt * self.margin) if self.margin else 0)


@runtime_checkable
class TokenCounter(Protocol):
    """Prices messages, texts, and what belongs to no message, for one tokenizer."""

    @property
    def profile(self) -> TokenizerProfile:
        """The profile that stands in headers, previews and audits."""

    def __call__(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of one whole message, its overhead included. Never raises on odd fields."""

    def fixed(self, request: Mapping[str, Any]) -> int:
        """Return what the request costs beside its messages: tools, response format, reply priming."""

    def text(self, text: str) -> int:
        """Return the tokens of a bare text."""

    def cut(self, text: str, limit: int) -> str:
        """Return the longest convenient prefix of ``text`` of at most ``limit`` tokens, never inside a character."""


@runtime_checkable
class HedgedCounter(Protocol):
    """A `TokenCounter` that says for which requests its count is not all: tools that are rendered nobody knows how."""

    def slack(self, request: Mapping[str, Any]) -> int:
        """Return how many tokens ``fixed`` may be under, at the most; they are held back beside the margin."""


def slack_of(count: object, request: Mapping[str, Any]) -> int:
    """Return a counter's slack for a request; 0 for one that does not hedge."""
    return count.slack(request) if isinstance(count, HedgedCounter) else 0


def count_one(count: CountTokens, message: Mapping[str, Any], index: int | None = None) -> int:
    """Count one message, such as one made on the way of the message ``index``. Raises CounterFault."""
    try:
        tokens = count(message)
    except Exception as error:
        raise counter_fault(error, index) from error
    if type(tokens) is not int or tokens < 0:
        raise counter_fault(None, index)
    return tokens


def counter_fault(error: Exception | None, index: int | None = None) -> ContextShiftError:
    """Return what to raise where a counter raised ``error``, or without one returned what is no count.

    An error of the library's own stays what it is; of another only the type is said, for its text may hold the prompt.
    """
    if isinstance(error, CounterFault) and error.index is None:
        return CounterFault(str(error), index)
    if isinstance(error, ContextShiftError):
        return error
    if error is None:
        return CounterFault("the token counter must return a whole number, not negative", index)
    return CounterFault(f"the token counter raised {type(error).__name__}", index)


class TextCounter:
    """A `TokenCounter` made of one function that counts text; see `text_counter`."""

    def __init__(self, count_text: Callable[[str], int], overhead: int = 0, name: str = "custom") -> None:
        self._count = count_text
        self._overhead = overhead
        self.profile = TokenizerProfile(name)

    def __call__(self, message: Mapping[str, Any]) -> int:
        """Count texts, arguments of calls, and parts of other types by their JSON, plus the overhead."""
        pieces = take_apart(message)
        texts = (*pieces.texts, *pieces.others, *(call.arguments for call in pieces.calls if call.arguments))
        return self._overhead + sum(map(self._count, texts))

    def fixed(self, request: Mapping[str, Any]) -> int:
        """Nothing: a text function knows no tools."""
        return 0

    def text(self, text: str) -> int:
        """Count a bare text."""
        return self._count(text)

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most ``limit`` tokens, to a sentence's or word's end where one is near."""
        if limit <= 0:
            return ""
        if self._count(text) <= limit:
            return text
        return cut_to_fit(lambda prefix: self._count(prefix) <= limit, text, limit)


def text_counter(count_text: Callable[[str], int], overhead: int = 0, name: str = "custom") -> TextCounter:
    """Make a `TokenCounter` from a function that counts text, with ``overhead`` tokens a message.

    Counted are texts, the arguments of calls, and parts of types that nobody knows, tool results among them, by
    their compact JSON; names, ids, images, audio and files cost nothing.

    >>> count = text_counter(lambda text: len(text.split()), overhead=4)
    >>> count({"role": "user", "content": "two words"})
    6
    """
    return TextCounter(count_text, overhead, name)
