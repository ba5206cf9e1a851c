"""The decision flow: does it fit, and if not, what is done about it.

::

    settings ─► estimate ── fits ─────────────────────────────► forward the body unchanged     none
                  └ too large ─ swapping on? ─ a model holds it ──► swap                        swap
                                   └ no / none ─ truncation on? ─ fits after ──► cut            shift
                                                     └ no, or protected alone too large ─► 400  refuse

Pure: what must be counted comes through a counter, what is chosen from through the catalogue.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from contextshift.arranging import arranged, as_shifted
from contextshift.body import Edits
from contextshift.budget import Budget, requested_reply
from contextshift.catalogue import Catalogue, Model, check_allowed, compliance_fault, cost_fault, reserve_for
from contextshift.choosing import Candidate, choose_larger
from contextshift.errors import (
    ContextShiftError,
    ModelNotAllowed,
    ReplyLimitTooLarge,
    TokenBudgetExceeded,
)
from contextshift.hosting import acts_when_fitting
from contextshift.marking import check_exclude, check_indices, marked, shifted
from contextshift.measuring import CounterFor, Measure, Question, measure, proved_by_bytes
from contextshift.messages import Message, Source, source_of
from contextshift.needs import Needs, needs_of
from contextshift.reasons import Passed
from contextshift.registry import ContextStrategyRegistry
from contextshift.shift import (
    ShiftResult,
    breakdown,
    grouping_diagnostics,
    situate,
)
from contextshift.strategies import Situation
from contextshift.tokens import TokenCounter

__all__ = ["Action", "Decision", "fit"]


class Action(StrEnum):
    """What was done about the size of a prompt."""

    NONE = "none"
    SWAP = "swap"
    SHIFT = "shift"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done, for which model, and why."""

    action: Action
    asked: Measure
    used: Measure
    """Of the model that is called; for a refusal, of the model asked for."""
    strategy: str
    situation: Situation | None = None
    """Groups and protection of what is sent; None where bytes alone decided."""
    candidates: Sequence[Candidate] = ()
    shift: ShiftResult | None = None
    error: ContextShiftError | None = None
    diagnostics: Sequence[Mapping[str, Any]] = field(default_factory=list)
    final: Sequence[tuple[int | None, Message]] | None = None
    """What interceptors left of a chat's prompt: each message with its place in the conversation, None for an addition;
    None where none of them changed it."""
    arranged: Sequence[Message] | None = None
    """The blocks as the model swapped to insists on them; None: the question's own."""

    def of(self, question: Question) -> Question:
        """Return the question with the blocks that the decision is about: the indices of a decision are theirs."""
        return question if self.arranged is None else replace(question, messages=self.arranged)

    @property
    def dropped(self) -> frozenset[int]:
        """Indices of the messages that do not leave with the request."""
        return frozenset(item.index for item in self.shift.excluded) if self.shift else frozenset()

    @property
    def shortened(self) -> frozenset[int]:
        """Indices of the messages that leave with less text than they came with."""
        return frozenset(item.index for item in self.shift.truncated) if self.shift else frozenset()

    def edits(self) -> Edits:
        """Return what a raw body needs to become what is sent: removals, new texts, and a summary."""
        shift = self.shift
        if shift is None:
            return Edits()
        added = None
        if shift.summary is not None:
            added = (_follower(shift, shift.summary), _sendable(shift.summary))
        changed = (*shift.truncated, *shift.edited)
        return Edits(self.dropped, {item.index: _sendable(item.message) for item in changed}, added)

    @property
    def swapped(self) -> bool:
        """Whether another model than the one asked for is called."""
        return self.action is Action.SWAP


def _follower(shift: ShiftResult, summary: Message) -> int:
    """Return the index of the message of the conversation that a summary stands before."""
    place = next(place for place, message in enumerate(shift.kept) if message is summary)
    return next(origin for origin in shift.origins[place:] if origin is not None)


def _sendable(message: Message) -> Message:
    """Return a message made on the way without what only we read."""
    if source_of(message) != Source.SUMMARY:
        return message
    return {key: value for key, value in message.items() if key != "meta"}


def fit(
    question: Question, catalogue: Catalogue, counter_for: CounterFor, registry: ContextStrategyRegistry
) -> Decision:
    """Decide. Raises ModelNotAllowed, before counting, and InvalidInput; a refusal is a decision, not an error."""
    settings = question.settings
    check_allowed(question.model, settings.compliance, question.allowed)
    check_indices(settings, question.messages)
    counter = counter_for(question.model)
    # What such a strategy takes out of a prompt that fits, bytes cannot say.
    acts = acts_when_fitting(registry.get(settings.context_strategy), registry.guard)
    check_exclude(settings, acts)
    proved = None if acts else proved_by_bytes(question, counter)
    if proved is not None:
        return Decision(Action.NONE, proved, proved, settings.context_strategy)
    asked = measure(question, question.model, counter)
    situation = _situation(question, asked)
    manual = _manual_departures(question, situation, registry) if acts else None
    if manual is not None:
        asked = replace(asked, prompt=manual.tokens)
    if asked.fits:
        return _forward(question, asked, situation, manual)
    strategy = settings.context_strategy
    found = grouping_diagnostics(situation.groups)
    prospect = _Prospect(question, asked, situation, manual)
    winner, candidates = _larger(prospect, catalogue, counter_for, registry)
    if winner is not None:
        return prospect.swapped_to(winner, candidates)
    refused: ContextShiftError | None = _reply_at_fault(question, asked)
    if refused is None and settings.smart_truncation:
        try:
            return _cut(question, asked, situation, registry, candidates)
        except (TokenBudgetExceeded, ModelNotAllowed) as error:
            refused = error
    if refused is None:
        refused = TokenBudgetExceeded(breakdown(situation, range(len(situation.messages))))
    return Decision(Action.REFUSE, asked, asked, strategy, situation, candidates, error=refused, diagnostics=found)


def _situation(question: Question, asked: Measure) -> Situation:
    unlimited = Budget(window=sys.maxsize, fixed=asked.fixed)
    return situate(
        marked(question),
        asked.tokens,
        asked.budget or unlimited,
        asked.counter,
        headroom=question.settings.headroom,
        rules=asked.model.message_rules,
        pinned=question.settings.pin,
    )


def _manual_departures(
    question: Question, situation: Situation, registry: ContextStrategyRegistry
) -> ShiftResult | None:
    """Return what leaves whether or not all would fit, None where nothing is marked."""
    result = shifted(question, replace(situation, allowance=situation.total), registry)
    return result if result.excluded or result.truncated else None


def _forward(question: Question, asked: Measure, situation: Situation, manual: ShiftResult | None) -> Decision:
    dear = _too_dear(question, asked)
    if dear is not None:
        found = grouping_diagnostics(situation.groups)
        return Decision(
            Action.REFUSE, asked, asked, question.settings.context_strategy, situation, error=dear, diagnostics=found
        )
    return Decision(
        Action.SHIFT if manual else Action.NONE,
        asked,
        asked,
        question.settings.context_strategy,
        situation,
        shift=manual,
        diagnostics=grouping_diagnostics(situation.groups),
    )


def _too_dear(question: Question, used: Measure) -> ModelNotAllowed | None:
    """Return the refusal where the model asked for would cost more than the ceiling."""
    if cost_fault(used.model, question.settings.compliance, used.prompt, used.reserve):
        return ModelNotAllowed(used.model.name, str(Passed.COST))
    return None


@dataclass(frozen=True, slots=True)
class _Prospect:
    """A request as one model would get it."""

    question: Question
    measure: Measure
    situation: Situation
    manual: ShiftResult | None

    def rearranged(
        self, question: Question, model: Model, counter: TokenCounter, registry: ContextStrategyRegistry
    ) -> _Prospect:
        """Return the same request with its blocks in another order, measured for a model that insists on it."""
        measured = measure(question, model, counter)
        situation = _situation(question, measured)
        manual = None if self.manual is None else _manual_departures(question, situation, registry)
        prompt = measured.prompt if manual is None else manual.tokens
        return _Prospect(question, replace(measured, prompt=prompt), situation, manual)

    def swapped_to(self, winner: _Prospect, candidates: Sequence[Candidate]) -> Decision:
        """Return the decision for the winner of the candidates."""
        return Decision(
            Action.SWAP,
            self.measure,
            winner.measure,
            self.question.settings.context_strategy,
            winner.situation,
            candidates,
            winner.manual,
            diagnostics=grouping_diagnostics(winner.situation.groups),
            arranged=None if winner.question is self.question else winner.question.messages,
        )


def _larger(
    asked: _Prospect, catalogue: Catalogue, counter_for: CounterFor, registry: ContextStrategyRegistry
) -> tuple[_Prospect | None, Sequence[Candidate]]:
    question = asked.question
    if not question.settings.context_swapping:
        return None, ()
    gone = frozenset(item.index for item in asked.manual.excluded) if asked.manual else frozenset()

    counters = {asked.measure.model.name: asked.measure.counter}  # kept: two that live at once are never one

    def counter_of(model: Model) -> TokenCounter:
        if model.name not in counters:
            counters[model.name] = counter_for(model)
        return counters[model.name]

    def kind(model: Model) -> tuple[int, frozenset[str]]:
        """Return what two models must share for one count to hold for both."""
        return id(counter_of(model)), frozenset(() if question.arrange is None else model.message_rules)

    known: dict[tuple[int, frozenset[str]], _Prospect] = {kind(asked.measure.model): asked}

    def prospect_of(model: Model) -> _Prospect:
        if kind(model) not in known:
            own, counter = arranged(question, model), counter_of(model)
            known[kind(model)] = (
                replace(asked, measure=as_shifted(measure(question, model, counter, gone), asked.manual))
                if own is question
                else asked.rearranged(own, model, counter, registry)
            )
        reserve = reserve_for(model, needs.reply, question.settings.reserve_tokens)
        found = known[kind(model)]
        return replace(found, measure=replace(found.measure, model=model, reserve=reserve))

    def count_for(model: Model) -> tuple[int, int]:
        measured = prospect_of(model).measure
        return measured.prompt, measured.margin

    needs: Needs = needs_of(question.request, question.messages)
    winner, candidates = choose_larger(
        asked.measure.model,
        [model for model in catalogue.models.values() if question.opens(model.provider)],
        needs,
        question.settings,
        question.allowed,
        count_for,
        lambda model: kind(model) in known,
        question.today,
    )
    chosen = None if winner is None else prospect_of(winner)
    return chosen, [*candidates, *_keyless(question, asked.measure, catalogue)]


def _keyless(question: Question, asked: Measure, catalogue: Catalogue) -> list[Candidate]:
    """Return the models that no key may be sent to in this call, as passed over."""
    rules, allowed = question.settings.compliance, question.allowed
    return [
        Candidate(model, False, str(compliance_fault(model, rules, allowed) or Passed.PROVIDER_KEY))
        for model in catalogue.models.values()
        if model.name != asked.model.name and not question.opens(model.provider)
    ]


def _reply_at_fault(question: Question, asked: Measure) -> ReplyLimitTooLarge | None:
    """Return the refusal where the reply limit, and not the history, leaves no room."""
    reply = requested_reply(question.request)
    window = asked.model.context_window
    if reply is None or window is None:
        return None
    needed = asked.prompt + asked.margin
    if needed > window or (asked.model.max_input is not None and needed > asked.model.max_input):
        return None
    most = asked.model.max_output
    if (most is not None and reply > most) or (window - reply) * 4 < window:
        room = window - needed
        return ReplyLimitTooLarge(reply, room if most is None else min(room, most))
    return None


def _cut(
    question: Question,
    asked: Measure,
    situation: Situation,
    registry: ContextStrategyRegistry,
    candidates: Sequence[Candidate],
) -> Decision:
    result = shifted(question, situation, registry)
    used = replace(asked, prompt=result.tokens)
    dear = _too_dear(question, used)
    if dear is not None:
        raise dear
    return Decision(
        Action.SHIFT,
        asked,
        used,
        result.strategy,
        situation,
        candidates,
        result,
        diagnostics=result.diagnostics,
    )
