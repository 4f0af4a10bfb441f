"""What a sweep found: one row a run, estimates over seeds, differences between schemes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from weftline import integrity
from weftline.errors import DamagedError, InputError
from weftline.kept_paths import KeptPath
from weftline.measures import deadlines, evidence, judgements, stats, steady
from weftline.measures.flow_choice import FlowChoice
from weftline.measures.judgements import Reason, Separation, Verdict
from weftline.measures.metrics import METRICS, Flows, metric, split
from weftline.measures.pooling import are_same_bits, are_same_flows, key_of, traffic_of
from weftline.runs import Run
from weftline.sweeps import axes, zipped_axes
from weftline.sweeps.store import Store
from weftline.sweeps.sweepfile import Choice, Report
from weftline.terminal import Table, warnings_html, wrapped

if TYPE_CHECKING:
    from weftline.figures.specs import Figure

Found = TypeVar("Found")
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
        self._folders = {seed: KeptPath(folder) for seed, folder in folders.items()}
        self._opened: dict[int, Run] = {}

    def __getitem__(self, seed: int) -> Run:
        if seed not in self._opened:
            self._opened[seed] = Run.read(self.folder(seed))
        return self._opened[seed]

    def folder(self, seed: int) -> Path:
        """Return where the run of a seed is."""
        return self._folders[seed].path

    def __iter__(self) -> Iterator[int]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """All runs of one combination, by seed."""

    choice: Choice
    runs: Runs = field(hash=False)

    @property
    def each(self) -> list[Run]:
        """Its runs, in the order of the seeds."""
        return list(self.runs.values())

    def at(self, axis: str) -> str:
        """Return its variant of an axis."""
        return dict(self.choice)[axis]


class SweepResult:
    """The results of a sweep.

    Attributes
    ----------
    path : Path
        The result store, as it was given; the absolute path in another working directory.
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
    combinations : list of Cell
        The same and those without results, which have no runs.
    failed : list of (choice, seed, why)
        The points that failed.
    missing : list of (choice, seed)
        The points that were not run yet.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self._path = KeptPath(path)
        self.name = str(about["name"])
        self.question = str(about["question"])
        self.seeds = [int(seed) for seed in about["seeds"]]
        self.axes = [AxisOfResult(**axis) for axis in about["axes"]]
        report = about["report"]
        self.report = Report(**{**report, "metrics": tuple(report["metrics"])})
        self.remarks: list[str] = []
        """Notes of the sweep that made it, in addition to its tables."""
        try:
            _ = self.report.bound
        except InputError as error:
            # Earlier versions of weftline took bounds that decide nothing.
            self.remarks.append(f"report.answer: {error}; the answer is left out")
            self.report = replace(self.report, answer="")
        # Earlier versions of weftline let axes be called as a column is.
        names = [axis.name for axis in self.axes]
        axes.check_names(names, self.report.reported, lambda _: "axis")
        self.version = str(about["weftline"])
        kept = Store(path)
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
        self.combinations = [Cell(choice=choice, runs=Runs(found)) for choice, found in runs.items()]
        self.cells = [cell for cell in self.combinations if cell.runs]
        self._known: dict[tuple[Any, ...], Any] = {}

    @property
    def path(self) -> Path:
        """The result store, as it was given; the absolute path in another working directory."""
        return self._path.path

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> SweepResult:
        """Return the results that a sweep left in a folder.

        Raises
        ------
        InputError
            If it is not the folder of a sweep, or cannot be read.
        """
        path = Store.open(path).path
        try:
            remedy = "`weftline sweep` writes it again and does not change the runs"
            return cls(path, integrity.read_sealed(path / FILE, remedy)[0])
        except FileNotFoundError:
            raise InputError(
                f"{path}: a result store, but not of a sweep (it has no {FILE}); `weftline query` reads it"
            ) from None
        except DamagedError:
            raise
        except InputError as error:
            raise InputError(f"{path / FILE}: {error}") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path / FILE}: not the description of a sweep: {error!r}") from None

    @property
    def runs(self) -> list[Run]:
        """Every run, in the order of combinations and seeds."""
        return [run for cell in self.cells for run in cell.each]

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
        seen = [name for name in ("unfinished", "drops") if any(METRICS[name].read(run) for run in self.runs)]
        return list(dict.fromkeys([*self.report.reported, *seen]))

    def _once(self, find: Callable[[], Found], *key: object) -> Found:
        """Return what a function finds, which is called once for each key."""
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]

    def values(self, name: str, cell: Cell) -> dict[int, float | None]:
        """Return a metric of each run of a combination, by seed, over the flows that count."""
        return self._once(
            lambda: {seed: self.choice.value(run, name) for seed, run in cell.runs.items()},
            "values",
            name,
            cell.choice,
        )

    @cached_property
    def choice(self) -> FlowChoice:
        """Which flows count, as the report chooses them."""
        report = self.report
        low, high = report.size_range
        return FlowChoice(
            group=report.group, min_size=low, max_size=high, warmup=report.warmup, drain=report.drain
        )

    def no_effect(self, name: str) -> list[str]:
        """Return the keys of the report that choose flows and have no effect on a metric."""
        report, own_group = self.report, split(name)[1]
        given = {key: getattr(report, key) for key in ("group", "sizes", "warmup", "drain")}
        chosen_by = [key for key in metric(name).chosen_by if not (own_group and key == "group")]
        return [key for key, value in given.items() if value and key not in chosen_by]

    def counted(self, name: str, cell: Cell) -> int:
        """Return how many finished flows, or requests, a metric is over, in the run with the fewest."""
        return self._once(lambda: self.choice.counted(cell.each, name), "counted", name, cell.choice)

    def estimate(self, name: str, cell: Cell) -> stats.Estimate | None:
        """Return the mean of a metric over the seeds of a combination, with its 95 % interval."""
        values, keys = self.values(name, cell), self._keys(cell)
        return stats.estimate(
            list(values.values()),
            method=self.report.interval,
            keys=[keys[seed] for seed in values],
            bin_width=metric(name).bin_width,
        )

    def _keys(self, cell: Cell) -> stats.Keys:
        """Return what the run of each seed of a combination is: equal ones are one observation."""
        return self._once(lambda: {seed: key_of(run) for seed, run in cell.runs.items()}, "keys", cell.choice)

    @cached_property
    def zipped(self) -> list[frozenset[str]]:
        """The axes that advance together."""
        return zipped_axes.groups(cell.choice for cell in self.combinations)

    def together(self, axis: str) -> frozenset[str]:
        """Return an axis of x and those that advance with it, but not `rows_axis`."""
        return frozenset({axis}) | (zipped_axes.partners(self.zipped, axis) - {self.rows_axis})

    def place(self, cell: Cell) -> Choice:
        """Return its variants of all axes but `rows_axis` and those that advance with it."""
        compared = {self.rows_axis, *zipped_axes.partners(self.zipped, self.rows_axis)}
        return tuple(pair for pair in cell.choice if pair[0] not in compared)

    def base_of(self, cell: Cell) -> Cell | None:
        """Return the combination to compare this one with: at its place of the axes that are not compared.

        None without one that has results, and for a combination without results.
        """
        found = self._bases.get(self.place(cell)) if cell.runs else None
        return found if found is not cell else None

    @cached_property
    def _bases(self) -> dict[Choice, Cell]:
        axis = self.rows_axis
        cells = [cell for cell in self.cells if axis and cell.at(axis) == self.against]
        return {self.place(cell): cell for cell in cells}

    def difference(self, name: str, cell: Cell, base: Cell | None = None) -> stats.Difference | None:
        """Return a combination's metric minus that of `base`, or of the one it is compared with.

        Seed by seed where both carried the same flows; None where there is nothing to compare with.
        """
        base = base or self.base_of(cell)
        if base is None:
            return None
        return stats.difference(
            self.values(name, cell),
            self.values(name, base),
            method=self.report.interval,
            paired=self.same_flows(cell, base, name),
            keys=(self._keys(cell), self._keys(base)),
            bin_width=metric(name).bin_width,
        )

    def same_flows(self, cell: Cell, other: Cell, name: str = "") -> bool:
        """Return whether two combinations are offered the same flows under the same seed.

        With the name of a metric also whether it counts the same ones of them.
        """
        same = (
            self._traffic(cell) == self._traffic(other)
            or are_same_bits(cell.runs.values(), other.runs.values())
            or self._have_same_flows(cell, other)
        )
        return same and not (name and self.other_flows(cell, other, name))

    @staticmethod
    def _have_same_flows(cell: Cell, other: Cell) -> bool:
        common = cell.runs.keys() & other.runs.keys()
        return bool(common) and all(are_same_flows(cell.runs[seed], other.runs[seed]) for seed in common)

    def other_flows(self, cell: Cell, other: Cell, name: str) -> str:
        """Return under which seed a metric counts other flows in two combinations, "" if in none."""
        choice = self.choice.flows(name) if "warmup" in metric(name).chosen_by else None
        if choice is None:
            return ""
        return self._once(
            lambda: self.choice.other_flows(cell.each, other.each, name),
            "other flows",
            cell.choice,
            other.choice,
            choice,
        )

    def _traffic(self, cell: Cell) -> object:
        return self._once(lambda: traffic_of(next(iter(cell.runs.values()))), "traffic", cell.choice)

    @property
    def asked(self) -> int:
        """How many runs each combination should have."""
        return len(self.seeds)

    def unfinished(self, cell: Cell, name: str = "slowdown_p50") -> int:
        """Return how many flows that would count (for a metric) did not finish, in all runs."""
        flows = self.choice.flows(name)
        return self._once(
            lambda: self.choice.unfinished_of(cell.each, flows), "unfinished", cell.choice, flows
        )

    def left_text(self, name: str, *cells: Cell) -> str:
        """Return what a metric leaves out of some combinations, as `evidence.left_text` says it."""
        flows = sum(self.unfinished(c, name) for c in cells) if evidence.of_finished_flows(name) else 0
        runs = [run for cell in cells for run in cell.each]
        return evidence.left_text(
            name,
            runs,
            self.choice.flows(name),
            unfinished_flows=flows,
            undecided=self.choice.undecided_text(runs, name),
        )

    def _left(self, name: str, cell: Cell) -> int | None:
        """Return how many flows, paths, steps or deadlines a metric leaves out; None if it is of none."""
        if evidence.of_finished_flows(name):
            return self.unfinished(cell, name)
        if evidence.is_of_deadlines(name):
            counts = (deadlines.counts(run, self.choice.of_run(run, name)) for run in cell.each)
            return sum(left for *_, left in counts)
        open_paths, paths = evidence.paths_open(name, cell.each)
        if paths:
            return open_paths
        flows = Flows(group=self.report.group)
        done, asked = evidence.steps_ended(name, cell.each, flows)
        return asked - done if evidence.is_of_steps(name) else None

    def remark(self, cell: Cell, name: str = "slowdown_p50") -> str:
        """Return what is wrong with the steadiness of a combination for a metric, "" if nothing shows."""
        group = evidence.group_looked_at(name, self.report.group)
        is_whole = evidence.is_whole(name)
        return self._once(
            lambda: steady.remark(cell.each, warmup=self.report.warmup, group=group, is_whole=is_whole),
            "remark",
            cell.choice,
            group,
            is_whole,
        )

    def reasons(self, name: str, cell: Cell) -> list[Reason]:
        """Return the reasons against a verdict on a metric of a combination."""
        if not cell.runs:
            return [Reason("runs", evidence.missing_text(self.asked, self.asked))]
        counted = self.counted(name, cell) if evidence.needed(name) else None
        return evidence.against(
            cell.each,
            name,
            asked=self.asked,
            flows=self.choice.flows(name),
            counted=counted,
            left=self.unfinished(cell, name) if evidence.of_finished_flows(name) else 0,
            known=sum(value is not None for value in self.values(name, cell).values()),
            remark=self.remark(cell, name),
            undecided=self.choice.undecided_text(cell.each, name),
            **self.choice.doubts(cell.each, name),
            values=list(self.values(name, cell).values()),
            pooled=self._pooled(name, cell),
            method=self.report.interval,
        )

    def _pooled(self, name: str, cell: Cell) -> float | None:
        """Return a percentile of the flows of all runs of a combination together, where it is looked up."""
        counted = self.counted(name, cell) if evidence.needed(name) else None
        return self._once(lambda: self.choice.pooled(cell.each, name, counted), "pooled", name, cell.choice)

    def judgement(self, cell: Cell) -> Verdict:
        """Return whether a combination keeps the answer's bound, with the reasons of an open verdict.

        Yes and no if the whole 95 % interval lies on one side and there is no reason against the number; see
        `weftline.measures.evidence`.
        """
        bound = self.report.bound
        if bound is None:
            return Verdict("open", (Reason("measured", "the report has no answer"),))
        name, sign, limit = bound
        reasons = self.reasons(name, cell)
        if any(reason.kind == "undecided" for reason in reasons):
            return self._judged_both_ways(cell, sign, limit, reasons)
        return judgements.judged(self.estimate(name, cell), sign, limit, reasons)

    def _judged_both_ways(self, cell: Cell, sign: str, limit: float, reasons: list[Reason]) -> Verdict:
        """Return the verdict on deadlines of which runs left some open: yes or no if these cannot change it.

        It has to be the same with all of them met and with all of them missed.
        """
        bound = self.report.bound
        assert bound is not None
        others = [reason for reason in reasons if reason.kind != "undecided"]
        runs, method = cell.each, self.report.interval
        verdicts = []
        for met in (False, True):
            values = [
                deadlines.share_met(run, self.choice.of_run(run, bound[0]), undecided=met) for run in runs
            ]
            found = stats.estimate(values, method=method, keys=list(map(key_of, runs)))
            verdicts.append(judgements.judged(found, sign, limit, others))
        if verdicts[0].answer == verdicts[1].answer != "open":
            return verdicts[0]
        return judgements.judged(self.estimate(bound[0], cell), sign, limit, reasons)

    def verdict(self, cell: Cell) -> str:
        """Return whether a combination keeps the answer's bound: "yes", "no", or "open"."""
        return self.judgement(cell).answer

    def separation(
        self, name: str, cell: Cell, base: Cell | None = None, *, paired: bool = True
    ) -> Separation:
        """Return whether a combination's metric is lower or higher than that of another, or not separated.

        Parameters
        ----------
        base : Cell, optional
            The other one; without it, the one that it is compared with.
        paired : bool
            Whether only a difference seed by seed on the same flows can separate them.
        """
        base = base or self.base_of(cell)
        if base is None:
            return Separation(0, (Reason("measured", "there is nothing to compare with"),))
        doubts = self.reasons(name, cell) + self.reasons(name, base)
        ours, theirs = cell.each, base.each
        doubts += evidence.differ(name, ours, theirs, self.choice.flows(name))
        doubts += evidence.ideals_decide(
            name,
            ours,
            theirs,
            self.values(name, cell),
            self.values(name, base),
            chosen=lambda run: self.choice.of_run(run, name),
            method=self.report.interval,
            paired=self.same_flows(cell, base, name),
        )
        if self.same_flows(cell, base, name):
            # Both begin empty and carry the same flows: the beginning is not a reason against a difference.
            doubts = [reason for reason in doubts if reason.text not in steady.BEGINNINGS]
        found = self.difference(name, cell, base)
        return judgements.separated(found, evidence.of_difference(found, doubts), paired=paired)

    def axis_values(self, choice: Choice) -> dict[str, Any]:
        """Return the value of each axis in a combination: a number where all of the axis are numbers."""
        return {axis: self._axis_values[axis][variant] for axis, variant in choice}

    @cached_property
    def _axis_values(self) -> dict[str, dict[str, Any]]:
        return {axis.name: axes.values_of(axis.variants) for axis in self.axes}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict a run: each axis, ``seed``, ``run`` (its key), ``status`` and each metric.

        Axes whose values are all distinct numbers have numbers. ``pandas.DataFrame(result.rows)`` takes it as
        it is, ``polars.DataFrame(result.rows, infer_schema_length=None)`` too. Units are those of
        `weftline.measures.metrics`: ns, bytes, bit/s, shares.
        """
        return [
            {
                **self.axis_values(cell.choice),
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

        Combinations without results have 0 ``runs``, others the number of those that have the metric, of
        ``asked``; ``odd`` (such as ``0 in 4 of 5 seeds``) is what shows that the values are far from normal,
        so that the interval holds the mean less often than it says; ``unfinished`` are the flows, paths,
        steps or deadlines left out, ``no_effect`` the keys of the report that choose flows, but have no
        effect on the metric. ``answer`` is yes, no or open for the metric of the answer's bound, ``reasons``
        the reasons against a verdict. ``against``, ``difference``, ``difference_low``, ``difference_high``,
        ``paired``, ``differ`` (under how many seeds, where it is taken by seed) and ``separated`` (lower,
        higher, not separated; ``separated_reasons``: why not) where it is compared with another combination.
        """
        found = []
        for cell in self.combinations:
            for name in self.metrics:
                estimate = self.estimate(name, cell)
                row: dict[str, Any] = {**self.axis_values(cell.choice), "metric": name}
                row |= {"runs": estimate.count if estimate else 0, "asked": self.asked}
                row |= {key: getattr(estimate, key, None) for key in ("mean", "low", "high")}
                odd = estimate.oddity if estimate else None
                row["odd"] = odd.text(lambda value: f"{value:g}") if odd else None
                row["unfinished"] = self._left(name, cell)
                row["no_effect"] = ", ".join(self.no_effect(name))
                judged = self.judgement(cell) if name == (self.report.bound or ("",))[0] else None
                row["answer"] = judged.answer if judged else None
                row["reasons"] = judgements.reasons_text(
                    judged.reasons if judged else self.reasons(name, cell)
                )
                apart = self.difference(name, cell)
                row["against"] = self.against if apart else None
                row["difference"] = apart.estimate.mean if apart else None
                row["difference_low"] = apart.estimate.low if apart else None
                row["difference_high"] = apart.estimate.high if apart else None
                row["paired"] = apart.paired if apart else None
                row["differ"] = apart.unequal if apart else None
                separation = self.separation(name, cell, paired=False) if apart else None
                row["separated"] = separation.word if separation else None
                row["separated_reasons"] = judgements.reasons_text(separation.reasons) if separation else None
                found.append(row)
        return found

    @cached_property
    def warnings(self) -> list[str]:
        """What deserves a look before the numbers are trusted, as the command line prints it."""
        from weftline.sweeps import tables

        failed = [
            f"{', '.join(' '.join(pair) for pair in choice) or 'the scenario'}, seed {seed}, failed: {why}"
            for choice, seed, why in self.failed
        ]
        return [*(tables.warnings(self) if self.cells else []), *failed, *self.remarks]

    def tables(self) -> list[Table]:
        """Return the tables that the terminal shows."""
        from weftline.sweeps import tables

        return tables.tables(self)

    def plot(self, metric_name: str = "", along: str = "") -> Figure:
        """Return a metric over an axis of numbers as a `Figure`, with bands where there are several seeds.

        The first metric that is reported, over the axis `along` of the report, by default.
        """
        from weftline.report import sweep_page

        numbered = [axis.name for axis in self.axes if axis.numbers]
        axis = along or (self.report.along if self.report.along in numbered else "") or (numbered or [""])[0]
        return sweep_page.curve(self, metric_name or self.metrics[0], axis)

    def __repr__(self) -> str:
        runs = sum(len(cell.runs) for cell in self.cells)
        what = f"{len(self.cells)} combinations, {runs} runs in {str(self.path)!r}"
        warned = (
            f", {len(self.warnings)} warning{'s' if len(self.warnings) > 1 else ''}" if self.warnings else ""
        )
        return f"<weftline.SweepResult {self.name!r}: {what}{warned}>"

    def __str__(self) -> str:
        warned = [wrapped("\n".join(f"warning: {text}" for text in self.warnings))] if self.warnings else []
        return "\n\n".join([*(table.text() for table in self.tables()), *warned])

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables()) + warnings_html(self.warnings)
