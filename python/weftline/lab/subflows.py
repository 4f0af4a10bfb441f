"""An experiment of the lab on subflows: a multipath connection under each balancer, simulated and real.

Compared are how many uplinks of its leaf the connection uses, lab minus simulated, its goodput, lab over
simulated, and under which of two balancers it has more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline.lab import balanced, repeats
from weftline.runs import Run
from weftline.terminal import Table

KIND = "subflows"


def _goodput_mbps(of: Run) -> float | None:
    """Return what a run's flows carried while they lasted; None: one is unfinished."""
    import pyarrow

    rows = pyarrow.table(of.flows).to_pylist()
    if any(not row["fct_ns"] for row in rows):
        return None
    return sum(8e3 * row["size_bytes"] / row["fct_ns"] for row in rows)


@dataclass
class Experiment:
    """The file, read."""

    title: str
    scenario: Path
    share: float
    margin_uplinks: float
    margin_goodput: float
    more: str
    less: str
    balancers: dict[str, dict[str, Any]]
    pairs: dict[str, list[balanced.Pair]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, rows: Sequence[str]) -> Experiment:
        """Read a `lab.toml` of this kind.

        Raises
        ------
        InputError
            If it is not one, or rows are named.
        """
        with repeats.reading(path, "an experiment on subflows") as text:
            found = cls(
                title=text["title"],
                scenario=path.parent / text["scenario"],
                share=float(text["share"]),
                margin_uplinks=float(text["margin_uplinks"]),
                margin_goodput=float(text["margin_goodput"]),
                more=text["more"],
                less=text["less"],
                balancers=dict(text["balancer"]),
            )
        repeats.refuse_rows(path, rows)
        repeats.check_names(path, "balancer", (found.more, found.less), found.balancers)
        return found

    def run(self, out: Path, *, count: int, seconds: float | None = None) -> None:
        """Run everything, repeat by repeat; what a former call has finished is kept.

        Raises
        ------
        InputError
            If `seconds` is given: flows have sizes here, so a run ends with the last flow.
        """
        repeats.refuse_seconds(seconds)
        for repeat, name in repeats.there_and_back(list(self.balancers), count):
            scenario = balanced.balancing(self.scenario, self.balancers[name], repeat)
            pair = balanced.pair(scenario, out / name / str(repeat), f"{name}, repeat {repeat}")
            self.pairs.setdefault(name, []).append(pair)

    def uplinks(self, pair: balanced.Pair) -> tuple[int, int]:
        """Return how many uplinks carried their share of the bytes, in both engines."""
        columns = zip(*pair.bytes().values(), strict=True)
        simulated, real = (sum(one >= self.share * sum(column) for one in column) for column in columns)
        return simulated, real

    def _clean(self, name: str) -> list[balanced.Pair]:
        """Return the repeats that count: none if too many are contaminated, or flows are unfinished."""
        clean = repeats.clean(self.pairs.get(name, []))
        return clean if all(None not in _goodputs(pair) for pair in clean) else []

    def verdicts(self, name: str) -> dict[str, tuple[str, tuple[float, float] | None]]:
        """Return whether uplinks and goodput agree under a balancer, with their 90 % intervals."""
        clean = self._clean(name)
        uplinks = [float(real - simulated) for simulated, real in map(self.uplinks, clean)]
        goodputs = [real / simulated for simulated, real in map(_goodputs, clean) if real and simulated]
        return {
            "uplinks": repeats.verdict(uplinks, 0.0, self.margin_uplinks),
            "goodput": repeats.verdict(goodputs, 1.0, self.margin_goodput),
        }

    def gains(self) -> list[list[float]]:
        """Return by engine what the better balancer's goodput is of the other's, repeat by repeat."""
        found: list[list[float]] = [[], []]
        for one, other in zip(self.pairs[self.more], self.pairs[self.less], strict=True):
            if not one.contaminated and not other.contaminated:
                for side, more, less in zip(found, _goodputs(one), _goodputs(other), strict=True):
                    side += [more / less] if more and less else []
        return found

    def order(self) -> str:
        """Return whether the same balancer has more goodput in both engines, by intervals of gains."""
        if not (self._clean(self.more) and self._clean(self.less)):
            return "open"
        return repeats.order(self.gains(), 1.0)

    def table(self) -> Table:
        """Return two lines for each balancer, and one for their order."""
        lines = []
        for name, pairs in self.pairs.items():
            verdicts = self.verdicts(name)
            spoilt = repeats.spoilt(pairs)
            for what, values in (
                ("uplinks", [self.uplinks(pair) for pair in pairs]),
                ("goodput", [_goodputs(pair) for pair in pairs]),
            ):
                word, interval = verdicts[what]
                columns = [
                    [value for value in column if value is not None] for column in zip(*values, strict=True)
                ]
                between = repeats.between(interval)
                text = "distinct uplinks" if what == "uplinks" else "goodput in Mb/s"
                lines.append(
                    [
                        f"{name}, {text}",
                        *(repeats.spread(column, 2) for column in columns),
                        between,
                        spoilt,
                        word,
                    ]
                )
        name = f"{self.more} over {self.less}, goodput"
        lines.append([name, *(repeats.spread(gains, 2) for gains in self.gains()), "–", "", self.order()])
        return Table(["", "simulated", "lab", "90 %", "contaminated", "verdict"], lines, left=1)

    def holds(self) -> bool:
        """Return whether the engines agree about the balancer of which it is asked, and on the order."""
        equal = all(word == "equal" for word, _ in self.verdicts(self.more).values())
        return equal and self.order() == "same order"

    def as_json(self) -> dict[str, Any]:
        """Return everything that the table says, with each repeat."""
        found = {}
        for name, pairs in self.pairs.items():
            every = [
                {
                    "uplinks": self.uplinks(pair),
                    "bytes": pair.bytes(),
                    "goodput_mbps": _goodputs(pair),
                    "contaminated": pair.contaminated,
                    "balancer": pair.real.summary["lab"].get("balancer"),
                }
                for pair in pairs
            ]
            found[name] = {"repeats": every, "verdicts": self.verdicts(name)}
        return {
            "title": self.title,
            "balancers": found,
            "gains": self.gains(),
            "order": self.order(),
            "holds": self.holds(),
        }

    def write(self, out: Path) -> None:
        """Write the results as `experiment.json`."""
        repeats.write(out, self.as_json())


def _goodputs(pair: balanced.Pair) -> tuple[float | None, float | None]:
    return _goodput_mbps(pair.simulated), _goodput_mbps(pair.real)
