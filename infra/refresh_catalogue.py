"""Bring the shipped catalogue up to date from a local copy of a public catalogue file.

::

    curl -O https://models.dev/api.json                       # or LiteLLM's model_prices_and_context_window.json
    PYTHONPATH=layers/core:functions python infra/refresh_catalogue.py api.json            # shows what would change
    PYTHONPATH=layers/core:functions python infra/refresh_catalogue.py api.json --write    # and writes it

It opens no connection. Of models that the catalogue has it changes numbers only: windows, limits and prices. Windows
are taken from models.dev alone, since LiteLLM's ``max_input_tokens`` is a window with one provider and a largest input
with another. Models that the file has beyond ours, and ours that it no longer has, are listed for a person to judge,
and so are announced ends: many are only the earliest day possible. A provider's ``kept`` names keys that are better
left alone. What would make a model implausible is shown and not written. Ends with 1 where something would change and
was not written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bastion.shipped import FOLDER, model_tables
from contextshift.catalogue import Catalogue
from contextshift.errors import InvalidSetting, ModelNotFound
from contextshift.model_table import model_of

__all__ = ["Change", "Report", "main", "refresh", "render"]

Facts = dict[str, Any]
_LITELLM = "https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json"
_MODELS_DEV = "https://models.dev/api.json"
_KNOWN_AS = {  # ours: (LiteLLM's, models.dev's)
    "alibaba": ("dashscope", "alibaba"),
    "anthropic": ("anthropic", "anthropic"),
    "bedrock": ("bedrock_converse", "amazon-bedrock"),
    "cerebras": ("cerebras", "cerebras"),
    "cohere": ("cohere_chat", "cohere"),
    "deepseek": ("deepseek", "deepseek"),
    "fireworks": ("fireworks_ai", "fireworks-ai"),
    "google": ("gemini", "google"),
    "groq": ("groq", "groq"),
    "mistral": ("mistral", "mistral"),
    "moonshot": ("moonshot", "moonshotai"),
    "openai": ("openai", "openai"),
    "openrouter": ("openrouter", "openrouter"),
    "perplexity": ("perplexity", "perplexity"),
    "together": ("together_ai", "togetherai"),
    "xai": ("xai", "xai"),
    "zai": ("zai", "zai"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One number of one model."""

    model: str
    key: str
    before: Any
    after: Any


@dataclass(slots=True)
class Report:
    """What a file says beside what is shipped."""

    changes: list[Change] = field(default_factory=list)
    implausible: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the report as text."""
        for one in self.changes:
            yield f"~ {one.model}: {one.key} {json.dumps(one.before)} -> {json.dumps(one.after)}"
        for mark, names in (("!", self.implausible), ("+", self.new), ("-", self.vanished), ("†", self.ends)):
            yield from (f"{mark} {name}" for name in names)


def refresh(documents: Mapping[str, dict[str, Any]], given: Any, day: str) -> tuple[dict[str, dict[str, Any]], Report]:
    """Return the providers' documents that change, as they would be, and what was found. Raises ValueError."""
    if not isinstance(given, dict):
        raise ValueError("this is not a catalogue: it must be an object")
    kind = 0 if any(isinstance(entry, dict) and "litellm_provider" in entry for entry in given.values()) else 1
    if kind and not any(isinstance(entry, dict) and "models" in entry for entry in given.values()):
        raise ValueError("this is neither LiteLLM's price file nor models.dev's api.json")
    whole = _catalogue(documents)
    report, changed = Report(), {}
    for name, document in documents.items():
        facts = _litellm(given, _KNOWN_AS[name][0]) if kind == 0 else _models_dev(given, _KNOWN_AS[name][1])
        if not facts:
            continue
        changes = _compare(document, facts, whole, report)
        if changes:
            changed[name] = _applied(document, changes, (_LITELLM, _MODELS_DEV)[kind], day)
    return changed, report


# -- reading the two formats -------------------------------------------------------------------------


def _litellm(given: Mapping[str, Any], provider: str) -> dict[str, Facts]:
    return {
        name.removeprefix(f"{provider}/"): _litellm_facts(entry)
        for name, entry in given.items()
        if isinstance(entry, dict) and entry.get("litellm_provider") == provider and entry.get("mode") == "chat"
    }


def _litellm_facts(entry: Mapping[str, Any]) -> Facts:
    facts = {
        "max_output": entry.get("max_output_tokens"),
        "input_price": _million(entry.get("input_cost_per_token")),
        "output_price": _million(entry.get("output_cost_per_token")),
        "cached_input_price": _million(entry.get("cache_read_input_token_cost")),
        "cache_write_price": _million(entry.get("cache_creation_input_token_cost")),
        "end": entry.get("deprecation_date"),
    }
    tiers = []
    for above in (128_000, 200_000, 256_000, 272_000):
        tier = [
            _million(entry.get(f"{what}_cost_per_token_above_{above // 1000}k_tokens")) for what in ("input", "output")
        ]
        if None not in tier:
            tiers.append({"above": above, "input": tier[0], "output": tier[1]})
    return facts | {"price_tiers": tiers or None}


def _million(price: object) -> float | None:
    return round(price * 1e6, 6) if isinstance(price, int | float) else None


def _models_dev(given: Mapping[str, Any], provider: str) -> dict[str, Facts]:
    models = given.get(provider, {}).get("models", {})
    return {name: _models_dev_facts(entry) for name, entry in models.items() if _speaks(entry)}


def _speaks(entry: Mapping[str, Any]) -> bool:
    modalities = entry.get("modalities", {})
    return "text" in modalities.get("input", ()) and modalities.get("output") == ["text"]


def _models_dev_facts(entry: Mapping[str, Any]) -> Facts:
    limit, cost = entry.get("limit", {}), entry.get("cost", {})
    tiers = [
        {"above": tier["tier"]["size"], "input": tier["input"], "output": tier["output"]}
        for tier in cost.get("tiers", ())
        if isinstance(tier.get("tier"), dict) and {"input", "output"} <= tier.keys()
    ]
    over = cost.get("context_over_200k", {})
    if not tiers and {"input", "output"} <= over.keys():
        tiers = [{"above": 200_000, "input": over["input"], "output": over["output"]}]
    return {
        "context_window": limit.get("context"),
        "max_input": limit.get("input"),
        "max_output": limit.get("output"),
        "input_price": cost.get("input"),
        "output_price": cost.get("output"),
        "cached_input_price": cost.get("cache_read"),
        "cache_write_price": cost.get("cache_write"),
        "price_tiers": tiers or None,
        "end": entry.get("retirement_date"),
    }


# -- comparing ---------------------------------------------------------------------------------------


def _compare(document: Mapping[str, Any], facts: Mapping[str, Facts], whole: Catalogue, report: Report) -> list[Change]:
    provider, found = document["name"], []
    tables = model_tables(document)
    upstream = {table.get("upstream_name", name): (name, table) for name, table in tables.items()}
    for called, (name, table) in upstream.items():
        if called not in facts:
            report.vanished.append(name)
            continue
        changes = list(_differences(name, table, facts[called], document.get("kept", ())))
        fault = _fault(name, table | {one.key: one.after for one in changes})
        if fault is not None:
            report.implausible.append(f"{name}: {fault}")
        else:
            found += changes
        end = facts[called].get("end")
        if end and end != table.get("shutdown_date"):
            report.ends.append(f"{name}: {end}")
    report.changes += found
    report.new += [f"{provider}/{called}" for called in facts if _is_new(f"{provider}/{called}", called, whole)]
    return found


def _is_new(name: str, called: str, whole: Catalogue) -> bool:
    """Whether our catalogue has neither the model nor what it is a snapshot of."""
    try:
        return whole.resolve(name).context_window is None
    except ModelNotFound:
        return True


def _differences(name: str, table: Mapping[str, Any], facts: Facts, kept: Sequence[str]) -> Iterator[Change]:
    window = facts.get("context_window") or table.get("context_window")
    for key, value in facts.items():
        if key == "end" or key in kept or not value or table.get(key) == value:
            continue
        if key in ("max_input", "max_output") and value >= window:
            continue  # the window said again
        yield Change(name, key, table.get(key), value)


def _fault(name: str, table: Mapping[str, Any]) -> str | None:
    try:
        model = model_of(name, table, name)
    except InvalidSetting as error:
        return f"{error.path}: {error}"
    window, price = model.context_window or 0, model.input_price
    if max(model.max_output or 0, model.max_input or 0) > window:
        return "a limit beyond the window"
    if price is not None and not (model.cached_input_price or 0) <= price <= (model.output_price or price):
        return "prices out of order"
    return None


def _applied(document: Mapping[str, Any], changes: Sequence[Change], url: str, day: str) -> dict[str, Any]:
    models = {name: dict(own) for name, own in document["models"].items()}
    for one in changes:
        models[one.model][one.key] = one.after
    others = [source for source in document["sources"] if source["url"] != url]
    source = {"url": url, "read": day, "of": "numbers that infra/refresh_catalogue.py brought up to date"}
    return {**document, "sources": [*others, source], "models": models}


def _catalogue(documents: Mapping[str, Mapping[str, Any]]) -> Catalogue:
    tables = {name: table for document in documents.values() for name, table in model_tables(document).items()}
    patterns = [(name, pattern) for name, one in documents.items() for pattern in one["provider"].get("models", ())]
    return Catalogue({name: model_of(name, table, name) for name, table in tables.items()}, patterns)


# -- files -------------------------------------------------------------------------------------------


def render(document: Mapping[str, Any]) -> str:
    """Return a provider's file: JSON with one line a model, so that a change shows as the lines it changes."""
    entries = ",\n".join(f"  {_line(key)}: {_rendered(value)}" for key, value in document.items())
    return f"{{\n{entries}\n}}\n"


def _rendered(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"    {_line(one)}" for one in value) + "\n  ]"
    if isinstance(value, dict) and value and all(isinstance(one, dict) for one in value.values()):
        return "{\n" + ",\n".join(f"    {_line(key)}: {_line(one)}" for key, one in value.items()) + "\n  }"
    return _line(value)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        "refresh_catalogue", description="Compare the shipped catalogue with a public one."
    )
    parser.add_argument("file", type=Path, help="a local copy of models.dev's api.json or of LiteLLM's price file")
    parser.add_argument("--write", action="store_true", help="write what changes")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="the catalogue (default: the shipped one)")
    parser.add_argument("--date", default=datetime.now(UTC).date().isoformat(), help="when the file was read")
    arguments = parser.parse_args(argv)
    documents = {path.stem: json.loads(path.read_bytes()) for path in sorted(arguments.folder.glob("*.json"))}
    try:
        changed, report = refresh(documents, json.loads(arguments.file.read_bytes()), arguments.date)
    except (OSError, ValueError) as error:
        print(f"refresh_catalogue: {arguments.file}: {error}", file=sys.stderr)
        return 2
    print("\n".join(report.lines()) or "nothing to change")
    if arguments.write:
        for name, document in changed.items():
            (arguments.folder / f"{name}.json").write_text(render(document), "utf-8")
    return 1 if changed and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
