"""``GET /v1/models``: what this account may use, with what a client needs to choose."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.requests import Request

from bastion.auth import Authenticator
from bastion.respond import Reply
from contextshift.catalogue import Model, check_allowed, compliance_fault
from contextshift.needs import PARAMETER_CAPABILITIES, Limit
from contextshift.planner import Planner
from contextshift.ports import Access
from contextshift.settings import Compliance

__all__ = ["Models"]

_PARAMETERS = (
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "modalities",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "web_search_options",
)
"""Of chat completions, those that bear on the answer."""


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


def _is_supported(parameter: str, model: Model) -> bool:
    """Whether the model takes a parameter: not one it refuses, nor one of a capability that it lacks."""
    if parameter in model.unsupported_parameters:
        return False
    capability = PARAMETER_CAPABILITIES.get(parameter)
    # Of a model that only a pattern knows, nobody has said what it can do.
    return capability is None or model.context_window is None or capability in model.capabilities


def _shown_limit(limit: Limit) -> dict[str, Any]:
    named = {"min": limit.least, "max": limit.most, "max_items": limit.most_items, "only": limit.only}
    return {name: value for name, value in named.items() if value is not None}


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
            "tiers": [asdict(tier) for tier in model.price_tiers],
        },
        "supported_parameters": [name for name in _PARAMETERS if _is_supported(name, model)],
        "parameter_limits": {name: _shown_limit(limit) for name, limit in model.parameter_limits.items()},
        "capabilities": sorted(model.capabilities),
        "regions": None if model.regions is None else sorted(model.regions),
        "tokenizer": model.tokenizer,
        "shutdown_date": model.shutdown_date,
        "successor": model.successor,
    }
