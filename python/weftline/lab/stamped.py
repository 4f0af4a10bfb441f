"""An experiment of the lab on PINT: each digest of a chain checked, and packets until a path is known.

A row is a number of switches between two hosts. Every digest of a real packet is held against that of the
library for the same packet and path; the paths are decoded as `weftline pint decode --ids-only` does, by a
collector that knows the ids of all switches and not how they are linked; and the mean number of packets to
decode is divided, run by run, by that of `weftline pint accuracy --decoder collector`, which gives digests of
random packets to the same collector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from weftline import pint, scenarios
from weftline.errors import InputError
from weftline.lab import repeats
from weftline.runs import Run
from weftline.scenario import Scenario
from weftline.terminal import Table

KIND = "pint"
FLOWS, APART_MS = 100, 20
SIZE = "100KB"
"""Of a flow, if the file has no other."""
RATE, DELAY = "100Mbps", "1ms"
NETWORK, KNOWN = "network.toml", "known.toml"
CONTRADICTIONS = ("inconsistent", "impossible", "paths_changed", "strays")
TRIALS = 1000
"""Paths of `weftline pint accuracy`."""


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
    """Packets to decode by `weftline pint accuracy`."""
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
    size: str = SIZE
    """Of every flow."""
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
                size=text.get("size", SIZE),
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
            self._networks(row, place, _ids(plan))
            tried = pint.accuracy(plan, hops=[row.switches], trials=TRIALS, decoder="collector")
            row.expected = tried["queries"][0]["lengths"][0]["mean_packets"]
        for repeat, row in repeats.there_and_back(self.rows, count):
            row.runs.append(self._one(row, out / f"{row.switches}-switches", repeat, plan))

    def _networks(self, row: Row, place: Path, ids: int) -> None:
        """Write the network of a row, and one with all switches that the collector knows."""
        for file, switches in ((NETWORK, row.switches), (KNOWN, ids)):
            (place / file).write_text(network(switches, chain(switches), self.delay), "utf-8")

    def _flows(self, row: Row) -> list[dict[str, Any]]:
        """Return the flows of a row."""
        return [
            {"src": 0, "dst": 1, "size": self.size, "start": f"{APART_MS * number}ms"}
            for number in range(FLOWS)
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
                    "–" if row.published is None else f"{row.published:g}",
                    repeats.between(interval),
                    f"{sum(bool(run.contaminated) for run in row.runs)} of {len(row.runs)}",
                    row.verdict(self.margin),
                ]
            )
        head = [
            "chain", "digests equal", "paths known", "contradictions", "packets to decode", "pint accuracy",
            "published", "lab / pint accuracy, 90 %", "contaminated", "verdict",
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
                "accuracy_packets": row.expected,
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
    found = pint.decode(plan, folder / "telemetry.parquet", topology=known_to, ids_only=True, show=FLOWS)
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


def _ids(plan: pint.Plan) -> int:
    """Return how many switches the collector knows."""
    predictions = [query["prediction"] for query in plan.facts()["queries"]]
    return next(int(one["ids"]) for one in predictions if "ids" in one)


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


def chain(switches: int) -> list[tuple[int, int]]:
    return [(number, number + 1) for number in range(switches - 1)]
