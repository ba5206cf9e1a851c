"""``make bench``: every measurement, as ratios against a peer in the same run wherever there is one."""

from __future__ import annotations

import sys

from benchmarks import bench_proxy, bench_shift, bench_start, bench_stores, bench_tokens

BENCHES = {
    "tokens": bench_tokens.main,
    "shift": bench_shift.main,
    "start": bench_start.main,
    "stores": bench_stores.main,
    "proxy": bench_proxy.main,
}


def main(names: list[str]) -> None:
    """Run the named benches, all of them without a name."""
    for name in names or list(BENCHES):
        print(f"\n== {name} " + "=" * (70 - len(name)))
        BENCHES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
