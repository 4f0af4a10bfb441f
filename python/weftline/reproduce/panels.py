"""What an experiment shows: each of its figures as sections of the page and as tables for the terminal.

Figures of kind "trend": a metric against the numbers of an axis, one line for each variant of `lines`.

    along = axis        its variants are named by numbers: "20", "0.5", "1/16"
    metric              a metric of `weftline.measures.metrics`
    sizes               { min, max }: the flows that count, where the metric is one of flows
    axis                title of the axis of x, with its unit
    over = variant      each line is drawn as its ratio to itself there, seed by seed
    against = line      each other line is drawn as its ratio to that one at the same place, seed by seed
    log                 "x", "y" or "xy": logarithmic axes

Published points are [x, y] in the units of the axes: hollow markers, and the second number in the table.

Figures of kind "matrix": a metric for every variant of `lines` (rows) and of `along` (columns).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from weftline import quantities
from weftline.figures import goodput_figures, marks, specs
from weftline.figures.specs import Published
from weftline.measures import evidence, line_notes, over_seeds, queue_ports, slowdown_table
from weftline.measures.lines import PERCENTILES, Line, Mean, at_share, curves_by_size
from weftline.measures.metrics import Flows, metric
from weftline.report import run_page
from weftline.report.page import Section
from weftline.reproduce import formulas, numbers
from weftline.reproduce.experiments import Choice, Experiment, FigureDefinition
from weftline.terminal import Table

SHOWN_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
"""Shares of flows, in order of size, at which the terminal prints a curve."""


@dataclass(kw_only=True)
class Panel:
    """One panel of a figure with what was measured and what was published."""

    figure: FigureDefinition
    choice: Choice
    lines: list[Line]
    published: list[dict[str, Any]]
    title: str
    failed: list[Line] = field(default_factory=list)
    """Lines, at their places, of which all runs failed: they have no runs."""

    @property
    def asked_lines(self) -> list[Line]:
        """All lines that were to be run, those of which all runs failed among them."""
        return [*self.lines, *self.failed]


def panel_of(experiment: Experiment, figure: FigureDefinition, choice: Choice, lines: list[Line]) -> Panel:
    """Return a panel, with the published entries that belong to it."""
    return Panel(
        figure=figure,
        choice=choice,
        lines=[line for line in lines if line.runs],
        published=experiment.published_in(figure, choice),
        title=", ".join(experiment.varied(figure, choice)),
        failed=[line for line in lines if not line.runs],
    )


def sections_of(panels: Sequence[Panel]) -> list[Section]:
    """Return the page's sections for the panels of one figure."""
    definition = panels[0].figure
    if definition.kind == "comparison":
        shown = [section for p in panels if p.lines for section in run_page.comparison_sections(p.lines)]
        return shown + [
            Section(title=definition.title, text=text) for p in panels if (text := without_runs(p))
        ]
    drawn: list[specs.Figure] = []
    empty: list[Panel] = []
    for p in panels:
        before = len(drawn)
        # Long flows that no run lets finish have no slowdown, but all else that can be measured.
        if definition.kind != "slowdown" or any(line.has_flows for line in p.lines):
            found: Any = _DRAW[definition.kind](p, p.title or definition.title)
            found = found if isinstance(found, list) else [found]
            drawn += [figure for figure in found if figure.spec["data"]["values"]]
            for figure in drawn[before:]:
                marks.keep_marks(figure.spec, [line.label for line in p.lines])
        empty += [p] if len(drawn) == before else []
    text = definition.options.get("caption", "")
    if definition.kind == "slowdown":
        text = f"{text}\n\n{line_notes.ideal_text([line for p in panels for line in p.lines])}"
    for p in panels:
        nothing = "nothing is drawn, as no run has measured it" if p in empty else ""
        if lacking := "; ".join(filter(None, [without_runs(p), nothing])):
            text = f"{text}\n\n{p.title}{': ' if p.title else ''}{lacking}".strip()
    return [Section(title=definition.title, text=text, figures=drawn)]


def tables_of(panels: Sequence[Panel]) -> list[Table]:
    """Return what the terminal prints of one figure."""
    definition = panels[0].figure
    found: list[Table] = []
    for p in panels:
        title, before = " – ".join(part for part in (definition.title, p.title) if part), len(found)
        if definition.kind == "slowdown":
            found.append(_slowdown_table(p, title, only_p95=len(panels) > 2))
        elif definition.kind == "comparison" and p.lines:
            found.append(slowdown_table.table(p.lines, title=title))
        elif definition.kind == "queue-cdf":
            found.append(_queue_table(p, title))
        elif definition.kind == "bars":
            found.append(_bars_table(p, title))
        elif definition.kind == "trend":
            found.append(_trend_table(p, title))
        elif definition.kind == "cdf":
            found.append(goodput_figures.cdf_table(p, title))
        elif definition.kind == "groups":
            found.append(goodput_figures.groups_table(p, title))
        elif definition.kind == "matrix":
            found.append(_matrix_table(p, title))
        if len(found) > before and (text := without_runs(p)):
            found[-1].note = "; ".join(filter(None, [found[-1].note, text]))
    return found


def without_runs(p: Panel) -> str:
    """Return which lines lack runs, because these failed: ``"runs failed: B (0 of 3 seeds)"``."""
    lacking = [
        " at ".join(filter(None, [line.label, line.place]))
        + f" ({len(line.runs)} of {len(line.asked)} seeds)"
        for line in p.asked_lines
        if len(line.runs) < len(line.asked)
    ]
    return f"runs failed: {', '.join(lacking)}" if lacking else ""


def _draw_slowdown(p: Panel, title: str) -> specs.Figure:
    labels = {line.label for line in p.lines}
    curves = [
        Published(label=e["line"], percentile=e["percentile"], points=_shares(e["values"]))
        for e in p.published
        if e["line"] in labels
    ]
    percentiles = p.figure.options.get("percentiles", PERCENTILES)
    finished = [line for line in p.lines if line.has_flows]
    over = p.figure.options.get("over", "")
    return specs.slowdown(title, finished, percentiles=percentiles, published=curves, over=over)


def _draw_queues(p: Panel, title: str) -> specs.Figure:
    return specs.queue_cdf(title, p.lines, published={e["line"]: e["kilobytes"] for e in p.published})


def _bar_metrics(p: Panel) -> list[str]:
    """Return the metrics of a figure of bars: `metric`, or several as `metrics`."""
    options = p.figure.options
    return options["metrics"] if "metrics" in options else [options["metric"]]


def _published_bars(p: Panel, name: str) -> dict[str, float]:
    """Return the published values of one metric by line; an entry without `metric` is of the only one."""
    return {e["line"]: e["value"] for e in p.published if e.get("metric", name) == name}


def _draw_bars(p: Panel, title: str) -> list[specs.Figure]:
    return [
        specs.bars(title, p.lines, metric_name=name, published=_published_bars(p, name))
        for name in _bar_metrics(p)
    ]


def _draw_over_time(p: Panel, title: str) -> specs.Figure:
    options = p.figure.options
    return specs.over_time(
        title,
        p.lines,
        metric_name=options["metric"],
        axis=options.get("axis", options["metric"]),
        scale=options.get("scale", 1.0),
        combine=options.get("combine", "sum"),
        entities=options.get("entities", ""),
        log=options.get("log", False),
    )


def _shares(values: Sequence[float]) -> list[tuple[float, float]]:
    return [((i + 1) / len(values), value) for i, value in enumerate(values)]


def _slowdown_table(p: Panel, title: str, *, only_p95: bool) -> Table:
    """Measured / published at a few shares of flows, and the mean ratio over all bins."""
    wanted = p.figure.options.get("percentiles", PERCENTILES)
    percentiles = ["p95"] if only_p95 and "p95" in wanted else list(wanted)
    finished = [line for line in p.lines if line.has_flows]
    entries = {(e["line"], e["percentile"]): e["values"] for e in p.published}
    if entries:
        bins = min((line.bins for line in finished), default=10)
        curves = {line.label: line.curve(bins) for line in finished}
    else:
        curves = curves_by_size(finished)
    shares = list(SHOWN_SHARES) if entries else _of_other_bins(list(curves.values()))
    columns = [*(f"{share:.0%} of flows" for share in shares)]
    if finished:
        sizes = curves[finished[0].label]
        columns = [f"≤ {quantities.bytes_text(at_share(sizes, share)['size_bytes'])}" for share in shares]
    rows = []
    for line in finished:
        curve = curves[line.label]
        for number, percentile in enumerate(percentiles):
            values = entries.get((line.label, percentile))
            cells = []
            for share in shares:
                ours = at_share(curve, share)[percentile]
                text = ours.text(quantities.digits) if ours else "–"
                cells.append(
                    f"{text} / {quantities.digits(values[_index(share, len(values))])}" if values else text
                )
            ratio = _mean_ratio(curve, percentile, values)
            cells += [quantities.digits(ratio)] if entries else []
            rows.append([line.label if number == 0 else "", percentile, *cells])
    note = "measured / published; the ratio is the geometric mean over the bins." if entries else ""
    if only_p95 and len(wanted) > 1:
        note = f"{note} The other percentiles are on the page.".strip()
    rows += [
        [line.label, *["–"] * (len(columns) + 1 + bool(entries))] for line in p.lines if line not in finished
    ]
    note = f"{note} {_few_flows(list(curves.values()), percentiles)}".strip()
    note = f"{note}{line_notes.left_out(p.lines)}".strip()
    return Table(
        ["FCT slowdown", "", *columns, *(["ratio"] if entries else [])], rows, title=title, note=note, left=2
    )


def _of_other_bins(curves: Sequence[Sequence[dict[str, Any]]]) -> list[float]:
    """Return the shares of flows that are shown: of those that are in one bin of every curve the last."""
    by_bins = {tuple(at_share(curve, share)["share"] for curve in curves): share for share in SHOWN_SHARES}
    return list(by_bins.values()) if curves else list(SHOWN_SHARES)


def _few_flows(curves: Sequence[Sequence[dict[str, Any]]], percentiles: Sequence[str]) -> str:
    """Return which percentiles are of too few flows in a bin of some run, as a sentence; "" if none is."""
    fewest = min((point["count"] for points in curves for point in points), default=0)
    needed = [
        f"{percentile} needs {count:,}"
        for percentile in percentiles
        if fewest < (count := evidence.needed(f"slowdown_{percentile}"))
    ]
    return f"Too few flows: {fewest:,} in a bin; {', '.join(needed)}." if curves and needed else ""


def _index(share: float, bins: int) -> int:
    return max(0, min(bins - 1, round(share * bins) - 1))


def _mean_ratio(
    curve: Sequence[dict[str, Any]], percentile: str, published: Sequence[float] | None
) -> float | None:
    if not published or not curve:
        return None
    pairs = [(p[percentile].value, published[_index(p["share"], len(published))]) for p in curve]
    return math.exp(math.fsum(math.log(ours / theirs) for ours, theirs in pairs) / len(pairs))


def _queue_table(p: Panel, title: str) -> Table:
    values = {e["line"]: e["kilobytes"] for e in p.published}
    names = ("50", "95", "99", None, None)
    rows = []
    for line in p.lines:
        texts = over_seeds.queue_texts(line, quantities.bytes_text) or ["–"] * len(names)
        cells = [line.label]
        for text, theirs in zip(texts, names, strict=True):
            published = values.get(line.label, {}).get(theirs) if theirs else None
            cells.append(text if published is None else f"{text} / {quantities.bytes_text(1000 * published)}")
        rows.append(cells)
    notes = ["measured / published" if values else "", "percentiles: lower edges of bins of 1 KB"]
    notes += [queue_ports.note(p.lines).removesuffix("."), over_seeds.means_text(p.lines)]
    note = "; ".join(filter(None, notes))
    return Table(["queue", "median", "p95", "p99", "p99.9", "max"], rows, title=title, note=note)


def _bars_table(p: Panel, title: str) -> Table:
    names = _bar_metrics(p)
    if len(names) > 1:
        rows = [[line.label, *(_with_published(p, line, name) for name in names)] for line in p.lines]
        note = "measured / published" if p.published else ""
        return Table(["", *(metric(name).title for name in names)], rows, title=title, note=note)
    (name,) = names
    write = metric(name).text
    text = _published_bars(p, name)
    rows = [
        [line.label, line.metric_text(name), *([write(text.get(line.label))] if text else [])]
        for line in p.lines
    ]
    return Table([metric(name).title, "measured", *(["published"] if text else [])], rows, title=title)


def _with_published(p: Panel, line: Line, name: str) -> str:
    message = _published_bars(p, name).get(line.label)
    text = line.metric_text(name)
    return text if message is None else f"{text} / {metric(name).text(message)}"


def published_points(p: Panel) -> dict[tuple[str, float], float]:
    """Return the published values by line and number, in the stored unit of the metric."""
    options = p.figure.options
    relative = options.get("over") or options.get("against")
    scale = 1.0 if relative else metric(options["metric"]).scale
    return {(e["line"], float(x)): y / scale for e in p.published for x, y in e["points"]}


def trend_values(p: Panel) -> dict[str, dict[str, Mean]]:
    """Return what was measured by line and place, in their order; what is missing is not there."""
    return {
        label: {place: mean for place, found in places.items() if (mean := numbers.mean(found))}
        for label, places in _trend_numbers(p).items()
    }


def _trend_numbers(p: Panel) -> dict[str, dict[str, dict[int, numbers.Number]]]:
    """Return what is drawn, the number of each seed by line and place."""
    found: dict[str, dict[str, dict[int, numbers.Number]]] = {}
    for line in p.lines:
        if line.label != p.figure.options.get("against"):
            found.setdefault(line.label, {})[line.place] = trend_number(p, line)
    return found


def trend_number(p: Panel, line: Line) -> dict[int, numbers.Number]:
    """Return the number of each seed of a line of a trend; ratios, where it draws these, are seed by seed."""
    name = p.figure.options["metric"]
    of_seeds, base = numbers.of_line(line, name), trend_base(p.figure, line.label, line.place)
    if base is None:
        return of_seeds
    other = next((one for one in p.asked_lines if (one.label, one.place) == base), None)
    if other is None:
        return {seed: numbers.Number(None, "what it is relative to was not run") for seed in of_seeds}
    return numbers.ratio(of_seeds, numbers.of_line(other, name))


def trend_base(figure: FigureDefinition, label: str, place: str) -> tuple[str, str] | None:
    """Return line and place that a trend draws a line at a place relative to, None if it draws no ratios."""
    over, against = figure.options.get("over"), figure.options.get("against")
    return (label, over) if over else (against, place) if against else None


def published_for(claim: dict[str, Any], p: Panel) -> list[dict[str, Any]]:
    """Return the published entries of a panel that are of the same number as a claim on it.

    Points of a trend are those of its metric, and ratios where it draws these.
    """
    if p.figure.kind != "trend" or claim.get("kind") != "trend":
        return p.published
    line, at = claim["line"], claim["at"]
    relative = bool({"against", "against_at"} & claim.keys())
    base = (claim.get("against", line), claim.get("against_at", at)) if relative else None
    same = claim["metric"] == p.figure.options["metric"] and base == trend_base(p.figure, line, at)
    return p.published if same else []


def _draw_trend(p: Panel, title: str) -> specs.Figure:
    """Return the panel as a figure."""
    options = p.figure.options
    found = metric(options["metric"])
    relative = options.get("over") or options.get("against")
    scale = 1.0 if relative else found.scale
    measured = trend_values(p)
    points = [
        (label, x, scale * mean.value)
        for label, places in measured.items()
        for place, mean in places.items()
        if (x := formulas.number(place)) is not None
    ]
    published = [(e["line"], x, y) for e in p.published if e["line"] in measured for x, y in e["points"]]
    drawn = specs.trend(
        title,
        list(measured),
        points,
        published,
        axes=(
            options.get("axis", p.figure.along),
            f"{found.title}, relative" if relative else found.axis or found.title,
        ),
        log=options.get("log", ""),
        zero=not relative,
    )
    drawn.tables = [_trend_table(p, "")]
    return drawn


def _trend_table(p: Panel, title: str) -> Table:
    """Return the panel as a table: a row for each line, measured / published at each place."""
    found, over = metric(p.figure.options["metric"]), p.figure.options.get("over")
    against = p.figure.options.get("against")
    write = quantities.digits if over or against else found.text
    places = list(dict.fromkeys(line.place for line in p.lines))
    message = published_points(p)
    rows = []
    for label, of_places in _trend_numbers(p).items():
        cells = []
        for place in places:
            text = _of_seeds_text(of_places.get(place, {}), write)
            x = formulas.number(place)
            theirs = None if x is None else message.get((label, x))
            cells.append(text if theirs is None else f"{text} / {write(theirs)}")
        rows.append([label, *cells])
    other = "expected" if "expected" in p.figure.options else "published"
    note = [f"measured / {other}"] if message else []
    if over:
        note.append(f"relative to {p.figure.options.get('axis', p.figure.along)} {over}")
    if against:
        note.append(f"relative to {against}, seed by seed")
    if found.of_flows and "sizes" in p.figure.options:
        note.append(f"flows that count: {_flows_counted(p.lines)} a point")
    note += _left_out(p)
    heading = f"{found.title}, by {p.figure.options.get('axis', p.figure.along)}"
    return Table([heading, *places], rows, title=title, note="; ".join(note))


def _of_seeds_text(found: numbers.BySeed, write: Callable[[float | None], str]) -> str:
    """A mean over seeds as text, with how many have the number where some have not."""
    mean = numbers.mean(found)
    if mean is None:
        return "–"
    count = numbers.known(found)
    lacking = f" ({count} of {len(found)} seeds)" if count < len(found) else ""
    return f"{mean.text(write)}{lacking}"


def _left_out(p: Panel) -> list[str]:
    """Return what the panel's metric leaves out: unfinished flows, paths that never became known."""
    name = p.figure.options["metric"]
    flows = line_notes.left_out(p.lines).strip() if metric(name).completion else ""
    return [text for text in (flows, line_notes.unknown_paths(p.lines, name)) if text]


def _flows_counted(lines: Sequence[Line]) -> str:
    counts = [
        run.completion_of(Flows(min_size=line.sizes[0], max_size=line.sizes[1], group=line.group))["count"]
        for line in lines
        for run in line.runs
    ]
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{low}" if low == high else f"{low} to {high}"


MATRIX_STEP = 56


def _matrix_values(p: Panel) -> dict[tuple[str, str], Mean]:
    """Return what was measured by row and column."""
    found = {(line.label, line.place): line.metric(p.figure.options["metric"]) for line in p.lines}
    return {at: mean for at, mean in found.items() if mean is not None}


def _columns(p: Panel) -> list[str]:
    return list(dict.fromkeys(line.place for line in p.lines))


def _draw_matrix(p: Panel, title: str) -> specs.Figure:
    """Return the panel as a figure: a coloured square with its number for each pair."""
    shown = metric(p.figure.options["metric"])
    measured = _matrix_values(p)
    cells: list[dict[str, Any]] = [
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
        "width": {"step": MATRIX_STEP},
        "height": {"step": MATRIX_STEP},
        "encoding": {"x": x | {"axis": {"labelAngle": 0}}, "y": y},
        "layer": [
            {"mark": {"type": "rect", "tooltip": True}, "encoding": {"color": colour}},
            {"mark": {"type": "text"}, "encoding": {"text": number, "color": ink}},
        ],
    }
    return specs.Figure(title=title, spec=spec, tables=[_matrix_table(p, "")])


def _matrix_table(p: Panel, title: str) -> Table:
    """Return the panel as a table."""
    shown, measured, columns = metric(p.figure.options["metric"]), _matrix_values(p), _columns(p)
    rows = [
        [row, *(measured[row, c].text(shown.text) if (row, c) in measured else "–" for c in columns)]
        for row in dict.fromkeys(line.label for line in p.lines)
    ]
    return Table([shown.title, *columns], rows, title=title, note="; ".join(_left_out(p)))


_DRAW = {
    "slowdown": _draw_slowdown,
    "queue-cdf": _draw_queues,
    "bars": _draw_bars,
    "over-time": _draw_over_time,
    "trend": _draw_trend,
    "cdf": goodput_figures.draw_cdf,
    "groups": goodput_figures.draw_groups,
    "matrix": _draw_matrix,
}
