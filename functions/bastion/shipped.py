"""The shipped catalogue: providers and their models as data, one JSON file a provider under ``data/models``.

JSON because a cold start reads it: the same tables as TOML take 30 times as long to parse (6.5 instead of 0.2 ms). A
file holds::

    {"name": "groq",
     "provider": {keys of [providers.groq]},
     "sources": [{"url": …, "read": the day, "of": what was taken from it}],
     "kept": [keys that a refresh leaves alone],
     "shared": {keys that every model below has},
     "groups": {"gpt-oss": {keys of the models that say "group": "gpt-oss"}},
     "models": {"groq/openai/gpt-oss-20b": {keys of [models.…]}}}

A model's own keys stand over its group's, and these over the shared ones; limits of parameters do so one by one. What
nobody publishes is left out. ``infra/refresh_catalogue.py`` brings prices, windows and dates up to date.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "model_tables", "shipped_tables"]

FOLDER = Path(__file__).parent / "data" / "models"
_LIMITS = "parameter_limits"


def shipped_tables(folder: Path = FOLDER) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tables of all providers and of all models, by name, as a configuration file would hold them."""
    documents = [json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))]
    providers = {document["name"]: document["provider"] for document in documents}
    return providers, {name: table for document in documents for name, table in model_tables(document).items()}


def model_tables(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the whole tables of one provider's models."""
    shared, groups = document.get("shared", {}), document.get("groups", {})
    return {
        name: _joined(document["name"], shared, groups.get(own.get("group"), {}), own)
        for name, own in document["models"].items()
    }


def _joined(provider: str, *layers: Mapping[str, Any]) -> dict[str, Any]:
    table: dict[str, Any] = {"provider": provider}
    limits: dict[str, Any] = {}
    for layer in layers:
        table.update(layer)
        limits.update(layer.get(_LIMITS, {}))
    table.pop("group", None)
    return table | ({_LIMITS: limits} if limits else {})
