"""Trials: the points of an experiment that needs no run of a fabric, or looks at what one recorded: tried
many times, or computed.

The settings of figures and variants define what is tried; the number of a variant along x is the setting with
the axis' name. `what` is one of `trial_kinds`: "path" (packets until a path is decoded), "latency" (error of
a hop's latency quantile), "flow-cache" (top flows that a cache misses), "state" (what a port must remember),
"plan" (what a plan asks of a switch); `trials` is how often. Settings that begin with "scenario." are those
of the experiment's scenario, which a latency experiment runs once for all points that share them.

A point is kept under the hash of its settings and its seed, of the topology or the scenario, and of
weftline's version. Each seed has as many trials; numbers are means over the seeds.

A claim of kind "trials" is about `metric` (see `METRICS`) of `line` at the place `at` (the last without it):
itself, or with `against` and `against_at` (each `line` and `at` where it is left out) its ratio to the other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, integrity, provenance, quantities, scenarios
from weftline.errors import InputError, RunFailed, nearest
from weftline.outputs import write_whole
from weftline.reproduce import claims, findings, numbers, trial_kinds
from weftline.reproduce.experiments import Choice, Experiment, FigureDefinition
from weftline.reproduce.trial_kinds import KINDS
from weftline.sweeps import executor, store
from weftline.terminal import ProgressLine

if TYPE_CHECKING:
    from weftline.reproduce.runner import Size


@dataclass(frozen=True, kw_only=True)
class TrialMetric:
    """One number of a point."""

    title: str
    key: str
    text: Callable[[float | None], str] = quantities.digits
    scale: float = 1
    """Axes and published points show the value times this."""
    log: bool = False
    unit: str = ""
    minimum: float = 0.0
    maximum: float = math.inf
    """The smallest and the largest value that it can have."""


def _share(title: str, key: str) -> TrialMetric:
    return TrialMetric(title=title, key=key, text=quantities.share_text, scale=100, unit="share", maximum=1.0)


METRICS: dict[str, TrialMetric] = {
    "mean": TrialMetric(title="packets until the path is known, mean", key="mean_packets", log=True),
    "median": TrialMetric(title="packets until the path is known, median", key="median_packets", log=True),
    "p99": TrialMetric(title="packets until the path is known, p99", key="p99_packets", log=True),
    "error": TrialMetric(
        title="relative error, mean (%)", key="mean_relative_error", text=quantities.share_text, scale=100
    ),
    "typical": TrialMetric(
        title="relative error, median (%)", key="median_relative_error", text=quantities.share_text, scale=100
    ),
    "false_negatives": _share("top flows missed (%)", "false_negatives"),
    "false_positives": _share("other flows taken for top ones (%)", "false_positives"),
    "memory": TrialMetric(
        title="memory of a port (KB)", key="memory_bytes", text=quantities.bytes_text, scale=1e-3, log=True
    ),
    "queues": TrialMetric(title="queues of a port", key="queues", text=quantities.count_text, log=True),
    "stages": TrialMetric(title="stages that are needed", key="stages", text=quantities.count_text),
    "feedback": TrialMetric(title="packets of a round trip that serve the last query", key="feedback"),
    "accesses": TrialMetric(title="accesses to memory in a row, for a packet", key="accesses"),
}


@dataclass(frozen=True, kw_only=True)
class Point:
    """One place of one line."""

    line: str
    place: str
    """Name of the variant along x, a number."""
    what: str
    settings: Mapping[str, Any] = field(hash=False)
    seed: int
    file: Path
    """Where its numbers are kept."""
    recorded: Any = None
    """The run whose digests it looks at (a point of a store), if it needs one."""

    @property
    def x(self) -> float:
        """Where it is drawn."""
        return float(self.place.replace(" ", ""))


@dataclass(kw_only=True)
class Panel:
    """A figure for one choice of its panels' axes: points, and what was found for each."""

    figure: FigureDefinition
    choice: Choice
    title: str
    points: list[Point]
    published: list[dict[str, Any]]
    """Entries with `line`, `metric` and `points`, a list of [x, y]."""
    found: dict[Point, dict[str, Any]] = field(default_factory=dict)

    @property
    def places(self) -> list[str]:
        """The places along x, in order."""
        return sorted({point.place for point in self.points}, key=lambda name: float(name.replace(" ", "")))

    @property
    def lines(self) -> list[str]:
        """The labels of the lines, in order."""
        return list(dict.fromkeys(point.line for point in self.points))

    def value(self, line: str, place: str, metric: str) -> float | None:
        """Return a number of a place of a line, the mean over the seeds."""
        known = [value for value in self.values(line, place, metric).values() if value is not None]
        return math.fsum(known) / len(known) if known else None

    def values(self, line: str, place: str, metric: str) -> dict[int, float | None]:
        """Return the same by seed."""
        key = METRICS[metric].key
        return {p.seed: f.get(key) for p, f in self.found.items() if (p.line, p.place) == (line, place)}

    def numbers_of(self, line: str, place: str, metric: str) -> dict[int, numbers.Number]:
        """Return the same of each seed that was to be tried."""
        known = self.values(line, place, metric)
        return {
            p.seed: numbers.Number.of(known[p.seed])
            if p.seed in known
            else numbers.Number(None, numbers.FAILED)
            for p in self.points
            if (p.line, p.place) == (line, place)
        }

    def published_value(self, line: str, place: str, metric: str) -> float | None:
        """Return the published number of a place of a line, in the unit of `value`."""
        x = float(place.replace(" ", ""))
        for entry in self.published:
            if (entry["line"], entry["metric"]) == (line, metric):
                return next((y / METRICS[metric].scale for at, y in entry["points"] if at == x), None)
        return None


def plan(
    experiment: Experiment, size: Size, out: Path, only: Mapping[str, Sequence[str]] | None = None
) -> list[Panel]:
    """Return every panel of every figure with its points; all settings are checked before the first trial.

    `only` names the variants that are wanted of an axis; a figure without that axis is left out.
    """
    panels = []

    @cache
    def recorded(seed: int, settings: str) -> store.Point:
        return trial_kinds.latency_run(experiment, seed, json.loads(settings), out)

    for figure in experiment.figures:
        for choice in experiment.panels(figure, full=size.full):
            points = [
                point
                for line in experiment.variants(figure, figure.lines, full=size.full)
                for place in experiment.variants(figure, figure.along, full=size.full)
                if _wanted(chosen := (*choice, (figure.lines, line), (figure.along, place)), only or {})
                for seed in size.seeds
                if (point := _point(experiment, size, figure, chosen, seed, out, recorded)) is not None
            ]
            if points:
                panels.append(_panel(experiment, figure, choice, points))
    return panels


def _wanted(chosen: Choice, only: Mapping[str, Sequence[str]]) -> bool:
    here = dict(chosen)
    return all(here.get(axis) in wanted for axis, wanted in only.items())


def _panel(experiment: Experiment, figure: FigureDefinition, choice: Choice, points: list[Point]) -> Panel:
    varied = ", ".join(experiment.varied(figure, choice))
    title = ": ".join(filter(None, [figure.title, varied]))
    published = experiment.published_in(figure, choice)
    return Panel(figure=figure, choice=choice, title=title, points=points, published=published)


def _point(
    experiment: Experiment,
    size: Size,
    figure: FigureDefinition,
    chosen: Choice,
    seed: int,
    out: Path,
    run_of: Callable[[int, str], store.Point],
) -> Point | None:
    """Return a point, None for a place that the line or the panel does not reach.

    `run_of` returns the run that a latency experiment looks at, from its seed and its settings as JSON.
    """
    here = dict(chosen)
    line, place = here[figure.lines], here[figure.along]
    changes = scenarios.layered(size.settings, experiment.settings(figure, chosen, full=size.full))
    what = str(changes.pop("what", "path"))
    name = f"{experiment.name}: {line}, {place}"
    _known(f"{name}: what", what, list(KINDS))
    of_run = {key[9:]: changes.pop(key) for key in list(changes) if key.startswith("scenario.")}
    settings = dict(KINDS[what].settings)
    for key, value in [*changes.items(), (figure.along, int(place.replace(" ", "")))]:
        _known(f"{name}: setting", key, list(settings))
        settings[key] = value
    if what == "path" and settings["hops"] > settings["longest"]:
        return None
    recorded, basis = None, KINDS[what].check(settings, experiment.folder, name)
    if what == "latency":
        recorded = run_of(seed, json.dumps(of_run))
        basis += recorded.folder.name
    program = [_native.version(), provenance.build()]
    key = json.dumps([*program, what, settings, seed, basis], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:12]
    return Point(
        line=line,
        place=place,
        what=what,
        settings=settings,
        seed=seed,
        file=out / "trials" / f"{digest}.json",
        recorded=recorded,
    )


def _known(what: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise InputError(f'{what}: unknown "{name}": {nearest(name, names)}known: {", ".join(names)}')


def kept(point: Point) -> dict[str, Any] | None:
    """Return the numbers of a point that was tried before; None where there are none, or damaged ones."""
    try:
        return integrity.unsealed(point.file.read_bytes())[0]
    except (OSError, ValueError):
        return None


def _keep(point: Point, found: dict[str, Any]) -> None:
    """Write the numbers of a point, at once or not at all."""
    try:
        write_whole(point.file, integrity.sealed(found))
    except OSError as error:
        raise InputError(f"{point.file}: cannot be written: {error.strerror or error}") from None


def run(points: Sequence[Point], *, folder: Path, jobs: int, show: Callable[[str], None]) -> dict[Point, str]:
    """Try what is not kept yet, `jobs` groups of points at a time; return the points that failed, and why.

    Points on the same recorded run are tried together: reading its digests takes longest.
    """
    waiting = [point for point in points if kept(point) is None]
    for parent in {point.file.parent for point in waiting}:
        try:
            parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:  # before hours of trials whose results nothing could hold
            raise InputError(f"{parent}: the folder cannot be made: {error.strerror or error}") from None
    groups: dict[object, list[Point]] = {}
    for point in waiting:
        groups.setdefault(point.recorded.folder if point.recorded else point.file, []).append(point)
    todo: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for group in groups.values():
        todo.put(group)

    def work() -> None:
        while True:
            try:
                group = todo.get_nowait()
            except queue.Empty:
                return
            try:
                for point, found in zip(group, KINDS[group[0].what].tried(group, folder), strict=True):
                    _keep(point, found)
                done.put((group, None))
            except (InputError, RunFailed) as error:
                done.put((group, str(error)))
            except BaseException as error:  # raised where the results are awaited, which would wait forever
                done.put((group, error))
                return

    # Daemons: after Ctrl-C the program does not wait for running trials.
    for _ in range(min(jobs, len(groups))):
        threading.Thread(target=work, daemon=True).start()
    failed: dict[Point, str] = {}
    for number in range(len(groups)):
        show(f"{number} of {len(groups)} tried")
        while True:
            try:
                group, why = done.get(timeout=0.2)
                break
            except queue.Empty:
                continue
        if isinstance(why, BaseException):
            raise why
        if why is not None:
            failed |= dict.fromkeys(group, why)
    return failed


def check(claim: dict[str, Any], panels: Sequence[Panel], *, seeded: bool = True) -> claims.Verdict | None:
    """Check a claim; None where not all that it is about is tried at this size, or was requested."""
    wanted = claim.get("panel", {})
    chosen = [
        panel
        for panel in panels
        if panel.figure.name == claim["figure"] and wanted.items() <= dict(panel.choice).items()
    ]
    if not chosen:
        return None
    panel, metric = chosen[0], claim["metric"]
    at = claim.get("at") or panel.places[-1]
    against = (claim.get("against", claim["line"]), claim.get("against_at", at))
    used = [(claim["line"], at), against]
    if any(line not in panel.lines or place not in panel.places for line, place in used):
        return None
    alone = against == (claim["line"], at)
    found = panel.numbers_of(claim["line"], at, metric)
    text = panel.published_value(claim["line"], at, metric)
    if not alone:
        found = numbers.ratio(found, panel.numbers_of(*against, metric))
        stated_other = panel.published_value(*against, metric)
        text = text / stated_other if text is not None and stated_other else None
    mean = numbers.mean(found)
    return claims.verdict(
        claim,
        mean.value if mean else None,
        METRICS[metric].text if alone else quantities.digits,
        published=claim.get("published", text),
        interval=(mean.low, mean.high) if mean and mean.interval is not None else None,
        reasons=numbers.reasons(found, seeded=seeded),
        seeds=numbers.known(found),
        asked=len(found),
        by_seed=tuple(number.value for number in found.values()) if len(found) > 1 else (),
        unseeded=not seeded,
    )


def refuse(experiment: Experiment, size: Size, options: argparse.Namespace) -> None:
    """Refuse options that an experiment of trials cannot follow: there is none."""


def amount(experiment: Experiment, points: Sequence[Point]) -> str:
    """Return how much is tried, for the first lines of the output."""
    return f"{len(points)} points"


def carry_out(
    experiment: Experiment,
    size: Size,
    panels: list[Panel],
    points: list[Point],
    options: argparse.Namespace,
) -> findings.Findings | None:
    """Try what is not tried yet and check the claims; None when interrupted."""
    try:
        failed = _run_and_try(experiment, points, options, ProgressLine(quiet=options.quiet or options.json))
    except KeyboardInterrupt:
        return None
    if failed is None:
        return None
    for panel in panels:
        panel.found = {p: found for p in panel.points if (found := kept(p)) is not None}
    verdicts = [
        v
        for claim in experiment.claims
        if (v := check(claim, panels, seeded=claim.get("seeded", experiment.seeded)))
    ]
    return findings.findings_of_trials(experiment, size, panels, verdicts, failed)


def _run_and_try(
    experiment: Experiment, points: Sequence[Point], options: argparse.Namespace, line: ProgressLine
) -> dict[str, str] | None:
    """Run what points need a run of, then try them; return what failed and why, None when interrupted."""
    from weftline.reproduce import runner

    jobs = options.jobs or max(1, executor.cores() // max(1, options.threads))
    recorded = {p.recorded.folder: p.recorded for p in points if p.recorded and kept(p) is None}
    failed: dict[str, str] = {}
    if recorded:
        lost = runner.run_points(
            list(recorded.values()),
            jobs=jobs,
            threads=options.threads,
            line=line,
            name=experiment.name,
            on=options.on,
        )
        if lost is None:
            return None
        failed |= {f"{point.name}, seed {point.seed}": why for point, why in lost}
        missing = {point.folder for point, _ in lost}
        points = [point for point in points if not (point.recorded and point.recorded.folder in missing)]

    def show(text: str) -> None:
        line.show(f"{experiment.name}  {text}", at_once=True)

    try:
        found = run(points, folder=experiment.folder, jobs=jobs, show=show)
    finally:
        line.clear()
    return failed | {f"{p.line}, {p.place}, seed {p.seed}": why for p, why in found.items()}
