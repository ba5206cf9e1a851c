"""Pattern keys of lorebooks, ``/…/flags``: how they are written, and the port of the engine that runs them.

They come from strangers and run on the server, so an engine limits time (cases/B73): the standard library's ``re``
cannot be interrupted, and is for trusted patterns only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Protocol

__all__ = [
    "FLAGS",
    "PatternBudget",
    "PatternEngine",
    "PatternFault",
    "PatternInvalid",
    "PatternSession",
    "PatternTimeout",
    "check",
    "parse_key",
]

FLAGS = frozenset("dgimsuvy")
"""JavaScript's flags. ``i``, ``m`` and ``s`` mean what they mean there; ``u`` and ``v`` always hold; ``d``, ``g`` and
``y`` say how matches are walked through, which a key that only asks whether it matches has no use for."""

_KEY = re.compile(r"/((?:[^\\]|\\.)+)/([dgimsuvy]*)", re.DOTALL)
_INNER_SLASH = re.compile(r"(?:\\.|\[(?:\\.|[^\]\\])*+(?:\]|$)|[^/\\\[])*+/", re.DOTALL)


class PatternFault(Exception):
    """Root of what is wrong with a pattern. It leaves its entry out, and the request goes on."""

    reason: ClassVar[str]
    """Why the entry is out, as audits say it."""
    key: str = ""
    """The key as its entry has it; filled in by who looked for it."""


class PatternInvalid(PatternFault):
    """The pattern is too long, does not compile, or has a flag that nobody knows."""

    reason = "regex-invalid"


class PatternTimeout(PatternFault):
    """The pattern, or all patterns of the request together, took too long."""

    reason = "regex-timeout"


@dataclass(frozen=True, slots=True)
class PatternBudget:
    """What patterns may cost. Compiling cannot be timed, so that their length is limited too."""

    key_seconds: float = 0.05
    """For one key over all texts of a request."""
    request_seconds: float = 0.5
    """For all keys of a request."""
    max_length: int = 1000
    """Characters."""


class PatternSession(Protocol):
    """The patterns of one request, under one budget."""

    def search(self, source: str, flags: str, text: str) -> bool:
        """Return whether the pattern matches anywhere in ``text``.

        Raises PatternInvalid, and PatternTimeout once the key's or the request's time is spent.
        """
        ...


class PatternEngine(Protocol):
    """Port: runs the patterns of strangers within a budget."""

    def session(self) -> PatternSession:
        """Return a session for one request, its budget unspent."""
        ...


def parse_key(key: str) -> tuple[str, str] | None:
    r"""Return source and flags of a key written ``/…/flags``; None for a key that is plain text.

    As in SillyTavern, other letters after the last slash, or an unescaped slash before it, make it a text: paths are.

    >>> parse_key(r"/gr[ae]y\/white/i")
    ('gr[ae]y\\/white', 'i')
    >>> parse_key("/etc/passwd") is None
    True
    """
    written = _KEY.fullmatch(key)
    if not written or _INNER_SLASH.match(written[1]):
        return None
    return written[1], written[2]


def check(source: str, flags: str, budget: PatternBudget) -> None:
    """Raise PatternInvalid for a pattern that is too long, or for flags that JavaScript would refuse."""
    if len(source) > budget.max_length:
        raise PatternInvalid(f"longer than {budget.max_length} characters")
    if not FLAGS.issuperset(flags) or len(set(flags)) != len(flags) or {"u", "v"}.issubset(flags):
        raise PatternInvalid("flags that JavaScript does not know")
