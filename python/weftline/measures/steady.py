"""Which flows of a run count, and whether the run had come to its steady state.

A run begins with an empty network, and after the last flow has started it drains: flows at both ends meet
less traffic than the others. `Window` leaves them out by when they start; they are simulated all the same,
and all flows run to their end. Without one all flows count.

Whether a run was steady is judged by the number of flows under way, as time averages over the quarters of the
time in which flows start. Each workload has its own: an overload of 5 ms is not hidden by another workload
that lasts for 50 ms. Of a workload by a number of flows (`count`), the table of flows does not say which they
are: it lasts at least until as many flows of its group have started since its own start, and growth is looked
for until then as well, in the longest time in which no other workload of the group begins. A load that the
network cannot carry, or a run shorter than its longest flows, has that number still growing from the third
quarter to the fourth. It is judged over the seeds together, so that one late elephant is not taken for a
trend. With sizes of a long tail that says little of short runs, so the bytes are looked at too: where more
than `LONG` of them are of flows that take longer alone than half of the time in which flows start, a run ends
before these flows meet each other as they would. Requests that wait for their connection are not under way,
however many they are: of these, those count that had not started when the last one was drawn.

Rounds of incasts and permutations that follow each other at equal times are looked at for growth alone, over
quarters of whole rounds. Quarters that a failure concerns are left out.

Source: averages over disjoint parts of a run compared, as in Law, Simulation Modeling and Analysis, 5th ed.,
§9.5.1; the number under way and the time spent are tied by Little's law.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from weftline import columns, quantities
from weftline.measures import failing, flow_rows, stats
from weftline.measures.flow_rows import Flows
from weftline.runs import Run
from weftline.sweeps.sweepfile import share, time_ns

GROWTH = 0.1
"""Flows under way that grow by more than this share from the third quarter to the fourth are growing."""
LASTING = 0.9
"""A workload that lasts for more than this share of all arrivals is looked at with the others."""
MAX_LOOKED_AT = 20
GROWING = (
    "flows under way were still growing at the end of the arrivals: not a steady state; run it longer, "
    "unless more is offered than a link carries (weftline check)"
)
GROWING_BY_FAILURE = (
    "flows under way grew at the end of the arrivals, and a failure begins or ends in their second half: "
    "whether the run was steady is not known; let arrivals last longer after it"
)
LATE = 0.05
"""Share of the requests that may still wait for their connections when the last one has been drawn."""
MIN_LATE = 5
MIN_ROUNDS = 8
"""With fewer rounds of an incast or permutation a quarter is of one, and shows no growth."""
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
WHOLE_BEGINNING = (
    "the first quarter of the arrivals met fewer flows than the second half, and belongs to the number, on "
    "which warmup has no effect: run it longer"
)
BEGINNINGS = (BEGINNING, STILL_BEGINNING, WHOLE_BEGINNING)


@dataclass(frozen=True, kw_only=True)
class Window:
    """Flows that start from `first_ns` to `last_ns` count; of some groups, those of times of their own."""

    first_ns: float
    last_ns: float
    by_group: tuple[tuple[str, float, float], ...] = ()

    @classmethod
    def of(cls, run: Run, warmup: str, drain: str) -> Window:
        """Return the window that leaves out the first `warmup` and the last `drain` of the time of arrivals.

        Each is a time such as ``"1ms"``, a share such as ``"20%"`` or empty. A time counts from the first and
        the last start of all flows. A share is one of the time in which flows of a workload start, where they
        arrive at random: else a workload with a short time would be left out as a whole.
        """
        first, last = flow_rows.starts_ns(run)
        found = cls(first_ns=first + _span(warmup, last - first), last_ns=last - _span(drain, last - first))
        if "%" not in warmup + drain:
            return found
        own = []
        for group, begin, end in _arrivals(run):
            low = begin + _span(warmup, end - begin) if "%" in warmup else found.first_ns
            high = end - _span(drain, end - begin) if "%" in drain else found.last_ns
            own.append((group, low, high))
        return replace(found, by_group=tuple(own))

    def of_flows(self, flows: Flows) -> Flows:
        """Return which flows count: of `flows`, those that start in the window."""
        return replace(flows, first_ns=self.first_ns, last_ns=self.last_ns, by_group=self.by_group)


def _arrivals(run: Run) -> list[tuple[str, float, float]]:
    """Return group, first and last start of each workload whose flows arrive at random.

    Workloads of one group whose times overlap are one.
    """
    of_groups: dict[str, list[tuple[float, float]]] = {}
    workloads = run.scenario.get("workload") or []
    for workload in workloads:
        if is_random(workload):
            of_groups.setdefault(group_of(workload), []).append(times_within(workload, workloads))
    begins: list[tuple[str, float, float]] = []
    for group, times in of_groups.items():
        starts: list[float] = []
        reached = -math.inf
        for start, end in sorted(times):
            starts += [start] if start > reached else []
            reached = max(reached, end)
        # What starts later than asked belongs to the workload before.
        begins += [
            (group, *ends) for ends in zip([-math.inf, *starts[1:]], [*starts[1:], math.inf], strict=True)
        ]
    modified = (run.out / "flows.parquet").stat().st_mtime_ns
    return _starts_within(run.folder, modified, tuple(begins))


@lru_cache(maxsize=4096)
def _starts_within(
    folder: Path, modified: int, times: tuple[tuple[str, float, float], ...]
) -> list[tuple[str, float, float]]:
    """Return group, first and last start of the flows that start within times, the ends left out."""
    from weftline import _native

    del modified  # part of the key alone
    of = columns.read(_native.table(str(folder), "flows"), ("start_ns", "group"))
    rows = list(zip(of["group"], of["start_ns"], strict=True))
    found = []
    for group, begin, end in times:
        starts = [start for name, start in rows if name == group and begin <= start < end]
        found += [(group, min(starts), max(starts))] if starts else []
    return found


def asked_times(workload: Mapping[str, Any]) -> tuple[float, float]:
    """Return from when to when flows of a workload are to start, as far as it says; else to infinity."""
    start = time_ns(str(workload.get("start", "0s")))
    duration = str(workload.get("duration", "auto"))
    if duration != "auto":
        return start, start + time_ns(duration)
    count, gap = int(workload.get("count", 0)), apart(workload)
    if gap > 0 and (count or workload.get("kind") == "permutation"):
        return start, start + ((count or int(workload["repeat"])) - 0.5) * gap
    if workload.get("kind") == "incast" and workload.get("arrivals", "once") == "once":
        is_at_once = time_ns(str(workload.get("stagger", "0s"))) == 0
        return start, start + 1 if is_at_once else math.inf
    return start, math.inf


def times_within(workload: Mapping[str, Any], workloads: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return `asked_times`, to the start of a later workload of the same group where the end is not known."""
    start, end = asked_times(workload)
    if end < math.inf:
        return start, end
    begins = [asked_times(other)[0] for other in workloads if group_of(other) == group_of(workload)]
    later = min((begin for begin in begins if begin > start), default=math.inf)
    return start, math.nextafter(later, 0.0) if later < math.inf else later


def group_of(workload: Mapping[str, Any]) -> str:
    """Return the group of the flows of a workload."""
    return str(workload.get("group") or workload.get("kind"))


@dataclass(frozen=True)
class Arrivals:
    """Flows that arrive at random in one span of time: of each group those that start within times."""

    groups: tuple[tuple[str, float, float], ...]

    def rows(self, groups: Sequence[str], starts: Sequence[float]) -> list[int]:
        """Return which of the flows with these groups and starts are of them."""
        whole = {name for name, *times in self.groups if times == [-math.inf, math.inf]}
        parts = [one for one in self.groups if one[0] not in whole]
        return [
            n
            for n, (group, start) in enumerate(zip(groups, starts, strict=True))
            if group in whole or any(name == group and first <= start <= last for name, first, last in parts)
        ]


def arrivals(run: Run, group: str | None = None) -> list[Arrivals]:
    """Return the workloads of a run whose flows arrive at random, those of the same times together.

    With `group` those of this group, if there are any.
    """
    workloads = run.scenario.get("workload") or []
    chosen = [one for one in workloads if is_random(one)]
    chosen = [one for one in chosen if group_of(one) == group] or chosen
    by_times: dict[tuple[float, float], dict[tuple[str, float, float], None]] = {}
    for one in chosen:
        times = times_within(one, workloads)
        alone = all(
            times_within(other, workloads) == times for other in workloads if group_of(other) == group_of(one)
        )
        within = (-math.inf, math.inf) if alone else times
        by_times.setdefault(times, {})[group_of(one), *within] = None
    return [Arrivals(tuple(groups)) for groups in by_times.values()]


def _by_count(run: Run, group: str | None) -> list[Arrivals | None]:
    """Return the flows that start while a workload by a number of flows lasts, for each one of `arrivals`.

    None: its time is about that of all arrivals, or has no flows.
    """
    workloads = run.scenario.get("workload") or []
    chosen = [one for one in workloads if is_random(one)]
    if len(chosen) < 2:
        return []
    found: list[Arrivals | None] = []
    for one in [one for one in chosen if group_of(one) == group] or chosen:
        (start, end), count = asked_times(one), int(one.get("count", 0))
        if end < math.inf or count == 0:
            continue
        if one.get("kind") == "incast":
            count *= max(int(one.get("senders", 1)), 1)
        begins = {asked_times(other)[0] for other in workloads if group_of(other) == group_of(one)}
        later = tuple(sorted(begin for begin in begins if begin > start))
        modified = (run.out / "flows.parquet").stat().st_mtime_ns
        found.append(_first_flows(run.folder, modified, group_of(one), start, count, later))
    return found


@lru_cache(maxsize=4096)
def _first_flows(
    folder: Path, modified: int, group: str, begin: float, count: int, later: tuple[float, ...]
) -> Arrivals | None:
    """Return the first flows of a group since a time, in the longest part without one of the later times."""
    from weftline import _native

    del modified  # part of the key alone
    of = columns.read(_native.table(str(folder), "flows"), ("start_ns", "group"))
    rows = zip(of["group"], of["start_ns"], strict=True)
    starts = sorted(start for name, start in rows if name == group and start >= begin)[:count]
    if not starts or starts[-1] - begin > LASTING * (max(of["start_ns"]) - begin):
        return None
    times = [begin, *(time for time in later if time < starts[-1]), starts[-1]]
    first, last = max(itertools.pairwise(times), key=lambda part: part[1] - part[0])
    return Arrivals(((group, first, last),))


def _span(text: str, whole: float) -> float:
    if not text:
        return 0.0
    return whole * share(text) if "%" in text else time_ns(text)


def unfinished_in(run: Run, flows: Flows, warmup: str, drain: str) -> int:
    """Return how many flows of a window did not finish."""
    return len(flow_rows.chosen(run, Window.of(run, warmup, drain).of_flows(flows), finished=False))


def rounds(run: Run, group: str | None = None) -> list[tuple[Arrivals, float]]:
    """Return the workloads of a run that repeat their flows at equal times, and how far these are apart.

    With `group` those of this group alone, if it has any or arrives at random.
    """
    workloads = run.scenario.get("workload") or []
    found = [one for one in workloads if apart(one) > 0]
    own = [one for one in found if group_of(one) == group]
    if own or any(group_of(one) == group and is_random(one) for one in workloads):
        found = own
    return [(_alone(one, workloads), apart(one)) for one in found]


def _alone(workload: Mapping[str, Any], workloads: Sequence[Mapping[str, Any]]) -> Arrivals:
    """Return the flows of one workload: those of its group, in its time if others have this group too."""
    shared = sum(group_of(other) == group_of(workload) for other in workloads) > 1
    times = times_within(workload, workloads) if shared else (-math.inf, math.inf)
    return Arrivals(((group_of(workload), *times),))


def apart(workload: Mapping[str, Any]) -> float:
    """Return the time between rounds of a workload in nanoseconds, 0 if it has no rounds."""
    if workload.get("kind") == "incast" and workload.get("arrivals") == "periodic":
        return time_ns(str(workload.get("every", "100us")))
    if workload.get("kind") == "permutation" and int(workload.get("repeat", 1)) > 1:
        return time_ns(str(workload.get("every", "0ps")))
    return 0.0


def _under_way_in_rounds(run: Run, of: Arrivals, apart: float) -> list[float] | None:
    """Return the mean number of flows under way in each quarter of the rounds, the first ones left out.

    Rounds are whole in a quarter, since the number of flows under way changes in each.
    """
    rows = flow_rows.read(run)
    chosen = of.rows(rows["group"], rows["start_ns"])
    flows = [(rows["start_ns"][n], rows["fct_ns"][n]) for n in chosen]
    first, last = (
        min((start for start, _ in flows), default=0.0),
        max((start for start, _ in flows), default=0.0),
    )
    count = int((last - first) / apart + 1e-6) + 1
    # Where each flow ends before the next round, nothing is left over that could grow.
    if count < MIN_ROUNDS or all(took is not None and took <= apart for _, took in flows):
        return None
    quarter = count // 4 * apart
    begin = first + count * apart - 4 * quarter
    found = [0.0] * 4
    for start, took in flows:
        end = math.inf if took is None else start + took
        for n in range(4):
            low = begin + n * quarter
            found[n] += max(0.0, min(end, low + quarter) - max(start, low))
    return [total / quarter for total in found]


def under_way(run: Run, of: Arrivals, warmup: str = "") -> list[float] | None:
    """Return the mean number of flows under way in each quarter of the time in which they start.

    `of`: which flows. That time begins after `warmup`. None if all of them start at one moment.
    """
    modified = (run.out / "flows.parquet").stat().st_mtime_ns
    return _under_way(run.folder, modified, of, warmup)


@lru_cache(maxsize=4096)
def _under_way(folder: Path, modified: int, arrived: Arrivals, warmup: str) -> list[float] | None:
    from weftline import _native

    del modified  # part of the key alone
    of = columns.read(_native.table(str(folder), "flows"), ("start_ns", "finish_ns", "group"))
    rows = arrived.rows(of["group"], of["start_ns"])
    starts = [of["start_ns"][n] for n in rows]
    times = _counted_times(starts, min(of["start_ns"], default=0.0), warmup)
    if times is None:
        return None
    first, last = times
    quarter = (last - first) / 4
    found = [0.0] * 4
    for start, finish in zip(starts, (of["finish_ns"][n] for n in rows), strict=True):
        end = last if finish is None else min(finish, last)
        for n in range(4):
            found[n] += max(0.0, min(end, first + (n + 1) * quarter) - max(start, first + n * quarter))
    return [total / quarter for total in found]


def _counted_times(starts: Sequence[float], begin: float, warmup: str) -> tuple[float, float] | None:
    """Return the first and the last of these starts that count after a warm-up; None if they are one time.

    `begin`: the first start of all flows, from which a warm-up counts that is a time.
    """
    first, last = min(starts, default=0.0), max(starts, default=0.0)
    if first >= last:
        return None
    first += _span(warmup, last - first) if "%" in warmup else 0.0
    if warmup and "%" not in warmup:
        first = max(first, begin + _span(warmup, 0.0))
    return (first, last) if first < last else None


def times_of(run: Run, of: Arrivals, warmup: str = "") -> tuple[float, float] | None:
    """Return the first and the last start of flows after a warm-up; None if all start at one moment."""
    rows = flow_rows.read(run)
    starts = [rows["start_ns"][n] for n in of.rows(rows["group"], rows["start_ns"])]
    return _counted_times(starts, min(rows["start_ns"], default=0.0), warmup)


def _growing_text(runs: Sequence[Run], of: Arrivals) -> str:
    """Return the remark on flows under way that grow, which a failure may have caused."""
    for run in runs:
        if found := failing.failures(run):
            times = times_of(run, of)
            if times and failing.begins_or_ends(found, sum(times) / 2, times[1]):
                return GROWING_BY_FAILURE
    return GROWING


def _without_failures(run: Run, of: Arrivals, warmup: str) -> set[int]:
    """Return the quarters of the arrivals that count which no failure concerns."""
    found = failing.failures(run)
    times = times_of(run, of, warmup) if found else None
    return set(range(4)) - (failing.concerned(found, times) if times else set())


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


def remark(
    runs: Sequence[Run], *, warmup: str | None, group: str | None = None, is_whole: bool = False
) -> str:
    """Return what is wrong with the steadiness of runs that differ in the seed alone, "" if nothing shows.

    Flows that arrive neither at random over time nor in rounds have no steady state and are not checked. Each
    workload is looked at in the time in which its own flows start, those of the same times together. At most
    `MAX_LOOKED_AT` runs are looked at.

    Parameters
    ----------
    warmup : str or None
        The time or share at the beginning that is left out already, and whose rest has to be steady; None:
        the beginning is not looked at.
    group : str, optional
        The flows that a number is of: where they arrive at random, these alone are looked at.
    is_whole : bool
        Whether the number is of the whole run, so that no warm-up leaves its beginning out.
    """
    warmup = "" if is_whole and warmup is not None else warmup
    runs = runs[:MAX_LOOKED_AT]
    found = arrivals(runs[0], group) if runs else []
    for repeated, gap in rounds(runs[0], group) if runs else []:
        quarters = [q for run in runs if (q := _under_way_in_rounds(run, repeated, gap)) is not None]
        if quarters and _grows([(q[2], q[3]) for q in quarters]):
            return _growing_text(runs, repeated)
    if not found:
        return ""
    if text := waited_text(runs):
        return text
    looked_at = []
    for one in found:
        quarters = [q for run in runs if (q := under_way(run, one)) is not None]
        looked_at += [(one, quarters)] if quarters else []
    for one, quarters in looked_at:
        if _grows([(q[2], q[3]) for q in quarters]):
            return _growing_text(runs, one)
    for of_runs in zip(*(_by_count(run, group) for run in runs), strict=True):
        lasting = [(run, one) for run, one in zip(runs, of_runs, strict=True) if one is not None]
        quarters = [q for run, one in lasting if (q := under_way(run, one)) is not None]
        if quarters and _grows([(q[2], q[3]) for q in quarters]):
            return _growing_text(runs, lasting[0][1])
    for one, _ in looked_at:
        counts = [long_bytes(run, one) for run in runs]
        if sum(count for count, _ in counts) > LONG * sum(count for _, count in counts):
            return TOO_SHORT
    if warmup is None:
        return ""
    for one, _ in looked_at:
        pairs = []
        for run in runs:
            means, usable = under_way(run, one, warmup), _without_failures(run, one, warmup)
            later = usable & {2, 3}
            if means is not None and 0 in usable and later:
                pairs.append((means[0], sum(means[n] for n in later) / len(later)))
        if pairs and _grows(pairs):
            return WHOLE_BEGINNING if is_whole else STILL_BEGINNING if warmup else BEGINNING
    return ""


def long_bytes(run: Run, of: Arrivals) -> tuple[float, float]:
    """Return the bytes of flows that take longer alone than half of the time in which they start, and all.

    `of`: which flows, all of which arrive at random: another one may be meant to last.
    """
    return _long_bytes(run.folder, (run.out / "flows.parquet").stat().st_mtime_ns, of)


@lru_cache(maxsize=4096)
def _long_bytes(folder: Path, modified: int, arrived: Arrivals) -> tuple[float, float]:
    from weftline import _native

    del modified  # part of the key alone
    names = ("start_ns", "size_bytes", "group", "ideal_fct_ns")
    of = columns.read(_native.table(str(folder), "flows"), names)
    rows = arrived.rows(of["group"], of["start_ns"])
    starts = [of["start_ns"][n] for n in rows]
    half = (max(starts, default=0.0) - min(starts, default=0.0)) / 2
    found = [(of["size_bytes"][n], (of["ideal_fct_ns"][n] or 0.0) > half) for n in rows]
    return sum(size for size, is_long in found if is_long), sum(size for size, _ in found)


def is_random(workload: Mapping[str, Any]) -> bool:
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
