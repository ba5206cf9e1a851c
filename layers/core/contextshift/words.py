"""The `words` tokenizer: one token a word. For tests and teaching, where every number can be checked by eye.

Words are what whitespace separates. Counted are the words of text content and text parts, of each
top-level value of parsed call arguments (of the raw string where they are no JSON object), and of
the tools' compact JSON. Roles, names, ids, images, audio and files cost nothing, and there is no
priming. Parts of unknown types count by their compact JSON, as with every profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextshift.pieces import compact_json, parsed_arguments, take_apart
from contextshift.tokens import TokenizerProfile

__all__ = ["WordCounter"]


class WordCounter:
    """A `TokenCounter` of words; stateless.

    >>> WordCounter()({"role": "user", "content": "two words"})
    2
    """

    def __init__(self) -> None:
        self.profile = TokenizerProfile("words")

    def __call__(self, message: Mapping[str, Any]) -> int:
        """Return the words of one message."""
        pieces = take_apart(message)
        words = sum(map(_words, pieces.texts)) + sum(map(_words, pieces.others))
        return words + sum(_argument_words(call.arguments) for call in pieces.calls)

    def fixed(self, request: Mapping[str, Any]) -> int:
        """Return the words of the tools' (and legacy functions') compact JSON."""
        return sum(_words(compact_json(request[key])) for key in ("tools", "functions") if request.get(key))

    def text(self, text: str) -> int:
        """Return the words of a bare text."""
        return _words(text)

    def cut(self, text: str, limit: int) -> str:
        """Return the first ``limit`` words, with the space between them as it was; all of a text that fits."""
        if limit <= 0:
            return ""
        words = text.split(None, limit)
        return text if len(words) <= limit else text[: -len(words[limit])].rstrip()


def _words(text: str) -> int:
    return len(text.split())


def _argument_words(arguments: str) -> int:
    values = parsed_arguments(arguments)
    if values is None:
        return _words(arguments)
    return sum(_words(value if isinstance(value, str) else compact_json(value)) for value in values.values())
