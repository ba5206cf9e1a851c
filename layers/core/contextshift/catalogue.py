"""Models, how a name finds one, and what one costs, holds and may be used for.

Window, max input and max output stay three numbers. What is unknown about a model is None, and an
unknown fails every compliance rule that asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from contextshift.budget import Budget, default_reserve
from contextshift.errors import ModelNotAllowed, ModelNotFound
from contextshift.needs import Limit
from contextshift.reasons import Passed
from contextshift.settings import Compliance

__all__ = [
    "Catalogue",
    "Model",
    "PriceTier",
    "Prices",
    "check_allowed",
    "compliance_fault",
    "cost_fault",
    "model_budget",
    "prices_for",
    "request_cost",
    "reserve_for",
    "usd",
]


@dataclass(frozen=True, slots=True)
class PriceTier:
    """Prices of prompts longer than so many tokens, for all their tokens and those of the reply."""

    above: int
    input: float
    output: float


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
    """By the names of `needs`."""
    regions: frozenset[str] | None = None
    certifications: frozenset[str] | None = None
    retention_days: float | None = None
    input_price: float | None = None
    cached_input_price: float | None = None
    cache_write_price: float | None = None
    output_price: float | None = None
    price_tiers: tuple[PriceTier, ...] = ()
    """Prices of longer prompts, the shortest first."""
    message_rules: frozenset[str] = frozenset()
    unsupported_parameters: frozenset[str] = frozenset()
    """Top-level fields of a request that the model refuses, or takes without heeding them."""
    parameter_limits: Mapping[str, Limit] = field(default_factory=dict, hash=False)
    """Which values it takes of those that it takes."""
    aliases: tuple[str, ...] = ()
    shutdown_date: str | None = None
    """As an ISO date."""
    successor: str | None = None


# -- names -------------------------------------------------------------------------------------------

_SNAPSHOT = re.compile(
    r"(?P<base>.+?)[-@]"
    r"(?:\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{8}|\d{4}|\d{3}|latest|preview-\d{2}-\d{2}(?:\d{2})?)\Z"
)
"""How providers date their snapshots: OpenAI, Cohere, Anthropic, Mistral and xAI, Google's stable and preview ones."""
_FINE_TUNE = re.compile(r"ft:(?P<base>[^:]+):")
_RESOURCE = "models"
"""Google's way to name a model is a resource's: ``models/gemini-2.5-pro``."""


def _bases(name: str) -> Iterator[str]:
    """Yield what a name may be a snapshot or a fine-tune of, the nearest first."""
    while match := _FINE_TUNE.match(name) or _SNAPSHOT.match(name):
        name = match["base"]
        yield name


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All models by name, and for each provider the name patterns it serves beyond them."""

    models: Mapping[str, Model]
    patterns: Sequence[tuple[str, str]] = ()
    """(provider, pattern) pairs, as ``("main", "gpt-*")``; the first that matches wins."""
    hidden: frozenset[str] = frozenset()
    """Names that find nothing, whatever a pattern says."""
    _aliases: Mapping[str, str] = field(init=False)
    _providers: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        aliases = {alias: model.name for model in self.models.values() for alias in model.aliases}
        providers = {model.provider for model in self.models.values()} | {provider for provider, _ in self.patterns}
        object.__setattr__(self, "_aliases", aliases)
        object.__setattr__(self, "_providers", frozenset(providers))

    @property
    def providers(self) -> frozenset[str]:
        """Names of the providers that any name can lead to."""
        return self._providers

    def resolve(self, name: str) -> Model:
        """Find a model by entry, alias, dated snapshot or fine-tune prefix, then by a provider's pattern.

        A snapshot or a fine-tune has the entry's data and keeps its own name upstream. A model found by
        pattern has no window. A name may begin with its provider's, ``openai/gpt-4o``, or with ``models/``: the
        provider is sent the rest, unless the whole is an entry's name. Raises ModelNotFound.
        """
        first, slash, rest = name.partition("/")
        prefixed = bool(slash) and (first in self._providers or first == _RESOURCE)
        only = first if prefixed and first in self._providers else None
        model = self._entry(name) or self._derived(name)
        if model is None and prefixed:
            model = self._of_provider(self._entry(rest) or self._derived(rest), only)
        model = model or self._by_pattern(name)
        if model is None and prefixed:
            model = self._by_pattern(rest, only)
        if model is None or self._is_hidden(name) or (prefixed and self._is_hidden(rest)):
            raise ModelNotFound(name)
        return model

    def overlaid(self, models: Mapping[str, Model | None]) -> Catalogue:
        """Return this catalogue with other entries in the place of its own; None hides one, and its aliases."""
        gone = {name for name, model in models.items() if model is None}
        aliases = {alias for name in gone if name in self.models for alias in self.models[name].aliases}
        standing = {**self.models, **{name: model for name, model in models.items() if model is not None}}
        kept = {name: model for name, model in standing.items() if name not in gone}
        return Catalogue(kept, self.patterns, (self.hidden - kept.keys()) | gone | aliases)

    def of_providers(self, providers: Iterable[str]) -> Catalogue:
        """Return what these providers serve of this catalogue."""
        served = frozenset(providers)
        models = {name: model for name, model in self.models.items() if model.provider in served}
        return Catalogue(models, [pair for pair in self.patterns if pair[0] in served], self.hidden)

    def replacing(self, model: Model) -> Catalogue:
        """Return the catalogue with another entry of this model's name."""
        return replace(self, models={**self.models, model.name: model})

    def _entry(self, name: str) -> Model | None:
        return self.models.get(name) or self.models.get(self._aliases.get(name, ""))

    def _is_hidden(self, name: str) -> bool:
        return bool(self.hidden) and not self.hidden.isdisjoint((name, *_bases(name)))

    def _derived(self, name: str) -> Model | None:
        """Return the entry that a snapshot or fine-tune is made from, under the name that was asked for."""
        found = ((base, self._entry(base)) for base in _bases(name))
        base, model = next((pair for pair in found if pair[1] is not None), (name, None))
        if model is None:
            return None
        dated = base == model.name and not name.startswith("ft:")
        upstream = model.upstream_name + name[len(model.name) :] if dated else name
        # The entry's own name stays among the aliases: who may use the entry may use its snapshots.
        return replace(model, name=name, upstream_name=upstream, aliases=(model.name, *model.aliases))

    def _of_provider(self, model: Model | None, provider: str | None) -> Model | None:
        return model if model is not None and provider in (None, model.provider) else None

    def _by_pattern(self, name: str, only: str | None = None) -> Model | None:
        for provider, pattern in self.patterns:
            if only in (None, provider) and fnmatchcase(name, pattern):
                # A pattern that begins with its provider's name matches what we call its models, not what it does.
                own = f"{provider}/"
                upstream = name.removeprefix(own) if pattern.startswith(own) else name
                return Model(name=name, provider=provider, upstream_name=upstream)
        return None


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


@dataclass(frozen=True, slots=True)
class Prices:
    """What one prompt's tokens cost, in USD per million."""

    input: float
    cached_input: float
    output: float


def prices_for(model: Model, prompt: int) -> Prices | None:
    """Return the prices of a prompt of so many tokens, None where one is unknown.

    In a tier of longer prompts, what a provider reads from its cache becomes dearer in the input's proportion.
    """
    if model.input_price is None or model.output_price is None:
        return None
    cached = model.input_price if model.cached_input_price is None else model.cached_input_price
    tier = next((tier for tier in reversed(model.price_tiers) if prompt > tier.above), None)
    if tier is None:
        return Prices(model.input_price, cached, model.output_price)
    share = cached / model.input_price if model.input_price else 1.0
    return Prices(tier.input, tier.input * share, tier.output)


def request_cost(model: Model, prompt: int, reserve: int) -> float | None:
    """Return the most one request can cost in USD, None where a price is unknown."""
    prices = prices_for(model, prompt)
    return None if prices is None else usd(prompt * prices.input + reserve * prices.output)


def usd(price_tokens: float) -> float:
    """Turn tokens x (USD per million tokens) into USD, to the nano-dollar: below that is only float noise."""
    return round(price_tokens / 1_000_000, 9)


def cost_fault(model: Model, rules: Compliance, prompt: int, reserve: int) -> bool:
    """Whether a request would break the cost ceiling; an unknown price does."""
    if rules.max_cost_usd is None:
        return False
    cost = request_cost(model, prompt, reserve)
    return cost is None or cost > rules.max_cost_usd
