"""Whether a key stands in a text, in every script, and which of very many keys do.

Texts and keys are compared after Unicode normalisation (NFKC) and case folding, so that composed and decomposed,
full-width and ordinary spellings are one. A word begins and ends where a letter, mark or digit meets anything else
(and not where ASCII does, SillyTavern#1685). Scripts that write no spaces have no such places: what stands in them,
or beside them, matches as a part of the text. A key without letters and digits (``:)``, ``™``) is compared as it is
written, with no more than canonical normalisation. Variation selectors and soft hyphens, which only say how to
draw a character, never count.

Of thousands of keys only those are looked for that share a word with the text, or up to eight characters where a
part of a word is enough: the cost is that of the text, not that of the book.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Generic, TypeVar
from unicodedata import category, normalize

__all__ = ["Form", "KeyIndex", "ScanText", "TextKey", "finds", "text_key"]

T = TypeVar("T")

_INVISIBLE = re.compile("[\u00ad\u180b-\u180d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_UNSPACED = re.compile(
    "[\u0e01-\u0e4e\u0e81-\u0ede\u1000-\u109f\u1780-\u17d3\u1950-\u19df\u1a20-\u1aad\u3005-\u3007\u3041-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9fe\uaa60-\uaadf\uf900-\ufaff\uff66-\uff9f"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)
"""Han, kana, Thai, Lao, Khmer, Burmese, Tai: scripts that put no space between words."""
_GRAMS = (8, 6, 4, 3, 2, 1)
"""Lengths of the parts that keys are indexed by: each costs one pass over the text."""


class Form(IntEnum):
    """How a text is spelt for comparing."""

    FOLDED = 0
    """NFKC, without regard to case."""
    EXACT = 1
    """NFKC, with regard to case."""
    WRITTEN = 2
    """NFC: symbols as they are written."""


@dataclass(frozen=True, slots=True)
class TextKey:
    """A key that is text, ready to be looked for."""

    needle: str
    """Never empty, in the spelling of ``form``."""
    form: Form
    whole: bool
    """Whether it must begin and end where a word does."""

    @property
    def word(self) -> str:
        """Its longest word, where words count: the key is in no text without it. Empty for one without words."""
        return max(_words(self.needle), key=len, default="") if self.whole else ""

    @property
    def gram(self) -> str:
        """The start of its longest part: the key is in no text without it."""
        longest = max(self.needle.split(), key=len)
        return longest[: next(length for length in _GRAMS if length <= len(longest))]


def text_key(key: str, *, case_sensitive: bool, whole_words: bool) -> TextKey | None:
    """Return a key ready to be looked for, or None for one that is blank: nothing would wake by it.

    Space around it does not count, as in SillyTavern.
    """
    if any(map(str.isalnum, key)):
        form = Form.EXACT if case_sensitive else Form.FOLDED
    else:
        form, whole_words = Form.WRITTEN, False
    needle = _spelt(key, form).strip()
    return TextKey(needle, form, whole_words) if needle else None


class ScanText:
    """A text that keys are looked for in: each spelling of it is made once, when it is first asked for."""

    __slots__ = ("_forms", "_grams", "_words", "raw")

    def __init__(self, raw: str) -> None:
        self.raw = normalize("NFC", raw)
        """What patterns are run on."""
        self._forms: dict[Form, str] = {}
        self._grams: dict[tuple[Form, int], frozenset[str]] = {}
        self._words: dict[Form, frozenset[str]] = {}

    def spelt(self, form: Form) -> str:
        """Return the text in a form."""
        if form not in self._forms:
            self._forms[form] = _spelt(self.raw, form)
        return self._forms[form]

    def grams(self, form: Form, length: int) -> frozenset[str]:
        """Return all its parts of ``length`` characters."""
        if (form, length) not in self._grams:
            text = self.spelt(form)
            starts = range(len(text) - length + 1)
            self._grams[form, length] = frozenset([text[start : start + length] for start in starts])
        return self._grams[form, length]

    def words(self, form: Form) -> frozenset[str]:
        """Return its words, of scripts that have such."""
        if form not in self._words:
            self._words[form] = frozenset(_words(self.spelt(form)))
        return self._words[form]


def finds(key: TextKey, text: ScanText) -> bool:
    """Whether a key stands in a text.

    >>> kot = text_key("кот", case_sensitive=False, whole_words=True)
    >>> finds(kot, ScanText("Мой Кот спит")), finds(kot, ScanText("который"))
    (True, False)
    """
    spelt = text.spelt(key.form)
    return _finds_word(key.needle, spelt) if key.whole else key.needle in spelt


class KeyIndex(Generic[T]):
    """Keys with what each stands for; `found` gives those that stand in a text."""

    __slots__ = ("_by_gram", "_by_word")

    def __init__(self, keys: Iterable[tuple[TextKey, T]]) -> None:
        self._by_word: dict[Form, dict[str, list[tuple[TextKey, T]]]] = {}
        self._by_gram: dict[tuple[Form, int], dict[str, list[tuple[TextKey, T]]]] = {}
        for key, item in keys:
            word = key.word
            if word:
                self._by_word.setdefault(key.form, {}).setdefault(word, []).append((key, item))
            else:
                gram = key.gram
                self._by_gram.setdefault((key.form, len(gram)), {}).setdefault(gram, []).append((key, item))

    def found(self, text: ScanText, wanted: Callable[[T], bool]) -> Iterator[T]:
        """Yield what the keys in ``text`` stand for, of what is ``wanted``, in no order."""
        for form, by_word in self._by_word.items():
            for word in by_word.keys() & text.words(form):
                for key, item in by_word[word]:
                    if wanted(item) and (key.needle == word or finds(key, text)):
                        yield item
        for (form, length), by_gram in self._by_gram.items():
            grams = text.grams(form, length)
            for gram in by_gram.keys() & grams:
                for key, item in by_gram[gram]:
                    # Its end too must be there: a look into a set, where the search goes through the text.
                    if key.needle[-length:] in grams and wanted(item) and finds(key, text):
                        yield item


class _Spaces:
    """A table for ``str.translate``: space for all that is in no word of a script that writes spaces."""

    def __getitem__(self, code: int) -> int:
        return _in_spaced_word(code)


_SPACES = _Spaces()


@lru_cache(maxsize=8192)
def _in_spaced_word(code: int) -> int:
    char = chr(code)
    return code if _in_word(char) and not _UNSPACED.match(char) else 32


def _words(text: str) -> list[str]:
    return text.translate(_SPACES).split()


def _spelt(text: str, form: Form) -> str:
    if text.isascii():
        return text.lower() if form is Form.FOLDED else text
    text = _INVISIBLE.sub("", text)
    if form is Form.WRITTEN:
        return normalize("NFC", text)
    text = normalize("NFKC", text)
    # Folding may leave marks apart or out of order (İ, ΐ): normalised again they are one spelling.
    return normalize("NFKC", text.casefold()) if form is Form.FOLDED else text


def _finds_word(needle: str, text: str) -> bool:
    at = text.find(needle)
    while at >= 0:
        end = at + len(needle)
        if (at == 0 or _parts(text[at - 1], needle[0])) and (end == len(text) or _parts(needle[-1], text[end])):
            return True
        at = text.find(needle, at + 1)
    return False


@lru_cache(maxsize=4096)
def _parts(left: str, right: str) -> bool:
    """Whether a word may end between two characters.

    Beside a symbol it always may: of ``c++`` only the ``c`` is held to begin a word.
    """
    return not (_in_word(left) and _in_word(right)) or bool(_UNSPACED.match(left) or _UNSPACED.match(right))


def _in_word(char: str) -> bool:
    return category(char)[0] in "LMN"
