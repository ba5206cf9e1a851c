"""``GET /api/v2/chats/{id}/context-audit``: the newest audit of a chat."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from bastion.auth import Authenticator
from bastion.endpoints.reading import read_include
from bastion.respond import Reply
from contextshift.audit import GENERATION_LOST, INCLUDES, AuditStatus, lost, render_document, timestamp, unpack
from contextshift.errors import ChatNotFound
from contextshift.ports import AuditReader, Clock, StoredAudit
from contextshift.settings import CHAT_ID

__all__ = ["ContextAudits"]


class ContextAudits:
    """Shows what a chat left."""

    def __init__(self, authenticate: Authenticator, audits: AuditReader, clock: Clock) -> None:
        self._authenticate = authenticate
        self._audits = audits
        self._clock = clock

    async def show(self, request: Request) -> Reply:
        """Show the newest audit of the account's own chat. Raises ChatNotFound."""
        access = await self._authenticate(request, "audit")
        include = read_include(request, INCLUDES)
        chat_id = _chat_id(request)
        stored = await self._audits.read(access.account, chat_id)
        if stored is None:
            raise ChatNotFound("no audit of this chat")
        return Reply.json(_shown(stored, include, self._clock.now()))


def _chat_id(request: Request) -> str:
    chat_id: str = request.path_params["chat_id"]
    if not CHAT_ID.match(chat_id):
        raise ChatNotFound("no such chat")
    return chat_id


def _shown(stored: StoredAudit, include: frozenset[str], now: float) -> dict[str, Any]:
    record, end = stored.record, stored.record.end
    document = render_document(unpack(stored.document), include)
    gone = lost(record.status, record.deadline, now)
    status = AuditStatus.FAILED if gone else record.status
    cost = dict(document["cost"])
    if end is not None and end.actual_usd is not None:
        cost["actual_usd"] = end.actual_usd
    found = [dict(item) for item in end.diagnostics] if end else []
    return {
        "generation_id": record.generation_id,
        "chat_id": document.pop("chat_id"),
        "status": status.value,
        "created_at": timestamp(record.created_at),
        "finished_at": timestamp(end.finished_at) if end else None,
        "usage": end.usage if end else None,
        "error_code": GENERATION_LOST if gone else (end.error_code if end else None),
        **document,
        "diagnostics": [*document["diagnostics"], *found],
        "cost": cost,
    }
