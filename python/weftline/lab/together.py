"""An experiment of the lab on telemetry, balancing and queueing at once: multipath connections share a port.

Packets carry PINT digests, switches balance subflows, and one port has each discipline in turn. The true path
of a packet follows from the switch at which it was captured. Held against each other are: every
digest with the library's for the true path; every path that the collector reports with the true paths of its
subflow; the distinct uplinks of a connection by its reported paths, Jain's index of the connections and their
goodput with the simulation's.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from weftline import pint, scenarios
from weftline.lab import ioam, repeats
from weftline.measures import sharing
from weftline.runs import Run
from weftline.scenario import Scenario
from weftline.terminal import Table

KIND = "together"
IPV4 = 0x0800
EXACT = ("digests", "paths")
CHANGES = ("paths_changed", "inconsistent", "strays")
"""What the collector counts where a subflow takes another path, whose digests do not fit the former one's."""

Subflow = tuple[int, int]
"""Number of the flow, and of the subflow in it."""


@dataclass
class Paths:
    """What the digests of a run say."""

    digests: int = 0
    """Those whose packet was captured at a switch."""
    equal: int = 0
    unmatched: int = 0
    subflows: int = 0
    known: int = 0
    """Subflows with a path that is known when the run ends."""
    contradictions: int = 0
    """Reported paths on which no packet of the subflow was captured, and digests of no path."""
    changes: int = 0
    uplinks: float = math.nan
    """Distinct first hops of a connection's subflows when the run ends, mean over connections."""


@dataclass
class Pair(repeats.Pair):
    """One repeat under one discipline in both engines."""

    plan: pint.Plan
    watched: list[str]

    @cached_property
    def paths(self) -> tuple[Paths, Paths]:
        """Return what digests say in both engines; those of the simulated run are not checked singly."""
        return paths(self.simulated, self.plan, None), paths(self.real, self.plan, self._passed())

    def _passed(self) -> dict[int, list[int]]:
        """Return the switches at which each packet was captured, by its number."""
        assert self.real.out is not None
        nodes = [node["name"] for node in Scenario(self.real.out / "scenario.toml").network()["nodes"]]
        found: dict[int, list[int]] = {}
        for name in self.watched:
            for _, frame in ioam.frames(self.real.out / ioam.FOLDER / f"{name}.pcap"):
                if (number := packet_of(frame)) is not None:
                    found.setdefault(number, []).append(nodes.index(name))
        return found

    @cached_property
    def jain(self) -> tuple[float, float]:
        """Return Jain's index of the connections in both engines."""
        return sharing.index(self.simulated) or math.nan, sharing.index(self.real) or math.nan

    @cached_property
    def goodput_mbps(self) -> tuple[float, float]:
        """Return the goodput of all connections together in both engines."""
        both = (sharing.total_goodput(run) or math.nan for run in (self.simulated, self.real))
        simulated, real = (rate / 1e6 for rate in both)
        return simulated, real


def packet_of(frame: bytes) -> int | None:
    """Return the number of a frame with TCP over IPv4, as programs of switches count it."""
    if len(frame) < 34 or struct.unpack_from(">H", frame, 12)[0] != IPV4 or frame[23] != ioam.TCP:
        return None
    tcp = 14 + 4 * (frame[14] & 15)
    if len(frame) < tcp + 20:
        return None
    source, destination = (0xFFFF << 32 | one for one in struct.unpack_from(">II", frame, 26))
    first, answer, sum_ = struct.unpack_from(">QI4xH", frame, tcp)
    return ioam.packet_id(source, destination, first, answer, sum_)


def paths(run: Run, plan: pint.Plan, passed: dict[int, list[int]] | None) -> Paths:
    """Hold the digests of a run against the library's, and decode its paths.

    `passed`: the switches at which each packet was captured; None: digests are not checked.
    """
    import pyarrow.parquet as pq

    assert run.out is not None
    table = run.out / "telemetry.parquet"
    rows = pq.read_table(
        table, columns=["flow_id", "src_port", "src", "dst", "packet_id", "digest"]
    ).to_pylist()
    graph = Scenario(run.out / "scenario.toml").network()
    found = Paths(subflows=len({_subflow(row) for row in rows}))
    true: dict[Subflow, set[tuple[int, ...]]] = {}
    ways = {(row["src"], row["dst"]): list(_ways(graph, row["src"], row["dst"])) for row in rows}
    for row in rows if passed is not None else []:
        assert passed is not None
        by = passed.get(row["packet_id"], [])
        fits = [way for way in ways[row["src"], row["dst"]] if set(by) & set(way)]
        if len(fits) != 1:
            found.unmatched += 1
            continue
        hops = [{"switch-id": switch} for switch in fits[0]]
        found.digests += 1
        found.equal += plan.encode(packet_id=row["packet_id"], hops=hops)[-1] == row["digest"]
        true.setdefault(_subflow(row), set()).add(fits[0])
    decoded = pint.decode(plan, table, topology=run.out / "scenario.toml", show=len(rows))
    name = plan.facts()["queries"][0]["name"]
    last: dict[Subflow, tuple[int, ...] | None] = {}
    for one in sorted(decoded["reports"], key=lambda one: one["first_ns"]):
        query, subflow = one["queries"][name], _subflow(one["flow"])
        way = tuple(query["hops"]) if query.get("decoded_after") is not None else None
        last[subflow] = way
        if passed is not None and way is not None:
            found.contradictions += way not in true.get(subflow, set())
    found.contradictions += decoded["counts"]["impossible"]
    found.changes = sum(decoded["counts"][what] for what in CHANGES)
    found.known = sum(way is not None for way in last.values())
    firsts: dict[int, set[int]] = {}
    for (flow, _), way in last.items():
        firsts.setdefault(flow, set()).update(way[1:2] if way else ())
    found.uplinks = sum(map(len, firsts.values())) / len(firsts) if firsts else math.nan
    return found


def _subflow(row: dict[str, Any]) -> Subflow:
    return row["flow_id"], row.get("src_port", 0)


def _ways(graph: dict[str, Any], src: int, dst: int) -> Iterator[tuple[int, ...]]:
    """Yield the switches of every shortest path between two hosts; hosts have the first numbers."""
    near: dict[int, list[int]] = {}
    for link in graph["links"]:
        near.setdefault(link["a"], []).append(link["b"])
        near.setdefault(link["b"], []).append(link["a"])
    reached: list[tuple[int, ...]] = [(src,)]
    while reached and not any(way[-1] == dst for way in reached):
        reached = [
            (*way, there)
            for way in reached
            for there in near[way[-1]]
            if there not in way and (there == dst or graph["nodes"][there]["kind"] != "host")
        ]
    yield from (way[1:-1] for way in reached if way[-1] == dst)


@dataclass
class Experiment:
    """The file, read."""

    title: str
    scenario: Path
    queries: Path
    port: str
    watched: list[str]
    margins: dict[str, float]
    fairer: str
    other: str
    queues: dict[str, dict[str, Any]]
    pairs: dict[str, list[Pair]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, rows: Sequence[str]) -> Experiment:
        """Read a `lab.toml` of this kind.

        Raises
        ------
        InputError
            If it is not one, or rows are named.
        """
        with repeats.reading(path, "an experiment on all at once") as text:
            found = cls(
                title=text["title"],
                scenario=path.parent / text["scenario"],
                queries=path.parent / text["queries"],
                port=text["port"],
                watched=list(text["watched"]),
                margins={what: float(text[f"margin_{what}"]) for what in ("uplinks", "jain", "goodput")},
                fairer=text["fairer"],
                other=text["other"],
                queues=dict(text["queue"]),
            )
        repeats.refuse_rows(path, rows)
        repeats.check_names(path, "queue", (found.fairer, found.other), found.queues)
        return found

    def run(self, out: Path, *, count: int, seconds: float | None = None) -> None:
        """Run everything, repeat by repeat; what a former call has finished is kept."""
        plan = pint.Plan.open(self.queries)
        for repeat, name in repeats.there_and_back(list(self.queues), count):
            pair = self._pair(name, out / name / str(repeat), repeat, seconds, plan)
            self.pairs.setdefault(name, []).append(pair)

    def _pair(self, name: str, place: Path, seed: int, seconds: float | None, plan: pint.Plan) -> Pair:
        changes: dict[str, Any] = {"switch.port": [{"match": self.port, "queue": self.queues[name]}]}
        changes |= {"run.until": f"{seconds:g}s"} if seconds else {}
        source = scenarios.load(str(self.scenario))
        scenario = Scenario.of(source, scenarios.settings(changes), seed=seed)
        what = f"{name}, repeat {seed}"
        both = repeats.pair(scenario, place, what, ports="engine", watched=self.watched)
        return Pair(*both.each(), plan, self.watched)

    def verdicts(self, name: str) -> dict[str, tuple[str, tuple[float, float] | None]]:
        """Return the verdict of every quantity under a discipline, with its 90 % interval if it has one.

        Digests and paths do not depend on time, so those of contaminated runs count.
        """
        every = [pair.paths[1] for pair in self.pairs.get(name, [])]
        wrong = any(one.equal < one.digests for one in every)
        whole = bool(every) and all(one.digests and not one.unmatched for one in every)
        lies = any(one.contradictions for one in every)
        known = bool(every) and all(one.known == one.subflows for one in every)
        clean = repeats.clean(self.pairs.get(name, []))
        uplinks = [real.uplinks - simulated.uplinks for simulated, real in (pair.paths for pair in clean)]
        jain = [real - simulated for simulated, real in (pair.jain for pair in clean)]
        goodput = [real / simulated for simulated, real in (pair.goodput_mbps for pair in clean)]
        return {
            "digests": ("different" if wrong else "equal" if whole else "open", None),
            "paths": ("different" if lies else "equal" if known else "open", None),
            "uplinks": repeats.verdict(uplinks, 0.0, self.margins["uplinks"]),
            "jain": repeats.verdict(jain, 0.0, self.margins["jain"]),
            "goodput": repeats.verdict(goodput, 1.0, self.margins["goodput"]),
        }

    def gains(self) -> list[list[float]]:
        """Return by engine how much higher the fairer discipline's index is, repeat by repeat."""
        found: list[list[float]] = [[], []]
        for one, other in zip(self.pairs[self.fairer], self.pairs[self.other], strict=True):
            if not one.contaminated and not other.contaminated:
                for side, more, less in zip(found, one.jain, other.jain, strict=True):
                    side.append(more - less)
        return found

    def order(self) -> str:
        """Return whether the same discipline is fairer in both engines, by intervals of the gains."""
        enough = all(repeats.clean(self.pairs[name]) for name in (self.fairer, self.other))
        return repeats.order(self.gains(), 0.0) if enough else "open"

    def table(self) -> Table:
        """Return a line for each quantity and discipline, and one for their order."""
        lines = []
        for name, pairs in self.pairs.items():
            verdicts = self.verdicts(name)
            spoilt = repeats.spoilt(pairs)
            simulated, real = zip(*(pair.paths for pair in pairs), strict=True)
            unmatched = sum(one.unmatched for one in real)
            equal = f"{sum(one.equal for one in real)} of {sum(one.digests for one in real)}"
            equal += f", {unmatched} without a capture" if unmatched else ""
            columns: dict[str, tuple[str, str]] = {
                "digests": ("–", equal),
                "paths": (_known(simulated), _known(real)),
                "uplinks": (_spread(one.uplinks for one in simulated), _spread(one.uplinks for one in real)),
                "jain": _both(pair.jain for pair in pairs),
                "goodput": _both(pair.goodput_mbps for pair in pairs),
            }
            for what, shown in columns.items():
                word, interval = verdicts[what]
                between = repeats.between(interval)
                counts = "does not apply" if what in EXACT else spoilt
                lines.append([f"{name}, {TEXTS[what]}", *shown, between, counts, word])
        what = f"{self.fairer} minus {self.other}, Jain's index"
        lines.append([what, *map(_spread, self.gains()), "–", "", self.order()])
        return Table(["", "simulated", "lab", "90 %", "contaminated", "verdict"], lines, left=1)

    def holds(self) -> bool:
        """Return whether all that the file asks to be equal is, and the order is the same."""
        fairer, other = self.verdicts(self.fairer), self.verdicts(self.other)
        asked = [*fairer.values(), *(other[what] for what in (*EXACT, "uplinks"))]
        return all(word == "equal" for word, _ in asked) and self.order() == "same order"

    def as_json(self) -> dict[str, Any]:
        """Return everything that the table says, with each repeat."""
        found = {}
        for name, pairs in self.pairs.items():
            every = [
                {
                    "paths": [vars(one) for one in pair.paths],
                    "jain": pair.jain,
                    "goodput_mbps": pair.goodput_mbps,
                    "contaminated": pair.contaminated,
                    "conserved": pair.real.summary["lab"]["engine_ports"]["conserved"],
                    "balancer": pair.real.summary["lab"].get("balancer"),
                }
                for pair in pairs
            ]
            found[name] = {"repeats": every, "verdicts": self.verdicts(name)}
        words = {"gains": self.gains(), "order": self.order(), "holds": self.holds()}
        return {"title": self.title, "queues": found, **words}

    def write(self, out: Path) -> None:
        """Write the results as `experiment.json`."""
        repeats.write(out, self.as_json())


TEXTS = {
    "digests": "digests as the library's for the captured path",
    "paths": "subflows with a known path, changes, contradictions",
    "uplinks": "distinct uplinks of a connection",
    "jain": "Jain's index",
    "goodput": "goodput in Mb/s",
}


def _known(of: Sequence[Paths]) -> str:
    known, every = sum(one.known for one in of), sum(one.subflows for one in of)
    return f"{known} of {every}, {sum(one.changes for one in of)}, {sum(one.contradictions for one in of)}"


def _both(values: Iterator[tuple[float, float]]) -> tuple[str, str]:
    simulated, real = zip(*values, strict=True)
    return _spread(simulated), _spread(real)


def _spread(values: Iterable[float]) -> str:
    return repeats.spread(list(values), 3)
