"""Families of models whose prompts are counted alike, as data: by which names, with which vocabulary, at which costs.

The longest prefix that begins a model's name decides (`family_of`). A record is *approximate* where its vocabulary
is not public. Every number says where it is from; "recordings" are public test recordings of requests with the usage
that the provider reported for them, "template" is the chat template that the model's maker publishes with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from bastion.tokenizers.costs import CLASSIC, GPT5, REASONING, ChatCosts
from bastion.tokenizers.images import (
    CLAUDE,
    CLAUDE_HIGH,
    GEMINI_2,
    GEMINI_3,
    GPT_4O,
    GPT_4O_MINI,
    GPT_5,
    GPT_5_MINI,
    GPT_5_NANO,
    O4_MINI,
    O_SERIES,
    UNKNOWN,
    ImageRule,
    PatchRule,
)
from bastion.tokenizers.media import (
    CLAUDE_HIGH_MEDIA,
    CLAUDE_MEDIA,
    GEMINI_2_MEDIA,
    GEMINI_3_MEDIA,
    OPENAI_MEDIA,
    UNKNOWN_MEDIA,
    MediaRule,
)
from bastion.tokenizers.names import base_model
from bastion.tokenizers.scaled import Factors

__all__ = ["FAMILIES", "Family", "family_of", "first_of"]


@dataclass(frozen=True, slots=True)
class Family:
    """Models whose names begin alike and whose prompts are counted alike."""

    prefix: str
    """The family's own: a name that begins so belongs to it, unless another's longer prefix begins it too."""
    profile: str
    """The name of the tokenizer, as a catalogue may give it and previews show it."""
    costs: ChatCosts
    images: ImageRule
    media: MediaRule = UNKNOWN_MEDIA
    vocabulary: str = ""
    """By splintr's name; the profile's own where empty."""
    others: tuple[str, ...] = ()
    """More prefixes."""
    factors: Factors | None = None
    """Over the vocabulary's counts, where it is another family's."""
    margin: float = 0.0
    source: str = ""
    """Of the format's costs, and when they were measured or read."""

    @property
    def approximate(self) -> bool:
        """Whether the vocabulary is not the model's own, or a guess."""
        return self.factors is not None or self.margin > 0

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Every prefix."""
        return (self.prefix, *self.others)


# -- OpenAI ------------------------------------------------------------------------------------------------
# Encodings as in `tiktoken/model.py` (0.14.0, 2026). Images as in OpenAI's vision guide (2026), or, for gpt-5 and its
# like, the larger of what the guide says and what users measured.

_OPENAI = "cookbook (commit c81359c) and 119 recordings of chat completions, 2026-11"


def _openai(prefix: str, costs: ChatCosts, images: ImageRule, *others: str, profile: str = "o200k_base") -> Family:
    media = replace(OPENAI_MEDIA, pictures=images)
    return Family(prefix, profile, costs, images, media, others=others, source=_OPENAI)


_OPENAI_FAMILIES = (
    _openai("gpt-4o", CLASSIC, GPT_4O, "chatgpt-", "gpt-4.5"),
    _openai("gpt-4o-mini", CLASSIC, GPT_4O_MINI),
    _openai("gpt-4.1", CLASSIC, GPT_4O),
    _openai("gpt-4.1-mini", CLASSIC, PatchRule(1.62)),
    _openai("gpt-4.1-nano", CLASSIC, PatchRule(2.46)),
    _openai("gpt-5", GPT5, GPT_5),
    _openai("gpt-5-chat", CLASSIC, GPT_5),
    _openai("gpt-5-mini", GPT5, GPT_5_MINI),
    _openai("gpt-5-nano", GPT5, GPT_5_NANO),
    _openai("gpt-5.", GPT5, PatchRule(1.62, 2_500, 10_000)),
    _openai("gpt-5.1", GPT5, GPT_5),
    _openai("o1", REASONING, O_SERIES, "o3", "o4"),
    _openai("o4-mini", REASONING, O4_MINI),
    _openai("gpt-4", CLASSIC, GPT_4O, "gpt-3.5", "gpt-35", "text-embedding-", profile="cl100k_base"),
)

# -- public vocabularies -----------------------------------------------------------------------------------
# `least_margin` is half as much again as what recordings of one family differ by where the messages are the same or
# nothing of the request tells (2026-11): 12 tokens of one host's Llama 3.3 and of Mistral's prompt by default, 4 for
# gpt-oss's and GLM's effort and Qwen's thinking switched off, 4 between Gemini's versions, 2 of DeepSeek's thoughts,
# 29 of Claude's thinking, which a host may switch on. Without recordings that differ, as most.

_HARMONY = ChatCosts(
    priming=63, call=12, frames={"system": 7, "developer": 7}, effort=4, no_effort=4, tools=40, tools_after_system=40,
    undescribed=0, reads_all=True, response_format=52, json_object=28, least_margin=6,
)  # fmt: skip
_LLAMA3 = ChatCosts(
    priming=5,
    call=12,
    frame=4,
    tool_rule="whole",
    tools=110,
    tool=32,
    response_format=32,
    least_margin=18,
)
_LLAMA31 = replace(_LLAMA3, priming=25, no_system=5)
_LLAMA4 = replace(_LLAMA3, tools=645, tool=0)
_TEKKEN = ChatCosts(
    priming=1, call=12, frames={"assistant": 1}, frame=2, named_roles=False, tool_rule="whole", tools=4,
    response_format=32, least_margin=18,
)  # fmt: skip
_QWEN3 = ChatCosts(
    priming=3, call=20, frame=4, no_effort=4, tool_rule="whole", tools=105, tool=2, response_format=84, least_margin=6
)
_DEEPSEEK = ChatCosts(
    priming=2, call=20, frame=1, frames={"system": 0, "assistant": 2}, named_roles=False, tool_rule="whole",
    tools=130, tool=2, response_format=32, least_margin=3,
)  # fmt: skip
_GLM4 = ChatCosts(
    priming=2,
    call=20,
    named_roles=False,
    effort=4,
    tool_rule="whole",
    tools=150,
    tool=2,
    response_format=32,
    least_margin=6,
)
_KIMI = ChatCosts(priming=3, call=20, no_system=16, tool_rule="whole", tools=8, response_format=32, least_margin=6)
_GEMMA3 = ChatCosts(priming=4, call=20, frame=4, tool_rule="whole", tools=32, response_format=32, least_margin=6)
_GEMINI = ChatCosts(
    priming=0, call=8, frame=1, named_roles=False, tool_rule="whole", tools=0, response_format=0, least_margin=6
)

_PUBLIC = (
    Family("gpt-oss", "o200k_harmony", _HARMONY, UNKNOWN, vocabulary="o200k_base",
           source="openai-harmony's rendering; 13 recordings of four hosts, 2026-11"),
    Family("llama-3", "llama3", _LLAMA3, UNKNOWN, others=("llama3", "llama-v3", "meta-llama-3"),
           source="template (Meta-Llama-3-8B-Instruct); 1 recording, 2026-11"),
    Family("llama-3.1", "llama3", _LLAMA31, UNKNOWN,
           others=("llama-3.2", "llama-3.3", "llama3.1", "llama3.2", "llama3.3", "llama-3-1", "llama-3-2", "llama-3-3",
                   "llama3-1", "llama3-2", "llama3-3", "llama-v3p", "meta-llama-3.1", "meta-llama-3.2",
                   "meta-llama-3.3", "meta-llama-3-1"),
           source="template (Llama-3.1, with its date header); 6 recordings of five hosts, 2026-11"),
    Family("deepseek-r1-distill-llama", "llama3", _DEEPSEEK, UNKNOWN,
           others=("deepseek-r1:70b", "deepseek-r1:8b-llama"),
           source="DeepSeek's template over Llama 3's vocabulary; 2 recordings, 2026-11"),
    Family("llama-4", "llama3", _LLAMA4, UNKNOWN, others=("llama4",), margin=0.02,
           source="its vocabulary of 200,000 is larger than Llama 3's, whose is taken; tools as one host adds them, "
                  "8 recordings, 2026-11"),
    Family("mistral-", "tekken", _TEKKEN, UNKNOWN, vocabulary="mistral_v3",
           others=("ministral", "pixtral", "magistral", "devstral", "voxtral", "open-mistral-nemo", "mistral-nemo"),
           source="template (Tekken, v3-v13); 6 recordings, 2026-11"),
    Family("mistral-small", "tekken", replace(_TEKKEN, priming=13), UNKNOWN, vocabulary="mistral_v3",
           others=("magistral-small",), source="as Mistral's, with a system prompt by default; 3 recordings, 2026-11"),
    Family("mixtral-8x7b", "mistral_v1", replace(_TEKKEN, frame=8), UNKNOWN,
           others=("mixtral:", "mistral-7b", "open-mistral-7b", "open-mixtral-8x7b"),
           source="template; 1 recording, 2026-11"),
    Family("mixtral-8x22b", "mistral_v2", _TEKKEN, UNKNOWN,
           others=("open-mixtral-8x22b", "mixtral:8x22b", "mistral-7b-instruct-v0.3", "mistral-7b-v0.3", "mistral:",
                   "mistral-large-2402", "mistral-large@2402", "mistral-large-2407", "mistral-large@2407",
                   "mistral-large-2411", "mistral-large@2411", "pixtral-large", "mistral-medium-2312",
                   "mistral-small-2312", "mistral-small-2402", "mistral-small@2402", "mistral-small-2409",
                   "mistral-small@2409", "mistral-small:22b", "mistral-tiny", "mathstral", "codestral-22b",
                   "codestral:22b", "codestral-2405", "codestral@2405"),
           source="template; which model has it by mistral-common's list of its tokenizers (1.8), 2026-12"),
    Family("qwen", "qwen3", _QWEN3, UNKNOWN,
           others=("qwq", "qvq", "deepseek-r1-distill-qwen", "deepseek-r1-0528-qwen", "deepseek-r1:1.5b",
                   "deepseek-r1:7b", "deepseek-r1:8b", "deepseek-r1:14b", "deepseek-r1:32b", "kimi-dev-72b"),
           source="template (Qwen3-32B); 8 recordings of six hosts, 2026-11"),
    Family("qwen3-coder", "qwen3", replace(_QWEN3, tools=235), UNKNOWN, others=("qwen-3-coder",),
           source="as Qwen's, tools as XML; 2 recordings, 2026-11"),
    Family("deepseek", "deepseek_v3", _DEEPSEEK, UNKNOWN, others=("v3-v1",),
           source="template (V3); 4 recordings, 2026-11"),
    Family("deepseek-r", "deepseek_v3", replace(_DEEPSEEK, priming=4), UNKNOWN,
           others=("deepseek-v3.1", "r1-v1"),
           source="as V3's, with the beginning of its thoughts; 7 recordings of three hosts, 2026-11"),
    Family("deepseek-v4", "deepseek_v3", replace(_DEEPSEEK, priming=82, tools=210), UNKNOWN,
           source="5 recordings; its vocabulary counts as V3's, 2026-11"),
    Family("glm-4", "glm4", _GLM4, UNKNOWN, others=("glm4", "zai-glm-4"),
           source="template (GLM-4.5); 6 recordings of three hosts, 2026-11"),
    Family("glm", "glm4", replace(_GLM4, priming=9, effort=0), UNKNOWN, others=("zai-glm",),
           source="4 recordings of GLM 5 on two hosts, 2026-11"),
    Family("kimi", "kimi_k2", _KIMI, UNKNOWN, others=("moonshot",), source="template (Kimi-K2-Instruct), 2026-11"),
    Family("gemma-", "gemma3", _GEMMA3, GEMINI_2, GEMINI_2_MEDIA, others=("gemma3", "gemma4"),
           source="template (gemma-3-27b-it), 2026-11"),
    Family("gemma-2", "gemma3", _GEMMA3, GEMINI_2, GEMINI_2_MEDIA, margin=0.05,
           others=("gemma2", "gemma-1", "gemma-7b", "gemma-2b", "gemma:", "codegemma", "shieldgemma"),
           source="as Gemma 3's, whose vocabulary is its successor (model cards); the margin is guessed, 2026-12"),
)  # fmt: skip

# -- vocabularies that are not public ----------------------------------------------------------------------

_CLAUDE = ChatCosts(
    priming=3, call=20, frame=4, frames={"system": 0, "developer": 0}, named_roles=False, effort=29, no_effort=29,
    tool_rule="declaration", tools=605, tool=16, response_format=605, least_margin=44,
)  # fmt: skip
_CLAUDE_47 = replace(_CLAUDE, priming=8, frame=3)
_CLAUDE_FACTORS = Factors(ascii=1.6, latin=1.9, east=2.0, alphabets=2.5, rest=4.7)
_CLAUDE_47_FACTORS = Factors(ascii=2.4, latin=2.4, east=2.05, alphabets=2.5, rest=4.7)
_NOVA = ChatCosts(priming=2, call=20, frame=2, named_roles=False, tool_rule="whole", tools=300, response_format=32)
_COHERE = ChatCosts(priming=66, call=20, frame=3, named_roles=False, tool_rule="whole", tools=300, response_format=32)
_GROK = ChatCosts(priming=690, call=20, frame=4, named_roles=False, tool_rule="whole", tools=300, response_format=32)
_CLAUDE_SOURCE = "84 recordings, tools with the longest hidden prompt of them, 2026-11"

_CLOSED = (
    Family("gemini", "gemma3", _GEMINI, GEMINI_2, GEMINI_2_MEDIA, margin=0.02,
           others=("learnlm",), source="Gemma 3's vocabulary, within 3 on 42 recordings, never under, 2026-11"),
    Family("gemini-1", "gemma3", replace(_GEMINI, priming=1, frame=0), GEMINI_2, GEMINI_2_MEDIA, margin=0.02,
           others=("gemini-2.0",), source="as Gemini's without a token a message; 7 recordings, 2026-11"),
    Family("gemini-3", "gemma3", _GEMINI, GEMINI_3, GEMINI_3_MEDIA, margin=0.02, source="2 recordings, 2026-11"),
    Family("claude", "claude_4_7", _CLAUDE_47, CLAUDE_HIGH, CLAUDE_HIGH_MEDIA, vocabulary="o200k_base",
           factors=_CLAUDE_47_FACTORS, source=_CLAUDE_SOURCE,
           others=tuple(f"claude-{name}" for name in (
               "4.7", "4.8", "4.9", "4-7", "4-8", "4-9", "opus-4-7", "opus-4-8", "opus-4-9", "opus-4.7", "opus-4.8",
               "opus-4.9", "sonnet-4-7", "sonnet-4-8", "sonnet-4-9", "sonnet-4.7", "sonnet-4.8", "sonnet-4.9",
               "haiku-4-7", "haiku-4-8", "haiku-4-9", "haiku-4.7", "haiku-4.8", "haiku-4.9"))),
    Family("claude-3", "claude", _CLAUDE, CLAUDE, CLAUDE_MEDIA, vocabulary="o200k_base",
           factors=_CLAUDE_FACTORS, source=_CLAUDE_SOURCE,
           others=("claude-2", "claude-instant", "claude-v2", "claude-4", "claude-opus-4", "claude-sonnet-4",
                   "claude-haiku-4", "claude-opus-3", "claude-sonnet-3", "claude-haiku-3")),
    Family("command", "cohere", _COHERE, UNKNOWN, vocabulary="o200k_base", factors=_CLAUDE_FACTORS, others=("c4ai-",),
           source="3 recordings; 1.34 of o200k in one of English, so Claude's factors are taken, 2026-11"),
    Family("command-r7b", "cohere", replace(_COHERE, priming=530), UNKNOWN, vocabulary="o200k_base",
           factors=_CLAUDE_FACTORS, source="its hidden preamble: 495-529 on 2 recordings, 2026-11"),
    Family("nova-", "nova", _NOVA, UNKNOWN, vocabulary="o200k_base", others=("titan-", "amazon-nova"),
           factors=Factors(1.7, 1.8, 2.0, 3.0, 4.7, byte_bound=1.0),
           source="6 recordings of short prompts count as o200k; factors as of public families, 2026-11"),
    Family("grok", "grok", _GROK, UNKNOWN, vocabulary="o200k_base", factors=_CLAUDE_FACTORS,
           source="its hidden preamble: 684 on 1 recording, 2026-11"),
)  # fmt: skip

FAMILIES = (*_OPENAI_FAMILIES, *_PUBLIC, *_CLOSED)

_BY_PREFIX = dict(
    sorted(((prefix, family) for family in FAMILIES for prefix in family.prefixes), key=lambda pair: -len(pair[0]))
)
_STRANGERS = ("deepseek-coder", "deepseek-llm", "deepseek-moe", "deepseek-v2", "deepseek-vl", "deepseek-math",
              "deepseek-prover-v1", "deepseek-ocr")  # fmt: skip
"""Names that begin as a family's whose vocabulary they do not have: DeepSeek's before V3 have their own (their
repositories' ``tokenizer.json``), and nobody counts for those."""
_FIRST = {family.profile: family for family in reversed(FAMILIES)}
_ENDS = frozenset("-.:@")
_SHORT = 2
"""A prefix as short as ``o1`` begins other people's names: it counts where a mark or nothing follows it."""


@lru_cache(maxsize=1_024)
def family_of(model_name: str) -> Family | None:
    """Return the family of a model's name, None for one that nobody knows.

    >>> family_of("ft:gpt-4o-mini-2024-07-18:acme::abc123").prefix
    'gpt-4o-mini'
    >>> family_of("openrouter/meta-llama/Llama-3.3-70B-Instruct").profile
    'llama3'
    """
    name = base_model(model_name)
    if name.startswith(_STRANGERS):
        return None
    return next((family for prefix, family in _BY_PREFIX.items() if _begins(prefix, name)), None)


def first_of(profile: str) -> Family | None:
    """Return the family that stands for a tokenizer's name where the model's own says nothing."""
    return _FIRST.get(profile)


def _begins(prefix: str, name: str) -> bool:
    if prefix == f"{name}:":
        return True  # without a tag: what such a line began with
    rest = name[len(prefix) :]
    if not name.startswith(prefix) or (prefix[-1].isdigit() and rest[:1].isdigit()):
        return False  # another number: llama-30b is no llama-3
    return len(prefix) > _SHORT or not rest or rest[0] in _ENDS
