"""What a deployment stands in: tables with an account and its key, a provider, and the file that names it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provider import Provider, running_provider

from gateway import emulators

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class World:
    """Everything a function needs to answer a call, and what a client needs to make one."""

    provider: Provider
    config: Path
    endpoint: str
    tables: dict[str, str]
    key: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "BASTION_CONFIG": str(self.config),
            "BASTION_DYNAMODB_ENDPOINT": self.endpoint,
            "BASTION_CONTROL_TABLE": self.tables["ControlTable"],
            "BASTION_CHATS_TABLE": self.tables["ChatsTable"],
        }

    def signed(self, event: dict[str, Any], **headers: str) -> dict[str, Any]:
        """The event as sent by the account, with more headers."""
        more = {"authorization": f"Bearer {self.key}", **headers}
        single = {name.lower(): value for name, value in event["headers"].items()} | more
        event["headers"] = single
        if "multiValueHeaders" in event:
            event["multiValueHeaders"] = {name: [value] for name, value in single.items()}
        return event


def admin(store: str, *words: str) -> Any:
    """Runs `bastion-admin`, and returns what it reports."""
    environment = {
        **os.environ,
        **emulators.CREDENTIALS,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "functions"), str(ROOT / "layers/core")]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "bastion.admin", "--json", "--store", store, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def new_key(store: str) -> str:
    """Makes an account on the largest plan, and returns a key of it."""
    admin(store, "account", "create", "acme", "--plan", "pro")
    report = admin(store, "key", "create", "acme", "--scope", "call", "--scope", "audit", "--scope", "preview")
    return str(report["key"])


def write_config(path: Path, provider: Provider) -> Path:
    path.write_text(f"""
[providers.main]
base_url = "{provider.base_url}"

[models."gpt-4o"]
provider = "main"
context_window = 128000
max_output = 16384
tokenizer = "o200k_base"

[plans.pro]
context_swapping = true
smart_truncation = true
""")
    return path


@contextmanager
def running_world(folder: Path) -> Iterator[World]:
    with running_provider() as provider, emulators.ministack() as endpoint:
        tables = emulators.create_tables(emulators.client_for(endpoint))
        key = new_key(f"dynamodb:{tables['ControlTable']},{tables['ChatsTable']}@{endpoint}")
        yield World(provider, write_config(folder / "bastion.toml", provider), endpoint, tables, key)
