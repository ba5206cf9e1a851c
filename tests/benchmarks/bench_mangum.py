"""What a call costs through Mangum: event in, response out, with an upstream and stores in the same process.

No network and no store beyond memory: what is left is the adapter, the app, and the counting.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bastion.app import create_app
from bastion.bootstrap import Ports, bootstrap
from contextshift.fakes import FixedClock, MemoryAccounts, MemoryAuditStore, ScriptedAnswer, ScriptedProvider
from serving import completion, config

CALLS = 1_000
EVENT = json.loads((Path(__file__).parents[2] / "events/rest-chat-completions.json").read_text())
SAID = "The committee met on Tuesday and agreed to publish what it had found, in full, by June. " * 3


class Context:
    """Lambda's context object, as far as a handler asks it."""

    def get_remaining_time_in_millis(self) -> int:
        """Return a whole minute."""
        return 60_000


def main() -> None:
    """Print p50 and p95 of an invocation in milliseconds, by messages, with a chat and without."""
    asyncio.set_event_loop(asyncio.new_event_loop())  # Mangum runs on the process's own
    with tempfile.TemporaryDirectory() as folder:
        handle = handler(Path(folder))
        print(f"{'messages':>9}{'chat':>6}{'p50 ms':>9}{'p95 ms':>9}")
        for messages in (10, 100):
            for chat in (None, "bench"):
                times = sorted(timed(handle, event(messages, chat)))
                p95 = times[int(len(times) * 0.95)]
                print(f"{messages:>9}{'yes' if chat else 'no':>6}{statistics.median(times):>9.2f}{p95:>9.2f}")


def handler(folder: Path) -> Any:
    """Return the Lambda handler of an app whose every port is in memory."""
    clock = FixedClock(time.time())
    ports = Ports(
        accounts=MemoryAccounts(),
        audits=MemoryAuditStore(clock),
        providers={"main": ScriptedProvider(ScriptedAnswer(completion()))},
    )
    app = create_app(bootstrap(config(folder, "http://127.0.0.1:9"), ports))
    # The module makes the deployment's app when it is imported: here it makes one that nobody calls.
    os.environ["BASTION_CONFIG"] = str(folder / "bastion.toml")
    os.environ["BASTION_DATA"] = str(folder)
    from bastion.buffered import make_handler

    logging.getLogger("bastion").setLevel(logging.WARNING)  # the events of each call would drown the table
    return make_handler(app)


def event(messages: int, chat: str | None) -> Any:
    """Return API Gateway's event of a conversation."""
    talk = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} {SAID}"} for n in range(messages - 1)]
    body: dict[str, Any] = {"model": "gpt-4o", "messages": [*talk, {"role": "user", "content": "And now?"}]}
    if chat:
        body["routing"] = {"chat_id": chat}
    headers = {"Authorization": "Bearer sk-acme", "Content-Type": "application/json"}
    many = {name: [value] for name, value in headers.items()}
    return {**EVENT, "headers": headers, "multiValueHeaders": many, "body": json.dumps(body)}


def timed(handle: Any, one: Any) -> list[float]:
    """Return each invocation's milliseconds."""
    times = []
    for number in range(CALLS + 50):
        fresh = copy.deepcopy(one)
        begun = time.perf_counter()
        answer = handle(fresh, Context())
        took = time.perf_counter() - begun
        if answer["statusCode"] != 200:
            raise RuntimeError(answer["body"])
        if number >= 50:
            times.append(took * 1000)
    return times
