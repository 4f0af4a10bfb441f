"""An experiment of the lab: points that are both simulated and run on real packets, in one table.

A file `lab.toml` names a scenario, rows with what they set, and what each discipline sets in a row. Repeat k
has seed k in both engines, which so have the same flows. Points go there and back in turn (ABBA), so that
what drifts on the machine meets all of them.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from weftline import quantities, scenarios
from weftline.errors import InputError
from weftline.lab import (
    agreement,
    balanced,
    doctor,
    repeats,
    stamped,
    subflows,
    together,
    traced,
    transported,
)
from weftline.lab.repeats import Pair
from weftline.measures import sharing
from weftline.reproduce import experiments
from weftline.scenario import Scenario
from weftline.terminal import Table

FILE = "lab.toml"
PREFIX = "lab-"
REPEATS = 5


class Trial(Protocol):
    """An experiment of any kind."""

    title: str

    def run(self, out: Path, *, count: int, seconds: float | None) -> None:
        """Run all points; what a former call has finished is kept."""

    def table(self) -> Table:
        """Return a line for each point."""

    def holds(self) -> bool:
        """Return whether the engines agree as far as the file asks."""

    def as_json(self) -> dict[str, Any]:
        """Return everything that the table says, with each run."""

    def write(self, out: Path) -> None:
        """Write the results as `experiment.json`."""


def named() -> dict[str, Path]:
    """Return the folders of the lab's experiments by name.

    PAPER/lab is `lab-PAPER`, PAPER/lab-x is `lab-PAPER-x`.
    """
    found = (path for directory in experiments.directories() for path in directory.glob(f"*/lab*/{FILE}"))
    folders = [path.parent for path in sorted(found)]
    return {f"{PREFIX}{folder.parent.name}{folder.name.removeprefix('lab')}": folder for folder in folders}


def read(folder: str | Path, rows: Sequence[str] = ()) -> Trial:
    """Read the experiment of a folder, or the one of this name, all rows or those named.

    Raises
    ------
    InputError
        If there is none, or no such row.
    """
    known = named()
    if str(folder).startswith(PREFIX) and not Path(folder).is_dir() and str(folder) not in known:
        raise InputError(f"there is no experiment {folder}: the lab has {', '.join(known)}")
    path = known.get(str(folder), Path(folder)) / FILE
    try:
        kind = tomllib.loads(path.read_text("utf-8")).get("kind")
    except (OSError, tomllib.TOMLDecodeError):
        kind = None  # The reader of the usual kind names what is wrong.
    return KINDS.get(kind, Experiment).read(path, rows)


def titles() -> list[tuple[str, str]]:
    """Return name and title of every experiment of the lab."""
    return [
        (name, str(tomllib.loads((folder / FILE).read_text("utf-8")).get("title", "")))
        for name, folder in named().items()
    ]


def command(options: argparse.Namespace) -> int:
    """Do what `weftline reproduce lab-NAME` asks for and return the exit status.

    Raises
    ------
    InputError
        If an option has no meaning on real packets, or nothing can be run here.
    """
    given = {
        "--all": options.all, "--published": options.published, "--full": options.full,
        "--duration": options.duration, "--hosts": options.hosts, "--only": options.only,
        "--on": options.on != "local", "--skip": options.skip,
    }  # fmt: skip
    if wrong := [name for name, value in given.items() if value]:
        raise InputError(
            f"{', '.join(wrong)}: not for experiments on real packets; --rows and --seeds choose"
        )
    rows = [str(n) for n in quantities.parse_numbers(options.rows, "--rows", "row")] if options.rows else []
    seeds = quantities.parse_seeds(options.seeds) if options.seeds else list(range(1, REPEATS + 1))
    count = len(seeds)
    if sorted(seeds) != list(range(1, count + 1)):
        raise InputError(
            f"--seeds {options.seeds}: repeats on real packets have the seeds from 1 on: --seeds 1-{count}"
        )
    out = Path(options.out or Path("out") / options.experiment)
    found = read(options.experiment, rows)
    if options.dry_run:
        print(f"{options.experiment}: {found.title}; {count} runs of each point on real packets, into {out}")
        return 0
    doctor.require()
    holds = carry_out(
        options.experiment, out, rows=rows, count=count, seconds=options.seconds, as_json=options.json
    )
    return 0 if holds else 1


def carry_out(
    folder: str | Path, out: Path, *, rows: Sequence[str], count: int, seconds: float | None, as_json: bool
) -> bool:
    """Run an experiment, write `experiment.json` below `out`, print its table; return whether it holds."""
    found = read(folder, rows)
    found.run(out, count=count, seconds=seconds)
    found.write(out)
    if as_json:
        print(json.dumps(found.as_json(), indent=2))
    else:
        print(found.title)
        print(found.table().text())
    return found.holds()


@dataclass
class Point:
    """A row under a discipline, and the pairs of runs that were made of it: simulated and real."""

    row: str
    variant: str
    changes: dict[str, Any]
    pairs: list[Pair] = field(default_factory=list)

    def values(self, *, contaminated: bool = False) -> list[tuple[float, float]]:
        """Return Jain's index of goodputs in both engines, of each repeat, or of those not contaminated."""
        found = []
        for pair in self.pairs:
            one, other = map(sharing.index, pair.each())
            if one is not None and other is not None and (contaminated or not pair.contaminated):
                found.append((one, other))
        return found

    def verdict(self, margin: float) -> tuple[str, tuple[float, float] | None]:
        """Return whether the engines agree within the margin, and the 90 % interval of real - simulated."""
        apart = [other - one for one, other in self.values()]
        if len(apart) < 2 or len(apart) < (1 - agreement.MOST_DROPPED) * len(self.pairs):
            return "open", None
        return repeats.verdict(apart, 0.0, margin)


@dataclass
class Experiment:
    """The file, read."""

    title: str
    scenario: Path
    margin: float
    equal: str
    below: str
    enough: int
    points: list[Point]

    @classmethod
    def read(cls, path: Path, rows: Sequence[str]) -> Experiment:
        """Read a `lab.toml`, all rows or those named.

        Raises
        ------
        InputError
            If there is none, or no such row.
        """
        with repeats.reading(path, "an experiment of the lab") as text:
            known = [row["name"] for row in text["row"]]
            points = [
                Point(row["name"], variant, {**row["set"], **changes})
                for row in text["row"]
                if row["name"] in (rows or known)
                for variant, changes in row["with"].items()
            ]
            found = cls(
                title=text["title"],
                scenario=path.parent / text["scenario"],
                margin=text["margin"],
                equal=text["equal"],
                below=text["below"],
                enough=text["enough"],
                points=points,
            )
        if unknown := [row for row in rows if row not in known]:
            raise InputError(f"{path}: has no row {', '.join(unknown)}: it has {', '.join(known)}")
        return found

    def run(self, out: Path, *, count: int, seconds: float | None) -> None:
        """Simulate and run every point, repeat by repeat; what a former call has finished is kept."""
        for repeat, point in repeats.there_and_back(self.points, count):
            changes = {**point.changes, **({"run.until": f"{seconds:g}s"} if seconds else {})}
            source = scenarios.load(str(self.scenario))
            scenario = Scenario.of(source, scenarios.settings(changes), seed=repeat)
            place = out / f"{point.row}-{point.variant}" / str(repeat)
            what = f"row {point.row}, {point.variant}, repeat {repeat}"
            point.pairs.append(repeats.pair(scenario, place, what, ports="engine"))

    def table(self) -> Table:
        """Return a line for each point: means of all repeats; verdicts are of those not contaminated."""
        lines = []
        for point in self.points:
            every, kept, shown = len(point.pairs), point.values(), point.values(contaminated=True)
            word, interval = point.verdict(self.margin)
            if point.variant == self.below:
                word = self._order(point)
            lines.append(
                [
                    f"{point.row} {point.variant}",
                    repeats.spread([one for one, _ in shown], 3),
                    repeats.spread([other for _, other in shown], 3),
                    repeats.between(interval, "+.3f"),
                    f"{every - len(kept)} of {every}",
                    word,
                ]
            )
        head = ["Jain's index", "simulated", "lab", "lab - simulated, 90 %", "contaminated", "verdict"]
        return Table(head, lines, left=1)

    def _order(self, low: Point) -> str:
        """Return whether a row's lower discipline is below the other one in both engines."""
        high = next(point for point in self.points if (point.row, point.variant) == (low.row, self.equal))
        means = [
            [repeats.mean(column) for column in zip(*point.values(), strict=True)] for point in (low, high)
        ]
        if not all(means):
            return "open"
        same = all(below < above for below, above in zip(*means, strict=True))
        return f"below {self.equal} in both" if same else f"not below {self.equal} in both"

    def verdicts(self) -> Iterator[str]:
        """Yield the verdict of each row under the discipline that is to be equal."""
        for point in self.points:
            if point.variant == self.equal:
                yield point.verdict(self.margin)[0]

    def holds(self) -> bool:
        """Return whether enough rows are equal."""
        return sum(word == "equal" for word in self.verdicts()) >= self.enough

    def as_json(self) -> dict[str, Any]:
        """Return everything that the table says, with each repeat."""
        points = []
        for point in self.points:
            word, interval = point.verdict(self.margin)
            every = [
                {
                    "simulated": sharing.index(pair.simulated),
                    "lab": sharing.index(pair.real),
                    "contaminated": pair.contaminated,
                }
                for pair in point.pairs
            ]
            points.append(
                {
                    "row": point.row,
                    "variant": point.variant,
                    "repeats": every,
                    "interval": interval,
                    "verdict": word,
                }
            )
        return {"title": self.title, "margin": self.margin, "points": points, "holds": self.holds()}

    def write(self, out: Path) -> None:
        """Write the results as `experiment.json`."""
        repeats.write(out, self.as_json())


KINDS: dict[object, Any] = {
    kind.KIND: kind.Experiment for kind in (stamped, traced, balanced, subflows, transported, together)
}
"""Experiments of other kinds, by the key `kind` of their files."""
