"""Texts made on the way: what a message says plainly, and cutting and pricing with any counter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from contextshift.cutting import cut_to_fit
from contextshift.errors import CounterFault
from contextshift.messages import Message, content_parts
from contextshift.tokens import CountTokens, TokenCounter, counter_fault

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
    """Return a function that prices bare text; with a plain callable, a user message's overhead is included.

    What it returns raises CounterFault where the counter raises, or says what is no count.
    """
    said = count.text if isinstance(count, TokenCounter) else lambda text: count({"role": "user", "content": text})

    def price(text: str) -> int:
        try:
            tokens = said(text)
        except Exception as error:
            raise counter_fault(error) from error
        if type(tokens) is not int or tokens < 0:
            raise counter_fault(None)
        return tokens

    return price


def cutter(count: CountTokens) -> Callable[[str, int, int], str]:
    """Return a function that cuts a text to at most so many tokens; a plain callable is asked about prefixes.

    It takes the text, the tokens, and the index of the message that the text is of, which CounterFault names where the
    counter raises.
    """
    if isinstance(count, TokenCounter):
        own: Callable[[str, int], str] = count.cut
        fault: type[Exception] = Exception
    else:
        own, fault = partial(_cut_by_trial, text_price(count)), CounterFault

    def cut(text: str, limit: int, index: int) -> str:
        try:
            return own(text, limit)
        except fault as error:
            raise counter_fault(error, index) from error

    return cut


def _cut_by_trial(price: Callable[[str], int], text: str, limit: int) -> str:
    if price(text) <= limit:
        return text
    return cut_to_fit(lambda prefix: price(prefix) <= limit, text, max(1, limit))
