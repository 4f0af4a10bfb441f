"""An experiment of the lab on PINT: each digest of a chain checked, and packets until a path is known.

A row is a number of switches between two hosts. Every digest of a real packet is held against that of the
library for the same packet and path; the paths are decoded as `weftline pint decode` does by a collector that
knows the ids of all switches and not how they are linked (to it any two are neighbours); and the mean number
of packets to decode is divided by that of digests that the library makes of random packets on the same path,
decoded in the same way, run by run. Next to it is the number of `weftline pint accuracy` with the same number
of ids; its decoder does not use that neighbours on a path differ, so it needs a few packets more.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path
from typing import Any, ClassVar

from weftline import pint, scenarios
from weftline.errors import InputError, RunFailed
from weftline.lab import repeats, stamps
from weftline.runs import Run
from weftline.scenario import Scenario
from weftline.terminal import Table

KIND = "pint"
FLOWS, SIZE, APART_MS = 100, "100KB", 20
RATE, DELAY = "100Mbps", "1ms"
IDS = 64
"""Switches that the collector knows; `queries.toml` states the same number."""
EVERY_PAIR = list(combinations(range(IDS), 2))
NETWORK, KNOWN = "network.toml", "known.toml"
PACKETS_PER_HOP = 4
"""Packets by which flows of the library's grow until their paths are known, for each switch."""
MOST_PACKETS = 10_000
CONTRADICTIONS = ("inconsistent", "impossible", "paths_changed", "strays")
TRIALS = 1000
"""Paths that are decoded for the numbers of the library."""


@dataclass
class Decoded:
    """What one run on real packets came to."""

    out: Path
    digests: int
    equal: int
    paths: int
    contradictions: int
    packets: float
    """Mean number of packets until a path was known."""
    contaminated: list[str]
    unmatched: int = 0
    """Digests that could not be held against anything."""


@dataclass
class Row:
    """A chain of this number of switches."""

    switches: int
    expected: float = 0.0
    """Packets to decode for digests that the library makes."""
    accuracy: float = 0.0
    """The same by `weftline pint accuracy`."""
    runs: list[Decoded] = field(default_factory=list)
    published: float | None = None
    """The number that the source prints, of its own network."""

    def ratios(self) -> list[float]:
        """Return packets to decode over the expected ones, of each run."""
        return [run.packets / self.expected for run in self.runs if run.paths]

    def interval(self) -> tuple[float, float] | None:
        """Return their 90 % interval; None of one run."""
        return repeats.verdict(self.ratios(), 1.0, 0.0)[1]

    def verdict(self, margin: float) -> str:
        """Return "equal", "different" or "open".

        A wrong digest or path is "different" at any interval. Where a path stayed unknown the mean is of the
        others alone, and a digest without a match may be wrong, so nothing is decided.
        """
        if any(run.equal < run.digests or run.contradictions for run in self.runs):
            return "different"
        if any(run.paths < FLOWS or run.unmatched for run in self.runs):
            return "open"
        return repeats.verdict(self.ratios(), 1.0, margin)[0]


@dataclass
class Experiment:
    """The file, read."""

    title: str
    scenario: Path
    queries: Path
    margin: float
    rows: list[Row]
    delay: str = DELAY
    """Of every link."""
    traced: ClassVar[bool] = False
    """Packets carry the kernel's IOAM too."""

    @classmethod
    def read(cls, path: Path, rows: Sequence[str]) -> Experiment:
        """Read a `lab.toml` of this kind, all rows or those named by their number of switches.

        Raises
        ------
        InputError
            If it is not one, or has no such row.
        """
        with repeats.reading(path, "an experiment on PINT") as text:
            known = [int(row["switches"]) for row in text["row"]]
            published = {int(row["switches"]): row.get("published") for row in text["row"]}
            found = cls(
                title=text["title"],
                scenario=path.parent / text["scenario"],
                queries=path.parent / text["queries"],
                margin=text["margin"],
                rows=[
                    Row(switches, published=published[switches])
                    for switches in known
                    if not rows or str(switches) in rows
                ],
                delay=text.get("delay", DELAY),
            )
        if unknown := [row for row in rows if row not in map(str, known)]:
            raise InputError(f"{path}: has no row {', '.join(unknown)}: it has {', '.join(map(str, known))}")
        return found

    def run(self, out: Path, *, count: int, seconds: float | None = None) -> None:
        """Run every row on real packets, repeat by repeat; what a former call has finished is kept.

        Raises
        ------
        InputError
            If `seconds` is given: flows have sizes here, so a run ends with the last flow.
        """
        repeats.refuse_seconds(seconds)
        plan = pint.Plan.open(self.queries)
        for row in self.rows:
            place = out / f"{row.switches}-switches"
            place.mkdir(parents=True, exist_ok=True)
            self._networks(row, place)
            tried = pint.accuracy(plan, hops=[row.switches], trials=TRIALS)
            row.accuracy = tried["queries"][0]["lengths"][0]["mean_packets"]
            row.expected = expected(plan, self._path(row), place / "library.parquet", place / KNOWN)
        for repeat, row in repeats.there_and_back(self.rows, count):
            row.runs.append(self._one(row, out / f"{row.switches}-switches", repeat, plan))

    def _networks(self, row: Row, place: Path) -> None:
        """Write the network of a row, and that of all that the collector knows."""
        (place / NETWORK).write_text(network(row.switches, _chain(row.switches), self.delay), "utf-8")
        (place / KNOWN).write_text(network(IDS, EVERY_PAIR, self.delay), "utf-8")

    def _path(self, row: Row) -> list[dict[str, int]]:
        """Return what the switches of a path show the library."""
        return _hops(row.switches)

    def _flows(self, row: Row) -> list[dict[str, Any]]:
        """Return the flows of a row."""
        return [
            {"src": 0, "dst": 1, "size": SIZE, "start": f"{APART_MS * number}ms"} for number in range(FLOWS)
        ]

    def _decoded(self, run: Run, row: Row, plan: pint.Plan) -> Decoded:
        assert run.out is not None
        return decoded(run, run.out, plan, run.out.parent / KNOWN, row.switches)

    def _one(self, row: Row, place: Path, seed: int, plan: pint.Plan) -> Decoded:
        changes = {
            "topology.file": str((place / NETWORK).resolve()),
            "telemetry.queries": str(self.queries.resolve()),
            "workload": [{"kind": "flows", "flows": self._flows(row)}],
        }
        source = scenarios.load(str(self.scenario))
        scenario = Scenario.of(source, scenarios.settings(changes), seed=seed)
        what = f"{row.switches} switches, repeat {seed}"
        real = repeats.real(scenario, place / str(seed), what, traced=self.traced)
        return self._decoded(real, row, plan)

    def table(self) -> Table:
        """Return a line for each row."""
        lines = []
        for row in self.rows:
            interval = row.interval()
            packets = [run.packets for run in row.runs if run.paths]
            lines.append(
                [
                    f"{row.switches} switches",
                    f"{sum(run.equal for run in row.runs)} of {sum(run.digests for run in row.runs)}",
                    f"{sum(run.paths for run in row.runs)} of {FLOWS * len(row.runs)}",
                    str(sum(run.contradictions for run in row.runs)),
                    repeats.spread(packets, 2),
                    f"{row.expected:.2f}",
                    f"{row.accuracy:.2f}",
                    "–" if row.published is None else f"{row.published:g}",
                    repeats.between(interval),
                    f"{sum(bool(run.contaminated) for run in row.runs)} of {len(row.runs)}",
                    row.verdict(self.margin),
                ]
            )
        head = [
            "chain", "digests equal", "paths known", "contradictions", "packets to decode", "library",
            "pint accuracy", "published", "lab / library, 90 %", "contaminated", "verdict",
        ]  # fmt: skip
        return Table(head, lines, left=1)

    def holds(self) -> bool:
        """Return whether no row is different and all have an interval."""
        return all(row.verdict(self.margin) == "equal" for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """Return everything that the table says, with each run."""
        rows = [
            {
                "switches": row.switches,
                "library_packets": row.expected,
                "accuracy_packets": row.accuracy,
                "published_packets": row.published,
                "interval": row.interval(),
                "verdict": row.verdict(self.margin),
                "runs": [vars(run) | {"out": str(run.out)} for run in row.runs],
            }
            for row in self.rows
        ]
        return {"title": self.title, "margin": self.margin, "rows": rows, "holds": self.holds()}

    def write(self, out: Path) -> None:
        """Write the results as `experiment.json`."""
        repeats.write(out, self.as_json())


def decoded(run: Run, folder: Path, plan: pint.Plan, known_to: Path, switches: int) -> Decoded:
    """Check every digest of a run with the library, and decode its paths."""
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / "telemetry.parquet").to_pylist()
    hops = _hops(switches)
    equal = sum(plan.encode(packet_id=row["packet_id"], hops=hops)[-1] == row["digest"] for row in rows)
    found = pint.decode(plan, folder / "telemetry.parquet", topology=known_to, show=FLOWS)
    query = plan.facts()["queries"][0]["name"]
    known = [one["queries"][query] for one in found["reports"]]
    known = [one for one in known if one.get("decoded_after") is not None]
    wrong = sum(one["hops"] != [hop["switch-id"] for hop in hops] for one in known)
    packets = [one["decoded_after"] for one in known]
    return Decoded(
        out=folder,
        digests=len(rows),
        equal=equal,
        paths=len(known),
        contradictions=wrong + sum(found["counts"][what] for what in CONTRADICTIONS),
        packets=repeats.mean(packets),
        contaminated=list(run.summary["lab"]["contaminated"]),
    )


def expected(plan: pint.Plan, hops: list[dict[str, int]], file: Path, known_to: Path) -> float:
    """Return the mean number of packets to decode for digests that the library makes of random packets.

    `hops`: what each switch of the path shows.
    """
    switches = len(hops)
    chance = random.Random(switches)
    rows: list[dict[str, Any]] = []
    found: dict[str, Any] = {"complete_paths": 0}
    # Until every path is known: a mean of those that needed few packets would be too low.
    while found["complete_paths"] < TRIALS:
        begun = len(rows) // TRIALS
        if begun > MOST_PACKETS:
            raise RunFailed(
                f"{file}: {found['complete_paths']} of {TRIALS} paths are known after {begun} packets"
            )
        for packet, flow in product(range(begun, begun + PACKETS_PER_HOP * (switches + 1)), range(TRIALS)):
            number = chance.getrandbits(64)
            row = dict.fromkeys(stamps.COLUMNS, 0) | {"flow_id": flow, "dst": 1, "sink": 1, "hops": switches}
            digest = plan.encode(packet_id=number, hops=hops)[-1]
            about = {"packet_id": number, "digest": digest, "plan_version": plan.version, "path": None}
            rows.append(row | about | {"time_ns": float(packet)})
        stamps.write(file, stamps.Digests(rows, 0, 0))
        found = pint.decode(plan, file, topology=known_to, show=0)
    return float(found["packets_to_decode"]["mean"])


def _hops(switches: int) -> list[dict[str, int]]:
    # The two hosts have the numbers before those of the switches.
    return [{"switch-id": 2 + number} for number in range(switches)]


def network(switches: int, links: Sequence[tuple[int, int]], delay: str = DELAY) -> str:
    """Return the topology file of switches with these links, and a host at the first and the last switch."""
    nodes = ['{ name = "host0", kind = "host" }', '{ name = "host1", kind = "host" }']
    nodes += [f'{{ name = "s{number}", kind = "switch" }}' for number in range(switches)]
    ends = [("host0", "s0"), *((f"s{a}", f"s{b}") for a, b in links), (f"s{switches - 1}", "host1")]
    texts = [f'[[link]]\na = "{a}"\nb = "{b}"\nrate = "{RATE}"\ndelay = "{delay}"\n' for a, b in ends]
    return f"node = [{', '.join(nodes)}]\n\n" + "".join(texts)


def _chain(switches: int) -> list[tuple[int, int]]:
    return [(number, number + 1) for number in range(switches - 1)]
