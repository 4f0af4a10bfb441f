"""Sweeps: every combination of axes with every seed, run into a result store, and taken up from it again."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

from weftline import _native, integrity, scenarios
from weftline.controllers import unused_text
from weftline.errors import InputError, RunFailed, nearest, warn
from weftline.outputs import write_whole
from weftline.runs import Run
from weftline.scenario import Scenario
from weftline.sweeps import executor, store, store_files, sweepfile, tables
from weftline.sweeps.executor import Cost, Outcome
from weftline.sweeps.result import FILE, SweepResult
from weftline.sweeps.store import Point, Store
from weftline.sweeps.sweepfile import Choice, Sweep
from weftline.terminal import ProgressLine

MAX_COUNT = 10**6
"""The maximum number of parallel runs, and of threads of a run."""
LONGEST_LOOK_SECONDS = 20.0
"""Time limit of the estimate of combinations; the others are taken to be like those."""


@dataclass(kw_only=True)
class Plan:
    """The points of a sweep, in the order in which they run: all combinations of the first seed first."""

    sweep: Sweep
    path: Path
    points: list[Point]
    same: list[str]
    """Sentences on combinations that are one and the same run."""

    @property
    def unused(self) -> list[str]:
        """Sentences on controllers in Python that were given and that no point names."""
        used = frozenset[str]().union(*(point.laws for point in self.points))
        given = self.sweep.source.controllers
        return [unused_text(name, "any combination") for name in given if name not in used]


def plan(sweep: Sweep, out: Path) -> Plan:
    """Return every point of a sweep; each scenario is checked before the first run.

    Raises
    ------
    InputError
        If a combination cannot be run as it is written, or the report names a group that none of them has.
    """
    points: list[Point] = []
    by_key: dict[tuple[str, int], Choice] = {}
    same: dict[str, None] = {}
    combinations = [(choice, sweep.changes(choice)) for choice in sweep.combinations()]
    for seed in sweep.seeds:
        for choice, changes in combinations:
            found = _point(sweep, out, choice, changes, seed)
            other = by_key.setdefault((found.key, seed), choice)
            if other != choice:
                names = f'"{choice_text(other)}" and "{choice_text(choice)}"'
                same[f"{names} are the same run: what differs has no effect"] = None
            points.append(found)
    _check_groups(sweep, points[: len(combinations)])
    return Plan(sweep=sweep, path=out, points=points, same=list(same))


def choice_text(choice: Choice) -> str:
    """Return a combination for people: ``scheme HPCC, load 0.5``."""
    return ", ".join(f"{axis} {variant}" for axis, variant in choice) or "the scenario"


def _point(sweep: Sweep, out: Path, choice: Choice, changes: Mapping[str, Any], seed: int) -> Point:
    try:
        return store.point(out, sweep.source, changes, seed, name=choice_text(choice), choice=choice)
    except InputError as error:
        text = str(error)
        chosen = dict(choice)
        for axis in sweep.axes:
            if any(path in text for path in axis.variants[chosen[axis.name]]):
                raise InputError(
                    f'{axis.where or sweep.file}: axis "{axis.name}", {choice_text(choice)}: {text}'
                ) from None
        raise InputError(f"{sweep.file}: {choice_text(choice)}: {text}") from None


def _check_groups(sweep: Sweep, points: Sequence[Point]) -> None:
    """Refuse a report that names a group of flows, or a job, that no combination has."""
    named = sweep.report.groups
    known: dict[str, None] = {}
    # Workloads name their groups, except for traces, whose files do: these are read only if necessary.
    for groups_of in (_groups, _groups_of_flows) if named else ():
        for point in points:
            known.update(dict.fromkeys(groups_of(point.scenario())))
            if named.keys() <= known.keys():
                return
    for group, what in named.items():
        if group not in known:
            listed = ", ".join(known)
            raise InputError(
                f'{sweep.report_at or sweep.file}: {what}: no workload has the group "{group}": '
                f"{nearest(group, list(known))}known: {listed or 'none'}"
            )


def _groups(scenario: Scenario) -> list[str]:
    """Return the groups that the workloads of a scenario name."""
    return [str(workload["group"]) for workload in scenario.values.get("workload", []) if "group" in workload]


def _groups_of_flows(scenario: Scenario) -> list[str]:
    """Return the groups of all flows of a scenario."""
    return [str(group) for group in scenario.check().get("traffic", {}).get("groups", [])]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What is expected of the points that are left."""

    costs: Mapping[str, Cost]
    jobs: int
    memory_bytes: float
    """Of the parallel runs."""

    @property
    def seconds_of_a_core(self) -> float:
        """Time that all of them take one after the other."""
        return sum(cost.seconds for cost in self.costs.values())

    @property
    def seconds(self) -> float:
        """Wall-clock time on an otherwise idle machine."""
        longest = max((cost.seconds for cost in self.costs.values()), default=0.0)
        return max(self.seconds_of_a_core / self.jobs, longest)


def estimate(points: Sequence[Point], *, jobs: int) -> Estimate:
    """Return what points are expected to need: one of each combination is asked about."""
    import time

    began = time.monotonic()
    known: dict[Choice, Cost] = {}
    for point in points:
        if point.choice not in known and time.monotonic() - began < LONGEST_LOOK_SECONDS:
            known[point.choice] = executor.cost_of(point)
    mean = Cost(
        seconds=sum(cost.seconds for cost in known.values()) / max(1, len(known)),
        memory_bytes=max((cost.memory_bytes for cost in known.values()), default=0.0),
    )
    costs = {point.key: known.get(point.choice, mean) for point in points}
    largest = sorted((cost.memory_bytes for cost in costs.values()), reverse=True)[:jobs]
    return Estimate(costs=costs, jobs=jobs, memory_bytes=sum(largest))


def run(
    plan: Plan,
    *,
    jobs: int | None = None,
    threads: int = 1,
    on: str = "local",
    retry: bool = False,
    show: Callable[[str], None] | None = None,
    announce: Callable[[int, int, Estimate], None] | None = None,
    only: Sequence[Point] | None = None,
) -> tuple[SweepResult, Outcome]:
    """Run what has no results yet and return all there are.

    Parameters
    ----------
    jobs : int, optional
        Runs at a time: by default one per core; on Ray limited by the cores of the cluster.
    on : {"local", "ray"}
        Where.
    retry : bool
        Whether points that failed earlier are tried again.
    show : callable, optional
        Given the line of progress.
    announce : callable, optional
        Given, before the first: the number of points that are left, that of points that failed earlier and
        are not run again, and what those that are left are expected to need.
    only : sequence of Point, optional
        These points alone, as a task of an array does.

    Raises
    ------
    RunFailed
        If the store cannot be written, as on a full disk, and something is left to run.
    """
    wanted = plan.points if only is None else only
    jobs = jobs or max(1, executor.cores() // max(1, threads))
    try:
        kept = Store.create(plan.path)
        write_description(plan)
    except OSError as error:
        why = executor.error_text(error, Store(plan.path))
        left, known = executor.waiting(wanted, Store(plan.path), retry=retry, touch=False)
        if left:
            raise RunFailed(why) from None
        if announce:
            announce(0, len(known.failed), estimate([], jobs=jobs))
        known.unwritten = True
        known.remarks.append(f"{why}: the tables are not written into the store")
        return result_of(plan), known
    left, known = executor.waiting(wanted, kept, retry=retry, touch=False)
    expected = estimate(left, jobs=jobs)
    if announce:
        announce(len(left), len(known.failed), expected)
    options: dict[str, Any] = {"retry": retry, "name": plan.sweep.name, "show": show, "costs": expected.costs}
    if on == "ray":
        from weftline.sweeps import ray_executor

        outcome = ray_executor.run(wanted, kept, jobs=jobs, threads=threads, **options)
    else:
        outcome = executor.run(wanted, kept, jobs=jobs, threads=threads, **options)
    return result_of(plan), outcome


def result_of(plan: Plan) -> SweepResult:
    """Return what the store has of a sweep, whatever other sweeps share it."""
    return SweepResult(plan.path, described(plan))


def put_damaged_aside(result: SweepResult, error: Exception) -> list[str]:
    """Move runs that are damaged, or named by an error of reading, out of the store, with messages.

    What the store has listed as whole is read to its end here.
    """
    kept, found = Store(result.path), []
    runs = {cell.runs.folder(seed): (cell, seed) for cell in result.cells for seed in cell.runs}
    kept.suspect_damaged()
    moved = {folder: aside for folder in runs if (aside := kept.put_aside_point(folder.name))}
    if not moved:
        moved = {folder: kept.put_aside(folder) for folder in runs if f"{folder}{os.sep}" in str(error)}
    for folder, aside in moved.items():
        cell, seed = runs[folder]
        found.append(f"{choice_text(cell.choice)}, seed {seed}: damaged results are now in {aside}")
    return found


def described(plan: Plan) -> dict[str, Any]:
    """Return what the sweep is and which runs belong to it, as its folder has it."""
    sweep = plan.sweep
    about = {
        "weftline": _native.version(),
        "name": sweep.name,
        "question": sweep.question,
        "seeds": list(sweep.seeds),
        "axes": [{"name": a.name, "variants": list(a.variants), "numbers": a.numbers} for a in sweep.axes],
        "report": asdict(sweep.report),
        "controllers": {
            n: {"from": c.origin, "sha256": c.digest} for n, c in sweep.source.controllers.items()
        },
        "points": [{"key": p.key, "seed": p.seed, "choice": dict(p.choice)} for p in plan.points],
    }
    found: dict[str, Any] = json.loads(json.dumps(about))
    return found


def write_description(plan: Plan) -> None:
    """Write down what the sweep is, so that its folder says all.

    Tables that a sweep made by another report are removed: this one makes its own when it ends.
    """
    about = described(plan)
    if _description_at(plan.path).get("report") != about["report"]:
        Store(plan.path).remove([store_files.POINTS, store_files.ESTIMATES])
    write_whole(plan.path / FILE, integrity.sealed(about))


def write_tables(plan: Plan, result: SweepResult) -> None:
    """Write the tables of a sweep into its store, which then describes this sweep.

    Another sweep that shares the store may have described itself there since this one began.
    """
    if not _is_described(plan):
        write_description(plan)
    tables.write(result)


def _is_described(plan: Plan) -> bool:
    """Return whether the store describes this sweep."""
    return _description_at(plan.path) == described(plan)


def _description_at(path: Path) -> dict[str, Any]:
    """Return what the store at `path` describes itself as, nothing if it is not known."""
    with contextlib.suppress(OSError, ValueError, InputError):
        return integrity.unsealed((path / FILE).read_bytes())[0]
    return {}


def folder_of(sweep: Sweep, out: str | os.PathLike[str] | None) -> Path:
    """Return where the store of a sweep is: in `out`, or by default in ``out/sweeps/NAME``.

    Raises
    ------
    InputError
        If the default folder is that of a sweep with another name.
    """
    if out is not None:
        return Path(out)
    folder = Path("out") / "sweeps" / sweep.name.strip().replace(" ", "-")
    other = _description_at(folder).get("name", sweep.name)
    if other != sweep.name:
        raise InputError(
            f'{folder}: has the results of the sweep "{other}", and this one is "{sweep.name}": choose '
            "another name, or the folder with --out (in Python: out=)"
        )
    return folder


def sweep(
    scenario: str | os.PathLike[str] | Mapping[str, Any],
    over: Mapping[str, Sequence[Any] | Mapping[str, Mapping[str, Any]]] | None = None,
    *,
    set: Mapping[str, object] | None = None,
    controllers: Mapping[str, type | str] | None = None,
    seeds: int | Sequence[int] | str | None = None,
    zip: Sequence[Sequence[str]] = (),
    report: Mapping[str, object] | None = None,
    name: str | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    threads: int = 1,
    on: str = "local",
    retry: bool = False,
    progress: bool | Callable[[str], None] | None = None,
) -> SweepResult:
    """Run a scenario over axes and seeds and return the results; what was run before is not run again.

    The store has ``points.csv`` and ``table.csv`` then, which `weftline query` reads.

    What deserves a look before the numbers are trusted is in ``warnings`` of the result, and given as
    `WeftlineWarning`, as the command line prints it.

    Parameters
    ----------
    scenario : path or dict
        A scenario, or the file of a sweep, which says all that `over`, `set`, `controllers`, `seeds`, `zip`,
        `report` and `name` say here.
    over : mapping, optional
        The axes: ``{"workload.0.load": [0.3, 0.5]}``, or with named variants
        ``{"scheme": {"HPCC": {"transport.controller.kind": "hpcc"}, ...}}``.
    set : mapping, optional
        Settings of every point, by dotted path.
    controllers : dict of name to class, optional
        Congestion controllers in Python, which axes and the scenario name as ``python:NAME``: classes (see
        `weftline.Controller`), or where they are, ``"FILE.py:CLASS"``. A point runs again when their code, or
        anything that it refers to, is another.
    seeds : int or sequence of int or str, optional
        How many runs of each combination (seeds 1 to n), or which seeds. Without it one, with the seed of
        the scenario.
    zip : sequence of sequences of str
        Axes, by name, that advance together.
    report : mapping, optional
        What the file of a sweep says in ``[report]``: metrics, rows, along, against, group, sizes, interval,
        warmup, drain, answer.
    name : str, optional
        Of the sweep and its folder.
    out : path, optional
        The result store; ``out/sweeps/NAME`` without it.
    jobs : int, optional
        Runs at a time; one a core without it.
    threads : int
        Threads of each run.
    on : {"local", "ray"}
        Where.
    retry : bool
        Whether points that failed earlier are tried again.
    progress : bool or callable, optional
        A line under the cell in a notebook, unless this is False; with True also on standard error, if that
        is a terminal. A callable is given the line instead.

    Returns
    -------
    SweepResult
        With ``failed``, the points that have no results and why.

    Raises
    ------
    InputError
        If a combination cannot be run as it is written.
    RunFailed
        If no run could continue, or the tables could not be written, as with a full disk; what was computed
        is kept.
    KeyboardInterrupt
        If the user interrupted; what was computed is kept.
    """
    if on not in ("local", "ray"):
        raise InputError(f'on: expected "local" or "ray", found {on!r}')
    for key, count in (("jobs", 1 if jobs is None else jobs), ("threads", threads)):
        _check_count(key, count)
    given: dict[str, Any] = {
        "set": set,
        "controllers": controllers,
        "zip": list(zip),
        "report": report,
        "name": name,
    }
    given = {key: value for key, value in given.items() if value}
    if seeds is not None:
        given["seeds"] = _values(seeds)
    asked = _sweep_of(scenario, over, given)
    planned = plan(asked, folder_of(asked, out))
    with _shown(progress) as show:
        result, outcome = run(planned, jobs=jobs, threads=threads, on=on, retry=retry, show=show)
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.stopped:
        raise RunFailed(f"{outcome.stopped}; finished runs are kept in {planned.path}")
    result.remarks = [*outcome.remarks, *other_versions(planned), *planned.unused]
    try:
        if not outcome.unwritten:
            write_tables(planned, result)
    except OSError as error:
        raise RunFailed(executor.error_text(error, Store(planned.path))) from None
    warn(result.warnings)
    return result


def _check_count(key: str, found: Any) -> None:
    is_whole = isinstance(found, Integral) and not isinstance(found, bool)
    if not is_whole or not 1 <= int(found) <= MAX_COUNT:
        raise InputError(f"{key}: expected a whole number from 1 to {MAX_COUNT}, found {found!r}")


def other_versions(plan: Plan) -> list[str]:
    """Return a sentence on runs of other versions in the store of a sweep, if there are any."""
    others = {entry.version for entry in Store(plan.path).entries()} - {_native.version()}
    if not others:
        return []
    return [f"the store has runs of weftline {', '.join(sorted(others))} too; they do not count here"]


@contextlib.contextmanager
def _shown(progress: bool | Callable[[str], None] | None) -> Iterator[Callable[[str], None] | None]:
    """Yield what the line of progress is given to, and take the line away at the end."""
    from weftline.figures import notebook

    if callable(progress):
        yield progress
        return
    if progress is not False and notebook.shown():
        cell = notebook.ProgressCell("sweep")
        show, clear = cell.say, cell.clear
    else:
        line = ProgressLine(quiet=progress is not True)
        show, clear = (lambda text: line.show(text, at_once=True)), line.clear
    try:
        yield show
    finally:
        clear()


def _sweep_of(
    scenario: str | os.PathLike[str] | Mapping[str, Any],
    over: Mapping[str, Any] | None,
    given: Mapping[str, Any],
) -> Sweep:
    """Return the sweep of a file, or of the arguments of `sweep`."""
    if over is None and not isinstance(scenario, Mapping):
        import tomllib

        path = scenarios.path_of(scenario)
        try:
            is_sweep = "scenario" in tomllib.loads(scenarios.read_text(path, "a sweep or a scenario"))
        except tomllib.TOMLDecodeError:
            is_sweep = False
        if is_sweep:
            if given:
                raise InputError(f"{path}: {next(iter(given))}: set this in the file of the sweep")
            return sweepfile.load(path)
    if over is not None and not isinstance(over, Mapping):
        raise InputError(f'over: expected a dict such as {{"workload.0.load": [0.3, 0.5]}}, found {over!r}')
    axes: list[dict[str, Any]] = []
    for axis, values in (over or {}).items():
        if isinstance(values, Mapping):
            variants = [{"name": str(variant), "set": changes} for variant, changes in values.items()]
            axes.append({"name": axis, "variants": variants})
        else:
            axes.append({"key": axis, "values": _values(values)})
    data = {**given, "axis": axes}
    if isinstance(scenario, Mapping):
        data["scenario"] = {"name": given.get("name", "sweep"), **scenario}
        return sweepfile.read(data, file="<sweep from Python>", base_dir=Path("."))
    path = scenarios.path_of(scenario)
    data.setdefault("name", path.stem)
    data["scenario"] = path.name
    return sweepfile.read(data, file="<sweep from Python>", base_dir=path.parent)


def _values(given: object) -> object:
    """Return a list of what an array or an iterable holds; anything else as it is, texts among them."""
    if hasattr(given, "tolist"):
        return given.tolist()
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else given


def load(path: str | os.PathLike[str]) -> Run | SweepResult:
    """Return the results in a folder: a `SweepResult` of a result store, else a `Run`.

    Raises
    ------
    InputError
        If the folder holds neither.
    """
    return SweepResult.open(path) if Store.is_at(path) else Run.open(path)
