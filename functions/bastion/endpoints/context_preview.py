"""``POST /api/v2/context-preview``: what would be sent and why; holds no store that can write."""

from __future__ import annotations

from collections.abc import Collection

from starlette.requests import Request

from bastion.auth import Authenticator
from bastion.endpoints.reading import read_call, read_include
from bastion.respond import Reply
from contextshift.audit import render_document
from contextshift.errors import ChatNotFound, InvalidInput
from contextshift.planner import Planner
from contextshift.report import context_headers, decision_warnings

__all__ = ["ContextPreview"]

_INLINE = ("character", "persona", "lorebooks", "memories", "context_strategy", "models")


class ContextPreview:
    """Previews a proxy request: the same plan as the call itself, and nothing after it."""

    def __init__(self, authenticate: Authenticator, planner: Planner, max_body: int) -> None:
        self._authenticate = authenticate
        self._planner = planner
        self._max_body = max_body

    async def preview(self, request: Request) -> Reply:
        """Return the audit that the call would leave; a refusal is an answer, with ``action: refuse``."""
        access = await self._authenticate(request, "preview", "call")
        include = read_include(request, frozenset())
        call = await read_call(request, access, self._max_body)
        _only_proxy(call.body.value.keys())
        planned = await self._planner.preview(call)
        warnings = decision_warnings(planned.decision)
        shown = context_headers(planned.decision, planned.settings, warnings)
        return Reply.json(render_document(planned.document(), include), headers=shown)


def _only_proxy(names: Collection[str]) -> None:
    """Refuse what this version cannot preview, instead of previewing something else."""
    if "chat_id" in names:
        raise ChatNotFound("no such chat")
    for name in _INLINE:
        if name in names:
            raise InvalidInput("this cannot be previewed yet", name, "unsupported_field")
