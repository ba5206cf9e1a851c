r"""Pattern keys of lorebooks on the ``regex`` package: it takes a time limit, and knows Unicode words.

Keys are written for JavaScript (SillyTavern's World Info). What both engines read differently is rewritten first:
``$``, ``\k<name>``, ``\u{1F600}``, ``[^]``, and braces that are no quantifier (``regex`` reads ``{e<=1}`` as fuzzy
matching). ``\w``, ``\d`` and ``\b`` know every script, as the contract of lorebooks asks.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from contextshift.lore.patterns import PatternBudget, PatternInvalid, PatternTimeout, check

if TYPE_CHECKING:
    from regex import Pattern

__all__ = ["RegexPatterns", "RegexSession"]

_CACHED = 512
_JAVASCRIPT = re.compile(
    r"\\u\{(?P<point>[0-9A-Fa-f]{1,8})\}"
    r"|\\k<(?P<back>[^>]*)>"
    r"|\\[pP]\{[^}]*\}"
    r"|\\."
    r"|(?P<any>\[\^\])|(?P<none>\[\])"
    r"|(?P<set>\[\^?(?:\\.|[^\]\\])*+\])"
    r"|\{[0-9]+(?:,[0-9]*)?\}"
    r"|(?P<brace>\{)"
    r"|(?P<end>\$)",
    re.DOTALL,
)
_KNOWN_ESCAPES = frozenset("bBdDsSwWnrtfvcxukpP")


class RegexPatterns:
    """The PatternEngine of the service. ``clock`` counts seconds; compiled patterns are kept between requests."""

    def __init__(self, budget: PatternBudget | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._budget = budget or PatternBudget()
        self._clock = clock

    def session(self) -> RegexSession:
        """Return a session for one request, its budget unspent."""
        return RegexSession(self._budget, self._clock)


class RegexSession:
    """The patterns of one request. Not for several threads at once."""

    def __init__(self, budget: PatternBudget, clock: Callable[[], float]) -> None:
        self._budget = budget
        self._clock = clock
        self._left = budget.request_seconds
        self._left_of_key: dict[tuple[str, str], float] = {}

    def search(self, source: str, flags: str, text: str) -> bool:
        """Return whether the pattern matches anywhere in ``text``.

        Holds its thread for as long as the budget allows. Raises PatternInvalid, and PatternTimeout once the key's or
        the request's time is spent; a key that overran stays out for the request.
        """
        check(source, flags, self._budget)
        key = (source, flags)
        left = min(self._left_of_key.get(key, self._budget.key_seconds), self._left)
        if left <= 0:
            raise PatternTimeout("no time left")
        started = self._clock()
        try:
            pattern = _compiled(source, "".join(sorted(set(flags) & {"i", "m", "s"})))
            self._left_of_key[key] = left
            return self._timed(pattern, key, text)
        finally:
            self._left -= self._clock() - started

    def _timed(self, pattern: Pattern[str], key: tuple[str, str], text: str) -> bool:
        """Search, on the time of the key; compiling is on the request's alone, since it may be cached or not."""
        left, started = self._left_of_key[key], self._clock()
        self._left_of_key[key] = 0.0
        try:
            found = pattern.search(text, timeout=left) is not None
        except TimeoutError:
            raise PatternTimeout("took too long") from None
        except (MemoryError, RecursionError):
            raise PatternTimeout("took too much memory") from None
        self._left_of_key[key] = left - (self._clock() - started)
        return found


@lru_cache(maxsize=_CACHED)
def _compiled(source: str, flags: str) -> Pattern[str]:
    import regex

    options = regex.VERSION0 | regex.UNICODE
    for flag, option in (("i", regex.IGNORECASE), ("m", regex.MULTILINE), ("s", regex.DOTALL)):
        options |= option if flag in flags else 0
    try:
        return regex.compile(_rewritten(source, multiline="m" in flags), options, cache_pattern=False)
    except (regex.error, ValueError, OverflowError, RecursionError, MemoryError, LookupError) as refused:
        raise PatternInvalid("does not compile") from refused


def _rewritten(source: str, *, multiline: bool) -> str:
    r"""Return a pattern of JavaScript's as ``regex`` writes it.

    >>> _rewritten(r"^(?<n>\u{41})\k<n>{x}$", multiline=False)
    '^(?<n>\\U00000041)(?P=n)\\{x}\\Z'
    """

    def rewrite(token: re.Match[str]) -> str:
        match token.lastgroup:
            case "point":
                return f"\\U{int(token['point'], 16):08X}"
            case "back":
                return f"(?P={token['back']})"
            case "any":
                return r"[\s\S]"
            case "none":
                return "(?!)"
            case "set":
                return "[" + _escaped_set(token["set"][1:])
            case "brace":
                return r"\{"
            case "end":
                return "$" if multiline else r"\Z"
        return _escape(token[0])

    return _JAVASCRIPT.sub(rewrite, source)


def _escape(written: str) -> str:
    """Return an escape; a letter that JavaScript knows no escape of stands for itself."""
    letter = written[1:]
    unknown = written[0] == "\\" and letter.isascii() and letter.isalpha() and letter not in _KNOWN_ESCAPES
    return letter if unknown else written


_IN_SET = re.compile(r"\\u\{([0-9A-Fa-f]{1,8})\}|\\[pP]\{[^}]*\}|\\.|\[", re.DOTALL)


def _escaped_set(inner: str) -> str:
    """Return the inside of a set; a bracket inside opens nothing there."""

    def rewrite(token: re.Match[str]) -> str:
        if token[1]:
            return f"\\U{int(token[1], 16):08X}"
        return r"\[" if token[0] == "[" else _escape(token[0])

    return _IN_SET.sub(rewrite, inner)
