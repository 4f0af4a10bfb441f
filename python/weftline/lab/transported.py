"""An experiment of the lab on transports: the same flows with each, simulated and on real packets.

A transport that kernels have runs in their hosts, others in the engine's. Compared are mean completion times,
lab over simulated, and which of two transports completes flows sooner, or keeps the queue of a port shorter;
drops are shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import scenarios
from weftline.lab import repeats
from weftline.lab.engine_ports import Ports
from weftline.lab.repeats import Pair
from weftline.runs import Run
from weftline.scenario import Scenario
from weftline.terminal import Table

KIND = "transports"


def _times(of: Run) -> list[float]:
    """Return the completion times of the flows that ended, in ms."""
    import pyarrow

    rows = pyarrow.table(of.flows).to_pylist()
    return [row["fct_ns"] / 1e6 for row in rows if row["fct_ns"] is not None]


def _queue(of: Run, port: str) -> list[float]:
    """Return what was seen to wait at a port while flows were not done, in KB, in ascending order."""
    import pyarrow

    ends = max((row["finish_ns"] or 0 for row in pyarrow.table(of.flows).to_pylist()), default=0)
    rows = pyarrow.table(of.series).to_pylist()
    mine = [row for row in rows if row["metric"] == "queue_bytes" and row["entity"] == port]
    return sorted(row["value"] / 1e3 for row in mine if row["time_ns"] <= ends)


def _p95(values: Sequence[float]) -> float:
    return values[math.ceil(0.95 * len(values)) - 1] if values else float("nan")


@dataclass
class Experiment:
    """The file, read."""

    title: str
    scenario: Path
    margin: float
    equal: list[str]
    """Transports whose flows are to take as long in both engines; of others that is shown alone."""
    faster: str
    slower: str
    transports: dict[str, dict[str, Any]]
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What else is set for a transport."""
    ports: dict[str, Ports] = field(default_factory=dict)
    """Whose ports switches have in its runs, where not the kernel's."""
    port: str | None = None
    """Whose queue decides about the order; else completion times do."""
    pairs: dict[str, list[Pair]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, rows: Sequence[str]) -> Experiment:
        """Read a `lab.toml` of this kind.

        Raises
        ------
        InputError
            If it is not one, or rows are named.
        """
        with repeats.reading(path, "an experiment on transports") as text:
            found = cls(
                title=text["title"],
                scenario=path.parent / text["scenario"],
                margin=float(text["margin"]),
                equal=list(text["equal"]),
                faster=text["faster"],
                slower=text["slower"],
                transports=dict(text["transport"]),
                settings=dict(text.get("set", {})),
                ports=dict(text.get("ports", {})),
                port=text.get("port"),
            )
        repeats.refuse_rows(path, rows)
        names = (*found.equal, found.faster, found.slower, *found.settings, *found.ports)
        repeats.check_names(path, "transport", names, found.transports)
        return found

    def run(self, out: Path, *, count: int, seconds: float | None = None) -> None:
        """Run everything, repeat by repeat; what a former call has finished is kept.

        Raises
        ------
        InputError
            If `seconds` is given: flows have sizes here, so a run ends with the last flow.
        """
        repeats.refuse_seconds(seconds)
        for repeat, name in repeats.there_and_back(list(self.transports), count):
            changes = scenarios.settings({"transport": self.transports[name], **self.settings.get(name, {})})
            scenario = Scenario.of(scenarios.load(str(self.scenario)), changes, seed=repeat)
            place, what = out / name / str(repeat), f"{name}, repeat {repeat}"
            found = repeats.pair(scenario, place, what, ports=self.ports.get(name, "kernel"))
            self.pairs.setdefault(name, []).append(found)

    def _clean(self, name: str) -> list[Pair]:
        """Return the repeats that count: none if too many are contaminated, or flows are unfinished."""
        clean = repeats.clean(self.pairs.get(name, []))
        whole = all(not run.summary["flows_unfinished"] for pair in clean for run in pair.each())
        return clean if whole else []

    def verdict(self, name: str) -> tuple[str, tuple[float, float] | None]:
        """Return whether flows take as long in both engines, with the interval of lab over simulated."""
        clean = self._clean(name)
        ratios = [repeats.mean(_times(pair.real)) / repeats.mean(_times(pair.simulated)) for pair in clean]
        return repeats.verdict(ratios, 1.0, self.margin)

    def order(self) -> str:
        """Return whether both engines have the same transport in front, in at least nine of ten repeats."""
        pairs = zip(self.pairs[self.faster], self.pairs[self.slower], strict=True)
        both = [(one, other) for one, other in pairs if not one.contaminated and not other.contaminated]
        if not (self._clean(self.faster) and self._clean(self.slower)):
            return "open"
        return repeats.front([self._fronts(one, other) for one, other in both])

    def _fronts(self, faster: Pair, slower: Pair) -> tuple[bool, bool]:
        """Return whether the first is in front, in both engines."""
        return (
            self._first(faster.simulated) < self._first(slower.simulated),
            self._first(faster.real) < self._first(slower.real),
        )

    def _first(self, run: Run) -> float:
        """Return what is lower of the transport in front."""
        return repeats.mean(_queue(run, self.port) if self.port else _times(run))

    def table(self) -> Table:
        """Return a line for each transport: times, packets dropped, flows not done, verdict."""
        lines = []
        for name, pairs in self.pairs.items():
            word, interval = self.verdict(name)
            columns = []
            for side in (0, 1):
                found = [pair.each()[side] for pair in pairs]
                means = [repeats.mean(_times(run)) for run in found]
                slowest = repeats.mean([max(_times(run), default=float("nan")) for run in found])
                drops = repeats.mean([run.summary["drops"] for run in found])
                columns += [
                    repeats.spread(means, 1),
                    f"{slowest:.1f}",
                    f"{drops:.0f}",
                ]
                if self.port:
                    waits = [_queue(run, self.port) for run in found]
                    means = [repeats.mean(one) for one in waits]
                    columns += [
                        repeats.spread(means, 1),
                        f"{repeats.mean([_p95(one) for one in waits]):.1f}",
                    ]
            unfinished = sum(run.summary["flows_unfinished"] for pair in pairs for run in pair.each())
            between = repeats.between(interval)
            spoilt = repeats.spoilt(pairs)
            lines.append([name, *columns, str(unfinished), between, spoilt, word])
        shown = ["mean FCT in ms", "slowest", "drops", *(["mean queue in KB", "p95"] if self.port else [])]
        both = [f"{engine}: {what}" for engine in ("simulated", "lab") for what in shown]
        lines.append([f"{self.faster} before {self.slower}", *["–"] * (len(both) + 3), self.order()])
        return Table(
            ["", *both, "unfinished", "lab / simulated, 90 %", "contaminated", "verdict"], lines, left=1
        )

    def holds(self) -> bool:
        """Return whether the transports of which it is asked are equal in both engines, in the same order."""
        equal = all(self.verdict(name)[0] == "equal" for name in self.equal)
        return equal and self.order() == "same order"

    def as_json(self) -> dict[str, Any]:
        """Return everything that the table says, with each repeat."""
        found = {}
        for name, pairs in self.pairs.items():
            every = [
                {
                    "fct_ms": [_times(run) for run in pair.each()],
                    "drops": [run.summary["drops"] for run in pair.each()],
                    "unfinished": [run.summary["flows_unfinished"] for run in pair.each()],
                    "contaminated": pair.contaminated,
                    **({"queue_kb": [self._shown(run) for run in pair.each()]} if self.port else {}),
                }
                for pair in pairs
            ]
            found[name] = {"repeats": every, "verdict": self.verdict(name)}
        return {"title": self.title, "transports": found, "order": self.order(), "holds": self.holds()}

    def _shown(self, run: Run) -> dict[str, float]:
        waits = _queue(run, self.port or "")
        return {"mean": repeats.mean(waits), "p95": _p95(waits), "max": max(waits, default=float("nan"))}

    def write(self, out: Path) -> None:
        """Write the results as `experiment.json`."""
        repeats.write(out, self.as_json())
