"""What a conversation becomes under a token budget, and why. Standard library only.

>>> from contextshift import shift_context, text_counter
>>> talk = [
...     {"role": "system", "content": "Be brief."},
...     {"role": "user", "content": "A long question about many things."},
...     {"role": "assistant", "content": "An answer."},
...     {"role": "user", "content": "And now?"},
... ]
>>> result = shift_context(talk, text_counter(lambda text: len(text.split())), budget=6)
>>> [message["content"] for message in result.kept]
['Be brief.', 'An answer.', 'And now?']
>>> [(item.message["content"], str(item.reason)) for item in result.excluded]
[('A long question about many things.', 'context-shift')]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextshift.budget import Budget
    from contextshift.errors import (
        ContextShiftError,
        CounterFault,
        InvalidInput,
        InvalidMessage,
        TokenBudgetExceeded,
    )
    from contextshift.groups import Groups, group_messages
    from contextshift.messages import Message, Role, Source
    from contextshift.reasons import ALL_REASONS, Passed, Reason
    from contextshift.registry import ContextStrategyRegistry
    from contextshift.shift import Excluded, ShiftResult, Truncated, shift_context
    from contextshift.strategies import BUILTIN, Proposal, Situation, Strategy
    from contextshift.tokens import CountTokens, TokenCounter, TokenizerProfile, text_counter
    from contextshift.words import WordCounter

__version__ = "0.1.0"

__all__ = [
    "ALL_REASONS",
    "BUILTIN",
    "Budget",
    "ContextShiftError",
    "ContextStrategyRegistry",
    "CountTokens",
    "CounterFault",
    "Excluded",
    "Groups",
    "InvalidInput",
    "InvalidMessage",
    "Message",
    "Passed",
    "Proposal",
    "Reason",
    "Role",
    "ShiftResult",
    "Situation",
    "Source",
    "Strategy",
    "TokenBudgetExceeded",
    "TokenCounter",
    "TokenizerProfile",
    "Truncated",
    "WordCounter",
    "__version__",
    "group_messages",
    "shift_context",
    "text_counter",
]

_HOMES = {
    "budget": ("Budget",),
    "errors": ("ContextShiftError", "CounterFault", "InvalidInput", "InvalidMessage", "TokenBudgetExceeded"),
    "groups": ("Groups", "group_messages"),
    "messages": ("Message", "Role", "Source"),
    "reasons": ("ALL_REASONS", "Passed", "Reason"),
    "registry": ("ContextStrategyRegistry",),
    "shift": ("Excluded", "ShiftResult", "Truncated", "shift_context"),
    "strategies": ("BUILTIN", "Proposal", "Situation", "Strategy"),
    "tokens": ("CountTokens", "TokenCounter", "TokenizerProfile", "text_counter"),
    "words": ("WordCounter",),
}
"""Where each name is from. It is imported when it is first asked for: who needs one part, such as a counter, pays for
that alone (all of them take 40 ms on a small machine)."""


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            value: object = getattr(import_module(f"contextshift.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
