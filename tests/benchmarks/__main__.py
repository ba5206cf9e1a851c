"""``make bench``: every measurement, as ratios against a peer in the same run wherever there is one."""

from __future__ import annotations

import sys
from importlib import import_module

BENCHES = (
    "tokens",
    "accuracy",
    "fuzz",
    "shift",
    "peers",
    "cache",
    "summary",
    "lore",
    "start",
    "stores",
    "proxy",
    "chats",
    "mangum",
    "gateways",
)
"""Each is `bench_<name>.main`, imported only when it runs: one that lacks what it needs stops no other."""


def main(names: list[str]) -> None:
    """Run the named benches, all of them without a name."""
    for name in names or BENCHES:
        if name not in BENCHES:
            raise SystemExit(f"no bench {name!r}: known are {', '.join(BENCHES)}")
        print(f"\n== {name} " + "=" * (70 - len(name)), flush=True)
        import_module(f"benchmarks.bench_{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
