"""Which flows of each run count: by group and size, and by when they start in the time of arrivals.

A sweep's report chooses them, or the options of `weftline compare`. A metric takes what of it can choose its
flows: a percentile of slowdowns all of it, a step its group, a percentile of queues nothing.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from weftline import _native, columns, quantities
from weftline.measures import early_ends, evidence, failing, flow_rows, steady
from weftline.measures.flow_rows import Flows
from weftline.measures.metrics import metric, split
from weftline.measures.pooling import pairs_by_seed, seed_of, shortened
from weftline.runs import Run

DRAWN = ("poisson", "permutation", "all-to-all", "bulk", "trace")
"""Workloads whose flows start at times that no scheme changes; others may wait for each other."""


class Doubts(TypedDict):
    """Parameters of `evidence.against`: texts of these kinds of reasons, "" for none."""

    left_out: str
    failed: str
    ended_early: str


@dataclass(frozen=True, kw_only=True)
class FlowChoice:
    """The flows of a group and of a range of sizes, without those that start too early or too late."""

    group: str | None = None
    min_size: int = 0
    max_size: int | None = None
    warmup: str = ""
    """A time, or a share such as "20%" of that in which flows start: those that start within do not count."""
    drain: str = ""
    """The same at the end."""

    @property
    def is_all(self) -> bool:
        """Whether all flows count."""
        return self == FlowChoice()

    def flows(self, name: str = "slowdown_p50") -> Flows:
        """Return which flows count for a metric, by group and size."""
        by_size = "sizes" in metric(name).chosen_by
        low, high = (self.min_size, self.max_size) if by_size else (0, None)
        return Flows(min_size=low, max_size=high, group=split(name)[1] or self.group)

    def of_run(self, run: Run, name: str = "slowdown_p50") -> Flows:
        """Return which flows of a run count for a metric, by their start too."""
        flows = self.flows(name)
        if not (self.warmup or self.drain) or "warmup" not in metric(name).chosen_by:
            return flows
        return steady.Window.of(run, self.warmup, self.drain).of_flows(flows)

    def other_flows(self, runs: Sequence[Run], others: Sequence[Run], name: str = "slowdown_p50") -> str:
        """Return under which seed two schemes count other flows for a metric, "" where they count the same.

        Times of start choose other flows where these depend on the scheme, as in a closed loop.
        ``"808 and 796 flows count under seed 1, 790 of them the same"``.
        """
        if not (self.warmup or self.drain) or "warmup" not in metric(name).chosen_by:
            return ""
        for pair in pairs_by_seed(runs, others):
            if all(_is_drawn(run) for run in pair):
                continue
            ours, theirs = (_started(run, self.of_run(run, name)) for run in pair)
            if ours != theirs:
                counts = f"{len(ours):,} and {len(theirs):,} flows count under seed {seed_of(pair[0])}"
                return f"{counts}, {len(ours & theirs):,} of them the same"
        return ""

    def counts_text(self, runs: Sequence[Run]) -> str:
        """Return how many flows of each group count in a run, ``"web 804 to 812 of 1,600"``; "" if all do."""
        if not (self.warmup or self.drain):
            return ""
        parts = [
            f"{group} {_span_text([a for a, _ in of])} of {_span_text([b for _, b in of])}"
            for group, of in self._counts(runs).items()
        ]
        return f"Flows that count in a run, by group: {shortened(parts)}." if parts else ""

    def left_out(self, runs: Sequence[Run], name: str) -> str:
        """Return of which groups no flow counts for a metric, because of when they start; "" if none.

        Of workloads that share a group, each counts by itself, as far as its time is known.

        ``"no flow of group incast counts, of 60 in a run: all start in the warm-up or the drain"``.
        """
        if not (self.warmup or self.drain) or "warmup" not in metric(name).chosen_by:
            return ""
        counts = self._counts(runs, name, by_workload=True)
        parts = [
            f"{group} counts, of {_span_text([all_of for _, all_of in of])} in a run"
            for group, of in counts.items()
            if len(counts) > 1 and any(chosen == 0 for chosen, _ in of)
        ]
        return f"no flow of group {shortened(parts)}: all start in the warm-up or the drain" if parts else ""

    def failed(self, runs: Sequence[Run], name: str) -> str:
        """Return which failures lie, wholly or in part, where flows start that do not count; "" if none.

        ``"a failure from 200 us to 400 us lies in the warm-up or the drain"``.
        """
        if not (self.warmup or self.drain) or "warmup" not in metric(name).chosen_by:
            return ""
        found: dict[tuple[float, float], None] = {}
        for run in runs:
            spans = [(one.begin, one.end) for one in failing.failures(run)]
            parts = self._parts_left_out(run, name) if spans else []
            found |= {
                span: None for span in spans if any(span[0] < end and span[1] > begin for begin, end in parts)
            }
        if not found:
            return ""
        texts = [
            f"from {quantities.time_text(begin)} to {quantities.time_text(end)}"
            for begin, end in sorted(found)
        ]
        what, lie = ("a failure", "lies") if len(texts) == 1 else (f"{len(texts)} failures", "lie")
        return f"{what} {shortened(texts)} {lie} wholly or partly in the warm-up or the drain"

    def ended_early(self, runs: Sequence[Run], name: str) -> str:
        """Return which workload ended before the flows that count did, as `early_ends.text` says it."""
        return early_ends.text(runs, name, [self.of_run(run, name) for run in runs])

    def doubts(self, runs: Sequence[Run], name: str) -> Doubts:
        """Return what the choice of flows and the ends of workloads say against a metric."""
        return {
            "left_out": self.left_out(runs, name),
            "failed": self.failed(runs, name),
            "ended_early": self.ended_early(runs, name),
        }

    def _parts_left_out(self, run: Run, name: str) -> list[tuple[float, float]]:
        """Return from when to when the flows of a group start that do not count for a metric."""
        flows, of = self.of_run(run, name), flow_rows.read(run)
        starts: dict[str, list[float]] = {}
        for group, start in zip(of["group"], of["start_ns"], strict=True):
            if flows.group in (None, group):
                starts.setdefault(group, []).append(start)
        found = []
        for group, ones in starts.items():
            reached, last = min(ones), max(ones)
            for first, end in sorted(flows.times_of(group)):
                found += [(reached, min(first, last))] if first > reached else []
                reached = max(reached, end)
            found += [(reached, last)] if last > reached else []
        return found

    def _counts(
        self, runs: Sequence[Run], name: str = "slowdown_p50", *, by_workload: bool = False
    ) -> dict[str, list[tuple[int, int]]]:
        """Return how many flows of each group count for a metric in each run, and how many there are."""
        counted: dict[str, list[tuple[int, int]]] = {}
        flows = self.flows(name)
        for run in runs:
            labels = _workloads(run) if by_workload else flow_rows.read(run)["group"]
            chosen, of = (
                Counter(labels[n] for n in flow_rows.chosen(run, one, finished=None))
                for one in (self.of_run(run, name), flows)
            )
            for group, count in of.items():
                counted.setdefault(group, []).append((chosen[group], count))
        return counted

    def value(self, run: Run, name: str) -> float | None:
        """Return a metric of a run over the flows that count."""
        return metric(split(name)[0]).value(run, self.of_run(run, name))

    def counted(self, runs: Sequence[Run], name: str) -> int:
        """Return how many finished flows, or requests, a metric is over, in the run with the fewest."""
        return min((evidence.count(run, name, self.of_run(run, name)) for run in runs), default=0)

    def counts_any(self, runs: Sequence[Run]) -> bool:
        """Return whether any flow of some runs counts, finished or not."""
        return any(flow_rows.chosen(run, self.of_run(run), finished=None) for run in runs)

    def unfinished(self, runs: Sequence[Run], name: str = "slowdown_p50") -> int:
        """Return how many flows that would count for a metric did not finish, in all runs."""
        return self.unfinished_of(runs, self.flows(name))

    def unfinished_of(self, runs: Sequence[Run], flows: Flows) -> int:
        """Return how many of these flows, without those that start too early or late, did not finish."""
        if not (self.warmup or self.drain):
            return evidence.unfinished(runs, flows)
        return sum(
            steady.unfinished_in(run, flows, self.warmup, self.drain)
            for run in runs
            if evidence.unfinished([run])
        )

    def undecided_text(self, runs: Sequence[Run], name: str) -> str:
        """Return `evidence.undecided_text` for the flows that count."""
        if not evidence.is_of_deadlines(name):
            return ""
        return evidence.undecided_text(name, runs, [self.of_run(run, name) for run in runs])

    def pooled(self, runs: Sequence[Run], name: str, counted: int | None) -> float | None:
        """Return `evidence.pooled_percentile` of the flows that count; `counted`: their number."""
        if not evidence.needed(name) or counted is None:
            return None
        flows = [self.of_run(run, name) for run in runs]
        return evidence.pooled_percentile(name, runs, flows, counted)

    def slowdown(self, run: Run, *, bins: int = 20, scheme: str = "equal-count") -> dict[str, Any]:
        """Return what `Run.slowdown` does, of the flows that count."""
        if (self.min_size, self.max_size, self.warmup, self.drain) == (0, None, "", ""):
            return run.slowdown(bins=bins, scheme=scheme, group=self.group)
        return slowdown_of(run, self.of_run(run), bins=bins, scheme=scheme)

    def sized_slowdowns(self, run: Run) -> tuple[Sequence[int], Sequence[float]]:
        """Return the sizes of the finished flows that count, ascending, and the slowdown of each."""
        of = flow_rows.read(run)
        size_of, slowdown_of = of["size_bytes"], of["slowdown"]
        rows = [n for n in flow_rows.chosen(run, self.of_run(run)) if slowdown_of[n] is not None]
        rows.sort(key=size_of.__getitem__)
        return array("Q", (size_of[n] for n in rows)), array("d", (slowdown_of[n] for n in rows))

    def text(self) -> str:
        """Return ``"All flows of group web count, except those that start in the first 1ms of ..."``."""
        parts = [f"of group {self.group}"] if self.group else []
        parts += [f"of at least {_size(self.min_size)}"] if self.min_size else []
        parts += [f"of at most {_size(self.max_size)}"] if self.max_size is not None else []
        ends = [f"the first {self.warmup}"] if self.warmup else []
        ends += [f"the last {self.drain}"] if self.drain else []
        window = f", except those that start in {' or '.join(ends)} of the arrivals" if ends else ""
        return f"{' '.join(['All flows', *parts])} count{window}"


def _is_drawn(run: Run) -> bool:
    return all(one.get("kind") in DRAWN for one in run.scenario.get("workload") or [])


def _started(run: Run, flows: Flows) -> set[int]:
    """Return the numbers of the flows that count, finished or not."""
    ids = columns.read(run.flows, ("flow_id",))["flow_id"]
    return {ids[n] for n in flow_rows.chosen(run, flows, finished=None)}


def _span_text(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _size(size: int) -> str:
    """Return a size as a scenario writes it, exactly: ``"20KB"``, ``"1500B"``."""
    units = {"GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}
    unit = next(unit for unit, factor in units.items() if size % factor == 0 and (size or factor == 1))
    return f"{size // units[unit]}{unit}"


def slowdown_of(run: Run, flows: Flows, *, bins: int, scheme: str) -> dict[str, Any]:
    """Return percentiles of the slowdowns of some flows by size (`Run.slowdown`)."""
    of, ids = flow_rows.read(run), columns.read(run.flows, ("flow_id",))["flow_id"]
    rows = [n for n in flow_rows.chosen(run, flows) if of["slowdown"][n] is not None]
    ids, sizes, values = ([column[n] for n in rows] for column in (ids, of["size_bytes"], of["slowdown"]))
    return json.loads(_native.slowdown_of(ids, sizes, values, bins, scheme))


def _workloads(run: Run) -> list[str]:
    """Return the group of each flow, with the start of its workload where several have this group.

    Of workloads whose times overlap, a flow belongs to the one that starts last before it.
    """
    rows, workloads = flow_rows.read(run), run.scenario.get("workload") or []
    times: dict[str, list[tuple[float, float]]] = {}
    for one in workloads:
        times.setdefault(steady.group_of(one), []).append(steady.times_within(one, workloads))
    several = {group: sorted(set(of)) for group, of in times.items() if len(set(of)) > 1}
    if not several:
        return rows["group"]

    def label(group: str, start: float) -> str:
        begins = [begin for begin, end in several.get(group, ()) if begin <= start <= end]
        return f"{group} from {quantities.time_text(begins[-1])} on" if begins else group

    return [label(*pair) for pair in zip(rows["group"], rows["start_ns"], strict=True)]
