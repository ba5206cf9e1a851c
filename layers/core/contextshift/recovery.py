"""After a provider refused a prompt as too large: the same question, under what the refusal taught.

Our count or our catalogue was wrong about this provider. What it said of its limit tightens the model, and the
decision flow runs again: it swaps or cuts as the settings allow, or refuses. Nobody is asked a third time.
"""

from __future__ import annotations

import math
from dataclasses import replace

from contextshift.catalogue import Catalogue, Model
from contextshift.measuring import Measure, Question
from contextshift.overflow import Overflow

__all__ = ["tightened"]

_UNSAID = 0.75
"""The share of a refused prompt that is tried where the provider gives no number."""
_UNEVEN = 0.98
"""The rest of a prompt need not count like the whole: a little is left."""


def tightened(question: Question, catalogue: Catalogue, used: Measure, overflow: Overflow) -> Question:
    """Return the question with the limit of the model used as its provider made it known.

    ``used`` is the refused request, counted; ``catalogue`` what a question without one of its own is answered from.
    Raises ValueError where nothing at all would fit.
    """
    most = _most(used, overflow)
    if most < 1 or _only_the_reply(overflow):
        raise ValueError("nothing fits what the provider allows")
    unknown = None if overflow.limit is None else most + used.reserve
    known = question.catalogue or catalogue
    entry = known.models.get(used.model.name)
    if entry is not None:
        known = known.replacing(_limited(entry, most, unknown))
    asked = _limited(question.model, most, unknown) if used.model.name == question.model.name else question.model
    return replace(question, size=None, model=asked, catalogue=known)


def _limited(model: Model, most: int, unknown: int | None) -> Model:
    """Return the model with prompts of at most ``most``, and for a window nobody knew what was learnt of it."""
    window = unknown if model.context_window is None else model.context_window
    max_input = most if model.max_input is None else min(most, model.max_input)
    return replace(model, context_window=window, max_input=max_input)


def _most(used: Measure, overflow: Overflow) -> int:
    """Return the largest prompt, as we count, that the provider will take; always less than what it refused."""
    refused = used.prompt + used.margin
    if overflow.limit is None:
        return math.floor(_UNSAID * refused)
    # Most limits hold the reply as well; of one that is the prompt's alone this leaves more room than needed.
    room = overflow.limit - used.reserve
    return min(math.floor(_UNEVEN * room / _ratio(used, overflow.prompt or overflow.requested)), refused - 1)


def _only_the_reply(overflow: Overflow) -> bool:
    """Whether the room asked for the reply alone fills the limit: then no prompt is short enough."""
    completion, limit = overflow.completion, overflow.limit
    return completion is not None and limit is not None and completion >= limit


def _ratio(used: Measure, said: int | None) -> float:
    """Return the provider's count of the prompt by ours; an exact count is not talked down."""
    if not said or not used.prompt:
        return 1.0
    ratio = said / used.prompt
    return ratio if used.counter.profile.approximate else max(1.0, ratio)
