"""Token counters of the service: exact for OpenAI's models, by vocabularies that are on this machine."""

from bastion.tokenizers.registry import TOKENIZERS, counter_for

__all__ = ["TOKENIZERS", "counter_for"]
