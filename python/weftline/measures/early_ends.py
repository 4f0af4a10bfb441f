"""Workloads that end long before the flows or steps that a number is of, or begin long after the first ones.

The mean step of a job next to storage is not known where the storage ends, or begins, halfway: it mixes steps
with and without it, and a longer run of the rest changes it. Workloads of random arrivals, of bulk flows and
of rounds (periodic incasts, repeated permutations) are examined.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from weftline import quantities
from weftline.measures import evidence, flow_rows, steady, steps
from weftline.measures.flow_rows import Flows
from weftline.measures.metrics import metric
from weftline.runs import Run

SHARE = 0.9
"""A workload that is there for this share of the time of the others, or longer, is there for all of it."""


def text(runs: Sequence[Run], name: str, flows: Sequence[Flows]) -> str:
    """Return which workload ended early or began late in some run, for a metric of flows; "" if none.

    ``"storage ended at 9.1 ms, 28 % of the time from 0 ns to 31.9 ms of the steps"``; `flows` are those that
    count in each run. Named is the one that is there for the shortest time.
    """
    of_steps = evidence.is_of_steps(name)
    if not of_steps and "warmup" not in metric(name).chosen_by:
        return ""
    found = []
    for run, one in zip(runs, flows, strict=True):
        asked = _asked_times(run.scenario.get("workload") or [], one.group)
        if asked and (run.out / "flows.parquet").exists():
            found += _partly(run, one, asked, of_steps=of_steps, of_requests=evidence.is_of_requests(name))
    if not found:
        return ""
    _, group, what, at, first, last = min(found)
    share = (at - first) / (last - first)
    times = f"from {quantities.time_text(first)} to {quantities.time_text(last)}"
    of = "of the steps" if of_steps else "in which the other flows start"
    percent = 100 * max(share, 0.0)
    after = "after " if what == "began" else ""
    return f"{group} {what} at {quantities.time_text(at)}, {after}{percent:.0f} % of the time {times} {of}"


def _asked_times(workloads: Sequence[Mapping[str, Any]], group: str | None) -> dict[str, tuple[float, float]]:
    """Return the groups of the workloads that are examined, except one, and when arrivals begin and end."""
    times: dict[str, tuple[float, float]] = {}
    for one in workloads if len(workloads) > 1 else []:
        name = steady.group_of(one)
        if name == group or not (steady.is_random(one) or steady.apart(one) or one.get("kind") == "bulk"):
            continue
        is_by_count = steady.is_random(one) and int(one.get("count", 0))
        begin, end = steady.asked_times(one)
        end = 0.0 if is_by_count or end == math.inf else end
        first, last = times.get(name, (begin, end))
        times[name] = min(first, begin), max(last, end)
    return times


Partly = tuple[float, str, str, float, float, float]
"""Share of the time in which it is there, group, "ended" or "began", when, first and last time of others."""


def _partly(
    run: Run,
    flows: Flows,
    asked: dict[str, tuple[float, float]],
    *,
    of_steps: bool,
    of_requests: bool,
) -> list[Partly]:
    of = flow_rows.read(run)
    ends = _ends(of, asked)
    counted = [] if of_steps or of_requests else flow_rows.chosen(run, flows, finished=None)
    found: list[Partly] = []
    for group, end in ends.items():
        begin, end = asked[group][0], max(end, asked[group][1])
        if of_steps or of_requests:
            first, last = _times_of_steps(run, flows, to_finish=of_steps)
        else:
            starts = [of["start_ns"][n] for n in counted if of["group"][n] != group]
            first, last = min(starts, default=0.0), max(starts, default=0.0)
        length = last - first
        if length > 0 and end < first + SHARE * length:
            found.append(((end - first) / length, group, "ended", end, first, last))
        if length > 0 and last - SHARE * length < begin < last:
            found.append(((last - begin) / length, group, "began", begin, first, last))
    return found


def _times_of_steps(run: Run, flows: Flows, *, to_finish: bool) -> tuple[float, float]:
    """Return when the first step starts and the last one ends (or starts); 0, 0 of a single event."""
    rows = [row for row in steps.own(run) if flows.group in (None, row["job"])]
    starts = [row["start_ns"] for row in rows]
    if not rows or (len(set(starts)) == 1 and all(row["operation"] == "incast" for row in rows)):
        return 0.0, 0.0
    ends = [row["finish_ns"] for row in rows if row["finish_ns"] is not None] if to_finish else starts
    return min(starts), max(ends, default=0.0)


def _ends(of: Mapping[str, Sequence[Any]], groups: Collection[str]) -> dict[str, float]:
    """Return when the last flow of each group ended that has flows; infinity if one did not."""
    found: dict[str, float] = {}
    for group, start, took in zip(of["group"], of["start_ns"], of["fct_ns"], strict=True):
        if group in groups:
            found[group] = max(found.get(group, 0.0), math.inf if took is None else start + took)
    return found
