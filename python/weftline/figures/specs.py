"""Figures as Vega-Lite specifications that carry their data; the page draws them, and any Vega-Lite tool can.

`marks` says how lines are distinguished; figures of flows, time, loads and paths have modules of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import quantities
from weftline.figures.marks import (
    COLOURS,
    HEIGHT,
    WIDTH,
    distinct_rows,
    failures,
    layers_of,
    log_axis,
    only,
    panels,
    time_unit,
    with_markers,
)
from weftline.measures import curves as curves_of
from weftline.measures import evidence, over_seeds, queue_ports, slowdown_table
from weftline.measures.lines import PERCENTILES, Line, Mean, at_share, curves_by_size
from weftline.measures.metrics import metric
from weftline.terminal import Table


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published curve: `share` of flows (0 to 1) against slowdown."""

    label: str
    percentile: str
    points: list[tuple[float, float]]


@dataclass(kw_only=True)
class Figure:
    """A figure with its caption and its numbers."""

    title: str
    spec: dict[str, Any]
    caption: str = ""
    tables: list[Table] = field(default_factory=list)

    def save(
        self, path: str | Path, *, width: str | float | None = None, grey: bool = False, dpi: int = 300
    ) -> Path:
        """Write the figure as SVG, PDF, PNG or JSON, by the extension of `path`, and return the path.

        Parameters
        ----------
        width : str or float, optional
            ``"column"``, ``"page"``, ``"ieee-column"``, ``"ieee-page"``, ``"slide"``, or a number of points.
        grey : bool
            Black and greys instead of colours.
        dpi : int
            Dots per inch of a PNG.
        """
        from weftline.figures import export

        return export.save(self, path, width=width, grey=grey, dpi=dpi)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return what notebooks show: the specification, where they draw it, and the picture."""
        from weftline.figures import notebook

        return notebook.mimebundle(self)


@dataclass(frozen=True, kw_only=True)
class Diagram:
    """Values over a number: (line, x, y); `title` names y, with its unit."""

    title: str
    values: list[tuple[str, float, float]]
    log: bool = False
    """Whether the axis of y is logarithmic."""
    published: Sequence[tuple[str, float, float]] = ()


def slowdown(
    title: str,
    lines: Sequence[Line],
    *,
    percentiles: Sequence[str] = PERCENTILES,
    published: Sequence[Published] = (),
    over: str = "",
    caption: str = "",
) -> Figure:
    """Return FCT slowdown by flow size: bins of equally many flows, log scale, one panel a percentile.

    The bins are those of `lines.curves_by_size`, common to all lines; a bin is drawn at the share of flows up
    to its largest size, and the axis names that size. Published curves are by the share of flows: with these
    each line has bins of its own flows. With `over`, the label of a line, each line is drawn as its ratio to
    that one, bin by bin. A percentile of too few flows is left out: the line has a gap there.
    """
    if published:
        bins = min((line.bins for line in lines), default=10)
        own = {line.label: line.curve(bins) for line in lines}
    else:
        own = curves_by_size(lines)
    curves = {label: _supported(points) for label, points in own.items()}
    base_points = curves.get(over)
    rows: list[dict[str, Any]] = []
    for line in lines:
        points = curves[line.label]
        units = [at_share(base_points, point["share"]) if base_points else {} for point in points]
        values = {
            p: [
                None if over and unit.get(p) is None else _relative(point[p], unit.get(p))
                for point, unit in zip(points, units, strict=True)
            ]
            for p in percentiles
        }
        rows += [
            _row(line.label, 100 * point["share"], values[p][place], panel=p, size=point["size_bytes"])
            | _interval(None if over else point[p])
            for place, point in enumerate(points)
            for p in percentiles
            if values[p][place] is not None or _is_gap(values[p], place)
        ]
    rows += [
        _row(curve.label, 100 * share, value, panel=curve.percentile, published=True)
        for curve in published
        if curve.percentile in percentiles
        for share, value in curve.points
    ]
    sizes = curves[lines[0].label] if lines else []
    x = {
        "field": "x",
        "type": "quantitative",
        "title": "flow size (bytes), equally many flows a step",
        "scale": {"domain": [0, 100], "nice": False},
        "axis": {"values": list(range(10, 101, 10)), "labelExpr": _size_labels(sizes), "labelAngle": -45},
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "title": f"FCT slowdown over that of {over}" if over else "FCT slowdown",
    }
    base = distinct_rows(rows, [line.label for line in lines], marks=True)
    encoding = base.pop("encoding")
    bars = any("low" in row for row in rows)

    def draw(y: dict[str, Any]) -> dict[str, Any]:
        return with_markers({"encoding": encoding, "layer": layers_of(x, y, bool(published), bars=bars)})

    units = panels(rows, panels_with_points(rows, percentiles), draw, y)
    spec = base | {"hconcat": units}
    lacking = [p for p in percentiles if any(point[p] is None for of in curves.values() for point in of)]
    note = f"{caption} {_bins_text(lines, curves, by_share=bool(published))}".strip()
    average = ", on average" * any(len(line.runs) > 1 for line in lines)
    note = f"{note} {left_out_text(lacking, 'bins', average)}".strip()
    if bars:
        note = f"{note} Bars are 95 % intervals over the seeds.".strip()
    if published:
        note = f"{note} Lines are measured here, hollow markers are published.".strip()
    return Figure(title=title, spec=spec, caption=note, tables=[_curve_table(lines, curves, percentiles)])


def _supported(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the points of a curve without the percentiles of which a run has too few flows, on average."""
    return [
        point | {p: None for p in PERCENTILES if not slowdown_table.enough(p, point["count"])}
        for point in points
    ]


def _is_gap(values: Sequence[float | None], place: int) -> bool:
    """Return whether nothing is known at a place between two that are known: a line is broken there."""
    before, after = values[:place], values[place + 1 :]
    return values[place] is None and any(v is not None for v in before) and any(v is not None for v in after)


def _bins_text(lines: Sequence[Line], curves: dict[str, list[dict[str, Any]]], *, by_share: bool) -> str:
    """Return which flows are in a bin, where there are several runs."""
    if sum(len(line.runs) for line in lines) < 2:
        return ""
    if not by_share:
        return "Bins are the same sizes for all runs, with equally many flows of all runs together."
    if len({tuple(point["size_bytes"] for point in points) for points in curves.values()}) == 1:
        return ""
    return (
        "Bins have equally many flows of each line, of which each has other sizes: the sizes of the axis are "
        f"those of {lines[0].label}."
    )


def panels_with_points(rows: Sequence[dict[str, Any]], percentiles: Sequence[str]) -> list[str]:
    """Return the percentiles of which something is drawn; the first one if nothing is."""
    return [p for p in percentiles if any(row["panel"] == p for row in rows)] or list(percentiles[:1])


def left_out_text(percentiles: Sequence[str], of: str, average: str = "") -> str:
    """Return the sentence on percentiles that are left out; "" if none is."""
    needed = [f"{p} of {of} with fewer than {evidence.needed(f'slowdown_{p}')}" for p in percentiles]
    return f"Left out: {', '.join(needed)} flows in a run{average}." if needed else ""


def _interval(mean: Mean | None, scale: float = 1.0) -> dict[str, Any]:
    """Return the ends of an interval as fields of a row; none without seeds."""
    if mean is None or mean.interval is None:
        return {}
    return {"low": float(f"{scale * mean.low:.5g}"), "high": float(f"{scale * mean.high:.5g}")}


def _relative(mean: Mean | None, unit: Mean | None) -> float | None:
    """A value, or its ratio to another if there is one."""
    if mean is None:
        return None
    return mean.value / unit.value if unit else mean.value


def queue_cdf(
    title: str,
    lines: Sequence[Line],
    *,
    published: dict[str, dict[str, Any]] | None = None,
    caption: str = "",
) -> Figure:
    """Return the share of samples whose queue is shorter than a length, over sampled ports and all seeds.

    Of a line that sampled ports of switches and of hosts those of switches are drawn: hosts' queues are empty
    with most transports. Its numbers are of these, and of all sampled ports as in metrics. `published` holds
    ``{label: {percentile: KB}}``.
    """
    left_out = {line.label: ports.left_out if (ports := line.queue_ports) else frozenset() for line in lines}
    rows = []
    for line in lines:
        cdf = _thinned(over_seeds.queue_cdf(line, without=left_out[line.label]), 200)
        rows += [_row(line.label, size / 1000, 100 * share) for size, share in cdf]
    lowest = _lowest(rows)
    for label, points in (published or {}).items():
        rows += [_row(label, kilobytes, float(p), published=True) for p, kilobytes in points.items()]
    x = {
        "field": "x",
        "type": "quantitative",
        "title": "queue length (KB)",
        "scale": {"type": "symlog", "constant": 1, "nice": False},
        "axis": {"values": [0, 1, 10, 100, 1000, 10000], "labelExpr": "format(datum.value, ',')"},
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "title": "share of samples (%)",
        "scale": {"domain": [lowest, 100], "zero": False, "nice": False},
    }
    rows = [row for row in rows if row["y"] >= lowest]
    spec = distinct_rows(rows, [line.label for line in lines], marks=bool(published))
    spec |= {"width": 2 * WIDTH, "height": HEIGHT, "layer": layers_of(x, y, bool(published), step=True)}
    means = over_seeds.means_text(lines)
    note = (
        f"{caption} {queue_ports.figure_text(lines, ' of all seeds' if means else '')} Queues "
        "are counted in bins of 1 KB: lines stand at upper edges of bins, percentiles in the table are lower "
        f"edges{f', {means}' if means else ''}."
    ).strip()
    if published:
        note = (
            f"{note} Lines are measured here, hollow markers are published; where these are lower edges of "
            "such bins, they stand 1 KB left of a line that agrees."
        )
    return Figure(title=title, spec=with_markers(spec), caption=note, tables=[_queue_table(lines)])


def _queue_table(lines: Sequence[Line]) -> Table:
    """Return percentiles of the queues of the ports that are drawn, and of all ports where these are more."""
    table = Table(["queue", "of", "median", "p95", "p99", "p99.9", "max"], left=2)
    for line in lines:
        ports = line.queue_ports
        whole = over_seeds.queue_texts(line, quantities.bytes_text)
        if not whole:
            continue
        if ports is None:
            table.rows.append([line.label, "all sampled ports", *whole])
            continue
        if not ports.are_both:
            table.rows.append([line.label, ports.text(), *whole])
            continue
        texts = over_seeds.queue_texts(line, quantities.bytes_text, without=ports.left_out)
        table.rows.append([line.label, ports.switches_text(), *texts])
        table.rows.append(["", ports.text(), *whole])
    return table


def over_time(
    title: str,
    lines: Sequence[Line],
    *,
    metric_name: str,
    axis: str,
    scale: float = 1.0,
    combine: curves_of.Combine = "sum",
    entities: str = "",
    log: bool = False,
    caption: str = "",
) -> Figure:
    """Return one value over simulated time, the entities of a run (ports, groups, flows) combined.

    Of several seeds one run is drawn, and the caption names it. An interval that the end of the run cuts
    short is not drawn. Entities are combined first, and thinned afterwards on one grid of spans of all lines;
    the caption states both, see `weftline.measures.curves`.

    Parameters
    ----------
    metric_name : str
        Name in the series table.
    axis : str
        Title of the axis, with its unit; "{span}" in it becomes the length of the spans.
    scale : float
        What the stored values are multiplied by.
    combine : {"sum", "max", "each"}
        How the entities make one line; "each" gives each its own. Where these would be more than eight
        curves, the largest value of each line is drawn.
    entities : str
        Only entities whose name starts with this.
    log : bool
        A logarithmic axis that has a place for 0, for lines that differ by powers of ten.
    """
    runs = {line.label: over_seeds.drawn_run(line) for line in lines}
    span = curves_of.span_ns(list(runs.values()), metric_name)
    if combine == "each" and curves_over_time(lines, metric_name, entities) > len(COLOURS):
        combine = "max"
    found = {
        label: curves_of.of_run(run, metric_name, combine=combine, entities=entities, span=span)
        for label, run in runs.items()
    }
    named: dict[str, list[tuple[float, float | None]]] = {}
    for label, of_line in found.items():
        if len(lines) == 1 and combine == "each":
            named |= of_line.points
        else:
            several = len(of_line.points) > 1
            named |= {
                f"{label}, {name}" if several else label: points for name, points in of_line.points.items()
            }
    unit, factor = time_unit(max((time for points in named.values() for time, _ in points), default=0))
    rows = [
        _row(label, time * factor, None if value is None else value * scale)
        for label, points in named.items()
        for time, value in points
    ]
    x = {"field": "x", "type": "quantitative", "title": f"time ({unit})", "axis": {"format": ",~f"}}
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": axis, "axis": {"format": ",~r"}}
    shown = [of_line for of_line in found.values() if of_line.points]
    y["title"] = axis.replace("{span}", curves_of.spans_text(shown) or "an interval")
    if log:
        y |= {"scale": {"type": "symlog", "constant": 1}}
        y["axis"] |= {"values": [0, *(10**n for n in range(7))]}
    spec = distinct_rows(rows, list(named), marks=False)
    layers = layers_of(x, y, False, points=False)
    layers += failures(list(runs.values()), factor, max((row["x"] for row in rows), default=0))
    spec |= {"width": 3 * WIDTH, "height": HEIGHT, "layer": layers}
    notes = [caption, over_seeds.drawn_seed(lines), *curves_of.notes(shown, combine)]
    return Figure(title=title, spec=with_markers(spec), caption=" ".join(filter(None, notes)))


def curves_over_time(lines: Sequence[Line], metric_name: str, entities: str = "") -> int:
    """Return how many curves the entities of the drawn runs are, each by itself."""
    runs = [over_seeds.drawn_run(line) for line in lines]
    names = [name for run in runs for name in run.recorded(metric_name, max_points=1)]
    return sum(name.startswith(entities) for name in names)


def bars(
    title: str,
    lines: Sequence[Line],
    *,
    metric_name: str,
    published: dict[str, float] | None = None,
    caption: str = "",
) -> Figure:
    """Return one metric as a bar per line; `published` values are hollow markers."""
    found = metric(metric_name)
    measured = {line.label: line.metric(metric_name) for line in lines}
    rows = [
        _row(label, found.scale * mean.value, 0) | _interval(mean, found.scale)
        for label, mean in measured.items()
        if mean
    ]
    intervals = any("low" in row for row in rows)
    rows += [
        _row(label, found.scale * value, 0, published=True) for label, value in (published or {}).items()
    ]
    labels = [line.label for line in lines]
    spec = distinct_rows(rows, labels, marks=bool(published))
    y = {"field": "line", "type": "nominal", "sort": labels, "title": None}
    x: dict[str, Any] = {"field": "x", "type": "quantitative", "title": found.axis or found.title}
    x["axis"] = {"format": ",~r", "tickCount": 8}
    colour = spec["encoding"]["color"]
    spec["encoding"] = {"x": x, "y": y, "color": colour | {"legend": None}}
    spec |= {"width": 2 * WIDTH, "height": 26 * max(1, len(labels))}
    spec["layer"] = [
        {"mark": {"type": "bar", "height": 14, "tooltip": True}, "transform": [only(published=False)]}
    ]
    if intervals:
        ends = {"x": x | {"field": "low"}, "x2": {"field": "high"}, "color": {"value": "#666"}}
        spec["layer"].append({"mark": {"type": "rule", "strokeWidth": 1.4}, "encoding": ends})
        caption = f"{caption} Lines across the ends of bars are 95 % intervals over the seeds.".strip()
    if published:
        hollow = {"type": "point", "filled": False, "size": 70, "strokeWidth": 1.6, "tooltip": True}
        spec["layer"].append({"mark": hollow, "transform": [only(published=True)]})
    texts = [
        [line.label, line.metric_text(metric_name), found.text((published or {}).get(line.label))]
        for line in lines
    ]
    return Figure(
        title=title, spec=spec, caption=caption, tables=[Table(["", "measured", "published"], texts)]
    )


def against_number(
    title: str,
    labels: Sequence[str],
    diagrams: Sequence[Diagram],
    *,
    axis: str,
    caption: str = "",
    log_x: bool = True,
) -> Figure:
    """Return diagrams side by side over one axis of x, the same lines in each; hollow is published."""
    rows = [_row(line, x, y, panel=diagram.title) for diagram in diagrams for line, x, y in diagram.values]
    parts = [
        _row(line, x, y, panel=diagram.title, published=True)
        for diagram in diagrams
        for line, x, y in diagram.published
    ]
    if parts:
        caption = f"{caption} Lines are measured here, hollow markers are published.".strip()
    base = distinct_rows(rows + parts, list(labels), marks=True)
    encoding = base.pop("encoding")
    x: dict[str, Any] = {"field": "x", "type": "quantitative", "title": axis}
    x["axis"] = {"format": ",~r", "grid": False}
    x["scale"] = {"nice": False, "padding": 8} | ({"type": "log"} if log_x else {})
    if log_x:
        x["axis"]["values"] = _apart(sorted({row["x"] for row in rows}))
    units = []
    for diagram in diagrams:
        y = {"field": "y", "type": "quantitative", "title": diagram.title, "scale": {"zero": True}}
        y["axis"] = {"format": ",~r", "tickCount": 6}
        if diagram.log:
            y = log_axis(y, [row for row in [*rows, *parts] if row["panel"] == diagram.title])
        units.append(
            with_markers(
                {
                    "width": WIDTH * 3 // 2,
                    "height": HEIGHT,
                    "transform": [{"filter": {"field": "panel", "equal": diagram.title}}],
                    "encoding": encoding,
                    "layer": layers_of(x, y, bool(diagram.published)),
                }
            )
        )
    return Figure(title=title, spec=base | {"hconcat": units}, caption=caption)


def trend(
    title: str,
    labels: Sequence[str],
    points: Sequence[tuple[str, float, float]],
    published: Sequence[tuple[str, float, float]],
    *,
    axes: tuple[str, str],
    log: str = "",
    zero: bool = True,
    points_at: str = "values",
    caption: str = "",
) -> Figure:
    """Return lines of (line, x, y) over a number, published points as hollow markers.

    Parameters
    ----------
    axes : (str, str)
        Titles of x and y, with their units.
    log : {"", "x", "y", "xy"}
        Logarithmic axes.
    zero : bool
        Whether a linear axis of y begins at 0.
    points_at : {"values", "published", "steps"}
        "values": a marker and a tick at every value; "published": plain lines; "steps": lines that rise
        where a value is, as a distribution's.
    """
    rows = [_row(line, x, y) for line, x, y in points]
    rows += [_row(line, x, y, published=True) for line, x, y in published]
    ticks = sorted({row["x"] for row in rows})
    x: dict[str, Any] = {"field": "x", "type": "quantitative", "title": axes[0]}
    x |= {
        "scale": {"zero": False, "nice": False, "padding": 12},
        "axis": {"format": ",.4~r"} | ({"values": ticks} if points_at == "values" else {}),
    }
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": axes[1]}
    y |= {"axis": {"format": ",~r", "tickCount": 6}, "scale": {"zero": zero}}
    for name, channel in (("x", x), ("y", y)):
        if name in log:
            channel["scale"] = {"type": "log", "nice": False, "padding": 12}
    if "x" in log and ticks and points_at == "values":
        x["axis"]["values"] = _apart(ticks)
    spec = distinct_rows(rows, list(labels), marks=True)
    layers = layers_of(x, y, bool(published), step=points_at == "steps", points=points_at == "values")
    spec |= {"width": WIDTH * 3 // 2, "height": HEIGHT, "layer": layers}
    note = "Lines are measured here, hollow markers are published." if published else ""
    return Figure(title=title, spec=with_markers(spec), caption=f"{caption} {note}".strip())


def _apart(ticks: Sequence[float]) -> list[float]:
    """Those of the ticks of a logarithmic axis that have room for their labels."""
    chosen: list[float] = []
    for tick in ticks:
        if not chosen or tick >= chosen[-1] * (ticks[-1] / ticks[0]) ** 0.15:
            chosen.append(tick)
    return chosen


def _row(
    line: str,
    x: float,
    y: float | None,
    *,
    panel: str = "",
    published: bool = False,
    size: float | None = None,
) -> dict[str, Any]:
    row = {
        "line": line,
        "panel": panel,
        "x": float(f"{x:.7g}"),
        "y": None if y is None else float(f"{y:.5g}"),
        "published": published,
    }
    if size is not None:
        row["size"] = quantities.bytes_text(size)
    return row


def _size_labels(points: list[dict[str, Any]]) -> str:
    """A Vega expression that turns a share of flows into the flow size at it."""
    shares = range(10, 101, 10) if points else ()
    names = {str(share): _tight(at_share(points, share / 100)["size_bytes"]) for share in shares}
    listed = ", ".join(f"'{share}': '{name}'" for share, name in names.items())
    return f"({{{listed}}})[round(datum.value)] || ''"


def _tight(size: float) -> str:
    for factor, unit in ((1e6, "M"), (1e3, "K")):
        if size >= factor:
            return f"{float(f'{size / factor:.2g}'):g}{unit}"
    return f"{size:.0f}"


def _curve_table(
    lines: Sequence[Line], curves: dict[str, list[dict[str, Any]]], percentiles: Sequence[str]
) -> Table:
    """Return the numbers of curves, a row for each bin; where bins are by share, the sizes of all lines."""
    columns = ["flows up to", *(f"{line.label} {p}" for line in lines for p in percentiles)]
    found = [curves[line.label] for line in lines]
    shares = [point["share"] for point in min(found, key=len, default=[])]
    rows = []
    for share in shares:
        row = [at_share(points, share) for points in found]
        low, high = (quantities.bytes_text(end(point["size_bytes"] for point in row)) for end in (min, max))
        sizes = low if low == high else f"{low} to {high} ({100 * share:.3g} % of each line)"
        texts = [
            _mean_text(line, point[p]) for line, point in zip(lines, row, strict=True) for p in percentiles
        ]
        rows.append([sizes, *texts])
    return Table(columns, rows)


def _mean_text(line: Line, mean: Mean | None) -> str:
    """Return a mean as text, with how many runs have it if not all do."""
    if mean is None:
        return "–"
    count = len(line.runs) if mean.count is None else mean.count
    qualifier = evidence.qualifier(runs=count, asked=max(len(line.runs), len(line.asked)))
    return mean.text(quantities.digits) + qualifier


def _thinned(points: list[Any], max_points: int) -> list[Any]:
    if len(points) <= max_points:
        return points
    step = (len(points) - 1) / (max_points - 1)
    return [points[round(i * step)] for i in range(max_points)]


def _lowest(rows: list[dict[str, Any]]) -> float:
    """Where the axis of shares begins: what all lines share at the bottom is left out."""
    lowest = min((row["y"] for row in rows if not row["published"]), default=0)
    return max(0, int(lowest // 10) * 10)
