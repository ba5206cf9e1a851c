"""The cold start: what a fresh process pays before its first answer."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

RUNS = 7
STEPS = {
    "nothing": "pass",
    "contextshift": "import contextshift",
    "starlette + httpx": "import starlette.applications, httpx",
    "bastion (no store)": "import bastion.bootstrap",
    "app, SQLite": """
from bastion.app import create_app
from bastion.bootstrap import bootstrap
from bastion.config import Config
create_app(bootstrap(Config.from_environ({})))
""",
    "app, DynamoDB": """
from bastion.app import create_app
from bastion.bootstrap import bootstrap
from bastion.config import Config
create_app(bootstrap(Config.from_environ({"BASTION_CONTROL_TABLE": "a", "BASTION_CHATS_TABLE": "b"})))
""",
    "app, the shipped catalogue": """
from bastion.app import create_app
from bastion.bootstrap import bootstrap
from bastion.config import DEPLOYMENT, Config
create_app(bootstrap(Config.from_environ({"BASTION_CONFIG": str(DEPLOYMENT), "OPENAI_API_KEY": "x"})))
""",
    "app, first o200k count": """
from bastion.app import create_app
from bastion.bootstrap import bootstrap
from bastion.config import Config
services = bootstrap(Config.from_environ({}))
create_app(services)
planner = services.exchange.planner
planner._counter_for(planner.catalogue.resolve("demo-gpt"))({"role": "user", "content": "hello"})
""",
}
PROGRAM = """
import time; begun = time.perf_counter()
{work}
elapsed = time.perf_counter() - begun
import pathlib, sys
resident = int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
print(elapsed * 1000, resident, len(sys.modules))
"""


def main() -> None:
    """Print milliseconds, resident megabytes and modules of each step."""
    print(f"{'step':<26}{'ms':>8}{'MB':>8}{'modules':>9}   (median of {RUNS} fresh processes)")
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "AWS_DEFAULT_REGION": "eu-central-1"}
    for name, work in STEPS.items():
        rows = []
        for _ in range(RUNS):
            program = PROGRAM.format(work=work)
            done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
            rows.append([float(number) for number in done.stdout.split()])
        milliseconds, megabytes, modules = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"{name:<26}{milliseconds:>8.0f}{megabytes:>8.0f}{modules:>9.0f}")
