"""How busy the cores of this machine were while flows ran.

Lateness is measured at links with a delay. Where none has one, the kernel passes packets on as fast as a core
can, and one that is always busy, and not a link, may have decided how fast flows were.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

STAT = Path("/proc/stat")
PRESSURE = Path("/proc/pressure/cpu")
EVERY_S = 0.05
MOST_BUSY = 95.0
"""Percent of the time of flows in which a core may be busy in a run without delays."""
INSIDE = 0.9
"""Share of the time between two looks in which flows ran, from which on it counts."""
IDLE = (3, 4)
"""Where a line of the file has the ticks without work, those of waiting for a disk included."""
COUNTED = 8
"""Numbers of a line that add up to its time; those after them are parts of these."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """Counters of the machine at a moment."""

    at_ns: int
    cores: dict[str, tuple[int, int]]
    """Ticks of each core: busy (also those that its host had taken), and all."""
    waited_us: int | None
    """Time in which something waited for a core."""


@dataclass(frozen=True, kw_only=True)
class Busy:
    """Percent of the time in which flows ran; None: not known."""

    busiest: float | None = None
    """In which the busiest core was busy."""
    waited: float | None = None
    """In which something waited for a core."""


def look(allowed: Iterable[int]) -> Look:
    """Return the counters of these cores now."""
    names = {f"cpu{core}" for core in allowed}
    cores = {}
    for line in STAT.read_text().splitlines():
        name, _, rest = line.partition(" ")
        if name in names:
            ticks = [int(one) for one in rest.split()[:COUNTED]]
            cores[name] = sum(ticks) - sum(ticks[place] for place in IDLE), sum(ticks)
    try:
        waited = int(PRESSURE.read_text().split("\n")[0].rpartition("total=")[2])
    except (OSError, ValueError):
        waited = None
    return Look(at_ns=time.time_ns(), cores=cores, waited_us=waited)


@dataclass
class Looks:
    """A thread that looks at the cores from time zero on."""

    found: list[Look] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, zero_ns: int) -> None:
        """Begin at time zero."""
        self._thread = threading.Thread(target=self._work, args=(zero_ns,), daemon=True)
        self._thread.start()

    def _work(self, zero_ns: int) -> None:
        allowed = os.sched_getaffinity(0)
        wait_s = max(zero_ns - time.time_ns(), 0) / 1e9
        while not self._end.wait(wait_s):
            self.found.append(look(allowed))
            wait_s = EVERY_S

    def stop(self) -> list[Look]:
        """End it; return what was seen."""
        self._end.set()
        if self._thread:
            self._thread.join()
        return self.found


def busy(looks: Sequence[Look], spans: Iterable[tuple[int, int]]) -> Busy:
    """Return how busy the cores were within spans of time (ns, as the looks have it).

    Only what lies between two looks within them counts; where they are shorter, all in which they lie.
    """
    joined = _joined(spans)
    shares = [
        (_covered(one.at_ns, other.at_ns, joined) / max(other.at_ns - one.at_ns, 1), one, other)
        for one, other in pairwise(looks)
    ]
    enough = INSIDE if any(share >= INSIDE for share, *_ in shares) else 0.0
    chosen = [(one, other) for share, one, other in shares if share > 0 and share >= enough]
    if not chosen:
        return Busy()
    cores = set.intersection(*(set(each.cores) for pair in chosen for each in pair))
    used = {
        core: [sum(b.cores[core][place] - a.cores[core][place] for a, b in chosen) for place in (0, 1)]
        for core in cores
    }
    time_us = sum(other.at_ns - one.at_ns for one, other in chosen) / 1e3
    waits = [(one.waited_us, other.waited_us) for one, other in chosen]
    waited = sum(b - a for a, b in waits if a is not None and b is not None)
    return Busy(
        busiest=max((100 * part / whole for part, whole in used.values() if whole > 0), default=None),
        waited=None if any(None in pair for pair in waits) else 100 * waited / time_us,
    )


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans of time in order, those that overlap as one."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def _covered(begin: int, end: int, joined: Iterable[tuple[int, int]]) -> int:
    return sum(max(min(end, last) - max(begin, first), 0) for first, last in joined)
