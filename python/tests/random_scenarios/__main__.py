"""Random scenarios: `make random` (N=, SEED=). Exit status 1: something is wrong, and was kept."""

from __future__ import annotations

import argparse
import sys

import search


def main() -> int:
    """Search, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="scenarios to draw")
    parser.add_argument("--seed", default="1", help="number or text; the same one draws the same scenarios")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--shrink", type=float, default=120, help="seconds to make a failing scenario smaller"
    )
    given = parser.parse_args()
    search.judging.build()
    found = search.search(given.n, given.seed, given.processes, given.shrink, search.KEPT, say=print)
    print(found.report())
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
