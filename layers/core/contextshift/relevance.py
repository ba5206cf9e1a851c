"""Relevance of memories and lore, fetched before the shift so that strategies need no I/O.

A rating is put on its block (``meta.relevance``) for the decision alone, where ``vector-recall`` reads it; what is
sent and what is audited stay as they came. Fetching one sends
prompt text to the model that makes it, so that model must satisfy the account's compliance like any other;
where it does not, or does not answer, the strategy's own lexical scorer takes over and a diagnostic says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from contextshift.catalogue import Model, compliance_fault
from contextshift.errors import ProviderError
from contextshift.groups import group_messages
from contextshift.measuring import Question
from contextshift.messages import Source, meta_number, source_of
from contextshift.ports import Relevance
from contextshift.protection import protect
from contextshift.strategies.texts import all_text

__all__ = ["Rater"]

_RATED = frozenset((Source.MEMORY, Source.LORE))
_STRATEGY = "vector-recall"
_UNSET = -1.0


@dataclass(frozen=True, slots=True)
class Rater:
    """Rates the blocks of a question by a model of the catalogue."""

    model: Model
    relevance: Relevance

    async def rated(self, question: Question) -> Question:
        """Return the question with a relevance on every block that needs one; never raises."""
        unrated = _unrated(question)
        if not unrated:
            return question
        fault = compliance_fault(self.model, question.settings.compliance, None)
        if fault is not None:
            return _noted(question, str(fault))
        messages = question.messages
        current = protect(messages, group_messages(messages)).current or 0
        try:
            texts = [all_text(messages[index]) for index in unrated]
            ratings = await self.relevance.rate(all_text(messages[current]), texts)
        except ProviderError as error:
            return _noted(question, error.code)
        return replace(question, relevance=dict(zip(unrated, ratings, strict=True)))


def _unrated(question: Question) -> Sequence[int]:
    if question.settings.context_strategy != _STRATEGY:
        return ()
    return [
        index
        for index, message in enumerate(question.messages)
        if source_of(message) in _RATED and meta_number(message, "relevance", _UNSET) < 0
    ]


def _noted(question: Question, why: str) -> Question:
    note: dict[str, Any] = {"code": "relevance-unavailable", "why": why}
    return replace(question, notes=(*question.notes, note))
