"""``summarize``: what leaves is summed up in the conversation's own sentences; no model is called.

The summary stands right before the current user input (before the call, where that input holds its result), as a
user message, within the budget and smaller than what it replaces. It is extractive and deterministic
(`contextshift.extract`), so the same history gives the same summary; what was read of it is remembered for the next
(`contextshift.material`), which changes none. Where no useful one fits, this is ``truncate``, and a diagnostic says so.
"""

from __future__ import annotations

from dataclasses import replace

from contextshift.extract import Said, summarise
from contextshift.material import Readings
from contextshift.messages import HISTORY_SOURCES, Message, Source, source_of
from contextshift.reasons import Reason
from contextshift.strategies.base import Proposal, Situation
from contextshift.strategies.texts import all_text, text_price
from contextshift.strategies.truncate import Truncate
from contextshift.tokens import count_one

__all__ = ["HEADING", "Summarize"]

SHARE = 12
"""A summary takes at most 1/12 of the room that protected blocks leave: it stands near the end of the prompt, where
it changes what a provider's cache holds, and a longer one is mostly a worse copy of the history."""
HEADING = "Earlier in this conversation:\n"
"""What precedes a summary, so that nobody takes it for what the user says now."""
_SUMMED = HISTORY_SOURCES | {Source.SUMMARY}
_SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Tool", "function": "Tool"}
_TRUNCATE = Truncate()


class Summarize:
    """Truncates a little deeper, and puts a summary of what left in the room this makes.

    ::

        before  S  U1 A1  U2 A2  U3        after  S  U2 A2  U"Earlier in this conversation: …"  U3
    """

    id = "summarize"
    acts_when_fitting = False

    def __init__(self) -> None:
        self._readings = Readings()

    def propose(self, situation: Situation) -> Proposal:
        """Propose a truncation and the summary of the history it removes."""
        plain = _TRUNCATE.propose(situation)
        room = _room(situation)
        deeper = _TRUNCATE.propose(replace(situation, allowance=situation.allowance - room))
        gone = [index for index, reason in deeper.departures.items() if _can_be_summed(situation, index, reason)]
        summary = self._summary_of(situation, gone, room)
        if summary is None:
            return replace(plain, diagnostics=[*plain.diagnostics, {"code": "no-useful-summary"}])
        return replace(deeper, summary=summary)

    def _summary_of(self, situation: Situation, gone: list[int], room: int) -> str | None:
        """Return the summary with its heading, None where none is useful, or none smaller than what it replaces."""
        replaced = sum(situation.tokens[index] for index in gone)
        price = text_price(situation.count)
        overhead = count_one(situation.count, {"role": "user", "content": HEADING})
        limit = min(room, replaced - 1) - overhead
        if limit <= 0:
            return None
        said = [speech for index in sorted(gone) if (speech := _speech(situation.messages[index])).text]
        body = summarise(said, limit, price, self._readings)
        return None if body is None else HEADING + body


def _room(situation: Situation) -> int:
    """Return the tokens a summary may take: a share of what is not protected."""
    protected = sum(situation.tokens[index] for index in situation.protected)
    return max(0, situation.allowance - protected) // SHARE


def _can_be_summed(situation: Situation, index: int, reason: Reason) -> bool:
    return reason is Reason.CONTEXT_SHIFT and source_of(situation.messages[index]) in _SUMMED


def _speech(message: Message) -> Said:
    """Return what a message says and who says it; an earlier summary already names its speakers."""
    text = all_text(message)
    if source_of(message) == Source.SUMMARY:
        return Said("Earlier", text.removeprefix(HEADING))
    role = str(message.get("role"))
    name = message.get("name")
    return Said(name if isinstance(name, str) and name else _SPEAKERS.get(role, role), text)
