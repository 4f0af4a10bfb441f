"""The process of the engine's ports and of links' delays, inside the namespace where links pass through.

Run as a file of its own, without the package: the native module is loaded from the path in the first line
of standard input. The second line is the task. What was done is printed as JSON when the process is ended.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agent import die_with_parent, native_module  # type: ignore[import-not-found]


def serve(what: Callable[[Any, str], str]) -> None:
    """Load the engine, then do what the task says; `what` takes the native module and the task."""
    if "stays" not in sys.argv:
        die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    native = native_module()
    try:
        print(what(native, sys.stdin.readline()), flush=True)
    except (ValueError, RuntimeError) as error:
        print(str(error).replace("\n", "; "), flush=True)
        sys.exit(1)


if __name__ == "__main__":
    serve(lambda native, task: str(native.serve_ports(task)))
