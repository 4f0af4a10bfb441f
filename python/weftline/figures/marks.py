"""How figures are made of marks: lines distinguished by colour, dash and marker, their layers and their axes.

A line is distinguished by colour, dash and marker together, in this order for every figure of a page:
`keep_marks` gives the lines of a figure that lacks some of them those that they have in the others. The
colours begin with those of Okabe and Ito (2008), which people with a colour vision deficiency can tell apart;
each has a contrast of at least 3 to white and to dark paper (WCAG 2.1), for which theirs were darkened.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weftline import quantities

if TYPE_CHECKING:
    from weftline.runs import Run

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#C56A9C", "#B07D00", "#3C96CC", "#7F7F7F", "#8A8000")
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
INK = "currentColor"
"""The colour of the text around a figure, in any theme; black where it is a file."""


def time_unit(longest_ns: float) -> tuple[str, float]:
    """Return the unit of an axis of times, and the factor from nanoseconds to it."""
    steps = ((5e9, "s", 1e-9), (5e6, "ms", 1e-6), (5e3, "us", 1e-3))
    return next(((unit, factor) for lowest, unit, factor in steps if longest_ns >= lowest), ("ns", 1.0))


def rows_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the beginning of a specification: its schema and its data."""
    return {"$schema": SCHEMA, "data": {"values": rows}}


def unit_of_lines(
    labels: Sequence[str],
    x: dict[str, Any],
    y: dict[str, Any],
    *,
    points: bool = True,
    bars: bool = False,
    order: str = "",
    interpolate: str = "",
) -> dict[str, Any]:
    """Return encoding and layers of lines distinguished by colour, dash and marker.

    Parameters
    ----------
    points : bool
        A marker at each value.
    bars : bool
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
    layers += [error_bars(x, y)] if bars else []
    # Where there are no markers, an invisible one at each value carries the tooltip.
    mark = {"type": "point", "filled": True, "size": 26 if points else 40, "opacity": 1 if points else 0}
    layers.append({"mark": mark, "encoding": {"x": x, "y": y, "tooltip": tooltip, **solid}})
    return with_markers({"encoding": encoding, "layer": layers})


def error_bars(x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    """Return the layer of the intervals of the rows that have ``low`` and ``high``."""
    mark = {"type": "rule", "strokeWidth": 1.4, "opacity": 0.75, "clip": True}
    ends = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "strokeDash": {"value": [1, 0]}}
    return {"mark": mark, "transform": [{"filter": "isValid(datum.low)"}], "encoding": ends}


def failures(runs: Sequence[Run], factor: float, end: float) -> list[dict[str, Any]]:
    """Return the layers of a dashed line at each failure and repair of runs, with its name.

    Parameters
    ----------
    factor : float
        From nanoseconds to the axis of times.
    end : float
        Where the axis ends.
    """
    found: dict[tuple[float, str], None] = {}
    for run in runs:
        for one in failure_events(run):
            if factor * one.at_ns <= end:
                found[(float(f"{factor * one.at_ns:.7g}"), one.text)] = None
    if not found:
        return []
    data = {"values": [{"at": at, "text": text} for at, text in found]}
    x = {"field": "at", "type": "quantitative"}
    plain = {"color": {"value": INK}, "strokeDash": {"value": [5, 4]}, "tooltip": {"field": "text"}}
    label = {"type": "text", "align": "left", "baseline": "top", "dx": 4, "dy": 2, "y": 0, "fontSize": 11}
    return [
        {"data": data, "mark": {"type": "rule", "strokeWidth": 1.2}, "encoding": {"x": x, **plain}},
        {
            "data": data,
            "mark": label,
            "encoding": {"x": x, "text": {"field": "text"}, "color": {"value": INK}},
        },
    ]


@dataclass(frozen=True)
class Failure:
    """A change of a link or a switch during a run."""

    at_ns: float
    ends: tuple[str, ...]
    """The two ends of a link, or a switch."""
    change: str
    """down, up, or another one: the rate."""
    what: str
    """The same in words."""

    @property
    def text(self) -> str:
        """Return the text of its label in a figure."""
        return f"{'–'.join(self.ends)} {self.what}"


def failure_events(run: Run) -> list[Failure]:
    """Return the failures and repairs of a run, in order of time: those that happened, or that it plans.

    What is drawn at random is known only of runs that ended.
    """
    happened = run.summary.get("failures")
    found = _planned(run.scenario) if happened is None else [_happened(one) for one in happened]
    return sorted(found, key=lambda one: one.at_ns)


def _happened(entry: Mapping[str, Any]) -> Failure:
    """An entry of summary.json: "leaf0 - spine1 down", "spine1 up", "leaf0 - spine1 at 10Gbps"."""
    ends, change = re.sub(r" (down|up|at \S+)\Z", r"\n\1", str(entry["change"])).partition("\n")[::2]
    return Failure(entry["at_ns"], tuple(ends.split(" - ")), change.partition(" ")[0], change)


def _planned(scenario: Mapping[str, Any]) -> list[Failure]:
    asked = scenario.get("failures")
    events = asked.get("event") if isinstance(asked, Mapping) else None
    found = []
    for event in events if isinstance(events, list) else []:
        what = event.get("link") or event.get("switch") or []
        ends = tuple(map(str, what)) if isinstance(what, list) else (str(what),)
        try:
            at = quantities.parse_time_ns(str(event.get("at", "")))
            lasts = quantities.parse_time_ns(str(event["lasts"])) if "lasts" in event else None
        except ValueError:
            continue
        if event.get("random"):
            continue
        change = str(event.get("change", "down"))
        found.append(Failure(at, ends, change, change))
        if lasts is not None and change == "down":
            found.append(Failure(at + lasts, ends, "up", "up"))
    return found


def nice_ticks(low: float, high: float) -> list[float]:
    """Return ticks of a logarithmic axis: 1, 2 and 5 times powers of ten, closer ones where it is short."""
    if not 0 < low <= high:
        return []
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps, enough in (((1,), 4), ((1, 2, 5), 3)):
        found = [step * 10.0**power for power in powers for step in steps]
        found = [float(f"{tick:.12g}") for tick in found if low <= tick <= high]
        if len(found) >= enough:
            return found
    step = 10 ** math.floor(math.log10(max(high - low, low * 1e-3)))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (step * part) <= 6)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)] or [float(f"{low:.3g}")]


def log_axis(y: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a channel of y as a logarithmic axis that holds the values and intervals of its rows.

    An interval that reaches to zero or below ends at the axis. A row without a value breaks its line.
    """
    values = [row[key] for row in rows for key in ("y", "low", "high") if (row.get(key) or 0) > 0]
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    for row in rows:
        if "low" in row:
            row["low"] = max(row["low"], low)
    axis = {"format": ",~g", "values": nice_ticks(low, high)}
    scale = {"type": "log", "domain": [low, high], "nice": False, "padding": 8}
    return y | {"scale": scale, "axis": axis}


def panels(
    rows: list[dict[str, Any]],
    names: Sequence[str],
    draw: Callable[[dict[str, Any]], dict[str, Any]],
    y: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return a unit for each panel on logarithmic axes of y; `draw` returns encoding and layers for a y.

    The panels share an axis unless the lines of one would lie in less than a quarter of its height.
    """
    by_name = {name: [row for row in rows if row["panel"] == name] for name in names}
    axes = {name: log_axis(y, found) for name, found in by_name.items()}
    spans = [math.log(axis["scale"]["domain"][1] / axis["scale"]["domain"][0]) for axis in axes.values()]
    whole = log_axis(y, rows)
    low, high = whole["scale"]["domain"]
    if min(spans, default=0) >= 0.25 * math.log(high / low):
        axes = dict.fromkeys(names, whole)
    return [
        {"title": {"text": name, "fontSize": 13}, "width": WIDTH, "height": HEIGHT}
        | {"transform": [{"filter": {"field": "panel", "equal": name}}], **draw(axes[name])}
        for name in names
    ]


def only(*, published: bool) -> dict[str, Any]:
    """Return the filter that leaves published rows, or measured ones."""
    return {"filter": "datum.published" if published else "!datum.published"}


def distinct_rows(rows: list[dict[str, Any]], labels: list[str], *, marks: bool) -> dict[str, Any]:
    """Return the data, and how lines are distinguished: a legend of markers, or of dashes."""
    count = len(labels)
    legend = {"orient": "top", "title": None, "columns": min(count, 6) or 1}
    legend |= (
        {"symbolSize": 70, "symbolStrokeWidth": 0, "symbolOpacity": 1}
        if marks
        else {"symbolType": "stroke", "symbolSize": 500, "symbolStrokeWidth": 2}
    )

    encoding = {"color": distinguished(labels, COLOURS), "strokeDash": distinguished(labels, DASHES)}
    if marks:
        encoding["shape"] = distinguished(labels, SHAPES)
    for channel in encoding.values():
        channel["legend"] = legend
    return {"$schema": SCHEMA, "data": {"values": rows}, "encoding": encoding}


def distinguished(labels: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return a channel that gives each line its colour, dash or marker, in the order of the labels."""
    scale = {"domain": list(labels), "range": [_mark(values, i) for i in range(len(labels))]}
    return {"field": "line", "type": "nominal", "scale": scale}


def _mark(values: Sequence[Any], number: int) -> Any:
    """Return the colour, dash or marker of a line by its number.

    Colours repeat, and each time with the next dash and marker: no two of 64 lines have all in common.
    """
    turns = 0 if values is COLOURS else number // len(values)
    return values[(number + turns) % len(values)]


def keep_marks(spec: dict[str, Any], labels: Sequence[str]) -> None:
    """Give the lines of a specification the colour, dash and marker of their places among `labels`.

    A curve that is a part of a line, such as "label, 3 switches", has the colour of the line. A figure of
    nothing else but curves of other names stays as it is.

    Parameters
    ----------
    labels : sequence of str
        Labels of all lines of the page, in order.
    """
    channels = list(_channels_of_lines(spec))
    drawn = list(dict.fromkeys(label for _, scale in channels for label in scale["domain"]))
    lines = {label: _line_of(label, labels) for label in drawn}
    if not any(line is not None for line in lines.values()):
        return
    others = [label for label, line in lines.items() if line is None]
    number = {label: n for n, label in enumerate([*labels, *others])}
    for name, scale in channels:
        values = _MARKS[name]
        for place, label in enumerate(scale["domain"]):
            line = lines[label]
            is_part = line not in (None, label)
            # Parts of one line differ by their dashes and markers.
            at = number[line if is_part else label] if name == "color" or not is_part else place
            scale["range"][place] = _mark(values, at)


_MARKS: dict[str, Sequence[Any]] = {"color": COLOURS, "strokeDash": DASHES, "shape": SHAPES}


def _line_of(curve: str, labels: Sequence[str]) -> str | None:
    """Return the label of the line that a curve is, or is a part of; None of another one."""
    if curve in labels:
        return curve
    return max((label for label in labels if curve.startswith(f"{label}, ")), key=len, default=None)


def _channels_of_lines(unit: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the scale of each channel that distinguishes lines."""
    for name in _MARKS:
        channel = unit.get("encoding", {}).get(name, {})
        if channel.get("field") == "line" and "range" in channel.get("scale", {}):
            yield name, channel["scale"]
    for inner in (*unit.get("layer", ()), *unit.get("hconcat", ())):
        yield from _channels_of_lines(inner)


def with_markers(unit: dict[str, Any]) -> dict[str, Any]:
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
    x: dict[str, Any],
    y: dict[str, Any],
    any_published: bool,
    *,
    step: bool = False,
    points: bool = True,
    bars: bool = False,
) -> list[dict[str, Any]]:
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
    if bars:
        layers.append(error_bars(x, y))
    if any_published:
        mark = {"type": "point", "filled": False, "size": 46, "strokeWidth": 1.3, "opacity": 0.9}
        encoding = {"x": x, "y": y, "tooltip": tooltip, "strokeDash": {"value": [1, 0]}}
        layers.append({"mark": mark, "transform": [only(published=True)], "encoding": encoding})
    return layers
