"""What a sweep found: one row a run, estimates over seeds, differences between schemes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from weftline import integrity
from weftline.errors import DamagedError, InputError
from weftline.measures import stats, steady
from weftline.measures.metrics import METRICS, Flows, metric
from weftline.runs import Run
from weftline.sweeps.store import Store
from weftline.sweeps.sweepfile import Choice, Report

FILE = "sweep.json"
"""What the sweep is and which runs belong to it, in its folder."""


@dataclass(frozen=True, kw_only=True)
class AxisOfResult:
    """An axis as a result knows it."""

    name: str
    variants: Sequence[str]
    numbers: Sequence[float] | None
    """Where the variants stand on an axis of x, if they are numbers."""


class Runs(Mapping[int, Run]):
    """Runs by seed, each opened when it is first looked at."""

    def __init__(self, folders: Mapping[int, Path]) -> None:
        self._folders = folders
        self._opened: dict[int, Run] = {}

    def __getitem__(self, seed: int) -> Run:
        if seed not in self._opened:
            self._opened[seed] = Run.open(self._folders[seed])
        return self._opened[seed]

    def folder(self, seed: int) -> Path:
        """Return where the run of a seed is."""
        return self._folders[seed]

    def __iter__(self) -> Iterator[int]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """All runs of one combination, by seed."""

    choice: Choice
    runs: Runs = field(hash=False)

    def at(self, axis: str) -> str:
        """Return its variant of an axis."""
        return dict(self.choice)[axis]


class SweepResult:
    """The results of a sweep.

    Attributes
    ----------
    path : Path
        The result store.
    name, question : str
        As the sweep's file has them.
    axes : list of AxisOfResult
        What varies.
    seeds : list of int
        With which each combination was run.
    report : Report
        What is made of the runs.
    cells : list of Cell
        The combinations that have results, in the order of the axes.
    failed : list of (choice, seed, why)
        The points that failed.
    missing : list of (choice, seed)
        The points that were not run yet.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        self.name = str(about["name"])
        self.question = str(about["question"])
        self.seeds = [int(seed) for seed in about["seeds"]]
        self.axes = [AxisOfResult(**axis) for axis in about["axes"]]
        report = about["report"]
        self.report = Report(**{**report, "metrics": tuple(report["metrics"])})
        self.version = str(about["weftline"])
        kept = Store(path)
        self.cells: list[Cell] = []
        self.failed: list[tuple[Choice, int, str]] = []
        self.missing: list[tuple[Choice, int]] = []
        runs: dict[Choice, dict[int, Path]] = {}
        there = {entry.key for entry in kept.entries()}
        for point in about["points"]:
            choice, seed = tuple(point["choice"].items()), int(point["seed"])
            found = runs.setdefault(choice, {})
            if point["key"] in there:
                found[seed] = kept.points / point["key"]
            elif (why := kept.failure(point["key"])) is not None:
                self.failed.append((choice, seed, why))
            else:
                self.missing.append((choice, seed))
        self.cells = [Cell(choice=choice, runs=Runs(found)) for choice, found in runs.items() if found]
        self._values: dict[tuple[str, Choice], dict[int, float | None]] = {}

    @classmethod
    def open(cls, path: str | os.PathLike) -> SweepResult:
        """Return the results that a sweep left in a folder.

        Raises
        ------
        InputError
            If it is not the folder of a sweep, or cannot be read.
        """
        path = Store.open(path).path
        try:
            remedy = "`weftline sweep` writes it anew, and the runs are not touched"
            return cls(path, integrity.read_sealed(path / FILE, remedy)[0])
        except FileNotFoundError:
            raise InputError(
                f"{path}: a result store, but not of a sweep (it has no {FILE}); `weftline query` reads it"
            ) from None
        except DamagedError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path / FILE}: not the description of a sweep: {error!r}") from None

    @property
    def runs(self) -> list[Run]:
        """Every run, in the order of combinations and seeds."""
        return [run for cell in self.cells for run in cell.runs.values()]

    @property
    def rows_axis(self) -> str:
        """The axis whose variants are compared, "" if nothing varies."""
        others = [axis.name for axis in self.axes if axis.name != self.report.along]
        return self.report.rows or (others[0] if others else "")

    @property
    def against(self) -> str:
        """The variant that the others are compared with."""
        axis = next((axis for axis in self.axes if axis.name == self.rows_axis), None)
        if axis is None:
            return ""
        return self.report.against if self.report.against in axis.variants else axis.variants[0]

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that are reported, with that of the answer and what deserves a look."""
        bound = self.report.bound
        names = [*(bound[:1] if bound else ()), *self.report.metrics]
        names += [
            name for name in ("unfinished", "drops") if any(METRICS[name].read(run) for run in self.runs)
        ]
        return list(dict.fromkeys(names))

    def values(self, name: str, cell: Cell) -> dict[int, float | None]:
        """Return a metric of each run of a combination, by seed, over the flows that count."""
        key = (name, cell.choice)
        if key not in self._values:
            self._values[key] = {seed: self._value(name, run) for seed, run in cell.runs.items()}
        return self._values[key]

    def _value(self, name: str, run: Run) -> float | None:
        least, most = self.report.size_range
        flows = Flows(least=least, most=most, group=self.report.group)
        if self.report.warmup or self.report.drain:
            window = steady.Window.of(run, self.report.warmup, self.report.drain)
            found = steady.windowed(run, name, flows, window)
            if found is not steady.WHOLE:
                return found  # type: ignore[return-value]
        return metric(name).value(run, flows)

    def flows_counted(self, cell: Cell) -> int:
        """Return the fewest finished flows that count in a run of a combination."""
        least, most = self.report.size_range
        group, window = self.report.group, bool(self.report.warmup or self.report.drain)
        counts = [
            steady.flows_in(
                run, Flows(least=least, most=most, group=group), self.report.warmup, self.report.drain
            )
            if window
            else run.completion(least=least, most=most, group=group)["count"]
            for run in cell.runs.values()
        ]
        return min(counts, default=0)

    def estimate(self, name: str, cell: Cell) -> stats.Estimate | None:
        """Return the mean of a metric over the seeds of a combination, with its 95 % interval."""
        return stats.estimate(list(self.values(name, cell).values()), method=self.report.interval)

    def base_of(self, cell: Cell) -> Cell | None:
        """Return the combination that this one is compared with: alike but for the variant of `rows_axis`."""
        wanted = {**dict(cell.choice), self.rows_axis: self.against}
        found = next((other for other in self.cells if dict(other.choice) == wanted), None)
        return found if found is not cell else None

    def difference(self, name: str, cell: Cell) -> stats.Difference | None:
        """Return a combination's metric minus that of the one it is compared with.

        Seed by seed where both carried the same flows; None where there is nothing to compare with.
        """
        base = self.base_of(cell)
        if base is None:
            return None
        return stats.difference(
            self.values(name, cell),
            self.values(name, base),
            method=self.report.interval,
            paired=self.same_flows(cell, base),
        )

    def same_flows(self, cell: Cell, other: Cell) -> bool:
        """Return whether two combinations are offered the same flows under the same seed."""
        return self._traffic(cell) == self._traffic(other)

    def _traffic(self, cell: Cell) -> object:
        if cell.choice not in self._traffics:
            self._traffics[cell.choice] = traffic_of(next(iter(cell.runs.values())))
        return self._traffics[cell.choice]

    @cached_property
    def _traffics(self) -> dict[Choice, object]:
        return {}

    def verdict(self, cell: Cell) -> str:
        """Return whether a combination keeps the answer's bound: "yes", "no", or "open".

        Yes and no if the whole 95 % interval lies on one side; "open" too if there are fewer than two runs.
        """
        bound = self.report.bound
        found = self.estimate(bound[0], cell) if bound else None
        if bound is None or found is None or found.low is None or found.high is None:
            return "open"
        _, sign, limit = bound
        if (found.high < limit) if sign == "<" else (found.low > limit):
            return "yes"
        return "no" if ((found.low >= limit) if sign == "<" else (found.high <= limit)) else "open"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict a run: each axis, ``seed``, ``run`` (its key), ``status`` and each metric.

        ``pandas.DataFrame(result.rows)`` and ``polars.DataFrame(result.rows)`` take it as it is. Units are
        those of `weftline.metrics`: ns, bytes, bit/s, shares.
        """
        return [
            {
                **dict(cell.choice),
                "seed": seed,
                "run": run.out.name,
                "status": run.summary.get("status"),
                **{name: self.values(name, cell)[seed] for name in self.metrics},
            }
            for cell in self.cells
            for seed, run in cell.runs.items()
        ]

    @property
    def estimates(self) -> list[dict[str, Any]]:
        """One dict a combination and metric: each axis, ``metric``, ``runs``, ``mean``, ``low``, ``high``.

        And ``against``, ``difference``, ``difference_low``, ``difference_high``, ``paired`` where it is
        compared with another combination.
        """
        found = []
        for cell in self.cells:
            for name in self.metrics:
                estimate = self.estimate(name, cell)
                row: dict[str, Any] = {**dict(cell.choice), "metric": name, "runs": len(cell.runs)}
                row |= {key: getattr(estimate, key, None) for key in ("mean", "low", "high")}
                apart = self.difference(name, cell)
                row["against"] = self.against if apart else None
                row["difference"] = apart.estimate.mean if apart else None
                row["difference_low"] = apart.estimate.low if apart else None
                row["difference_high"] = apart.estimate.high if apart else None
                row["paired"] = apart.paired if apart else None
                found.append(row)
        return found

    def tables(self):
        """Return the tables that the terminal shows."""
        from weftline.sweeps import tables

        return tables.tables(self)

    def plot(self, metric_name: str = "", along: str = ""):
        """Return a metric over an axis of numbers as a `Figure`, with bands where there are several seeds.

        The first metric that is reported, over the axis `along` of the report, if nothing is said.
        """
        from weftline.report import of_sweep

        numbered = [axis.name for axis in self.axes if axis.numbers]
        axis = along or (self.report.along if self.report.along in numbered else "") or (numbered or [""])[0]
        return of_sweep.curve(self, metric_name or self.metrics[0], axis)

    def __repr__(self) -> str:
        runs = sum(len(cell.runs) for cell in self.cells)
        what = f"{len(self.cells)} combinations, {runs} runs in {str(self.path)!r}"
        return f"<weftline.SweepResult {self.name!r}: {what}>"

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())


def traffic_of(run: Run) -> object:
    """Return what decides which flows a run offers under a seed, for comparison with another run.

    Its network's hosts and links and its workloads, without what carries them. Where flows wait for flows, as
    in a closed loop, the draws are the same and the moments may not be.
    """
    scenario = run.scenario
    carried = ("transport", "controller")
    workloads = [
        {key: value for key, value in workload.items() if key not in carried}
        for workload in scenario.get("workload", [])
    ]
    return scenario.get("topology"), workloads
