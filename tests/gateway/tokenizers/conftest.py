"""Plain tiktoken as the oracle, from the repository's own vocabularies, without a network."""

from __future__ import annotations

import pytest

from gateway.tokenizers.oracle import Oracle, encodings


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """tiktoken's own encoding of a name."""
    return encodings(tmp_path_factory.mktemp("tiktoken"))
