"""Strategies by name. Built-ins are there; whoever registers another gets back the undo.

Packages offer strategies as entry points of the group ``contextshift.strategies``. None is loaded unless it is
named: installing a package must not change what becomes of a conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contextshift.errors import InvalidInput
from contextshift.guard import Guard
from contextshift.strategies import BUILTIN, Strategy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["ENTRY_POINTS", "INTERCEPTORS", "ContextStrategyRegistry", "load_plugins"]

ENTRY_POINTS = "contextshift.strategies"
INTERCEPTORS = "contextshift.interceptors"
"""The group of interceptors' entry points."""


class ContextStrategyRegistry:
    """Knows strategies by id, and guards those that are not built in.

    >>> registry = ContextStrategyRegistry()
    >>> registry.ids()
    ('clear-tool-results', 'manual', 'middle-out', 'summarize', 'truncate', 'vector-recall')
    """

    def __init__(self, strategies: Iterable[Strategy] = BUILTIN, guard: Guard | None = None) -> None:
        self._stacks: dict[str, list[_Registration]] = {one.id: [_Registration(one)] for one in strategies}
        self.guard = guard or Guard()

    def register(self, strategy: Strategy) -> Callable[[], None]:
        """Add a strategy, or put it in the place of one of the same id; return the clean-up.

        The clean-up takes back this registration and no other, in whatever order they are taken back; what was
        registered before it, and not taken back, is there again. Called again it does nothing. Raises InvalidInput for
        a strategy without an id.
        """
        name = _checked_id(strategy)
        mine = _Registration(strategy)
        self._stacks.setdefault(name, []).append(mine)

        def restore() -> None:
            stack = [one for one in self._stacks.get(name, ()) if one is not mine]
            if stack:
                self._stacks[name] = stack
            else:
                self._stacks.pop(name, None)

        return restore

    def load(self, names: Iterable[str], points: Iterable[EntryPoint] | None = None) -> Callable[[], None]:
        """Register the entry points ``names``, and no other; return the clean-up of all of them.

        An entry point has the name of its strategy, by which settings choose it. Raises InvalidInput for a name that
        no installed package offers, that two offer, that is taken, or that its strategy does not go by; then none
        is registered.
        """
        undo: list[Callable[[], None]] = []

        def restore() -> None:
            for one in undo:
                one()

        try:
            for name, strategy in load_plugins(ENTRY_POINTS, names, points):
                if name in self._stacks:
                    raise InvalidInput(f"the strategy {name!r} is taken already", name)
                if _checked_id(strategy) != name:
                    raise InvalidInput(f"the entry point {name!r} offers a strategy of another name", name)
                undo.append(self.register(strategy))
        except BaseException:
            restore()
            raise
        return restore

    def ids(self) -> tuple[str, ...]:
        """Return the known names, sorted."""
        return tuple(sorted(self._stacks))

    def get(self, strategy_id: str) -> Strategy:
        """Return a strategy. Raises InvalidInput that says which names are known."""
        try:
            return self._stacks[strategy_id][-1].strategy
        except KeyError:
            known = ", ".join(self.ids())
            raise InvalidInput(
                f"no context strategy {strategy_id!r}; known: {known}", "context_strategy", "unknown_strategy"
            ) from None


def load_plugins(
    group: str, names: Iterable[str], points: Iterable[EntryPoint] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield (name, plug-in) for the entry points ``names`` of a group, and no other; a class is called for its object.

    Raises InvalidInput for a name that no installed package offers, or that two offer.
    """
    from importlib.metadata import entry_points  # 17 ms that only who loads plug-ins pays

    offered: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group) if points is None else points:
        offered.setdefault(point.name, []).append(point)
    for name in names:
        found = offered.get(name, [])
        if len(found) != 1:
            why = f"is offered {len(found)} times; offered: {', '.join(sorted(offered))}"
            raise InvalidInput(f"the plug-in {name!r} {why}", name)
        loaded = found[0].load()
        yield name, loaded() if isinstance(loaded, type) else loaded


@dataclass(frozen=True, slots=True, eq=False)
class _Registration:
    """One call of `ContextStrategyRegistry.register`; the same strategy may be registered twice."""

    strategy: Strategy


def _checked_id(strategy: Strategy) -> str:
    try:
        name = strategy.id
    except Exception as error:
        raise InvalidInput("a strategy needs an id, and has none", "id", "invalid_type") from error
    if not isinstance(name, str) or not name:
        raise InvalidInput("a strategy needs an id, a string", "id", "invalid_type")
    return name
