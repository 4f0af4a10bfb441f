"""`weftline reproduce --all`: every experiment that the ledger names, then the ledger with our numbers.

What an experiment came to is kept in `OUT/ledger/results/NAME-KEY.json`, where KEY is the hash of the files
of its folder, of its size and seeds, and of weftline's version and build: what is finished is not run again.
After another build its finished points are read again, with a note, and not run again. The file bears a seal;
a damaged one counts as missing. All experiments keep their points in one store, which
`weftline reproduce NAME` uses too: those that two experiments share are run once. An experiment that fails is
recorded with its error, is tried again by the next call, and does not keep the rest from running."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import hashlib
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weftline import _native, integrity, provenance, quantities
from weftline.errors import InputError, RunFailed, nearest
from weftline.outputs import write_whole
from weftline.report import page
from weftline.report.page import Section
from weftline.reproduce import cost, experiments, findings, ledger, runner, trials
from weftline.reproduce.experiments import Experiment
from weftline.reproduce.runner import Size, chosen_size
from weftline.sweeps import executor
from weftline.sweeps.states import state_of
from weftline.sweeps.store import Point
from weftline.terminal import ProgressLine

GOING_ON = "interrupted; finished experiments are kept; run the same command to resume"
FORMAT = 2
"""Of the files of results."""
LONGEST_LOOK_SECONDS = 20.0
"""Time limit of the estimate, before experiments are run."""
LOOK_FLOWS = 50_000
"""Flows of a point that the estimate looks at; its time is then known within a few per cent."""
_OTHERS = ("duration", "seconds", "rows", "hosts", "only")
"""Options that are about one experiment."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """An experiment at a size, and where what it came to is kept."""

    experiment: Experiment
    size: Size
    root: Path
    """Where its points are, the same for most."""
    page: Path
    file: Path
    """Named by the hash of what would be run."""

    @property
    def finished(self) -> bool:
        """Whether it is known what it came to, all of it."""
        found = _read(self.file)
        return found is not None and not found["failed"]


@dataclass(kw_only=True)
class Left:
    """What is still to be run."""

    runs: int = 0
    seconds: float = 0.0
    """Of one core."""
    trials: int = 0
    """Points that need no run; what they take is not known ahead."""
    measured: int = 0
    """Points whose cost is measured, of which runs are missing; what they take is not known ahead either."""
    unseen: int = 0
    """Experiments that there was no time to look at."""

    def text(self, jobs: int) -> str:
        """Return the same in words; "" where nothing is left."""
        parts = []
        if self.runs:
            seconds = quantities.seconds_text(float(f"{self.seconds / jobs:.2g}"))
            parts.append(f"{self.runs} runs, about {seconds} with {jobs} at a time")
        if self.trials:
            parts.append(f"{self.trials} points of trials, whose time is not known ahead")
        if self.measured:
            parts.append(f"{self.measured} points whose cost is measured, in a time that is not known ahead")
        if self.unseen:
            parts.append(f"{self.unseen} experiments more (--dry-run looks at all)")
        return " and ".join(parts)


def command(options: argparse.Namespace) -> int:
    """Do what the command line asks for and return the exit status."""
    _check(options)
    book = ledger.load()
    skipped = _skipped(book, options.skip or [])
    out = Path(options.out or "out")
    folder = results_folder(out).parent
    seeds = None if options.seeds is None else quantities.parse_seeds(options.seeds)
    tasks = [task(name, out, full=options.full, seeds=seeds) for name in book.experiments]
    wanted = [one for one in tasks if one.experiment.name not in skipped]
    quiet = options.quiet or options.json
    waiting = [one for one in wanted if not one.finished]
    if options.dry_run or not quiet:
        try:
            longest = math.inf if options.dry_run else LONGEST_LOOK_SECONDS
            left = _left(waiting, ProgressLine(quiet=quiet), longest)
        except KeyboardInterrupt:
            print(GOING_ON, file=sys.stderr)
            return 1
        _announce(wanted, waiting, left, options)
    if options.dry_run:
        return 0
    interrupted = not _run(waiting, options)
    status = end(book, with_published(collected(tasks), folder / "results"), folder, options)
    return 1 if interrupted else status


def refuse_its_options(options: argparse.Namespace) -> None:
    """Raise InputError for what only --all has, or if there is no experiment."""
    if options.skip:
        raise InputError("--skip: only with --all")
    for name in ("budget", "sitting"):
        if getattr(options, name):
            raise InputError(f"--{name}: only with --published")
    if options.experiment is None:
        raise InputError("expected an experiment, or --all; `weftline list experiments` has their names")


def _check(options: argparse.Namespace) -> None:
    if options.experiment is not None:
        raise InputError(f"--all and {options.experiment}: expected one of the two")
    for name in _OTHERS:
        if getattr(options, name) is not None:
            raise InputError(f"--{name}: is about one experiment; expected its name instead of --all")


def _skipped(book: ledger.Ledger, names: list[str]) -> list[str]:
    for name in names:
        if name not in book.experiments:
            hint = nearest(name, book.experiments)
            raise InputError(f"--skip {name}: not in the ledger; {hint}known: {', '.join(book.experiments)}")
    return names


def task(name: str, out: Path, *, full: bool, seeds: list[int] | None = None) -> Task:
    """Return the task of an experiment; seeds are for those that do not take one alone."""
    experiment = experiments.load(name)
    alone = not experiment.seeded or experiment.measures_cost
    size = chosen_size(experiment, full=full, seeds=None if alone else seeds)
    file = out / "ledger" / "results" / f"{name}-{content_key(experiment, size)}.json"
    page = out / experiment.out / "report.html"
    return Task(experiment=experiment, size=size, root=out / experiment.store, page=page, file=file)


def content_key(experiment: Experiment, size: Size) -> str:
    """Return the hash of an experiment's files, of a size, of seeds and of the version and the build."""
    seeds = [size.seeds, *(size.seeds_of(figure) for figure in experiment.figures if figure.seeds)]
    return _hashed(experiment, f"{provenance.build()} {size.full} {seeds}")


def published_key(experiment: Experiment) -> str:
    """Return the hash of an experiment's files and of the version: of results at the published size."""
    return _hashed(experiment, "published")


def _hashed(experiment: Experiment, what: str) -> str:
    digest = hashlib.sha256(f"{FORMAT}\n{_native.version()}\n{what}\n".encode())
    scenario = [experiment.scenario] if experiment.scenario.is_file() else []
    for path in sorted(experiment.folder.rglob("*")) + scenario:
        if path.is_file():
            digest.update(f"{os.path.relpath(path, experiment.folder)}\n".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _left(waiting: list[Task], line: ProgressLine, longest: float) -> Left:
    """Return what is still to be run, by what `weftline check` expects of each point.

    It looks for no longer than about `longest` seconds; points that differ in the seed alone cost the same,
    and one that several experiments share counts once.
    """
    left, seen = Left(), set()
    until = time.monotonic() + longest
    for number, one in enumerate(waiting):
        if time.monotonic() > until:
            left.unseen += 1
            continue
        line.show(f"looking at {one.experiment.name}, {number + 1} of {len(waiting)}", at_once=True)
        try:
            due, tried, measured = _due(one)
            due = [(point, runs) for point, runs in due if point.folder not in seen]
            seen |= {point.folder for point, _ in due}
            left.seconds += seconds_of(due)
            left.runs += sum(runs for _, runs in due)
            left.trials += tried
            left.measured += measured
        except (InputError, RunFailed):
            continue  # it fails when it is run, and is recorded then
    line.clear()
    return left


def seconds_of(due: Sequence[tuple[Point, int]]) -> float:
    """Return the expected time of points on one core; each has a number of runs."""
    alike: Counter[Any] = Counter()
    for point, runs in due:
        alike[point.settings] += runs
    one_of_each = {point.settings: point for point, _ in due}
    return sum(
        runs * executor.cost_of(one_of_each[what], max_flows=LOOK_FLOWS).seconds
        for what, runs in alike.items()
    )


def dry_run(
    experiment: Experiment,
    size: Size,
    root: Path,
    only: Mapping[str, list[str]],
    options: argparse.Namespace,
) -> int:
    """Print what is left of one experiment and how long it takes; return the exit status."""
    one = Task(experiment=experiment, size=size, root=root, page=root, file=root)
    due, tried, measured = _due(one, only)
    runs = sum(runs for _, runs in due)
    left = Left(runs=runs, seconds=seconds_of(due), trials=tried, measured=measured)
    jobs = jobs_of(options)
    if options.json:
        print(json.dumps({"experiments": [experiment.name], **vars(left), "jobs": jobs}, indent=2))
    else:
        print(f"{experiment.name}: {size.says}; left: {left.text(jobs) or 'nothing'}")
    return 0


def jobs_of(options: argparse.Namespace) -> int:
    """Return the number of parallel runs."""
    return options.jobs or max(1, executor.cores() // max(1, options.threads))


def _due(one: Task, only: Mapping[str, list[str]] | None = None) -> tuple[list[tuple[Point, int]], int, int]:
    """The unfinished points of an experiment, each with how many runs it stands for; how many trials, and
    how many points whose cost is still to be measured.

    Where nothing was run yet a point of one seed stands for those of the others.
    """
    if one.experiment.measures_cost:
        figures = cost.plan(one.experiment, one.size, one.root, only)
        runner.require(figures, one.experiment)
        costly = {point.file: point for panel in figures for point in panel.points}.values()
        return [], 0, sum(cost.is_due(point, one.experiment.repeats) for point in costly)
    if not one.experiment.tries:
        size, seeds = one.size, 1
        if not (one.root / "points").exists():
            size, seeds = dataclasses.replace(size, seeds=size.seeds[:1]), len(size.seeds)
        plan = runner.plan_points(one.experiment, size, one.root, only=only)
        runner.require(plan, one.experiment)
        due = {
            p.folder: (p, 1 if figure.seeds and not size.chosen_seeds else seeds)
            for figure, _, _, found in plan
            for p in found
        }
        return [(p, runs) for p, runs in due.values() if state_of(p.folder) != "finished"], 0, 0
    panels = trials.plan(one.experiment, one.size, one.root, only)
    runner.require(panels, one.experiment)
    points = {p.file: p for panel in panels for p in panel.points if trials.kept(p) is None}.values()
    recorded = {p.recorded.folder: p.recorded for p in points if p.recorded}.values()
    return [(point, 1) for point in recorded if state_of(point.folder) != "finished"], len(points), 0


def _announce(wanted: list[Task], waiting: list[Task], left: Left, options: argparse.Namespace) -> None:
    """Print what is left and how long it takes."""
    jobs = jobs_of(options)
    if options.json:
        names = [one.experiment.name for one in waiting]
        about = {"experiments": names, **vars(left), "jobs": jobs}
        print(json.dumps(about, indent=2))
        return
    text = f"{len(wanted)} experiments of the ledger"
    if len(waiting) < len(wanted):
        text += f"; {len(wanted) - len(waiting)} are finished already"
    found = left.text(jobs)
    print(f"{text}; left: {found}" if found else text)


def _run(waiting: list[Task], options: argparse.Namespace) -> bool:
    """Run the tasks one at a time; return whether none was interrupted."""
    for number, one in enumerate(waiting):
        if not (options.quiet or options.json):
            print(f"\n[{number + 1} of {len(waiting)}] {one.experiment.name}", flush=True)
        try:
            result = _result(one, options)
        except KeyboardInterrupt:
            print(GOING_ON, file=sys.stderr)
            return False
        if result is None:
            return False
        for name, why in result["failed"].items():
            print(f"failed: {one.experiment.name}: {f'{name}: ' if name else ''}{why}", file=sys.stderr)
        keep(one.file, result)
    return True


def _result(one: Task, options: argparse.Namespace) -> dict[str, Any] | None:
    """Run an experiment and return what it came to, its error too; None when interrupted."""
    asked = ("jobs", "threads", "on", "quiet", "json")
    how = argparse.Namespace(**{name: getattr(options, name) for name in asked})
    if one.experiment.measures_cost:
        how.jobs, how.threads, how.on = None, 1, "local"
    try:
        found = runner.carry_out(one.experiment, one.size, one.root, {}, how)
        if found is None:
            return None
        findings.write_page(found, one.page)
        result = findings.as_json(found)
        result.pop("points")
        return result
    except (KeyboardInterrupt, SystemExit):
        raise
    except (InputError, RunFailed) as error:
        return _failure(one, str(error))
    except BaseException as error:  # a panic of the engine too: the other experiments are not to suffer
        return _failure(one, repr(error))


def _failure(one: Task, why: str) -> dict[str, Any]:
    return {
        "experiment": one.experiment.name,
        "size": one.size.says,
        "full": one.size.full,
        "weftline": _native.version(),
        "date": f"{datetime.date.today():%Y-%m-%d}",
        "claims": [],
        "failed": {"": why},
    }


def end(book: ledger.Ledger, results: ledger.Results, folder: Path, options: argparse.Namespace) -> int:
    """Write the ledger and show it; return the exit status."""
    found = ledger.judged(book, results)
    about = ledger.as_json(book, found, results)
    _write(folder / "ledger.json", json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    _write(folder / "ledger.md", f"# Claims\n\n{ledger.markdown(book, found, results)}")
    sections = [Section(tables=[ledger.summary(found)])]
    for (source, _), table in zip(found, ledger.tables(found), strict=True):
        table.title = ""
        sections.append(Section(title=source.name, text=source.title, tables=[table]))
    sections.append(Section(title="What was run", tables=[ledger.runs(book, results)]))
    versions = [("weftline", _native.version()), ("ledger", book.path.name)]
    written = page.write(
        folder / "ledger.html",
        title="Ledger of claims",
        subtitle="What papers state, and what came of it here",
        about=versions,
        sections=sections,
    )
    if options.json:
        print(json.dumps(about, indent=2, ensure_ascii=False))
    elif not options.quiet:
        print(f"\n{ledger.summary(found).text()}\nledger: {folder / 'ledger.md'}\npage: {written}")
    return 1 if any(result.get("failed") for result in results.values()) else 0


def collected(tasks: list[Task]) -> dict[str, Mapping[str, Any]]:
    """Return what each experiment came to, those that failed included; without those that were not run."""
    kept = {one.experiment.name: _read(one.file) for one in tasks}
    return {name: found["result"] for name, found in kept.items() if found is not None}


def with_published(results: dict[str, Any], folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return the results with the claims that `--published` has decided in place of those of a small size.

    Those of other files of the experiment, or of another version, are left out, with a note.
    """
    from weftline.reproduce import published

    found = {}
    for path in sorted(folder.glob("*-published.json")):
        name, entry = path.name.removesuffix("-published.json"), _read(path)
        if entry and name in experiments.names() and entry["key"] == published_key(experiments.load(name)):
            found[name] = entry["result"]
        else:
            print(
                f"note: {path}: damaged, or of another version of weftline or of the experiment, and left "
                f"out; `weftline reproduce --published {name}` makes it again of finished runs",
                file=sys.stderr,
            )
    return {name: published.merge(results.get(name), found.get(name)) for name in [*results, *found]}


def keep(file: Path, result: dict[str, Any], key: str = "") -> None:
    """Keep what an experiment came to; `key`: of what, where the name of the file does not say it."""
    _write(file, integrity.sealed({"failed": bool(result["failed"]), "key": key, "result": result}))


def results_folder(out: Path) -> Path:
    """Make and return the folder of what experiments came to.

    Raises
    ------
    InputError
        If it cannot be made.
    """
    folder = out / "ledger" / "results"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder.parent}: the folder cannot be made: {error.strerror or error}") from None
    return folder


def _read(path: Path) -> dict[str, Any] | None:
    """What a file of results says; None where there is none, or it is not as it was written."""
    try:
        found, whole = integrity.unsealed(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if whole and found.keys() == {"failed", "key", "result"} else None


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise RunFailed(f"{path}: cannot be written: {error.strerror or error}") from None
