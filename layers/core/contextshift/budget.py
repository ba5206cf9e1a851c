"""The allowance, in one place: what the window leaves for the prompt.

Window, max input and max output are three limits, and providers enforce each by itself. The reply's
reserve comes out of the window only; a max input binds beside it::

    limit = min(window - reserve, max_input)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contextshift.errors import InvalidInput
from contextshift.tokens import TokenizerProfile

__all__ = ["DEFAULT_RESERVE", "Budget", "as_budget", "default_reserve", "requested_reply"]

DEFAULT_RESERVE = 4096
"""Tokens kept for the reply where nobody says how long it may be."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Room for one prompt, in tokens."""

    window: int
    """Prompt and reply together."""
    reserve: int = 0
    """Kept for the reply."""
    max_input: int | None = None
    """The most the prompt alone may be, where the provider has such a limit."""
    fixed: int = 0
    """What belongs to no message: tools, response format, priming."""
    slack: int = 0
    """What ``fixed`` may be under by; held back beside the profile's margin."""

    def __post_init__(self) -> None:
        for name in ("window", "reserve", "max_input", "fixed", "slack"):
            value = getattr(self, name)
            if value is None and name == "max_input":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidInput(f"{name} must be a whole number of tokens, not negative", f"budget.{name}")

    @property
    def limit(self) -> int:
        """The most the whole prompt may be; negative where the reserve alone is over the window.

        >>> Budget(window=100, reserve=30, max_input=80).limit
        70
        """
        room = self.window - self.reserve
        return room if self.max_input is None else min(room, self.max_input)

    def allowance(self, profile: TokenizerProfile) -> int:
        """Return what the messages may use: the limit less the profile's margin, the slack and the fixed costs."""
        return _before_margin(self.limit - self.slack, profile) - self.fixed


def as_budget(budget: int | Budget, fixed: int = 0) -> Budget:
    """Read a budget given as a number of tokens, or as it is; ``fixed`` counts where it says nothing itself.

    Raises InvalidInput for anything else.
    """
    if isinstance(budget, Budget):
        return budget
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 0:
        raise InvalidInput("a budget is a whole number of tokens, not negative, or a Budget", "budget")
    return Budget(window=budget, fixed=fixed)


def requested_reply(request: Mapping[str, Any]) -> int | None:
    """Return the reply limit a request gives: the larger of its two spellings, None where it gives none."""
    given = [request.get("max_tokens"), request.get("max_completion_tokens")]
    numbers = [value for value in given if isinstance(value, int) and not isinstance(value, bool)]
    return max(numbers, default=None)


def default_reserve(window: int, max_output: int | None) -> int:
    """Return the reserve where nobody gives one: the least of max output, 4,096 and a quarter of the window.

    >>> default_reserve(200_000, 200_000), default_reserve(100, None)
    (4096, 25)
    """
    reserve = min(DEFAULT_RESERVE, window // 4)
    return reserve if max_output is None else min(reserve, max_output)


def _before_margin(limit: int, profile: TokenizerProfile) -> int:
    """Return the largest prompt that still fits the limit together with its margin."""
    limit -= profile.least_margin
    if not profile.margin or limit < 0:
        return limit
    prompt = int(limit / (1 + profile.margin)) + 1
    while prompt > 0 and prompt + math.ceil(prompt * profile.margin) > limit:
        prompt -= 1
    return prompt
