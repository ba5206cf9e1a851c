"""The built-in strategies, as an explicit tuple; plug-ins come through the registry."""

from __future__ import annotations

from contextshift.strategies.base import Proposal, Situation, Strategy, with_text
from contextshift.strategies.clear_tool_results import ClearToolResults
from contextshift.strategies.leaving import USER_FIRST, lost_breakpoints, unaligned
from contextshift.strategies.manual import Manual
from contextshift.strategies.middle_out import MiddleOut
from contextshift.strategies.summarize import Summarize
from contextshift.strategies.truncate import Truncate
from contextshift.strategies.vector_recall import VectorRecall

__all__ = [
    "BUILTIN",
    "USER_FIRST",
    "ClearToolResults",
    "Manual",
    "MiddleOut",
    "Proposal",
    "Situation",
    "Strategy",
    "Summarize",
    "Truncate",
    "VectorRecall",
    "lost_breakpoints",
    "unaligned",
    "with_text",
]

BUILTIN: tuple[Strategy, ...] = (
    Truncate(),
    Summarize(),
    VectorRecall(),
    Manual(),
    MiddleOut(),
    ClearToolResults(),
)
