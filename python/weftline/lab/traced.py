"""An experiment of the lab: PINT in the flow label held against the kernel's IOAM of the same packets.

All three queries of the PINT paper share 16 bits. Every packet that the sink reported is matched, by its
number, with the packet that a capture at the receiver has, whose IOAM trace was written by the kernel:

- the path's part of the digest is to be the library's for the switches of the trace;
- the latency's part is to lie between the library's for two bounds that follow from the trace: the wait in
  each queue with `SLACK_FRAMES` frames less, and with as many more plus `SLACK_NS`, since frames come and go
  between the two readings of the queue (a port sends that many at once). Where the trace's times show that a
  packet was in a switch for longer, the second bound is that;
- the collector's paths are to be those of the traces, and a flow of one path only: its label, which changes
  with every packet, chooses no next hop.

What IOAM does not have, the load of a link, is not held against anything.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from weftline import pint, quantities
from weftline.errors import InputError
from weftline.lab import ioam, ports, repeats, stamped
from weftline.runs import Run
from weftline.terminal import Table

KIND = "pint-ioam"
CHAIN, DIAMOND = "chain", "diamond"
DIAMOND_LINKS = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)]
"""The second switch has two ways to the last one. The first would not do: its packets have no digest yet."""
DIAMOND_HOSTS = 4
"""At either end."""
CROSSING, CROSSING_SIZE, CROSSING_APART_MS = 20, "150KB", 97
"""Flows of each link of a chain that meet those of the whole path there, so that queues grow."""
SLACK_FRAMES = ports.BURST_PACKETS
SLACK_NS = 100_000
FRAME_BYTES = 1800
"""No frame is longer, whatever its trace."""
ENDS = (0, 1)
"""The hosts at the ends of a chain."""


@dataclass
class Checked(stamped.Decoded):
    """What one run came to; paths and packets are those of the flows over the whole path."""

    latencies: int = 0
    """Those of latency queries, and how many of them the traces rule out."""
    outside: int = 0
    steered: int = 0
    """Flows with more than one path."""
    quantiles: list[dict[str, Any]] = field(default_factory=list)
    """Of each pair of hosts and hop: quantiles of the latency by PINT and of the wait by IOAM, in ns."""

    @property
    def near(self) -> int:
        """Return how many quantiles of IOAM lie within the bounds of the collector's, with the slack."""
        return sum(one["near"] for one in self.quantiles)


@dataclass
class Experiment(stamped.Experiment):
    """The file, read."""

    shapes: dict[int, str] = field(default_factory=dict)
    """Of the networks, by the switches of a path."""
    traced: ClassVar[bool] = True

    @classmethod
    def read(cls, path: Path, rows: Sequence[str]) -> Experiment:
        """Read a `lab.toml` of this kind, all rows or those named by the number of switches on a path."""
        found = super().read(path, rows)
        assert isinstance(found, Experiment)
        text = tomllib.loads(path.read_text("utf-8"))
        found.shapes = {int(row["switches"]): row.get("shape", CHAIN) for row in text["row"]}
        if wrong := set(found.shapes.values()) - {CHAIN, DIAMOND}:
            raise InputError(f'{path}: shape = "{min(wrong)}": a row has "{CHAIN}" or "{DIAMOND}"')
        return found

    def _hosts(self, row: stamped.Row) -> list[int]:
        """Return the switch of every host."""
        if self.shapes[row.switches] == DIAMOND:
            return [0] * DIAMOND_HOSTS + [4] * DIAMOND_HOSTS
        # The ends of the path, then one host at each switch.
        return [0, row.switches - 1, *range(row.switches)]

    def _networks(self, row: stamped.Row, place: Path, ids: int) -> None:
        hosts = self._hosts(row)
        if self.shapes[row.switches] == DIAMOND:
            switches, links = 5, DIAMOND_LINKS
        else:
            switches, links = row.switches, stamped.chain(row.switches)
        (place / stamped.NETWORK).write_text(network(hosts, switches, links, self.delay), "utf-8")
        known = network(hosts, ids, stamped.chain(ids), self.delay)
        (place / stamped.KNOWN).write_text(known, "utf-8")

    def _flows(self, row: stamped.Row) -> list[dict[str, Any]]:
        if self.shapes[row.switches] == DIAMOND:
            pairs = [
                (number % DIAMOND_HOSTS, DIAMOND_HOSTS + number % DIAMOND_HOSTS)
                for number in range(stamped.FLOWS)
            ]
            apart = stamped.APART_MS // 2
            return [
                {"src": src, "dst": dst, "size": stamped.SIZE, "start": f"{apart * number}ms"}
                for number, (src, dst) in enumerate(pairs)
            ]
        crossing = [
            {
                "src": 2 + link,
                "dst": 3 + link,
                "size": CROSSING_SIZE,
                "start": f"{CROSSING_APART_MS * number + 7 * link}ms",
            }
            for number in range(CROSSING)
            for link in range(row.switches - 1)
        ]
        return [*super()._flows(row), *crossing]

    def _decoded(self, run: Run, row: stamped.Row, plan: pint.Plan) -> Checked:
        assert run.out is not None
        ends = ENDS if self.shapes[row.switches] == CHAIN else None
        return checked(run, plan, run.out.parent / stamped.KNOWN, stamped.RATE, ends)

    def table(self) -> Table:
        """Return a line for each row."""
        lines = []
        for row in self.rows:
            found = [run for run in row.runs if isinstance(run, Checked)]
            interval = row.interval()
            packets = [run.packets for run in found if run.paths]
            lines.append(
                [
                    f"{self.shapes[row.switches]}, {row.switches} switches",
                    f"{sum(run.equal for run in found)} of {sum(run.digests for run in found)}",
                    f"{sum(run.paths for run in found)} of {stamped.FLOWS * len(found)}",
                    str(sum(run.contradictions for run in found)),
                    f"{sum(run.outside for run in found)} of {sum(run.latencies for run in found)}",
                    f"{sum(run.near for run in found)} of {sum(len(run.quantiles) for run in found)}",
                    repeats.spread(packets, 2),
                    f"{row.expected:.2f}",
                    repeats.between(interval),
                    f"{sum(bool(run.contaminated) for run in found)} of {len(found)}",
                    row.verdict(self.margin),
                ]
            )
        head = [
            "path", "digests as IOAM's path", "paths known", "contradictions", "latencies outside",
            "quantiles near", "packets to decode", "pint accuracy", "lab / pint accuracy, 90 %",
            "contaminated", "verdict",
        ]  # fmt: skip
        return Table(head, lines, left=1)


def network(hosts: Sequence[int], switches: int, links: Iterable[tuple[int, int]], delay: str) -> str:
    """Return the topology file of switches with these links, and of hosts at these switches."""
    nodes = [f'{{ name = "host{number}", kind = "host" }}' for number in range(len(hosts))]
    nodes += [f'{{ name = "s{number}", kind = "switch" }}' for number in range(switches)]
    ends = [(f"host{number}", f"s{switch}") for number, switch in enumerate(hosts)]
    ends += [(f"s{a}", f"s{b}") for a, b in links]
    texts = [f'[[link]]\na = "{a}"\nb = "{b}"\nrate = "{stamped.RATE}"\ndelay = "{delay}"\n' for a, b in ends]
    return f"node = [{', '.join(nodes)}]\n\n" + "".join(texts)


def _seen(switch: int, latency_ns: int) -> dict[str, int]:
    # The load is on packets of its own, whose path alone is looked at.
    return {"switch-id": switch, "hop-latency": latency_ns, "utilisation": 0}


def places(plan: pint.Plan) -> dict[frozenset[str], dict[str, tuple[int, int]]]:
    """Return where the bits of each query lie, first bit and number of bits, by the queries of a packet."""
    facts = plan.facts()
    bits = {query["name"]: query["bits"] for query in facts["queries"]}
    found = {}
    for one in facts["sets"]:
        offset, at = 0, {}
        for name in one["queries"]:
            at[name] = offset, bits[name]
            offset += bits[name]
        found[frozenset(one["queries"])] = at
    return found


def checked(run: Run, plan: pint.Plan, known_to: Path, rate: str, ends: tuple[int, int] | None) -> Checked:
    """Hold the digests of a run against its traces, and decode its paths.

    `ends`: the hosts whose flows have the row's path; None: all have paths of its length.
    """
    import pyarrow.parquet as pq

    assert run.out is not None
    ns_a_byte = 8e9 / quantities.parse_rate(rate)
    slack = SLACK_FRAMES * FRAME_BYTES
    at = places(plan)
    names = {query["value"]: query["name"] for query in plan.facts()["queries"]}
    path_name, latency_name = names["switch-id"], names["hop-latency"]
    traces: dict[int, list[dict[str, Any]]] = {}
    for trace in pq.read_table(run.out / ioam.TABLE).to_pylist():
        traces.setdefault(trace["packet_id"], []).append(trace)
    rows = pq.read_table(run.out / "telemetry.parquet").to_pylist()
    found = Checked(run.out, len(rows), 0, 0, 0, math.nan, list(run.summary["lab"]["contaminated"]))
    ways: dict[int, set[tuple[int, ...]]] = {}
    waits: dict[tuple[int, int], list[list[float]]] = {}
    for row in rows:
        packet = row["packet_id"]
        if not traces.get(packet):
            found.unmatched += 1
            found.digests -= 1
            continue
        trace = traces[packet].pop(0)
        nodes, queues = trace["nodes"], trace["queues_bytes"]
        ways.setdefault(row["flow_id"], set()).add(tuple(nodes))
        waits.setdefault((row["src"], row["dst"]), []).append([queue * ns_a_byte for queue in queues])
        found.contradictions += len(nodes) != row["hops"] or trace["flow_id"] != row["flow_id"]
        left = [*trace["times_ns"][1:], trace["time_ns"]]
        stayed = [after - before for before, after in zip(trace["times_ns"], left, strict=True)]
        low, high = [], []
        for node, queue, stay in zip(nodes, queues, stayed, strict=True):
            low.append(_seen(node, int(max(queue - slack, 0) * ns_a_byte)))
            high.append(_seen(node, int(max(queue * ns_a_byte, stay) + slack * ns_a_byte) + SLACK_NS))
        where = at[frozenset(plan.serves(packet))]
        smallest, largest = (plan.encode(packet_id=packet, hops=hops)[-1] for hops in (low, high))
        found.equal += _part(smallest, where[path_name]) == _part(row["digest"], where[path_name])
        if place := where.get(latency_name):
            found.latencies += 1
            inside = _part(smallest, place) <= _part(row["digest"], place) <= _part(largest, place)
            found.outside += not inside
    found.steered = sum(len(one) > 1 for one in ways.values())
    whole = {row["flow_id"] for row in rows if ends in (None, (row["src"], row["dst"]))}
    digests = run.out / "telemetry.parquet"
    decoded = pint.decode(plan, digests, topology=known_to, ids_only=True, show=len(rows))
    _paths(found, decoded, ways, whole, path_name)
    found.quantiles = list(_quantiles(decoded, waits, latency_name, slack * ns_a_byte + SLACK_NS))
    found.contradictions += found.outside + found.steered
    return found


def _part(digest: int, place: tuple[int, int]) -> int:
    offset, bits = place
    return digest >> offset & (1 << bits) - 1


def _quantiles(
    decoded: dict[str, Any],
    waits: dict[tuple[int, int], list[list[float]]],
    name: str,
    slack_ns: float,
) -> Iterator[dict[str, Any]]:
    """Yield each quantile that the collector reports, next to that of the waits that the traces show."""
    for one in decoded["reports"]:
        pair = one["flow"].get("src"), one["flow"].get("dst")
        for hop, report in enumerate(one["queries"].get(name, {}).get("hops", [])):
            at_hop = sorted(trace[hop] for trace in waits.get(pair, []) if hop < len(trace))
            for asked in report["quantiles"] if at_hop else []:
                wait = at_hop[math.ceil(asked["quantile"] * len(at_hop)) - 1]
                low = -math.inf if asked["low"] is None else asked["low"]
                high = math.inf if asked["high"] is None else asked["high"]
                yield {
                    "src": pair[0],
                    "dst": pair[1],
                    "hop": hop + 1,
                    "quantile": asked["quantile"],
                    "pint_ns": asked["value"],
                    "pint_low_ns": asked["low"],
                    "pint_high_ns": asked["high"],
                    "ioam_wait_ns": wait,
                    "near": low - slack_ns <= wait <= high + slack_ns,
                }


def _paths(
    found: Checked,
    decoded: dict[str, Any],
    ways: dict[int, set[tuple[int, ...]]],
    whole: set[int],
    name: str,
) -> None:
    """Compare paths with those of the traces; `whole`: flows over the row's path."""
    packets = []
    for one in decoded["reports"]:
        query = one["queries"].get(name, {})
        flow = one["flow"].get("flow_id")
        if query.get("decoded_after") is None or flow not in ways:
            continue
        found.contradictions += tuple(query["hops"]) not in ways[flow]
        if flow in whole:
            packets.append(query["decoded_after"])
    found.contradictions += sum(decoded["counts"][what] for what in stamped.CONTRADICTIONS)
    found.paths = len(packets)
    found.packets = repeats.mean(packets)
