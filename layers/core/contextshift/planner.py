"""Planning a call: settings, model, decision. Everything here is without side effects.

A preview is a plan and nothing else, and holds no store; a real call makes the same plan and then acts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Protocol

from contextshift.body import JsonBody
from contextshift.calibration import Calibration, corrected
from contextshift.catalogue import Catalogue, Model, check_allowed
from contextshift.errors import (
    InvalidInput,
    InvalidSetting,
    ProviderKeyNotAllowed,
    ProviderKeyRequired,
    StoreUnavailable,
    StrategyNotInPlan,
)
from contextshift.fit import Decision, fit
from contextshift.marking import check_indices
from contextshift.measuring import CounterFor, Question
from contextshift.messages import Message
from contextshift.overflow import Overflow
from contextshift.overlay import overlaid
from contextshift.ports import Access, Clock, ProviderCall
from contextshift.recovery import tightened
from contextshift.references import message_reference, refused
from contextshift.registry import ContextStrategyRegistry
from contextshift.relevance import Rater
from contextshift.report import audit_document
from contextshift.settings import Level, Overrides, Plan, Settings, check_account_settings, resolve
from contextshift.tokens import TokenCounter

__all__ = [
    "AnswerReader",
    "Call",
    "Carrier",
    "Dialect",
    "Planned",
    "Planner",
    "check_key",
    "check_provider",
    "outgoing",
]


_OVERLAYS = 64
"""Overlaid catalogues kept at hand; each is a dictionary of the same models."""


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


class AnswerReader(Protocol):
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

    @property
    def failure(self) -> object:
        """The JSON that says what went wrong, for `overflow.recognise`; None where nothing did."""

    @property
    def begun(self) -> bool:
        """Whether something was read that the client must get: from then on an error can only follow it."""


class Dialect(Protocol):
    """How one API reads on the wire, as far as the exchange must know."""

    @property
    def path(self) -> str:
        """Below the provider's base URL."""

    def reader(self, content_type: str | None) -> AnswerReader:
        """Return a fresh reader for an answer of this content type; None means that it cannot be read."""


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


class Carrier(Protocol):
    """A call of any kind, as far as sending it needs."""

    @property
    def access(self) -> Access:
        """Whose call it is."""

    @property
    def dialect(self) -> Dialect:
        """How it reads on the wire."""

    @property
    def headers(self) -> Mapping[str, str]:
        """To pass on."""

    @property
    def provider_key(self) -> str | None:
        """The caller's own key."""


def outgoing(call: Carrier, body: bytes, provider: str, settings: Settings, deadline: float) -> ProviderCall:
    """Return what is sent to a provider: with the caller's key where it brought one, to the account's endpoint.

    A plan never chooses a provider that the caller's key is not for (`Question.opens`).
    """
    return ProviderCall(
        call.dialect.path,
        body,
        call.headers,
        deadline=deadline,
        account=call.access.account,
        key=call.provider_key,
        endpoint=settings.endpoint(provider),
    )


def check_key(call: Carrier, settings: Settings, provider: str) -> str | None:
    """Return the provider that the caller's key is for, None where it brought none.

    Raises ProviderKeyNotAllowed where the account does not let callers bring keys, and ProviderKeyRequired where its
    own endpoint has no other.
    """
    if call.provider_key is not None and settings.provider_keys != "caller":
        raise ProviderKeyNotAllowed
    endpoint = settings.endpoint(provider)
    if call.provider_key is None and endpoint is not None and endpoint.secret is None:
        raise ProviderKeyRequired
    return None if call.provider_key is None else provider


def check_provider(call: Carrier, settings: Settings, provider: str, messages: Sequence[Message]) -> str | None:
    """Return the one provider that a call may go to, None where any may: whose key it brings, or who has its files.

    Raises what `check_key` raises, and InvalidInput for what a provider keeps under a key that is not the caller's.
    """
    bound = check_key(call, settings, provider)
    path = message_reference(messages)
    if path is None:
        return bound
    if bound is None and settings.endpoint(provider) is None:
        raise refused(path)
    return provider


@dataclass(frozen=True, slots=True)
class Planned:
    """What would be sent, and why."""

    question: Question
    decision: Decision

    @property
    def settings(self) -> Settings:
        """The settings that were in force."""
        return self.question.settings

    def noting(self, diagnostic: Mapping[str, Any]) -> Planned:
        """Return the same plan with one more diagnostic."""
        return replace(self, decision=replace(self.decision, diagnostics=[diagnostic, *self.decision.diagnostics]))

    def document(self) -> dict[str, Any]:
        """Return the audit's document; a preview is this."""
        return audit_document(self.decision, self.question)


class Planner:
    """Settings, model, decision: everything about a call that needs no I/O."""

    def __init__(
        self,
        catalogue: Catalogue,
        plans: Mapping[str, Plan],
        counter_for: CounterFor,
        registry: ContextStrategyRegistry | None = None,
        rater: Rater | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.catalogue = catalogue
        self._plans = plans
        self._counter_for = counter_for
        self._registry = registry or ContextStrategyRegistry()
        self._rater = rater
        self._clock = clock
        # By the overlays' own text: whatever changes them, and nothing else, makes them read anew.
        self._overlaid = lru_cache(maxsize=_OVERLAYS)(partial(overlaid, catalogue))

    def catalogue_of(self, access: Access) -> Catalogue:
        """Return the catalogue as it stands for an account. Raises StoreUnavailable where an overlay is not one."""
        if not access.overlays:
            return self.catalogue
        try:
            return self._overlaid(access.overlays)
        except InvalidSetting as error:
            raise StoreUnavailable(f"an overlay of the catalogue cannot be read: {error.path}") from None

    def _today(self) -> str:
        return "" if self._clock is None else _date(self._clock.now())

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
        self._registry.get(settings.context_strategy)
        check_indices(settings, call.messages)
        catalogue = self.catalogue_of(access)
        model = catalogue.resolve(str(call.body.value["model"]))
        check_allowed(model, settings.compliance, access.models)
        # A named chat's audit lists every block with its tokens: only a call without one may go uncounted.
        size = len(call.body.raw) if settings.chat_id is None else None
        calibration = access.calibration if settings.calibration == "on" else Calibration()
        return Question(
            model,
            call.messages,
            call.body.value,
            settings,
            access.models,
            size=size,
            calibration=calibration,
            catalogue=catalogue,
            today=self._today(),
            key_provider=check_provider(call, settings, model.provider, call.messages),
        )

    def settings(
        self,
        access: Access,
        overrides: Overrides,
        strategy_levels: Sequence[Level] = (),
        chat: Overrides | None = None,
    ) -> Settings:
        """Resolve settings. Raises StoreUnavailable where the account's own cannot be read as settings."""
        try:
            account = check_account_settings(access.settings.values)
        except InvalidSetting:
            raise StoreUnavailable("the account's settings cannot be read") from None
        return resolve(self.plan_of(access), account, overrides, chat, strategy_levels)

    def chat_question(self, access: Access, model: Model, blocks: Sequence[Message], **known: Any) -> Question:
        """Return the question of a prompt that was assembled here; ``known`` are more fields of it."""
        settings: Settings = known["settings"]
        self._registry.get(settings.context_strategy)
        return Question(
            model,
            blocks,
            allowed=access.models,
            calibration=access.calibration if settings.calibration == "on" else Calibration(),
            catalogue=self.catalogue_of(access),
            today=self._today(),
            assembled=True,
            **known,
        )

    def check_strategy(self, access: Access, name: str, path: str = "context_strategy") -> None:
        """Raise InvalidInput for a strategy that there is not, or StrategyNotInPlan; both name the field."""
        try:
            self._registry.get(name)
            self.plan_of(access).check_strategy(name)
        except InvalidInput as error:
            raise InvalidInput(str(error), path, error.reason) from None
        except StrategyNotInPlan as error:
            error.path = path
            raise

    def counter(self, model: Model) -> TokenCounter:
        """Return the counter of a model."""
        return self._counter_for(model)

    def decide(self, question: Question) -> Planned:
        """Count and decide; a refusal is a decision."""
        counter_for = corrected(self._counter_for, question.calibration)
        decision = fit(question, question.catalogue or self.catalogue, counter_for, self._registry)
        if question.notes:
            decision = replace(decision, diagnostics=[*question.notes, *decision.diagnostics])
        return Planned(question, decision)

    def under(self, planned: Planned, overflow: Overflow) -> Planned | None:
        """Return the plan after a provider refused this one as too large; None where there is none that differs.

        The same flow under the limit that the refusal made known: strictly less for the same model, or another one.
        """
        refused = planned if not planned.decision.used.bound else self.decide(replace(planned.question, size=None))
        used = refused.decision.used
        try:
            again = self.decide(tightened(planned.question, self.catalogue, used, overflow))
        except ValueError:
            return None
        same = again.decision.used.model.name == used.model.name
        if again.decision.error is not None or (same and again.decision.used.prompt >= used.prompt):
            return None
        return again

    def counted(self, question: Question) -> int:
        """Return the exact prompt of a question that bytes alone had decided."""
        return self.decide(replace(question, size=None)).decision.asked.prompt

    async def rated(self, question: Question) -> Question:
        """Fetch what the strategy must know beforehand: the only I/O of a plan, and it writes nothing."""
        return question if self._rater is None else await self._rater.rated(question)

    async def preview(self, call: Call) -> Planned:
        """Return what would be sent and why, without any side effect."""
        return self.decide(await self.rated(replace(self.question(call), size=None)))
