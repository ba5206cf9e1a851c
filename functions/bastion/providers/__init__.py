"""Upstreams: OpenAI-compatible ones over HTTP, and the built-in echo."""
