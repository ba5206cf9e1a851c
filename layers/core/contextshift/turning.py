"""Turns of a chat: what of it a generation is told, and how lore counts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from contextshift.casting import Wanted
from contextshift.chats import MessageRecord
from contextshift.errors import InvalidInput
from contextshift.lore.activation_ports import Turn
from contextshift.messages import Role

__all__ = ["split_history", "turn_of"]

_CHANGES_LAST = ("continue", "regenerate", "swipe")


def split_history(messages: Sequence[MessageRecord], kind: str) -> tuple[Sequence[MessageRecord], MessageRecord | None]:
    """Return the history that is sent, and the message that is changed. Raises InvalidInput where there is none."""
    if kind not in _CHANGES_LAST:
        return messages, None
    last = messages[-1] if messages else None
    if last is None or last.document.get("role") != Role.ASSISTANT:
        raise InvalidInput("the branch does not end with an answer", "type", "nothing_to_change")
    return (messages if kind == "continue" else messages[:-1]), last


def turn_of(history: Sequence[MessageRecord], wanted: Wanted, chance: Callable[[str], float]) -> Turn:
    """Return the turn as lore counts it: with the message on its way. What is continued is in the turn that made it.

    It is marked by the newest message's number, which stays when older ones are deleted.
    """
    told = history[:-1] if wanted.type == "continue" else history
    states = (one.document.get("lore_state") for one in reversed(told))
    pending = wanted.user_message is not None
    return Turn(
        messages=len(told) + pending,
        mark=(told[-1].n if told else 0) + pending,
        greeting=told[0].document.get("greeting") if told else None,
        state=next((one for one in states if one is not None), {}),
        chance=chance,
        replies=sum(one.document.get("role") == Role.ASSISTANT for one in told),
    )
