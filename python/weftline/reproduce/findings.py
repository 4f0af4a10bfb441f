"""What `weftline reproduce` ends with, whatever was run: tables or JSON, what failed, the page.

Experiments on cost and of trials have figures and tables of their own kind, which are here too.
"""

from __future__ import annotations

import argparse
import datetime
import html
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, quantities
from weftline.cli import bench
from weftline.errors import InputError
from weftline.figures import specs
from weftline.report import page, run_page
from weftline.report.page import Section
from weftline.reproduce import claims, cost, trials
from weftline.reproduce.experiments import Experiment
from weftline.terminal import Table, wrapped

if TYPE_CHECKING:
    from weftline.reproduce.runner import Size


SENTENCES = "Each line is a sentence of the source as a bound on a number of a figure below."


@dataclass(kw_only=True)
class Findings:
    """What an experiment came to."""

    experiment: Experiment
    size: Size
    verdicts: Sequence[claims.Verdict]
    tables: Sequence[Table]
    """Of the terminal."""
    sections: Sequence[Section]
    """Of the page, below the claims."""
    points: Sequence[Any] | Mapping[str, Any]
    """For programs."""
    failed: Mapping[str, str]
    """Why, by name of the point."""
    about: Sequence[tuple[str, str]]
    """Rows of the page's table about itself, in addition to source and size."""
    warnings: Sequence[str] = ()
    """What a reader of the numbers has to know, a sentence each."""
    lead: page.Lead | None = None
    """The question and its answer, ahead of the page."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further values for programs."""
    note: str = SENTENCES
    """What claims are here."""


def place_of(panel: Any, point: Any) -> dict[str, Any]:
    """Where a point of an experiment on cost or on accuracy stands, for programs."""
    figure = panel.figure
    return {"figure": figure.name, "panel": dict(panel.choice), "line": point.line, figure.along: point.x}


def show(found: Findings, options: argparse.Namespace, path: Path) -> int:
    """Show everything and write the page; return the exit status."""
    if options.json:
        print(json.dumps(as_json(found), indent=2, ensure_ascii=False))
    elif not options.quiet:
        for table in all_tables(found):
            print()
            print(table.text())
        if not found.verdicts and found.experiment.claims:
            print(f"\n{not_checked(found)}")
        if found.lead:
            print()
            for sentence in found.lead.answer:
                print(wrapped(sentence))
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for name, why in found.failed.items():
        print(f"failed: {name}: {why}", file=sys.stderr)
    written = write_page(found, path)
    if not (options.quiet or options.json):
        print(f"page: {written}")
    return 1 if found.failed else 0


def all_tables(found: Findings) -> list[Table]:
    """Return the tables of the terminal: of the figures, of claims place by place, of the claims."""
    details = [verdict.detail for verdict in found.verdicts if verdict.detail]
    return [*found.tables, *details, *claims_tables(found)]


def claims_tables(found: Findings) -> list[Table]:
    """Return the verdicts as a table, with how many claims were not checked; none without a verdict."""
    if not found.verdicts:
        return []
    table = claims.table(found.verdicts)
    table.note = "\n".join(filter(None, [table.note, not_checked(found)]))
    return [table]


def not_checked(found: Findings) -> str:
    """Return how many claims were not checked, as a sentence; "" if all were."""
    count, left = len(found.experiment.claims), len(found.experiment.claims) - len(found.verdicts)
    return f"{left} of {count} claims were not checked: not all that they need was run." if left else ""


def as_json(found: Findings) -> dict[str, Any]:
    """Return everything for programs."""
    return {
        "experiment": found.experiment.name,
        "size": found.size.says,
        "full": found.size.full,
        "weftline": _native.version(),
        "date": f"{datetime.date.today():%Y-%m-%d}",
        **found.more,
        "points": found.points,
        "claims": [claims.as_json(verdict) for verdict in found.verdicts],
        "failed": dict(found.failed),
        **({"warnings": list(found.warnings)} if found.warnings else {}),
    } | ({"answer": list(found.lead.answer)} if found.lead else {})


def write_page(found: Findings, path: Path) -> Path:
    """Write the page and return its path."""
    sections = [Section(text=found.experiment.text)]
    if found.verdicts:
        sections.append(Section(title="Claims", text=found.note, tables=claims_tables(found)))
    elif found.experiment.claims:
        sections.append(Section(title="Claims", text=not_checked(found)))
    details = [verdict.detail for verdict in found.verdicts if verdict.detail]
    if details:
        sections.append(Section(title="Agreement, place by place", tables=details))
    title, size = found.experiment.title, found.size.says
    about = [("experiment", found.experiment.name), ("source", found.experiment.source), ("size", size)]
    about += found.about
    about += [("note", warning) for warning in found.warnings]
    sections += found.sections
    return page.write(path, title=title, subtitle=size, about=about, sections=sections, lead=lead(found))


def refuse_page_of_another(path: Path, experiment: Experiment) -> None:
    """Raise InputError if a file is the page of another experiment, before this one takes its place."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return
    of = re.search(r"<dt>experiment</dt><dd>(.*?)</dd>", text)
    if of and (other := html.unescape(of[1])) != experiment.name:
        raise InputError(
            f"{path}: this is the page of {other}, which that of {experiment.name} would replace; choose "
            f"another folder, such as --out {path.parent / experiment.name}, or remove the page"
        )


def lead(found: Findings) -> page.Lead | None:
    """Return what the page begins with: the answer, and how many claims hold, differ and are open."""
    if not found.verdicts:
        return found.lead
    words = [("claims that hold", True), ("claims that differ", False), ("claims that are open", None)]
    numbers = []
    for title, decided in words:
        count = sum(verdict.decided is decided for verdict in found.verdicts)
        text = f"{count} of {len(found.verdicts)}"
        alarm = decided is False and count > 0
        numbers.append(page.KeyNumber(title=title, values=[("", text, "", 0.0)], is_alarm=alarm))
    if found.lead:
        return replace(found.lead, numbers=[*numbers, *found.lead.numbers])
    differ = [verdict.text for verdict in found.verdicts if verdict.decided is False]
    if all(verdict.decided is None for verdict in found.verdicts):
        answer = ["Nothing was decided: all claims are open."]
    else:
        answer = [f"Not as stated: {text}." for text in differ] or ["No claim that was decided differs."]
    return page.Lead(
        question="What does the source state, and what came of it here?", answer=answer, numbers=numbers
    )


def table_of_cost(panel: cost.Panel) -> Table:
    """Return the numbers of a panel, a row for each point."""
    options = panel.figure.options
    axis = options.get("axis", panel.figure.along)
    threads = any(found["threads"] > 1 for found in panel.measured.values())
    counted = any(found["median"]["instructions_per_hop"] is not None for found in panel.measured.values())
    columns = ["", axis, "packet-hops", "CPU ns/hop", "min to max"]
    columns += [
        *["wall ns/hop", "speed-up"] * threads,
        *["instructions/hop"] * counted,
        "set-up",
        "peak memory",
    ]
    rows = []
    for line in panel.lines:
        first = True
        for place in panel.places:
            found = panel.at(line, place)
            if found is not None:
                rows.append(_cost_row(panel, line if first else "", place, found, threads, counted))
                first = False
    return Table(columns, rows, title=panel.figure.title, note="\n".join(notes_of_cost(panel)), left=1)


def _cost_row(
    panel: cost.Panel, label: str, place: str, found: Mapping[str, Any], threads: bool, counted: bool
) -> list[str]:
    hops, median = found["packet_hops"], found["median"]
    ends = [1e9 * found[of]["cpu_seconds"] / hops for of in ("min", "max")]
    row = [label, place, quantities.count_text(hops), quantities.digits(cost.METRICS["cpu_time"].read(found))]
    row.append(" to ".join(quantities.digits(end) for end in ends))
    if threads:
        faster = speed_up(panel, place, found)
        row += [
            quantities.digits(cost.METRICS["wall_time"].read(found)),
            "" if faster is None else f"{faster:.2f}",
        ]
    row += [quantities.digits(median["instructions_per_hop"])] * counted
    row.append(quantities.time_text(1e9 * median["setup_seconds"]))
    return [*row, quantities.bytes_text(median["peak_memory_bytes"])]


def speed_up(panel: cost.Panel, place: str, found: Mapping[str, Any]) -> float | None:
    """Return wall time on one thread over that of a point on several with the same results, None for one."""
    if found["threads"] == 1:
        return None
    alone = (
        other
        for point, other in panel.measured.items()
        if point.place == place and other["threads"] == 1 and other["fingerprint"] == found["fingerprint"]
    )
    one = next(alone, None)
    return one["median"]["wall_seconds"] / found["median"]["wall_seconds"] if one else None


def notes_of_cost(panel: cost.Panel) -> list[str]:
    """Return what a reader of the numbers has to know."""
    measured = panel.measured.values()
    repeats = max((len(found["runs"]) for found in measured), default=0)
    parts = [f"Median of {repeats} runs; set-up is not counted in the time of a packet-hop."]
    parts += [
        f"{point.line}, {point.place}: {found['note']}."
        for point, found in panel.measured.items()
        if found.get("note")
    ]
    waited = [
        f"{point.line}, {point.place}"
        for point, found in panel.measured.items()
        if found.get("waited", 1) > cost.UNDISTURBED
    ]
    if waited:
        parts.append(f"Threads waited for a core or for each other: {'; '.join(waited)}.")
    if any(point.threads > 1 for point in panel.points) and bench.machine()["cores"] < 2:
        parts.append("This machine has one core: several threads share it.")
    return parts


def figure_of_cost(panel: cost.Panel) -> specs.Figure:
    """Return a panel as a figure: one diagram for each of its metrics, a line for each of its lines."""
    options = panel.figure.options
    diagrams = []
    for name in options.get("metrics", ["time", "memory"]):
        metric = cost.METRICS[name]
        values = [
            (point.line, point.x, metric.scale * value)
            for point, found in panel.measured.items()
            if (value := metric.read(found)) is not None
        ]
        diagrams.append(specs.Diagram(title=metric.title, log=metric.log, values=values))
    drawn = specs.against_number(
        panel.figure.title,
        panel.lines,
        diagrams,
        axis=options.get("axis", panel.figure.along),
        caption=options.get("caption", ""),
    )
    drawn.tables = [table_of_cost(panel)]
    return drawn


def findings_of_cost(
    experiment: Experiment,
    size: Size,
    panels: Sequence[cost.Panel],
    verdicts: Sequence[claims.Verdict],
    failed: Mapping[cost.Point, str],
) -> Findings:
    """Return what was measured."""
    shown = [panel for panel in panels if panel.measured]
    points = [
        {**place_of(panel, point), "measured": found}
        for panel in panels
        for point, found in panel.measured.items()
    ]
    machine = bench.machine()
    return Findings(
        experiment=experiment,
        size=size,
        verdicts=verdicts,
        tables=[table_of_cost(panel) for panel in shown],
        sections=[Section(title=panel.figure.title, figures=[figure_of_cost(panel)]) for panel in shown],
        points=points,
        failed={f"{point.line}, {point.place}": why for point, why in failed.items()},
        about=[
            ("command", run_page.command_line()),
            ("weftline", _native.version()),
            ("machine", f"{machine['cpu']}, {machine['cores']} cores, {machine['kernel']}"),
        ],
        more={"machine": machine},
        note="Bounds on the numbers of the figures below. Times are of this machine.",
    )


def _metrics(panel: trials.Panel) -> list[str]:
    return list(panel.figure.options.get("metrics", ["mean"]))


def _labels(panel: trials.Panel) -> list[str]:
    """The lines that are tried, then those that are published alone."""
    return list(dict.fromkeys([*panel.lines, *(entry["line"] for entry in panel.published)]))


def tables_of_trials(panel: trials.Panel) -> list[Table]:
    """Return the numbers of a panel, a table for each metric and a row for each line."""
    found = []
    for name in _metrics(panel):
        metric, message = trials.METRICS[name], False
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
        note = "\n".join(["here / published"] * message + notes_of_trials(panel))
        title = f"{panel.title}: {metric.title}"
        found.append(Table([axis, *panel.places], rows, title=title, note=note))
    return found


def notes_of_trials(panel: trials.Panel) -> list[str]:
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


def figure_of_trials(panel: trials.Panel) -> specs.Figure:
    """Return a panel as a figure: one diagram for each of its metrics, a line for each of its lines."""
    diagrams = []
    for name in _metrics(panel):
        metric = trials.METRICS[name]
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
    drawn.tables = tables_of_trials(panel)
    return drawn


def findings_of_trials(
    experiment: Experiment,
    size: Size,
    panels: Sequence[trials.Panel],
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
    by_figure = [
        (f, [figure_of_trials(panel) for panel in shown if panel.figure is f]) for f in experiment.figures
    ]
    return Findings(
        experiment=experiment,
        size=size,
        verdicts=verdicts,
        tables=[table for panel in shown for table in tables_of_trials(panel)],
        sections=[Section(title=f.title, figures=drawn) for f, drawn in by_figure if drawn],
        points=points,
        failed=failed,
        about=[("command", run_page.command_line()), ("weftline", _native.version())],
    )
