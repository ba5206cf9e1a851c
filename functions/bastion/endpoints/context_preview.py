"""``POST /api/v2/context-preview``: what would be sent and why; holds no store that can write.

Three kinds of request: a stored chat's next prompt (``chat_id``), an inline conversation with its own characters, lore
and memories, and a proxy request. With ``models`` the same prompt is looked at for each of them as well.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request

from bastion.auth import Authenticator, ScopeMissing
from bastion.endpoints.generations import wanted_of
from bastion.endpoints.reading import call_of, read_include, read_json, read_overrides_of
from bastion.respond import Reply
from bastion.wire import chats as wire
from bastion.wire.inline import read_inline
from bastion.wire.shapes import read
from contextshift.audit import render_document
from contextshift.body import JsonBody, parse_body
from contextshift.errors import ChatNotFound, ContextShiftError, InvalidInput, ModelNotAllowed, ModelNotFound
from contextshift.planner import Planned, Planner
from contextshift.ports import Access
from contextshift.rehearsal import Rehearsal
from contextshift.replying import check_target
from contextshift.report import context_headers, decision_warnings
from contextshift.settings import CHAT_ID

__all__ = ["ContextPreview"]

_INLINE = ("character", "persona", "lorebooks", "memories", "context_strategy")
_ALIASES = {"chatId": "chat_id", "contextStrategy": "context_strategy"}
"""Other spellings of what tells the kinds of request apart."""
_MOST_MODELS = 20
Plan = Callable[[str | None], Awaitable[Planned]]
"""Plans the same prompt, for the model asked for or another one."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A preview request without what is only the preview's."""

    body: JsonBody
    models: Sequence[str]

    @property
    def value(self) -> Mapping[str, Any]:
        """The request's fields."""
        return self.body.value


class ContextPreview:
    """Previews: the same plan as the call itself, and nothing after it."""

    def __init__(self, authenticate: Authenticator, planner: Planner, rehearsal: Rehearsal, max_body: int) -> None:
        self._authenticate = authenticate
        self._planner = planner
        self._rehearsal = rehearsal
        self._max_body = max_body

    async def preview(self, request: Request) -> Reply:
        """Return the audit that the call would leave; a refusal is an answer, with ``action: refuse``."""
        access = await self._authenticate(request, "preview", "call")
        include = read_include(request, frozenset())
        asked = _asked(await read_json(request, self._max_body))
        plan = await self._plan(request, access, asked)
        planned = await _first(plan, asked)
        shown = context_headers(planned.decision, planned.settings, decision_warnings(planned.decision))
        document = render_document(planned.document(), include)
        if asked.models:
            document["models"] = [await _compared(plan, name) for name in asked.models]
        return Reply.json(document, headers=shown)

    async def _plan(self, request: Request, access: Access, asked: _Asked) -> Plan:
        if "chat_id" in asked.value:
            return await self._of_stored(access, asked)
        if any(name in asked.value for name in _INLINE):
            return self._of_inline(access, asked)
        return self._of_proxy(request, access, asked)

    async def _of_stored(self, access: Access, asked: _Asked) -> Plan:
        """Plan a stored chat's next prompt: a key that may only preview what it brings may not read it."""
        if "call" not in access.key.scopes:
            raise ScopeMissing(("call",))
        fields = dict(asked.value)
        chat_id = fields.pop("chat_id")
        if not isinstance(chat_id, str) or not CHAT_ID.match(chat_id):
            raise ChatNotFound("no such chat")

        try:
            start = read(wire.GenerationStart, fields)
            wanted = wanted_of(start)
        except InvalidInput:
            await self._rehearsal.check_chat(access, chat_id)  # 404 for a foreign chat, whatever else is wrong
            raise
        stage = await self._rehearsal.opened(access, chat_id, start.branch)

        async def plan(model: str | None) -> Planned:
            staged = stage(wanted if model is None else replace(wanted, model=model))
            check_target(staged.target, start.branch)
            return await self._rehearsal.decided(staged)

        return plan

    def _of_inline(self, access: Access, asked: _Asked) -> Plan:
        names_one = asked.value.get("model") is not None or not asked.models
        inline = read_inline(asked.body if names_one else _for_model(asked.body, asked.models[0]))
        wanted = wanted_of(inline.start)

        async def plan(model: str | None) -> Planned:
            if model is None and not names_one:
                raise InvalidInput("the request names no model", "model", "missing")
            one = wanted if model is None else replace(wanted, model=model)
            staged = self._rehearsal.brought(access, "inline", inline.chat, inline.messages, inline.cast, one)
            return await self._rehearsal.decided(staged)

        return plan

    def _of_proxy(self, request: Request, access: Access, asked: _Asked) -> Plan:
        async def plan(model: str | None) -> Planned:
            body = asked.body if model is None else _for_model(asked.body, model)
            return await self._planner.preview(
                call_of(request, access, body, read_overrides_of(request, body.value.get("routing")))
            )

        return plan


def _asked(body: JsonBody) -> _Asked:
    """Take ``models`` off a request."""
    fields = {_ALIASES.get(name, name): value for name, value in body.value.items()}
    models = fields.pop("models", None)
    if models is None:
        same = fields.keys() == body.value.keys()
        return _Asked(body if same else parse_body(json.dumps(fields, ensure_ascii=False).encode()), ())
    if not isinstance(models, list) or not all(isinstance(one, str) and one for one in models):
        raise InvalidInput("models must be a list of names", "models", "invalid_type")
    if not 1 <= len(models) <= _MOST_MODELS:
        raise InvalidInput(f"from 1 to {_MOST_MODELS} models can be compared", "models", "invalid_value")
    return _Asked(parse_body(json.dumps(fields, ensure_ascii=False).encode()), tuple(dict.fromkeys(models)))


async def _first(plan: Plan, asked: _Asked) -> Planned:
    """Plan for the model that request or chat names; where neither does, for the first of ``models`` that may be used.

    Raises what planning raises; where none of them may be used, what it raises for the first.
    """
    try:
        return await plan(None)
    except InvalidInput as error:
        if not asked.models or (error.path, error.reason) != ("model", "missing"):
            raise
    refused: ContextShiftError | None = None
    for name in asked.models:
        try:
            return await plan(name)
        except (ModelNotFound, ModelNotAllowed) as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _for_model(body: JsonBody, model: str) -> JsonBody:
    return parse_body(json.dumps({**body.value, "model": model}, ensure_ascii=False).encode())


async def _compared(plan: Plan, name: str) -> dict[str, Any]:
    """Return how one model would take the prompt; one that may not be used says why."""
    shown: dict[str, Any] = {"model": name, "fits": False, "action": "refuse", "prompt_tokens": None, "limit": None}
    shown |= {"excluded": 0, "estimated_usd": None, "error_code": None}
    try:
        planned = await plan(name)
    except ContextShiftError as error:
        return {**shown, "error_code": error.code}
    decision = planned.decision
    budget = decision.asked.budget
    return {
        **shown,
        "fits": decision.asked.fits,
        "action": str(decision.action),
        "prompt_tokens": decision.used.prompt,
        "limit": None if budget is None else budget.limit,
        "excluded": len(decision.dropped),
        "estimated_usd": None if decision.error is not None else decision.used.cost,
        "error_code": decision.error.code if decision.error else None,
    }
