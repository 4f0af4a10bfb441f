"""The small figures in the list of runs: completion times, and the longest queue over time."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

from weftline.errors import DamagedError, InputError, RunFailed
from weftline.runs import Run

POINTS = 40
"""Points of a small figure, at most."""


def of(folder: Path) -> dict[str, list[list[float]]]:
    """Return ``fct`` (log10 of ns, share at or below it) and ``queue`` (ns, bytes), those that a run has.

    What cannot be read is left out: the list marks damaged runs by itself.
    """
    try:
        written = (folder / "summary.json").stat().st_mtime_ns
    except OSError:
        return {}
    return _of(folder, written)


@lru_cache(maxsize=2048)
def _of(folder: Path, _written: int) -> dict[str, list[list[float]]]:
    try:
        run = Run.read(folder)
        curve = run.distribution("fct_ns", max_points=POINTS)
        queues = run.over_time("queue_bytes", max_points=POINTS)
    except (DamagedError, InputError, RunFailed):
        return {}
    # It begins at 0, so that flows that all took the same time are a step.
    steps = [*((ns, 0.0) for ns, _ in curve[:1]), *curve]
    found = {"fct": [[round(math.log10(ns), 3), round(share, 4)] for ns, share in steps if ns > 0]}
    if queues:
        found["queue"] = _highest(queues)
    return {name: points for name, points in found.items() if len(points) > 1}


def _highest(queues: dict[str, list[Any]]) -> list[list[float]]:
    """Return the longest of several queues in each of `POINTS` spans of time."""
    end = max((points[-1][0] for points in queues.values() if points), default=0)
    spans: dict[int, float] = {}
    for points in queues.values():
        for time, length in points:
            span = max(0, math.ceil(POINTS * time / end - 1e-9) - 1) if end else 0
            spans[span] = max(spans.get(span, 0.0), length)
    return [[round(end * (span + 1) / POINTS), length] for span, length in sorted(spans.items())]
