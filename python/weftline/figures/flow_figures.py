"""Figures of flows: slowdown by decades of size, cumulative curves of completion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weftline import quantities
from weftline.figures.marks import HEIGHT, WIDTH, log_axis, panels, rows_of, time_unit, unit_of_lines
from weftline.figures.specs import Figure, left_out_text, panels_with_points
from weftline.measures import over_seeds, separations, slowdown_table
from weftline.measures.lines import PERCENTILES, Line, Mean
from weftline.terminal import Table

AXES = {
    "slowdown": ("FCT slowdown", 1.0),
    "fct_ns": ("flow completion time", 1.0),
    "goodput_bps": ("goodput of a flow (Gb/s)", 1e-9),
}
"""Title of the axis of a column, with its unit, and the scale to it; times get the unit that fits."""


def slowdown_by_decade(title: str, lines: Sequence[Line], *, caption: str = "") -> Figure:
    """Return FCT slowdown by powers of ten of the flow size, one panel a percentile.

    The whole interval over the seeds is drawn where there are several.
    """
    tables = {line.label: _supported(line) for line in lines}
    decades = sorted({decade for table in tables.values() for decade in table})
    names = {decade: f"≤ {quantities.bytes_text(10**decade)}" for decade in decades}
    points = [
        (line.label, names[decade], mean, percentile)
        for line in lines
        for decade, row in tables[line.label].items()
        for percentile in PERCENTILES
        if (mean := row[percentile]) is not None
    ]
    rows = [
        {"line": label, "size": size, "y": _short(mean.value), "panel": percentile}
        | ({"low": _short(mean.low), "high": _short(mean.high)} if mean.interval else {})
        for label, size, mean, percentile in points
    ]
    x: dict[str, Any] = {"field": "size", "type": "ordinal", "title": "flow size"}
    y = {"field": "y", "type": "quantitative", "title": "FCT slowdown"}
    labels = [line.label for line in lines]
    x |= {"sort": list(names.values()), "axis": {"labelAngle": -35}}
    bars = any("low" in row for row in rows)
    shown = panels_with_points(rows, PERCENTILES)
    units = panels(rows, shown, lambda y: unit_of_lines(labels, x, y, bars=bars), y)
    spec = rows_of(rows) | {"hconcat": units}
    lacking = [p for p in PERCENTILES if any(row[p] is None for of in tables.values() for row in of.values())]
    note = f"{caption} {left_out_text(lacking, 'sizes')}".strip()
    return Figure(title=title, spec=spec, caption=note, tables=[_decade_table(lines, tables, decades)])


def _supported(line: Line) -> dict[int, dict[str, Mean | None]]:
    """Return percentiles by power of ten of the size, without those of which a run has too few flows."""
    found = {}
    for decade, row in line.by_decade().items():
        count = separations.fewest([line], decade)
        found[decade] = {p: mean if slowdown_table.enough(p, count) else None for p, mean in row.items()}
    return found


def _decade_table(lines: Sequence[Line], tables: dict[str, Any], decades: Sequence[int]) -> Table:
    columns = ["flows up to", *(f"{line.label} {p}" for line in lines for p in PERCENTILES)]
    rows = [
        [
            quantities.bytes_text(10**decade),
            *(
                found.text(quantities.digits) if (found := tables[line.label].get(decade, {}).get(p)) else "–"
                for line in lines
                for p in PERCENTILES
            ),
        ]
        for decade in decades
    ]
    return Table(columns, rows)


def cumulative(title: str, lines: Sequence[Line], *, column: str = "slowdown", caption: str = "") -> Figure:
    """Return the share of flows that are at or below a value, those of all seeds together.

    Parameters
    ----------
    column : {"slowdown", "fct_ns", "goodput_bps"}
        What is distributed.
    """
    axis, scale = AXES[column]
    curves = {line.label: over_seeds.cumulative(line, column) for line in lines}
    if column == "fct_ns":
        unit, scale = time_unit(max((points[-1][0] for points in curves.values() if points), default=0))
        axis = f"{axis} ({unit})"
    rows = [
        {"line": label, "x": _short(value * scale), "y": float(f"{100 * share:.6g}")}
        for label, points in curves.items()
        # The first step begins at 0, so that it is drawn however many flows it has.
        for value, share in [*((value, 0.0) for value, _ in points[:1]), *points]
    ]
    x = {"field": "x", "type": "quantitative", "title": axis}
    x = log_axis(x, [{"y": row["x"]} for row in rows])
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": "share of flows (%)"}
    y["scale"] = {"domain": [0, 100], "nice": False}
    labels = [line.label for line in lines]
    unit_spec = unit_of_lines(labels, x, y, points=False, order="y", interpolate="step-after")
    spec = rows_of(rows) | {"width": 2 * WIDTH, "height": HEIGHT, **unit_spec}
    note = f"{caption} {over_seeds.pooled_text(lines, 'Flows')}".strip()
    return Figure(title=title, spec=spec, caption=note)


def _short(value: float) -> float:
    return float(f"{value:.5g}")
