"""Who goes first on a busy machine: the processes that packets of the lab wait for.

Where this user may, they get a real-time priority (SCHED_FIFO), the links' process above what runs next to
switches and that above the agents of hosts; else the highest nice level; else nothing. The kernel keeps a
share of each core for all else (sched_rt_runtime_us).
"""

from __future__ import annotations

import contextlib
import os
from typing import Literal

Priority = Literal["auto", "normal"]
LINKS, SWITCHES, HOSTS = 12, 11, 10
"""Real-time priorities."""
REAL_TIME, NICE, NORMAL = "real-time", "nice -20", "normal"
KINDS = (REAL_TIME, NICE, NORMAL)
"""From the highest to the lowest."""


def give(process: int, level: int) -> str:
    """Let a process, and what it starts, go before others; return which of `KINDS` it got."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(process, os.SCHED_FIFO, os.sched_param(level))
        return REAL_TIME
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, -20)
        return NICE
    return NORMAL


def lowest(kinds: list[str]) -> str:
    """Return the lowest of what processes got; "normal" if there are none."""
    return max(kinds, key=KINDS.index, default=NORMAL)
