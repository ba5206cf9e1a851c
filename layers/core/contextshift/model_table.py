"""A model as a table of keys, the way configuration files, the shipped catalogue and overlays write it.

A table that is wrong is refused with the path of the key at fault: a misspelt limit must not pass for an unset one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from contextshift.catalogue import Model, PriceTier
from contextshift.errors import InvalidSetting
from contextshift.needs import Limit

__all__ = ["MODEL_KEYS", "model_of", "model_values", "patched"]

_Check = tuple[Callable[[object], bool], str]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_date(value: object) -> bool:
    if isinstance(value, date):
        return True
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_price(value: object) -> bool:
    return _is_number(value) and value >= 0  # type: ignore[operator]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_scalars(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str | bool) or _is_number(one) for one in value)


_TEXT: _Check = (_is_text, "a text that is not empty")
_DATE: _Check = (_is_date, "a date, as 2027-01-31")
_PRICE: _Check = (_is_price, "a number, not negative")
_WHOLE: _Check = (_is_whole, "a whole number, not negative")
_TEXTS: _Check = (_is_texts, "a list of texts")
_TIERS: _Check = (lambda value: isinstance(value, list), "a list of tables")
_LIMITS: _Check = (lambda value: isinstance(value, Mapping), "a table of limits by parameter")

MODEL_KEYS: Mapping[str, _Check] = {
    "provider": _TEXT,
    "upstream_name": _TEXT,
    "context_window": _WHOLE,
    "max_input": _WHOLE,
    "max_output": _WHOLE,
    "tokenizer": _TEXT,
    "capabilities": _TEXTS,
    "regions": _TEXTS,
    "certifications": _TEXTS,
    "retention_days": _PRICE,
    "input_price": _PRICE,
    "cached_input_price": _PRICE,
    "cache_write_price": _PRICE,
    "output_price": _PRICE,
    "price_tiers": _TIERS,
    "message_rules": _TEXTS,
    "unsupported_parameters": _TEXTS,
    "parameter_limits": _LIMITS,
    "aliases": _TEXTS,
    "shutdown_date": _DATE,
    "successor": _TEXT,
}
"""Every key of a table with what its value must be; each is a field of `Model`."""

_LIMIT_KEYS: Mapping[str, tuple[str, _Check]] = {
    "min": ("least", (_is_number, "a number")),
    "max": ("most", (_is_number, "a number")),
    "max_items": ("most_items", _WHOLE),
    "only": ("only", (_is_scalars, "a list of texts, numbers or booleans")),
}
_TIER_KEYS: Mapping[str, _Check] = {"above": _WHOLE, "input": _PRICE, "output": _PRICE}
_SETS = frozenset(("capabilities", "regions", "certifications", "message_rules", "unsupported_parameters"))
_REQUIRED = frozenset(("provider", "upstream_name"))
_UNKNOWN = Model("", "", "")
"""Holds what each field says where nothing is known."""


def model_values(table: object, path: str) -> dict[str, Any]:
    """Return a table's keys as fields of `Model`; ``null`` means unknown. Raises InvalidSetting.

    >>> model_values({"context_window": 8192, "capabilities": ["tools"]}, "models.small")
    {'context_window': 8192, 'capabilities': frozenset({'tools'})}
    """
    if not isinstance(table, Mapping):
        raise InvalidSetting("must be a table of keys", path, "invalid_type")
    values: dict[str, Any] = {}
    for key, value in table.items():
        here = f"{path}.{key}"
        check = MODEL_KEYS.get(key)
        if check is None:
            raise InvalidSetting(f"unknown key; known: {', '.join(MODEL_KEYS)}", here, "unknown_setting")
        if value is None and key not in _REQUIRED:
            values[key] = getattr(_UNKNOWN, key)
            continue
        _checked(check, value, here)
        values[key] = _field(key, value, here)
    return values


def model_of(name: str, table: object, path: str) -> Model:
    """Return the model that a table describes by itself. Raises InvalidSetting."""
    values = model_values(table, path)
    if "provider" not in values:
        raise InvalidSetting("must name one of the providers", f"{path}.provider")
    return Model(**{"name": name, "upstream_name": name, **values})


def patched(name: str, table: object, standing: Model | None, path: str) -> Model | None:
    """Return the model with a table's keys over its own, a new one where none stands under that name.

    None where nothing says whose the new one would be. Raises InvalidSetting.
    """
    values = model_values(table, path)
    if standing is not None:
        return replace(standing, **values)
    return model_of(name, table, path) if "provider" in values else None


def _checked(check: _Check, value: object, path: str) -> None:
    test, expected = check
    if not test(value):
        raise InvalidSetting(f"must be {expected}", path, "invalid_type")


def _field(key: str, value: Any, path: str) -> Any:
    if key in _SETS:
        return frozenset(value)
    if key == "shutdown_date":
        return str(value)[:10]  # TOML has dates of its own, with a time or without
    if key == "aliases":
        return tuple(value)
    if key == "price_tiers":
        tiers = [_tier(tier, f"{path}[{index}]") for index, tier in enumerate(value)]
        return tuple(sorted(tiers, key=lambda tier: tier.above))
    if key == "parameter_limits":
        return {name: _limit(limit, f"{path}.{name}") for name, limit in value.items()}
    return value


def _tier(table: object, path: str) -> PriceTier:
    if not isinstance(table, Mapping) or table.keys() != _TIER_KEYS.keys():
        raise InvalidSetting(f"must hold {', '.join(_TIER_KEYS)}, and nothing else", path, "invalid_type")
    for key, check in _TIER_KEYS.items():
        _checked(check, table[key], f"{path}.{key}")
    return PriceTier(**table)


def _limit(table: object, path: str) -> Limit:
    if not isinstance(table, Mapping) or not table:
        raise InvalidSetting(f"must hold one of {', '.join(_LIMIT_KEYS)}", path, "invalid_type")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _LIMIT_KEYS:
            raise InvalidSetting(f"unknown key; known: {', '.join(_LIMIT_KEYS)}", f"{path}.{key}", "unknown_setting")
        field_name, check = _LIMIT_KEYS[key]
        _checked(check, value, f"{path}.{key}")
        values[field_name] = tuple(value) if key == "only" else value
    return Limit(**values)
