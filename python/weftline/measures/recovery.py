"""What a failure costs goodput, and for how long: numbers of one run.

The goodput of all groups (`measure.goodput` by group) is taken over intervals of 100 us and held against its
mean from `SETTLED` of the time before the first failure to that failure.

    recovery_ns   from the first failure to the end of the last interval below `SHARE` of that mean, before
                  the next change of a link, or the end of the run; all of that time where it ends below
    deficit       bytes that were delivered less than at that mean, over the same time
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from weftline import quantities

if TYPE_CHECKING:
    from weftline.runs import Run

SHARE = 0.9
SETTLED = 0.5
"""Share of the time before the failure in which flows may still begin and settle."""
EVERY_NS = 1e5

Spans = list[tuple[float, float]]
"""(end of an interval in ns, goodput in bit/s)"""


def recovery_ns(run: Run) -> float | None:
    """Return the time to recover in ns; None without a failure, or where goodput was not measured."""
    found = _after(run)
    if found is None:
        return None
    start, usual, spans = found
    below = [time for time, rate in spans if rate < SHARE * usual]
    return max(0.0, max(below) - start) if below else 0.0


def deficit_bytes(run: Run) -> float | None:
    """Return what was delivered less, in bytes.

    More than usual in one interval makes up for less in another.
    """
    found = _after(run)
    if found is None:
        return None
    _, usual, spans = found
    return max(0.0, math.fsum((usual - rate) * EVERY_NS / 8e9 for _, rate in spans))


def _after(run: Run) -> tuple[float, float, Spans] | None:
    """When the first failure was, the goodput before it, and the intervals until the next change."""
    events = run.scenario.get("failures", {}).get("event", [])
    times = sorted({quantities.parse_time_ns(event["at"]) for event in events})
    totals: dict[float, float] = {}
    for points in run.over_time("goodput_bps", every_ns=EVERY_NS, max_points=0).values():
        for time, rate in points:
            totals[time] = totals.get(time, 0.0) + rate
    if not times or not totals:
        return None
    start, until = times[0], times[1] if len(times) > 1 else run.summary["end_ns"]
    before = [rate for time, rate in totals.items() if SETTLED * start < time <= start]
    if not before:
        return None
    spans = sorted((time, rate) for time, rate in totals.items() if start < time <= until)
    return start, math.fsum(before) / len(before), spans
