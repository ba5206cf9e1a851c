"""The fast engine against tiktoken on 100,000 generated strings an encoding: no count may differ.

``FUZZ_STRINGS`` and ``FUZZ_SEED`` in the environment take other numbers; a difference ends the run with status 1.
"""

from __future__ import annotations

import os
import time

from bastion.tokenizers.encodings import LazyEncoding
from bastion.tokenizers.registry import VOCABULARY_FOLDERS
from bastion.tokenizers.splintr_engine import SplintrEncoding
from bastion.tokenizers.tiktoken_engine import TiktokenEncoding
from bastion.tokenizers.vocab import load_ranks
from gateway.tokenizers.fuzz import strings

NAMES = ("o200k_base", "cl100k_base")
SHOWN = 5


def main() -> None:
    """Print how many strings and bytes were compared, and the first that differ."""
    number, seed = int(os.environ.get("FUZZ_STRINGS", "100000")), int(os.environ.get("FUZZ_SEED", "1"))
    wrong = {name: differences(name, number, seed) for name in NAMES}
    if any(wrong.values()):
        raise SystemExit(f"counts differ from tiktoken's: {wrong}")


def differences(name: str, number: int, seed: int) -> list[str]:
    """Return the strings on which the two differ."""
    exact = TiktokenEncoding(name, load_ranks(name, VOCABULARY_FOLDERS))
    fast = SplintrEncoding(name, LazyEncoding(name, lambda: exact))
    begun, size, wrong = time.perf_counter(), 0, []
    for text in strings(number, seed):
        size += len(text.encode())
        if fast.count(text) != exact.count(text):
            wrong.append(text)
    seconds = time.perf_counter() - begun
    print(f"{name:<14}{number:>9,} strings, {size / 1e6:.1f} MB, {len(wrong)} differ ({seconds:.0f} s)")
    for text in wrong[:SHOWN]:
        print("  ", ascii(text))
    return wrong


if __name__ == "__main__":
    main()
