"""Planning a call: settings, model, decision. Everything here is without side effects.

A preview is a plan and nothing else, and holds no store; a real call makes the same plan and then acts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from contextshift.body import JsonBody
from contextshift.calibration import Calibration, corrected
from contextshift.catalogue import Catalogue, check_allowed
from contextshift.errors import InvalidSetting, ProviderKeyNotAllowed, ProviderKeyRequired, StoreUnavailable
from contextshift.fit import Decision, check_indices, fit
from contextshift.measuring import CounterFor, Question
from contextshift.messages import Message
from contextshift.ports import Access, ProviderCall
from contextshift.registry import ContextStrategyRegistry
from contextshift.relevance import Rater
from contextshift.report import audit_document
from contextshift.settings import Level, Overrides, Plan, Settings, check_account_settings, resolve

__all__ = ["Call", "Dialect", "Planned", "Planner", "UsageReader"]


class UsageReader(Protocol):
    """Reads what an answer says of itself while its bytes pass by untouched."""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the answer."""

    def end(self) -> None:
        """Take the end of the answer."""

    @property
    def usage(self) -> Mapping[str, Any] | None:
        """Reported usage as OpenAI names it, None where none was seen."""

    @property
    def error(self) -> str | None:
        """The stable code of an error that the answer holds, None for a good one."""


class Dialect(Protocol):
    """How one API reads on the wire, as far as the exchange must know."""

    path: str
    """Below the provider's base URL."""

    def reader(self, content_type: str) -> UsageReader:
        """Return a fresh reader for an answer of this content type."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a known caller, checked by its endpoint."""

    access: Access
    dialect: Dialect
    body: JsonBody
    messages: Sequence[Message]
    overrides: Overrides
    headers: Mapping[str, str] = field(default_factory=dict)
    """To pass on: an allow-list, never credentials."""
    deadline: float | None = None
    """Epoch seconds by which the client must have its answer."""
    provider_key: str | None = field(default=None, repr=False)
    """The caller's own key for the provider of the model asked for."""

    def outgoing(self, body: bytes, provider: str, settings: Settings, deadline: float) -> ProviderCall:
        """Return what is sent to a provider: with the caller's key where it brought one, to the account's endpoint.

        A plan never chooses a provider that the caller's key is not for (`Question.opens`).
        """
        return ProviderCall(
            self.dialect.path,
            body,
            self.headers,
            deadline=deadline,
            account=self.access.account,
            key=self.provider_key,
            endpoint=settings.endpoint(provider),
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """What would be sent, and why."""

    question: Question
    decision: Decision

    @property
    def settings(self) -> Settings:
        """The settings that were in force."""
        return self.question.settings

    def document(self) -> dict[str, Any]:
        """Return the audit's document; a preview is this."""
        return audit_document(self.decision, self.question.messages, self.settings)


class Planner:
    """Settings, model, decision: everything about a call that needs no I/O."""

    def __init__(
        self,
        catalogue: Catalogue,
        plans: Mapping[str, Plan],
        counter_for: CounterFor,
        registry: ContextStrategyRegistry | None = None,
        rater: Rater | None = None,
    ) -> None:
        self.catalogue = catalogue
        self._plans = plans
        self._counter_for = counter_for
        self._registry = registry or ContextStrategyRegistry()
        self._rater = rater

    def plan_of(self, access: Access) -> Plan:
        """Return the account's plan. Raises StoreUnavailable where this deployment does not know it."""
        try:
            return self._plans[access.plan]
        except KeyError:
            raise StoreUnavailable("the account's plan cannot be read") from None

    def question(self, call: Call) -> Question:
        """Resolve settings and model, and check them: after this only the prompt's size can go wrong.

        Raises InvalidInput, ModelNotFound, ModelNotAllowed, StrategyNotInPlan, ProviderKeyNotAllowed,
        ProviderKeyRequired.
        """
        access = call.access
        settings = self.settings(access, call.overrides, (Level.REQUEST,))
        if call.provider_key is not None and settings.provider_keys != "caller":
            raise ProviderKeyNotAllowed
        self._registry.get(settings.context_strategy)
        check_indices(settings, call.messages)
        model = self.catalogue.resolve(str(call.body.value["model"]))
        check_allowed(model, settings.compliance, access.models)
        # A named chat's audit lists every block with its tokens: only a call without one may go uncounted.
        size = len(call.body.raw) if settings.chat_id is None else None
        calibration = access.calibration if settings.calibration == "on" else Calibration()
        question = Question(
            model,
            call.messages,
            call.body.value,
            settings,
            access.models,
            size=size,
            calibration=calibration,
            key_provider=None if call.provider_key is None else model.provider,
        )
        if not question.opens(model.provider):
            raise ProviderKeyRequired
        return question

    def settings(self, access: Access, overrides: Overrides, strategy_levels: Sequence[Level] = ()) -> Settings:
        """Resolve settings. Raises StoreUnavailable where the account's own cannot be read as settings."""
        try:
            account = check_account_settings(access.settings.values)
        except InvalidSetting:
            raise StoreUnavailable("the account's settings cannot be read") from None
        return resolve(self.plan_of(access), account, overrides, strategy_levels=strategy_levels)

    def decide(self, question: Question) -> Planned:
        """Count and decide; a refusal is a decision."""
        counter_for = corrected(self._counter_for, question.calibration)
        decision = fit(question, self.catalogue, counter_for, self._registry)
        if question.notes:
            decision = replace(decision, diagnostics=[*question.notes, *decision.diagnostics])
        return Planned(question, decision)

    def counted(self, question: Question) -> int:
        """Return the exact prompt of a question that bytes alone had decided."""
        return self.decide(replace(question, size=None)).decision.asked.prompt

    async def rated(self, question: Question) -> Question:
        """Fetch what the strategy must know beforehand: the only I/O of a plan, and it writes nothing."""
        return question if self._rater is None else await self._rater.rated(question)

    async def preview(self, call: Call) -> Planned:
        """Return what would be sent and why, without any side effect."""
        return self.decide(await self.rated(replace(self.question(call), size=None)))
