"""`shift_context` against the floor: tokenising everything once and doing nothing else."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bastion.tokenizers.registry import counter_for
from contextshift import Budget, TokenCounter, shift_context
from contextshift.guard import Guard
from contextshift.shift import shift_situation, situate
from contextshift.strategies import BUILTIN

GUARD = Guard()
SIZES = (10, 100, 1_000, 10_000)
VOCAB = (Path(__file__).parents[2] / "layers" / "vocab",)


def conversation(length: int) -> list[dict[str, Any]]:
    """A conversation of turns and tool rounds, no two messages alike (a memo of counts must not help)."""
    talk: list[dict[str, Any]] = [{"role": "system", "content": "You are a careful assistant."}]
    for turn in range(length // 4):
        said = (
            f"In turn {turn} the committee of {turn * 7} members met on Tuesday and published what it had found. " * 6
        )
        call = {
            "id": f"call_{turn % 3}",
            "type": "function",
            "function": {"name": "look", "arguments": f'{{"n":{turn}}}'},
        }
        talk += [
            {"role": "user", "content": said},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": said[::-1]},
            {"role": "assistant", "content": said.upper()},
        ]
    return [*talk, {"role": "user", "content": "And now?"}]


def milliseconds(work: Callable[[], object], runs: int = 7) -> float:
    """Return the median duration."""
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def fresh_counter() -> TokenCounter:
    """Return an exact counter whose vocabulary is loaded."""
    counter = counter_for("o200k_base", "gpt-4o", VOCAB)
    counter.text("warm")
    return counter


def main() -> None:
    """Print the table: floor, whole shift to half, and the shift alone with counts known."""
    counter = fresh_counter()
    print(
        f"{'messages':>9}{'tokens':>10}{'floor ms':>11}{'shift ms':>11}{'/ floor':>9}{'known ms':>11}{'us/message':>12}"
    )
    for size in SIZES:
        talk = conversation(size)
        tokens = [counter(message) for message in talk]
        half = sum(tokens) // 2

        def floor(talk: list[dict[str, Any]] = talk) -> None:
            for message in talk:
                counter(message)

        def known(talk: list[dict[str, Any]] = talk, tokens: list[int] = tokens, half: int = half) -> None:
            shift_situation(situate(talk, tokens, Budget(half), counter), BUILTIN[0], GUARD)

        base, whole = milliseconds(floor), milliseconds(lambda t=talk, h=half: shift_context(t, counter, h))
        alone = milliseconds(known)
        row = f"{len(talk):>9}{sum(tokens):>10}{base:>11.2f}{whole:>11.2f}{whole / base:>9.2f}{alone:>11.2f}"
        print(row + f"{alone * 1000 / len(talk):>12.2f}")
