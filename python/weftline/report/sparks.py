"""The small figures in the list of runs: completion times, and the longest queue over time."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

from weftline.errors import DamagedError, InputError, RunFailed
from weftline.measures import curves
from weftline.runs import Run

POINTS = 40
"""Points of a small figure, at most."""
MAX_SAMPLES = 300_000
"""Samples that are read individually for a small figure; of more, means over several are."""


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
        queues = _longest(run)
    except (DamagedError, InputError, RunFailed):
        return {}
    # It begins at 0, so that flows that all took the same time are a step.
    steps = [*((ns, 0.0) for ns, _ in curve[:1]), *curve]
    found = {"fct": [[round(math.log10(ns), 3), round(share, 4)] for ns, share in steps if ns > 0]}
    if queues:
        found["queue"] = queues
    return {name: points for name, points in found.items() if len(points) > 1}


def _longest(run: Run) -> list[list[float]]:
    """Return the longest sample of all queues in each span of time, at its end."""
    span = curves.span_ns([run], "queue_bytes", max_points=POINTS)
    found = curves.of_run(run, "queue_bytes", combine="max", span=span, max_samples=MAX_SAMPLES)
    return [[round(time), length or 0.0] for points in found.points.values() for time, length in points]
