"""Which counter prices a model's prompts: by the catalogue's tokenizer name, or by the model's own name.

The table `FAMILIES` is data, read top down, and the first prefix that matches wins. A model it does not
know, and any model whose vocabulary is not on this machine, gets the estimate, which says so in its profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bastion.tokenizers.encodings import shared_encoding
from bastion.tokenizers.openai_chat import (
    CLASSIC,
    GPT5,
    REASONING,
    ChatCosts,
    ImageRule,
    OpenAIChatCounter,
    PatchRule,
    TileRule,
)
from bastion.tokenizers.vocab import VOCABULARIES, find
from contextshift.estimate import EstimateCounter
from contextshift.tokens import TokenCounter
from contextshift.words import WordCounter

__all__ = ["FAMILIES", "TOKENIZERS", "VOCABULARY_FOLDERS", "Family", "base_model", "counter_for", "family_of"]

VOCABULARY_FOLDERS = (
    Path("/opt/vocab"),
    Path("/opt"),
    Path(__file__).resolve().parents[3] / "layers" / "vocab",
)
"""Where the vocabularies are looked for: the Lambda layer, then a checkout of this repository."""


@dataclass(frozen=True, slots=True)
class Family:
    """Models whose names begin alike and whose prompts are counted alike."""

    prefix: str
    encoding: str
    costs: ChatCosts
    images: ImageRule


_O200K, _CL100K = "o200k_base", "cl100k_base"

FAMILIES = (
    Family("gpt-5-nano", _O200K, GPT5, PatchRule(2.46)),
    Family("gpt-5-mini", _O200K, GPT5, PatchRule(1.62)),
    Family("gpt-5-chat", _O200K, CLASSIC, TileRule(70, 140)),
    Family("gpt-5.1", _O200K, GPT5, TileRule(70, 140)),
    Family("gpt-5.", _O200K, GPT5, PatchRule(1.62, 2_500, 10_000)),
    Family("gpt-5", _O200K, GPT5, TileRule(70, 140)),
    Family("o1", _O200K, REASONING, TileRule(75, 150)),
    Family("o3", _O200K, REASONING, TileRule(75, 150)),
    Family("o4-mini", _O200K, REASONING, PatchRule(1.72)),
    Family("o4", _O200K, REASONING, TileRule(75, 150)),
    Family("gpt-4o-mini", _O200K, CLASSIC, TileRule(2833, 5667)),
    Family("gpt-4o", _O200K, CLASSIC, TileRule(85, 170)),
    Family("chatgpt-", _O200K, CLASSIC, TileRule(85, 170)),
    Family("gpt-4.1-nano", _O200K, CLASSIC, PatchRule(2.46)),
    Family("gpt-4.1-mini", _O200K, CLASSIC, PatchRule(1.62)),
    Family("gpt-4.1", _O200K, CLASSIC, TileRule(85, 170)),
    Family("gpt-4.5", _O200K, CLASSIC, TileRule(85, 170)),
    Family("gpt-4", _CL100K, CLASSIC, TileRule(85, 170)),
    Family("gpt-3.5", _CL100K, CLASSIC, TileRule(85, 170)),
    Family("gpt-35", _CL100K, CLASSIC, TileRule(85, 170)),
    Family("text-embedding-", _CL100K, CLASSIC, TileRule(85, 170)),
)
"""By prefix: encodings as in `tiktoken/model.py` (0.14.0), image rules as in OpenAI's vision guide (2026) or, for
gpt-5 and its like, the larger of what the guide says and what users measured; the first match counts."""

TOKENIZERS = ("cl100k_base", "estimate", "o200k_base", "words")
"""The names a catalogue may give."""

_PROVIDERS = frozenset({"azure", "azure_ai", "github", "openai", "openrouter"})
_ENDS = frozenset("-.:@")


def counter_for(tokenizer: str | None, model_name: str, folders: Sequence[Path] = VOCABULARY_FOLDERS) -> TokenCounter:
    """Return the counter for a model.

    ``tokenizer`` is one of `TOKENIZERS`, or None to go by ``model_name``. Where the vocabulary is in none of
    ``folders``, the counter is the estimate. Cheap: a vocabulary is read when it first counts.
    Raises ValueError for a tokenizer that is not in `TOKENIZERS`.
    """
    if tokenizer is not None and tokenizer not in TOKENIZERS:
        raise ValueError(f"unknown tokenizer {tokenizer!r}: known are {', '.join(TOKENIZERS)}")
    if tokenizer == "words":
        return WordCounter()
    family = family_of(model_name)
    encoding = tokenizer or (family.encoding if family else "estimate")
    if encoding not in VOCABULARIES or find(encoding, folders) is None:
        return EstimateCounter()
    if family is None:
        return OpenAIChatCounter(shared_encoding(encoding, folders))
    return OpenAIChatCounter(shared_encoding(encoding, folders), family.costs, family.images)


def family_of(model_name: str) -> Family | None:
    """Return the family of a model's name, None for one that is not OpenAI's.

    >>> family_of("ft:gpt-4o-mini-2024-07-18:acme::abc123").prefix
    'gpt-4o-mini'
    """
    name = base_model(model_name)
    return next((family for family in FAMILIES if _matches(name, family.prefix)), None)


def base_model(model_name: str) -> str:
    """Return the name without a provider's prefix and a fine-tune's wrapping, in lower case.

    >>> base_model("openai/GPT-4o"), base_model("ft:gpt-4o:acme::abc123"), base_model("acme/gpt-4o")
    ('gpt-4o', 'gpt-4o', 'acme/gpt-4o')
    """
    name = model_name.strip().lower()
    providers, slash, last = name.rpartition("/")
    if slash and set(providers.split("/")) <= _PROVIDERS:
        name = last
    return name.split(":")[1] if name.startswith("ft:") else name


def _matches(name: str, prefix: str) -> bool:
    # "o1" is short enough to begin other people's names; "gpt-4" is not.
    if not name.startswith(prefix):
        return False
    rest = name[len(prefix) :]
    return not prefix.startswith("o") or not rest or rest[0] in _ENDS
