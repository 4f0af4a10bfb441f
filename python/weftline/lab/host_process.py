"""The process of the engine's hosts, inside the namespace where their links begin.

Run as a file of its own, without the package, as `port_process.py` is. The third line of standard input is
the time of day in ns at which the scenario begins. What was done is printed as JSON when all flows are done,
or when the process is ended.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from port_process import serve  # type: ignore[import-not-found]


def begin() -> int:
    """Say that every interface is open, and wait for the time to begin."""
    print("ready", flush=True)
    return int(sys.stdin.readline())


if __name__ == "__main__":
    serve(lambda native, task: native.serve_hosts(task, begin))
