"""What a store says over the catalogue: models added, changed and hidden without a deployment.

An overlay is a JSON object by model name. A table of keys (`model_table`) changes these keys of the model that
stands under the name, ``null`` making one unknown again, or is a new model; ``null`` in its place hides the model::

    {"gpt-4o": {"input_price": 2.2}, "house-7b": {"provider": "main", "context_window": 8192}, "old-one": null}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from contextshift.catalogue import Catalogue, Model
from contextshift.errors import InvalidSetting
from contextshift.model_table import patched

__all__ = ["overlaid", "overlay_models"]


def overlaid(catalogue: Catalogue, documents: Sequence[str]) -> Catalogue:
    """Return the catalogue under overlays, each over those before it. Raises InvalidSetting.

    A model of a provider that the catalogue does not lead to is not offered: whoever wrote the overlay may
    know more providers than this deployment has keys for.
    """
    for document in documents:
        models = overlay_models(catalogue, _read(document), "overlay")
        reachable = {name: model if _is_reachable(model, catalogue) else None for name, model in models.items()}
        catalogue = catalogue.overlaid(reachable)
    return catalogue


def overlay_models(catalogue: Catalogue, tables: Mapping[str, Any], path: str) -> dict[str, Model | None]:
    """Return what an overlay makes of a catalogue's models, by name; None hides one. Raises InvalidSetting."""
    return {
        name: None if table is None else patched(name, table, catalogue.models.get(name), f"{path}.{name}")
        for name, table in tables.items()
    }


def _is_reachable(model: Model | None, catalogue: Catalogue) -> bool:
    return model is not None and model.provider in catalogue.providers


def _read(document: str) -> Mapping[str, Any]:
    try:
        tables = json.loads(document)
    except ValueError:
        raise InvalidSetting("must be JSON", "overlay", "invalid_json") from None
    if not isinstance(tables, dict):
        raise InvalidSetting("must be an object by model name", "overlay", "invalid_type")
    return tables
