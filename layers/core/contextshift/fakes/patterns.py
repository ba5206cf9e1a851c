"""A pattern engine for tests: the standard library's, for patterns that can be trusted."""

from __future__ import annotations

import re
from collections.abc import Collection

from contextshift.lore.patterns import PatternBudget, PatternInvalid, PatternTimeout, check

__all__ = ["TrustingPatterns"]

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}


class TrustingPatterns:
    """A PatternEngine over ``re``, without a time limit; sources in ``endless`` answer PatternTimeout."""

    def __init__(self, endless: Collection[str] = ()) -> None:
        self._endless = frozenset(endless)

    def session(self) -> TrustingPatterns:
        """Return itself: there is no budget to spend."""
        return self

    def search(self, source: str, flags: str, text: str) -> bool:
        """Return whether the pattern matches. Raises PatternInvalid, and PatternTimeout for an endless one."""
        check(source, flags, PatternBudget())
        if source in self._endless:
            raise PatternTimeout("endless")
        try:
            pattern = re.compile(source, sum(_FLAGS.get(flag, 0) for flag in flags))
        except re.error:
            raise PatternInvalid("does not compile") from None
        return pattern.search(text) is not None
