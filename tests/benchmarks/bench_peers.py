"""`shift_context` beside LiteLLM's and LangChain's trimming: the same conversations, cut to half, in one run.

The floor is tiktoken's `encode_ordinary` on each text once. The peers run in `.venv-bench` (made by
``make .venv-bench/.stamp``) on the same vocabulary: LiteLLM on the copy it ships, LangChain's counter on ours.
Each run of ours reads its conversation anew from JSON, as a service does: no text's hash is known from before.
"counts" is counting alone, "again" the same where the memo has seen every text, "known" the shift with its
counts looked up.
"""

from __future__ import annotations

import gc
import gzip
import hashlib
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tiktoken

from bastion.tokenizers.encodings import LazyEncoding
from bastion.tokenizers.openai_chat import OpenAIChatCounter
from bastion.tokenizers.tiktoken_engine import PATTERNS, TiktokenEncoding
from bastion.tokenizers.vocab import load_ranks
from benchmarks.bench_shift import VOCAB, conversation
from contextshift import shift_context

SIZES = (10, 100, 1_000, 10_000)
GROWTH = (1_000, 3_000, 10_000, 30_000, 100_000)
SECONDS = 30.0
"""The most one call of a peer may take; LiteLLM's time grows with the square of the messages."""
COLUMNS = ("counts", "again", "ours", "ours, known", "litellm", "langchain")
WIDTH = 18
NAME = "o200k_base"
ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-bench" / "bin" / "python"
ADDRESS = f"https://openaipublic.blob.core.windows.net/encodings/{NAME}.tiktoken"
"""What tiktoken names a file of its cache after."""

Talk = list[dict[str, Any]]
Work = Callable[[Talk], object]


def main() -> None:
    """Print both tables."""
    cases = [case(size) for size in SIZES]
    peers = {name: answers(name, cases) for name in ("litellm", "langchain")}
    print("cut to half: ms (times the floor)")
    print(f"{'messages':>9}{'tokens':>9}{'floor':>8}" + "".join(f"{column:>{WIDTH}}" for column in COLUMNS))
    for index, (talk, budget) in enumerate(cases):
        print(row(talk, budget, [peers[name][index] for name in ("litellm", "langchain")]))
    for name, found in peers.items():
        idle = [len(talk) for (talk, _), answer in zip(cases, found, strict=True) if answer.get("unchanged")]
        if idle:
            print(f"{name} gave back every message of the conversations of {', '.join(map(str, idle))}")
    growth()


def row(talk: Talk, budget: int, peers: list[dict[str, Any]]) -> str:
    """Return one line of the first table."""
    counter = fresh_counter()
    base, *rest = together(talk, floor, counts, lambda again: sum(map(counter, again)), ours(budget))
    rest += together(talk, with_counts_known(budget))
    cells = [*(told(milliseconds, base) for milliseconds in rest), *(bounded(peer, base) for peer in peers)]
    return f"{len(talk):>9}{2 * budget:>9}{base:>8.2f}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def growth() -> None:
    """Print how ours grows: the same per thousand messages, if it is linear."""
    print("\nours, ms per 1,000 messages")
    print(f"{'messages':>9}{'floor':>9}{'total':>9}{'known':>9}")
    for size in GROWTH:
        talk, budget = case(size)
        parts = (*together(talk, floor, ours(budget)), *together(talk, with_counts_known(budget)))
        print(f"{len(talk):>9}" + "".join(f"{1000 * part / len(talk):>9.2f}" for part in parts))


def case(size: int) -> tuple[Talk, int]:
    """Return a conversation and half its tokens."""
    talk = conversation(size)
    return talk, sum(map(fresh_counter(), talk)) // 2


def floor(talk: Talk) -> None:
    """Encode each text once."""
    encode = plain().encode_ordinary
    for text in texts(talk):
        len(encode(text))


def counts(talk: Talk) -> int:
    """Count each message with a counter that knows no text yet."""
    return sum(map(fresh_counter(), talk))


def ours(budget: int) -> Work:
    """Return the whole shift with a counter that knows no text yet."""
    return lambda talk: shift_context(talk, fresh_counter(), budget)


def with_counts_known(budget: int) -> Work:
    """Return the whole shift with a counter that only looks up."""
    counter, known = fresh_counter(), dict[int, int]()

    def look_up(message: Mapping[str, Any]) -> int:
        return known[id(message)]

    def work(talk: Talk) -> object:
        return shift_context(talk, look_up, budget)

    def prepare(talk: Talk) -> None:
        known.clear()
        known.update((id(message), counter(message)) for message in talk)

    work.prepare = prepare  # type: ignore[attr-defined]
    return work


def together(talk: Talk, *works: Work) -> list[float]:
    """Return the median milliseconds of each, run in turn, each time on a conversation never seen before."""
    raw = json.dumps(talk)
    times: list[list[float]] = [[] for _ in works]
    for _ in range(max(3, min(25, 25_000 // len(talk)))):
        for work, taken in zip(works, times, strict=True):
            fresh = json.loads(raw)
            getattr(work, "prepare", list)(fresh)
            gc.collect()
            begun = time.perf_counter()
            work(fresh)
            taken.append((time.perf_counter() - begun) * 1000)
    return [statistics.median(taken) for taken in times]


def texts(talk: Talk) -> list[str]:
    """Return the texts of a conversation: contents, and names and arguments of calls."""
    found = [message["content"] for message in talk if message["content"]]
    for message in talk:
        for call in message.get("tool_calls", ()):
            found += [call["function"]["name"], call["function"]["arguments"]]
    return found


@cache
def plain() -> tiktoken.Encoding:
    """tiktoken as it is."""
    ranks = load_ranks(NAME, VOCAB)
    return tiktoken.Encoding(NAME, pat_str=PATTERNS[NAME], mergeable_ranks=ranks, special_tokens={})


@cache
def made() -> TiktokenEncoding:
    """Our encoding beneath the memo."""
    return TiktokenEncoding(NAME, load_ranks(NAME, VOCAB))


def fresh_counter() -> OpenAIChatCounter:
    """Return an exact counter with its vocabulary loaded and an empty memo."""
    return OpenAIChatCounter(LazyEncoding(NAME, made))


def answers(peer: str, cases: list[tuple[Talk, int]]) -> list[dict[str, Any]]:
    """Run one peer over all conversations in its own environment; an empty answer for each without that."""
    if not PYTHON.exists():
        print(f"{peer}: no {PYTHON.relative_to(ROOT)}; make it with: make .venv-bench/.stamp")
        return [{} for _ in cases]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.json"
        file.write_text(json.dumps([{"messages": talk, "budget": budget} for talk, budget in cases]))
        environment = {**os.environ, "TIKTOKEN_CACHE_DIR": folder}
        environment.pop("PYTHONPATH", None)
        vocabulary = gzip.decompress((VOCAB[0] / f"{NAME}.tiktoken.gz").read_bytes())
        (Path(folder) / hashlib.sha1(ADDRESS.encode()).hexdigest()).write_bytes(vocabulary)
        command = [str(PYTHON), str(Path(__file__).with_name("peers.py")), peer, str(file), str(SECONDS)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def told(milliseconds: float, base: float) -> str:
    """Write milliseconds and their ratio to the floor."""
    return f"{milliseconds:.2f} ({milliseconds / base:.{0 if milliseconds > 100 * base else 2}f})"


def bounded(answer: dict[str, Any], base: float) -> str:
    """Write a peer's time, or that it took longer than it may, or that it is not here."""
    if not answer:
        return "-"
    return told(answer["ms"], base) if answer["ms"] is not None else f"> {SECONDS:.0f} s"
