"""Which flows of a run count, and whether the run had come to its steady state.

A run begins with an empty network, and after the last flow has started it drains: flows at both ends meet
less traffic than the others. `Window` leaves them out by when they start; they are simulated all the same,
and all flows run to their end. Without one all flows count.

Whether a run was steady is judged by the number of flows under way, as time averages over the quarters of the
time in which flows start. A load that the network cannot carry, or a run shorter than its longest flows, has
that number still growing from the third quarter to the fourth. It is judged over the seeds together, so that
one late elephant is not taken for a trend. With sizes of a long tail that says little of short runs, so the
bytes are looked at too: where more than `LONG` of them are of flows that take longer alone than half of the
time in which flows start, a run ends before these flows meet each other as they would. Requests that wait for
their connection are not under way, however many they are: of these, those count that had not started when the
last one was drawn.

Source: averages over disjoint parts of a run compared, as in Law, Simulation Modeling and Analysis, 5th ed.,
§9.5.1; the number under way and the time spent are tied by Little's law.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from weftline import columns, quantities
from weftline.measures import flow_rows, stats
from weftline.measures.flow_rows import Flows
from weftline.runs import Run
from weftline.sweeps.sweepfile import share, time_ns

GROWTH = 0.1
"""Flows under way that grow by more than this share from the third quarter to the fourth are growing."""
MAX_LOOKED_AT = 20
GROWING = (
    "flows under way were still growing at the end of the arrivals: not a steady state; run it longer, "
    "unless more is offered than a link carries (weftline check)"
)
LATE = 0.05
"""Share of the requests that may still wait for their connections when the last one has been drawn."""
MIN_LATE = 5
LONG = 0.1
"""Share of the bytes up to which flows may take longer alone than half of the time in which flows start.

On a star with fb-hadoop at a load of 0.4 it names the sweeps of five seeds whose intervals of the median
slowdown held the long-run value in 9 of 50 cases, and none of those that held it in 13 of 14.
"""
TOO_SHORT = (
    "over a tenth of the bytes are of flows that take longer alone than half of the time in which flows "
    "start: not a steady state; run it longer"
)
BEGINNING = "the first quarter of the arrivals met fewer flows than the second half: leave it out (warmup)"
STILL_BEGINNING = (
    "the first quarter of the arrivals that count met fewer flows than their second half: leave out more of "
    "them (warmup)"
)
BEGINNINGS = (BEGINNING, STILL_BEGINNING)


@dataclass(frozen=True, kw_only=True)
class Window:
    """Flows that start from `first_ns` to `last_ns` count."""

    first_ns: float
    last_ns: float

    @classmethod
    def of(cls, run: Run, warmup: str, drain: str) -> Window:
        """Return the window that leaves out the first `warmup` and the last `drain` of the time of arrivals.

        Each is a time such as ``"1ms"``, a share such as ``"20%"`` or empty.
        """
        first, last = flow_rows.starts_ns(run)
        return cls(first_ns=first + _span(warmup, last - first), last_ns=last - _span(drain, last - first))

    def of_flows(self, flows: Flows) -> Flows:
        """Return which flows count: of `flows`, those that start in the window."""
        return replace(flows, first_ns=self.first_ns, last_ns=self.last_ns)


def _span(text: str, whole: float) -> float:
    if not text:
        return 0.0
    return whole * share(text) if "%" in text else time_ns(text)


def unfinished_in(run: Run, flows: Flows, warmup: str, drain: str) -> int:
    """Return how many flows of a window did not finish."""
    return len(flow_rows.chosen(run, Window.of(run, warmup, drain).of_flows(flows), finished=False))


def under_way(run: Run, warmup: str = "") -> list[float] | None:
    """Return the mean number of flows under way in each quarter of the time in which flows start.

    That time begins after `warmup`. None if all of them start at one moment.
    """
    since = Window.of(run, warmup, "").first_ns if warmup else 0.0
    return _under_way(run.folder, (run.out / "flows.parquet").stat().st_mtime_ns, since)


@lru_cache(maxsize=4096)
def _under_way(folder: Path, modified: int, since: float) -> list[float] | None:
    from weftline import _native

    del modified  # part of the key alone
    of = columns.read(_native.table(str(folder), "flows"), ("start_ns", "finish_ns"))
    starts = of["start_ns"]
    if len(starts) < 2 or min(starts) == max(starts):
        return None
    first, last = max(since, min(starts)), max(starts)
    if first >= last:
        return None
    quarter = (last - first) / 4
    found = [0.0] * 4
    for start, finish in zip(starts, of["finish_ns"], strict=True):
        end = last if finish is None else min(finish, last)
        for n in range(4):
            found[n] += max(0.0, min(end, first + (n + 1) * quarter) - max(start, first + n * quarter))
    return [total / quarter for total in found]


def late_requests(run: Run) -> tuple[int, int]:
    """Return how many requests started after the last one was drawn, and of how many.

    They are those of workloads "request-response": on a connection a request waits for the response before
    it, so with a load that is not carried requests start later and later. 0, 0 of a run without such flows.
    """
    windows = []
    for workload in run.scenario.get("workload") or []:
        if workload.get("kind") == "request-response" and "duration" in workload:
            end = time_ns(workload.get("start", "0s")) + time_ns(workload["duration"])
            size = quantities.parse_bytes(workload.get("request_size", "100B"))
            windows.append((str(workload.get("group", "request-response")), size, end))
    file = run.out / "flows.parquet"
    if not windows or not file.exists():
        return 0, 0
    return _late_requests(run.folder, file.stat().st_mtime_ns, tuple(windows))


@lru_cache(maxsize=4096)
def _late_requests(
    folder: Path, modified: int, windows: tuple[tuple[str, float, float], ...]
) -> tuple[int, int]:
    from weftline import _native

    del modified  # part of the key alone
    of = columns.read(_native.table(str(folder), "flows"), ("start_ns", "size_bytes", "group"))
    rows = list(zip(of["start_ns"], of["size_bytes"], of["group"], strict=True))
    found = [start > end for group, size, end in windows for start, *one in rows if one == [size, group]]
    return sum(found), len(found)


def waited_text(runs: Sequence[Run]) -> str:
    """Return the sentence on requests of these runs that waited for their connections; "" if few did."""
    counts = [late_requests(run) for run in runs]
    late, of = sum(count for count, _ in counts), sum(count for _, count in counts)
    if late < MIN_LATE or late <= LATE * of:
        return ""
    return (
        f"{late:,} of {of:,} requests started only after the last one had been drawn: they waited for their "
        "connections, which completion times leave out, and the load was not offered"
    )


def remark(runs: Sequence[Run], *, warmup: str | None) -> str:
    """Return what is wrong with the steadiness of runs that differ in the seed alone, "" if nothing shows.

    Flows that do not arrive at random over time have no steady state and are not checked. At
    most `MAX_LOOKED_AT` runs are looked at. `warmup`: the time or share at the beginning that is left out
    already, and whose rest has to be steady; None: the beginning is not looked at.
    """
    runs = runs[:MAX_LOOKED_AT]
    if not runs or not any(map(_is_random, runs[0].scenario.get("workload", []))):
        return ""
    if text := waited_text(runs):
        return text
    quarters = [found for run in runs if (found := under_way(run)) is not None]
    if not quarters:
        return ""
    if _grows([(q[2], q[3]) for q in quarters]):
        return GROWING
    counts = [long_bytes(run) for run in runs]
    if sum(count for count, _ in counts) > LONG * sum(count for _, count in counts):
        return TOO_SHORT
    if warmup is None:
        return ""
    counted = [found for run in runs if (found := under_way(run, warmup)) is not None]
    if counted and _grows([(q[0], (q[2] + q[3]) / 2) for q in counted]):
        return STILL_BEGINNING if warmup else BEGINNING
    return ""


def long_bytes(run: Run) -> tuple[float, float]:
    """Return the bytes of flows that take longer alone than half of the time in which flows start, and all.

    Those of workloads whose flows arrive at random: a flow of another one may be meant to last.
    """
    workloads = run.scenario.get("workload") or []
    groups = (str(one.get("group") or one.get("kind")) for one in workloads if _is_random(one))
    modified = (run.out / "flows.parquet").stat().st_mtime_ns
    return _long_bytes(run.folder, modified, tuple(dict.fromkeys(groups)))


@lru_cache(maxsize=4096)
def _long_bytes(folder: Path, modified: int, groups: tuple[str, ...]) -> tuple[float, float]:
    from weftline import _native

    del modified  # part of the key alone
    names = ("start_ns", "size_bytes", "group", "ideal_fct_ns")
    of = columns.read(_native.table(str(folder), "flows"), names)
    half = (max(of["start_ns"], default=0.0) - min(of["start_ns"], default=0.0)) / 2
    rows = zip(of["size_bytes"], of["group"], of["ideal_fct_ns"], strict=True)
    found = [(size, (ideal or 0.0) > half) for size, group, ideal in rows if group in groups]
    return sum(size for size, is_long in found if is_long), sum(size for size, _ in found)


def _is_random(workload: Mapping[str, Any]) -> bool:
    """Return whether the flows of a workload arrive at random times."""
    kind = workload.get("kind")
    return kind in ("poisson", "request-response") or (
        kind == "incast" and workload.get("arrivals") == "poisson"
    )


def _grows(pairs: Sequence[tuple[float, float]]) -> bool:
    """Return whether the second of each pair is above the first, by more than `GROWTH` and beyond chance."""
    before = math.fsum(a for a, _ in pairs) / len(pairs)
    grown = stats.estimate([b - a for a, b in pairs])
    if grown is None or before <= 0 or grown.mean <= GROWTH * before:
        return False
    if grown.low is None:
        # One run says little: only what it would be under an overload, where the number grows with time.
        return before >= 5 and grown.mean > 0.25 * before
    return grown.low > 0
