"""Plain tiktoken as the oracle: where the vocabularies stand, and how to make its own encodings from them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
import tiktoken
import tiktoken_ext.openai_public as public  # type: ignore[import-untyped]

VOCABULARIES = Path(__file__).resolve().parents[3] / "layers" / "vocab"
URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
NAMES = ("o200k_base", "cl100k_base")

Oracle = Callable[[str], "tiktoken.Encoding"]


def encodings(cache: Path) -> Oracle:
    """tiktoken's own encodings, by its own loader, which checks the hash of what it finds in its cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
        made = {}
        for name in NAMES:
            content = gzip.decompress((VOCABULARIES / f"{name}.tiktoken.gz").read_bytes())
            (cache / hashlib.sha1(URL.format(name).encode()).hexdigest()).write_bytes(content)
            made[name] = tiktoken.Encoding(**getattr(public, name)())
    return made.__getitem__
