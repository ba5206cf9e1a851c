"""What it costs to find out which of 5,000 entries a conversation wakes.

Run with ``layers/core`` and ``functions`` on ``PYTHONPATH``. The peer is the plain loop over the same keys, each
looked for in the same text: what an application without an index does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from contextshift.lore.activation import activate
from contextshift.lore.activation_ports import LoreSettings, Turn
from contextshift.lore.model import Book, Entry
from contextshift.lore.plans import compile_book
from contextshift.words import WordCounter

ENTRIES = 5_000
MESSAGES = 10
WORDS = 100
"""Of a message."""
TARGET_MS = 20
RUNS = 15
SYLLABLES = ("ka", "lor", "en", "thi", "mar", "sul", "dra", "gon", "vel", "ost", "rin", "ba", "ке", "дра", "кон", "é")
SETTINGS = LoreSettings(scan_depth=MESSAGES, budget_tokens=2_000)


def main() -> None:
    """Print the whole report; about five seconds."""
    chance = random.Random(7)
    vocabulary = sorted({"".join(chance.choices(SYLLABLES, k=chance.randint(3, 5))) for _ in range(30_000)})
    talk = vocabulary[::60]
    messages = [" ".join(chance.choices(talk, k=WORDS)) for _ in range(MESSAGES)]
    print(f"{ENTRIES:,} entries of 2 or 3 keys, the newest {MESSAGES} messages of {WORDS} words; least of {RUNS} runs")
    for name, fields in (
        ("parts of words", {}),
        ("whole words", {"match_whole_words": True}),
        ("with recursion", {"match_whole_words": True, "recursive_scanning": True}),
    ):
        measure(name, made_book(vocabulary, **fields), messages)


def made_book(vocabulary: list[str], **fields: bool) -> Book:
    """Return a book whose keys are one or two words, a fifth of them two."""
    chance = random.Random(11)

    def key() -> str:
        return " ".join(chance.choices(vocabulary, k=1 + (chance.random() < 0.2)))

    return Book(
        id="bench",
        entries=tuple(
            Entry(
                id=str(number),
                content=" ".join(chance.choices(vocabulary, k=60)),
                keys=tuple(key() for _ in range(chance.randint(2, 3))),
                insertion_order=number % 100,
            )
            for number in range(ENTRIES)
        ),
        **fields,
    )


def measure(name: str, book: Book, messages: list[str]) -> None:
    """Print a line for one book."""
    begun = time.perf_counter()
    compile_book(book)
    compiled = time.perf_counter() - begun
    count = WordCounter().text

    def wake() -> int:
        found = activate(
            [book], messages, settings=SETTINGS, turn=Turn(), count=count, search=lambda source, flags, text: False
        )
        return len(found.entries)

    text = "\n".join(messages).casefold()
    keys = [[key.casefold() for key in entry.keys] for entry in book.entries]
    took, peer = least(wake), least(lambda: sum(any(key in text for key in own) for own in keys))
    print(
        f"  {name:<16} {took * 1000:7.2f} ms (target {TARGET_MS})   plain loop {peer * 1000:7.2f} ms"
        f"   ratio {took / peer:5.2f}   compiled once in {compiled * 1000:6.1f} ms"
        f"   {wake()} of {woken(book, messages)} woken entries in"
    )


def woken(book: Book, messages: list[str]) -> int:
    """Return how many entries wake without a budget."""
    free = LoreSettings(scan_depth=MESSAGES)
    found = activate([book], messages, settings=free, turn=Turn(), count=len, search=lambda source, flags, text: False)
    return len(found.entries)


def least(run: Callable[[], object]) -> float:
    """Return the least seconds of a run."""
    taken = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begun)
    return min(taken)
