"""An AWS of our own on loopback: ministack, in its own environment, for one test module."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from rie import free_port

ROOT = Path(__file__).parents[2]
START_SECONDS = 20.0


@contextmanager
def ministack(log: Path, python: Path) -> Iterator[str]:
    """Its address. It runs Lambda functions on `python`, which it looks for as `python3` on the path."""
    port = free_port()
    environment = {
        **os.environ,
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "BIND_HOST": "127.0.0.1",  # it would listen on every interface, and on port 8883, too
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [ROOT / ".venv-emulator/bin/ministack"],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/_ministack/health", process, log)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)


def _wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urlopen(url, timeout=5):
                return
        except URLError:
            time.sleep(0.05)
    raise AssertionError(f"ministack did not start: {log.read_text()[-2000:]}")
