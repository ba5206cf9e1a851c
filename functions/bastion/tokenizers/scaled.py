"""Counts of a tokenizer that is not public: another's, times a factor for each kind of script, never over a bound.

The factors on o200k's counts are at least the worst window of 1,500 characters and the worst major language that
were measured (November 2026: eleven corpora, the Universal Declaration of Human Rights in 501 languages, and
code, against ctok 1.3 and its recorded answers of Anthropic's count endpoint). They are maxima of samples, no proofs;
only the bound by bytes is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from bastion.tokenizers.engine import Encoding
from contextshift.cutting import cut_to_fit

__all__ = ["Factors", "ScaledEncoding"]

# Compiled when the first text needs them: most processes count for other families.
_EAST = "[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\u2600-\u27bf\U0001f000-\U0003ffff]+"
_ALPHABETS = "[\u0370-\u052f\u0590-\u06ff\u0750-\u077f\u0e00-\u0e7f\ufb1d-\ufdff\ufe70-\ufefe]+"
_LATIN = "[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff]"
_REST = "[^\u0000-\u036f\u1e00-\u1eff\u2000-\u206f\u20a0-\u20cf\u2100-\u22ff]+"
_ACCENTS = 100
"""A text that has an accented letter in so many letters is no longer English: German has one in fifty."""


@dataclass(frozen=True, slots=True)
class Factors:
    """Tokens for one of o200k's, by script."""

    ascii: float
    """Prose, code and JSON in ASCII."""
    latin: float
    """Text with accented letters, its plain letters too."""
    east: float
    """Han, Kana, Hangul; emoji and symbols, which were found to need less."""
    alphabets: float
    """Cyrillic, Greek, Hebrew, Arabic, Thai."""
    rest: float
    """Every other script."""
    byte_bound: float = 1.5
    """Tokens for one byte of UTF-8, at most: Claude reaches 1.33 on ``X1Y2Z3…``."""


class ScaledEncoding:
    """An `Encoding` by another's counts and `Factors`; safe rather than close."""

    def __init__(self, name: str, base: Encoding, factors: Factors) -> None:
        self.name = name
        self._base = base
        self._factors = factors

    def count(self, text: str) -> int:
        """Return an upper estimate of the tokens of ``text``."""
        if not text:
            return 0
        if text.isascii():
            weight, size = self._base.count(text) * self._factors.ascii, len(text)
        else:
            weight, size = self._mixed(text), len(text.encode("utf-8", "surrogatepass"))
        return min(math.ceil(weight), math.ceil(self._factors.byte_bound * size) + 2)

    def count_rewritten(self, text: str, rewrite: Callable[[str], str]) -> int:
        """Return an upper estimate for ``rewrite(text)``."""
        return self.count(rewrite(text))

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most ``limit`` tokens by this estimate."""
        if limit <= 0:
            return ""
        return cut_to_fit(lambda prefix: self.count(prefix) <= limit, text, 4 * limit)

    def _mixed(self, text: str) -> float:
        """Return the sum over the scripts of a text: each script's words are counted by themselves."""
        factors, count, total = self._factors, self._base.count, 0.0
        for pattern, factor in ((_EAST, factors.east), (_ALPHABETS, factors.alphabets), (_REST, factors.rest)):
            words = re.findall(pattern, text)
            if words:
                total += factor * count(" ".join(words))
                text = re.sub(pattern, "", text)
        accents = len(re.findall(_LATIN, text))
        share = min(1.0, _ACCENTS * accents / len(text)) if text else 0.0
        return total + count(text) * (factors.ascii + share * max(0.0, factors.latin - factors.ascii))
