"""Workloads that are absent for a part of the time of the flows or steps that a number is of.

The mean step of a job next to storage is not known where the storage ends, or begins, halfway: it mixes steps
with and without it, and a longer run of the rest changes it. The same holds where two workloads of one group
leave a gap. Workloads of random arrivals, of bulk flows and of rounds (periodic incasts, repeated
permutations) are examined.

Jobs of several steps, job files, closed loops and traces have a length of their own. They are examined only
for numbers whose own length is a choice too: those of steps, where a job has several, and of flows at random,
in rounds, in closed loops or of such jobs. Between two traces nothing is named: what both do is all there is.
A trace, or a list of flows, is one workload whatever groups its flows have.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from weftline import columns, quantities
from weftline.measures import evidence, flow_rows, steady, steps
from weftline.measures.flow_rows import Flows
from weftline.measures.metrics import metric
from weftline.runs import Run

SHARE = 0.9
"""A workload that is there for this share of the time of the others, or longer, is there for all of it."""
MAX_NAMED = 3
"""Groups of a trace that are named."""
SHARE_OF_OWN = 0.75
"""The same of what has a length of its own: two equal jobs that share a network need not end together."""


def text(runs: Sequence[Run], name: str, flows: Sequence[Flows]) -> str:
    """Return which workload was absent for a part of the time in some run, for a metric of flows; "" if none.

    ``"storage ended at 9.1 ms, 28 % of the time from 0 ns to 31.9 ms of the steps"``; `flows` are those that
    count in each run. Named is the one that is there for the shortest time, with the longest part without it.
    """
    of_steps = evidence.is_of_steps(name)
    if not of_steps and "warmup" not in metric(name).chosen_by:
        return ""
    found = []
    for run, one in zip(runs, flows, strict=True):
        if not (run.out / "flows.parquet").exists():
            continue
        if asked := _asked_times(run, one.group):
            found += _partly(run, one, asked, of_steps=of_steps, of_requests=evidence.is_of_requests(name))
    if not found:
        return ""
    partly = min(found)
    length = partly.last - partly.first
    times = f"from {quantities.time_text(partly.first)} to {quantities.time_text(partly.last)}"
    of = "of the steps" if of_steps else "in which the other flows start"
    begin, end = quantities.time_text(partly.begin), quantities.time_text(partly.end)
    if partly.begin <= partly.first < partly.end < partly.last:
        what, share = f"began at {end}, after", (partly.end - partly.first) / length
    elif partly.end >= partly.last:
        what, share = f"ended at {begin},", max(partly.begin - partly.first, 0.0) / length
    else:
        what, share = f"was absent from {begin} to {end},", (partly.end - partly.begin) / length
    return f"{partly.group} {what} {100 * share:.0f} % of the time {times} {of}"


@dataclass
class _Asked:
    """When the examined workloads of a group are to begin and end."""

    groups: frozenset[str]
    """Several of a trace whose flows have groups of their own."""
    times: list[tuple[float, float]] = field(default_factory=list)
    """Of each one; an end of 0 is not known."""
    is_own_length: bool = False
    """Whether one of them has a length of its own: see the head."""


def _asked_times(run: Run, group: str | None) -> dict[str, _Asked]:
    """Return the groups of the workloads that are examined, except one, and when they begin and end."""
    workloads = run.scenario.get("workload") or []
    found: dict[str, _Asked] = {}
    unnamed = _spans(run).keys() - set(map(steady.group_of, workloads)) if len(workloads) > 1 else set()
    for one in workloads if len(workloads) > 1 else []:
        name, groups = steady.group_of(one), frozenset([steady.group_of(one)])
        if one.get("kind") in TRACES and unnamed:
            groups = frozenset(unnamed | (groups & _spans(run).keys()))
            name = _label(groups, name)
        is_asked = steady.is_random(one) or steady.apart(one) > 0 or one.get("kind") == "bulk"
        if group in groups or not (is_asked or _has_own_length(one)):
            continue
        is_by_count = steady.is_random(one) and int(one.get("count", 0))
        begin, end = steady.asked_times(one)
        end = 0.0 if is_by_count or end == math.inf else end
        if not is_asked:
            lasts = _times_of_flows(run, groups)
            if lasts is None:
                continue
            is_alone = sum(steady.group_of(other) in groups for other in workloads) <= 1
            begin, end = (lasts[0] if one["kind"] in TRACES else begin), lasts[1] if is_alone else 0.0
        known = found.setdefault(name, _Asked(groups))
        known.times.append((begin, end))
        known.is_own_length |= not is_asked
    return found


TRACES = ("trace", "flows")


def _label(groups: Collection[str], name: str) -> str:
    return ", ".join(sorted(groups)) if len(groups) <= MAX_NAMED else f"{name} ({len(groups)} groups)"


def _has_own_length(workload: Mapping[str, Any]) -> bool:
    return workload.get("kind") in ("closed-loop", "job-file", *TRACES) or _has_steps(workload)


def _has_steps(workload: Mapping[str, Any]) -> bool:
    """Return whether a workload is a job of several steps."""
    is_job = "placement" in workload  # only ranks are placed
    return is_job and int(workload.get("steps", workload.get("repeat", 1))) > 1


def _is_repeated(workload: Mapping[str, Any]) -> bool:
    """Return whether a workload does the same again and again, a number of times that the scenario sets."""
    is_random = steady.is_random(workload) or steady.apart(workload) > 0
    return is_random or workload.get("kind") == "closed-loop" or _has_steps(workload)


def _times_of_flows(run: Run, groups: Collection[str]) -> tuple[float, float] | None:
    """Return the first start of the flows of groups and the end of the last one, or of the last step.

    None of one event: all flows start before one of them has ended.
    """
    span = _joined(run, groups)
    if span is None or span.last_start < span.first_end:
        return None
    rows = [row for row in steps.own(run) if row["job"] in groups]
    ends = [math.inf if row["finish_ns"] is None else row["finish_ns"] for row in rows]
    is_cut = any(steps.unbegun(run, group) for group in groups)
    return span.first_start, math.inf if is_cut else max([span.last_end, *ends])


class _Span(NamedTuple):
    """First and last start and end of the flows of a group; a flow that did not finish ends at infinity."""

    first_start: float
    last_start: float
    first_end: float
    last_end: float


def _spans(run: Run) -> dict[str, _Span]:
    """Return the span of each group that has flows, or steps of a job whose messages have no rows."""
    return _read_spans(run.folder, (run.out / "flows.parquet").stat().st_mtime_ns)


def _span_of(starts: Sequence[float], ends: Sequence[float]) -> _Span:
    return _Span(min(starts), max(starts), min(ends), max(ends))


def _joined(run: Run, groups: Collection[str]) -> _Span | None:
    """Return the span of several groups together; None if they have no flows."""
    spans = [span for name, span in _spans(run).items() if name in groups]
    if not spans:
        return None
    first_starts, last_starts, first_ends, last_ends = zip(*spans, strict=True)
    return _Span(min(first_starts), max(last_starts), min(first_ends), max(last_ends))


@lru_cache(maxsize=4096)
def _read_spans(folder: Path, modified: int) -> dict[str, _Span]:
    from weftline import _native

    del modified  # part of the key alone
    of = columns.read(_native.table(str(folder), "flows"), ("group", "start_ns", "fct_ns"))
    found: dict[str, tuple[list[float], list[float]]] = {}
    for group, start, took in zip(of["group"], of["start_ns"], of["fct_ns"], strict=True):
        starts, ends = found.setdefault(group, ([], []))
        starts.append(start)
        ends.append(math.inf if took is None else start + took)
    of_steps: dict[str, tuple[list[float], list[float]]] = {}
    for row in json.loads(_native.jobs(str(folder))):
        if row["job"] not in found and not row.get("part"):
            starts, ends = of_steps.setdefault(row["job"], ([], []))
            starts.append(row["start_ns"])
            ends.append(math.inf if row["finish_ns"] is None else row["finish_ns"])
    return {name: _span_of(*times) for name, times in (found | of_steps).items()}


@lru_cache(maxsize=4096)
def _last_ends(folder: Path, modified: int, groups: frozenset[str], begins: tuple[float, ...]) -> list[float]:
    """Return the last end of the flows of groups that start from each of these times to the next one."""
    from weftline import _native

    del modified  # part of the key alone
    of = columns.read(_native.table(str(folder), "flows"), ("group", "start_ns", "fct_ns"))
    found = [0.0] * len(begins)
    for name, start, took in zip(of["group"], of["start_ns"], of["fct_ns"], strict=True):
        if name in groups:
            place = max(bisect_right(begins, start) - 1, 0)
            found[place] = max(found[place], math.inf if took is None else start + took)
    return found


def _there(run: Run, asked: _Asked) -> list[tuple[float, float]]:
    """Return the times in which workloads are there, apart and in order.

    Each lasts until the flows end that start before the next one begins, and for its own duration.
    """
    begins = tuple(sorted({begin for begin, _ in asked.times}))
    span = _joined(run, asked.groups)
    ends = [span.last_end if span else 0.0]
    if len(begins) > 1:
        ends = _last_ends(run.folder, (run.out / "flows.parquet").stat().st_mtime_ns, asked.groups, begins)
    found: list[tuple[float, float]] = []
    for begin, end in zip(begins, ends, strict=True):
        end = max([end, *(asked_end for asked_begin, asked_end in asked.times if asked_begin == begin)])
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif end > begin or len(begins) == 1:
            found.append((begin, end))
    return found


class Partly(NamedTuple):
    """A group that is absent for a part of a time."""

    share: float
    """Of the time, in which it is there."""
    group: str
    begin: float
    """Of the longest part without it."""
    end: float
    first: float
    """When the time begins."""
    last: float


def _partly_there(
    group: str, there: Sequence[tuple[float, float]], first: float, last: float, enough: float
) -> list[Partly]:
    """Return the longest part of a time without a group, if it is there for less than the share `enough`."""
    if first >= last:
        return []
    within = [(max(begin, first), min(end, last)) for begin, end in there if begin < last and end > first]
    if not within:
        # It ended before; what begins later is of another time.
        ended = [end for begin, end in there if begin < last]
        return [Partly(0.0, group, max(ended), last, first, last)] if ended else []
    share = math.fsum(end - begin for begin, end in within) / (last - first)
    if share >= enough:
        return []
    ends, begins = [first, *(end for _, end in within)], [*(begin for begin, _ in within), last]
    begin, end = max(zip(ends, begins, strict=True), key=lambda part: part[1] - part[0])
    return [Partly(share, group, begin, end, first, last)]


def _partly(
    run: Run,
    flows: Flows,
    asked: dict[str, _Asked],
    *,
    of_steps: bool,
    of_requests: bool,
) -> list[Partly]:
    spans = _spans(run)
    is_of_flows = not (of_steps or of_requests)
    counted = flow_rows.chosen(run, flows, finished=None) if is_of_flows else []
    of = flow_rows.read(run) if is_of_flows else {}
    workloads = run.scenario.get("workload") or []
    repeated = {steady.group_of(one) for one in workloads if _is_repeated(one)}
    found: list[Partly] = []
    for name, own in asked.items():
        if not own.groups & spans.keys():
            continue
        if not is_of_flows:
            of_jobs = repeated - own.groups if own.is_own_length else None
            first, last = _times_of_steps(run, flows, of_jobs, to_finish=of_steps)
        else:
            others = (spans.keys() & repeated if own.is_own_length else set(spans)) - own.groups
            starts = [of["start_ns"][n] for n in counted if of["group"][n] in others]
            first, last = min(starts, default=0.0), max(starts, default=0.0)
        enough = SHARE_OF_OWN if own.is_own_length else SHARE
        found += _partly_there(name, _there(run, own), first, last, enough)
    return found


def _times_of_steps(
    run: Run, flows: Flows, jobs: Collection[str] | None, *, to_finish: bool
) -> tuple[float, float]:
    """Return when the first step starts and the last one ends (or starts); 0, 0 of a single event.

    `jobs`: the groups whose steps count, None: all.
    """
    rows = [row for row in steps.own(run) if flows.group in (None, row["job"])]
    rows = [row for row in rows if jobs is None or row["job"] in jobs]
    starts = [row["start_ns"] for row in rows]
    if not rows or (len(set(starts)) == 1 and all(row["operation"] == "incast" for row in rows)):
        return 0.0, 0.0
    ends = [row["finish_ns"] for row in rows if row["finish_ns"] is not None] if to_finish else starts
    return min(starts), max(ends, default=0.0)
