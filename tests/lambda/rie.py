"""A function of the artefact under AWS's own Runtime Interface Emulator."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import artefact

START_SECONDS = 15.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Emulator:
    """A running function; each call is one invocation."""

    def __init__(self, port: int, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"
        self.log = log

    def invoke(self, event: Any) -> Any:
        return json.loads(self.invoke_raw(event))

    def invoke_raw(self, event: Any) -> bytes:
        request = Request(self.url, json.dumps(event).encode(), {"Content-Type": "application/json"})
        with urlopen(request, timeout=60) as response:
            return bytes(response.read())


@contextmanager
def emulator(
    function: str, command: list[str | Path], log: Path, *, timeout: int = 29, **more: str
) -> Iterator[Emulator]:
    """Starts `command` as the runtime of `function`, and ends it together with what it started."""
    port, api_port = free_port(), free_port()
    environment = artefact.environment(function, AWS_LAMBDA_FUNCTION_TIMEOUT=str(timeout), **more)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                artefact.rie(),
                "--log-level",
                "error",
                "--runtime-interface-emulator-address",
                f"127.0.0.1:{port}",
                "--runtime-api-address",
                f"127.0.0.1:{api_port}",
                *command,
            ],
            cwd=artefact.BUILD / function,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_for(port, process)
        yield Emulator(port, log)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)


def api_function(log: Path, *, timeout: int = 29, **more: str) -> Any:
    """ApiFunction as the managed runtime would run it."""
    handler = "bastion.buffered.handler"
    command: list[str | Path] = [artefact.PYTHON, "-m", "awslambdaric", handler]
    return emulator("ApiFunction", command, log, timeout=timeout, _HANDLER=handler, **more)


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"the emulator did not start (exit code {process.poll()})")
