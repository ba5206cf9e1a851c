"""Settings: which switch holds for one request, and who decided it.

Precedence, each switch on its own: request > chat > account > plan > default. An explicit ``false`` or
``0`` counts; ``null`` means "not set". Compliance is different: it is the account's, and a request or a
chat may only *narrow* it (`Compliance`). An unknown switch or a wrong type is an InvalidSetting that
names it: a misspelt safety switch must not pass for an unset one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from contextshift.endpoints import EXPECTED_ENDPOINTS, Endpoint, is_endpoints
from contextshift.errors import InvalidSetting, StrategyNotInPlan

__all__ = [
    "CHAT_ID",
    "MOST_TOKENS",
    "Compliance",
    "Level",
    "Overrides",
    "Plan",
    "Settings",
    "check_account_settings",
    "check_overrides",
    "check_stored_size",
    "resolve",
]

CHAT_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
"""What may name a chat."""
MOST_TOKENS = 1_000_000_000
"""Far beyond any window; a larger limit is a mistake, and would not fit into a price."""
MOST_BYTES = 350_000
"""What an account's settings may take as JSON: an item of DynamoDB holds 400 KB."""
_MOST_NAMES = 50
_LONGEST_NAME = 64

Overrides = Mapping[str, Any]
"""Checked settings of one level: snake-case names, no nulls."""


class Level(StrEnum):
    """Who decided a setting, strongest first."""

    REQUEST = "request"
    CHAT = "chat"
    ACCOUNT = "account"
    PLAN = "plan"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Plan:
    """A billing plan: defaults, never ceilings, save ``strategies``, the list that may be named."""

    name: str
    defaults: Overrides = field(default_factory=dict)
    strategies: frozenset[str] | None = None
    """Context strategies that may be named; None means every one."""
    audit_days: int = 7

    def check_strategy(self, strategy: str) -> None:
        """Raise StrategyNotInPlan unless the plan lists the strategy."""
        if self.strategies is not None and strategy not in self.strategies:
            raise StrategyNotInPlan(strategy)


@dataclass(frozen=True, slots=True)
class Compliance:
    """Rules that every model must satisfy, the one asked for as well."""

    regions: frozenset[str] | None = None
    """Where a prompt may be processed; None means anywhere."""
    certifications: frozenset[str] = frozenset()
    """What a model must hold, all of it."""
    max_retention_days: float | None = None
    max_cost_usd: float | None = None
    """For one request: prompt x input price + reserve x output price."""

    def narrowed(self, overrides: Overrides) -> Compliance:
        """Return these rules and the given ones together: never looser than either.

        >>> both = Compliance(regions=frozenset({"eu", "us"})).narrowed({"regions": ["eu", "ap"]})
        >>> sorted(both.regions)
        ['eu']
        """
        regions = overrides.get("regions")
        return Compliance(
            _both(self.regions, None if regions is None else frozenset(regions)),
            self.certifications | frozenset(overrides.get("certifications") or ()),
            _least(self.max_retention_days, overrides.get("max_retention_days")),
            _least(self.max_cost_usd, overrides.get("max_cost_usd")),
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for one request. ``levels`` says who decided each name that is not a default."""

    strategy: str = "auto"
    context_swapping: bool = False
    smart_truncation: bool = False
    context_strategy: str = "truncate"
    headroom: float = 0.0
    reserve_tokens: int | None = None
    pin: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    chat_id: str | None = None
    audit: str = "best-effort"
    """``required``: a named chat's call is refused when its audit cannot be written."""
    audit_content: str = "full"
    calibration: str = "on"
    """``off``: reported usage neither corrects this account's counts nor is kept for it."""
    system_prompt: str = ""
    """Of chats whose character has none of its own. Never shown: it is prompt text."""
    scan_depth: int = 4
    """Newest messages in which lore looks for its keys, where neither entry nor book says."""
    lore_share: float = 0.25
    """The part of the budget that lore may take."""
    provider_keys: str = "deployment"
    """``caller``: a call may bring the key of its model's provider, and is then sent with that key."""
    endpoints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The account's own addresses by provider; see `endpoint`."""
    compliance: Compliance = Compliance()
    levels: Mapping[str, Level] = field(default_factory=dict)

    def level(self, name: str) -> Level:
        """Return who decided a setting."""
        return self.levels.get(name, Level.DEFAULT)

    def endpoint(self, provider: str) -> Endpoint | None:
        """Return the account's own endpoint in the place of a provider's, None where it has none."""
        given = self.endpoints.get(provider)
        return None if given is None else Endpoint(**given)

    def shown(self) -> dict[str, dict[str, Any]]:
        """Return ``{name: {value, level}}`` of both switches and of everything that somebody set."""
        rules = self.compliance
        values: dict[str, Any] = {
            "strategy": self.strategy,
            "context_swapping": self.context_swapping,
            "smart_truncation": self.smart_truncation,
            "context_strategy": self.context_strategy,
            "headroom": self.headroom,
            "reserve_tokens": self.reserve_tokens,
            "pin": list(self.pin),
            "exclude": list(self.exclude),
            "max_cost_usd": rules.max_cost_usd,
            "regions": None if rules.regions is None else sorted(rules.regions),
            "certifications": sorted(rules.certifications),
            "max_retention_days": rules.max_retention_days,
            "audit": self.audit,
            "audit_content": self.audit_content,
            "calibration": self.calibration,
            "scan_depth": self.scan_depth,
            "lore_share": self.lore_share,
            "provider_keys": self.provider_keys,
            "endpoints": {name: given["base_url"] for name, given in self.endpoints.items()},
        }
        always = ("context_swapping", "smart_truncation")
        return {
            name: {"value": value, "level": str(self.level(name))}
            for name, value in values.items()
            if name in always or name in self.levels
        }


# -- checking one level ------------------------------------------------------------------------------

_Check = Callable[[Any], bool]


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _is_names(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) <= _MOST_NAMES
        and all(isinstance(item, str) and 0 < len(item) <= _LONGEST_NAME for item in value)
    )


def _is_indices(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_is_count(item) for item in value)


_SHARED: dict[str, tuple[_Check, str]] = {
    "strategy": (lambda value: value == "auto", '"auto"'),
    "context_swapping": (_is_bool, "true or false"),
    "smart_truncation": (_is_bool, "true or false"),
    "context_strategy": (
        lambda value: isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME,
        "the name of a strategy",
    ),
    "headroom": (lambda value: _is_amount(value) and value < 1, "a number of at least 0 and below 1"),
    "reserve_tokens": (_is_count, "a whole number of tokens, 0 to 1,000,000,000"),
    "max_cost_usd": (_is_amount, "a number, not negative"),
    "regions": (_is_names, "a list of at most 50 names"),
    "certifications": (_is_names, "a list of at most 50 names"),
    "max_retention_days": (_is_amount, "a number, not negative"),
}
_REQUEST_ONLY: dict[str, tuple[_Check, str]] = {
    "pin": (_is_indices, "a list of message indices"),
    "exclude": (_is_indices, "a list of message indices"),
    "chat_id": (
        lambda value: isinstance(value, str) and bool(CHAT_ID.match(value)),
        "1-128 of A-Z a-z 0-9 . _ : -",
    ),
}
_ACCOUNT_ONLY: dict[str, tuple[_Check, str]] = {
    "audit": (lambda value: value in ("required", "best-effort"), '"required" or "best-effort"'),
    "audit_content": (lambda value: value in ("full", "hashes", "none"), '"full", "hashes" or "none"'),
    "calibration": (lambda value: value in ("on", "off"), '"on" or "off"'),
    "system_prompt": (lambda value: isinstance(value, str) and len(value) <= 200_000, "a text"),
    "scan_depth": (lambda value: _is_count(value) and value <= 10_000, "a number of messages"),
    "lore_share": (lambda value: _is_amount(value) and value <= 1, "a number from 0 to 1"),
    "provider_keys": (lambda value: value in ("deployment", "caller"), '"deployment" or "caller"'),
    "endpoints": (is_endpoints, EXPECTED_ENDPOINTS),
}
_CAMEL = re.compile(r"(?<=[a-z])([A-Z])")


def check_overrides(given: object, path: str = "routing") -> Overrides:
    """Check the settings of a request or a chat and return those that are set, by snake-case name.

    Raises InvalidSetting naming the switch, as ``routing.context_swapping``.

    >>> check_overrides({"contextSwapping": False, "reserve_tokens": None})
    {'context_swapping': False}
    """
    return _checked(given, path, {**_SHARED, **_REQUEST_ONLY})


def check_account_settings(given: object, path: str = "settings") -> Overrides:
    """Check an account's or a plan's settings like `check_overrides`; these may say how audits are kept."""
    return _checked(given, path, {**_SHARED, **_ACCOUNT_ONLY})


def check_stored_size(settings: Overrides, path: str = "settings") -> None:
    """Raise InvalidSetting for settings that are too large to be stored: they are read with every call."""
    size = len(json.dumps(dict(settings), ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > MOST_BYTES:
        raise InvalidSetting(f"all settings together take at most {MOST_BYTES:,} bytes", path, "too_large")


def _checked(given: object, path: str, known: Mapping[str, tuple[_Check, str]]) -> Overrides:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidSetting(f"{path} must be an object", path, "invalid_type")
    checked: dict[str, Any] = {}
    for spelling, value in given.items():
        name = _CAMEL.sub(lambda match: "_" + match[1].lower(), spelling) if isinstance(spelling, str) else ""
        here = f"{path}.{spelling}"
        if name not in known:
            raise InvalidSetting(f"unknown setting; known: {', '.join(sorted(known))}", here, "unknown_setting")
        if name in checked:
            raise InvalidSetting("given twice, in two spellings", here, "repeated_key")
        test, expected = known[name]
        if value is not None:
            if not test(value):
                raise InvalidSetting(f"must be {expected}", here, "invalid_type")
            checked[name] = value
    return checked


# -- resolving ---------------------------------------------------------------------------------------

_COMPLIANCE = ("regions", "certifications", "max_retention_days", "max_cost_usd")
_STRATEGY_LEVELS = (Level.REQUEST, Level.CHAT, Level.ACCOUNT, Level.PLAN)


def resolve(
    plan: Plan,
    account: Overrides,
    request: Overrides,
    chat: Overrides | None = None,
    strategy_levels: Sequence[Level] = _STRATEGY_LEVELS,
) -> Settings:
    """Resolve every setting with its provenance; all levels must be checked before.

    ``strategy_levels`` are those that may choose ``context_strategy``: on the proxy only the request may.
    Naming messages to exclude without a strategy chooses ``manual``. Raises StrategyNotInPlan.
    """
    layers = (
        (Level.REQUEST, request),
        (Level.CHAT, chat or {}),
        (Level.ACCOUNT, account),
        (Level.PLAN, plan.defaults),
    )
    values: dict[str, Any] = {}
    levels: dict[str, Level] = {}
    for level, layer in layers:
        for name, value in layer.items():
            if name in values or name in _COMPLIANCE or (name == "context_strategy" and level not in strategy_levels):
                continue
            levels[name] = level
            values[name] = tuple(value) if isinstance(value, list) else value
    if values.get("exclude") and "context_strategy" not in values:
        values["context_strategy"], levels["context_strategy"] = "manual", levels["exclude"]
    if "context_strategy" in values:
        plan.check_strategy(values["context_strategy"])
    compliance = _resolve_compliance(layers, levels)
    return Settings(**values, compliance=compliance, levels=levels)


def _resolve_compliance(layers: Sequence[tuple[Level, Overrides]], levels: dict[str, Level]) -> Compliance:
    """Take the account's rules, or the plan's where it has none, and let chat and request narrow them.

    The level of a rule is the one that made it what it is.
    """
    by_level = dict(layers)
    rules = Compliance()
    for name in _COMPLIANCE:
        base = Level.ACCOUNT if name in by_level[Level.ACCOUNT] else Level.PLAN
        for level in (base, Level.CHAT, Level.REQUEST):
            if name in by_level[level]:
                narrowed = rules.narrowed({name: by_level[level][name]})
                if narrowed != rules or level is base:
                    rules, levels[name] = narrowed, level
    return rules


def _both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _least(one: float | None, other: float | None) -> float | None:
    return min((value for value in (one, other) if value is not None), default=None)
