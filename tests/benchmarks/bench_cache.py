"""What a moving cut costs in a provider's prompt cache: a conversation of 400 turns, each request with all of it.

A provider charges less for the beginning that a prompt shares with the one before. Cutting to the brim moves the cut
with every turn, and after the system message nothing repeats; `headroom` moves it in steps. Measured over the requests
from the first cut on: the share of sent tokens in messages that repeat the previous request's beginning, and what the
prompts cost at list prices (cache in blocks of 128 tokens, from 1,024 on: OpenAI's guide, 2026).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmarks.bench_shift import fresh_counter
from contextshift import Budget, TokenCounter, shift_context

TURNS = 400
BUDGET = Budget(window=32_000, reserve=2_000)
HEADROOMS = (0.0, 0.1, 0.25, 0.5)
OTHERS = ("middle-out", "clear-tool-results", "summarize", "vector-recall")
"""Measured on even turns, without headroom and with a quarter."""
SYSTEM_WORDS = 1_200
INPUT, CACHED = 2.50, (1.25, 0.25)
"""US dollars a million tokens: list price, and what two generations of models charge for cached ones."""
CACHE_LEAST, CACHE_BLOCK = 1_024, 128
KINDS = {"even turns": ((60, 80), (250, 290)), "uneven turns": ((20, 120), (40, 500))}
"""Words of a user's and of an assistant's message: at least, at most."""
TEXT = """
the committee met on Tuesday and agreed to publish what it had found in full by June while every member of staff
was asked to check the numbers again because two of them had changed since the last report was written
"""
WORDS = TEXT.split()

Message = dict[str, Any]


@dataclass
class Sent:
    """What was sent from the first cut on."""

    requests: int = 0
    tokens: int = 0
    repeated: int = 0
    cached: int = 0
    cuts: int = 0
    """Requests whose beginning moved."""

    def add(self, total: int, prefix: int, moved: bool) -> None:
        """Note one request."""
        self.requests += 1
        self.tokens += total
        self.repeated += prefix
        self.cached += prefix // CACHE_BLOCK * CACHE_BLOCK if prefix >= CACHE_LEAST else 0
        self.cuts += moved

    def cost(self, cached_price: float) -> float:
        """Return dollars."""
        return ((self.tokens - self.cached) * INPUT + self.cached * cached_price) / 1e6


def main() -> None:
    """Print one line a conversation, strategy and headroom."""
    counter = fresh_counter()
    for kind, (users, assistants) in KINDS.items():
        talk = conversation(users, assistants)
        tokens = list(map(counter, talk))
        print(f"{kind}: {TURNS} turns, {sum(tokens)} tokens, {tokens[0]} of system message, allowance {BUDGET.limit}")
        prices = "".join(f"{f'$ at {price:.2f}':>11}" for price in CACHED)
        columns = f"{'requests':>9}{'cuts':>6}{'mean size':>10}{'repeated':>10}{prices}{'$ uncached':>12}"
        print(f"{'strategy':<20}{'headroom':>9}{columns}")
        pairs = [("truncate", headroom) for headroom in HEADROOMS]
        pairs += product(OTHERS, (0.0, 0.25)) if kind == "even turns" else []
        for strategy, headroom in pairs:
            print(line(strategy, headroom, simulated(talk, counter, strategy, headroom)))


def line(strategy: str, headroom: float, sent: Sent) -> str:
    """Return one line of the table."""
    costs = "".join(f"{sent.cost(price):>11.2f}" for price in CACHED)
    share, mean = sent.repeated / max(1, sent.tokens), sent.tokens // max(1, sent.requests)
    head = f"{strategy:<20}{headroom:>9.2f}{sent.requests:>9}{sent.cuts:>6}{mean:>10}{share:>10.1%}"
    return head + costs + f"{sent.tokens * INPUT / 1e6:>12.2f}"


def simulated(talk: list[Message], count: TokenCounter, strategy: str, headroom: float) -> Sent:
    """Send the conversation turn by turn, each time in full, and compare each prompt with the one before."""
    sent, before, cutting = Sent(), list[Mapping[str, Any]](), False
    for end in range(2, len(talk) + 1, 2):
        result = shift_context(talk[:end], count, BUDGET, strategy=strategy, headroom=headroom)
        if cutting:
            prefix = sum(map(count, common(before, result.kept)))
            sent.add(sum(map(count, result.kept)), prefix, result.kept[: len(before)] != before)
        before, cutting = result.kept, cutting or bool(result.excluded)
    return sent


def common(before: list[Mapping[str, Any]], now: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the messages with which both begin."""
    for old, new in zip(before, now, strict=False):
        if old != new:
            return
        yield new


def conversation(users: tuple[int, int], assistants: tuple[int, int]) -> list[Message]:
    """Return a system message and turns of that many words, always the same ones; it ends with a user's message."""
    random_ = random.Random(3)

    def said(least: int, most: int) -> str:
        return " ".join(random_.choice(WORDS) for _ in range(random_.randint(least, most))) + "."

    talk = [{"role": "system", "content": said(SYSTEM_WORDS, SYSTEM_WORDS)}]
    for turn in range(TURNS):
        talk.append({"role": "user", "content": f"{turn}: {said(*users)}"})
        talk.append({"role": "assistant", "content": said(*assistants)})
    return talk[:-1]
