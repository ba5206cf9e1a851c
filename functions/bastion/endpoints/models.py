"""``GET /v1/models``: what this account may use, with what a client needs to choose."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from bastion.auth import Authenticator
from bastion.respond import Reply
from contextshift.catalogue import Model, check_allowed, compliance_fault
from contextshift.planner import Planner
from contextshift.ports import Access
from contextshift.settings import Compliance

__all__ = ["Models"]

_PARAMETERS = (
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "presence_penalty",
    "response_format",
    "seed",
    "stop",
    "stream",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
)


class Models:
    """Lists and shows models."""

    def __init__(self, authenticate: Authenticator, planner: Planner) -> None:
        self._authenticate = authenticate
        self._planner = planner

    async def list(self, request: Request) -> Reply:
        """List the models that the account may use."""
        access = await self._authenticate(request, "call", "preview")
        rules = self._rules(access)
        models = self._planner.catalogue_of(access).models.values()
        usable = [model for model in models if compliance_fault(model, rules, access.models) is None]
        return Reply.json({"object": "list", "data": [_shown(model) for model in usable]})

    async def show(self, request: Request) -> Reply:
        """Show one model, by any name that a call could use. Raises ModelNotFound, ModelNotAllowed."""
        access = await self._authenticate(request, "call", "preview")
        model = self._planner.catalogue_of(access).resolve(request.path_params["model"])
        check_allowed(model, self._rules(access), access.models)
        return Reply.json(_shown(model))

    def _rules(self, access: Access) -> Compliance:
        return self._planner.settings(access, {}).compliance


def _shown(model: Model) -> dict[str, Any]:
    return {
        "id": model.name,
        "object": "model",
        "created": 0,
        "owned_by": model.provider,
        "context_length": model.context_window,
        "max_model_len": model.context_window,
        "max_input_tokens": model.max_input,
        "max_completion_tokens": model.max_output,
        "pricing": {
            "input": model.input_price,
            "cached_input": model.cached_input_price,
            "cache_write": model.cache_write_price,
            "output": model.output_price,
        },
        "supported_parameters": [name for name in _PARAMETERS if name not in model.unsupported_parameters],
        "capabilities": sorted(model.capabilities),
        "regions": None if model.regions is None else sorted(model.regions),
        "tokenizer": model.tokenizer,
        "shutdown_date": model.shutdown_date,
        "successor": model.successor,
    }
