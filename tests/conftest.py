"""What all tests share: one async backend, and a hypothesis profile that times nothing."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("bastion", deadline=None, print_blob=True)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=3_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "bastion"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
