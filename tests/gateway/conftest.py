"""What every test of the gateway may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway import emulators


@pytest.fixture(scope="session")
def ministack() -> Iterator[str]:
    """The endpoint of a ministack, shared by all tests: use names of your own in it."""
    with emulators.ministack() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def dynalite() -> Iterator[str]:
    """The endpoint of a dynalite, shared by all tests: use names of your own in it."""
    with emulators.dynalite() as endpoint:
        yield endpoint
