"""How figures are made of marks: lines distinguished by colour, dash and marker, their layers and their axes.

A line is distinguished by colour, dash and marker together, in this order for every figure of a page. The
colours are those of Okabe and Ito (2008), which people with a colour vision deficiency can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#B8A900")
DASHES = ([1, 0], [8, 3], [3, 3], [10, 3, 2, 3], [6, 2, 2, 2, 2, 2], [12, 4], [2, 2], [5, 5])
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
WIDTH, HEIGHT = 270, 230


def time_unit(longest_ns: float) -> tuple[str, float]:
    """Return the unit of an axis of times, and the factor from nanoseconds to it."""
    steps = ((5e9, "s", 1e-9), (5e6, "ms", 1e-6), (5e3, "us", 1e-3))
    return next(((unit, factor) for lowest, unit, factor in steps if longest_ns >= lowest), ("ns", 1.0))


def rows_of(rows: list[dict]) -> dict:
    """Return the beginning of a specification: its schema and its data."""
    return {"$schema": SCHEMA, "data": {"values": rows}}


def unit_of_lines(
    labels: Sequence[str],
    x: dict,
    y: dict,
    *,
    points: bool = True,
    bands: bool = False,
    order: str = "",
    interpolate: str = "",
) -> dict:
    """Return encoding and layers of lines distinguished by colour, dash and marker.

    Parameters
    ----------
    points : bool
        A marker at each value.
    bands : bool
        The rows have ``low`` and ``high``, the interval around y; it is drawn.
    order : str
        The field along which a line is drawn; that of x without it.
    interpolate : str
        Vega-Lite's name of how two values are joined.
    """
    encoding = distinct_rows([], list(labels), marks=points)["encoding"]
    tooltip = [
        {"field": "line", "title": "scheme"},
        *({"field": axis["field"], "type": axis["type"], "title": axis["title"]} for axis in (x, y)),
    ]
    line = {"type": "line", "strokeWidth": 1.8, "clip": True, "point": False}
    if interpolate:
        line["interpolate"] = interpolate
    along = {"order": {"field": order, "type": "quantitative"}} if order else {}
    layers = [{"mark": line, "encoding": {"x": x, "y": y, **along}}]
    solid = {"strokeDash": {"value": [1, 0]}}
    if bands:
        ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
        # Over numbers a band, over names a bar: a band would fill what is between two names.
        over_numbers = x["type"] == "quantitative"
        mark = {"type": "errorband", "opacity": 0.22} if over_numbers else {"type": "errorbar", "ticks": True}
        layers.insert(0, {"mark": mark, "encoding": {"x": x, **ends}})
    # Where there are no markers, an invisible one at each value carries the tooltip.
    mark = {"type": "point", "filled": True, "size": 26 if points else 40, "opacity": 1 if points else 0}
    layers.append({"mark": mark, "encoding": {"x": x, "y": y, "tooltip": tooltip, **solid}})
    return with_markers({"encoding": encoding, "layer": layers})


def only(*, published: bool) -> dict:
    """Return the filter that leaves published rows, or measured ones."""
    return {"filter": "datum.published" if published else "!datum.published"}


def distinct_rows(rows: list[dict], labels: list[str], *, marks: bool) -> dict:
    """Return the data, and how lines are distinguished: a legend of markers, or of dashes."""
    count = len(labels)
    legend = {"orient": "top", "title": None, "columns": min(count, 6) or 1}
    legend |= (
        {"symbolSize": 70, "symbolDash": [1, 0], "symbolOpacity": 1}
        if marks
        else {"symbolType": "stroke", "symbolSize": 500, "symbolStrokeWidth": 2}
    )

    encoding = {"color": distinguished(labels, COLOURS), "strokeDash": distinguished(labels, DASHES)}
    if marks:
        encoding["shape"] = distinguished(labels, SHAPES)
    for channel in encoding.values():
        channel["legend"] = legend
    return {"$schema": SCHEMA, "data": {"values": rows}, "encoding": encoding}


def distinguished(labels: Sequence[str], values: Sequence) -> dict:
    """Return a channel that gives each line its colour, dash or marker, in the order of the labels."""
    scale = {"domain": list(labels), "range": [values[i % len(values)] for i in range(len(labels))]}
    return {"field": "line", "type": "nominal", "scale": scale}


def with_markers(unit: dict) -> dict:
    """Return the unit with the channel of markers at its points alone, and that of dashes at its lines."""
    encoding = dict(unit["encoding"])
    own = {"point": ("shape",), "line": ("strokeDash",)}
    channels = {name: encoding.pop(name, None) for names in own.values() for name in names}
    layers = [
        layer
        | {
            "encoding": {
                name: channels[name] for name in own.get(layer["mark"]["type"], ()) if channels[name]
            }
            | layer["encoding"]
        }
        for layer in unit["layer"]
    ]
    return unit | {"encoding": encoding, "layer": layers}


def layers_of(
    x: dict, y: dict, any_published: bool, *, step: bool = False, points: bool = True
) -> list[dict]:
    """Return the layers of measured lines and points, and of published points where there are any."""
    tooltip = [
        {"field": "line", "title": "scheme"},
        {"field": "size", "title": "flows up to"},
        {"field": x["field"], "type": "quantitative", "title": x["title"]},
        {"field": y["field"], "type": "quantitative", "title": y["title"]},
        {"field": "published"},
    ]
    # A shape in the encoding would put a point on every value; the layer below draws those that are wanted.
    line = {"type": "line", "strokeWidth": 1.8, "clip": True, "point": False}
    if step:
        line["interpolate"] = "step-after"
    order = {"order": {"field": "y", "type": "quantitative"}} if step else {}
    layers = [{"mark": line, "transform": [only(published=False)], "encoding": {"x": x, "y": y, **order}}]
    if points and not step:
        mark = {"type": "point", "filled": True, "size": 26, "opacity": 1}
        encoding = {"x": x, "y": y, "tooltip": tooltip, "strokeDash": {"value": [1, 0]}}
        layers.append({"mark": mark, "transform": [only(published=False)], "encoding": encoding})
    if any_published:
        mark = {"type": "point", "filled": False, "size": 46, "strokeWidth": 1.3, "opacity": 0.9}
        encoding = {"x": x, "y": y, "tooltip": tooltip, "strokeDash": {"value": [1, 0]}}
        layers.append({"mark": mark, "transform": [only(published=True)], "encoding": encoding})
    return layers
