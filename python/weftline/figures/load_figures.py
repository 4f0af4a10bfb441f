"""Curves over a number such as the load, with the intervals over the seeds as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weftline.figures.marks import HEIGHT, WIDTH, rows_of, unit_of_lines
from weftline.figures.specs import Figure
from weftline.measures.lines import Mean


def curve(
    title: str,
    points: Sequence[tuple[str, float, Mean]],
    *,
    axes: tuple[str, str],
    caption: str = "",
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
    y["scale"] = {"zero": True}
    labels = list(dict.fromkeys(label for label, _, _ in points))
    spec = rows_of(rows) | {"width": 2 * WIDTH, "height": HEIGHT, **unit_of_lines(labels, x, y, bars=bars)}
    note = "Bars are 95 % intervals over the seeds." if bars else ""
    return Figure(title=title, spec=spec, caption=f"{caption} {note}".strip())


def _short(value: float) -> float:
    return float(f"{value:.5g}")
