"""``POST /v1/chat/completions`` and its count."""

from __future__ import annotations

from starlette.requests import Request

from bastion.auth import Authenticator
from bastion.endpoints.reading import read_call
from bastion.respond import Reply, StreamReply, answer_reply
from contextshift.exchange import Exchange
from contextshift.report import budget, tokenizer

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
        return answer_reply(await self._exchange.complete(call))

    async def count(self, request: Request) -> Reply:
        """Count a chat completion exactly; keep nothing, call nobody."""
        access = await self._authenticate(request, "call", "preview")
        planned = self._exchange.planner.preview(await read_call(request, access, self._max_body))
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
            }
        )
