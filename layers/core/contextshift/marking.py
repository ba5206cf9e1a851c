"""Messages that a request names by index: checked, and marked as their owners could have marked them.

The marks are made on copies, for the decision alone: what leaves it are the caller's own messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contextshift.errors import InvalidInput
from contextshift.measuring import Question
from contextshift.messages import Message
from contextshift.registry import ContextStrategyRegistry
from contextshift.settings import Settings
from contextshift.shift import ShiftResult, shift_situation
from contextshift.strategies import Situation

__all__ = ["check_exclude", "check_indices", "marked", "shifted"]


def check_indices(settings: Settings, messages: Sequence[Message]) -> None:
    """Raise InvalidInput, naming the place, where ``pin`` or ``exclude`` names a message that is not there."""
    for name, indices in (("pin", settings.pin), ("exclude", settings.exclude)):
        for position, index in enumerate(indices):
            if index >= len(messages):
                raise InvalidInput("there is no such message", f"routing.{name}[{position}]", "invalid_index")


def check_exclude(settings: Settings, acts: bool) -> None:
    """Raise InvalidInput where messages are named to leave, and a strategy that would let them stay while all fits."""
    if settings.exclude and not acts:
        named = settings.context_strategy
        raise InvalidInput(
            f"the strategy {named!r} takes no message out that is named: use 'manual', or name no strategy",
            "routing.exclude",
            "exclude_needs_manual",
        )


def marked(question: Question) -> Sequence[Message]:
    """Return the messages with those excluded marked, and those unrated rated; the caller's own where none is."""
    marks: dict[int, dict[str, Any]] = {index: {"manualExcluded": True} for index in question.settings.exclude}
    for index, rating in question.relevance.items():
        marks.setdefault(index, {})["relevance"] = rating
    if not marks:
        return question.messages
    messages = list(question.messages)
    for index, mark in marks.items():
        meta = messages[index].get("meta")
        known = meta if isinstance(meta, Mapping) else {}
        messages[index] = {**messages[index], "meta": {**known, **mark}}
    return messages


def shifted(question: Question, situation: Situation, registry: ContextStrategyRegistry) -> ShiftResult:
    """Shift `marked` messages with the strategy chosen; the caller's own messages stand in the result."""
    name = question.settings.context_strategy
    result = shift_situation(situation, registry.get(name), registry.guard, name)
    given = question.messages
    if situation.messages is given:
        return result
    shorter = {
        item.index: replace(item, original=given[item.index], message=_saying(given[item.index], item.message))
        for item in result.truncated
    }
    kept = [
        message if origin is None else shorter[origin].message if origin in shorter else given[origin]
        for message, origin in zip(result.kept, result.origins, strict=True)
    ]
    excluded = [replace(item, message=given[item.index]) for item in result.excluded]
    return replace(result, kept=kept, excluded=excluded, truncated=list(shorter.values()))


def _saying(given: Message, shortened: Message) -> Message:
    return {**given, "content": shortened["content"]}
