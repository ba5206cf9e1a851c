"""A message and its swipes: the answers that were made in its place, one of them shown.

What belongs to an answer (`OF_AN_ANSWER`) stands in its swipe and, of the swipe shown, in the message as well. Every
change goes through here, so that the two never tell different things: showing another swipe shows all of it, an edit of
the message is an edit of the swipe shown. A message without swipes is its own only answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from contextshift.errors import InvalidInput

__all__ = ["KEPT_WITH_AN_ANSWER", "OF_AN_ANSWER", "added", "another", "changed", "lengthened", "showing"]

OF_AN_ANSWER: Mapping[str, Any] = {
    "content": None,
    "reasoning": None,
    "tool_calls": None,
    "generation_id": None,
    "partial": False,
}
"""What an answer says, and what it says where it says nothing."""
KEPT_WITH_AN_ANSWER = ("lore_state", "greeting", "speaker_id")
"""What the pipeline keeps with an answer; where a swipe does not say, the message's holds."""
_ALL = (*OF_AN_ANSWER, *KEPT_WITH_AN_ANSWER)
Document = Mapping[str, Any]


def added(document: Document) -> dict[str, Any]:
    """Return a message as it is first stored: what it says beside its swipes is said by the swipe shown.

    Raises InvalidInput where ``swipe`` is no index of ``swipes``.

    >>> added({"swipes": [{"content": "a"}, {"content": "b"}], "swipe": 1})["content"]
    'b'
    """
    said = {name: document[name] for name in OF_AN_ANSWER if document.get(name) not in (None, False)}
    return changed(showing(document, int(document.get("swipe") or 0)), said)


def showing(document: Document, index: int) -> dict[str, Any]:
    """Return a message with another of its swipes shown. Raises InvalidInput where there is no such swipe."""
    swipes = document.get("swipes") or ()
    if index >= max(1, len(swipes)):
        raise InvalidInput("there is no such swipe", "swipe", "invalid_index")
    if not swipes:
        return {**document, "swipe": 0}
    shown = swipes[index]
    kept = {name: shown[name] for name in KEPT_WITH_AN_ANSWER if name in shown}
    said = {name: shown.get(name, otherwise) for name, otherwise in OF_AN_ANSWER.items()}
    return {**document, **kept, **said, "swipe": index}


def changed(before: Document, changes: Document) -> dict[str, Any]:
    """Return a message with its changes, those of an answer in the swipe shown too. Raises what `showing` raises."""
    if "swipe" in changes:
        before = showing(before, int(changes["swipe"]))
    document = {**before, **changes}
    return {**document, "swipes": _mirrored(document, changes)}


def another(before: Document, made: Document) -> dict[str, Any]:
    """Return a message with one more swipe, which is shown."""
    swipes = _answers(before)
    return {**before, **made, "swipes": [*swipes, dict(made)], "swipe": len(swipes)}


def lengthened(before: Document, index: int, more: Document) -> dict[str, Any]:
    """Return a message of which one swipe became ``more``, whichever is shown."""
    if not before.get("swipes"):
        return {**before, **more}
    swipes = _answers(before)
    swipes[index] |= more
    document = {**before, "swipes": swipes}
    return showing(document, index) if index == int(before.get("swipe") or 0) else document


def _answers(before: Document) -> list[dict[str, Any]]:
    """Return a message's swipes, each with all that is kept with an answer; the message itself where it has none."""
    kept = {name: before.get(name) for name in KEPT_WITH_AN_ANSWER}
    swipes = before.get("swipes") or [{name: before.get(name, otherwise) for name, otherwise in OF_AN_ANSWER.items()}]
    return [{**kept, **one} for one in swipes]


def _mirrored(document: Document, names: Iterable[str]) -> list[dict[str, Any]]:
    swipes = [dict(one) for one in document.get("swipes") or ()]
    if swipes:
        swipes[int(document.get("swipe") or 0)] |= {name: document[name] for name in names if name in _ALL}
    return swipes
