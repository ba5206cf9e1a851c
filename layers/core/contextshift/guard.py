"""Runs other people's code: on copies, with a time limit, and never again once it overran; reads what it returns.

Python cannot end a thread, so an overrunning plug-in goes on in a daemon thread of its own; its result is
dropped, and it is not called again in this process: one stuck thread a plug-in, not one a request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from contextshift.errors import ContextShiftError

__all__ = ["INTERCEPTOR_SECONDS", "STRATEGY_SECONDS", "Guard", "PluginFault", "plain"]

_MAX_DEPTH = 100
"""Levels of nesting, as in a request."""
STRATEGY_SECONDS = 2.0
INTERCEPTOR_SECONDS = 1.0
_T = TypeVar("_T")


class PluginFault(ContextShiftError):
    """Raise when a plug-in gave no usable result; ``fault`` is ``error``, ``timeout`` or ``overran-before``."""

    code = "PLUGIN_FAULT"

    def __init__(self, fault: str, detail: str = "") -> None:
        super().__init__(f"a plug-in gave no result: {fault} {detail}".strip())
        self.fault = fault
        self.detail = detail
        """The type of the plug-in's own error; never its message, which may hold prompt text."""


class Guard:
    """Remembers who overran. One a process is enough; tests make their own."""

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self._overran: list[object] = []
        self._lock = threading.Lock()

    def run(self, plugin: object, work: Callable[[], _T], seconds: float) -> _T:
        """Return what ``work`` returns within ``seconds`` (or the guard's own limit). Raises PluginFault."""
        with self._lock:
            if any(one is plugin for one in self._overran):
                raise PluginFault("overran-before")
        outcome: list[_T] = []
        failure: list[BaseException] = []

        def call() -> None:
            try:
                outcome.append(work())
            except BaseException as error:  # noqa: BLE001  # isolated: even SystemExit is the plug-in's own
                failure.append(error)

        thread = threading.Thread(target=call, daemon=True, name="contextshift-plugin")
        thread.start()
        thread.join(seconds if self._seconds is None else self._seconds)
        if thread.is_alive():
            with self._lock:
                self._overran.append(plugin)
            raise PluginFault("timeout")
        if failure:
            raise PluginFault("error", type(failure[0]).__name__)
        return outcome[0]


def plain(value: object) -> Any:
    """Return what a plug-in made as plain JSON values, none of them the plug-in's own.

    Raises ValueError, TypeError or RecursionError for what can stand in no request, audit or header: other types,
    NaN, text that is no UTF-8, nesting over 100 levels. Run it in the guard, for the value may run code of its own.

    >>> plain({"a": (1, "b")})
    {'a': [1, 'b']}
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()
    made = json.loads(text)
    level = [made]
    for _ in range(_MAX_DEPTH + 1):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _inside(one)]
        if not level:
            return made
    raise ValueError("nested too deeply")


def _inside(value: dict[str, Any] | list[Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value
