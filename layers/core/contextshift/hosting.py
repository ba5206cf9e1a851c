"""Asking a strategy, and holding its proposal to the promises: protection, groups, order, identity.

A built-in strategy is asked directly, a plug-in on copies under the guard. A proposal that breaks one
promise is refused whole, and the conversation is truncated instead; a diagnostic says which promise it was.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, KeysView, Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextshift.guard import STRATEGY_SECONDS, Guard, PluginFault, plain
from contextshift.reasons import LEAVING, Reason
from contextshift.strategies import BUILTIN, Proposal, Situation, Strategy

__all__ = ["acts_when_fitting", "name_of", "propose"]


def acts_when_fitting(strategy: Strategy, guard: Guard) -> bool:
    """Whether a strategy must be asked even when all fits; a plug-in that cannot say so need not be."""
    if _is_builtin(strategy):
        return strategy.acts_when_fitting
    try:
        return guard.run(strategy, lambda: strategy.acts_when_fitting is True, STRATEGY_SECONDS)
    except PluginFault:
        return False


def name_of(strategy: Strategy) -> str:
    """Return what a strategy calls itself; one that cannot say is named by its type."""
    if _is_builtin(strategy):
        return strategy.id
    try:
        return _text(strategy.id)
    except Exception:  # noqa: BLE001  # isolated: a plug-in's id may run code of its own
        return type(strategy).__name__


def propose(
    strategy: Strategy, name: str, situation: Situation, guard: Guard, found: list[Mapping[str, Any]]
) -> Proposal:
    """Return a strategy's proposal if it keeps every promise, an empty one otherwise; ``found`` says why."""
    try:
        proposal = _asked(strategy, situation, guard)
    except PluginFault as fault:
        found.append({"code": "strategy-failed", "strategy": name, "fault": fault.fault, "error": fault.detail})
        return Proposal()
    broken = _broken_promise(situation, proposal)
    if broken is not None:
        found.append({"code": "proposal-refused", "strategy": name, "promise": broken})
        return Proposal()
    found += proposal.diagnostics
    return proposal


def _is_builtin(strategy: Strategy) -> bool:
    return any(one is strategy for one in BUILTIN)


def _asked(strategy: Strategy, situation: Situation, guard: Guard) -> Proposal:
    if _is_builtin(strategy):
        return strategy.propose(situation)
    return guard.run(strategy, lambda: _taken_apart(strategy.propose(_copied(situation))), STRATEGY_SECONDS)


def _copied(situation: Situation) -> Situation:
    """Return a situation in which a plug-in may change what it likes: nothing of it is the host's."""
    return replace(
        situation,
        messages=copy.deepcopy(list(situation.messages)),
        tokens=list(situation.tokens),
        groups=copy.deepcopy(situation.groups),
        protected=dict(situation.protected),
    )


def _taken_apart(given: object) -> Proposal:
    """Read a plug-in's proposal into one of our own types, inside the time limit; nonsense raises here."""
    if not isinstance(given, Proposal):
        raise TypeError("not a Proposal")
    departures = {_whole(index): _leaving(reason) for index, reason in dict(given.departures).items()}
    replacements = {_whole(index): _text(text) for index, text in dict(given.replacements).items()}
    summary = None if given.summary is None else _text(given.summary)
    diagnostics = [_diagnostic(item) for item in given.diagnostics]
    return Proposal(departures, replacements, summary if summary and not summary.isspace() else None, diagnostics)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not an index")
    return int(value)


def _leaving(value: object) -> Reason:
    reason = Reason(_text(value))
    if reason not in LEAVING:
        raise ValueError("not a reason for leaving")
    return reason


def _text(value: object) -> str:
    text = plain(value)
    if not isinstance(text, str):
        raise TypeError("not a text")
    return text


def _diagnostic(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a plug-in's diagnostic, its own code as ``plugin_code``: none passes for one of the host's."""
    said: dict[str, Any] = plain(dict(item))
    own = {"plugin_code": said["code"]} if "code" in said else {}
    return {**said, **own, "code": "plugin"}


def _broken_promise(situation: Situation, proposal: Proposal) -> str | None:
    """Return the promise that a proposal breaks, None if it keeps them all."""
    gone, changed = proposal.departures.keys(), proposal.replacements.keys()
    protected = situation.protected.keys()
    checks: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("identity", lambda: not _are_there(situation, [*gone, *changed]) or not gone.isdisjoint(changed)),
        ("protection", lambda: not (protected.isdisjoint(gone) and protected.isdisjoint(changed))),
        ("groups", lambda: _splits_a_group(situation, gone)),
    )
    return next((name for name, broken in checks if broken()), None)


def _are_there(situation: Situation, indices: Sequence[int]) -> bool:
    return not indices or (min(indices) >= 0 and max(indices) < len(situation.messages))


def _splits_a_group(situation: Situation, gone: KeysView[int]) -> bool:
    """Whether some member of a group leaves and another stays."""
    return any(not (gone.isdisjoint(members) or gone >= set(members)) for members in situation.groups.members.values())
