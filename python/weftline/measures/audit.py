"""Path tracing as an auditor: are decoded paths the true ones, flowlet by flowlet?

A flowlet is what an auditor at the receiver can tell from arrival times alone: packets of a subflow between
two pauses longer than half of the balancer's gap (queues on the path shorten pauses); all packets of a
subflow where the balancer has no gap. The digests of each flowlet are decoded by themselves, with the run's
network known. The truth is the column `path` of telemetry.parquet (`telemetry.paths = true`), which the
simulator's switches wrote down and no digest brought.

    known         flowlets of at least `MIN_PACKETS` digests whose path was decoded, of all such flowlets
    right         flowlets of which exactly the paths were decoded that its packets took, of all decoded ones
    wrong         decoded paths of flowlets on one path that no packet took: a count, which must be 0
    blended       the same of flowlets on several paths: hops of two paths that fit each other, until a later
                  digest contradicts
    mixed         flowlets whose packets took several paths, of all flowlets
    disjointness  of the subflows that a connection has under way within one span: distinct links between
                  switches over links counted once a subflow; 1 if they share none, 1/n if n go one way
    paths         distinct paths of these subflows

The last two are computed from decoded paths (`audited`) and from true ones (`true`), a mean over connections
and spans in which two or more subflows have a path. The numbers of a run are kept in its folder.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, columns, integrity, pint, quantities

if TYPE_CHECKING:
    from weftline.runs import Run

MIN_PACKETS = 20
"""Digests from which a flowlet's path should be known: four times the mean of five hops with 2 x 8 bits."""
SPAN_NS = 1e6
"""Subflows that send within one span are under way together."""
KEPT = "audit.json"

Path_ = tuple[str, ...]
"""Names of switches, in order."""


@dataclass(kw_only=True)
class Flowlet:
    """Packets of a subflow between two pauses."""

    flow: int
    subflow: int
    truth: dict[Path_, int] = field(default_factory=dict)
    """Packets by the path that they took."""
    decoded: list[Path_] = field(default_factory=list)
    """In the order in which the collector reported them; several where it saw the path change."""
    spans: set[int] = field(default_factory=set)
    """Numbers of the spans in which its packets arrived."""

    @property
    def packets(self) -> int:
        """How many digests it brought."""
        return sum(self.truth.values())


def number(run: Run, name: str) -> float | None:
    """Return one of the numbers above, "known" or "true paths"; None where the run recorded no path."""
    return _numbers(run).get(name)


def numbers(flowlets: Iterable[Flowlet]) -> dict[str, float | None]:
    """Return all numbers of a run's flowlets."""
    listed = list(flowlets)
    decoded = [flowlet for flowlet in listed if flowlet.decoded]
    long = [flowlet for flowlet in listed if flowlet.packets >= MIN_PACKETS]
    right = [flowlet for flowlet in decoded if set(flowlet.truth) == set(flowlet.decoded)]
    found: dict[str, float | None] = {
        "flowlets": len(listed),
        "known": _share(sum(bool(flowlet.decoded) for flowlet in long), len(long)),
        "right": _share(len(right), len(decoded)),
        "wrong": _untaken(flowlet for flowlet in decoded if len(flowlet.truth) == 1),
        "blended": _untaken(flowlet for flowlet in decoded if len(flowlet.truth) > 1),
        "mixed": _share(sum(len(flowlet.truth) > 1 for flowlet in listed), len(listed)),
    }
    for what, path in (("audited", _reported), ("true", _taken)):
        paths, disjointness = _together(listed, path)
        found |= {f"{what} paths": paths, f"{what} disjointness": disjointness}
    return found


def disjointness(paths: Sequence[Path_]) -> float | None:
    """Return distinct links between switches over links counted once a path; None where no path has any."""
    links = [link for path in paths for link in itertools.pairwise(path)]
    return len(set(links)) / len(links) if links else None


def cut(rows: Iterable[tuple[float, int, int]], pause_ns: float) -> Iterator[tuple[int, bool]]:
    """Return for each row (time, flow, subflow), in order of time, the number of its flowlet.

    The second value says whether the flowlet begins there.
    """
    last: dict[tuple[int, int], tuple[float, int]] = {}
    count = 0
    for time, flow, subflow in rows:
        seen = last.get((flow, subflow))
        if seen is None or time - seen[0] > pause_ns:
            begins, flowlet = True, count
            count += 1
        else:
            begins, flowlet = False, seen[1]
        last[flow, subflow] = (time, flowlet)
        yield flowlet, begins


def _untaken(flowlets: Iterable[Flowlet]) -> int:
    """Count decoded paths that no packet of their flowlet took."""
    return sum(path not in flowlet.truth for flowlet in flowlets for path in flowlet.decoded)


def _reported(flowlet: Flowlet) -> Path_ | None:
    return flowlet.decoded[-1] if flowlet.decoded else None


def _taken(flowlet: Flowlet) -> Path_ | None:
    return max(flowlet.truth, key=flowlet.truth.__getitem__, default=None)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _together(flowlets: Sequence[Flowlet], path: Any) -> tuple[float | None, float | None]:
    """Means, over connections and spans, of the distinct paths of its subflows and of their disjointness."""
    spans: dict[tuple[int, int], dict[int, Path_]] = {}
    for flowlet in flowlets:
        if way := path(flowlet):
            for span in flowlet.spans:
                spans.setdefault((flowlet.flow, span), {})[flowlet.subflow] = way
    at_once = [list(ways.values()) for ways in spans.values() if len(ways) > 1]
    links = [value for ways in at_once if (value := disjointness(ways)) is not None]
    counts = [len(set(ways)) for ways in at_once]
    return _mean(counts), _mean(links)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _numbers(run: Run) -> dict[str, Any]:
    kept = run.folder / KEPT
    if (before := integrity.numbers_kept(kept, "telemetry.parquet")) is not None:
        return before
    telemetry = run.scenario.get("telemetry", {})
    recorded = (run.out / "telemetry.parquet").is_file()
    if not recorded or not isinstance(telemetry, dict):
        return {}
    if not (telemetry.get("queries") and telemetry.get("paths")):
        return {}
    plan = pint.Plan.open(telemetry["queries"])
    query = next((q["name"] for q in plan.facts()["queries"] if q["aggregation"] == "path"), None)
    if query is None:
        return {}
    found = numbers(_flowlets(run, plan, query))
    integrity.keep_numbers(kept, "telemetry.parquet", found)
    return found


def _pause_ns(run: Run) -> float:
    balancer = run.scenario.get("switch", {}).get("balancer", {})
    gap = balancer.get("gap") if isinstance(balancer, Mapping) else None
    return quantities.parse_time_ns(gap) / 2 if gap else math.inf


def _flowlets(run: Run, plan: pint.Plan, query: str) -> list[Flowlet]:
    names = ["time_ns", "flow_id", "src_port", "src", "dst", "packet_id", "digest", "hops", "path"]
    table = columns.read(_native.table(str(run.out), "telemetry"), names)
    rows = zip(table["time_ns"], table["flow_id"], table["src_port"], strict=True)
    found: list[Flowlet] = []
    with tempfile.TemporaryDirectory() as folder:
        digests = Path(folder) / "digests.csv"
        with digests.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(["time_ns", "flow_id", "src", "dst", "packet_id", "digest", "hops", "plan_version"])
            for n, (flowlet, begins) in enumerate(cut(rows, _pause_ns(run))):
                time, path = table["time_ns"][n], table["path"][n]
                if begins:
                    found.append(Flowlet(flow=table["flow_id"][n], subflow=table["src_port"][n]))
                way = tuple(path.split()) if path else ()
                found[flowlet].truth[way] = found[flowlet].truth.get(way, 0) + 1
                found[flowlet].spans.add(int(time // SPAN_NS))
                ends = (table["src"][n], table["dst"][n])
                carried = (table["packet_id"][n], table["digest"][n], table["hops"][n], plan.version)
                out.writerow([round(time), flowlet, *ends, *carried])
        for flowlet, way in _decoded(run, plan, query, digests):
            found[flowlet].decoded.append(way)
    return found


def _decoded(run: Run, plan: pint.Plan, query: str, digests: Path) -> Iterator[tuple[int, Path_]]:
    """Number of a flowlet and a path, for every path that was decoded."""
    findings = digests.with_name("findings.jsonl")
    answer = pint.decode(plan, digests, topology=run.out / "scenario.toml", findings=findings, show=0)
    names = {int(number): name for number, name in answer["names"].items()}
    with findings.open(encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)
            path = text.get("queries", {}).get(query)
            if path and path["decoded_after"] is not None:
                yield text["flow"].get("flow_id", 0), tuple(names[hop] for hop in path["hops"])
