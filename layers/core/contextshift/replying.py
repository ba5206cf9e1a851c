"""A reply as it grows: text, reasoning and calls put together from a provider's chunks, and the message it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contextshift.chats import MessageRecord, Saving

__all__ = ["Reply", "saving"]


@dataclass(slots=True)
class Reply:
    """What was generated so far."""

    text: str = ""
    reasoning: str = ""
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    finish_reason: str | None = None

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Take one chunk of a stream, or a whole answer in the place of one."""
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, Sequence) and choices else {}
        delta = choice.get("delta") or choice.get("message") or {}
        self.text += _text(delta.get("content"))
        self.reasoning += _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        for position, call in enumerate(delta.get("tool_calls") or ()):
            self._call(call, call.get("index", position))
        self.finish_reason = choice.get("finish_reason") or self.finish_reason

    @property
    def empty(self) -> bool:
        """Whether there is nothing to keep."""
        return not (self.text or self.calls or self.reasoning)

    def fields(self) -> dict[str, Any]:
        """Return what a message says of it."""
        said: dict[str, Any] = {"content": self.text, "reasoning": self.reasoning or None}
        if self.calls:
            said["tool_calls"] = [self.calls[index] for index in sorted(self.calls)]
        return said

    def _call(self, delta: Mapping[str, Any], index: int) -> None:
        call = self.calls.setdefault(index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        function = delta.get("function") or {}
        call["id"] = call["id"] or delta.get("id") or ""
        call["function"]["name"] += _text(function.get("name"))
        call["function"]["arguments"] += _text(function.get("arguments"))


def saving(
    kind: str,
    reply: Reply,
    branch: str,
    target: MessageRecord | None,
    *,
    generation_id: str,
    speaker_id: str | None,
    lore_state: Mapping[str, Any],
    partial: bool,
) -> Saving | None:
    """Return what a reply writes into the conversation, by the generation's type; None for what is not kept.

    ``normal`` adds a message; ``continue`` lengthens the last one; ``regenerate`` replaces it, ``swipe`` adds another
    answer in its place and shows it. What ``impersonate`` and ``quiet`` make is only the generation's own.
    """
    if kind in ("impersonate", "quiet") or (reply.empty and partial):
        return None
    made = {**reply.fields(), "generation_id": generation_id}
    swipe = {name: made.get(name) for name in ("content", "reasoning", "generation_id")}
    if target is None:
        document = {
            "role": "assistant",
            "speaker_id": speaker_id,
            "swipes": [swipe],
            "swipe": 0,
            "lore_state": dict(lore_state),
            **made,
            "partial": partial,
        }
        return Saving(document, branch)
    return Saving(_changed(kind, target.document, made, swipe) | {"partial": partial}, target.branch, target)


def _changed(kind: str, before: Mapping[str, Any], made: Mapping[str, Any], swipe: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "continue":
        whole = _text(before.get("content")) + _text(made.get("content"))
        swipes = [dict(one) for one in before.get("swipes") or ()]
        shown = int(before.get("swipe") or 0)
        if shown < len(swipes):
            swipes[shown]["content"] = whole
        return {**before, "content": whole, "swipes": swipes, "generation_id": made["generation_id"]}
    if kind == "regenerate":
        return {**before, **made, "swipes": [swipe], "swipe": 0}
    swipes = list(before.get("swipes") or ()) or [{name: before.get(name) for name in swipe}]
    return {**before, **made, "swipes": [*swipes, swipe], "swipe": len(swipes)}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
