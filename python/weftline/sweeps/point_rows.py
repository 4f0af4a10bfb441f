"""The rows of the SQL table `points`: every finished run of a sweep, with its axes and its metrics.

Which runs belong to a sweep is in sweep.json, and which of them are finished the store knows. The metrics of
the runs in points.csv, which a sweep writes when it ends, are taken from there; those of the others are read
from the runs. So the table has every run of a sweep that is under way or was killed.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weftline import integrity
from weftline.errors import DamagedError, InputError, RunFailed
from weftline.measures.metrics import METRICS
from weftline.runs import Run
from weftline.sweeps import store_files
from weftline.sweeps.axes import OF_POINTS, values_of
from weftline.sweeps.index import Entry
from weftline.sweeps.result import FILE, SweepResult
from weftline.sweeps.sweepfile import Choice

Numbers = Mapping[str, float | None]
"""Metrics of a run, by name."""
_ALSO = ("unfinished", "drops")
"""Metrics that are there, too, where some run of the sweep has any."""
_TYPES = {int: "hugeint", float: "double", bool: "boolean", str: "varchar"}
_OF_RUN = {"seed": "ubigint", "run": "varchar", "status": "varchar"}


@dataclass(frozen=True)
class Rows:
    """The table: columns with their types in SQL, and rows of values."""

    columns: Mapping[str, str]
    rows: Sequence[Sequence[Any]]


def read(path: Path, entries: Sequence[Entry]) -> Rows:
    """Return the table of the store at `path`, of whose runs `entries` are whole.

    Points without such a run are left out, with a `ResultsWarning`.
    """
    kept = _kept(path)
    if (path / FILE).exists():
        try:
            return _of_sweep(SweepResult.open(path), entries, kept)
        except InputError as error:
            integrity.warn(
                f"{error}. The table points has axes as texts, and the metrics of points.csv alone"
            )
    return _of_index(entries, kept)


def _of_sweep(result: SweepResult, entries: Sequence[Entry], kept: Mapping[str, Numbers]) -> Rows:
    whole = {entry.key: entry for entry in entries}
    wanted = [(cell, seed, cell.runs.folder(seed).name) for cell in result.cells for seed in cell.runs]
    wanted = [point for point in wanted if point[2] in whole]
    keys = list(dict.fromkeys(key for _, _, key in wanted))
    reported = result.report.reported
    numbers = {key: _numbers(result, key, kept.get(key), reported) for key in keys}
    also = [name for name in _ALSO if any(name in of for of in numbers.values() if of)]
    metrics = list(dict.fromkeys([*reported, *also]))
    if also:
        numbers = {
            key: None if of is None else _numbers(result, key, of, metrics) for key, of in numbers.items()
        }
    axes = {axis.name: _TYPES[type(next(iter(values_of(axis.variants).values())))] for axis in result.axes}
    rows, there = [], set()
    for cell, seed, key in wanted:
        if (of := numbers[key]) is not None:
            there.add((cell.choice, seed))
            of_run = (seed, key, whole[key].status)
            rows.append([*map(cell.at, axes), *of_run, *map(of.get, metrics)])
    _warn_of_lost(result, there)
    return Rows(axes | _OF_RUN | dict.fromkeys(metrics, "double"), rows)


def _numbers(
    result: SweepResult, key: str, known: Numbers | None, names: Sequence[str]
) -> dict[str, float | None] | None:
    """Return metrics of a run: those that are known, the others from its files; None if these are damaged.

    Without any that are known, `_ALSO` are among them if they are above 0.
    """
    found = dict(known or {})
    missing = [name for name in names if name not in found]
    if not missing:
        return found
    try:
        run = Run.read(result.path / "points" / key)
        if known is None:
            missing += [name for name in _ALSO if METRICS[name].read(run) and name not in missing]
        return found | {name: result.choice.value(run, name) for name in missing}
    except (InputError, RunFailed) as error:
        integrity.warn(f"a run is left out of the table points: {error}")
        return None


def _warn_of_lost(result: SweepResult, there: Collection[tuple[Choice, int]]) -> None:
    """Warn of the points of a sweep that are not in its table."""
    points = [(cell.choice, seed) for cell in result.cells for seed in cell.runs]
    points += [*result.missing, *((choice, seed) for choice, seed, _ in result.failed)]
    lost = [point for point in points if point not in there]
    if not lost:
        return
    named = [", ".join([*map(" ".join, choice), f"seed {seed}"]) for choice, seed in lost[:3]]
    more = f"; and {len(lost) - 3} more" if len(lost) > 3 else ""
    again = " (failed ones with --retry)" if result.failed else ""
    integrity.warn(
        f"{result.path}: {len(lost)} of {len(points)} points of the sweep are left out, because they have no "
        f"finished run, or a damaged one: {'; '.join(named)}{more}. `weftline sweep` runs them{again}"
    )


def _of_index(entries: Sequence[Entry], kept: Mapping[str, Numbers]) -> Rows:
    """Return the table of a store that has no description of a sweep."""
    metrics = list(dict.fromkeys(name for of in kept.values() for name in of))
    taken = {name.lower() for name in (*OF_POINTS, *metrics)}
    # Capitals make no difference in SQL, and sweeps that share a store name their own axes.
    axes = {axis.lower(): axis for entry in entries for axis in entry.choice}
    rows = []
    for entry in entries:
        choice = {axis.lower(): variant for axis, variant in entry.choice.items()}
        numbers = kept.get(entry.key, {})
        of_run = (entry.seed, entry.key, entry.status)
        rows.append([*map(choice.get, axes), *of_run, *map(numbers.get, metrics)])
    named = [f"{axis} axis" if lower in taken else axis for lower, axis in axes.items()]
    return Rows(dict.fromkeys(named, "varchar") | _OF_RUN | dict.fromkeys(metrics, "double"), rows)


def _kept(path: Path) -> dict[str, Numbers]:
    """Return the metrics that points.csv has, by run; nothing, with a warning, if it is damaged."""
    file = path / store_files.POINTS
    try:
        store_files.check(path, file.name)
        return _parsed(file) if file.exists() else {}
    except DamagedError as error:
        what = str(error)
    except (OSError, csv.Error, ValueError) as error:
        what = f"{file}: cannot be read: {str(error).splitlines()[0]}"
    integrity.warn(f"{what}. The table points has nothing of it; `weftline sweep` writes the file again")
    return {}


def _parsed(file: Path) -> dict[str, Numbers]:
    with file.open(encoding="utf-8", newline="") as text:
        lines = list(csv.reader(text, strict=True))
    names = lines.pop(0) if lines else []
    start = next((at for at in range(len(names)) if tuple(names[at : at + 3]) == OF_POINTS), None)
    if start is None:
        raise ValueError(f"expected the columns {', '.join(OF_POINTS)}, found {', '.join(names) or 'none'}")
    if any(len(line) != len(names) for line in lines):
        raise ValueError(f"expected {len(names)} fields in each line")
    first = start + len(OF_POINTS)
    numbers = [[float(cell) if cell else None for cell in line[first:]] for line in lines]
    return {
        line[start + 1]: dict(zip(names[first:], of, strict=True))
        for line, of in zip(lines, numbers, strict=True)
    }
