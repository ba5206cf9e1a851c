"""What counting costs: the first count of a fresh process, and throughput as a ratio to plain tiktoken.

Run with ``layers/core`` and ``functions`` on ``PYTHONPATH``. Ratios travel between machines, seconds do not:
1.00 is as fast as tiktoken's ``encode_ordinary`` on the same text, more is faster.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import tiktoken

from bastion.tokenizers.openai_chat import OpenAIChatCounter
from bastion.tokenizers.registry import TOKENIZERS, VOCABULARY_FOLDERS
from bastion.tokenizers.splintr_engine import SplintrEncoding
from bastion.tokenizers.tiktoken_engine import PATTERNS
from bastion.tokenizers.vocab import load_ranks
from contextshift.estimate import estimate_text

COLD = """
import time
begun = time.perf_counter()
from bastion.tokenizers import counter_for
counter = counter_for({tokenizer!r}, "gpt-4o")
imported = time.perf_counter()
counter({{"role": "user", "content": "hello world"}})
counted = time.perf_counter()
print(imported - begun, counted - imported, int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6)
"""
TIKTOKEN = """
import time
begun = time.perf_counter()
from bastion.tokenizers.registry import VOCABULARY_FOLDERS
from bastion.tokenizers.tiktoken_engine import TiktokenEncoding
from bastion.tokenizers.vocab import load_ranks
imported = time.perf_counter()
TiktokenEncoding("o200k_base", load_ranks("o200k_base", VOCABULARY_FOLDERS)).count("hello world")
counted = time.perf_counter()
print(imported - begun, counted - imported, int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6)
"""
TEXTS = {
    "English prose": "The committee met on Tuesday and agreed to publish what it had found, in full, by June. " * 200,
    "Chinese": "委员会星期二开会，同意在六月之前公布其全部调查结果。" * 400,
    "code": "def total(rows):\n    return sum(row['price'] * row.get('count', 1) for row in rows)\n\n" * 200,
    "JSON": '{"id":48213,"name":"ann","score":0.731,"created":"2026-03-14T09:26:53Z","parent":null},\n' * 200,
    "short message": "What is the weather like in Boston?",
}
RUNS = 9


def main() -> None:
    """Print the whole report; about ten seconds."""
    print(f"{'fresh process':<16}{'import':>10}{'first count':>14}{'together':>10}{'RSS':>8}   (median of {RUNS})")
    for name, program in (("tiktoken o200k", TIKTOKEN), *((name, COLD.format(tokenizer=name)) for name in TOKENIZERS)):
        imported, counted, memory = cold(program)
        print(f"{name:<16}{imported:>10.1f}{counted:>14.1f}{imported + counted:>10.1f}{memory:>8.0f}")
    print(f"\n{'throughput':<16}{'tiktoken':>10}{'text':>10}{'message':>10}{'estimate':>10}   (MB/s, then ratios)")
    for name, text in TEXTS.items():
        print(f"{name:<16}" + "".join(throughput(text)))


def cold(program: str) -> tuple[float, float, float]:
    """Return the median milliseconds of import and of first count in a fresh process, and its megabytes."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    runs = []
    for _ in range(RUNS):
        output = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
        runs.append([float(field) for field in output.stdout.split()])
    imported, counted, memory = (statistics.median(column) for column in zip(*runs, strict=True))
    return 1000 * imported, 1000 * counted, memory


def throughput(text: str) -> list[str]:
    """Return tiktoken's MB/s on ``text`` and the speed of ours as ratios to it, formatted."""
    ranks = load_ranks("o200k_base", VOCABULARY_FOLDERS)
    plain = tiktoken.Encoding("o200k_base", pat_str=PATTERNS["o200k_base"], mergeable_ranks=ranks, special_tokens={})
    encoding = SplintrEncoding("o200k_base")  # without the memo, which would answer from memory
    counter, message = OpenAIChatCounter(encoding), {"role": "user", "content": text}
    base = seconds(lambda: len(plain.encode_ordinary(text)))
    ours = [lambda: encoding.count(text), lambda: counter(message), lambda: estimate_text(text)]
    return [f"{len(text.encode()) / base / 1e6:>10.1f}", *(f"{base / seconds(run):>10.2f}" for run in ours)]


def seconds(run: Callable[[], int]) -> float:
    """Return the median seconds of one call, each run long enough to be measured."""
    run()
    repeats = max(1, int(0.02 / max(timed(run, 1), 1e-7)))
    return statistics.median(timed(run, repeats) for _ in range(RUNS))


def timed(run: Callable[[], int], repeats: int) -> float:
    """Return the mean seconds of ``repeats`` calls."""
    begun = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - begun) / repeats


if __name__ == "__main__":
    main()
