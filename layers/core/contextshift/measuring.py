"""A request as one model counts it, or as bytes alone prove that it fits.

Counting is what costs time here, and a vocabulary is loaded only when something is counted. So where nobody
needs the exact number, and the bytes of the request already fit the budget, nothing is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contextshift.audit import Entry
from contextshift.budget import Budget, requested_reply
from contextshift.calibration import Calibration
from contextshift.catalogue import Catalogue, Model, model_budget, request_cost, reserve_for
from contextshift.messages import Message
from contextshift.needs import needs_of
from contextshift.settings import Settings
from contextshift.shift import count_messages
from contextshift.tokens import TokenCounter, slack_of

__all__ = ["CounterFor", "Measure", "Question", "measure", "proved_by_bytes"]

_COUNTABLE = frozenset(("reasoning",))
"""Capabilities whose use adds no more than the constant below."""
_FORMAT_TOKENS = 800
"""What chat formats add beyond the bytes of the request, at the most: a preamble, priming and a date (690 tokens are
the most that was measured, 2026-11)."""
_RENDERED = ("tool_calls", "function_call", "audio", "reasoning_content", "reasoning", "thinking")
"""Fields of a message that a format may write in its own words."""

CounterFor = Callable[[Model], TokenCounter]
"""Return the counter of a model; models of one tokenizer share one counter."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request, as the decision needs it: checked messages, the whole request, resolved settings."""

    model: Model
    messages: Sequence[Message]
    request: Mapping[str, Any]
    settings: Settings
    allowed: Sequence[str] | None = None
    """Model names the account may use; None means all."""
    relevance: Mapping[int, float] = field(default_factory=dict)
    """Ratings of memories and lore that came without one, by message index."""
    size: int | None = None
    """Bytes of the request as it came, where bytes may stand for a count; None where it must be exact."""
    calibration: Calibration = field(default_factory=Calibration)
    """What corrects approximate counts of this account, frozen for this request."""
    key_provider: str | None = None
    """The provider whose key the caller brought: no other may be called. None: the deployment's keys are used."""
    notes: tuple[Mapping[str, Any], ...] = ()
    """What was found on the way to the question, for the diagnostics."""
    assembled: bool = False
    """Whether the messages are blocks of `contextshift.assembly`, each with its id in ``meta``."""
    arrange: Callable[[Collection[str]], Sequence[Message]] | None = None
    """Makes the blocks for a target with other message rules; None: every model gets ``messages``."""
    outside: tuple[Entry, ...] = ()
    """What was judged and did not become a block, such as lore that nothing woke: the audit lists it too."""
    catalogue: Catalogue | None = None
    """What the model was found in and another is chosen from, where it is not the deployment's own."""
    today: str = ""
    """As an ISO date: no model is chosen that has been shut down by then; empty where nobody says."""

    def opens(self, provider: str) -> bool:
        """Whether there is a key with which this call may go to a provider."""
        if self.key_provider is not None:
            return provider == self.key_provider
        endpoint = self.settings.endpoint(provider)
        return endpoint is None or endpoint.secret is not None


@dataclass(frozen=True, slots=True)
class Measure:
    """A request as one model counts it."""

    model: Model
    counter: TokenCounter
    tokens: Sequence[int]
    """By message index, the whole conversation as it came."""
    fixed: int
    prompt: int
    """All of it: messages that are sent, and fixed costs."""
    reserve: int
    slack: int = 0
    """What the counter says that ``fixed`` may be under by."""
    bound: bool = False
    """Whether ``prompt`` is only an upper bound: bytes alone proved that it fits, and nothing was counted."""

    @property
    def margin(self) -> int:
        """Tokens held back beside the prompt: the profile's margin, and the slack of this request."""
        return self.counter.profile.margin_tokens(self.prompt) + self.slack

    @property
    def budget(self) -> Budget | None:
        """The model's budget for this request, None where its window is unknown."""
        if self.model.context_window is None:
            return None
        return model_budget(self.model, self.reserve, self.fixed, self.slack)

    @property
    def fits(self) -> bool:
        """Whether prompt and margin are within the limit; a model of unknown window is not ours to judge."""
        budget = self.budget
        return budget is None or self.prompt + self.margin <= budget.limit

    @property
    def cost(self) -> float | None:
        """The most the request can cost in USD."""
        return request_cost(self.model, self.prompt, self.reserve)


def measure(question: Question, model: Model, counter: TokenCounter, gone: frozenset[int] = frozenset()) -> Measure:
    """Count a request for one model, less the messages ``gone``."""
    tokens = count_messages(question.messages, counter)
    fixed = counter.fixed(question.request)
    kept = sum(count for index, count in enumerate(tokens) if index not in gone)
    reserve = reserve_for(model, requested_reply(question.request), question.settings.reserve_tokens)
    return Measure(model, counter, tokens, fixed, kept + fixed, reserve, slack_of(counter, question.request))


def proved_by_bytes(question: Question, counter: TokenCounter) -> Measure | None:
    """Return a measure that bytes alone prove to fit, None where something must be counted.

    A byte-level tokenizer makes no more tokens than there are bytes, and the JSON around a text is longer than what
    a chat format puts around it. That proves nothing of what is rendered anew before it is counted: tools, calls,
    schemas, parts nobody knows. Media are priced by rules of their own, and a cost ceiling wants a real count.
    """
    most, window = counter.profile.bytes_bound, question.model.context_window
    if question.size is None or most is None or window is None:
        return None
    settings = question.settings
    if settings.exclude or settings.compliance.max_cost_usd is not None:
        return None
    needs = needs_of(question.request, question.messages)
    if not _COUNTABLE.issuperset(needs.capabilities) or not all(map(_is_plain, question.messages)):
        return None
    bound = math.ceil(question.size * most) + _FORMAT_TOKENS
    reserve = reserve_for(question.model, needs.reply, settings.reserve_tokens)
    proved = Measure(question.model, counter, (), 0, bound, reserve, bound=True)
    return proved if proved.fits else None


def _is_plain(message: Message) -> bool:
    """Say whether a message is counted as the texts it holds, and nothing else."""
    content = message.get("content")
    if len(message) == 2 and isinstance(content, str):  # a role and a text, as most are
        return True
    if any(message.get(name) for name in _RENDERED):
        return False
    if content is None or isinstance(content, str):
        return True
    return isinstance(content, list) and all(
        isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in content
    )
