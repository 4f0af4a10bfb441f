"""What a figure draws of a series over time: entities combined exactly, then thinned on one grid of spans.

A span ends at a multiple of its length, which is one of the intervals of the measure; the last one may end
with the run. Means over intervals become means over spans, and counts sums. Samples of a moment become
the maximum of the span where the largest entity is drawn, and of queues, whose peaks are what matters;
otherwise they become the mean. A state has the value of its last change until the next one; of it, a span has
the mean over time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from weftline import quantities
from weftline.measures import over_time
from weftline.measures.over_time import Points

if TYPE_CHECKING:
    from weftline.runs import Run

MAX_POINTS = 400
"""Points of a curve, at most."""
MAX_SAMPLES = 2_000_000
"""Samples of a series that are read individually; of more, means over several are."""
MAX_COARSER = 4
"""How much longer than necessary a span may be that is a multiple of the intervals of several runs."""
MIN_POINTS = 100
"""With as many points as this of the longest run it may be longer still."""

Combine = Literal["each", "sum", "max"]
Value = float | None
"""None where it is infinite."""


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Curves of a run over time, and what their values are of."""

    points: dict[str, list[tuple[float, Value]]]
    """(time in ns, value) by entity; of entities that are combined one curve, of the name ""."""
    thinned: Literal["", "mean", "max", "count"]
    """What a value is of the span that ends at its time; "": a sample of a moment."""
    span_ns: float
    """The length of a span; 0: none."""
    read_ns: float = 0.0
    """Samples were averaged over spans of this length first; 0: they were not."""
    is_combined: bool = False
    """Whether several entities make one curve."""


def span_ns(runs: Sequence[Run], metric: str, *, max_points: int = MAX_POINTS) -> float:
    """Return the length of the spans of a figure of some runs, in which none has more than `max_points`.

    It is a multiple of the intervals at which the runs measure; where these have no common multiple that is
    short enough, of the longest of them alone. A state, which has no intervals, has any length.
    """
    whole = max(map(over_time.end_ns, runs), default=0.0)
    shortest = whole / max_points
    measure = over_time.series(metric).measure
    intervals = {over_time.interval_ns(run, measure) for run in runs} - {0.0}
    if over_time.series(metric).kind == "state" or not intervals:
        return _rounded_up(shortest)
    longest = max(intervals)
    first = max(1, math.ceil(shortest / longest - 1e-9))
    highest = max(MAX_COARSER * first, int(whole / longest / MIN_POINTS))
    multiples = (longest * count for count in range(first, highest + 1))
    common = (span for span in multiples if all(_is_multiple(span, every) for every in intervals))
    return next(common, longest * first)


def of_run(
    run: Run,
    metric: str,
    *,
    combine: Combine = "each",
    entities: str = "",
    span: float = 0.0,
    max_samples: int = MAX_SAMPLES,
) -> Curves:
    """Return what a figure draws of a series of a run; no points if the run did not measure it.

    Parameters
    ----------
    combine : {"each", "sum", "max"}
        How entities make one curve; "each" gives each its own.
    entities : str
        Only entities whose name starts with this.
    span : float
        Length of the spans in ns, as `span_ns` returns it; 0: that of the run by itself.
    """
    about = over_time.series(metric)
    span = span or span_ns([run], metric)
    every = over_time.interval_ns(run, about.measure)
    read = 0.0
    thinned: Literal["", "mean", "max", "count"] = "mean"
    found: Mapping[str, Points]
    if about.kind == "state":
        found = run.recorded(metric, every_ns=span, max_points=0)
    elif about.kind != "moment":
        thinned = "count" if about.kind == "count" else "mean"
        span = every * max(1, math.ceil(span / every - 1e-9)) if every else 0.0
        if every:
            found = _of_intervals(run, metric, every, span)
        else:
            found = run.recorded(metric, max_points=MAX_POINTS)
    else:
        span = every * max(1, math.ceil(span / every - 1e-9)) if every else span
        read = _read_ns(run, metric, every, span, max_samples)
        found = run.recorded(metric, every_ns=read, max_points=0)
        thinned = "max" if combine == "max" or metric == "queue_bytes" else "mean"
        if span <= every * (1 + 1e-9):
            thinned, span = "", 0.0
    chosen = {name: _numbers(points) for name, points in found.items() if name.startswith(entities)}
    is_combined = combine != "each" and len(chosen) > 1
    if combine != "each" and chosen:
        chosen = {"": _combined(chosen.values(), combine)}
    if about.kind == "moment" and span:
        end = over_time.end_ns(run)
        chosen = {name: _of_spans(points, span, end, thinned) for name, points in chosen.items()}
    return Curves(
        points={
            name: [(time, value if math.isfinite(value) else None) for time, value in points]
            for name, points in chosen.items()
        },
        thinned=thinned,
        span_ns=span,
        read_ns=read,
        is_combined=is_combined,
    )


def notes(found: Sequence[Curves], combine: Combine) -> list[str]:
    """Return what a caption states of curves: how entities are combined and thinned, over which spans."""
    texts = []
    if any(of_line.is_combined for of_line in found):
        how = "sum" if combine == "sum" else "largest value"
        texts.append(f"Each line is the {how} of its flows, groups or ports at each time.")
    for how in dict.fromkeys(of_line.thinned for of_line in found):
        alike = [of_line for of_line in found if of_line.thinned == how]
        text = spans_text(alike)
        read = _text_of_times([of_line.read_ns for of_line in alike])
        if how == "max":
            what = f"largest means over {read}" if read else "largest samples"
            texts.append(f"Values are the {what} in spans of {text}.")
        elif how and text:
            texts.append(f"Values are {'numbers in spans of' if how == 'count' else 'means over'} {text}.")
    if any(value is None for of_line in found for points in of_line.points.values() for _, value in points):
        texts.append("A line has a gap where its value is infinite.")
    return texts


def spans_text(found: Sequence[Curves]) -> str:
    """Return the lengths of the spans of curves as text, "" of samples of a moment."""
    return _text_of_times([of_line.span_ns for of_line in found])


def _text_of_times(times: Sequence[float]) -> str:
    """Return the different ones of some times as "50 us or 60 us", without those of 0."""
    return " or ".join(quantities.exact(quantities.time_text, time) for time in sorted(set(times) - {0.0}))


def _of_intervals(run: Run, metric: str, every: float, span: float) -> Mapping[str, Points]:
    """Return the means of spans, or the sums of counts.

    Without a last span that the end of the run cuts short, unless it is the only one: it cannot be held
    against the others.
    """
    is_count = over_time.series(metric).kind == "count"
    found = run.recorded(metric, every_ns=span, max_points=0)
    curves = {}
    for name, points in found.items():
        kept = over_time.whole(over_time.intervals_of(run, metric, points, span))
        # A mean of counts is per interval; one that is alone stays as it is.
        counts = [max(1.0, one.part * span / every) if is_count else 1.0 for one in kept]
        curves[name] = [(one.end, one.value * count) for one, count in zip(kept, counts, strict=True)]
    return curves


def _read_ns(run: Run, metric: str, every: float, span: float, max_samples: int) -> float:
    """Return over which time samples are averaged as they are read; 0: each sample is read."""
    if not every or span <= every:
        return 0.0
    in_span = round(span / every)
    if len(run.recorded(metric, max_points=1)) * over_time.end_ns(run) / every <= max_samples:
        return 0.0
    # Flows have samples while they last alone: no more than fill the spans in which they have some.
    spans = sum(map(len, run.recorded(metric, every_ns=span, max_points=0).values()))
    needed = math.ceil(spans * in_span / max_samples)
    if needed <= 1:
        return 0.0
    return every * next((count for count in range(needed, in_span) if in_span % count == 0), in_span)


def _numbers(points: Iterable[Sequence[Any]]) -> list[tuple[float, float]]:
    return [(time, math.inf if value is None else value) for time, value in points]


def _combined(curves: Iterable[Sequence[tuple[float, float]]], how: str) -> list[tuple[float, float]]:
    """Return the sum or the maximum of curves at each time; entities of a measure have common times."""
    by_time: dict[float, float] = {}
    for points in curves:
        for time, value in points:
            old = by_time.get(time)
            by_time[time] = value if old is None else (old + value if how == "sum" else max(old, value))
    return sorted(by_time.items())


def _of_spans(
    points: Sequence[tuple[float, float]], span: float, end: float, how: str
) -> list[tuple[float, float]]:
    """Return the mean or the maximum of the samples in each span that has some, at its end."""
    found: dict[int, list[float]] = {}
    for time, value in points:
        found.setdefault(math.ceil(time / span - 1e-9), []).append(value)
    return [
        (min(number * span, end), max(values) if how == "max" else math.fsum(values) / len(values))
        for number, values in sorted(found.items())
    ]


def _is_multiple(span: float, every: float) -> bool:
    return abs(span / every - round(span / every)) < 1e-6


def _rounded_up(length: float) -> float:
    """Return a length with two figures, not less than the given one."""
    if length <= 0:
        return 1.0
    step = 10.0 ** (math.floor(math.log10(length)) - 1)
    return float(f"{math.ceil(length / step - 1e-9) * step:.12g}")
