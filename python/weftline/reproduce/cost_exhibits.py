"""How an experiment on cost is shown: tables for the terminal, figures and sections for the page, JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weftline import _native, quantities
from weftline.cli import bench
from weftline.figures import specs
from weftline.report import run_page
from weftline.report.page import Section
from weftline.reproduce import claims
from weftline.reproduce.choices import Size
from weftline.reproduce.cost import METRICS, UNDISTURBED, Panel, Point
from weftline.reproduce.experiments import Experiment
from weftline.reproduce.findings import Findings, place_of
from weftline.terminal import Table


def table(panel: Panel) -> Table:
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
                rows.append(_row(panel, line if first else "", place, found, threads, counted))
                first = False
    return Table(columns, rows, title=panel.figure.title, note="\n".join(notes(panel)), left=1)


def _row(
    panel: Panel, label: str, place: str, found: Mapping[str, Any], threads: bool, counted: bool
) -> list[str]:
    hops, median = found["packet_hops"], found["median"]
    ends = [1e9 * found[of]["cpu_seconds"] / hops for of in ("min", "max")]
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


def speed_up(panel: Panel, place: str, found: Mapping[str, Any]) -> float | None:
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
    parts = [f"Median of {repeats} runs; set-up is not counted in the time of a packet-hop."]
    parts += [
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
        parts.append(f"Threads waited for a core or for each other: {'; '.join(waited)}.")
    if any(point.threads > 1 for point in panel.points) and bench.machine()["cores"] < 2:
        parts.append("This machine has one core: several threads share it.")
    return parts


def figure(panel: Panel) -> specs.Figure:
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
        diagrams.append(specs.Diagram(title=metric.title, log=metric.log, values=values))
    drawn = specs.against_number(
        panel.figure.title,
        panel.lines,
        diagrams,
        axis=options.get("axis", panel.figure.along),
        caption=options.get("caption", ""),
    )
    drawn.tables = [table(panel)]
    return drawn


def findings(
    experiment: Experiment,
    size: Size,
    panels: Sequence[Panel],
    verdicts: Sequence[claims.Verdict],
    failed: Mapping[Point, str],
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
        tables=[table(panel) for panel in shown],
        sections=[Section(title=panel.figure.title, figures=[figure(panel)]) for panel in shown],
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
