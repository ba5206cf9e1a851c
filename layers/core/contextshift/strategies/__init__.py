"""The built-in strategies, as an explicit tuple; plug-ins come through the registry."""

from __future__ import annotations

from contextshift.strategies.base import Departure, Proposal, Situation, Strategy
from contextshift.strategies.manual import Manual
from contextshift.strategies.truncate import Truncate

__all__ = ["BUILTIN", "Departure", "Manual", "Proposal", "Situation", "Strategy", "Truncate"]

BUILTIN: tuple[Strategy, ...] = (Truncate(), Manual())
