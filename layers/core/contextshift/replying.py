"""A reply as it grows: text, reasoning and calls put together from a provider's chunks, and the message it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextshift.chats import MessageRecord, Saving
from contextshift.errors import InvalidInput
from contextshift.swipes import KEPT_WITH_AN_ANSWER, another, lengthened

__all__ = ["NO_GREETING", "Reply", "check_target", "saving"]

NO_GREETING = -1
"""Where an answer took a greeting's place: none of the card's is in use."""


class Reply:
    """What was generated so far, after what it was made to begin with.

    Chunks come from a provider and may hold anything: what makes no sense in them is passed over, and half of a
    surrogate pair waits for its other half.
    """

    def __init__(self, prefill: str = "") -> None:
        self._prefill = prefill
        self._text = ""
        self._reasoning = ""
        self._calls: dict[int, dict[str, Any]] = {}

    @property
    def text(self) -> str:
        """The text so far, with its beginning."""
        return self._prefill + _whole(self._text)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return _whole(self._reasoning)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to keep."""
        return not (self._text or self._calls or self._reasoning)

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Take one chunk of a stream, or a whole answer in the place of one."""
        choices = chunk.get("choices")
        choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
        delta = _object(choice.get("delta")) or _object(choice.get("message"))
        self._text += _text(delta.get("content"))
        self._reasoning += _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            self._call(_object(call), position)

    def fields(self) -> dict[str, Any]:
        """Return what a message says of it."""
        calls = [self._calls[index] for index in sorted(self._calls)]
        return {"content": self.text, "reasoning": self.reasoning or None, "tool_calls": calls or None}

    def _call(self, delta: Mapping[str, Any], position: int) -> None:
        index, function = delta.get("index"), _object(delta.get("function"))
        place = index if isinstance(index, int) and not isinstance(index, bool) else position
        call = self._calls.setdefault(place, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call["id"] = call["id"] or _whole(_text(delta.get("id")))
        for name in ("name", "arguments"):
            call["function"][name] = _whole(call["function"][name] + _text(function.get(name)))


def check_target(target: MessageRecord | None, branch: str) -> None:
    """Raise InvalidInput where a generation would change a message that its branch shares with the one it left.

    There the message goes on meaning what follows it: a fork that ends in it gets an answer of its own when it is
    forked one message earlier.
    """
    if target is not None and target.branch != branch:
        told = f"the branch ends in a message of {target.branch}: fork it after the message before, and generate there"
        raise InvalidInput(told, "branch", "shared_message")


def saving(
    kind: str,
    reply: Reply,
    branch: str,
    target: MessageRecord | None,
    *,
    staged: Mapping[str, Any] | None,
    generation_id: str,
    speaker_id: str | None,
    lore_state: Mapping[str, Any],
    partial: bool,
    shared: bool = False,
) -> Saving | None:
    """Return what a reply writes into the conversation, by the generation's type; None for what is not kept.

    ``normal`` adds a message; ``continue`` lengthens the answer that it was staged with; ``regenerate`` replaces the
    last message, ``swipe`` adds another answer in its place and shows it. Where the new answer broke off, or another
    branch goes through the message (``shared``), the replaced answers stay beside it. What ``impersonate`` and
    ``quiet`` make is only the generation's own. ``target`` is the message that is changed as it is now, ``staged``
    what it said when the prompt was made. What lore remembers is kept with each answer: the next turn goes on from
    the one shown.
    """
    if kind in ("impersonate", "quiet") or (reply.empty and partial):
        return None
    made = {
        **reply.fields(),
        "generation_id": generation_id,
        "partial": partial,
        "lore_state": dict(lore_state),
        "speaker_id": speaker_id,
    }
    if target is None:
        return Saving({"role": "assistant", "swipes": [dict(made)], "swipe": 0, **made}, branch)
    if target.document.get("greeting") is not None:
        made["greeting"] = NO_GREETING
    if kind == "regenerate" and (partial or shared):
        kind = "swipe"
    return Saving(_changed(kind, target.document, staged or target.document, made), target.branch, target)


def _changed(
    kind: str, before: Mapping[str, Any], staged: Mapping[str, Any], made: Mapping[str, Any]
) -> dict[str, Any]:
    if kind == "regenerate":
        return {**before, **made, "swipes": [dict(made)], "swipe": 0}
    if kind != "continue":
        return another(before, made)
    place = int(staged.get("swipe") or 0)
    swipes = before.get("swipes") or [before]
    if place < len(swipes) and swipes[place].get("generation_id") == staged.get("generation_id"):
        return lengthened(before, place, _continued(swipes[place], made))
    kept = {name: staged.get(name) for name in KEPT_WITH_AN_ANSWER}
    return another(before, {**kept, **_continued(staged, made)})  # another answer took its place meanwhile


def _continued(before: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an answer and its continuation say: its own parts stay, and so does what lore remembers."""
    content, more = before.get("content"), made["content"]
    whole = [*content, {"type": "text", "text": more}] if isinstance(content, list) else _text(content) + more
    reasoning = _text(before.get("reasoning")) + _text(made["reasoning"])
    calls = [*(before.get("tool_calls") or ()), *(made["tool_calls"] or ())]
    said = {"content": whole, "reasoning": reasoning or None, "tool_calls": calls or None}
    return {**said, "generation_id": made["generation_id"], "partial": made["partial"]}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(text: str) -> str:
    """Return text that can be stored: halves of a pair that came apart joined, a half that stays alone replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
