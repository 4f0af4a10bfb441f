"""How an experiment on cost is shown: tables for the terminal, figures and sections for the page, JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weftline import _native, bench, claims, figures, page, quantities, report
from weftline.cost import METRICS, UNDISTURBED, Panel, Point
from weftline.experiments import Experiment
from weftline.page import Section
from weftline.terminal import Table

if TYPE_CHECKING:
    from weftline.reproduce import Size


def table(panel: Panel) -> Table:
    """Return the numbers of a panel, a row for each point."""
    options = panel.figure.options
    axis = options.get("axis", panel.figure.along)
    threads = any(found["threads"] > 1 for found in panel.measured.values())
    counted = any(found["median"]["instructions_per_hop"] is not None for found in panel.measured.values())
    columns = ["", axis, "packet-hops", "CPU ns/hop", "least to most"]
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
                rows.append(_row(panel, line if first else "", place, found, threads, counted))
                first = False
    return Table(columns, rows, title=panel.figure.title, note="\n".join(notes(panel)), left=1)


def _row(panel: Panel, label: str, place: str, found: Mapping, threads: bool, counted: bool) -> list[str]:
    hops, median = found["packet_hops"], found["median"]
    ends = [1e9 * found[of]["cpu_seconds"] / hops for of in ("least", "most")]
    row = [label, place, quantities.count_text(hops), quantities.digits(METRICS["cpu_time"].read(found))]
    row.append(" to ".join(quantities.digits(end) for end in ends))
    if threads:
        faster = speed_up(panel, place, found)
        row += [
            quantities.digits(METRICS["wall_time"].read(found)),
            "" if faster is None else f"{faster:.2f}",
        ]
    row += [quantities.digits(median["instructions_per_hop"])] * counted
    row.append(quantities.time_text(1e9 * median["setup_seconds"]))
    return [*row, quantities.bytes_text(median["peak_memory_bytes"])]


def speed_up(panel: Panel, place: str, found: Mapping) -> float | None:
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


def notes(panel: Panel) -> list[str]:
    """Return what a reader of the numbers has to know."""
    measured = panel.measured.values()
    repeats = max((len(found["runs"]) for found in measured), default=0)
    said = [f"Median of {repeats} runs; set-up is not counted in the time of a packet-hop."]
    said += [
        f"{point.line}, {point.place}: {found['note']}."
        for point, found in panel.measured.items()
        if found.get("note")
    ]
    waited = [
        f"{point.line}, {point.place}"
        for point, found in panel.measured.items()
        if found.get("waited", 1) > UNDISTURBED
    ]
    if waited:
        said.append(f"Threads waited for a core or for each other: {'; '.join(waited)}.")
    if any(point.threads > 1 for point in panel.points) and bench.machine()["cores"] < 2:
        said.append("This machine has one core: several threads share it.")
    return said


def figure(panel: Panel) -> figures.Figure:
    """Return a panel as a figure: one diagram for each of its metrics, a line for each of its lines."""
    options = panel.figure.options
    diagrams = []
    for name in options.get("metrics", ["time", "memory"]):
        metric = METRICS[name]
        values = [
            (point.line, point.x, metric.scale * value)
            for point, found in panel.measured.items()
            if (value := metric.read(found)) is not None
        ]
        diagrams.append(figures.Diagram(title=metric.title, log=metric.log, values=values))
    drawn = figures.against_number(
        panel.figure.title,
        panel.lines,
        diagrams,
        axis=options.get("axis", panel.figure.along),
        caption=options.get("caption", ""),
    )
    drawn.tables = [table(panel)]
    return drawn


def print_tables(panels: Sequence[Panel], verdicts: Sequence[claims.Verdict]) -> None:
    """Print the tables of all panels, then the claims."""
    shown = [table(panel) for panel in panels if panel.measured]
    for found in [*shown, *([claims.table(verdicts)] if verdicts else [])]:
        print()
        print(found.text())


def print_json(
    experiment: Experiment,
    size: Size,
    panels: Sequence[Panel],
    verdicts: Sequence[claims.Verdict],
    failed: Mapping[Point, str],
) -> None:
    """Print all that was measured, for programs."""
    points = [
        {
            "figure": panel.figure.name,
            "panel": dict(panel.choice),
            "line": point.line,
            panel.figure.along: point.x,
        }
        | {"measured": found}
        for panel in panels
        for point, found in panel.measured.items()
    ]
    result = {
        "experiment": experiment.name,
        "size": size.says,
        "machine": bench.machine(),
        "points": points,
        "claims": [claims.as_json(verdict) for verdict in verdicts],
        "failed": {f"{point.line}, {point.place}": why for point, why in failed.items()},
    }
    print(json.dumps(result, indent=2, ensure_ascii=False))


def write_page(
    experiment: Experiment,
    size: Size,
    panels: Sequence[Panel],
    verdicts: Sequence[claims.Verdict],
    path: Path,
) -> Path:
    """Write the page of an experiment and return its path."""
    sections = [Section(text=experiment.text)]
    if verdicts:
        note = "Bounds on the numbers of the figures below. Times are of this machine."
        sections.append(Section(title="Claims", text=note, tables=[claims.table(verdicts)]))
    for panel in panels:
        if panel.measured:
            sections.append(Section(title=panel.figure.title, figures=[figure(panel)]))
    machine = bench.machine()
    about = [
        ("source", experiment.source),
        ("size", size.says),
        ("command", report.command_line()),
        ("weftline", _native.version()),
        ("machine", f"{machine['cpu']}, {machine['cores']} cores, {machine['kernel']}"),
    ]
    return page.write(path, title=experiment.title, subtitle=size.says, about=about, sections=sections)
