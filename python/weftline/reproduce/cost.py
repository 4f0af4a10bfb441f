"""What runs cost: the points of an experiment on cost, measured as `weftline bench` measures.

Each point runs in a process of its own, one at a time, in rounds, so that a noisy minute of the machine hits
all alike. A run that other processes disturbed is repeated, up to twice the number of runs; the median of
those with the smallest disturbance counts. What was measured is kept under the hash of the resolved scenario
and of the native module: a stopped experiment resumes, and a new build is measured again.

A claim of kind "cost" is about `metric` (see `METRICS`) of `line` at the place `at` (the last without it):
itself, or with `against` and `against_at` (each `line` and `at` where it is left out) its ratio to the other.
Two metrics compare by themselves: `growth` is the memory of `line` from `against_at` to `at` over the
distance between them, `differences` counts the places, or with `at` looks at one, at which `line` and
`against` have not the same fingerprint.

A time has an interval: Student's over the runs of its point, each one observation; that of a ratio is what
the intervals of both points allow. A claim is decided where the whole interval keeps its bounds, or none of
it. Fewer than `MIN_RUNS` runs that others did not disturb decide nothing. Memory and events are nearly the
same in every run and have no interval.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, integrity, quantities, scenarios
from weftline.cli import bench
from weftline.errors import InputError, RunFailed
from weftline.measures import judgements, stats
from weftline.outputs import write_whole
from weftline.reproduce import claims, findings
from weftline.reproduce.experiments import Choice, Experiment, FigureDefinition
from weftline.scenario import Scenario
from weftline.terminal import ProgressLine

if TYPE_CHECKING:
    from weftline.reproduce.runner import Size


@dataclass(frozen=True, kw_only=True)
class Point:
    """One place of one line: a scenario and a number of threads."""

    line: str
    place: str
    """Name of the variant along x, a number."""
    threads: int
    """Requested number."""
    scenario: Path
    settings: tuple[tuple[str, str], ...]
    file: Path
    """Where its measurements are kept."""

    @property
    def x(self) -> float:
        """Where it is drawn."""
        return float(self.place.replace(" ", ""))


@dataclass(kw_only=True)
class Panel:
    """A figure for one choice of its panels' axes: points, and what was measured of each."""

    figure: FigureDefinition
    choice: Choice
    points: list[Point]
    measured: dict[Point, dict[str, Any]] = field(default_factory=dict)
    """`bench.summary` of the runs of a point; a point that failed is not there."""

    def at(self, line: str, place: str) -> dict[str, Any] | None:
        """Return what was measured at a place of a line."""
        found = (p for p in self.measured if (p.line, p.place) == (line, place))
        return next((self.measured[point] for point in found), None)

    @property
    def places(self) -> list[str]:
        """The places along x, in order."""
        return list(dict.fromkeys(point.place for point in self.points))

    @property
    def lines(self) -> list[str]:
        """The labels of the lines, in order."""
        return list(dict.fromkeys(point.line for point in self.points))


@dataclass(frozen=True, kw_only=True)
class CostMetric:
    """One number of a point."""

    title: str
    read: Callable[[Mapping[str, Any]], float | None]
    text: Callable[[float | None], str]
    scale: float = 1
    """Axes show the value times this."""
    log: bool = False
    """Whether its axis is logarithmic."""
    unit: str = ""
    minimum: float = 0.0
    maximum: float = math.inf
    """The smallest and the largest value that it can have."""


def _per_hop(clock: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda found: 1e9 * found["median"][f"{clock}_seconds"] / found["packet_hops"]


def _clock(found: Mapping[str, Any]) -> str:
    return "cpu" if found["threads"] == 1 else "wall"


def _median(key: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda found: found["median"].get(key)


METRICS: dict[str, CostMetric] = {
    "time": CostMetric(
        title="ns per packet-hop",
        read=lambda found: _per_hop(_clock(found))(found),
        text=quantities.digits,
    ),
    "cpu_time": CostMetric(title="CPU ns per packet-hop", read=_per_hop("cpu"), text=quantities.digits),
    "wall_time": CostMetric(title="wall ns per packet-hop", read=_per_hop("wall"), text=quantities.digits),
    "events": CostMetric(
        title="events per packet-hop",
        read=lambda found: found["events"] / found["packet_hops"],
        text=quantities.digits,
    ),
    "setup": CostMetric(title="set-up (s)", read=_median("setup_seconds"), text=quantities.digits, log=True),
    "memory": CostMetric(
        title="peak memory (MB)",
        read=_median("peak_memory_bytes"),
        text=quantities.bytes_text,
        scale=1e-6,
        log=True,
    ),
}
"""`time` is CPU time with one thread, wall time with several."""
COMPARED: dict[str, CostMetric] = {
    "growth": CostMetric(
        title="growth of memory", read=lambda found: None, text=quantities.bytes_text, minimum=-math.inf
    ),
    "differences": CostMetric(title="differences", read=lambda found: None, text=quantities.count_text),
}
"""Metrics of claims that compare several points by themselves: no point alone has them."""


def plan(
    experiment: Experiment, size: Size, out: Path, only: Mapping[str, Sequence[str]] | None = None
) -> list[Panel]:
    """Return every panel of every figure with its points; all scenarios are checked before the first run.

    `only` names the variants that are wanted of an axis; a figure without that axis is left out.
    """
    source = scenarios.load(experiment.scenario)
    panels = []
    for figure in experiment.figures:
        for choice in experiment.panels(figure, full=size.full):
            points = [
                _point(experiment, size, figure, chosen, source, out)
                for line in experiment.variants(figure, figure.lines, full=size.full)
                for place in experiment.variants(figure, figure.along, full=size.full)
                if _wanted(chosen := (*choice, (figure.lines, line), (figure.along, place)), only or {})
            ]
            if points:
                panels.append(Panel(figure=figure, choice=choice, points=points))
    return panels


def _wanted(chosen: Choice, only: Mapping[str, Sequence[str]]) -> bool:
    here = dict(chosen)
    return all(here.get(axis) in wanted for axis, wanted in only.items())


def _point(
    experiment: Experiment,
    size: Size,
    figure: FigureDefinition,
    chosen: Choice,
    source: scenarios.Source,
    out: Path,
) -> Point:
    here = dict(chosen)
    line, place = here[figure.lines], here[figure.along]
    own = experiment.settings(figure, chosen, full=size.full)
    changes = scenarios.layered(size.settings, own, {"seed": size.seeds[0]})
    settings = tuple(scenarios.settings(changes))
    threads = experiment.axes[figure.lines][line].get("threads", 1)
    name = f"{_hash(Scenario.of(source, list(settings), seed=None).resolved)}-{threads}.json"
    return Point(
        line=line,
        place=place,
        threads=threads,
        scenario=experiment.scenario,
        settings=settings,
        file=out / "points" / name,
    )


def _hash(resolved: str) -> str:
    return hashlib.sha256(f"{_build()}\n{resolved}".encode()).hexdigest()[:12]


@cache
def _build() -> str:
    """What names the native module that is measured: its bytes."""
    file = getattr(_native, "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else _native.version()


def measure(points: Sequence[Point], repeats: int, *, show: Callable[[str], None]) -> dict[Point, str]:
    """Run every point until it has `repeats` good runs, round by round; return those that failed, and why."""
    failed: dict[Point, str] = {}
    for number in range(1, 2 * repeats + 1):
        for place, point in enumerate(points, 1):
            known = _kept(point.file)
            good = sum(waited(run) <= UNDISTURBED for run in known)
            if len(known) >= number or good >= repeats or point in failed:
                continue
            show(f"round {number}, point {place} of {len(points)}: {point.line}, {point.place}")
            try:
                found = bench.in_own_process(str(point.scenario), point.threads, point.settings)
            except RunFailed as error:
                failed[point] = str(error)
                continue
            _keep(point.file, [*known, found])
    return failed


def is_due(point: Point, repeats: int) -> bool:
    """Return whether `measure` would run a point: good runs are missing, and it had not twice as many."""
    known = _kept(point.file)
    return len(known) < 2 * repeats and sum(waited(run) <= UNDISTURBED for run in known) < repeats


UNDISTURBED = 1.1
"""What `waited` is at most when a run had its cores for itself."""


def waited(run: Mapping[str, Any]) -> float:
    """Return wall time times threads over CPU time: 1 where no thread waited for anything."""
    return run["wall_seconds"] * run["threads"] / run["cpu_seconds"] if run["cpu_seconds"] > 0 else 1.0


def _kept(file: Path) -> list[dict[str, Any]]:
    """Return the runs that a file holds; none where it is not there or was cut short."""
    try:
        found, _ = integrity.unsealed(file.read_bytes())
        return found["runs"] if isinstance(found["runs"], list) else []
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _keep(file: Path, found: Sequence[dict[str, Any]]) -> None:
    """Write the runs of a point, at once or not at all."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, integrity.sealed({"runs": found}))
    except OSError as error:
        raise InputError(
            f"{file}: cannot be written: {error.strerror or error}; choose another --out"
        ) from None


def summaries(points: Sequence[Point], repeats: int) -> dict[Point, dict[str, Any]]:
    """Return the summary of every point that has runs."""
    return {point: found for point in points if (found := summary(point, repeats)) is not None}


def summary(point: Point, repeats: int) -> dict[str, Any] | None:
    """Return the median and the range of the `repeats` runs with the shortest waits; None without a run.

    Raises
    ------
    RunFailed
        If they differ in what they simulated.
    """
    found = _kept(point.file)
    if not found:
        return None
    name = f"{point.line}, {point.place}"
    bench.summary(name, "", found)
    found = sorted(found, key=waited)[:repeats]
    result = bench.summary(name, "", found)
    result["waited"] = statistics.median(waited(run) for run in found)
    before = [run["memory_before_bytes"] for run in found if run.get("memory_before_bytes") is not None]
    result["memory_before_bytes"] = statistics.median(before) if before else None
    return result


def check(claim: dict[str, Any], panels: Sequence[Panel]) -> claims.Verdict | None:
    """Check a claim; None where not all that it is about is run at this size, or was requested."""
    wanted = claim.get("panel", {})
    chosen = [
        panel
        for panel in panels
        if panel.figure.name == claim["figure"] and wanted.items() <= dict(panel.choice).items()
    ]
    if not chosen:
        return None
    panel = chosen[0]
    places = [claim[key] for key in ("at", "against_at") if key in claim]
    lines = [claim[key] for key in ("line", "against") if key in claim]
    if not (set(places) <= set(panel.places) and set(lines) <= set(panel.lines)):
        return None
    if claim["metric"] == "differences":
        return claims.verdict(claim, _differences(claim, panel), COMPARED["differences"].text)
    value, write = _value(claim, panel)
    if value is None or claim["metric"] not in TIMES:
        return claims.verdict(claim, value, write)
    reasons = [reason for found in _points_of(claim, panel) for reason in _few_runs(found)]
    interval = _interval(claim, panel)
    return claims.verdict(claim, value, write, interval=interval, reasons=list(dict.fromkeys(reasons)))


TIMES = ("time", "cpu_time", "wall_time", "setup")
"""Metrics that other processes of the machine change."""
MIN_RUNS = 3
"""Minimum number of undisturbed runs of a point with which a claim on time is decided."""


def _points_of(claim: dict[str, Any], panel: Panel) -> list[Mapping[str, Any]]:
    """Return what was measured at the point of a claim, then at the one that it is relative to."""
    at = claim.get("at") or panel.places[-1]
    found = [panel.at(claim["line"], at)]
    if {"against", "against_at"} & claim.keys():
        found.append(panel.at(claim.get("against", claim["line"]), claim.get("against_at", at)))
    return [one for one in found if one is not None]


def _few_runs(found: Mapping[str, Any]) -> list[judgements.Reason]:
    """Return the reason that too few undisturbed runs of a point give.

    Threads also wait for each other, so of several threads every run counts.
    """
    threads = found["threads"]
    good = [run for run in found["runs"] if threads > 1 or waited({**run, "threads": 1}) <= UNDISTURBED]
    if len(good) >= MIN_RUNS:
        return []
    text = (
        f"{found['workload']}: {len(good)} undisturbed of {len(found['runs'])} runs; a time needs {MIN_RUNS}"
    )
    return [judgements.Reason("seeds", text)]


def _interval(claim: dict[str, Any], panel: Panel) -> tuple[float, float] | None:
    """Return the interval of a time; None where a point has one run alone."""
    found = [_interval_of(METRICS[claim["metric"]], one) for one in _points_of(claim, panel)]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    if len(known) == 1:
        return known[0]
    (low, high), (other_low, other_high) = known
    return max(0.0, low) / other_high, high / other_low if other_low > 0 else math.inf


def _interval_of(metric: CostMetric, found: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return Student's interval of a number over the runs of a point."""
    values = [metric.read({**found, "median": run}) for run in found["runs"]]
    known = [value for value in values if value is not None]
    return stats.interval_t(known) if len(known) > 1 else None


def _value(claim: dict[str, Any], panel: Panel) -> tuple[float | None, Callable[..., Any]]:
    """The number of a claim and how it is written."""
    line, name = claim["line"], claim["metric"]
    at = claim.get("at") or panel.places[-1]
    mine = panel.at(line, at)
    compared = "against" in claim or "against_at" in claim
    other_at = claim.get("against_at", at)
    other = panel.at(claim.get("against", line), other_at) if compared else None
    if name == "growth":
        memory = METRICS["memory"].read
        distance = float(at.replace(" ", "")) - float(other_at.replace(" ", ""))
        ours, theirs = memory(mine) if mine else None, memory(other) if other else None
        growth = None if ours is None or theirs is None else (ours - theirs) / distance
        return growth, COMPARED[name].text
    metric = METRICS[name]
    value = metric.read(mine) if mine else None
    if not compared:
        return value, metric.text
    reference = metric.read(other) if other else None
    return (value / reference if value is not None and reference else None), quantities.digits


def _differences(claim: dict[str, Any], panel: Panel) -> float | None:
    """At how many places two lines have not the same results; None where one was not measured."""
    pairs = [
        (panel.at(claim["line"], place), panel.at(claim["against"], place))
        for place in ([claim["at"]] if "at" in claim else panel.places)
    ]
    known = [(mine, other) for mine, other in pairs if mine is not None and other is not None]
    if len(known) < len(pairs):
        return None
    return sum(mine["fingerprint"] != other["fingerprint"] for mine, other in known)


def refuse(experiment: Experiment, size: Size, options: argparse.Namespace) -> None:
    """Refuse options that an experiment on cost cannot follow."""
    if len(size.seeds) > 1:
        raise InputError(f"--seeds: {experiment.name} measures what runs cost; expected one seed")
    if (options.jobs or 1) > 1:
        raise InputError(
            f"--jobs {options.jobs}: {experiment.name} measures time; expected one run at a time"
        )
    if options.threads > 1:
        raise InputError(
            f"--threads {options.threads}: the lines of {experiment.name} state how many threads they use"
        )
    if options.on != "local":
        raise InputError(f"--on {options.on}: {experiment.name} measures time; expected this machine")


def amount(experiment: Experiment, points: Sequence[Point]) -> str:
    """Return how much is measured, for the first lines of the output."""
    return f"{len(points)} points, {experiment.repeats} runs of each"


def carry_out(
    experiment: Experiment,
    size: Size,
    panels: list[Panel],
    points: list[Point],
    options: argparse.Namespace,
) -> findings.Findings | None:
    """Measure what is not measured yet and check the claims; None when interrupted."""
    line = ProgressLine(quiet=options.quiet or options.json)
    try:
        failed = measure(points, experiment.repeats, show=lambda text: line.show(text, at_once=True))
    except KeyboardInterrupt:
        return None
    finally:
        line.clear()
    for panel in panels:
        panel.measured = summaries(panel.points, experiment.repeats)
    verdicts = [v for claim in experiment.claims if (v := check(claim, panels)) is not None]
    return findings.findings_of_cost(experiment, size, panels, verdicts, failed)
