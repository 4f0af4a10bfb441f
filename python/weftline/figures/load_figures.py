"""Curves over a number such as the load, with the intervals over the seeds as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weftline.figures.marks import HEIGHT, WIDTH, log_axis, rows_of, unit_of_lines
from weftline.figures.specs import Figure
from weftline.measures.lines import Line, Mean
from weftline.measures.metrics import metric
from weftline.terminal import Table


def load_curve(
    title: str,
    lines: Sequence[tuple[str, float, Line]],
    *,
    metric_name: str = "slowdown_p99",
    axis: str = "load",
    log: bool = False,
    caption: str = "",
) -> Figure:
    """Return one metric over a number, a line for each label; bars are the 95 % intervals over the seeds.

    Parameters
    ----------
    lines : sequence of (label, x, Line)
        The runs at each place: the same label at several x makes one line.
    metric_name : str
        A name of `weftline.measures.metrics`.
    axis : str
        Title of x, with its unit.
    log : bool
        A logarithmic axis of y.
    """
    found = metric(metric_name)
    means = [(*one, one[2].metric(metric_name)) for one in lines]
    known = [(label, x, line, mean) for label, x, line, mean in means if mean is not None]
    return curve(
        title,
        [(label, x, mean.scaled(found.scale)) for label, x, _, mean in known],
        axes=(axis, found.axis or found.title),
        log=log,
        caption=caption,
        table=Table(
            ["", axis, found.title],
            [[label, f"{x:g}", line.metric_text(metric_name)] for label, x, line, _ in known],
            left=1,
        ),
    )


def curve(
    title: str,
    points: Sequence[tuple[str, float, Mean]],
    *,
    axes: tuple[str, str],
    log: bool = False,
    caption: str = "",
    table: Table | None = None,
) -> Figure:
    """Return lines of (label, x, mean) with their intervals as bars."""
    rows: list[dict[str, Any]] = [
        {"line": label, "x": float(f"{x:.7g}"), "y": _short(mean.value)}
        | ({"low": _short(mean.low), "high": _short(mean.high)} if mean.interval is not None else {})
        for label, x, mean in points
    ]
    bars = any("low" in row for row in rows)
    x: dict[str, Any] = {"field": "x", "type": "quantitative", "title": axes[0]}
    x["axis"] = {"format": ",.4~r"}
    x["scale"] = {"zero": False, "nice": False, "padding": 12}
    places = sorted({row["x"] for row in rows})
    if len(places) <= 10:
        x["axis"]["values"] = places
    y = {"field": "y", "type": "quantitative", "title": axes[1], "axis": {"format": ",~r", "tickCount": 6}}
    y = log_axis(y, rows) if log else y | {"scale": {"zero": True}}
    labels = list(dict.fromkeys(label for label, _, _ in points))
    spec = rows_of(rows) | {"width": 2 * WIDTH, "height": HEIGHT, **unit_of_lines(labels, x, y, bars=bars)}
    note = "Bars are 95 % intervals over the seeds." if bars else ""
    tables = [table] if table else []
    return Figure(title=title, spec=spec, caption=f"{caption} {note}".strip(), tables=tables)


def _short(value: float) -> float:
    return float(f"{value:.5g}")
