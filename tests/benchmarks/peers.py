"""The other side of `bench_peers`, run by the interpreter of `.venv-bench`: one peer, one file of conversations.

``python peers.py PEER INPUT SECONDS`` reads ``[{"messages": […], "budget": n}, …]`` and writes one line of JSON for
each: milliseconds (null where one call takes longer than SECONDS), messages kept, and whether the peer changed
nothing. Only the peer's own work is timed: neither its import nor the conversion into its classes.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
MODEL = "gpt-4o"
RUNS = 5
Trim = Callable[[], list[Any]]


class TooLong(BaseException):
    """The time is up. No `Exception`: a peer that catches all of those would go on."""


def litellm(messages: list[dict[str, Any]], budget: int) -> Trim:
    """Return a call of `litellm.utils.trim_messages`."""
    from litellm.utils import trim_messages  # type: ignore[import-not-found]

    logging.disable(logging.CRITICAL)
    return lambda: list(trim_messages(messages, model=MODEL, max_tokens=budget))


def langchain(messages: list[dict[str, Any]], budget: int) -> Trim:
    """Return a call of `langchain_core.messages.trim_messages`, with the counter of LangChain's own guide."""
    import tiktoken
    from langchain_core.messages import (  # type: ignore[import-not-found]
        BaseMessage,
        convert_to_messages,
        trim_messages,
    )

    encoding = tiktoken.get_encoding("o200k_base")

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    def counter(talk: list[BaseMessage]) -> int:
        tokens = 3
        for message in talk:
            tokens += 3 + count(message.type) + count(str(message.content))
            tokens += 1 + count(message.name) if message.name else 0
        return tokens

    talk = convert_to_messages(messages)
    options: dict[str, Any] = {"strategy": "last", "token_counter": counter, "include_system": True}
    return lambda: list(trim_messages(talk, max_tokens=budget, start_on="human", **options))


PEERS: dict[str, Callable[[list[dict[str, Any]], int], Trim]] = {"litellm": litellm, "langchain": langchain}


def measured(trim: Trim, seconds: float) -> dict[str, Any]:
    """Run ``trim`` some times within ``seconds``, at least once, and return the median and what it kept."""
    times: list[float] = []
    kept: list[Any] = []
    end = time.perf_counter() + seconds
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        while len(times) < RUNS and (not times or time.perf_counter() + times[-1] < end):
            begun = time.perf_counter()
            kept = trim()
            times.append(time.perf_counter() - begun)
    except TooLong:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return {"ms": statistics.median(times) * 1000 if times else None, "kept": len(kept)}


def main(peer: str, path: str, seconds: str) -> None:
    """Answer every conversation of the file, in order."""

    def ring(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, ring)
    for case in json.loads(Path(path).read_bytes()):
        trim = PEERS[peer](case["messages"], case["budget"])
        PEERS[peer](case["messages"][:2], 10_000)()  # the first call loads the vocabulary
        result = measured(trim, float(seconds))
        print(json.dumps({**result, "unchanged": result["kept"] == len(case["messages"])}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
