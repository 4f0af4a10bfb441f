"""One number out of a series of a run, by a name that says which: ``"mean of cwnd_bytes after 10s"``.

    STATISTIC of METRIC [= VALUE] [in TIME] [after TIME]

`METRIC` is one of series.parquet. The statistics are `mean`, `median`, `min` and `max`; `share of mode =
3` is how much of the samples have the value, `period of mode = 3` the mean time from one beginning of such
spells to the next, `period of k_seconds` that from one change of the value to the next. `floor of
queue_bytes in 100ms` is the mean, over spans of that length, of the minimum in each. Samples of all entities
count together, except that a period or a floor is that of the first. Without `after` all of the run counts.

A sample counts as one, however long it is until the next: they are taken on a grid. Two series are other than
that. The last interval of a utilisation or a goodput may be shorter than the others: means and shares count
it by its length, and it is left out of the others. And `paused` has a value when it changes, which lasts
until it changes again, or until the end of the run: it counts by the time for which it lasts, from the
beginning of the run, of the ports that were paused at all.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weftline import columns, quantities
from weftline.errors import InputError, nearest
from weftline.measures import counted

if TYPE_CHECKING:
    from weftline.runs import Run

_NAME = re.compile(
    r"(mean|median|min|max|share|period|floor) of ([a-z]\w*)(?: = (-?[\d.]+))?"
    r"(?: in (\d+(?:\.\d+)?[a-z]+))?(?: after (\d+(?:\.\d+)?[a-z]+))?"
)
_STATISTICS = ("mean", "median", "min", "max")
_OF_VALUES: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "min": min,
    "max": max,
}
Points = Sequence[Sequence[float]]
"""[time in ns, value]"""
Weighted = list[tuple[float, float]]
"""(value, weight)"""
_OF_INTERVALS = ("goodput_bps", "utilisation")
"""Series of means over intervals that follow each other from the beginning of the run."""
_OF_CHANGES = ("paused",)
"""Series of states, with a value when they change."""


_SERIES = (
    *("queue_bytes", "utilisation", "goodput_bps", "drops", "ecn_marks", "pauses", "paused"),
    *("rate_bps", "cwnd_bytes"),
)
"""Series that any run can record, apart from those of schemes; docs/results.md explains them."""


def reader(name: str) -> Callable[[Run], float | None] | None:
    """Return what reads the number of this name; None if the name is not one of a series.

    Raises
    ------
    InputError
        If the statistic and the value do not go together.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    statistic, metric, value, span, after = found.groups()
    if (value is not None and statistic in _STATISTICS) or (value is None and statistic == "share"):
        raise InputError(
            f'metric "{name}": expected a value with share or period alone, as in "share of mode = 3"'
        )
    if (statistic == "floor") != (span is not None):
        raise InputError(
            f'metric "{name}": expected a span with floor alone, as in "floor of queue_bytes in 100ms"'
        )
    span_ns = quantities.parse_time_ns(span) if span else 0.0
    from_ns = quantities.parse_time_ns(after) if after else 0.0
    level = None if value is None else float(value)

    def read(run: Run) -> float | None:
        by_entity = run.recorded(metric, max_points=0)
        if metric in _OF_CHANGES and statistic != "period":
            spells = [_spells(points, from_ns, run.summary["end_ns"]) for points in by_entity.values()]
            if statistic == "floor":
                return _lowest(spells[0], span_ns) if spells and spells[0] else None
            lasting = [(value, end - begin) for one in spells for begin, end, value in one]
            return _number(statistic, lasting, level, lasting=True) if lasting else None
        if metric in _OF_CHANGES:
            by_entity = {name: [[0.0, 0.0], *points] for name, points in by_entity.items()}
        of_intervals = metric in _OF_INTERVALS
        kept = [_from(points, from_ns, of_intervals) for points in by_entity.values()]
        kept = [points for points in kept if points]
        if not kept:
            return None
        if statistic == "period":
            return _period([point[:2] for point in kept[0]], level)
        if statistic == "floor":
            return _floor(kept[0], span_ns)
        return _number(statistic, [(value, weight) for points in kept for _, value, weight in points], level)

    return read


def _from(points: Points, from_ns: float, of_intervals: bool) -> list[tuple[float, float, float]]:
    """Return (time, value, weight) from a time on: 1, of a shorter last interval its part of a whole one."""
    found = [(time, value, 1.0) for time, value in points if time >= from_ns]
    if of_intervals and found and len(points) > 1:
        last, whole = points[-1][0] - points[-2][0], points[0][0]
        if last < whole * (1 - 1e-6):
            found[-1] = (*found[-1][:2], last / whole)
    return found


def _number(statistic: str, values: Weighted, level: float | None, *, lasting: bool = False) -> float:
    """Return a statistic of values with weights; `lasting`: with the times for which they last."""
    total = math.fsum(weight for _, weight in values)
    if statistic == "share":
        return math.fsum(weight for value, weight in values if value == level) / total
    if statistic == "mean":
        return math.fsum(value * weight for value, weight in values) / total
    if statistic == "median" and lasting:
        seen = 0.0
        for value, weight in sorted(values):
            seen += weight
            if seen >= total / 2:
                return value
    whole = [value for value, weight in values if lasting or weight == 1] or [value for value, _ in values]
    return _OF_VALUES[statistic](whole)


def _spells(points: Points, from_ns: float, end_ns: float) -> list[tuple[float, float, float]]:
    """Return (begin, end, value) of every time for which a state lasts, from a time to the end of the run."""
    changes = [(0.0, 0.0), *points, (end_ns, 0.0)]
    spells = [(max(begin, from_ns), end, value) for (begin, value), (end, _) in itertools.pairwise(changes)]
    return [(begin, end, value) for begin, end, value in spells if begin < end]


def ends_by(end: float, time: float) -> bool:
    """Return whether an interval ends by a time, up to rounding."""
    return end <= time * (1 + 1e-9)


def mean_until(points: Points, last_ns: float) -> float | None:
    """Return the mean over the whole intervals that end by a time; None where none does."""
    found = [value for end, value in points if ends_by(end, last_ns)]
    return math.fsum(found) / len(found) if found else None


def unit(name: str) -> str:
    """Return the unit of the number of this name, as `weftline.measures.metrics.Metric` has it."""
    statistic, metric = name.split()[0], name.split()[2]
    if statistic == "period":
        return "ns"
    if statistic == "share":
        return "share"
    endings = {"_bytes": "bytes", "_bps": "bit/s", "_ns": "ns"}
    return next((unit for ending, unit in endings.items() if metric.endswith(ending)), "number")


def check_series(run: Run, name: str) -> None:
    """Raise an error if a run has no series of this name, and it is none of those that any run can record.

    A run that did not measure the internals of controllers does not know their names.
    """
    if name in _SERIES or any(name == one["name"] for one in _of_ports()):
        return
    recorded = sorted(set(columns.read(run.series, ["metric"])["metric"]))
    if name not in recorded:
        known = list(dict.fromkeys([*recorded, *_SERIES]))
        raise InputError(
            f'{run.out}: the run has no series "{name}": {nearest(name, known)}'
            f"recorded: {', '.join(recorded) or 'none'}; internals of controllers need measure.controllers"
        )


def _of_ports() -> list[dict[str, str]]:
    """Return the series that queue disciplines declare, with their `name`."""
    groups = counted.declarations()["groups"]
    gauges = [{"name": gauge["key"]} for group in groups for gauge in group["gauges"]]
    return [series for group in groups for series in group["series"]] + gauges


def interval_ns(run: Run, measure: str) -> float:
    """Return the time from one sample of a measure to the next in ns; 0 if it is not measured."""
    every = run.scenario.get("measure", {}).get(measure, {}).get("every")
    return quantities.parse_time_ns(every) if every else 0.0


def _period(points: Sequence[Sequence[float]], level: float | None) -> float | None:
    """Return the mean time in ns from one change to the next, or from one begin at `level` to the next."""
    pairs = list(itertools.pairwise(points))
    if level is None:
        begins = [time for (_, before), (time, value) in pairs if value != before]
    else:
        begins = [time for (_, before), (time, value) in pairs if value == level != before]
    return (begins[-1] - begins[0]) / (len(begins) - 1) if len(begins) > 1 else None


def _lowest(spells: Sequence[tuple[float, float, float]], span_ns: float) -> float:
    """Return the mean over spans of the lowest value that a state has in each."""
    lowest: dict[int, float] = {}
    for begin, end, value in spells:
        for span in range(math.floor(begin / span_ns + 1e-9), math.ceil(end / span_ns - 1e-9)):
            lowest[span] = min(value, lowest.get(span, math.inf))
    return math.fsum(lowest.values()) / len(lowest)


def _floor(points: Sequence[Sequence[float]], span_ns: float) -> float:
    """Return the mean of the lowest values of all spans."""
    lowest: dict[int, float] = {}
    for time, value, *_ in points:
        span = math.ceil(time / span_ns - 1e-9)
        lowest[span] = min(value, lowest.get(span, math.inf))
    return math.fsum(lowest.values()) / len(lowest)
