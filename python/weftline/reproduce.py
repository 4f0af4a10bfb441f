"""`weftline reproduce`: runs the points of an experiment, shows them beside the published numbers, checks
the claims.

Points are kept in a result store (see `store`), so a stopped experiment goes on where it was, and two figures
that share a point run it once.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weftline import (
    claims,
    executor,
    exhibits,
    experiments,
    page,
    quantities,
    report,
    reproduce_cost,
    reproduce_trials,
    runs,
    scenarios,
    store,
    trends,
)
from weftline.errors import InputError, RunFailed, nearest
from weftline.experiments import Choice, Experiment, FigureDefinition
from weftline.lines import Line
from weftline.page import Section
from weftline.store import Point
from weftline.terminal import ProgressLine, Table


@dataclass(kw_only=True)
class Size:
    """How much of an experiment is run."""

    full: bool
    says: str
    settings: dict
    seeds: list[int]


def command(options: argparse.Namespace) -> int:
    """Do what the command line asks for and return the exit status."""
    experiment = experiments.load(options.experiment)
    size = chosen_size(
        experiment,
        full=options.full,
        duration=options.duration,
        hosts=options.hosts,
        seeds=parse_seeds(options.seeds) if options.seeds else None,
    )
    out = Path(options.out) if options.out else Path("out") / experiment.out
    only = chosen_variants(experiment, options.only or [])
    if experiment.measures_cost:
        return reproduce_cost.command(experiment, size, out, only, options)
    if experiment.tries:
        return reproduce_trials.command(experiment, size, out, only, options)
    plan = plan_points(experiment, size, out, only=only)
    if not plan:
        raise InputError(f"--only: no figure of {experiment.name} has all of what is asked for")
    points = list({point.folder: point for _, _, _, found in plan for point in found}.values())
    quiet = options.quiet or options.json
    if not quiet:
        print(f"{experiment.title}\n{size.says}; {len(points)} runs")
    failed = run_points(
        points,
        jobs=options.jobs or max(1, executor.cores() // max(1, options.threads)),
        threads=options.threads,
        line=ProgressLine(quiet=quiet),
        name=experiment.name,
    )
    if failed is None:
        print("interrupted; finished runs are kept, the same command goes on from them", file=sys.stderr)
        return 1
    panels = collect(experiment, plan, lost={point.folder for point, _ in failed})
    verdicts = check_claims(experiment, panels)
    if options.json:
        _print_json(experiment, size, plan, verdicts, failed)
    elif not options.quiet:
        _print_tables(panels, verdicts)
    for point, why in failed:
        print(f"failed: {point.name}: {why}", file=sys.stderr)
    path = write_page(experiment, size, panels, verdicts, out / "report.html")
    if not quiet:
        print(f"page: {path}")
    return 1 if failed else 0


def chosen_size(
    experiment: Experiment,
    *,
    full: bool = False,
    duration: str | None = None,
    hosts: int | None = None,
    seeds: Sequence[int] | None = None,
) -> Size:
    """Return the settings of the small or the full size, with what the user chose instead.

    Raises
    ------
    InputError
        If the experiment cannot be run so long or with so many hosts.
    """
    size = experiment.sizes["full" if full else "small"]
    settings = dict(size.get("set", {}))
    hosts = hosts if hosts is not None else size.get("hosts")
    duration = duration or size.get("duration")
    if hosts is not None:
        if str(hosts) not in experiment.hosts:
            known = ", ".join(experiment.hosts) or "none: its network is fixed"
            raise InputError(f"{experiment.name} cannot be run with {hosts} hosts; known: {known}")
        settings.update(experiment.hosts[str(hosts)])
    if duration is not None:
        if not experiment.duration_keys:
            raise InputError(f"{experiment.name} has no duration to choose: its flows are given")
        if not re.fullmatch(r"\s*[0-9.]+\s*(ps|ns|us|ms|s)\s*", duration):
            raise InputError(
                f'--duration {duration}: expected a time such as "5ms" (units: ps, ns, us, ms, s)'
            )
        settings.update(dict.fromkeys(experiment.duration_keys, duration))
    said = [size["says"]] if size.get("says") else []
    if hosts is not None:
        said.append(f"{hosts} hosts")
    if duration is not None:
        said.append(f"{quantities.spaced(duration)} of arrivals")
    seeds = list(seeds or size.get("seeds", [1]))
    said.append(f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds")
    label = "Full size" if full else "Small size"
    return Size(full=full, says=f"{label}: {', '.join(said)}", settings=settings, seeds=seeds)


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of ``"1-5"`` or ``"1,2,7"``."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match:
            raise InputError(f'--seeds {text}: expected seeds such as "1-5" or "1,2,7"')
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= 10_000:
            raise InputError(f"--seeds {text}: {part.strip()} is not a range of at most 10000 seeds")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))


def chosen_variants(experiment: Experiment, texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the variants of each axis that ``AXIS=VARIANT`` texts leave; a variant may be cut short.

    Raises
    ------
    InputError
        If there is no such axis or variant, or several begin so.
    """
    chosen: dict[str, list[str]] = {}
    for text in texts:
        axis, _, variant = text.partition("=")
        if axis not in experiment.axes:
            names = list(experiment.axes)
            hint = nearest(axis, names)
            raise InputError(f'--only {text}: no axis "{axis}"; {hint}known: {", ".join(names)}')
        variants = list(experiment.axes[axis])
        found = [name for name in variants if name == variant]
        found = found or [name for name in variants if name.lower().startswith(variant.lower())]
        if len(found) != 1 or not variant:
            known = ", ".join(f'"{name}"' for name in found or variants)
            what = "several begin so" if found and variant else f'no "{variant}" on it'
            raise InputError(f"--only {text}: {what}: {known}")
        chosen.setdefault(axis, []).append(found[0])
    return chosen


Plan = list[tuple[FigureDefinition, Choice, str, list[Point]]]
"""Figure, panel, label of the line and its points, one per seed."""


def plan_points(
    experiment: Experiment, size: Size, out: Path, *, only: dict[str, list[str]] | None = None
) -> Plan:
    """Return every line of every panel with its points; all scenarios are checked before the first run.

    `only` names the variants that are wanted of an axis; a figure without that axis is left out.
    """
    only = only or {}
    source = scenarios.load(experiment.scenario)
    plan: Plan = []
    for figure in experiment.figures:
        for choice in experiment.panels(figure, full=size.full):
            for label, place in experiment.points(figure, full=size.full):
                along = ((figure.along, place),) if place else ()
                full = (*choice, (figure.lines, label), *along)
                here = dict(full)
                if any(here.get(axis) not in wanted for axis, wanted in only.items()):
                    continue
                # The size comes first: what a variant says of itself stands above it.
                changes = {**size.settings, **experiment.settings(figure, full, full=size.full)}
                name = ", ".join(variant for _, variant in full)
                points = [
                    store.point(out, source, changes, seed, name=name, place=place) for seed in size.seeds
                ]
                plan.append((figure, choice, label, points))
    return plan


def run_points(
    points: Sequence[Point], *, jobs: int, line: ProgressLine, name: str, threads: int = 1
) -> list[tuple[Point, str]] | None:
    """Run what is not finished, `jobs` at a time, each on `threads` threads; what failed is tried again.

    Returns
    -------
    list of (Point, str) or None
        The points that failed and why; None when the user interrupted.

    Raises
    ------
    RunFailed
        If nothing could go on, as with a full disk.
    """
    if not points:
        return []
    kept = store.Store.create(points[0].folder.parent.parent)
    outcome = executor.run(
        points,
        kept,
        jobs=jobs,
        threads=threads,
        retry=True,
        name=name,
        show=lambda text: line.show(text, at_once=True),
    )
    line.clear()
    if outcome.stopped:
        raise RunFailed(f"{outcome.stopped}; finished runs are kept, the same command goes on from them")
    return None if outcome.interrupted else outcome.failed


def collect(experiment: Experiment, plan: Plan, *, lost: set[Path]) -> list[list[exhibits.Panel]]:
    """Return the panels of each figure, with the runs that there are."""
    panels: dict[str, dict[Choice, list[Line]]] = {}
    definitions = {figure.name: figure for figure in experiment.figures}
    for figure, choice, label, points in plan:
        found = [runs.Run.open(point.folder) for point in points if point.folder not in lost]
        lines = panels.setdefault(figure.name, {}).setdefault(choice, [])
        if found:
            group, sizes = figure.options.get("group"), trends.sizes(figure.options)
            lines.append(Line(label, found, group, place=points[0].place, sizes=sizes))
    return [
        [exhibits.panel(experiment, definitions[name], choice, lines) for choice, lines in found.items()]
        for name, found in panels.items()
    ]


def check_claims(experiment: Experiment, panels: Sequence[Sequence[exhibits.Panel]]) -> list[claims.Verdict]:
    """Check every claim whose panel was run."""
    verdicts = []
    for claim in experiment.claims:
        wanted = claim.get("panel", {})
        for panel in (p for found in panels for p in found if p.figure.name == claim["figure"]):
            chosen = dict(panel.choice)
            if all(chosen.get(axis) == variant for axis, variant in wanted.items()):
                against = claim.get("against", [])
                needed = {claim["line"], *([against] if isinstance(against, str) else against)}
                if needed <= {line.label for line in panel.lines}:
                    verdicts.append(claims.check(claim, panel.lines, panel.published))
                break
    return verdicts


def write_page(
    experiment: Experiment,
    size: Size,
    panels: Sequence[Sequence[exhibits.Panel]],
    verdicts: Sequence[claims.Verdict],
    path: Path,
) -> Path:
    """Write the page of an experiment and return its path."""
    sections = [Section(text=experiment.text)]
    if verdicts:
        note = "Each line is a sentence of the source as a bound on a number of a figure below."
        sections.append(Section(title="Claims", text=note, tables=[claims.table(verdicts)]))
    for found in panels:
        sections += exhibits.sections(found)
    named = {
        run.out: (", ".join(part for part in (p.title, line.label, line.place) if part), run)
        for found in panels
        for p in found
        for line in p.lines
        for run in line.runs
    }
    about = [("source", experiment.source), ("size", size.says), *report.about(list(named.values()))]
    return page.write(path, title=experiment.title, subtitle=size.says, about=about, sections=sections)


def _print_tables(panels: Sequence[Sequence[exhibits.Panel]], verdicts: Sequence[claims.Verdict]) -> None:
    tables: list[Table] = [table for found in panels for table in exhibits.tables(found)]
    if verdicts:
        tables.append(claims.table(verdicts))
    for table in tables:
        print()
        print(table.text())


def _print_json(experiment, size, plan: Plan, verdicts, failed) -> None:
    points = {
        str(point.folder): {"figure": figure.name, "panel": dict(choice), "line": label, "seed": point.seed}
        | ({figure.along: point.place} if point.place else {})
        for figure, choice, label, found in plan
        for point in found
    }
    result = {
        "experiment": experiment.name,
        "size": size.says,
        "points": points,
        "claims": [claims.as_json(verdict) for verdict in verdicts],
        "failed": {point.name: why for point, why in failed},
    }
    print(json.dumps(result, indent=2, ensure_ascii=False))
