"""Which counter prices a model's prompts: by the catalogue's tokenizer name, or by the model's own name.

A model that no family knows, and any model whose vocabulary is not on this machine, gets the estimate, which says
so in its profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bastion.tokenizers.encodings import Encoding, LazyEncoding, has_encoding, shared_encoding
from bastion.tokenizers.families import FAMILIES, Family, family_of, first_of
from bastion.tokenizers.names import base_model
from bastion.tokenizers.openai_chat import OpenAIChatCounter
from bastion.tokenizers.scaled import ScaledEncoding
from contextshift.estimate import EstimateCounter
from contextshift.tokens import TokenCounter, TokenizerProfile
from contextshift.words import WordCounter

__all__ = ["FAMILIES", "TOKENIZERS", "VOCABULARY_FOLDERS", "Family", "base_model", "counter_for", "family_of"]

VOCABULARY_FOLDERS = (
    Path("/opt/vocab"),
    Path("/opt"),
    Path(__file__).resolve().parents[3] / "layers" / "vocab",
)
"""Where tiktoken's vocabularies are looked for: the Lambda layer, then a checkout of this repository."""

TOKENIZERS = tuple(sorted({"estimate", "words", *(family.profile for family in FAMILIES)}))
"""The names a catalogue may give."""

_OPENAI = frozenset({"cl100k_base", "o200k_base"})
_BYTES_BOUND = {
    **dict.fromkeys((*_OPENAI, "deepseek_v3", "glm4", "kimi_k2", "llama3", "o200k_harmony", "tekken"), 1.0),
    **dict.fromkeys(("gemma3", "mistral_v1", "mistral_v2"), 1.0),
    "qwen3": 3.0,
}
"""Tokens that a byte makes at the most. Byte-level vocabularies: one. SentencePiece with fallback to bytes: one, and
one more each text, which the JSON around it outweighs. Qwen composes a text first, which makes it up to three times as
long (Unicode's UAX #15 on NFC in UTF-8). Where a family's vocabulary is another's (Gemini, Llama 4), its own is of the
same kind; where it is not public, nothing is proved."""


def counter_for(tokenizer: str | None, model_name: str, folders: Sequence[Path] = VOCABULARY_FOLDERS) -> TokenCounter:
    """Return the counter for a model.

    ``tokenizer`` is one of `TOKENIZERS`, or None to go by ``model_name``. Where neither the fast engine nor a
    vocabulary in one of ``folders`` can count, the counter is the estimate. Cheap: nothing is loaded before it counts.
    Raises ValueError for a tokenizer that is not in `TOKENIZERS`.
    """
    if tokenizer is not None and tokenizer not in TOKENIZERS:
        raise ValueError(f"unknown tokenizer {tokenizer!r}: known are {', '.join(TOKENIZERS)}")
    if tokenizer == "words":
        return WordCounter()
    family = None if tokenizer == "estimate" else _family(tokenizer, model_name)
    if family is None:
        return EstimateCounter()
    profile = tokenizer or family.profile
    vocabulary = profile if profile in _OPENAI else family.vocabulary or profile
    if not has_encoding(vocabulary, folders):
        return EstimateCounter()
    encoding = _encoding(family, shared_encoding(vocabulary, folders))
    bound = None if family.factors else _BYTES_BOUND.get(profile)
    about = TokenizerProfile(profile, family.approximate, family.margin, family.costs.least_margin, bytes_bound=bound)
    if family.factors is None:
        about = replace(about, least_ratio=1 - 2 * family.margin)  # its own kind of vocabulary: near, not far above
    return OpenAIChatCounter(encoding, family.costs, family.images, family.media, about)


def _family(tokenizer: str | None, model_name: str) -> Family | None:
    """Return the model's own family, but where the catalogue names another's tokenizer the first that has it."""
    family = family_of(model_name)
    if tokenizer is None or (family and (family.profile == tokenizer or {family.profile, tokenizer} <= _OPENAI)):
        return family
    return first_of(tokenizer)


def _encoding(family: Family, base: LazyEncoding) -> Encoding:
    factors = family.factors
    if factors is None:
        return base
    return LazyEncoding(family.profile, lambda: ScaledEncoding(family.profile, base, factors))
