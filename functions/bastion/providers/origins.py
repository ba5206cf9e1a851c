"""Origins: the scheme, host and port that a key is bound to."""

from __future__ import annotations

from urllib.parse import urlsplit

__all__ = ["origin_of"]

_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """Return a URL's origin, in one spelling. Raises ValueError where it has none.

    >>> origin_of("https://API.OpenAI.com:443/v1"), origin_of("http://127.0.0.1:9100/v1")
    ('https://api.openai.com', 'http://127.0.0.1:9100')
    """
    parts = urlsplit(url)
    host, usual = parts.hostname, _PORTS.get(parts.scheme)
    if not host or usual is None or "@" in parts.netloc or "\\" in parts.netloc:
        raise ValueError("not the address of an origin")
    port = parts.port or usual
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + ("" if port == usual else f":{port}")
