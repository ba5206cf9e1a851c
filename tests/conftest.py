"""What all tests share: one async backend, and a hypothesis profile that times nothing."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("bastion", deadline=None, print_blob=True)
settings.load_profile("bastion")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
