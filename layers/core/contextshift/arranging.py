"""A prompt in the order that one model insists on: what is counted for it is what it would be sent."""

from __future__ import annotations

from dataclasses import replace

from contextshift.catalogue import Model
from contextshift.measuring import Measure, Question
from contextshift.messages import Message
from contextshift.shift import ShiftResult

__all__ = ["arranged", "as_shifted"]


def arranged(question: Question, model: Model) -> Question:
    """Return the question with its blocks as ``model`` gets them; itself where that changes nothing.

    Only what was assembled here can be arranged anew, the messages of a client's own request cannot. What is said of
    messages by their indices, ratings and marks of the request, follows its blocks.
    """
    if question.arrange is None or frozenset(model.message_rules) == frozenset(question.model.message_rules):
        return question
    messages = question.arrange(model.message_rules)
    places = {name: index for index, message in enumerate(messages) for name in _names(message)}
    moved = [[places[name] for name in _names(message)] for message in question.messages]
    settings = question.settings
    return replace(
        question,
        messages=messages,
        request={**question.request, "messages": messages},
        relevance={place: rating for index, rating in question.relevance.items() for place in moved[index]},
        settings=replace(
            settings,
            pin=tuple(place for index in settings.pin for place in moved[index]),
            exclude=tuple(place for index in settings.exclude for place in moved[index]),
        ),
    )


def as_shifted(measured: Measure, manual: ShiftResult | None) -> Measure:
    """Count in what a shift made on the way, by this model's counter: shorter texts, and a summary."""
    if manual is None:
        return measured
    count = measured.counter
    more = 0 if manual.summary is None else count(manual.summary)
    more += sum(count(item.message) - measured.tokens[item.index] for item in manual.truncated)
    return replace(measured, prompt=measured.prompt + more)


def _names(block: Message) -> list[str]:
    """Return the ids of what a block holds: its own, or those that were joined in it."""
    meta = block["meta"]
    names: list[str] = meta.get("parts") or [meta["id"]]
    return names
