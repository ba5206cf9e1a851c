r"""Sentences, words and lexical relevance of text in many languages, by rules that need no dictionary.

Where text falls apart is decided by structure: the sentence marks of the Unicode scripts (UAX #29 lists them), what
stands before a full stop (an initial, a short word, a day of the month) and what after it (lower case). A few
titles are the only words it knows. Scripts that write no spaces (Han, kana, Thai, Lao, Khmer, Burmese) are read as
overlapping pairs of characters, which is how search engines index them (McNamee & Mayfield, *Character N-Gram
Tokenization for European Language Text Retrieval*, 2004). All of it is linear in the text, on any text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import add

__all__ = ["bm25", "fold", "sentences", "terms", "word_lines"]

LONGEST_SENTENCE = 400
"""Characters above which a sentence is divided at clauses: text that nobody punctuated still has parts."""

_FENCE = "```"

# -- sentences -----------------------------------------------------------------------------------------

_SPACED_MARKS = ".!?…؟۔։\u037e"
"""End a sentence where a space follows. The Greek question mark is also written as a semicolon."""
_FULL_MARKS = "。！？｡．।॥።፧။។"
"""End a sentence whatever follows: scripts that put no space there, or whose mark means nothing else."""
_CLOSERS = "\"'”’»)\\]）」』】*_"
_LOWER = "a-zß-öø-ÿāăąćčďđēęěğīįıķļłńňņōőœŕřśšşșťţțūůűųźżžά-ώа-џґա-և"
_TITLES = ("Dr|Mr|Ms|St|Nr|No|Jr|Sr|vs|Fr|Hr", "Mrs|Fig|Sra|Mme|Str|bzw|Abs|стр|рис", "Prof|Dipl")
"""By length, because the engine looks back by a known distance."""

_BREAK = re.compile(
    # The set comes first, alone, so that the engine can look for it quickly; runs are bounded, so that a million
    # marks in a row cost a million steps.
    rf"([{_SPACED_MARKS}{_FULL_MARKS};\n][{_SPACED_MARKS}{_FULL_MARKS}]{{0,7}}+[{_CLOSERS}]{{0,4}}+)"
    rf"(?:(?<=\n)|(?<=[{_FULL_MARKS}」』】）])|(?=\s|\Z))"
    r"(?<![^\u0370-\u03ff\u1f00-\u1fff];)"
    # An initial; a day of the month or a list number; a title.
    r"(?<!\b[^\W\d_]\.)(?<!\b\d\.)(?<!\b\d\d\.)"
    + "".join(rf"(?<!\b(?:{titles})\.)" for titles in _TITLES)
    # A short word and a full stop, then lower case or a number: an abbreviation. An ellipsis, then lower case.
    + rf"(?!(?:(?<=\b\w\w\.)|(?<=\b\w\w\w\.))\s[{_LOWER}\d])(?!(?:(?<=…)|(?<=\.\.\.))\s[{_LOWER}])"
    # A long line that goes on in lower case was wrapped by somebody's editor.
    rf"(?!(?<=[^\n]{{40}}\n)[{_LOWER}])"
    # What divides sentences belongs to neither, and so do the bullets of a list.
    r"\s*+(?:[-*•‣·>#|+]{1,6}\s++)?"
)
_CLAUSE = re.compile(r"(?s).{60,240}(?:[，、；：،؛]|[,;:](?=\s))|.{60,240}\s|.{1,240}")


def sentences(text: str) -> list[str]:
    """Return the sentences of ``text``, each a verbatim, stripped part of it, in order.

    Lines and list items end a sentence, wrapped lines do not; a fenced code block is one piece; a decimal,
    a version, an address or a file name stays whole. A sentence of more than 400 characters comes in several pieces.

    >>> sentences("Dr. Wu pays 3.14 EUR. Why? 是的。好！")
    ['Dr. Wu pays 3.14 EUR.', 'Why?', '是的。', '好！']
    """
    if _FENCE in text:
        blocks = text.split(_FENCE)
        prose = (_sentences(block) if index % 2 == 0 else [_fenced(block)] for index, block in enumerate(blocks))
        return list(chain.from_iterable(prose))
    return _sentences(text)


def _fenced(block: str) -> str:
    return f"{_FENCE}{block}{_FENCE}"


def _sentences(text: str) -> list[str]:
    # The line feed in front makes the first bullet one like the others.
    pieces = _BREAK.split("\n" + text)
    pieces.append("")
    found = [sentence for sentence in map(str.strip, map(add, pieces[::2], pieces[1::2])) if sentence]
    if len(text) > LONGEST_SENTENCE and any(len(sentence) > LONGEST_SENTENCE for sentence in found):
        return [piece for sentence in found for piece in _clauses(sentence)]
    return found


def _clauses(sentence: str) -> Iterable[str]:
    if len(sentence) <= LONGEST_SENTENCE:
        return (sentence,)
    return filter(None, map(str.strip, _CLAUSE.findall(sentence)))


# -- words ---------------------------------------------------------------------------------------------

_ASCII_MARKS = ',;!?()[]{}"*`<>|~^\\='
_SPACED = bytes.maketrans(_ASCII_MARKS.encode(), b" " * len(_ASCII_MARKS))
_MARKS = re.compile(
    r"[\u00a0¡¿«»\u2018\u201a-\u201f…–—•،؛؟۔।॥։\u05be\u05f3\u05f4\u3000-\u3020\u3030\u30fb！-／：-＠［-｀｛-･።-፨။។"
    r"\u0e2f\u0e5a\u0e5b]+"
)
_EDGES = ".:'’-_/#"
"""Marks that also stand inside a word (3.14, 10:30, o'clock, a/b) and mean nothing at its edge."""

_UNSPACED = (
    r"\u0e01-\u0e4e\u0e81-\u0ede\u1000-\u104f\u1780-\u17d3\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}\\s]+")
_STEM = 6
_DIGIT = re.compile(r"\d")


def word_lines(text: str) -> list[list[str]]:
    """Return the words of each line of ``text`` in its own spelling; unspaced scripts as pairs of characters.

    A word may end in a mark that also stands inside words; `fold` takes it off.

    >>> word_lines('The "Alder" file,\\nv2.1: 東京都')
    [['The', 'Alder', 'file'], ['v2.1:', '東京', '京都']]
    """
    # Bytes are translated a hundred times faster than characters.
    spaced = text.encode("utf-8", "surrogatepass").translate(_SPACED).decode("utf-8", "surrogatepass")
    if spaced.isascii():
        return [line.split() for line in spaced.split("\n")]
    lines = [line if line.isascii() else _MARKS.sub(" ", line) for line in spaced.split("\n")]
    if not _IS_UNSPACED.search(spaced):
        return [line.split() for line in lines]
    return [_paired(line) if _IS_UNSPACED.search(line) else line.split() for line in lines]


def fold(word: str) -> str:
    """Return what a word is compared by: no case, no marks at its edges, six characters unless it has a digit.

    Cutting words to a prefix is the stemmer that works in most inflected languages and knows none of them (Can et al.,
    *Information Retrieval on Turkish Texts*, 2008).

    >>> fold("Решения"), fold("AB-1234567")
    ('решени', 'ab-1234567')
    """
    word = word.casefold().strip(_EDGES)
    return word if len(word) <= _STEM or _DIGIT.search(word) else word[:_STEM]


def terms(text: str) -> list[str]:
    """Return the folded words of ``text``, in order, with repetitions.

    >>> terms("Is the Rechnung paid?")
    ['is', 'the', 'rechnu', 'paid']
    """
    return list(filter(None, map(fold, chain.from_iterable(word_lines(text)))))


def _paired(line: str) -> list[str]:
    words: list[str] = []
    for run in _RUN.findall(line):
        if len(run) > 1 and _IS_UNSPACED.match(run):
            words += map(add, run, run[1:])
        else:
            words.append(run)
    return words


# -- relevance -----------------------------------------------------------------------------------------

_K1, _B = 1.2, 0.75
"""The usual constants: how fast repetition saturates, and how much long documents pay for their length."""


def bm25(query: str, documents: Sequence[str]) -> list[float]:
    """Return the relevance of each document to ``query``, between 0 and 1, in the documents' order.

    Okapi BM25 (Robertson & Zaragoza, *The Probabilistic Relevance Framework*, 2009), with the inverse document
    frequency that never turns negative. 1 is the best possible match within the set: a document that is the set's
    best for every word of the query that the set knows. Without any such word all are 0. Linear in the text.

    >>> bm25("the lost key", ["A key was lost.", "Lunch?", "The key."])[1]
    0.0
    """
    wanted = set(terms(query))
    found = [_occurrences(wanted, document) for document in documents] if wanted else []
    known = Counter(chain.from_iterable(found))
    if not known:
        return [0.0] * len(documents)
    lengths = list(map(len, documents))
    average = sum(lengths) / len(lengths)
    rarity = {term: math.log1p((len(found) - df + 0.5) / (df + 0.5)) for term, df in known.items()}
    parts = [
        {term: rarity[term] * _saturated(times, length / average) for term, times in counts.items()}
        for counts, length in zip(found, lengths, strict=True)
    ]
    best: dict[str, float] = {}
    for part in parts:
        for term, score in part.items():
            best[term] = max(score, best.get(term, 0.0))
    ideal = math.fsum(best.values())
    return [min(1.0, math.fsum(part.values()) / ideal) for part in parts]


def _occurrences(wanted: set[str], document: str) -> Counter[str]:
    found: Counter[str] = Counter()
    # Each spelling is folded once, however often it stands there.
    for word, times in Counter(chain.from_iterable(word_lines(document))).items():
        if (term := fold(word)) in wanted:
            found[term] += times
    return found


def _saturated(times: int, relative_length: float) -> float:
    return times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * relative_length))
