"""Bastion: an OpenAI-compatible endpoint that makes prompts fit, and shows what it did."""

__version__ = "0.1.0"

__all__ = ["__version__"]
