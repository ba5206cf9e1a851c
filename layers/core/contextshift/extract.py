"""A summary made of the conversation's own sentences: no model, any language, at most so many tokens.

What is worth keeping is read off the conversation itself. A word carries most where it is neither everywhere nor
nowhere else (a centroid of tf-idf, as in Radev et al., *Centroid-based summarization of multiple documents*, 2004).
Names, numbers and identifiers carry more, by as much as they are rare *here*: a German noun or a line of a log
gains little from its capital or its digits. Sentences are then taken greedily by how much they add to
what is already said, per length: the budgeted submodular coverage of Lin & Bilmes, *A Class of Submodular
Functions for Document Summarization*, 2011, evaluated lazily (Minoux, 1978) over a bounded list of candidates.

Weights are integers, so that no sum depends on the order of a set. The work is linear in the text.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from contextshift.lexical import LONGEST_SENTENCE, fold, sentences, terms, word_lines

__all__ = ["Said", "summarise"]


class Said(NamedTuple):
    """One speech: the label of who spoke, as the summary shall show it, and what was said."""

    speaker: str
    text: str


def summarise(said: Sequence[Said], limit: int, count: Callable[[str], int]) -> str | None:
    """Return a summary of at most ``limit`` tokens by ``count``, None where no meaningful sentence fits.

    Sentences stand word for word and in the order they were said, a line for each run of one speaker's.
    ``count`` prices a text; it is asked about a few texts made here, never about the conversation itself.

    >>> said = [Said("User", "Hi! Lunch is at noon."), Said("Assistant", "Noted. Ana pays 40 EUR for it.")]
    >>> summarise(said, 8, lambda text: len(text.split()))
    'Assistant: Ana pays 40 EUR for it.'
    """
    if limit <= 0 or not said:
        return None
    material = _Material.of(said)
    price = _Price(count)
    order = _Order(material, price.characters(limit, material))
    return _longest(material, order, limit, price) or _single(material, order, limit, price)


# -- what there is ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Material:
    """The conversation taken apart: distinct sentences, each at the place where it was said first."""

    said: Sequence[Said]
    sentences: list[str]
    times: list[int]
    """How often each was said."""
    turns: list[int]
    """The speech each was first said in."""
    words: list[list[str]]

    @classmethod
    def of(cls, said: Sequence[Said]) -> _Material:
        texts = dict.fromkeys(speech.text for speech in said)
        parts = {text: sentences(text) for text in texts}
        times = Counter(chain.from_iterable(parts[speech.text] for speech in said))
        first: dict[str, int] = {}
        for turn in range(len(said) - 1, -1, -1):
            first.update(dict.fromkeys(parts[said[turn].text], turn))
        found = list(times)
        words = word_lines("\n".join(sentence.replace("\n", " ") for sentence in found)) if found else []
        return cls(said, found, list(times.values()), [first[sentence] for sentence in found], words)


class _Weights:
    """What each word of the conversation is worth, by its spelling and by its folded form."""

    def __init__(self, material: _Material) -> None:
        counts = Counter(chain.from_iterable(material.words))
        self.folded = {word: fold(word) for word in counts}
        together: Counter[str] = Counter()
        for term, times in zip(self.folded.values(), counts.values(), strict=True):
            together[term] += times
        worth = self._by_count(len(material.words), together)
        self.of_term = {term: worth[times] if term else 0 for term, times in together.items()}
        self.of_word = {word: self.of_term[term] for word, term in self.folded.items()}
        for word, weight in self._marked(material, counts).items():
            self.of_word[word] = weight
            self.of_term[self.folded[word]] = max(weight, self.of_term[self.folded[word]])

    @staticmethod
    def _by_count(total: int, together: Counter[str]) -> dict[int, int]:
        """Return the worth of a word by how often it was said: a bump between once and everywhere."""
        return {
            times: round(_UNIT * math.sqrt(math.log1p(times)) * math.log(max(1.0, (total + 1) / times)) ** 2)
            for times in set(together.values())
        }

    def _marked(self, material: _Material, counts: Counter[str]) -> dict[str, int]:
        """Return more for names, numbers and identifiers, by how rare such words are in this conversation."""
        numbers = [word for word in counts if not word.isalpha() and _DIGIT.search(word)]
        starts = Counter(words[0] for words in material.words if words)
        common = {self.folded[word] for word in counts if word.islower()}
        capitals = [word for word in counts if word[0].isupper() and counts[word] > starts[word]]
        names = [word for word in capitals if self.folded[word] not in common and word not in _I]
        total = sum(counts.values())
        raised: dict[str, int] = {}
        for group in (numbers, names):
            share = sum(counts[word] for word in group) / total if group else 1.0
            factor = 1.0 + _MARKED * min(1.0, -math.log2(share) / 6)
            raised.update((word, round(self.of_word[word] * factor)) for word in group)
        return raised


_UNIT = 64
_MARKED = 0.6
"""How much more a name or a number is worth where hardly any other word is one."""
_DIGIT = re.compile(r"\d")
_I = frozenset(("I", "I'm", "I've", "I'll", "I'd"))
"""English writes its first person like a name."""


# -- which sentences are worth most ------------------------------------------------------------------------

_CANDIDATES, _USUAL_LENGTH, _FEWEST = 6, 60, 64
"""Candidates are about as much text as fills the room so many times, and never too few to choose from."""
_LEAST_WORDS = 3
_SAID_AGAIN = 4
"""A term that the summary has already is worth the fourth part."""

_QUESTION = re.compile(r"[?؟？;\u037e፧՞][\"'”’»)\]）」』*_\s]*\Z")
_DECISIONS = frozenset(
    terms(
        "decide decided decision agree agreed let's must never always deadline promise promised beschlossen "
        "entschieden vereinbart muss müssen décidé décision accord doit decidido decisión acordado acuerdo debe "
        "decisão acordamos deve deciso decisione besloten afgesproken moet ustalono postanowiono musi решили решено "
        "договорились должны нужно вирішили домовились карар قررنا اتفقنا يجب החלטנו סיכמנו तय "
        "决定 決定 同意 必须 必須 결정 합의"
    )
)
"""How decisions are often worded; one small factor among others, since most languages are not here."""


class _Order:
    """The candidates in the order in which a summary should take them, worked out as far as it is asked for."""

    def __init__(self, material: _Material, room: int) -> None:
        self._material = material
        self._weights = _Weights(material)
        self._taken: list[int] = []
        self._left = dict(self._weights.of_term)
        self._pending = self._greedy(self._candidates(room))

    def first(self, number: int) -> list[int]:
        """Return the best ``number`` of sentences, fewer where there are fewer."""
        self._taken += islice(self._pending, max(0, number - len(self._taken)))
        return self._taken[:number]

    def filling(self, characters: float) -> int:
        """Return how many of the best sentences have at most so many characters, labels included."""
        used, number = 0.0, 0
        while used <= characters:
            number += 1
            taken = self.first(number)
            if len(taken) < number:
                break
            used += self._length(taken[-1])
        return number - 1

    def _length(self, index: int) -> int:
        return len(self._material.sentences[index]) + 1

    def _candidates(self, room: int) -> list[int]:
        """Return the sentences that are worth most for their length, enough to choose from."""
        worth, material = self._weights.of_word.__getitem__, self._material
        scores = [
            sum(map(worth, words)) / (len(sentence) + _SLACK) / times if _readable(sentence, words) else 0.0
            for sentence, words, times in zip(material.sentences, material.words, material.times, strict=True)
        ]
        number = _FEWEST + _CANDIDATES * room // _USUAL_LENGTH
        best = heapq.nlargest(min(number, len(scores)), range(len(scores)), key=scores.__getitem__)
        return [index for index in best if scores[index]]

    def _greedy(self, candidates: list[int]) -> Iterator[int]:
        material, folded = self._material, self._weights.folded
        within = {index: set(map(folded.__getitem__, material.words[index])) for index in candidates}
        factors = {index: self._factor(index, within[index]) for index in candidates}
        left = self._left
        price = {index: math.pow(len(material.sentences[index]) + _SLACK, _LENGTH) for index in candidates}

        def gain(index: int) -> float:
            return -factors[index] * sum(map(left.__getitem__, within[index])) / price[index]

        heap = [(gain(index), index, 0) for index in candidates]
        heapq.heapify(heap)
        taken, patience = 0, 8 * len(heap)
        while heap:
            _, index, seen = heap[0]
            if seen != taken and patience:
                patience -= 1
                heapq.heapreplace(heap, (gain(index), index, taken))
                continue
            heapq.heappop(heap)
            for term in within[index]:
                left[term] //= _SAID_AGAIN
            taken += 1
            yield index

    def _factor(self, index: int, within: set[str]) -> float:
        sentence = self._material.sentences[index]
        factor = 1.0 if _DECISIONS.isdisjoint(within) else 1.25
        if _QUESTION.search(sentence):
            factor *= 1.4 if self._is_open(index) else 0.6
        return factor / self._material.times[index]

    def _is_open(self, index: int) -> bool:
        """Whether the next to speak takes up none of the question's weightiest words; nobody may have answered."""
        said, turn = self._material.said, self._material.turns[index]
        replies = (speech.text for speech in said[turn + 1 : turn + 4] if speech.speaker != said[turn].speaker)
        reply = next(replies, "")[:_REPLY].casefold()
        words = sorted(self._material.words[index], key=self._weights.of_word.__getitem__)[-3:]
        return not any(self._weights.folded[word] in reply for word in words)


_SLACK = 20
"""Characters added to every length, so that the shortest sentences do not win by that alone."""
_LENGTH = 0.9
"""How much length costs: at 1 short sentences win, at 0 long ones."""
_REPLY = 2_000


def _readable(sentence: str, words: Sequence[str]) -> bool:
    """Whether it says something to a person: a few words, and no code block, encoded data or endless line."""
    size, number = len(sentence), len(words)
    return number >= _LEAST_WORDS and size <= LONGEST_SENTENCE and size <= 16 * number + 40 and sentence[:3] != "```"


# -- making it fit -----------------------------------------------------------------------------------------


class _Price:
    """What texts cost, and from those already counted what the next will."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._each: float | None = None

    def __call__(self, text: str) -> int:
        tokens = self._count(text)
        if text:
            self._each = tokens / len(text)
        return tokens

    def characters(self, limit: int, material: _Material) -> int:
        """Return about how many characters cost ``limit``, at first by a sample of the conversation."""
        if self._each is None:
            step = max(1, len(material.sentences) // _SAMPLE)
            self(" ".join(material.sentences[::step][:_SAMPLE]))
        whole = sum(map(len, material.sentences))
        return min(whole, int(limit / self._each)) if self._each and self._each > 0 else whole


_SAMPLE = 16
_COUNTS = 6
_CLOSE, _AIM = 0.96, 0.985
"""Near enough to the limit to stop guessing, and what a guess aims at."""


def _longest(material: _Material, order: _Order, limit: int, price: _Price) -> str | None:
    """Return the text of as many of the best sentences as fit, found by a few guesses."""
    best: str | None = None
    low, high = 0, len(material.sentences) + 1
    # A small text first: it tells what the chosen sentences cost, labels and all, for an eighth of the price.
    number = order.filling(price.characters(limit, material)) // 8 + 1
    for _ in range(_COUNTS):
        chosen = order.first(min(max(number, low + 1), high - 1))
        if len(chosen) <= low:
            break
        text = _rendered(material, chosen)
        tokens = price(text)
        if tokens > limit:
            high = len(chosen)
        else:
            low, best = len(chosen), text
            if tokens >= limit * _CLOSE:
                break
        number = int(len(chosen) * limit * _AIM / tokens) if tokens else high
    return best


def _single(material: _Material, order: _Order, limit: int, price: _Price) -> str | None:
    """Return the best single sentence that fits, where the best of all was too long."""
    room = price.characters(limit, material)
    short = (index for index in order.first(64) if len(material.sentences[index]) <= room)
    for index in islice(short, _COUNTS):
        text = _rendered(material, [index])
        if price(text) <= limit:
            return text
    return None


def _rendered(material: _Material, chosen: Sequence[int]) -> str:
    lines: list[str] = []
    speaker: str | None = None
    for index in sorted(chosen):
        sentence, who = material.sentences[index], material.said[material.turns[index]].speaker
        if who != speaker or not lines:
            lines.append(f"{who}: {sentence}" if who else sentence)
        else:
            lines[-1] += _join(lines[-1]) + sentence
        speaker = who
    return "\n".join(lines)


def _join(before: str) -> str:
    """A space after a sentence's mark; what had none, such as an item of a list, gets a semicolon."""
    return "; " if before[-1].isalnum() else " "
