"""Planning a call: settings, model, decision. Everything here is without side effects and without I/O.

A preview is a plan and nothing else, and holds no store; a real call makes the same plan and then acts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from contextshift.body import JsonBody
from contextshift.catalogue import Catalogue, check_allowed
from contextshift.errors import InvalidInput, StoreUnavailable
from contextshift.fit import CounterFor, Decision, Question, fit
from contextshift.messages import Message
from contextshift.ports import Access
from contextshift.registry import ContextStrategyRegistry
from contextshift.report import audit_document
from contextshift.settings import Level, Overrides, Plan, Settings, resolve

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


@dataclass(frozen=True, slots=True)
class Planned:
    """What would be sent, and why."""

    question: Question
    settings: Settings
    decision: Decision

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
    ) -> None:
        self.catalogue = catalogue
        self._plans = plans
        self._counter_for = counter_for
        self._registry = registry or ContextStrategyRegistry()

    def plan_of(self, access: Access) -> Plan:
        """Return the account's plan. Raises StoreUnavailable where this deployment does not know it."""
        try:
            return self._plans[access.plan]
        except KeyError:
            raise StoreUnavailable("the account's plan cannot be read") from None

    def question(self, call: Call) -> Question:
        """Resolve settings and model, and check them: after this only the prompt's size can go wrong.

        Raises InvalidInput, ModelNotFound, ModelNotAllowed, StrategyNotInPlan.
        """
        access = call.access
        settings = resolve(
            self.plan_of(access), access.settings.values, call.overrides, strategy_levels=(Level.REQUEST,)
        )
        self._registry.get(settings.context_strategy)
        for name, indices in (("pin", settings.pin), ("exclude", settings.exclude)):
            for position, index in enumerate(indices):
                if index >= len(call.messages):
                    raise InvalidInput("there is no such message", f"routing.{name}[{position}]", "invalid_index")
        model = self.catalogue.resolve(str(call.body.value["model"]))
        check_allowed(model, settings.compliance, access.models)
        return Question(model, call.messages, call.body.value, settings, access.models)

    def decide(self, question: Question) -> Planned:
        """Count and decide. Raises ModelNotAllowed when only the cost ceiling forbids the model."""
        decision = fit(question, self.catalogue, self._counter_for, self._registry)
        return Planned(question, question.settings, decision)

    def preview(self, call: Call) -> Planned:
        """Return what would be sent and why, without any side effect."""
        return self.decide(self.question(call))
