"""Texts made on the way: what a message says plainly, and cutting and pricing with any counter."""

from __future__ import annotations

from collections.abc import Callable

from contextshift.cutting import cut_to_fit
from contextshift.messages import Message, content_parts
from contextshift.tokens import CountTokens, TokenCounter

__all__ = ["all_text", "cutter", "plain_text", "text_price"]


def plain_text(message: Message) -> str | None:
    """Return the text of a message that says nothing else: no calls, no parts."""
    content = message.get("content")
    if not isinstance(content, str) or message.get("tool_calls") or message.get("function_call"):
        return None
    return content


def all_text(message: Message) -> str:
    """Return whatever a message says in words, its text parts a line each."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content_parts(message) if isinstance(part.get("text"), str))


def text_price(count: CountTokens) -> Callable[[str], int]:
    """Return a function that prices bare text; with a plain callable, a user message's overhead is included."""
    if isinstance(count, TokenCounter):
        return count.text
    return lambda text: count({"role": "user", "content": text})


def cutter(count: CountTokens) -> Callable[[str, int], str]:
    """Return a function that cuts a text to at most so many tokens; a plain callable is asked about prefixes."""
    if isinstance(count, TokenCounter):
        return count.cut
    price = text_price(count)

    def cut(text: str, limit: int) -> str:
        if price(text) <= limit:
            return text
        return cut_to_fit(lambda prefix: price(prefix) <= limit, text, max(1, limit))

    return cut
