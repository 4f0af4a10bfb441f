"""Figures over simulated time: the queue of each port as a heat map, shares and their fairness."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weftline import quantities
from weftline.figures.marks import HEIGHT, WIDTH, failures, rows_of, time_unit, unit_of_lines
from weftline.figures.specs import Figure
from weftline.measures import over_seeds, over_time, sharing
from weftline.measures.lines import Line
from weftline.runs import Run

MAX_PORTS, MAX_SPANS = 32, 160
"""Rows and columns of a heat map: more would be thinner than what a page resolves."""


def queue_heats(title: str, lines: Sequence[Line]) -> list[Figure]:
    """Return a heat map of each line: a row for each port, a column for each span of time.

    A cell is coloured by the longest queue in it, on one scale for all lines. A span is not shorter than the
    time between two samples. Ports without any are left out; of many, those with the longest queues are
    shown. Of several seeds one run is drawn, and the caption names it.
    """
    series = [over_seeds.drawn_run(line).over_time("queue_bytes", max_points=0) for line in lines]
    highest = max((value for found in series for points in found.values() for _, value in points), default=0)
    return [
        _heat(f"{title}, {line.label}" if len(lines) > 1 else title, line, found, maximum=highest)
        for line, found in zip(lines, series, strict=True)
    ]


def _heat(
    title: str, line: Line, series: Mapping[str, Sequence[Sequence[float]]], *, maximum: float
) -> Figure:
    """Return the heat map of the series of ports; `maximum` is darkest."""
    busy = {port: points for port, points in series.items() if any(value > 0 for _, value in points)}
    worst = sorted(busy, key=lambda port: -max(value for _, value in busy[port]))[:MAX_PORTS]
    shown = sorted(worst, key=_natural)
    end = max((time for port in shown for time, _ in busy[port]), default=0)
    every = over_time.interval_ns(over_seeds.drawn_run(line), "queues")
    length = end / MAX_SPANS or 1
    if every:
        length = every * max(1, math.ceil(length / every - 1e-9))
    end = length * math.ceil(end / length - 1e-9)
    unit, scale = time_unit(end)
    name, factor = "longest queue (KB)", 1e-3
    rows = [
        {"x": _short(start * scale), "to": _short((start + length) * scale), "port": port, "y": _short(value)}
        for port in shown
        for start, value in _longest(busy[port], length, factor)
    ]
    domain = {"domainMax": _short(maximum * factor)} if maximum else {}
    colour = {
        "field": "y",
        "type": "quantitative",
        "title": name,
        # Darker is more, all the way: the order survives print in grey.
        "scale": {"scheme": "yelloworangebrown", "type": "sqrt", "zero": True} | domain,
        "legend": {"orient": "top", "gradientLength": 220, "format": ",~r"},
    }
    time = {"field": "x", "type": "quantitative", "title": f"time ({unit})", "axis": {"format": ",~f"}}
    time |= {"scale": {"domain": [0, _short(end * scale)], "nice": False}}
    place = {"field": "port", "type": "nominal", "sort": shown, "title": None, "axis": {"labelLimit": 90}}
    tooltip = [
        {"field": "port"},
        {"field": "x", "type": "quantitative", "title": f"from ({unit})"},
        {"field": "y", "type": "quantitative", "title": name},
    ]
    spec = rows_of(rows) | {
        "width": 3 * WIDTH,
        "height": 12 * max(1, len(shown)),
        "layer": [
            {
                "mark": {"type": "rect", "tooltip": True},
                "encoding": {
                    "x": time,
                    "x2": {"field": "to"},
                    "y": place,
                    "color": colour,
                    "tooltip": tooltip,
                },
            },
            *failures([over_seeds.drawn_run(line)], scale, end * scale),
        ],
    }
    left_out = (
        f" The {len(shown)} ports with the longest of {len(busy)} are shown."
        if len(busy) > len(shown)
        else ""
    )
    without = len(series) - len(busy)
    idle = f" {without} port{'s' if without > 1 else ''} never had one." if without else ""
    span = f"A span of {quantities.time_text(length)} shows its longest sample."
    note = f"{over_seeds.drawn_seed([line])} {span}{left_out}{idle}".strip()
    return Figure(title=title, spec=spec, caption=note)


def _longest(points: Sequence[Sequence[float]], length: float, factor: float) -> list[tuple[float, float]]:
    """(start of the span, largest value in it), spans without anything left out."""
    found: dict[int, float] = {}
    for time, value in points:
        span = max(0, math.ceil(time / length - 1e-9) - 1)
        found[span] = max(found.get(span, 0), value * factor)
    return [(span * length, value) for span, value in sorted(found.items()) if value > 0]


def fairness(title: str, lines: Sequence[Line]) -> Figure:
    """Return Jain's index of the measured goodputs over time; of several seeds one run is drawn.

    Needs ``measure.goodput`` by flow or by group. A span is of those that last all through it; spans of fewer
    than two, and those in which nothing at all was delivered, are left out.
    """
    drawn = {line.label: over_seeds.drawn_run(line) for line in lines}
    curves = {label: jain_over_time(run) for label, run in drawn.items()}
    unit, scale = time_unit(max((points[-1][0] for points in curves.values() if points), default=0))
    rows: list[dict[str, Any]] = [
        {"line": label, "x": _short(time * scale), "y": None if index is None else _short(index)}
        for label, points in curves.items()
        for time, index in _broken(points)
    ]
    x = {"field": "x", "type": "quantitative", "title": f"time ({unit})", "axis": {"format": ",~f"}}
    y = {"field": "y", "type": "quantitative", "title": "Jain's index", "scale": {"domain": [0, 1]}}
    unit_spec = unit_of_lines([line.label for line in lines], x, y, points=False)
    unit_spec["layer"] += failures(list(drawn.values()), scale, max((row["x"] for row in rows), default=0))
    spec = rows_of(rows) | {"width": 3 * WIDTH, "height": HEIGHT, **unit_spec}
    note = (
        "Of the mean goodputs in each span, of the flows or groups that last all through it, if these are "
        "two or more: 1 if all are equal, 1/n if one of n has all."
    )
    return Figure(title=title, spec=spec, caption=f"{note} {over_seeds.drawn_seed(lines)}".strip())


def _broken(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float | None]]:
    """Yield points, and one without a value between two that are further apart than others are."""
    length = min((after - before for (before, _), (after, _) in itertools.pairwise(points)), default=0.0)
    for number, (time, value) in enumerate(points):
        if number and time - points[number - 1][0] > 1.5 * length:
            yield time - length, None
        yield time, value


def jain_over_time(run: Run, *, spans: int = 100) -> list[tuple[float, float]]:
    """Return (end of a span in ns, Jain's index of the goodputs in it) of flows or groups measured.

    Those count that have something under way all through a span, apart from shorter pauses. Where intervals
    of the measure are longer than spans, of these; a last one that the end of the run cuts short is left out.
    """
    series = run.over_time("goodput_bps", max_points=1)
    end = max((points[-1][0] for points in series.values() if points), default=0)
    if len(series) < 2 or not end:
        return []
    times = sharing.under_way(run)
    return sharing.of_living(over_time.intervals(run, "goodput_bps", end / spans), times)


def _natural(name: str) -> list[Any]:
    """A key that puts leaf2 before leaf10."""
    import re

    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _short(value: float) -> float:
    return float(f"{value:.5g}")
