"""A model's own name, freed of what providers, gateways and deployments put around it."""

from __future__ import annotations

import re

__all__ = ["base_model"]

_PROVIDERS = {
    *("accounts", "ai21", "alibaba", "amazon", "anthropic", "azure", "azure_ai", "bedrock", "bedrock_converse"),
    *("cerebras", "cohere", "cohereforai", "converse", "dashscope", "deepinfra", "deepseek", "deepseek-ai"),
    *("fireworks", "fireworks_ai", "gemini", "github", "google", "groq", "huggingface", "invoke", "meta", "meta-llama"),
    *("mistral", "mistralai", "models", "moonshot", "moonshotai", "novita", "nvidia", "nvidia_nim", "ollama"),
    *("ollama_chat", "openai", "openrouter", "publishers", "qwen", "together", "together_ai", "togethercomputer"),
    *("unsloth", "vertex", "vertex_ai", "x-ai", "xai", "z-ai", "zai", "zai-org"),
}
"""Folders of a path that say who serves or made a model: OpenRouter, LiteLLM, Hugging Face, the clouds (2026)."""
_BEDROCK = re.compile(
    r"^(?:(?:apac|au|ca|eu|global|jp|us|us-gov)\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|mistral|moonshot|moonshotai|openai|qwen|zai)\.(?=[a-z])"
)
"""What Bedrock puts before a name: the region's group and the maker (its list of model ids, 2026)."""


def base_model(model_name: str) -> str:
    """Return the name without a provider's prefix and a fine-tune's wrapping, in lower case.

    >>> base_model("openai/GPT-4o"), base_model("ft:gpt-4o:acme::abc123"), base_model("acme/gpt-4o")
    ('gpt-4o', 'gpt-4o', 'acme/gpt-4o')
    >>> base_model("us.anthropic.claude-3-5-sonnet-20240620-v1:0")
    'claude-3-5-sonnet-20240620-v1:0'
    """
    name = model_name.strip().lower()
    folders, slash, last = name.rpartition("/")
    if slash and all(folder in _PROVIDERS or folder.startswith("arn:aws:bedrock:") for folder in folders.split("/")):
        name = last
    name = _BEDROCK.sub("", name)
    return name.split(":")[1] if name.startswith("ft:") else name
