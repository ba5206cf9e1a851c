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
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from contextshift.lexical import terms
from contextshift.material import Material, Readings

__all__ = ["Said", "summarise"]


class Said(NamedTuple):
    """One speech: the label of who spoke, as the summary shall show it, and what was said."""

    speaker: str
    text: str


def summarise(
    said: Sequence[Said], limit: int, count: Callable[[str], int], readings: Readings | None = None
) -> str | None:
    """Return a summary of at most ``limit`` tokens by ``count``, None where no meaningful sentence fits.

    Sentences stand word for word and in the order they were said, a line for each run of one speaker's.
    ``count`` prices a text; it is asked about a few texts made here, never about the conversation itself.
    ``readings`` remembers what was read: it makes the next summary of a conversation that grew quicker, never another.

    >>> said = [Said("User", "Hi! Lunch is at noon."), Said("Assistant", "Noted. Ana pays 40 EUR for it.")]
    >>> summarise(said, 8, lambda text: len(text.split()))
    'Assistant: Ana pays 40 EUR for it.'
    """
    if limit <= 0 or not said:
        return None
    texts = [speech.text for speech in said]
    material = Material().extended(texts) if readings is None else readings.material(texts)
    price = _Price(count)
    order = _Order(said, material, price.characters(limit, material))
    return _longest(order, limit, price) or _single(order, limit, price)


# -- what words are worth --------------------------------------------------------------------------------


class _Weights:
    """What each word of the conversation is worth, by the number of its folded form."""

    def __init__(self, material: Material) -> None:
        term_of, counts = material.term_of, material.counts
        together = [0] * len(material.terms)
        for term, times in zip(term_of, counts, strict=True):
            together[term] += times
        worth = self._by_count(len(material.sentences), together)
        self.of_term = list(map(worth.__getitem__, together))
        if "" in material.terms:
            self.of_term[material.terms[""]] = 0
        for term, weight in self._marked(material).items():
            self.of_term[term] = weight

    @staticmethod
    def _by_count(total: int, together: list[int]) -> dict[int, int]:
        """Return the worth of a word by how often it was said: a bump between once and everywhere."""
        return {
            times: round(_UNIT * math.sqrt(math.log1p(times)) * math.log(max(1.0, (total + 1) / times)) ** 2)
            for times in set(together)
        }

    def _marked(self, material: Material) -> dict[int, int]:
        """Return more for names, numbers and identifiers, by how rare such words are in this conversation."""
        counts, starts, term_of, lower = material.counts, material.starts, material.term_of, material.lower
        first_person = {material.vocabulary[word] for word in _I if word in material.vocabulary}
        names = [
            word
            for word in material.capitals
            if counts[word] > starts[word] and term_of[word] not in lower and word not in first_person
        ]
        raised: dict[int, int] = {}
        for group in (material.numerals, names):
            share = sum(map(counts.__getitem__, group)) / len(material.said) if group else 1.0
            factor = 1.0 + _MARKED * min(1.0, -math.log2(share) / 6)
            raised.update((term, round(self.of_term[term] * factor)) for term in map(term_of.__getitem__, group))
        return raised


_UNIT = 64
_MARKED = 0.6
"""How much more a name or a number is worth where hardly any other word is one."""
_I = frozenset(("I", "I'm", "I've", "I'll", "I'd"))
"""English writes its first person like a name."""


# -- which sentences are worth most ------------------------------------------------------------------------

_CANDIDATES, _USUAL_LENGTH, _FEWEST = 6, 60, 64
"""Candidates are about as much text as fills the room so many times, and never too few to choose from."""
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

    def __init__(self, said: Sequence[Said], material: Material, room: int) -> None:
        self.said, self.material = said, material
        self._weights = _Weights(material)
        self._decisions = {material.terms[term] for term in _DECISIONS if term in material.terms}
        self._taken: list[int] = []
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
        return len(self.material.sentences[index]) + 1

    def _candidates(self, room: int) -> list[int]:
        """Return the sentences that are worth most for their length, enough to choose from."""
        sentences, times, ends = self.material.sentences, self.material.times, self.material.ends
        worth = list(accumulate(map(self._weights.of_term.__getitem__, self.material.said), initial=0))
        before = list(map(worth.__getitem__, ends))
        scores = {
            index: (before[index + 1] - before[index]) / (len(sentences[index]) + _SLACK) / times[index]
            for index in self.material.readable
        }
        number = _FEWEST + _CANDIDATES * room // _USUAL_LENGTH
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:number]
        return [index for index in best if scores[index]]

    def _greedy(self, candidates: list[int]) -> Iterator[int]:
        material, left = self.material, list(self._weights.of_term)
        within = {index: set(material.terms_of(index)) for index in candidates}
        share = {index: -self._factor(index, within[index]) / self._price(index) for index in candidates}

        def gain(index: int) -> float:
            return share[index] * sum(map(left.__getitem__, within[index]))

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

    def _price(self, index: int) -> float:
        return math.pow(len(self.material.sentences[index]) + _SLACK, _LENGTH)

    def _factor(self, index: int, within: set[int]) -> float:
        sentence = self.material.sentences[index]
        factor = 1.0 if self._decisions.isdisjoint(within) else 1.25
        if _QUESTION.search(sentence):
            factor *= 1.4 if self._is_open(index) else 0.6
        return factor / self.material.times[index]

    def _is_open(self, index: int) -> bool:
        """Whether the next to speak takes up none of the question's weightiest words; nobody may have answered."""
        said, material = self.said, self.material
        turn = material.turns[index]
        replies = (speech.text for speech in said[turn + 1 : turn + 4] if speech.speaker != said[turn].speaker)
        reply = next(replies, "")[:_REPLY].casefold()
        weightiest = sorted(material.terms_of(index), key=self._weights.of_term.__getitem__)[-3:]
        return not any(self._spelled(term) in reply for term in weightiest)

    @cached_property
    def _spelled(self) -> Callable[[int], str]:
        """By number: the folded form of a word."""
        return list(self.material.terms).__getitem__


_SLACK = 20
"""Characters added to every length, so that the shortest sentences do not win by that alone."""
_LENGTH = 0.9
"""How much length costs: at 1 short sentences win, at 0 long ones."""
_REPLY = 2_000


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

    def characters(self, limit: int, material: Material) -> int:
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


def _longest(order: _Order, limit: int, price: _Price) -> str | None:
    """Return the text of as many of the best sentences as fit, found by a few guesses."""
    best: str | None = None
    low, high = 0, len(order.material.sentences) + 1
    # A small text first: it tells what the chosen sentences cost, labels and all, for an eighth of the price.
    number = order.filling(price.characters(limit, order.material)) // 8 + 1
    for _ in range(_COUNTS):
        chosen = order.first(min(max(number, low + 1), high - 1))
        if len(chosen) <= low:
            break
        text = _rendered(order, chosen)
        tokens = price(text)
        if tokens > limit:
            high = len(chosen)
        else:
            low, best = len(chosen), text
            if tokens >= limit * _CLOSE:
                break
        number = int(len(chosen) * limit * _AIM / tokens) if tokens else high
    return best


def _single(order: _Order, limit: int, price: _Price) -> str | None:
    """Return the best single sentence that fits, where the best of all was too long."""
    room = price.characters(limit, order.material)
    short = (index for index in order.first(64) if len(order.material.sentences[index]) <= room)
    for index in islice(short, _COUNTS):
        text = _rendered(order, [index])
        if price(text) <= limit:
            return text
    return None


def _rendered(order: _Order, chosen: Sequence[int]) -> str:
    said, material = order.said, order.material
    lines: list[str] = []
    speaker: str | None = None
    for index in sorted(chosen):
        sentence, who = material.sentences[index], said[material.turns[index]].speaker
        if who != speaker or not lines:
            lines.append(f"{who}: {sentence}" if who else sentence)
        else:
            lines[-1] += _join(lines[-1]) + sentence
        speaker = who
    return "\n".join(lines)


def _join(before: str) -> str:
    """A space after a sentence's mark; what had none, such as an item of a list, gets a semicolon."""
    return "; " if before[-1].isalnum() else " "
