"""One number out of a series of a run, by a name that says which: ``"mean of cwnd_bytes after 10s"``.

    STATISTIC of METRIC [= VALUE] [in TIME] [after TIME]

`METRIC` is one of series.parquet. The statistics are `mean`, `median`, `min` and `max`; `share of mode =
3` is how much of the samples have the value, `period of mode = 3` the mean time from one beginning of such
spells to the next, `period of k_seconds` that from one change of the value to the next. `floor of
queue_bytes in 100ms` is the mean, over spans of that length, of the minimum in each. Samples of all entities
count together, except that a period or a floor is that of the first. Of `goodput_bps`, flows and groups of
which the run has no flow (none was to start before its end) do not count. Without `after` all of the run
counts.

A sample of a moment counts as one: they are taken on a grid. Of what is measured over intervals, those count
that begin at `after` or later. The last one is shorter than the others where the run ends inside of it: means
and shares count it by its length, and it is left out of the other statistics. The mean of a count is its sum
over the number of whole intervals that its time would hold. And `paused` has a value when it changes, which
lasts until it changes again, or until the end of the run: it counts by the time for which it lasts, from the
beginning of the run, of the ports that were paused at all.

A value that limits nothing is infinite, and larger than all others: a mean or a maximum over it does not
exist.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

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


@dataclass(frozen=True)
class Series:
    """What a series is."""

    measure: str
    """Key of `[measure]` that records it."""
    unit: str
    kind: Literal["moment", "mean", "count", "state"]
    """What a value is of: of a moment, a mean or a count of an interval, or a state that lasts."""


_SERIES = {
    "queue_bytes": Series("queues", "bytes", "moment"),
    "utilisation": Series("utilisation", "share", "mean"),
    "goodput_bps": Series("goodput", "bit/s", "mean"),
    "drops": Series("port_events", "number", "count"),
    "ecn_marks": Series("port_events", "number", "count"),
    "pauses": Series("port_events", "number", "count"),
    "paused": Series("pauses", "share", "state"),
    "rate_bps": Series("controllers", "bit/s", "moment"),
    "cwnd_bytes": Series("controllers", "bytes", "moment"),
}
"""Series that any run can record, apart from those of schemes; docs/results.md explains them."""


class Interval(NamedTuple):
    """An interval of a series, in ns."""

    begin: float
    end: float
    value: float
    part: float
    """Its length over that of the others: 1, or less for the last one, where the run ended inside of it."""


def series(name: str) -> Series:
    """Return what the series of this name is; internals of controllers are known by their unit alone."""
    if found := _SERIES.get(name) or _of_disciplines().get(name):
        return found
    endings = {"_bytes": "bytes", "_bps": "bit/s", "_ns": "ns"}
    unit = next((unit for ending, unit in endings.items() if name.endswith(ending)), "number")
    return Series("controllers", unit, "moment")


@cache
def _of_disciplines() -> dict[str, Series]:
    """Return the series that queue disciplines declare, by name."""
    declared = counted.declarations()
    metrics = {metric["name"]: metric for metric in declared["metrics"]}
    found = {}
    for group in declared["groups"]:
        for one in group["series"]:
            metric = metrics.get(one.get("metric", one["name"]))
            is_count = metric is not None and not metric["from"]["over"]
            unit = "share" if metric is not None and metric["unit"] == "share" else "number"
            found[one["name"]] = Series("disciplines", unit, "count" if is_count else "mean")
        # They stand at the end of intervals, and of the run.
        for gauge in group["gauges"]:
            found[gauge["key"]] = Series("disciplines", gauge["unit"], "mean")
    return found


def intervals(run: Run, metric: str, span_ns: float = 0.0) -> dict[str, list[Interval]]:
    """Return the intervals of a series by entity; over spans of `span_ns` where they are shorter."""
    found = run.over_time(metric, every_ns=span_ns, max_points=0)
    return {name: intervals_of(run, metric, points, span_ns) for name, points in found.items()}


def intervals_of(run: Run, metric: str, points: Points, span_ns: float = 0.0) -> list[Interval]:
    """Return the intervals that end at the points: on the grid of the measure, or at the end of the run."""
    length = max(span_ns, interval_ns(run, series(metric).measure)) or points[0][0]
    over = end_ns(run)
    found = []
    for time, value in points:
        begin, end = length * (math.ceil(time / length - 1e-9) - 1), min(time, over)
        part = (end - begin) / length
        found.append(Interval(begin, end, _number_of(value), part if part < 1 - 1e-6 else 1.0))
    return found


def _number_of(value: float | None) -> float:
    """Return a value of a series as the engine writes it, which is None where it is infinite."""
    return math.inf if value is None else value


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
    if span and not span_ns:
        raise InputError(f'metric "{name}": expected a span above 0, found {span}')
    from_ns = quantities.parse_time_ns(after) if after else 0.0
    try:
        level = None if value is None else float(value)
    except ValueError:
        raise InputError(f'metric "{name}": expected a number, found {value}') from None

    def read(run: Run) -> float | None:
        found = number(run)
        return found if found is not None and math.isfinite(found) else None

    def number(run: Run) -> float | None:
        by_entity = {
            entity: [(time, _number_of(value)) for time, value in points]
            for entity, points in run.recorded(metric, max_points=0).items()
        }
        if metric == "goodput_bps":
            by_entity = _with_flows(run, by_entity)
        kind = series(metric).kind
        if kind == "state" and statistic != "period":
            spells = [_spells(points, from_ns, end_ns(run)) for points in by_entity.values()]
            if statistic == "floor":
                return _lowest(spells[0], span_ns) if spells and spells[0] else None
            lasting = [
                Interval(begin, end, value, end - begin) for one in spells for begin, end, value in one
            ]
            return _number(statistic, lasting, level, kind) if lasting else None
        if kind == "state":
            by_entity = {name: [(0.0, 0.0), *points] for name, points in by_entity.items()}
        if kind in ("mean", "count"):
            found = [intervals_of(run, metric, points) for points in by_entity.values()]
        else:
            found = [[Interval(time, time, value, 1.0) for time, value in one] for one in by_entity.values()]
        kept = [[one for one in entity if one.begin >= from_ns * (1 - 1e-9)] for entity in found]
        kept = [entity for entity in kept if entity]
        if not kept:
            return None
        if statistic == "period":
            return _period([(one.end, one.value) for one in whole(kept[0])], level)
        if statistic == "floor":
            return _floor(whole(kept[0]), span_ns)
        return _number(statistic, [one for entity in kept for one in entity], level, kind)

    return read


def _with_flows(
    run: Run, by_entity: dict[str, list[tuple[float, float]]]
) -> dict[str, list[tuple[float, float]]]:
    """Return the goodputs of flows and groups that delivered something or have rows in the table of flows.

    The messages of a job may have no rows.
    """
    if all(any(value for _, value in points) for points in by_entity.values()):
        return by_entity
    if not (run.out / "flows.parquet").exists():
        return by_entity
    of = columns.read(run.flows, ("flow_id", "group"))
    known = {f"flow{flow}" for flow in of["flow_id"]} | set(of["group"])
    return {
        name: points
        for name, points in by_entity.items()
        if name in known or any(value for _, value in points)
    }


def has_infinite(run: Run, name: str) -> bool:
    """Return whether the series of which a number of this name is has infinite values in a run."""
    found = _NAME.fullmatch(name)
    means = run.recorded(found[2], max_points=1) if found else {}
    return any(value is None for points in means.values() for _, value in points)


def whole(found: list[Interval]) -> list[Interval]:
    """Return the whole intervals; all if there is none."""
    return [one for one in found if one.part == 1] or found


def _number(statistic: str, found: list[Interval], level: float | None, kind: str) -> float:
    """Return a statistic of values that count by their parts; of a state by the times for which they last."""
    total = math.fsum(one.part for one in found)
    if statistic == "share":
        return math.fsum(one.part for one in found if one.value == level) / total
    if statistic == "mean" and kind == "count":
        return math.fsum(one.value for one in found) / total
    if statistic == "mean":
        return math.fsum(one.value * one.part for one in found) / total
    if statistic == "median" and kind == "state":
        seen = 0.0
        for one in sorted(found, key=lambda one: one.value):
            seen += one.part
            if seen >= total / 2:
                return one.value
    return _OF_VALUES[statistic]([one.value for one in (found if kind == "state" else whole(found))])


def _spells(points: Points, from_ns: float, over_ns: float) -> list[tuple[float, float, float]]:
    """Return (begin, end, value) of every time for which a state lasts, from a time to the end of the run."""
    changes = [(0.0, 0.0), *points, (over_ns, 0.0)]
    spells = [(max(begin, from_ns), end, value) for (begin, value), (end, _) in itertools.pairwise(changes)]
    return [(begin, end, value) for begin, end, value in spells if begin < end]


def values_until(found: Sequence[Interval], last_ns: float) -> list[float]:
    """Return the values of the whole intervals that end by a time, up to rounding."""
    return [one.value for one in found if one.part == 1 and one.end <= last_ns * (1 + 1e-9)]


def means_until(run: Run, metric: str, last_ns: float) -> dict[str, float]:
    """Return the mean over the whole intervals of a series that end by a time, by entity, where any does."""
    every = interval_ns(run, series(metric).measure)
    if not every:
        values = {name: values_until(found, last_ns) for name, found in intervals(run, metric).items()}
        return {name: math.fsum(found) / len(found) for name, found in values.items() if found}
    count = math.floor(last_ns * (1 + 1e-9) / every)
    # One span holds them all.
    found = run.over_time(metric, every_ns=count * every, max_points=0) if count else {}
    return {name: points[0][1] for name, points in found.items() if points}


def unit(name: str) -> str:
    """Return the unit of the number of this name, as `weftline.measures.metrics.Metric` has it."""
    statistic, metric = name.split()[0], name.split()[2]
    of_time = {"period": "ns", "share": "share"}
    return of_time.get(statistic) or series(metric).unit


def check_series(run: Run, name: str) -> None:
    """Raise an error if a run has no series of this name, and it is none of those that any run can record.

    A run that did not measure the internals of controllers does not know their names.
    """
    if name in _SERIES or name in _of_disciplines():
        return
    recorded = sorted(set(columns.read(run.series, ["metric"])["metric"]))
    if name not in recorded:
        known = list(dict.fromkeys([*recorded, *_SERIES]))
        raise InputError(
            f'{run.out}: the run has no series "{name}": {nearest(name, known)}'
            f"recorded: {', '.join(recorded) or 'none'}; internals of controllers need measure.controllers"
        )


def end_ns(run: Run) -> float:
    """Return when a run ended; of one that failed, which does not record it, the last time of its series."""
    end = run.summary.get("end_ns")
    return max(columns.read(run.series, ["time_ns"])["time_ns"], default=0.0) if end is None else end


def interval_ns(run: Run, measure: str) -> float:
    """Return the time from one sample of a measure to the next in ns; 0 if it is not measured."""
    asked = run.scenario.get("measure", {}).get(measure)
    every = asked.get("every") if isinstance(asked, dict) else None
    return quantities.parse_time_ns(every) if isinstance(every, str) else 0.0


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


def _floor(found: Sequence[Interval], span_ns: float) -> float:
    """Return the mean of the lowest values of all spans."""
    lowest: dict[int, float] = {}
    for one in found:
        span = math.ceil(one.end / span_ns - 1e-9)
        lowest[span] = min(one.value, lowest.get(span, math.inf))
    return math.fsum(lowest.values()) / len(lowest)
