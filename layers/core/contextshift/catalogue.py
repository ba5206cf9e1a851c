"""Models, how a name finds one, and the choice of a larger one, with a reason for each passed over.

Window, max input and max output stay three numbers. What is unknown about a model is None, and an
unknown fails every compliance rule that asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from contextshift.budget import Budget, default_reserve, requested_reply
from contextshift.errors import ModelNotAllowed, ModelNotFound
from contextshift.media import media_kind
from contextshift.messages import Message, content_parts
from contextshift.pieces import take_apart
from contextshift.reasons import Passed
from contextshift.settings import Compliance, Settings

__all__ = [
    "Candidate",
    "Catalogue",
    "Model",
    "Needs",
    "check_allowed",
    "choose_larger",
    "compliance_fault",
    "model_budget",
    "needs_of",
    "request_cost",
    "reserve_for",
    "usd",
]


@dataclass(frozen=True, slots=True)
class Model:
    """One model as the catalogue knows it. Limits in tokens, prices in USD per million tokens."""

    name: str
    provider: str
    upstream_name: str
    """What the provider calls it; the request's ``model`` is rewritten only where this differs."""
    context_window: int | None = None
    """Prompt and reply together; None: unknown, so nothing is ever cut for it."""
    max_input: int | None = None
    max_output: int | None = None
    tokenizer: str | None = None
    capabilities: frozenset[str] = frozenset()
    regions: frozenset[str] | None = None
    certifications: frozenset[str] | None = None
    retention_days: float | None = None
    input_price: float | None = None
    cached_input_price: float | None = None
    cache_write_price: float | None = None
    output_price: float | None = None
    message_rules: frozenset[str] = frozenset()
    unsupported_parameters: frozenset[str] = frozenset()
    aliases: tuple[str, ...] = ()
    shutdown_date: str | None = None
    successor: str | None = None


_SNAPSHOT = re.compile(r"(?P<base>.+?)[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4})\Z")
_FINE_TUNE = re.compile(r"ft:(?P<base>[^:]+):")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All models by name, and for each provider the name patterns it serves beyond them."""

    models: Mapping[str, Model]
    patterns: Sequence[tuple[str, str]] = ()
    """(provider, pattern) pairs, as ``("main", "gpt-*")``; the first that matches wins."""
    _aliases: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        aliases = {alias: model.name for model in self.models.values() for alias in model.aliases}
        object.__setattr__(self, "_aliases", aliases)

    def resolve(self, name: str) -> Model:
        """Find a model by entry, alias, dated snapshot or fine-tune prefix, then by a provider's pattern.

        A snapshot or a fine-tune has the entry's data and keeps its own name upstream. A model found by
        pattern has no window. Raises ModelNotFound.
        """
        model = self._entry(name)
        if model is not None:
            return model
        base = _FINE_TUNE.match(name) or _SNAPSHOT.match(name)
        model = self._entry(base["base"]) if base else None
        if base and name.startswith("ft:") and model is None:
            snapshot = _SNAPSHOT.match(base["base"])
            model = self._entry(snapshot["base"]) if snapshot else None
        if model is not None:
            # The entry's own name stays among the aliases: who may use the entry may use its snapshots.
            return replace(model, name=name, upstream_name=name, aliases=(model.name, *model.aliases))
        for provider, pattern in self.patterns:
            if fnmatchcase(name, pattern):
                return Model(name=name, provider=provider, upstream_name=name)
        raise ModelNotFound(name)

    def replacing(self, model: Model) -> Catalogue:
        """Return the catalogue with another entry of this model's name."""
        return Catalogue({**self.models, model.name: model}, self.patterns)

    def _entry(self, name: str) -> Model | None:
        return self.models.get(name) or self.models.get(self._aliases.get(name, ""))


# -- what a request needs ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Needs:
    """What a model must have to take a request as it is."""

    capabilities: tuple[str, ...]
    parameters: frozenset[str]
    reply: int | None
    """The reply limit asked for, in tokens."""


_PART_CAPABILITIES = {
    "image_url": "vision",
    "input_image": "vision",
    "image": "vision",
    "input_audio": "audio",
    "audio": "audio",
    "document": "files",
    "file": "files",
    "input_file": "files",
    "input_video": "video",
    "video": "video",
    "video_url": "video",
}


def needs_of(request: Mapping[str, Any], messages: Sequence[Message]) -> Needs:
    """Read off a request which capabilities and parameters it uses."""
    found: dict[str, None] = {}
    if request.get("tools") or request.get("functions"):
        found["tools"] = None
    response_format = request.get("response_format")
    if isinstance(response_format, Mapping) and response_format.get("type") == "json_schema":
        found["json_schema"] = None
    modalities = request.get("modalities")
    if isinstance(modalities, list) and "audio" in modalities:
        found["audio"] = None
    for message in messages:
        if message.get("tool_calls") or message.get("role") == "tool":
            found["tools"] = None
        for part in content_parts(message):
            found |= dict.fromkeys(_capabilities(part))
    set_parameters = frozenset(name for name, value in request.items() if value is not None)
    return Needs(tuple(found), set_parameters, requested_reply(request))


def _capabilities(part: Mapping[str, Any]) -> Iterable[str]:
    """Return what a part asks of a model: by its type, else by the images and files inside it."""
    capability = _PART_CAPABILITIES.get(str(part.get("type")))
    if capability or isinstance(part.get("text"), str):
        return (capability,) if capability else ()
    pieces = take_apart({"content": [part]})
    media = ({"file": "files", "text": "files"}.get(kind, kind) for kind in map(media_kind, pieces.media))
    return (*(("vision",) if pieces.images else ()), *media)


# -- one model under the rules -----------------------------------------------------------------------


def compliance_fault(model: Model, rules: Compliance, allowed: Sequence[str] | None) -> Passed | None:
    """Return the rule that forbids the model, None where it may be used; cost is judged once counted.

    A model satisfies ``regions`` when every region it may be served from is allowed.
    """
    if allowed is not None and model.name not in allowed and not set(model.aliases) & set(allowed):
        return Passed.NOT_ALLOWED
    if rules.regions is not None and not (model.regions and model.regions <= rules.regions):
        return Passed.REGION
    if rules.certifications and not (model.certifications and rules.certifications <= model.certifications):
        return Passed.CERTIFICATION
    limit = rules.max_retention_days
    if limit is not None and (model.retention_days is None or model.retention_days > limit):
        return Passed.RETENTION
    return None


def check_allowed(model: Model, rules: Compliance, allowed: Sequence[str] | None) -> None:
    """Raise ModelNotAllowed where compliance forbids the model."""
    fault = compliance_fault(model, rules, allowed)
    if fault is not None:
        raise ModelNotAllowed(model.name, str(fault))


def reserve_for(model: Model, reply: int | None, reserve_tokens: int | None) -> int:
    """Return the tokens kept for the reply: the limit asked for, else the setting, else a bounded default."""
    if reply is not None:
        return reply
    if reserve_tokens is not None:
        return reserve_tokens
    return 0 if model.context_window is None else default_reserve(model.context_window, model.max_output)


def model_budget(model: Model, reserve: int, fixed: int, slack: int = 0) -> Budget:
    """Return the budget of a model whose window is known."""
    if model.context_window is None:
        raise ValueError("a model of unknown window has no budget")
    return Budget(model.context_window, reserve, model.max_input, fixed, slack)


def request_cost(model: Model, prompt: int, reserve: int) -> float | None:
    """Return the most one request can cost in USD, None where a price is unknown."""
    if model.input_price is None or model.output_price is None:
        return None
    return usd(prompt * model.input_price + reserve * model.output_price)


def usd(price_tokens: float) -> float:
    """Turn tokens x (USD per million tokens) into USD, to the nano-dollar: below that is only float noise."""
    return round(price_tokens / 1_000_000, 9)


def cost_fault(model: Model, rules: Compliance, prompt: int, reserve: int) -> bool:
    """Whether a request would break the cost ceiling; an unknown price does."""
    if rules.max_cost_usd is None:
        return False
    cost = request_cost(model, prompt, reserve)
    return cost is None or cost > rules.max_cost_usd


# -- the choice --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that was looked at for a swap."""

    model: Model
    accepted: bool
    reason: str


CountFor = Callable[[Model], tuple[int, int]]
"""Return (prompt tokens, margin) as a model's own tokenizer counts them; slow the first time a tokenizer is used."""


def choose_larger(
    asked: Model,
    models: Iterable[Model],
    needs: Needs,
    settings: Settings,
    allowed: Sequence[str] | None,
    count_for: CountFor,
) -> tuple[Model | None, list[Candidate]]:
    """Choose the model to swap to, and say of every other why not.

    Same provider first, then the cheapest for this request, then the smallest window. Cheap tests come
    first; another provider's models are not counted once one of the same provider passed.
    """
    verdicts: dict[str, str] = {}
    open_models: list[Model] = []
    for model in models:
        if model.name == asked.name:
            continue
        fault = _cheap_fault(model, needs, settings, allowed)
        if fault is None:
            open_models.append(model)
        verdicts[model.name] = fault or Passed.NOT_EVALUATED
    listed = {model.name: model for model in models if model.name in verdicts}
    winner: Model | None = None
    for same_provider in (True, False):
        tier = [model for model in open_models if (model.provider == asked.provider) is same_provider]
        if winner is None:
            winner = _best_of(tier, needs, settings, count_for, verdicts)
    return winner, [Candidate(model, model is winner, verdicts[name]) for name, model in listed.items()]


def _best_of(
    tier: Sequence[Model], needs: Needs, settings: Settings, count_for: CountFor, verdicts: dict[str, str]
) -> Model | None:
    passed: list[tuple[float, int, str, Model]] = []
    for model in tier:
        prompt, margin = count_for(model)
        fault = _size_fault(model, needs, settings, prompt, margin)
        verdicts[model.name] = fault or Passed.NOT_PREFERRED
        if fault is None:
            cost = request_cost(model, prompt, reserve_for(model, needs.reply, settings.reserve_tokens))
            ranked = float("inf") if cost is None else cost
            passed.append((ranked, model.context_window or 0, model.name, model))
    if not passed:
        return None
    winner = min(passed, key=lambda entry: entry[:3])[3]
    verdicts[winner.name] = Passed.ACCEPTED
    return winner


def _cheap_fault(model: Model, needs: Needs, settings: Settings, allowed: Sequence[str] | None) -> str | None:
    """Return a reason that needs no count, None where only counting can tell."""
    fault = compliance_fault(model, settings.compliance, allowed)
    if fault is not None:
        return str(fault)
    if model.context_window is None:
        return str(Passed.WINDOW)
    for capability in needs.capabilities:
        if capability not in model.capabilities:
            return Passed.capability(capability)
    for name in sorted(needs.parameters & model.unsupported_parameters):
        return Passed.parameter(name)
    if needs.reply is not None and model.max_output is not None and needs.reply > model.max_output:
        return str(Passed.MAX_OUTPUT)
    return None


def _size_fault(model: Model, needs: Needs, settings: Settings, prompt: int, margin: int) -> str | None:
    reserve = reserve_for(model, needs.reply, settings.reserve_tokens)
    if prompt + margin + reserve > (model.context_window or 0):
        return str(Passed.WINDOW)
    if model.max_input is not None and prompt + margin > model.max_input:
        return str(Passed.MAX_INPUT)
    if cost_fault(model, settings.compliance, prompt, reserve):
        return str(Passed.COST)
    return None
