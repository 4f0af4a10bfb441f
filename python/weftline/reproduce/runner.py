"""`weftline reproduce`: runs the points of an experiment, compares them with the published numbers, checks
the claims.

Points are kept in a result store (see `store`), so a stopped experiment resumes, and two figures
that share a point run it once.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from weftline import quantities, runs, scenarios
from weftline.errors import InputError, RunFailed, nearest
from weftline.measures import pooling
from weftline.measures.lines import Line
from weftline.quantities import parse_numbers, parse_seeds
from weftline.report import run_page
from weftline.reproduce import agreement, claims, cost, experiments, findings, formulas, groups, trials
from weftline.reproduce.experiments import Choice, Experiment, FigureDefinition, is_of
from weftline.reproduce.panels import Panel, panel_of, published_for, sections_of, tables_of
from weftline.sweeps import executor, store
from weftline.sweeps.store import Point
from weftline.terminal import ProgressLine


@dataclass(kw_only=True)
class Size:
    """How much of an experiment is run."""

    full: bool
    says: str
    settings: dict[str, Any]
    seeds: list[int]
    chosen_seeds: bool = False
    """Whether the user chose the seeds: then they are those of figures with seeds of their own, too."""

    chosen_keys: dict[str, str] = field(default_factory=dict)
    """Keys of the scenario that the user chose, each with the option that did."""

    def seeds_of(self, figure: FigureDefinition) -> list[int]:
        """Return the seeds of a figure."""
        return self.seeds if self.chosen_seeds or not figure.seeds else figure.seeds


def chosen_size(
    experiment: Experiment,
    *,
    full: bool = False,
    duration: str | None = None,
    hosts: int | None = None,
    seeds: Sequence[int] | None = None,
    only: Mapping[str, list[str]] | None = None,
) -> Size:
    """Return the settings of the small or the full size, with what the user chose instead.

    `only`: the variants by axis that are left of it, for messages.

    Raises
    ------
    InputError
        If the experiment cannot be run with this duration or number of hosts.
    """
    size = experiment.sizes["full" if full else "small"]
    settings = dict(size.get("set", {}))
    asked = {"--hosts": hosts, "--duration": duration}
    hosts = hosts if hosts is not None else size.get("hosts")
    duration = duration or size.get("duration")
    own: dict[str, list[str]] = {"--duration": list(experiment.duration_keys)}
    if hosts is not None:
        if str(hosts) not in experiment.hosts:
            known = ", ".join(experiment.hosts) or "none: its network is fixed"
            raise InputError(f"{experiment.name} cannot be run with {hosts} hosts; known: {known}")
        own["--hosts"] = list(experiment.hosts[str(hosts)])
        settings = scenarios.layered(settings, experiment.hosts[str(hosts)])
    if duration is not None:
        if not experiment.duration_keys:
            raise InputError(f"{experiment.name} has no duration to choose: its flows are given")
        if not re.fullmatch(r"\s*[0-9.]+\s*(ps|ns|us|ms|s)\s*", duration):
            raise InputError(
                f'--duration {duration}: expected a time such as "5ms" (units: ps, ns, us, ms, s)'
            )
        settings = scenarios.layered(settings, dict.fromkeys(experiment.duration_keys, duration))
    chosen_keys = {key: option for option, of in asked.items() if of is not None for key in own[option]}
    is_part = bool(only or (full and chosen_keys))
    parts = [size["says"]] if size.get("says") and not is_part else []
    parts += [f"{axis} {_spans(names)}" for axis, names in (only or {}).items()]
    if hosts is not None:
        parts.append(f"{hosts} hosts")
    if duration is not None:
        parts.append(f"{quantities.spaced(duration)} of arrivals")
    chosen, seeds = seeds is not None, list(seeds or experiment.seeds("full" if full else "small"))
    parts.append(_seeds_text(seeds))
    label = "Full size" if full else "Small size"
    label = f"Chosen part{' of the full size' if full else ''}" if is_part else label
    return Size(
        full=full,
        says=f"{label}: {', '.join(parts)}",
        settings=settings,
        seeds=seeds,
        chosen_seeds=chosen,
        chosen_keys=chosen_keys,
    )


def _seeds_text(seeds: Sequence[int]) -> str:
    """How many seeds; which, if they are not the first ones."""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    named = "" if list(seeds) == list(range(1, len(seeds) + 1)) else f" ({', '.join(map(str, seeds))})"
    return f"{len(seeds)} seeds{named}"


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
        if re.fullmatch(r"\d+\s*[-,][\d\s,-]+", variant) and variant not in variants:
            chosen.setdefault(axis, []).extend(_numbered(variants, variant, f"--only {text}", axis))
            continue
        if len(found) != 1 or not variant:
            known = ", ".join(f'"{name}"' for name in found or variants)
            what = "several begin so" if found and variant else f'no "{variant}" on it'
            raise InputError(f"--only {text}: {what}: {known}")
        chosen.setdefault(axis, []).append(found[0])
    return chosen


def _spans(names: Sequence[str]) -> str:
    """Names in a list, but "1 to 25" for numbers that follow each other."""
    spans: list[list[str]] = []
    for name in names:
        follows = spans and name.isdecimal() and spans[-1][-1] == str(int(name) - 1)
        spans[-1].append(name) if follows else spans.append([name])
    return ", ".join(f"{span[0]} to {span[-1]}" if len(span) > 1 else span[0] for span in spans)


def chosen_rows(experiment: Experiment, text: str) -> list[str]:
    """Return the variants of the axis "row" that ``"1-10,12"`` names.

    Raises
    ------
    InputError
        If the experiment has no such axis, or no such row.
    """
    if "row" not in experiment.axes:
        known = ", ".join(experiment.axes) or "none"
        raise InputError(f'--rows: {experiment.name} has no axis "row"; its axes: {known}')
    return _numbered(list(experiment.axes["row"]), text, f"--rows {text}", "row")


def _numbered(variants: Sequence[str], text: str, option: str, axis: str) -> list[str]:
    """The variants that a list of numbers and ranges names; they are numbers themselves."""
    wanted = [str(number) for number in parse_numbers(text, option, axis)]
    for name in wanted:
        if name not in variants:
            known = f"{variants[0]} to {variants[-1]}" if variants[0].isdecimal() else ", ".join(variants)
            raise InputError(f"{option}: no {axis} {name}; known: {known}")
    return wanted


def chosen_duration(duration: str | None, seconds: float | None) -> str | None:
    """Return what --duration or --seconds says, of which only one may be given."""
    if seconds is None:
        return duration
    if duration is not None:
        raise InputError(f"--seconds {seconds:g} and --duration {duration}: expected one of the two")
    return f"{seconds:g}s"


def command(options: argparse.Namespace) -> int:
    """Do what the command line asks for and return the exit status."""
    from weftline.reproduce import all_experiments, published

    if options.published:
        return published.command(options)
    if options.all:
        return all_experiments.command(options)
    all_experiments.refuse_its_options(options)
    experiment = experiments.load(options.experiment)
    only = chosen_variants(experiment, options.only or [])
    if options.rows is not None:
        only["row"] = chosen_rows(experiment, options.rows)
    size = chosen_size(
        experiment,
        full=options.full,
        duration=chosen_duration(options.duration, options.seconds),
        hosts=options.hosts,
        seeds=None if options.seeds is None else parse_seeds(options.seeds),
        only=only,
    )
    root = Path(options.out) if options.out else Path("out") / experiment.store
    page_folder = Path(options.out) if options.out else Path("out") / experiment.out
    page = page_folder / "report.html"
    findings.refuse_page_of_another(page, experiment)
    if options.dry_run:
        return all_experiments.dry_run(experiment, size, root, only, options)
    found = carry_out(experiment, size, root, only, options)
    return 1 if found is None else findings.show(found, options, page)


def carry_out(
    experiment: Experiment,
    size: Size,
    out: Path,
    only: Mapping[str, list[str]],
    options: argparse.Namespace,
) -> findings.Findings | None:
    """Run what is not there yet of an experiment and return what it came to, None when interrupted.

    Of `options` it heeds `jobs`, `threads`, `on`, `quiet` and `json`.
    """
    if experiment.measures_cost:
        return _measure(cost, experiment, size, out, only, options)
    if experiment.tries:
        return _measure(trials, experiment, size, out, only, options)
    plan = plan_points(experiment, size, out, only=only)
    require(plan, experiment)
    drawn = {figure.name: figure for figure, *_ in plan}.values()
    own = [
        f"figure {figure.name}: {_seeds_text(size.seeds_of(figure))}"
        for figure in drawn
        if size.seeds_of(figure) != size.seeds
    ]
    size = replace(size, says="; ".join([size.says, *own]))
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
        on=options.on,
    )
    if failed is None:
        print(INTERRUPTED, file=sys.stderr)
        return None
    panels = collect(experiment, plan, lost={point.folder for point, _ in failed})
    verdicts = check_claims(experiment, panels)
    lost = {f"{point.name}, seed {point.seed}": why for point, why in failed}
    return findings_of(experiment, size, plan, panels, verdicts, lost)


INTERRUPTED = "interrupted; finished runs are kept; run the same command to resume"


def require(plan: Sequence[Any], experiment: Experiment) -> None:
    """Refuse a choice of variants that leaves nothing to run."""
    if not plan:
        raise InputError(f"--only: no figure of {experiment.name} has all requested variants")


def _measure(
    kind: ModuleType,
    experiment: Experiment,
    size: Size,
    out: Path,
    only: Mapping[str, list[str]],
    options: argparse.Namespace,
) -> findings.Findings | None:
    """Carry out an experiment of `cost` or `trials`, whose points are not runs of a store."""
    kind.refuse(experiment, size, options)
    panels = kind.plan(experiment, size, out, only)
    require(panels, experiment)
    points = list({point.file: point for panel in panels for point in panel.points}.values())
    if not (options.quiet or options.json):
        print(f"{experiment.title}\n{size.says}; {kind.amount(experiment, points)}")
    found = kind.carry_out(experiment, size, panels, points, options)
    if found is None:
        print(INTERRUPTED, file=sys.stderr)
    return found


Plan = list[tuple[FigureDefinition, Choice, str, list[Point]]]
"""Figure, panel, label of the line and its points, one per seed."""


def plan_points(
    experiment: Experiment,
    size: Size,
    out: Path,
    *,
    only: Mapping[str, list[str]] | None = None,
    part: experiments.Published | None = None,
) -> Plan:
    """Return every line of every panel with its points; all scenarios are checked before the first run.

    `only` names the variants that are wanted of an axis; a figure without that axis is left out. Of a `part`
    figures, variants and seeds are its own, and figures without one of its axes stay.
    """
    only = only or {}
    source = scenarios.load(experiment.scenario)
    plan: Plan = []
    without: dict[tuple[str, str], dict[str, None]] = {}
    """Of options of the user and settings that override them: lines of figures that have these settings."""
    known: dict[tuple[tuple[tuple[str, str], ...], int], Point] = {}
    """Scenarios that are checked, by settings and seed: several figures show the same runs."""

    def point(changes: Mapping[str, Any], seed: int, name: str, place: str) -> Point:
        scenario = tuple(scenarios.settings(changes)), seed
        if scenario not in known:
            known[scenario] = store.point(out, source, changes, seed, name=name)
        return replace(known[scenario], name=name, place=place)

    for figure in experiment.figures:
        if part and figure.name not in part.figures:
            continue
        for choice in experiment.panels(figure, full=size.full, asked=only):
            for label, place in experiment.points(figure, full=size.full, asked=only):
                along = ((figure.along, place),) if place else ()
                full = (*choice, (figure.lines, label), *along)
                here = dict(full)
                if any(here.get(axis) not in wanted for axis, wanted in only.items()):
                    continue
                if part and any(variant not in part.only.get(axis, [variant]) for axis, variant in full):
                    continue
                # The size comes first: the settings of a variant override it.
                own = experiment.settings(figure, full, full=size.full)
                name, of_size = ", ".join(variant for _, variant in full), dict(size.settings)
                for key, option in size.chosen_keys.items():
                    setting = next((path for path in own if f"{key}.".startswith(f"{path}.")), None)
                    if setting is not None:
                        without.setdefault((option, setting), {})[f"{figure.name}: {name}"] = None
                        of_size.pop(key, None)
                changes = scenarios.layered(of_size, own)
                try:
                    points = [
                        point(changes, seed, name, place)
                        for seed in (size.seeds if part else size.seeds_of(figure))
                    ]
                except InputError as error:
                    at = f'{experiment.folder / "experiment.toml"}: figure "{figure.name}": {name}'
                    raise InputError(f"{at}: {str(error).removeprefix('--set ')}") from None
                plan.append((figure, choice, label, points))
    for (option, setting), names in without.items():
        lines = pooling.shortened(list(names))
        print(f"warning: {option} has no effect on lines that set {setting} ({lines})", file=sys.stderr)
    groups.check(experiment, plan)
    # Lines of costs may differ in their threads alone.
    if not only and part is None and not experiment.measures_cost:
        _refuse_equal_lines(experiment, plan)
    return plan


def _refuse_equal_lines(experiment: Experiment, plan: Plan) -> None:
    """Refuse a panel of which two lines have the same runs at all places."""
    path = experiment.folder / "experiment.toml"
    keys: dict[tuple[str, Choice], dict[str, list[tuple[str, str]]]] = {}
    for figure, choice, label, points in plan:
        of = keys.setdefault((figure.name, choice), {}).setdefault(label, [])
        of += [(point.place, point.key) for point in points]
    for (name, _), of_lines in keys.items():
        first: dict[tuple[tuple[str, str], ...], str] = {}
        for label, found in of_lines.items():
            other = first.setdefault(tuple(sorted(found)), label)
            if other != label:
                raise InputError(
                    f'{path}: figure "{name}": "{other}" and "{label}" are the same runs: their settings do '
                    "not differ"
                )


def run_points(
    points: Sequence[Point],
    *,
    jobs: int,
    line: ProgressLine,
    name: str,
    threads: int = 1,
    on: str = "local",
    costs: Mapping[str, executor.Cost] | None = None,
    until: float | None = None,
) -> list[tuple[Point, str]] | None:
    """Run what is not finished, `jobs` at a time, each on `threads` threads; what failed is tried again.

    With `on` ``"ray"`` it runs on the Ray cluster that there is, with all cores it has, or on one of `jobs`.
    `costs` and `until` are those of `executor.run`.

    Returns
    -------
    list of (Point, str) or None
        The points that failed and why; None when the user interrupted.

    Raises
    ------
    RunFailed
        If no run could continue, as with a full disk.
    """
    if not points:
        return []
    kept = store.Store.create(points[0].folder.parent.parent)
    how: dict[str, Any] = {"jobs": jobs, "threads": threads, "retry": True, "name": name}
    show = partial(line.show, at_once=True)
    if on == "ray":
        from weftline.sweeps import ray_executor

        # A task of Ray takes points for some seconds, so it must be known how long each takes.
        left, _ = executor.waiting(points, kept, retry=True, touch=False)
        costs = {point.key: executor.cost_of(point) for point in left}
        outcome = ray_executor.run(points, kept, show=show, costs=costs, **how)
    else:
        outcome = executor.run(points, kept, show=show, costs=costs, until=until, **how)
    line.clear()
    for remark in outcome.remarks:
        print(f"note: {remark}", file=sys.stderr)
    if outcome.stopped:
        raise RunFailed(f"{outcome.stopped}; finished runs are kept; run the same command to resume")
    return None if outcome.interrupted else outcome.failed


def collect(experiment: Experiment, plan: Plan, *, lost: set[Path]) -> list[list[Panel]]:
    """Return the panels of each figure, with the runs that there are."""
    panels: dict[str, dict[Choice, list[Line]]] = {}
    definitions = {figure.name: figure for figure in experiment.figures}
    for figure, choice, label, points in plan:
        found = [runs.Run.read(p.folder) for p in points if p.folder not in lost]
        group, sizes = figure.options.get("group"), formulas.sizes(figure.options)
        asked = tuple(point.seed for point in points)
        line = Line(label, found, group, place=points[0].place, sizes=sizes, asked=asked)
        panels.setdefault(figure.name, {}).setdefault(choice, []).append(line)
    return [
        [panel_of(experiment, definitions[name], choice, lines) for choice, lines in found.items()]
        for name, found in panels.items()
    ]


def check_claims(experiment: Experiment, panels: Sequence[Sequence[Panel]]) -> list[claims.Verdict]:
    """Check every claim whose panel was run."""
    verdicts = []
    for claim in experiment.claims:
        asked = {"seeded": claim.get("seeded", experiment.seeded), "steady": experiment.steady}
        wanted = claim.get("panel", {})
        fitting = [p for found in panels for p in found if is_of(wanted, p.choice)]
        if claim.get("kind") in ("agreement", "order"):
            verdict = agreement.check(experiment, claim, fitting, **asked)
            verdicts += [verdict] if verdict else []
            continue
        if claim.get("kind") == "law":
            verdict = agreement.check_law(experiment, claim, fitting, **asked)
            verdicts += [verdict] if verdict else []
            continue
        own = _panel_of_claim(claim, wanted, panels)
        if own is None:
            continue
        there = claims.than_panel(claim)
        other = None if there is None else _panel_of_claim({**claim, **claim["than"]}, there, panels)
        if there is None or other is not None:
            than = None
            if other is not None:
                than = (other.asked_lines, published_for({**claim, **claim["than"]}, other))
            mine = published_for(claim, own)
            verdicts.append(claims.check(claim, own.asked_lines, mine, than=than, **asked))
    return verdicts


def _panel_of_claim(
    claim: dict[str, Any], wanted: Mapping[str, str], panels: Sequence[Sequence[Panel]]
) -> Panel | None:
    """The first panel of a claim's figure that fits, None if it was not run, or not with all its lines."""
    for panel in (p for found in panels for p in found if p.figure.name == claim["figure"]):
        if is_of(wanted, panel.choice):
            return panel if claims.asked_lines(claim) <= {line.label for line in panel.asked_lines} else None
    return None


def findings_of(
    experiment: Experiment,
    size: Size,
    plan: Plan,
    panels: Sequence[Sequence[Panel]],
    verdicts: Sequence[claims.Verdict],
    failed: Mapping[str, str],
) -> findings.Findings:
    """Return what the runs came to."""
    points = {
        str(point.folder): {"figure": figure.name, "panel": dict(choice), "line": label, "seed": point.seed}
        | ({figure.along: point.place} if point.place else {})
        for figure, choice, label, found in plan
        for point in found
    }
    named = {
        run.out: (", ".join(part for part in (p.title, line.label, line.place) if part), run)
        for found in panels
        for p in found
        for line in p.lines
        for run in line.runs
    }
    compared = [p.lines for found in panels for p in found if p.figure.kind == "comparison" and p.lines]
    sections = [section for found in panels for section in sections_of(found)]
    lead = None
    if len(compared) == 1:
        # Its section has the cautions.
        lead = replace(run_page.lead(compared[0]), cautions=())
        sections.append(run_page.rerun_section(compared[0]))
    return findings.Findings(
        experiment=experiment,
        size=size,
        verdicts=verdicts,
        tables=[table for found in panels for table in tables_of(found)],
        sections=sections,
        points=points,
        failed=failed,
        about=run_page.about(list(named.values())),
        warnings=pooling.of_other_builds(run for _, run in named.values()),
        lead=lead,
    )
