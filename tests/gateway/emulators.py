"""DynamoDB-compatible servers over real HTTP: started on free ports, waited for, ended with the tests.

ministack (Python, in ``.venv-emulator``) is the first opinion. dynalite (Node, in ``tests/node``) is the
second: it returns no old item with a failed condition, which DynamoDB may not do either.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.config import Config

ROOT = Path(__file__).parents[2]
DEFINITION = ROOT / "infra" / "tables.yaml"
REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}

_START_SECONDS = 20.0


@contextlib.contextmanager
def ministack(services: str = "dynamodb", environ: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run ministack with the named services and yield its endpoint. ``environ`` adds to its environment."""
    program = _existing(ROOT / ".venv-emulator" / "bin" / "ministack")
    port = free_port()
    variables = {
        **os.environ,
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "SERVICES": services,
        **(environ or {}),
    }
    with _server([str(program)], variables, f"http://127.0.0.1:{port}", "/_ministack/health") as endpoint:
        yield endpoint


@contextlib.contextmanager
def dynalite() -> Iterator[str]:
    """Run dynalite and yield its endpoint."""
    program = _existing(ROOT / "tests" / "node" / "node_modules" / ".bin" / "dynalite")
    port = free_port()
    command = [str(program), "--host", "127.0.0.1", "--port", str(port), "--createTableMs", "0"]
    with _server(command, dict(os.environ), f"http://127.0.0.1:{port}", "/") as endpoint:
        yield endpoint


def reset_ministack(endpoint: str) -> None:
    """Forget everything a ministack holds."""
    request = urllib.request.Request(f"{endpoint}/_ministack/reset", method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        answer.read()


def client_for(endpoint: str, service: str = "dynamodb") -> Any:
    """Return a boto3 client of an emulator, with credentials of its own and no retries."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 1}, max_pool_connections=32)
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=config,
    )


def create_tables(client: Any, definition: Path = DEFINITION, *, prefix: str = "") -> dict[str, str]:
    """Create the tables a CloudFormation file defines; return their names by logical id.

    A table without a name of its own, or with one only CloudFormation can work out, is called after its
    logical id. TTL and the like are left out: no emulator acts on them, and dynalite knows no TTL.
    """
    names: dict[str, str] = {}
    for logical, resource in _load(definition)["Resources"].items():
        if resource["Type"] != "AWS::DynamoDB::Table":
            continue
        properties = resource["Properties"]
        own = properties.get("TableName")
        names[logical] = prefix + (own if isinstance(own, str) else logical)
        known = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
        client.create_table(TableName=names[logical], **{key: properties[key] for key in known if key in properties})
        client.get_waiter("table_exists").wait(TableName=names[logical], WaiterConfig={"Delay": 1})
    return names


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _server(command: Sequence[str], environ: Mapping[str, str], endpoint: str, health: str) -> Iterator[str]:
    process = subprocess.Popen(command, env=dict(environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(process, endpoint + health)
        yield endpoint
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the emulator of {url} ended with {process.returncode}")
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url, timeout=2):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing answers at {url}")


def _existing(program: Path) -> Path:
    if not program.exists():
        raise RuntimeError(f"{program.relative_to(ROOT)} is missing: run `make emulators node`")
    return program


class _Template(yaml.SafeLoader):
    """Reads CloudFormation: what an intrinsic function would make is left unknown."""


def _intrinsic(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, str]:
    return {"Fn": suffix}


_Template.add_multi_constructor("!", _intrinsic)


def _load(definition: Path) -> dict[str, Any]:
    with definition.open(encoding="utf-8") as file:
        loaded: dict[str, Any] = yaml.load(file, _Template)
    return loaded
