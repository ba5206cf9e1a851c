"""A conversation taken apart for a summary: its distinct sentences and their words, and a memory of the last few.

A client sends the same long history with each of its requests. What was read of it is remembered by the hashes of its
texts, so that a conversation that grew costs only its new messages. Words are numbers here, terms (folded words)
too: lists are quicker to look into than dictionaries, and a word that was said a thousand times is kept once.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from itertools import accumulate, chain, count
from sys import getsizeof
from types import MappingProxyType

from contextshift.lexical import LONGEST_SENTENCE, fold, sentences, word_lines

__all__ = ["Material", "Readings"]

_LEAST_WORDS = 3
_DIGIT = re.compile(r"\d")
_ENTRY, _SENTENCE, _TEXT = 330, 40, 48
"""Bytes that a distinct word costs, with its places in lists and dictionaries; a sentence beside its text; a text."""


def _numbered(known: Mapping[str, int] = MappingProxyType({})) -> defaultdict[str, int]:
    """Return a dictionary that numbers what it is asked for, in the order of asking, after what is known."""
    return defaultdict(count(len(known)).__next__, known)


@dataclass(slots=True)
class Material:
    """Distinct sentences, each at the place where it was said first, and what they are made of; see `extended`.

    >>> material = Material().extended(["Ana pays. Rex sleeps.", "Ana pays."])
    >>> material.sentences, material.times, list(material.vocabulary)
    (['Ana pays.', 'Rex sleeps.'], [2, 1], ['Ana', 'pays.', 'Rex', 'sleeps.'])
    """

    sentences: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    """How often each sentence was said."""
    turns: list[int] = field(default_factory=list)
    """The text each sentence was first said in."""
    readable: list[int] = field(default_factory=list)
    """The sentences that say something to a person."""
    said: list[int] = field(default_factory=list)
    """The terms of all sentences, by number, one sentence after the other."""
    ends: list[int] = field(default_factory=lambda: [0])
    """Where in ``said`` each sentence ends; one more than there are sentences, since the first begins at 0."""
    vocabulary: defaultdict[str, int] = field(default_factory=_numbered)
    """The number of each word, by its spelling."""
    counts: list[int] = field(default_factory=list)
    """By word: how often it stands in the sentences."""
    starts: list[int] = field(default_factory=list)
    """By word: how often it begins one."""
    term_of: list[int] = field(default_factory=list)
    """By word: the number of its folded form."""
    terms: defaultdict[str, int] = field(default_factory=_numbered)
    """The number of each folded form."""
    numerals: list[int] = field(default_factory=list)
    """Words with a digit."""
    capitals: list[int] = field(default_factory=list)
    """Words that begin with a capital."""
    lower: set[int] = field(default_factory=set)
    """Terms that are also written without one."""
    read: list[int] = field(default_factory=list)
    """The hashes of the texts, in order."""
    size: int = 0
    """About how many bytes all this takes."""

    def extended(self, texts: Sequence[str]) -> Material:
        """Return the material of a conversation that goes on with ``texts``; this one stays as it is."""
        whole = copy(self)
        for part in fields(self):
            if isinstance(value := getattr(self, part.name), list | set):
                setattr(whole, part.name, value.copy())
        whole.vocabulary, whole.terms = _numbered(self.vocabulary), _numbered(self.terms)
        whole._take(whole._new_sentences(texts))
        return whole

    def terms_of(self, index: int) -> list[int]:
        """Return the terms of one sentence, with repetitions."""
        return self.said[self.ends[index] : self.ends[index + 1]]

    def _new_sentences(self, texts: Sequence[str]) -> list[str]:
        place = {sentence: index for index, sentence in enumerate(self.sentences)}
        parts: dict[str, list[str]] = {}
        times, turns, known = self.times, self.turns, len(place)
        for turn, text in enumerate(texts, len(self.read)):
            found = parts.get(text)
            if found is None:
                found = parts[text] = sentences(text)
            for sentence in found:
                index = place.setdefault(sentence, len(times))
                if index < len(times):
                    times[index] += 1
                else:
                    times.append(1)
                    turns.append(turn)
        self.read += map(hash, texts)
        self.size += _TEXT * len(texts)
        return list(place)[known:]

    def _take(self, fresh: list[str]) -> None:
        """Read the words of new sentences."""
        if not fresh:
            return
        lines = word_lines("\n".join(sentence.replace("\n", " ") for sentence in fresh))
        words = list(map(self.vocabulary.__getitem__, chain.from_iterable(lines)))
        self._describe(len(self.counts))
        for word, times in Counter(words).items():
            self.counts[word] += times
        lengths = list(map(len, lines))
        ends = list(accumulate(lengths, initial=len(self.said)))
        self.said += map(self.term_of.__getitem__, words)
        for line in lines:
            if line:
                self.starts[self.vocabulary[line[0]]] += 1
        first = len(self.sentences)
        self.readable += [
            index
            for index, (sentence, length) in enumerate(zip(fresh, lengths, strict=True), first)
            if length >= _LEAST_WORDS and _readable(sentence, length)
        ]
        self.sentences += fresh
        self.ends += ends[1:]
        self.size += sum(map(getsizeof, fresh)) + 8 * len(words) + _SENTENCE * len(fresh)

    def _describe(self, known: int) -> None:
        """Fold and sort the words that are new to the vocabulary."""
        fresh = list(self.vocabulary)[known:]
        self.term_of += map(self.terms.__getitem__, map(fold, fresh))
        self.counts += [0] * len(fresh)
        self.starts += [0] * len(fresh)
        for number, word in enumerate(fresh, known):
            if word.islower():
                self.lower.add(self.term_of[number])
            elif word[0].isupper():
                self.capitals.append(number)
            if not word.isalpha() and _DIGIT.search(word):
                self.numerals.append(number)
        self.size += _ENTRY * len(fresh)


def _readable(sentence: str, words: int) -> bool:
    """Whether it says something to a person: a few words, and no code block, encoded data or endless line."""
    size = len(sentence)
    return size <= LONGEST_SENTENCE and size <= 16 * words + 40 and sentence[:3] != "```"


class Readings:
    """The material of the last few conversations, so that one that has grown is read from where it was.

    At most ``conversations``, and about ``bytes_`` bytes of them together; a larger one is not kept. What is kept are
    sentences and numbers made here, no object of the caller's. Nothing that is kept is ever changed, and all of it is
    replaced at once: threads can only make one another forget. A history is recognised by the hashes of its texts
    (64 bits and a secret of the process, as Python makes them).
    """

    def __init__(self, conversations: int = 8, bytes_: int = 16 << 20) -> None:
        self._most, self._bytes = conversations, bytes_
        self._kept: tuple[Material, ...] = ()

    def __len__(self) -> int:
        """Return how many conversations are remembered."""
        return len(self._kept)

    def material(self, texts: Sequence[str]) -> Material:
        """Return the material of a conversation, the same whether some of it was remembered or not."""
        read = list(map(hash, texts))
        begun = [kept for kept in self._kept if kept.read == read[: len(kept.read)]]
        longest = max(begun, key=lambda kept: len(kept.read), default=None)
        known = Material() if longest is None else longest
        whole = known if len(known.read) == len(read) else known.extended(texts[len(known.read) :])
        self._keep(whole, longest)
        return whole

    def _keep(self, fresh: Material, instead: Material | None) -> None:
        kept: list[Material] = []
        room = self._bytes
        for material in (fresh, *(other for other in self._kept if other is not instead and other is not fresh)):
            room -= material.size
            if room < 0 or len(kept) == self._most:
                break
            kept.append(material)
        self._kept = tuple(kept)
