"""How flows that join a link come to share it: from their goodput over time (`[measure] goodput` by flow).

Jain's index of n goodputs x is (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything. It is
taken over spans of 1 ms in the time that all flows share, from the last one's start to the first one's end.

Source: Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination for resource allocation in
shared computer systems", DEC TR-301, 1984.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weftline.runs import Run

SPAN_NS = 1e6
FAIR = 0.95
"""Jain's index from which shares count as fair."""


def jain(goodputs: Sequence[float]) -> float | None:
    """Return Jain's index, None where nothing was received."""
    squares = math.fsum(x * x for x in goodputs)
    return math.fsum(goodputs) ** 2 / (len(goodputs) * squares) if squares else None


def indices(series: Mapping[str, Sequence[Sequence[float]]]) -> list[tuple[float, float]]:
    """Return (time since the last start in ns, Jain's index) of every span that all flows share.

    `series` has one list of (time in ns, goodput) a flow, all of the same spans.
    """
    active = [[time for time, goodput in points if goodput > 0] for points in series.values()]
    if not active or not all(active):
        return []
    start, end = max(times[0] for times in active), min(times[-1] for times in active)
    by_time: dict[float, list[float]] = {}
    for points in series.values():
        for time, goodput in points:
            by_time.setdefault(time, []).append(goodput)
    # The spans in which the last one starts and the first one ends are theirs in part only.
    shared = sorted((time, goodputs) for time, goodputs in by_time.items() if start < time < end)
    found = [(time - start, jain(goodputs)) for time, goodputs in shared if len(goodputs) == len(active)]
    return [(time, index) for time, index in found if index is not None]


def of_run(run: Run) -> list[tuple[float, float]]:
    """Return the same of a run's flows; nothing if their goodput was not measured."""
    return indices(run.over_time("goodput_bps", every_ns=SPAN_NS, max_points=0))


def convergence_ns(run: Run) -> float | None:
    """Return how long after the last start the shares are first fair; None if they never are."""
    return next((time for time, index in of_run(run) if index >= FAIR), None)


def final_fairness(run: Run) -> float | None:
    """Return the mean of Jain's index over the last third of the time that all flows share."""
    found = [index for _, index in of_run(run)]
    last = found[2 * len(found) // 3 :]
    return math.fsum(last) / len(last) if last else None
