"""What a failure costs goodput, and for how long: numbers of one run.

The goodput of all groups (`measure.goodput` by group) is taken over intervals of 100 us, or the longer ones
that were measured, and held against its mean from `SETTLED` of the time before the first failure to that
failure.

    recovery_ns   from the first failure to the end of the last interval below `SHARE` of that mean, before
                  the next change of a link, or the end of the run. The end of an event that `lasts` is a
                  change. Where the last of these intervals is below, goodput has not recovered by then: the
                  time is a lower bound, and every verdict on it is open (see `weftline.measures.evidence`)
    deficit       bytes that were delivered less than at that mean, over the same time

With goodput by flow in place of groups:

    silenced      of the flows that deliver in the `BEFORE_NS` up to the first failure, the share that
                  delivers nothing from `SILENT_NS[0]` to `SILENT_NS[1]` after it: connections with all their
                  subflows on the dead link. What is under way has arrived by the first, and the second comes
                  before a timeout of 10 ms
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from weftline import quantities
from weftline.measures.over_time import interval_ns

if TYPE_CHECKING:
    from weftline.runs import Run

SHARE = 0.9
SETTLED = 0.5
"""Share of the time before the failure in which flows may still begin and settle."""
EVERY_NS = 1e5
BEFORE_NS = 2e6
SILENT_NS = (2e6, 8e6)

Spans = list[tuple[float, float]]
"""(end of an interval in ns, goodput in bit/s)"""


def recovery_ns(run: Run) -> float | None:
    """Return the time to recover in ns, a lower bound where `has_recovered` is False.

    None without a failure, where goodput was not measured, or where its intervals are too long to show what
    it was before the failure.
    """
    found = _after(run)
    if found is None:
        return None
    start, usual, spans = found
    below = [time for time, rate in spans if rate < SHARE * usual]
    return max(0.0, max(below) - start) if below else 0.0


def has_recovered(run: Run) -> bool | None:
    """Return whether goodput was back before the next change of a link or the end; None if not known."""
    found = _after(run)
    if found is None or not found[2]:
        return None
    _, usual, spans = found
    return spans[-1][1] >= SHARE * usual


def unrecovered_text(runs: Sequence[Run]) -> str:
    """Return ``"2 of 5 runs had not recovered"``; "" if all had, or where nothing is known of it."""
    count = sum(has_recovered(run) is False for run in runs)
    return f"{count} of {len(runs)} runs had not recovered" if count else ""


def deficit_bytes(run: Run) -> float | None:
    """Return what was delivered less, in bytes.

    More than usual in one interval makes up for less in another.
    """
    found = _after(run)
    if found is None:
        return None
    start, usual, spans = found
    ends = [time for time, _ in spans]
    lengths = [end - begin for begin, end in pairwise([start, *ends])]
    lost = ((usual - rate) * length / 8e9 for (_, rate), length in zip(spans, lengths, strict=True))
    return max(0.0, math.fsum(lost))


def silenced(run: Run) -> float | None:
    """Return the share of flows that a failure silences.

    None without a failure, where no flow was measured or the intervals are too long to tell, and where the
    run ends before the time that is looked at does.
    """
    times = _changes(run)
    if not times or run.scenario.get("measure", {}).get("goodput", {}).get("by") != "flow":
        return None
    start, (low, high), every = times[0], SILENT_NS, interval_ns(run, "goodput")
    if every > BEFORE_NS or run.summary["end_ns"] < start + high:
        return None
    at_work = lost = 0
    for points in run.over_time("goodput_bps", max_points=0).values():
        before = any(rate for time, rate in points if start - BEFORE_NS + every <= time <= start)
        after = [rate for time, rate in points if start + low + every <= time <= start + high]
        at_work += before
        lost += before and not any(after)
    return lost / at_work if at_work else None


def _changes(run: Run) -> list[float]:
    """When links change, in ns: at events, and at the end of those that have one."""
    times = set()
    for event in run.scenario.get("failures", {}).get("event", []):
        at, lasts = quantities.parse_time_ns(event["at"]), event.get("lasts", "auto")
        times |= {at} if lasts == "auto" else {at, at + quantities.parse_time_ns(lasts)}
    return sorted(times)


def _after(run: Run) -> tuple[float, float, Spans] | None:
    """When the first failure was, the goodput before it, and the intervals until the next change."""
    times = _changes(run)
    totals: dict[float, float] = {}
    for points in run.over_time("goodput_bps", every_ns=EVERY_NS, max_points=0).values():
        for time, rate in points:
            totals[time] = totals.get(time, 0.0) + rate
    if not times or not totals:
        return None
    end = run.summary["end_ns"]
    # The last interval ends with the run.
    totals = {min(time, end): rate for time, rate in totals.items()}
    start, until = times[0], times[1] if len(times) > 1 else end
    before = [rate for time, rate in totals.items() if SETTLED * start < time <= start]
    if not before or interval_ns(run, "goodput") > (1 - SETTLED) * start:
        return None
    spans = sorted((time, rate) for time, rate in totals.items() if start < time <= until)
    return start, math.fsum(before) / len(before), spans
