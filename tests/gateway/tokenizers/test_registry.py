"""Which counter a model gets, and what happens where its vocabulary is not on the machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bastion.tokenizers import encodings
from bastion.tokenizers.registry import FAMILIES, TOKENIZERS, Family, base_model, counter_for, family_of
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
        ("claude-2.1", "claude"),
        ("claude-3-5-sonnet-20240620", "claude"),
        ("claude-sonnet-4-6", "claude"),
        ("claude-opus-4-20250514", "claude"),
        ("claude-opus-4-8", "claude_4_7"),
        ("claude-opus-5", "claude_4_7"),
        ("anthropic/claude-4.5-sonnet-20250929", "claude"),
        ("anthropic/claude-3.7-sonnet:thinking", "claude"),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", "claude"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude"),
        ("arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-opus-4-8-v1:0", "claude_4_7"),
        ("vertex_ai/claude-haiku-4-5@20251001", "claude"),
        ("gpt-oss-120b", "o200k_harmony"),
        ("openai/gpt-oss-20b", "o200k_harmony"),
        ("openai.gpt-oss-120b-1:0", "o200k_harmony"),
        ("azure/gpt-4o", "o200k_base"),
        ("openai.gpt-5.5", "o200k_base"),
        ("llama3-8b-8192", "llama3"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3"),
        ("meta.llama3-1-8b-instruct-v1:0", "llama3"),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", "llama3"),
        ("groq/meta-llama/llama-4-scout-17b-16e-instruct", "llama3"),
        ("deepseek-r1-distill-llama-70b", "llama3"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mistral_v1"),
        ("mistral.mistral-large-2407-v1:0", "mistral_v2"),
        ("mistral-large@2411", "mistral_v2"),
        ("mistral-large-2512", "tekken"),
        ("mistral-large-latest", "tekken"),
        ("pixtral-large-latest", "mistral_v2"),
        ("pixtral-12b-2409", "tekken"),
        ("mistral-small-2409", "mistral_v2"),
        ("mistral", "mistral_v2"),
        ("mistral:7b", "mistral_v2"),
        ("mixtral", "mistral_v1"),
        ("mixtral:8x22b", "mistral_v2"),
        ("deepseek-r1:671b", "deepseek_v3"),
        ("deepseek-r1:8b", "qwen3"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3"),
        ("deepseek-r1:70b", "llama3"),
        ("deepseek-coder:6.7b", "estimate"),
        ("deepseek-v2.5", "estimate"),
        ("moonshotai/kimi-dev-72b", "qwen3"),
        ("gemma", "gemma3"),
        ("gemma:2b", "gemma3"),
        ("llama-30b", "estimate"),
        ("magistral-small-latest", "tekken"),
        ("qwen/qwen3-30b-a3b-instruct-2507", "qwen3"),
        ("qwen.qwen3-32b-v1:0", "qwen3"),
        ("qwen3:0.6b", "qwen3"),
        ("deepseek-ai/DeepSeek-R1", "deepseek_v3"),
        ("us.deepseek.r1-v1:0", "deepseek_v3"),
        ("google/gemini-2.5-flash", "gemma3"),
        ("gemma-3-27b-it", "gemma3"),
        ("z-ai/glm-4.6", "glm4"),
        ("zai-glm-4.7", "glm4"),
        ("moonshotai/kimi-k2", "kimi_k2"),
        ("command-r-plus", "cohere"),
        ("cohere.command-r-v1:0", "cohere"),
        ("us.amazon.nova-micro-v1:0", "nova"),
        ("x-ai/grok-4", "grok"),
        ("palmyra-x4", "estimate"),
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
    assert count({"role": "user", "content": "Hello, world! 你好"}) > 0
    if profile in ("o200k_base", "cl100k_base", "o200k_harmony"):
        assert not count.profile.approximate
    if "gemma" in model and "gemma-3" not in model:
        assert count.profile.approximate
    if profile in ("estimate", "claude", "claude_4_7", "cohere", "nova", "grok"):
        assert count.profile.approximate


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_a_tokenizer_named_by_the_catalogue_is_taken(tokenizer: str) -> None:
    assert counter_for(tokenizer, "acme-large", [VOCABULARIES]).profile.name == tokenizer
    assert counter_for(tokenizer, "gpt-4o", [VOCABULARIES]).profile.name == tokenizer


def test_a_named_tokenizer_keeps_the_models_own_overhead() -> None:
    assert counter_for("o200k_base", "gpt-5", [VOCABULARIES]).fixed({}) == 2
    assert counter_for("o200k_base", "acme-large", [VOCABULARIES]).fixed({}) == 3


@pytest.mark.parametrize("tokenizer", ["", "o200k", "WORDS", "p50k_base"])
def test_an_unknown_tokenizer_is_refused_with_the_known_ones_named(tokenizer: str) -> None:
    with pytest.raises(ValueError, match=r"known are cl100k_base, claude, .*estimate, .*o200k_base, .*words"):
        counter_for(tokenizer, "gpt-4o")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.prefix)
def test_no_family_hides_behind_another_and_each_says_where_its_numbers_are_from(family: Family) -> None:
    assert [family_of(prefix) for prefix in family.prefixes] == [family] * len(family.prefixes)
    assert family.source
    assert "20" in family.source
    assert family.profile in TOKENIZERS


def test_a_named_tokenizer_of_another_family_brings_that_familys_overhead() -> None:
    message = {"role": "user", "content": "hello"}
    for tokenizer in ("qwen3", "claude", "llama3"):
        theirs, named = counter_for(tokenizer, "acme-large"), counter_for(tokenizer, "gpt-5")
        assert (theirs(message), theirs.fixed({})) == (named(message), named.fixed({}))


def test_base_names_are_stable() -> None:
    for name in ("gpt-4o", "openai/gpt-4o", "ft:gpt-4o:acme::x", "acme/x", ""):
        assert base_model(base_model(name)) == base_model(name)


@pytest.mark.parametrize(("tokenizer", "model"), [(None, "gpt-4o"), ("o200k_base", "gpt-4o"), ("cl100k_base", "x")])
def test_without_any_engine_a_model_is_estimated_and_says_so(
    tmp_path: Path, tokenizer: str | None, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodings, "_fast_is_there", lambda: False)
    profile = counter_for(tokenizer, model, [tmp_path]).profile
    assert (profile.name, profile.approximate) == ("estimate", True)


def test_without_the_fast_engine_tiktoken_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "splintr", None)
    monkeypatch.delitem(sys.modules, "bastion.tokenizers.splintr_engine", raising=False)
    made = encodings._make("cl100k_base", (VOCABULARIES,))
    assert made.count("hello world") == 2
    with pytest.raises(ImportError):
        encodings._make("llama3", (VOCABULARIES,))


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
assert not {"tiktoken", "splintr"} & set(sys.modules)
count = counter_for(None, "gpt-4o", [Path(sys.argv[1])])
assert not {"tiktoken", "splintr"} & set(sys.modules)
print(json.dumps([count.profile.name, count.profile.approximate, count({"role": "user", "content": "hello world"})]))
"""


@pytest.mark.parametrize(("there", "expected"), [(True, ["o200k_base", False, 6]), (False, ["o200k_base", False, 6])])
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
