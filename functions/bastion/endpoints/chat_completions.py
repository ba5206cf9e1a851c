"""``POST /v1/chat/completions`` and its count."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request

from bastion.auth import Authenticator
from bastion.endpoints.reading import read_call
from bastion.respond import Reply, StreamReply, connected_reply
from contextshift.exchange import Exchange
from contextshift.report import budget, context_headers, decision_warnings, tokenizer

__all__ = ["ChatCompletions"]


class ChatCompletions:
    """Completes and counts."""

    def __init__(self, authenticate: Authenticator, exchange: Exchange, max_body: int) -> None:
        self._authenticate = authenticate
        self._exchange = exchange
        self._max_body = max_body

    async def complete(self, request: Request) -> Reply | StreamReply:
        """Answer a chat completion, buffered or streamed."""
        access = await self._authenticate(request, "call")
        call = await read_call(request, access, self._max_body)
        return await connected_reply(request.scope, request.receive, self._exchange.complete(call))

    async def count(self, request: Request) -> Reply:
        """Count a chat completion exactly; keep nothing, call nobody."""
        access = await self._authenticate(request, "call", "preview")
        planner = self._exchange.planner
        planned = planner.decide(replace(planner.question(await read_call(request, access, self._max_body)), size=None))
        asked = planned.decision.asked
        return Reply.json(
            {
                "object": "token_count",
                "model": asked.model.name,
                "prompt_tokens": asked.prompt,
                "fits": asked.fits,
                "tokenizer": tokenizer(asked),
                "budget": budget(asked),
                "messages": list(asked.tokens),
            },
            headers=context_headers(planned.decision, planned.settings, decision_warnings(planned.decision)),
        )
