"""Token counters of the service: exact where a family's vocabulary is public, by what is on this machine."""

from bastion.tokenizers.registry import TOKENIZERS, counter_for

__all__ = ["TOKENIZERS", "counter_for"]
