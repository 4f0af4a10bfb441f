"""How an experiment on accuracy is shown: tables for the terminal, figures for the page, JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weftline import _native
from weftline.figures import specs
from weftline.report import run_page
from weftline.report.page import Section
from weftline.reproduce import claims
from weftline.reproduce.choices import Size
from weftline.reproduce.experiments import Experiment
from weftline.reproduce.findings import Findings, place_of
from weftline.reproduce.trials import METRICS, Panel
from weftline.terminal import Table


def _metrics(panel: Panel) -> list[str]:
    return list(panel.figure.options.get("metrics", ["mean"]))


def _labels(panel: Panel) -> list[str]:
    """The lines that are tried, then those that are published alone."""
    return list(dict.fromkeys([*panel.lines, *(entry["line"] for entry in panel.published)]))


def tables(panel: Panel) -> list[Table]:
    """Return the numbers of a panel, a table for each metric and a row for each line."""
    found = []
    for name in _metrics(panel):
        metric, message = METRICS[name], False
        rows = []
        for line in _labels(panel):
            row = [line]
            for place in panel.places:
                ours, theirs = panel.value(line, place, name), panel.published_value(line, place, name)
                message |= theirs is not None
                text = metric.text(ours)
                row.append(text if theirs is None else f"{text} / {metric.text(theirs)}")
            if any(cell != "–" for cell in row[1:]):
                rows.append(row)
        axis = panel.figure.options.get("axis", panel.figure.along)
        note = "\n".join(["here / published"] * message + notes(panel))
        title = f"{panel.title}: {metric.title}"
        found.append(Table([axis, *panel.places], rows, title=title, note=note))
    return found


def notes(panel: Panel) -> list[str]:
    """Return what a reader of the numbers has to know: what went wrong, what was left out."""
    parts = []
    for key, text in (("wrong", "paths were decoded wrongly"), ("given_up", "paths were not decoded")):
        count = sum(found.get(key, 0) for found in panel.found.values())
        if count:
            parts.append(f"{count} {text}.")
    streams = {
        (found["streams"], found["left_out"], point.settings["smallest"])
        for point, found in panel.found.items()
        if "streams" in found
    }
    for used, left_out, smallest in sorted(streams):
        text = f"{used} hops of flows"
        more = f"; {left_out} left out, whose quantile is below {smallest:g} ns"
        parts.append(f"{text}{more if left_out else ''}.")
    return parts


def figure(panel: Panel) -> specs.Figure:
    """Return a panel as a figure: one diagram for each of its metrics, a line for each of its lines."""
    diagrams = []
    for name in _metrics(panel):
        metric = METRICS[name]
        values = [
            (line, x, metric.scale * value)
            for line, place, x in dict.fromkeys((p.line, p.place, p.x) for p in panel.found)
            if (value := panel.value(line, place, name)) is not None
        ]
        places = [point.x for point in panel.points]
        published = [
            (entry["line"], x, y)
            for entry in panel.published
            if entry["metric"] == name
            for x, y in entry["points"]
            if min(places) <= x <= max(places)
        ]
        diagrams.append(specs.Diagram(title=metric.title, log=metric.log, values=values, published=published))
    drawn = specs.against_number(
        panel.title,
        _labels(panel),
        diagrams,
        axis=panel.figure.options.get("axis", panel.figure.along),
        caption=panel.figure.options.get("caption", ""),
        log_x="x" in panel.figure.options.get("log", ""),
    )
    drawn.tables = tables(panel)
    return drawn


def findings(
    experiment: Experiment,
    size: Size,
    panels: Sequence[Panel],
    verdicts: Sequence[claims.Verdict],
    failed: Mapping[str, str],
) -> Findings:
    """Return what the trials came to."""
    shown = [panel for panel in panels if panel.found]
    points = [
        {
            **place_of(panel, point),
            "seed": point.seed,
            "found": found,
            "published": {
                name: panel.published_value(point.line, point.place, name) for name in _metrics(panel)
            },
        }
        for panel in panels
        for point, found in panel.found.items()
    ]
    by_figure = [(f, [figure(panel) for panel in shown if panel.figure is f]) for f in experiment.figures]
    return Findings(
        experiment=experiment,
        size=size,
        verdicts=verdicts,
        tables=[table for panel in shown for table in tables(panel)],
        sections=[Section(title=f.title, figures=drawn) for f, drawn in by_figure if drawn],
        points=points,
        failed=failed,
        about=[("command", run_page.command_line()), ("weftline", _native.version())],
    )
