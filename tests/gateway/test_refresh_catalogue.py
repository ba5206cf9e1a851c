"""The script that brings the shipped catalogue up to date, on small files of both public formats."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bastion.shipped import FOLDER, model_tables

SCRIPT = Path(__file__).parents[2] / "infra" / "refresh_catalogue.py"


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("refresh_catalogue", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


script = _loaded()

OPENAI: dict[str, Any] = {
    "name": "openai",
    "provider": {"base_url": "https://x/v1", "api_key_env": "K", "models": ["gpt-*"]},
    "sources": [{"url": "https://x/prices", "read": "2026-01-01", "of": "prices"}],
    "shared": {"capabilities": ["tools"]},
    "models": {
        "gpt-a": {"context_window": 1000, "max_output": 100, "input_price": 1.0, "output_price": 2.0},
        "gpt-b": {"context_window": 1000},
    },
}
GROQ: dict[str, Any] = {
    "name": "groq",
    "provider": {"base_url": "https://y/v1", "api_key_env": "K", "models": ["groq/*"]},
    "sources": [],
    "kept": ["input_price"],
    "models": {"groq/m/one": {"upstream_name": "m/one", "context_window": 500, "input_price": 3, "output_price": 4}},
}
LITELLM: dict[str, Any] = {
    "sample_spec": {"mode": "one of"},
    "gpt-a": {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 7,
        "max_output_tokens": 200,
        "input_cost_per_token": 1.5e-06,
        "output_cost_per_token": 2e-06,
        "cache_read_input_token_cost": 1.5e-07,
        "input_cost_per_token_above_200k_tokens": 3e-06,
        "output_cost_per_token_above_200k_tokens": 4e-06,
        "deprecation_date": "2027-01-01",
    },
    "gpt-a-2026-01-01": {"litellm_provider": "openai", "mode": "chat"},
    "gpt-new": {"litellm_provider": "openai", "mode": "chat"},
    "gpt-image": {"litellm_provider": "openai", "mode": "image_generation"},
    "groq/m/one": {"litellm_provider": "groq", "mode": "chat", "input_cost_per_token": 9e-06, "max_output_tokens": 50},
}
MODELS_DEV: dict[str, Any] = {
    "openai": {
        "models": {
            "gpt-b": {
                "modalities": {"input": ["text", "image"], "output": ["text"]},
                "limit": {"context": 2000, "input": 1500, "output": 2000},
                "cost": {"input": 0, "output": 0, "tiers": [{"tier": {"size": 100}, "input": 5, "output": 6}]},
            },
            "gpt-draws": {"modalities": {"input": ["text"], "output": ["image"]}},
        }
    }
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    for document in (OPENAI, GROQ):
        (folder / f"{document['name']}.json").write_text(script.render(document), "utf-8")
    return folder


def run(folder: Path, given: Any, *options: str) -> int:
    path = folder.parent / "given.json"
    path.write_text(given if isinstance(given, str) else json.dumps(given), "utf-8")
    status: int = script.main([str(path), "--folder", str(folder), "--date", "2026-12-24", *options])
    return status


def kept(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_bytes())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_shipped_file_is_written_as_it_stands(path: Path) -> None:
    text = path.read_text("utf-8")
    assert script.render(json.loads(text)) == text


def test_litellm_changes_prices_and_largest_outputs_and_never_a_window(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, LITELLM) == 1
    assert capsys.readouterr().out.splitlines() == [
        "~ groq/m/one: max_output null -> 50",
        "~ gpt-a: max_output 100 -> 200",
        "~ gpt-a: input_price 1.0 -> 1.5",
        "~ gpt-a: cached_input_price null -> 0.15",
        '~ gpt-a: price_tiers null -> [{"above": 200000, "input": 3.0, "output": 4.0}]',
        "+ openai/gpt-new",
        "- gpt-b",
        "† gpt-a: 2027-01-01",
    ]
    assert kept(folder, "openai") == OPENAI
    assert run(folder, LITELLM, "--write") == 0
    assert kept(folder, "openai")["models"]["gpt-a"] == {
        "context_window": 1000,
        "max_output": 200,
        "input_price": 1.5,
        "output_price": 2.0,
        "cached_input_price": 0.15,
        "price_tiers": [{"above": 200000, "input": 3.0, "output": 4.0}],
    }
    assert kept(folder, "groq")["models"]["groq/m/one"]["input_price"] == 3
    for name in ("openai", "groq"):
        assert kept(folder, name)["sources"][-1]["read"] == "2026-12-24"
    assert kept(folder, "openai")["sources"][0] == OPENAI["sources"][0]


def test_what_was_written_is_not_changed_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, LITELLM, "--write")
    before = [path.read_bytes() for path in sorted(folder.iterdir())]
    capsys.readouterr()
    assert run(folder, LITELLM, "--write") == 0
    assert "~" not in capsys.readouterr().out
    assert [path.read_bytes() for path in sorted(folder.iterdir())] == before


def test_models_dev_changes_windows_too_and_a_price_of_nothing_is_unknown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, MODELS_DEV, "--write") == 0
    assert "groq" not in capsys.readouterr().out, "the file says nothing of this provider"
    assert kept(folder, "openai")["models"]["gpt-b"] == {
        "context_window": 2000,
        "max_input": 1500,
        "price_tiers": [{"above": 100, "input": 5, "output": 6}],
    }


def test_what_would_be_implausible_is_shown_and_not_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {"gpt-a": {**LITELLM["gpt-a"], "cache_read_input_token_cost": 9e-06}}
    assert run(folder, wrong, "--write") == 0
    assert "! gpt-a: prices out of order" in capsys.readouterr().out
    assert kept(folder, "openai") == OPENAI


@pytest.mark.parametrize("given", ["{", "{}", "[]", '{"a": 1}'])
def test_a_file_of_another_kind_is_refused(folder: Path, given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, given, "--write") == 2
    assert "refresh_catalogue" in capsys.readouterr().err


def test_every_shipped_provider_is_known_to_the_script() -> None:
    documents = {path.stem: json.loads(path.read_bytes()) for path in FOLDER.glob("*.json")}
    assert documents.keys() == script._KNOWN_AS.keys()
    changed, report = script.refresh(
        documents, {"gpt-4o": {"litellm_provider": "openai", "mode": "chat"}}, "2026-12-24"
    )
    assert not changed
    assert len(report.vanished) == len(model_tables(documents["openai"])) - 1
