"""What a failure costs goodput, and for how long: numbers of one run.

The goodput of all groups (`measure.goodput` by group) is taken over intervals of 100 us, or the longer ones
that were measured, and held against its mean from `SETTLED` of the time before the first failure to that
failure.

    recovery_ns   from the first failure to the end of the last interval below `SHARE` of that mean, of those
                  that end before the next change of a link, or the end of the run. Changes are those that
                  happened (`failures` of summary.json), the end of a failure included; an interval that the
                  end of the run cuts short is not looked at. Where the last of these intervals is below,
                  goodput has not recovered by then: the time is a lower bound, and every verdict on it is
                  open (see `weftline.measures.evidence`)
    deficit       bytes that were delivered less than at that mean in all intervals from the one in which the
                  failure lies to the one in which the next change does, or to the end of the run, each
                  counted by its length

With goodput by flow in place of groups:

    silenced      of the flows that deliver in the `BEFORE_NS` up to the first failure, the share that
                  delivers nothing from `SILENT_NS[0]` to `SILENT_NS[1]` after it: connections with all their
                  subflows on the dead link. What is under way has arrived by the first, and the second comes
                  before a timeout of 10 ms
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from weftline.measures import over_time
from weftline.measures.over_time import Interval

if TYPE_CHECKING:
    from weftline.runs import Run

SHARE = 0.9
SETTLED = 0.5
"""Share of the time before the failure in which flows may still begin and settle."""
EVERY_NS = 1e5
BEFORE_NS = 2e6
SILENT_NS = (2e6, 8e6)


def recovery_ns(run: Run) -> float | None:
    """Return the time to recover in ns, a lower bound where `has_recovered` is False.

    None without a failure, where goodput was not measured, or where its intervals are too long to show what
    it was before the failure, or after it.
    """
    found = _after(run)
    if found is None or not (whole := _whole(found)):
        return None
    below = [one.end for one in whole if one.value < SHARE * found.usual]
    return max(0.0, max(below) - found.start) if below else 0.0


def has_recovered(run: Run) -> bool | None:
    """Return whether goodput was back before the next change of a link or the end; None if not known."""
    found = _after(run)
    if found is None or not (whole := _whole(found)):
        return None
    return whole[-1].value >= SHARE * found.usual


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
    lost = ((found.usual - one.value) * (one.end - one.begin) / 8e9 for one in found.spans)
    return max(0.0, math.fsum(lost))


def silenced(run: Run) -> float | None:
    """Return the share of flows that a failure silences.

    None without a failure, where no flow was measured or the intervals are too long to tell, and where the
    run ends before the time that is looked at does.
    """
    times = changes_ns(run)
    if not times or run.scenario.get("measure", {}).get("goodput", {}).get("by") != "flow":
        return None
    start, (low, high), every = times[0], SILENT_NS, over_time.interval_ns(run, "goodput")
    if every > BEFORE_NS or over_time.end_ns(run) < start + high:
        return None
    at_work = lost = 0
    for flow in over_time.intervals(run, "goodput_bps").values():
        before = any(one.value for one in flow if start - BEFORE_NS <= one.begin and one.end <= start)
        after = [one.value for one in flow if start + low <= one.begin and one.end <= start + high]
        at_work += before
        lost += before and not any(after)
    return lost / at_work if at_work else None


def changes_ns(run: Run) -> list[float]:
    """Return when links or switches changed before the end of the run, in ns."""
    times, over = {change["at_ns"] for change in run.summary.get("failures") or []}, over_time.end_ns(run)
    return sorted(time for time in times if time < over)


class _After(NamedTuple):
    """What followed the first failure."""

    start: float
    until: float
    """The next change, or the end of the run."""
    usual: float
    """Goodput before the failure, in bit/s."""
    spans: list[Interval]
    """The intervals that hold anything of the time from `start` to `until`."""


def _whole(found: _After) -> list[Interval]:
    return [one for one in found.spans if one.part == 1 and one.end <= found.until]


def _after(run: Run) -> _After | None:
    times = changes_ns(run)
    groups = over_time.intervals(run, "goodput_bps", EVERY_NS).values()
    if not times or not groups:
        return None
    start, until = times[0], times[1] if len(times) > 1 else over_time.end_ns(run)
    totals: dict[float, Interval] = {}
    for one in (one for group in groups for one in group):
        before = totals.get(one.end)
        totals[one.end] = one._replace(value=before.value + one.value) if before else one
    spans = sorted(totals.values())
    # Of the interval in which the time before begins, its part.
    settled = SETTLED * start
    lengths = [(one.value, one.end - max(one.begin, settled)) for one in spans if settled < one.end <= start]
    if not lengths or over_time.interval_ns(run, "goodput") > start - settled:
        return None
    usual = math.fsum(rate * length for rate, length in lengths) / math.fsum(n for _, n in lengths)
    after = [one for one in spans if one.end > start and one.begin < until]
    return _After(start, until, usual, after)
