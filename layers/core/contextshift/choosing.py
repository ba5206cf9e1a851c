"""The choice of a larger model, with a reason for each one passed over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from contextshift.catalogue import Model, compliance_fault, cost_fault, request_cost, reserve_for
from contextshift.needs import Needs
from contextshift.reasons import Passed
from contextshift.settings import Settings

__all__ = ["Candidate", "choose_larger"]


_LEAST_SHARE = 0.2
"""Of one text, no tokenizer that we know makes fewer tokens than this share of another's (Claude's on rare scripts are
4.7 times o200k's)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that was looked at for a swap."""

    model: Model
    accepted: bool
    reason: str


CountFor = Callable[[Model], tuple[int, int]]
"""Return (prompt tokens, margin) as a model's own tokenizer counts them; slow the first time a tokenizer is used."""


def choose_larger(
    asked: Model,
    models: Iterable[Model],
    needs: Needs,
    settings: Settings,
    allowed: Sequence[str] | None,
    count_for: CountFor,
    is_counted: Callable[[Model], bool] = lambda _: True,
    today: str = "",
) -> tuple[Model | None, list[Candidate]]:
    """Choose the model to swap to, and say of every other why not.

    Same provider first, then the cheapest for this request, then the smallest window. Cheap tests come
    first; another provider's models are not counted once one of the same provider passed, nor by a tokenizer that
    has not counted this request yet (``is_counted``) where one that passed is cheaper by far. ``today`` is an ISO
    date; a model whose provider has shut it down by then is passed over.
    """
    verdicts: dict[str, str] = {}
    open_models: list[Model] = []
    for model in models:
        if model.name == asked.name:
            continue
        fault = _cheap_fault(model, needs, settings, allowed, today)
        if fault is None:
            open_models.append(model)
        verdicts[model.name] = fault or Passed.NOT_EVALUATED
    listed = {model.name: model for model in models if model.name in verdicts}
    winner: Model | None = None
    for same_provider in (True, False):
        tier = [model for model in open_models if (model.provider == asked.provider) is same_provider]
        if winner is None:
            ready = (lambda _: True) if same_provider else is_counted
            winner = _best_of(tier, needs, settings, count_for, ready, verdicts)
    return winner, [Candidate(model, model is winner, verdicts[name]) for name, model in listed.items()]


def _best_of(
    tier: Sequence[Model],
    needs: Needs,
    settings: Settings,
    count_for: CountFor,
    is_counted: Callable[[Model], bool],
    verdicts: dict[str, str],
) -> Model | None:
    passed: list[tuple[float, int, str, Model]] = []
    least = math.inf
    for model in sorted(tier, key=_input_price):
        reserve = reserve_for(model, needs.reply, settings.reserve_tokens)
        if passed and not is_counted(model):
            at_least = _cost(model, int(least * _LEAST_SHARE), reserve)
            if at_least > min(passed, key=lambda entry: entry[0])[0]:
                continue
        prompt, margin = count_for(model)
        least = min(least, prompt)
        fault = _size_fault(model, needs, settings, prompt, margin)
        verdicts[model.name] = fault or Passed.NOT_PREFERRED
        if fault is None:
            passed.append((_cost(model, prompt, reserve), model.context_window or 0, model.name, model))
    if not passed:
        return None
    winner = min(passed, key=lambda entry: entry[:3])[3]
    verdicts[winner.name] = Passed.ACCEPTED
    return winner


def _input_price(model: Model) -> float:
    return math.inf if model.input_price is None else model.input_price


def _cost(model: Model, prompt: int, reserve: int) -> float:
    cost = request_cost(model, prompt, reserve)
    return math.inf if cost is None else cost


def _cheap_fault(
    model: Model, needs: Needs, settings: Settings, allowed: Sequence[str] | None, today: str
) -> str | None:
    """Return a reason that needs no count, None where only counting can tell."""
    fault = compliance_fault(model, settings.compliance, allowed)
    if fault is not None:
        return str(fault)
    if today and model.shutdown_date is not None and model.shutdown_date <= today:
        return str(Passed.SHUTDOWN)
    if model.context_window is None:
        return str(Passed.WINDOW)
    for capability in needs.capabilities:
        if capability not in model.capabilities:
            return Passed.capability(capability)
    refused = _refused_parameters(model, needs)
    if refused:
        return Passed.parameter(refused[0])
    if needs.reply is not None and model.max_output is not None and needs.reply > model.max_output:
        return str(Passed.MAX_OUTPUT)
    return None


def _refused_parameters(model: Model, needs: Needs) -> list[str]:
    refused = needs.parameters.keys() & model.unsupported_parameters
    limits = model.parameter_limits.items()
    values = {name for name, limit in limits if name in needs.parameters and not limit.accepts(needs.parameters[name])}
    return sorted(refused | values)


def _size_fault(model: Model, needs: Needs, settings: Settings, prompt: int, margin: int) -> str | None:
    reserve = reserve_for(model, needs.reply, settings.reserve_tokens)
    if prompt + margin + reserve > (model.context_window or 0):
        return str(Passed.WINDOW)
    if model.max_input is not None and prompt + margin > model.max_input:
        return str(Passed.MAX_INPUT)
    if cost_fault(model, settings.compliance, prompt, reserve):
        return str(Passed.COST)
    return None
