"""Relaying the calls that are not counted: the same keys, model check, headers and event; bytes as they are.

Nothing is measured, so nothing is cut, swapped or audited. What compliance says of the model holds as it does for a
counted call; a cost ceiling holds against the most that the bytes can cost. What refers to objects that a provider
keeps is sent only to an account's own place at the provider: the deployment's is everybody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from contextshift import headers
from contextshift.answer import EVENT_STREAM, Answer, header_of, holds_events, returned
from contextshift.audit import AuditStatus
from contextshift.catalogue import Model, check_allowed, cost_fault, reserve_for
from contextshift.course import Course, Relay
from contextshift.errors import ModelNotAllowed
from contextshift.exchange import Exchange
from contextshift.fit import Decision
from contextshift.headers import Token, Warning_, sf_item
from contextshift.ledger import Matter
from contextshift.planner import AnswerReader, Dialect, check_key, outgoing
from contextshift.ports import Access
from contextshift.reasons import Passed
from contextshift.references import refused
from contextshift.settings import Overrides, Settings

__all__ = ["RelayBody", "RelayCall", "relay"]

_LENGTH = "content-length"


class RelayBody(Protocol):
    """A request's body, of which only the model's name is known."""

    @property
    def model(self) -> str:
        """The name of the model asked for."""

    @property
    def size(self) -> int:
        """Bytes of it."""

    @property
    def reply(self) -> int | None:
        """The reply limit it asks for, in tokens; of each of its replies."""

    @property
    def replies(self) -> int:
        """How many replies it asks for."""

    @property
    def only_text(self) -> bool:
        """Whether text is all that is paid for: not so for pictures, sound, and what the provider adds by itself."""

    @property
    def reference(self) -> str | None:
        """The path of what refers to an object that a provider keeps, None where nothing does."""

    def sent(self, upstream_name: str) -> bytes:
        """Return the bytes to send, for the model as its provider calls it."""


@dataclass(frozen=True, slots=True)
class RelayCall:
    """One request of a known caller to a route that is relayed."""

    access: Access
    dialect: Dialect
    body: RelayBody
    overrides: Overrides
    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    """The query of its URL, as it came."""
    deadline: float | None = None
    provider_key: str | None = field(default=None, repr=False)
    """The caller's own key for the provider of the model."""


class _Relayed:
    """One relayed call on its way."""

    decision: Decision | None = None

    def __init__(self, exchange: Exchange, call: RelayCall, model: Model, settings: Settings) -> None:
        self._requested = call.body.model
        self._model = model
        deadline = exchange.deadline(call.deadline)
        self.ledger = exchange.ledger(call.access, settings, deadline)
        self.course = Course(exchange.caller, self.ledger, self, deadline)

    def matter(self) -> Matter:
        """Return what the call is about."""
        return Matter(self._model, {"requested": self._requested, "action": "relay"})

    def headers(self) -> list[tuple[str, str]]:
        """Return Bastion's headers of an answer that was not counted."""
        return [(headers.TOKENS, sf_item(Token("uncounted"))), (headers.GENERATION_ID, self.ledger.generation_id)]

    async def answered(self, status: int, reader: AnswerReader) -> list[Warning_]:
        """End with what the answer reports."""
        code = f"UPSTREAM_{status}" if status >= 400 else reader.error
        ended = AuditStatus.COMPLETED if code is None else AuditStatus.FAILED
        await self.ledger.end(self.matter(), ended, code=code, upstream_status=status, usage=reader.usage)
        return []


async def relay(exchange: Exchange, call: RelayCall) -> Answer:
    """Relay one call; its answer is streamed, whatever it is.

    Raises ModelNotFound, ModelNotAllowed or InvalidInput before anything is sent; after that, CallFailed.
    """
    planner, access = exchange.planner, call.access
    settings = replace(planner.settings(access, call.overrides), chat_id=None)
    model = planner.catalogue_of(access).resolve(call.body.model)
    check_allowed(model, settings.compliance, access.models)
    own = check_key(call, settings, model.provider) is not None or settings.endpoint(model.provider) is not None
    if call.body.reference is not None and not own:
        raise refused(call.body.reference)
    _check_cost(call, model, settings)
    relayed = _Relayed(exchange, call, model, settings)
    async with relayed.course.ending_on_failure():
        body = call.body.sent(model.upstream_name)
        sent = replace(outgoing(call, body, model.provider, settings, relayed.course.deadline), query=call.query)
        received = await exchange.caller.pass_through(exchange.provider(model.provider), sent, call.dialect)
    upstream = received.upstream
    are_events = header_of(upstream, "content-type").lower().startswith(EVENT_STREAM)
    events = are_events and holds_events(upstream, _LENGTH)
    shown = [*returned(upstream.headers, _LENGTH), *relayed.headers()]
    return Answer(upstream.status, shown, Relay(relayed.course, received, events=events))


def _check_cost(call: RelayCall, model: Model, settings: Settings) -> None:
    """Raise ModelNotAllowed where the ceiling may be broken: a token is a byte or more, other media cannot be told."""
    body, rules = call.body, settings.compliance
    reserve = reserve_for(model, body.reply, settings.reserve_tokens) * body.replies
    told = rules.max_cost_usd is None or body.only_text
    if not told or cost_fault(model, rules, body.size, reserve):
        raise ModelNotAllowed(model.name, str(Passed.COST))
