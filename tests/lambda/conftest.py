"""What the Lambda tests share: events, the artefact, and the ways to run it without AWS and without Docker."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))  # helper modules beside this file; the folder itself is named like a keyword

from runtime_api import RuntimeApi  # noqa: E402
from world import World, running_world  # noqa: E402

PYTHON313 = subprocess.run([ROOT / "infra/python313"], capture_output=True, text=True, check=False).stdout.strip()
NEED_PYTHON313 = ["test_artefact.py", "test_rie.py", "test_stream_function.py", "test_deploy.py"]

collect_ignore = [] if PYTHON313 else NEED_PYTHON313


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what was not even collected; a header would not show from a folder below the root."""
    if not PYTHON313:
        missing = ", ".join(NEED_PYTHON313)
        terminalreporter.write_line(f"tests/lambda: no Python 3.13 on this machine, not collected: {missing}")


@pytest.fixture(scope="session")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture
def world(shared_world: World) -> Iterator[World]:
    """The tables, the account and the provider, which has seen nothing yet and holds nothing back."""
    shared_world.provider.bodies.clear()
    shared_world.provider.gate.set()
    yield shared_world
    shared_world.provider.gate.set()


@pytest.fixture
def runtime_api() -> Iterator[RuntimeApi]:
    api = RuntimeApi()
    yield api
    api.close()
