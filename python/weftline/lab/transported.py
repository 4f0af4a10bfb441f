"""An experiment of the lab on transports: the same flows with each, simulated and on real packets.

A transport that kernels have runs in their hosts, others in the engine's. Compared are mean completion times,
lab over simulated, and which of two transports completes flows sooner, or keeps the queue of a port shorter;
drops are shown.
"""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import scenarios
from weftline.errors import InputError
from weftline.lab import agreement, runs
from weftline.lab.engine_ports import Ports
from weftline.runs import Run
from weftline.scenario import Scenario, status_of
from weftline.terminal import Table

KIND = "transports"


@dataclass
class Pair:
    """One repeat with one transport in both engines."""

    simulated: Run
    real: Run

    @property
    def contaminated(self) -> list[str]:
        """Why the lab's run does not count."""
        return list(self.real.summary["lab"]["contaminated"])

    def each(self) -> tuple[Run, Run]:
        """Return the run of both engines."""
        return self.simulated, self.real


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


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


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
        try:
            text = tomllib.loads(path.read_text("utf-8"))
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
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error
        except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: is not an experiment on transports: {error}") from error
        if rows:
            raise InputError(f"{path}: has no rows to choose from: leave --rows out")
        for name in (*found.equal, found.faster, found.slower, *found.settings, *found.ports):
            if name not in found.transports:
                raise InputError(
                    f"{path}: there is no transport {name}: it has {', '.join(found.transports)}"
                )
        return found

    def run(self, out: Path, *, repeats: int, seconds: float | None = None) -> None:
        """Run everything, repeat by repeat; what a former call has finished is kept.

        Raises
        ------
        InputError
            If `seconds` is given: flows have sizes here, so a run ends with the last flow.
        """
        if seconds is not None:
            raise InputError("--seconds: not for this experiment, whose flows have sizes")
        for repeat in range(1, repeats + 1):
            names = list(self.transports)
            for name in names if repeat % 2 else names[::-1]:
                changes = scenarios.settings(
                    {"transport": self.transports[name], **self.settings.get(name, {})}
                )
                scenario = Scenario.of(scenarios.load(str(self.scenario)), changes, seed=repeat)
                ports = self.ports.get(name, "kernel")
                pair = _pair(scenario, out / name / str(repeat), f"{name}, repeat {repeat}", ports)
                self.pairs.setdefault(name, []).append(pair)

    def _clean(self, name: str) -> list[Pair]:
        """Return the repeats that count: none if too many are contaminated, or flows are unfinished."""
        pairs = self.pairs.get(name, [])
        clean = [pair for pair in pairs if not pair.contaminated]
        whole = all(not run.summary["flows_unfinished"] for pair in clean for run in pair.each())
        return clean if whole and len(clean) >= (1 - agreement.MOST_DROPPED) * len(pairs) else []

    def verdict(self, name: str) -> tuple[str, tuple[float, float] | None]:
        """Return whether flows take as long in both engines, with the interval of lab over simulated."""
        ratios = [_mean(_times(pair.real)) / _mean(_times(pair.simulated)) for pair in self._clean(name)]
        if len(ratios) < 2:
            return "open", None
        low, high = agreement.interval_90(ratios)
        if 1 - self.margin <= low and high <= 1 + self.margin:
            return "equal", (low, high)
        return ("different" if low > 1 + self.margin or high < 1 - self.margin else "open"), (low, high)

    def order(self) -> str:
        """Return whether both engines have the same transport in front, in at least nine of ten repeats."""
        pairs = zip(self.pairs[self.faster], self.pairs[self.slower], strict=True)
        both = [(one, other) for one, other in pairs if not one.contaminated and not other.contaminated]
        if len(both) < 2 or not (self._clean(self.faster) and self._clean(self.slower)):
            return "open"
        fronts = [
            [self._first(mine) < self._first(its) for mine, its in zip(one.each(), other.each(), strict=True)]
            for one, other in both
        ]
        agree = sum(simulated == real for simulated, real in fronts)
        if agree >= 0.9 * len(both):
            return "same order"
        return "open" if agree > 0.5 * len(both) else "different order"

    def _first(self, run: Run) -> float:
        """Return what is lower of the transport in front."""
        return _mean(_queue(run, self.port) if self.port else _times(run))

    def table(self) -> Table:
        """Return a line for each transport: times, packets dropped, flows not done, verdict."""
        lines = []
        for name, pairs in self.pairs.items():
            word, interval = self.verdict(name)
            columns = []
            for side in (0, 1):
                found = [pair.each()[side] for pair in pairs]
                means = [_mean(_times(run)) for run in found]
                slowest = _mean([max(_times(run), default=float("nan")) for run in found])
                drops = _mean([run.summary["drops"] for run in found])
                columns += [
                    f"{_mean(means):.1f} ({min(means):.1f} to {max(means):.1f})",
                    f"{slowest:.1f}",
                    f"{drops:.0f}",
                ]
                if self.port:
                    waits = [_queue(run, self.port) for run in found]
                    means = [_mean(one) for one in waits]
                    columns += [
                        f"{_mean(means):.1f} ({min(means):.1f} to {max(means):.1f})",
                        f"{_mean([_p95(one) for one in waits]):.1f}",
                    ]
            unfinished = sum(run.summary["flows_unfinished"] for pair in pairs for run in pair.each())
            between = "–" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
            spoilt = f"{sum(bool(pair.contaminated) for pair in pairs)} of {len(pairs)}"
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
        return {"mean": _mean(waits), "p95": _p95(waits), "max": max(waits, default=float("nan"))}

    def write(self, out: Path) -> None:
        """Write the results as `experiment.json`."""
        (out / "experiment.json").write_text(json.dumps(self.as_json(), indent=2), "utf-8")


def _pair(scenario: Scenario, place: Path, what: str, ports: Ports) -> Pair:
    simulated, real = place / "sim", place / "lab"
    if status_of(simulated) != "done" or Run.read(simulated).scenario != scenario.values:
        scenario.start(out=simulated, force=True, sync=False)
    if status_of(real) != "done" or Run.read(real).scenario != scenario.values:
        print(what, file=sys.stderr, flush=True)
        runs.run(scenario, str(real), force=True, ports=ports)
    return Pair(Run.read(simulated), Run.read(real))
