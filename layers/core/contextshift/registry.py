"""Strategies by name. Built-ins are there; whoever registers another gets back the undo."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from contextshift.errors import InvalidInput
from contextshift.strategies import BUILTIN, Strategy

__all__ = ["ContextStrategyRegistry"]


class ContextStrategyRegistry:
    """Knows strategies by id.

    >>> registry = ContextStrategyRegistry()
    >>> registry.ids()
    ('manual', 'truncate')
    """

    def __init__(self, strategies: Iterable[Strategy] = BUILTIN) -> None:
        self._strategies: dict[str, Strategy] = {strategy.id: strategy for strategy in strategies}

    def register(self, strategy: Strategy) -> Callable[[], None]:
        """Add a strategy, or put it in the place of one of the same id; return the clean-up.

        The clean-up restores what was there before, once; calling it again does nothing.
        """
        before = self._strategies.get(strategy.id)
        self._strategies[strategy.id] = strategy

        def restore() -> None:
            if self._strategies.get(strategy.id) is not strategy:
                return
            if before is None:
                del self._strategies[strategy.id]
            else:
                self._strategies[strategy.id] = before

        return restore

    def ids(self) -> tuple[str, ...]:
        """Return the known names, sorted."""
        return tuple(sorted(self._strategies))

    def get(self, strategy_id: str) -> Strategy:
        """Return a strategy. Raises InvalidInput that says which names are known."""
        try:
            return self._strategies[strategy_id]
        except KeyError:
            known = ", ".join(self.ids())
            raise InvalidInput(
                f"no context strategy {strategy_id!r}; known: {known}", "context_strategy", "unknown_strategy"
            ) from None
