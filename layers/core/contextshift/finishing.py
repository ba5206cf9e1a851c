"""The last step of a chat's plan: interceptors look at what was decided; what they did is recounted and made to fit.

On ``/api/v2`` only: what a client of the proxy sends is never other people's to change.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from contextshift.budget import Budget
from contextshift.fit import Action, Decision
from contextshift.guard import Guard
from contextshift.interceptors import Interceptor, intercept
from contextshift.planner import Planned
from contextshift.shift import ShiftResult, situate

__all__ = ["intercepted"]


def intercepted(planned: Planned, interceptors: Sequence[Interceptor], guard: Guard) -> Planned:
    """Return the plan after the interceptors; a refusal, and a plan that nobody changes, stay as they are."""
    decision = planned.decision
    if not interceptors or decision.error is not None or decision.situation is None:
        return planned
    used, messages = decision.used, decision.of(planned.question).messages
    situation = situate(
        messages,
        used.tokens,
        used.budget or Budget(window=sys.maxsize, fixed=used.fixed),
        used.counter,
        rules=used.model.message_rules,
        pinned=planned.question.settings.pin,
    )
    before = decision.shift or ShiftResult(
        list(messages), [], [], used.prompt, decision.strategy, origins=list(range(len(messages)))
    )
    after = intercept(situation, before, interceptors, guard)
    return planned if after is before else replace(planned, decision=_decided(decision, before, after))


def _decided(decision: Decision, before: ShiftResult, after: ShiftResult) -> Decision:
    cut = decision.action is Action.NONE and bool(after.excluded)
    return replace(
        decision,
        action=Action.SHIFT if cut else decision.action,
        shift=after,
        used=replace(decision.used, prompt=after.tokens),
        final=tuple(zip(after.origins, after.kept, strict=True)),
        diagnostics=[*decision.diagnostics, *after.diagnostics[len(before.diagnostics) :]],
    )
