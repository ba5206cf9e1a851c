"""Which counter a model gets, and what happens where its vocabulary is not on the machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bastion.tokenizers.registry import FAMILIES, TOKENIZERS, base_model, counter_for, family_of
from contextshift.tokens import TokenCounter
from gateway.tokenizers.oracle import VOCABULARIES

ROOT = VOCABULARIES.parents[1]


@pytest.mark.parametrize(
    ("model", "profile"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("GPT-4o", "o200k_base"),
        ("gpt-4.1-nano", "o200k_base"),
        ("gpt-4.5-preview", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("gpt-5.2-pro", "o200k_base"),
        ("o1", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("o4-mini-2025-04-16", "o200k_base"),
        ("chatgpt-4o-latest", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-turbo-2024-04-09", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("gpt-35-turbo", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("openai/gpt-4o", "o200k_base"),
        ("openrouter/openai/gpt-4", "cl100k_base"),
        ("ft:gpt-4o-mini-2024-07-18:acme:name:abc123", "o200k_base"),
        ("ft:gpt-3.5-turbo:acme::abc123", "cl100k_base"),
        ("claude-sonnet-4-6", "estimate"),
        ("gpt-oss-120b", "estimate"),
        ("openai/gpt-oss-20b", "estimate"),
        ("acme/gpt-4o", "estimate"),
        ("o1js", "estimate"),
        ("ft:", "estimate"),
        ("", "estimate"),
        ("模型", "estimate"),
    ],
)
def test_a_model_is_known_by_its_name(model: str, profile: str) -> None:
    count = counter_for(None, model, [VOCABULARIES])
    assert isinstance(count, TokenCounter)
    assert count.profile.name == profile
    assert count.profile.approximate == (profile == "estimate")


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_a_tokenizer_named_by_the_catalogue_is_taken(tokenizer: str) -> None:
    assert counter_for(tokenizer, "acme-large", [VOCABULARIES]).profile.name == tokenizer
    assert counter_for(tokenizer, "gpt-4o", [VOCABULARIES]).profile.name == tokenizer


def test_a_named_tokenizer_keeps_the_models_own_overhead() -> None:
    assert counter_for("o200k_base", "gpt-5", [VOCABULARIES]).fixed({}) == 2
    assert counter_for("o200k_base", "acme-large", [VOCABULARIES]).fixed({}) == 3


@pytest.mark.parametrize("tokenizer", ["", "o200k", "WORDS", "p50k_base"])
def test_an_unknown_tokenizer_is_refused_with_the_known_ones_named(tokenizer: str) -> None:
    with pytest.raises(ValueError, match="cl100k_base, estimate, o200k_base, words"):
        counter_for(tokenizer, "gpt-4o")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.prefix)
def test_no_family_hides_behind_a_shorter_prefix(family: object) -> None:
    assert family_of(family.prefix) is family  # type: ignore[attr-defined]


def test_base_names_are_stable() -> None:
    for name in ("gpt-4o", "openai/gpt-4o", "ft:gpt-4o:acme::x", "acme/x", ""):
        assert base_model(base_model(name)) == base_model(name)


@pytest.mark.parametrize(("tokenizer", "model"), [(None, "gpt-4o"), ("o200k_base", "gpt-4o"), ("cl100k_base", "x")])
def test_without_its_vocabulary_a_model_is_estimated_and_says_so(
    tmp_path: Path, tokenizer: str | None, model: str
) -> None:
    profile = counter_for(tokenizer, model, [tmp_path]).profile
    assert (profile.name, profile.approximate) == ("estimate", True)


IN_A_BOX = """
import json, sys
from pathlib import Path

def forbid(event, arguments):
    if event.startswith("socket.") or event in ("os.mkdir", "os.remove", "os.rename", "subprocess.Popen"):
        raise PermissionError(event)
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise PermissionError(f"{arguments[0]} opened for writing")

sys.addaudithook(forbid)
from bastion.tokenizers import counter_for
assert "tiktoken" not in sys.modules
count = counter_for(None, "gpt-4o", [Path(sys.argv[1])])
assert "tiktoken" not in sys.modules
print(json.dumps([count.profile.name, count.profile.approximate, count({"role": "user", "content": "hello world"})]))
"""


@pytest.mark.parametrize(("there", "expected"), [(True, ["o200k_base", False, 6]), (False, ["estimate", True])])
def test_counting_touches_neither_the_network_nor_the_disk(there: bool, expected: list[object], tmp_path: Path) -> None:
    folder = VOCABULARIES if there else tmp_path
    paths = [str(ROOT / "layers" / "core"), str(ROOT / "functions")]
    program = f"import sys; sys.path[:0] = {paths!r}\n{IN_A_BOX}"
    ran = subprocess.run(
        [sys.executable, "-B", "-c", program, str(folder)], capture_output=True, text=True, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)[: len(expected)] == expected
    assert list(tmp_path.iterdir()) == []
