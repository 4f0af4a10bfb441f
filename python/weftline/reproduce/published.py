"""`weftline reproduce --published`: what has to have the published size to decide claims, within a budget.

The part of an experiment that `[published]` of its file names is run at the full size, experiment by
experiment in the order that these say: first one seed of each, then the other seeds of each, in the same
order. `--budget` limits the time of all of it, finished points included, in hours with the given number of
parallel runs; what no longer fits is left out, and named with its hours and its command. `--sitting` ends
this call before it takes longer: a point that would probably end later is left for the next call. `--seeds`
runs some of the seeds alone, as where each machine takes one (`weftline.reproduce.joined`).

Points are in the store of all experiments, so those that several share, or that `--full` ran, are run once.
Claims are checked on the seeds of which their panels are finished; what they came to goes into the ledger as
`OUT/ledger/results/NAME-published.json`, where a claim at its published size
replaces that at the small one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weftline import quantities, scenarios
from weftline.errors import InputError, nearest
from weftline.reproduce import all_experiments, claims, experiments, findings, joined, ledger, runner
from weftline.reproduce.claims import Verdict
from weftline.reproduce.experiments import Experiment, Published
from weftline.reproduce.panels import Panel
from weftline.reproduce.runner import Size, chosen_size
from weftline.sweeps import executor
from weftline.sweeps.states import state_of
from weftline.sweeps.store import Point
from weftline.terminal import ProgressLine, Table

BUDGET, SITTING = "16h", ""
"""Defaults: of the whole, and of one call, which is not limited."""


@dataclass(kw_only=True)
class Round:
    """Some seeds of an experiment's part."""

    experiment: Experiment
    part: Published
    size: Size
    points: list[Point]
    seconds: list[float]
    """Expected, of each point."""
    kept: int = 0
    """How many of its points fit into the budget, from the first on."""
    done: list[bool] = field(default_factory=list)

    def expected(self, first: int = 0, last: int | None = None) -> float:
        """Return the expected seconds of one core of some of its points."""
        return sum(self.seconds[first:last])

    @property
    def left(self) -> list[tuple[Point, float]]:
        """The points within the budget that are not finished, and their times."""
        kept = zip(self.points[: self.kept], self.seconds, self.done, strict=False)
        return [(point, seconds) for point, seconds, done in kept if not done]


def command(options: argparse.Namespace) -> int:
    """Do what the command line asks for and return the exit status."""
    _check(options)
    out = Path(options.out or "out")
    names = [options.experiment] if options.experiment else list(experiments.names())
    wanted = [e for e in map(experiments.load, names) if e.published_part]
    wanted = [e for e in wanted if e.name not in (options.skip or [])]
    if not wanted:
        known = [name for name in experiments.names() if experiments.load(name).published_part]
        hint = nearest(str(options.experiment), known)
        raise InputError(
            f"--published: {options.experiment} has no part of published size; "
            f"{hint}known: {', '.join(known)}"
        )
    jobs = all_experiments.jobs_of(options)
    budget = hours(options.budget or BUDGET, "--budget") * 3600
    sitting = hours(options.sitting, "--sitting") * 3600 if options.sitting else None
    asked = None if options.seeds is None else quantities.parse_seeds(options.seeds)
    rounds = plan(wanted, out, asked)
    within(rounds, budget * jobs)
    if options.dry_run:
        _show(rounds, jobs, options)
        return 0
    until = None if sitting is None else time.monotonic() + sitting
    left = [seconds for one in rounds for _, seconds in one.left]
    if until is not None and left and time.monotonic() + min(left) > until:
        shortest = quantities.seconds_text(float(f"{min(left):.2g}"))
        raise InputError(
            f"--sitting {options.sitting}: no run that is left ends so soon; the shortest takes {shortest}"
        )
    results_folder = all_experiments.results_folder(out)
    if not _run(rounds, until, jobs, options):
        return 1
    _collect(rounds, out)
    unfinished = [one for one in rounds if not all(one.done)]
    if unfinished and (options.json or options.quiet):
        # Standard output is the ledger's alone; --dry-run --json prints what is left.
        print(_left_text(unfinished, jobs), file=sys.stderr)
    elif unfinished:
        _show(unfinished, jobs, options)
    book = ledger.load()
    tasks = [all_experiments.task(name, out, full=False) for name in book.experiments]
    results = all_experiments.with_published(all_experiments.collected(tasks), results_folder)
    return all_experiments.end(book, results, out / "ledger", options)


def _check(options: argparse.Namespace) -> None:
    for name in ("full", "duration", "seconds", "rows", "hosts", "only"):
        if getattr(options, name):
            raise InputError(f"--{name}: not with --published, whose sizes the experiments say")
    if options.all and options.experiment:
        raise InputError(f"--all and {options.experiment}: expected one of the two")


def hours(text: str, option: str) -> float:
    """Return the hours of a text such as "16h" or "150min"."""
    for unit, factor in (("h", 1.0), ("min", 1 / 60), ("s", 1 / 3600)):
        number = text.removesuffix(unit).strip()
        if text.endswith(unit) and number.replace(".", "", 1).isdigit() and float(number) > 0:
            return float(number) * factor
    raise InputError(f'{option} {text}: expected a time such as "16h", "2.5h" or "150min"')


def _part(experiment: Experiment) -> Published:
    """The published part of an experiment that has one."""
    assert experiment.published_part is not None
    return experiment.published_part


def plan(wanted: Sequence[Experiment], out: Path, asked: list[int] | None = None) -> list[Round]:
    """Return the rounds in their order: the first seeds of all, then the other seeds of all.

    A point that an earlier round has is not in a later one. `asked`: only these seeds.
    """
    ordered = sorted(wanted, key=lambda one: _part(one).order)
    seen: set[Path] = set()
    costs: dict[tuple[Any, ...], float] = {}
    rounds = []
    for later in (False, True):
        for experiment in ordered:
            part = _part(experiment)
            seeds = _wanted(part.seeds[1:] if later else part.seeds[:1], asked)
            if seeds:
                rounds.append(_round(experiment, part, seeds, out, seen, costs))
    if asked and not rounds:
        has = "; ".join(f"{one.name} has {', '.join(map(str, _part(one).seeds))}" for one in ordered)
        raise InputError(f"--seeds {', '.join(map(str, asked))}: no seeds of a published part; {has}")
    return [one for one in rounds if one.points]


def _wanted(seeds: Sequence[int], asked: list[int] | None) -> list[int]:
    return [seed for seed in seeds if asked is None or seed in asked]


def _round(
    experiment: Experiment,
    part: Published,
    seeds: list[int],
    out: Path,
    seen: set[Path],
    costs: dict[tuple[Any, ...], float],
) -> Round:
    size = _size(experiment, seeds)
    points = [point for point in _points(experiment, part, size, out) if point.folder not in seen]
    seen |= {point.folder for point in points}
    for point in points:
        if (point.source.file, point.settings) not in costs:
            cost = executor.cost_of(point, max_flows=all_experiments.LOOK_FLOWS)
            costs[point.source.file, point.settings] = cost.seconds
    return Round(
        experiment=experiment,
        part=part,
        size=size,
        points=points,
        seconds=[costs[point.source.file, point.settings] for point in points],
        done=[state_of(point.folder) == "finished" for point in points],
    )


def _size(experiment: Experiment, seeds: list[int]) -> Size:
    """The full size with these seeds and what the part sets on top."""
    part, size = _part(experiment), chosen_size(experiment, full=True, seeds=seeds)
    says = f"{part.says}, {len(seeds)} seed{'s' if len(seeds) > 1 else ''}" if part.says else size.says
    says = f"Published size: {says.removeprefix('Full size: ')}"
    return replace(size, says=says, settings=scenarios.layered(size.settings, part.set))


def _points(experiment: Experiment, part: Published, size: Size, out: Path) -> list[Point]:
    """The points of a part, each once, panel by panel, so that claims are decided as early as can be.

    Panels are in the order in which the part's `only` has their variants.
    """
    found = runner.plan_points(experiment, size, out / experiment.store, part=part)

    def place(choice: experiments.Choice) -> list[int]:
        chosen = dict(choice)
        return [names.index(chosen[axis]) for axis, names in part.only.items() if axis in chosen]

    found.sort(key=lambda entry: place(entry[1]))
    return list({point.folder: point for *_, points in found for point in points}.values())


def within(rounds: Sequence[Round], seconds: float) -> None:
    """Take points into the budget, in order, until the first that does not fit."""
    left, full = seconds, False
    for one in rounds:
        for number, cost in enumerate(one.seconds):
            full = full or cost > left
            if full:
                break
            left -= cost
            one.kept = number + 1


def _show(rounds: Sequence[Round], jobs: int, options: argparse.Namespace) -> None:
    """Print the plan: what is in the budget, and what it leaves out, with its command."""
    rows = [_facts(one, jobs) for one in rounds]
    if options.json:
        print(json.dumps({"jobs": jobs, "rounds": rows}, indent=2))
        return
    if options.quiet or not rows:
        return
    columns = ["experiment", "part", "seeds", "runs", "finished", "hours", "hours left", "left out"]
    cells = [
        [
            row["experiment"],
            row["part"],
            row["seeds"],
            str(row["runs"]),
            str(row["finished"]),
            f"{row['hours']:.2f}",
            f"{row['hours_left']:.2f}",
            f"{row['hours_left_out']:.2f}" if row["runs_left_out"] else "–",
        ]
        for row in rows
    ]
    total = [f"{sum(row[key] for row in rows):.2f}" for key in ("hours", "hours_left", "hours_left_out")]
    counts = [str(sum(row[key] for row in rows)) for key in ("runs", "finished")]
    cells.append(["all", "", "", *counts, *total])
    note = f"hours of this machine with {jobs} parallel runs"
    print(Table(columns, cells, left=3, note=note).text())
    for row in rows:
        if row["runs_left_out"]:
            hours_text = f"{row['hours_left_out']:.2f} h"
            print(
                f"left out of {row['experiment']}, seeds {row['seeds']}: {row['runs_left_out']} runs, "
                f"{hours_text}; {row['command']}"
            )


def _left_text(rounds: Sequence[Round], jobs: int) -> str:
    """Return how many runs have no result yet, those beyond the budget included, and how long they take."""
    counts = {one.experiment.name: 0 for one in rounds}
    for one in rounds:
        counts[one.experiment.name] += one.done.count(False)
    facts = [_facts(one, jobs) for one in rounds]
    hours_left = sum(row["hours_left"] + row["hours_left_out"] for row in facts)
    named = ", ".join(f"{count} of {name}" for name, count in counts.items())
    return (
        f"runs without a result: {named}; {hours_left:.2f} hours of this machine with {jobs} parallel runs. "
        "Run the command again to continue (see --dry-run)."
    )


def _facts(one: Round, jobs: int) -> dict[str, Any]:
    left = one.left
    command = f"weftline reproduce --published {one.experiment.name} --budget 999h"
    return {
        "experiment": one.experiment.name,
        "part": one.part.says or one.size.says,
        "seeds": ", ".join(map(str, one.size.seeds)),
        "runs": one.kept,
        "finished": sum(one.done[: one.kept]),
        "hours": one.expected(0, one.kept) / 3600 / jobs,
        "hours_left": sum(seconds for _, seconds in left) / 3600 / jobs,
        "runs_left_out": len(one.points) - one.kept,
        "hours_left_out": one.expected(one.kept) / 3600 / jobs,
        "command": command,
    }


def _run(rounds: Sequence[Round], until: float | None, jobs: int, options: argparse.Namespace) -> bool:
    """Run the points within the budget that are not finished; return False after an interrupt."""
    for one in rounds:
        left = one.left
        if not left or (until is not None and time.monotonic() + left[0][1] > until):
            continue
        if not (options.quiet or options.json):
            seeds = ", ".join(map(str, one.size.seeds))
            print(f"\n{one.experiment.name}, seeds {seeds}: {len(left)} runs", flush=True)
        failed = runner.run_points(
            [point for point, _ in left],
            jobs=jobs,
            threads=options.threads,
            line=ProgressLine(quiet=options.quiet or options.json),
            name=one.experiment.name,
            on=options.on,
            costs={point.key: executor.Cost(seconds=cost, memory_bytes=0.0) for point, cost in left},
            until=until,
        )
        if failed is None:
            print(all_experiments.GOING_ON, file=sys.stderr)
            return False
        for point, why in failed:
            print(f"failed: {one.experiment.name}: {point.name}, seed {point.seed}: {why}", file=sys.stderr)
        one.done = [state_of(point.folder) == "finished" for point in one.points]
    return True


def _collect(rounds: Sequence[Round], out: Path) -> None:
    """Check the claims of each experiment on the seeds that its panels have whole, and keep the results.

    Those that an earlier call ran count as well.
    """
    for experiment in {one.experiment.name: one.experiment for one in rounds}.values():
        part = _part(experiment)
        size = _size(experiment, part.seeds)
        plan = runner.plan_points(experiment, size, out / experiment.store, part=part)
        seeds_of = _whole_seeds(plan)
        panels: list[list[Panel]] = []
        verdicts: dict[str, Verdict] = {}
        marked: dict[str, dict[str, Any]] = {}
        stated = {claim["text"]: claim for claim in experiment.claims}
        used: runner.Plan = []
        whole = {*seeds_of.values()}
        # A claim on two panels has the seeds that both have.
        common = {tuple(seed for seed in one if seed in other) for one in whole for other in whole}
        for seeds in sorted(common - {()}, key=lambda seeds: (-len(seeds), seeds)):
            having = [
                (figure, choice, label, [point for point in points if point.seed in seeds])
                for figure, choice, label, points in plan
                if {*seeds} <= {*seeds_of[figure.name, choice]}
            ]
            found = runner.collect(experiment, having, lost=set())
            asked = replace(experiment, claims=[c for c in experiment.claims if c["text"] not in verdicts])
            for verdict in runner.check_claims(asked, found):
                verdicts[verdict.text] = verdict
                of = joined.measurement(stated[verdict.text], plan)
                marked[verdict.text] = joined.marked(claims.as_json(verdict), seeds, of)
            exactly = [[p for p in of if seeds_of[p.figure.name, p.choice] == seeds] for of in found]
            panels += [of for of in exactly if of]
            used += [entry for entry in having if seeds_of[entry[0].name, entry[1]] == seeds]
        if not panels:
            continue
        order = [claim["text"] for claim in experiment.claims if claim["text"] in verdicts]
        size = replace(size, says=f"Published size: {_extent(part, seeds_of)}")
        ordered = [verdicts[text] for text in order]
        came = runner.findings_of(experiment, size, used, panels, ordered, {})
        findings.write_page(came, out / experiment.out / "published.html")
        result = findings.as_json(came)
        result.pop("points")
        result["claims"] = [marked[text] for text in order]
        file = out / "ledger" / "results" / f"{experiment.name}-published.json"
        all_experiments.keep(file, result, all_experiments.published_key(experiment))


def _whole_seeds(plan: runner.Plan) -> dict[tuple[str, experiments.Choice], tuple[int, ...]]:
    """Return the seeds of which all points of a panel are finished, by figure and choice."""
    found: dict[tuple[str, experiments.Choice], dict[int, bool]] = {}
    for figure, choice, _, points in plan:
        whole = found.setdefault((figure.name, choice), {})
        for point in points:
            finished = state_of(point.folder) == "finished"
            whole[point.seed] = whole.get(point.seed, True) and finished
    return {panel: tuple(seed for seed, done in whole.items() if done) for panel, whole in found.items()}


def _extent(part: Published, seeds_of: Mapping[Any, tuple[int, ...]]) -> str:
    """Return text such as "3 seeds", or "12 panels with 3 seeds, 24 with 1"."""
    counts = sorted(Counter(len(seeds) for seeds in seeds_of.values()).items(), reverse=True)
    (seeds, panels), *others = counts
    text = f"{seeds} seed{'s' if seeds != 1 else ''}"
    if others:
        rest = "".join(f", {number} with {count}" for count, number in others)
        text = f"{panels} panel{'s' if panels != 1 else ''} with {text}{rest}"
    return f"{part.says}, {text}" if part.says else text


def merge(small: dict[str, Any] | None, published: dict[str, Any] | None) -> dict[str, Any]:
    """Return the results of an experiment with its claims at their published size in place of others.

    One that has not enough seeds yet does not take the place of one that has.
    """
    if small is None or published is None:
        return dict(published or small or {})
    at_size = {claim["text"]: {**claim, "at": "published size"} for claim in published["claims"]}
    answers = [joined.answering(claim, at_size.pop(claim["text"], claim)) for claim in small["claims"]]
    return {
        **small,
        "size": f"{small['size']}; {published['size']}",
        "claims": answers + list(at_size.values()),
    }
