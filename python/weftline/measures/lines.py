"""Runs as the lines of a figure: one label, one run per seed, values averaged over the seeds.

Which runs make one line is decided by `pooling`, what it is called by `labels`. The interval of a mean is
the 95 % Student interval over the seeds; a single run has no interval.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from weftline import _native
from weftline.measures import stats
from weftline.measures.labels import labels, scheme_name
from weftline.measures.metrics import metric
from weftline.measures.pooling import Pool, key_of, pools, status_of
from weftline.runs import Run

if TYPE_CHECKING:
    from weftline.measures.flow_choice import FlowChoice
    from weftline.measures.queue_ports import Ports

__all__ = ["PERCENTILES", "Line", "Mean", "at_share", "curves_by_size", "lines_of", "scheme_name"]

Choice = tuple[tuple[str, str], ...]
PERCENTILES = ("p50", "p95", "p99")


@dataclass(frozen=True)
class Mean:
    """A mean over seeds and half the width of its 95 % interval (None for one observation)."""

    value: float
    interval: float | None = None
    count: int | None = None
    """How many runs have the value, where that is known."""
    bin_width: float = 0.0
    """Width of the bins whose lower edges the values are, which `interval` leaves out; 0: they are exact."""
    ends: tuple[float, float] | None = None
    """The ends of the interval, without bins, where they are not exactly as far from the mean."""
    oddity: stats.Oddity | None = None
    """What shows that the values are far from normal, so that the interval holds less than it says."""

    @classmethod
    def of(
        cls,
        values: Sequence[float | None],
        method: str = "t",
        *,
        keys: Sequence[Hashable] | None = None,
        bin_width: float = 0.0,
    ) -> Mean | None:
        """Return the mean of what is there, None if nothing is; arguments are those of `stats.estimate`."""
        found = stats.estimate(values, method=method, keys=keys, bin_width=bin_width)
        return None if found is None else cls.of_estimate(found)

    @classmethod
    def of_estimate(cls, found: stats.Estimate, scale: float = 1.0) -> Mean:
        """Return an estimate as a mean, times `scale`."""
        half = None if found.half is None else scale * (found.half - found.bin_width / 2)
        ends = None
        if found.low is not None and found.high is not None:
            low, high = found.low, found.high - found.bin_width
            if not stats.is_even(found.mean, low, high, by=1e-9):
                ends = (low * scale, high * scale)
        odd = found.oddity and replace(found.oddity, value=found.oddity.value * scale)
        return cls(found.mean * scale, half, found.count, found.bin_width * scale, ends, odd)

    def scaled(self, by: float) -> Mean:
        """Return the mean and its interval times a factor."""
        interval = None if self.interval is None else self.interval * by
        ends = None if self.ends is None else (self.ends[0] * by, self.ends[1] * by)
        odd = self.oddity and replace(self.oddity, value=self.oddity.value * by)
        width = self.bin_width * by
        return replace(self, value=self.value * by, interval=interval, bin_width=width, ends=ends, oddity=odd)

    @property
    def low(self) -> float:
        """Lower end of the interval; the mean itself without one."""
        return self.ends[0] if self.ends else self.value - (self.interval or 0)

    @property
    def high(self) -> float:
        """Upper end of the interval, at the upper edges of bins; the mean itself without one."""
        high = self.ends[1] if self.ends else self.value + (self.interval or 0)
        return high if self.interval is None else high + self.bin_width

    def text(self, write: Callable[[float | None], str]) -> str:
        """Return ``"1.23"``, ``"1.23 ±0.05"``, or both ends, each number as `write` writes it.

        Where the values are far from normal, what shows it: ``"100 ±278 (0 in 4 of 5 seeds)"``.
        """
        odd = f" ({self.oddity.text(write)})" if self.oddity else ""
        uneven = self.ends is not None and not stats.is_even(self.value, *self.ends)
        if self.interval is None:
            return write(self.value)
        if self.bin_width or uneven:
            low = max(0.0, self.low) if self.bin_width else self.low
            return f"{write(self.value)} [{write(low)}, {write(self.high)}]{odd}"
        return f"{write(self.value)} ±{write(self.interval)}{odd}"


@dataclass
class Line:
    """One scheme: its runs differ in the seed alone."""

    label: str
    runs: list[Run]
    group: str | None = None
    """Only the flows of this group count for slowdowns; all without it."""
    place: str = ""
    """Its variant of the axis of x, in a figure that has one."""
    sizes: tuple[int, int | None] = (0, None)
    """Minimum and maximum size in bytes of the flows that metrics of flows count."""
    pool: Pool | None = None
    """What its runs have in common, where they were pooled by it."""
    choice: Choice = ()
    """Its variant of each axis, where it is a combination of a sweep."""
    asked: tuple[int, ...] = ()
    """The seeds that it was to be run with, those of failed runs among them; () where that is not known."""
    warnings: list[str] = field(default_factory=list)
    """What deserves a look before its numbers are trusted."""
    chosen: FlowChoice | None = None
    """Which flows count everywhere, in tables by size and figures too; its group is that of the line."""
    interval: str = "t"
    """How the interval of a mean is found, one of `stats.METHODS`."""

    @cached_property
    def keys(self) -> list[Hashable]:
        """What each of its runs is: equal ones are one observation."""
        return list(map(key_of, self.runs))

    @cached_property
    def counts(self) -> FlowChoice:
        """Which flows count in metrics."""
        from weftline.measures.flow_choice import FlowChoice

        own = FlowChoice(min_size=self.sizes[0], max_size=self.sizes[1])
        return replace(self.chosen or own, group=self.group)

    @cached_property
    def by_size(self) -> FlowChoice:
        """Which flows count in tables by size."""
        from weftline.measures.flow_choice import FlowChoice

        return replace(self.chosen or FlowChoice(), group=self.group)

    @cached_property
    def queue_ports(self) -> Ports | None:
        """Which ports its queue histograms are of, by its first run; None where that is not known."""
        from weftline.measures import queue_ports

        return queue_ports.of_run(self.runs[0]) if self.runs else None

    @cached_property
    def _slowdowns(self) -> dict[tuple[int, int, str], dict[str, Any]]:
        return {}

    def slowdown(self, run: Run, *, bins: int = 20, scheme: str = "equal-count") -> dict[str, Any]:
        """Return `Run.slowdown` of one of its runs, over the flows that count."""
        place = next(n for n, one in enumerate(self.runs) if one is run)
        key = (place, bins, scheme)
        if key not in self._slowdowns:
            self._slowdowns[key] = self.by_size.slowdown(run, bins=bins, scheme=scheme)
        return self._slowdowns[key]

    def unfinished(self, name: str = "slowdown_p50") -> int:
        """Return how many flows that would count for a metric did not finish, in all runs."""
        return self.counts.unfinished(self.runs, name)

    @property
    def is_done(self) -> bool:
        """Whether all its runs are done: an interrupted or stalled one has part of its results."""
        return all(status_of(run) == "done" for run in self.runs)

    @cached_property
    def bins(self) -> int:
        """How many equal-count bins its flows support: 20, or 10 when there are few."""
        return 20 if self.flows_counted >= 400 else 10

    @property
    def has_flows(self) -> bool:
        """Whether every run of it completed a flow, so that there is a slowdown."""
        return self.flows_counted > 0

    @cached_property
    def flows_counted(self) -> int:
        """How many flows count for slowdowns, in the run with the fewest."""
        return min(self.slowdown(run, bins=1)["overall"]["count"] for run in self.runs)

    def curve(self, bins: int) -> list[dict[str, Any]]:
        """Return a point per bin of its own flows, as published curves have them: by the share of flows.

        A point has the ``share`` of flows up to it (0 to 1), ``size_bytes`` (the mean over the runs of the
        largest size), ``count`` (flows in a run, the mean) and percentiles. Two lines whose flows differ have
        other sizes at the same share: see `curves_by_size`.

        There are fewer than `bins` where many flows have one size: they share a bin. And where the runs' own
        bins are not alike: then fewer are taken, until those of all runs hold the same share of the flows.
        """
        tables = self._alike(bins)
        flows = sum(row["count"] for table in tables for row in table)
        points, seen = [], 0
        for rows in zip(*tables, strict=True):
            count = sum(row["count"] for row in rows)
            seen += count
            point = {"share": seen / flows, "size_bytes": sum(r["size_bytes"] for r in rows) / len(rows)}
            point["count"] = round(count / len(rows))
            for p in PERCENTILES:
                point[p] = Mean.of([r[p] for r in rows], self.interval, keys=self.keys)
            points.append(point)
        return points

    @cached_property
    def sized(self) -> list[tuple[Sequence[int], Sequence[float]]]:
        """The sizes of the flows of each run that count, ascending, and the slowdown of each."""
        return [self.by_size.sized_slowdowns(run) for run in self.runs]

    def _between(self, above: int, end: int) -> dict[str, Any]:
        """Return ``count`` and percentiles of the flows of more than `above` and up to `end` bytes."""
        rows = []
        for sizes, slowdowns in self.sized:
            values = list(slowdowns[bisect_right(sizes, above) : bisect_right(sizes, end)])
            zeros = [0] * len(values)
            found = _native.slowdown_of(zeros, zeros, values, 1, "equal-count")
            rows.append(json.loads(found)["overall"])
        means = {p: Mean.of([r[p] for r in rows], self.interval, keys=self.keys) for p in PERCENTILES}
        return {"count": round(sum(row["count"] for row in rows) / len(rows)), **means}

    def _alike(self, bins: int) -> list[list[dict[str, Any]]]:
        """Return the bins of each run, at most the requested number; they can be averaged bin by bin."""
        while True:
            tables = [self.slowdown(run, bins=bins)["bins"] for run in self.runs]
            if bins == 1 or _are_alike(tables, 1 / (2 * bins)):
                return tables
            bins //= 2

    def by_decade(self) -> dict[int, dict[str, Mean | None]]:
        """Return percentiles by power of ten of the flow size: 4 holds flows over 1 KB up to 10 KB.

        Every size that some run has flows of is there: what shows it leaves out percentiles of too few flows.
        """
        found: dict[int, list[tuple[Hashable, dict[str, Any]]]] = {}
        for key, run in zip(self.keys, self.runs, strict=True):
            for row in self.slowdown(run, scheme="decades")["bins"]:
                if row["count"]:
                    decade = math.ceil(math.log10(max(1, row["size_bytes"])))
                    found.setdefault(decade, []).append((key, row))
        return {
            d: {
                p: Mean.of([row[p] for _, row in rows], self.interval, keys=[key for key, _ in rows])
                for p in PERCENTILES
            }
            for d, rows in found.items()
        }

    def overall(self) -> dict[str, Mean | None]:
        """Return percentiles over all flows."""
        rows = [self.slowdown(run, bins=1)["overall"] for run in self.runs]
        return {p: Mean.of([r.get(p) for r in rows], self.interval, keys=self.keys) for p in PERCENTILES}

    def metric(self, name: str) -> Mean | None:
        """Return a metric of `weftline.measures.metrics` over the seeds."""
        width = metric(name).bin_width
        return Mean.of(self.values(name), self.interval, keys=self.keys, bin_width=width)

    def values(self, name: str) -> list[float | None]:
        """Return the same of each run."""
        return [self.counts.value(run, name) for run in self.runs]

    def left_text(self, name: str) -> str:
        """Return what a metric leaves out, as `evidence.left_text` says it."""
        from weftline.measures import evidence

        return evidence.left_text(
            name,
            self.runs,
            self.counts.flows(name),
            unfinished_flows=self.unfinished(name) if evidence.of_finished_flows(name) else 0,
            undecided=self.counts.undecided_text(self.runs, name),
        )

    def metric_text(self, name: str) -> str:
        """Return the same as text, with how many runs have it if fewer, and what it leaves out."""
        from weftline.measures import evidence

        mean = self.metric(name)
        if mean is None:
            return "–"
        text = self.left_text(name)
        count = len(self.runs) if mean.count is None else mean.count
        asked = max(len(self.runs), len(self.asked))
        return mean.text(metric(name).text) + evidence.qualifier(runs=count, asked=asked, left=text)


def _are_alike(tables: Sequence[Sequence[dict[str, Any]]], tolerance: float) -> bool:
    """Whether bins end at the same sizes in all tables, or near enough at the same shares of the flows."""
    if len({len(rows) for rows in tables}) > 1:
        return False
    if all(len({row["size_bytes"] for row in rows}) == 1 for rows in zip(*tables, strict=True)):
        return True
    ends = [_ends(rows) for rows in tables]
    return all(max(at) - min(at) <= tolerance for at in zip(*ends, strict=True))


def _ends(rows: Sequence[dict[str, Any]]) -> list[float]:
    """The share of the flows up to the end of each bin."""
    counts = list(accumulate(row["count"] for row in rows))
    return [count / counts[-1] for count in counts] if counts and counts[-1] else []


def curves_by_size(lines: Sequence[Line]) -> dict[str, list[dict[str, Any]]]:
    """Return a curve for each line over bins of flow sizes that are the same for all lines and seeds.

    The bins have equally many flows of all runs of all lines together; flows of one size share a bin, so that
    there may be fewer bins than the 10 or 20 that the line with the fewest flows supports. Each curve has a
    point per bin: ``share`` of all flows up to it (0 to 1), ``size_bytes`` (its largest size), ``count`` (the
    flows of this line in a run, the mean) and percentiles, which are means over the runs that have a flow of
    these sizes, and None where none has.
    """
    sizes = sorted(size for line in lines for of_run, _ in line.sized for size in of_run)
    bins = min((line.bins for line in lines), default=0)
    ends = sorted({sizes[i * len(sizes) // bins - 1] for i in range(1, bins + 1) if i * len(sizes) >= bins})
    shares = [bisect_right(sizes, end) / len(sizes) for end in ends]
    return {
        line.label: [
            {"share": share, "size_bytes": end, **line._between(above, end)}
            for share, above, end in zip(shares, [-1, *ends], ends, strict=False)
        ]
        for line in lines
    }


def at_share(points: Sequence[dict[str, Any]], share: float) -> dict[str, Any]:
    """Return the point of a curve whose bin holds the flow at a share of all flows."""
    return next((point for point in points if point["share"] >= share - 1e-9), points[-1])


def lines_of(runs: Sequence[Run]) -> list[Line]:
    """Group runs into lines: those that differ in the seed alone are pooled, every other run has its own."""
    found = pools(runs)
    return [
        Line(label, pool.runs, pool=pool, warnings=pool.warnings)
        for label, pool in zip(labels(found), found, strict=True)
    ]
