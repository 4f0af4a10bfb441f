"""Figures of kind "matrix": a metric for every variant of `lines` (rows) and of `along` (columns)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftline.figures import marks, specs
from weftline.measures.lines import Mean
from weftline.measures.metrics import metric
from weftline.terminal import Table

if TYPE_CHECKING:
    from weftline.reproduce.exhibits import Panel

STEP = 56


def values(p: Panel) -> dict[tuple[str, str], Mean]:
    """Return what was measured by row and column."""
    found = {(line.label, line.place): line.metric(p.figure.options["metric"]) for line in p.lines}
    return {at: mean for at, mean in found.items() if mean is not None}


def _columns(p: Panel) -> list[str]:
    return list(dict.fromkeys(line.place for line in p.lines))


def draw(p: Panel, title: str) -> specs.Figure:
    """Return the panel as a figure: a coloured square with its number for each pair."""
    shown = metric(p.figure.options["metric"])
    measured = values(p)
    cells = [
        {"row": row, "column": column, "value": float(f"{shown.scale * mean.value:.4g}")}
        for (row, column), mean in measured.items()
    ]
    rows = list(dict.fromkeys(row for row, _ in measured))
    x = {"field": "column", "type": "nominal", "sort": _columns(p), "title": p.figure.options.get("axis")}
    y = {"field": "row", "type": "nominal", "sort": rows, "title": None}
    colour = {
        "field": "value",
        "type": "quantitative",
        "title": shown.axis or shown.title,
        "scale": {"scheme": "blues", "zero": True},
        "legend": {"orient": "top", "titleLimit": 400, "gradientLength": 200},
    }
    highest = max((cell["value"] for cell in cells), default=0)
    ink = {"condition": {"test": f"datum.value > {0.6 * highest:g}", "value": "white"}, "value": "black"}
    number = {"field": "value", "type": "quantitative", "format": ".3~r"}
    spec = {
        "$schema": marks.SCHEMA,
        "data": {"values": cells},
        "width": {"step": STEP},
        "height": {"step": STEP},
        "encoding": {"x": x | {"axis": {"labelAngle": 0}}, "y": y},
        "layer": [
            {"mark": {"type": "rect", "tooltip": True}, "encoding": {"color": colour}},
            {"mark": {"type": "text"}, "encoding": {"text": number, "color": ink}},
        ],
    }
    return specs.Figure(title=title, spec=spec, tables=[table(p, "")])


def table(p: Panel, title: str) -> Table:
    """Return the panel as a table."""
    shown, measured, columns = metric(p.figure.options["metric"]), values(p), _columns(p)
    rows = [
        [row, *(measured[row, c].text(shown.text) if (row, c) in measured else "–" for c in columns)]
        for row in dict.fromkeys(row for row, _ in measured)
    ]
    return Table([shown.title, *columns], rows, title=title)
