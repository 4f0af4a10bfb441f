"""PINT on real packets: what the switches of a plan load, and the table of what their sinks reported."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native
from weftline.lab import engine_hosts, internet, programs
from weftline.pint import Plan as Queries

if TYPE_CHECKING:
    from weftline.lab.network import Network
    from weftline.lab.plan import Plan

Ends = tuple[int, int, int, int]
"""Of a flow: its source, the number of the subflow there, the port there, its destination."""
QUEUED = {"hop-latency", "queue-bytes", "utilisation"}
"""Values that follow from the queue of a port."""
CARRIERS = {4: 1, 6: 2}
"""Where digests stand, as the programs count: the id of IPv4 packets, the flow label of IPv6."""
COLUMNS = [
    *("time_ns", "flow_id", "src", "dst", "packet_id", "digest", "hops", "src_port", "plan_version"),
    *("sink", "path", "loop"),
]
RECORD_BYTES = 72
"""Number of the switch, then struct pint_record of crates/dataplane/bpf/pint_tc.h."""
PLACE = 1
"""Among the filters of an interface."""
COUNTS = "pint_counts"
NAMES = ["source", "unstamped", "hop_limit", "switch", "other_plan", "no_digest", "sink", "lost", "loop"]
"""The counters of that map, in their order."""


def objects() -> list[Path]:
    """Return where the programs may lie."""
    return programs.objects("pint.bpf.o")


def wanted(values: dict[str, Any]) -> bool:
    """Return whether a resolved scenario asks for PINT."""
    return values.get("telemetry", {}).get("kind", "none") == "pint"


def problems(values: dict[str, Any], *, engine: bool = False) -> list[str]:
    """Return what of the telemetry that a scenario asks for cannot be had on this machine."""
    telemetry = values.get("telemetry", {})
    kind = telemetry.get("kind", "none")
    if kind == "none":
        return []
    if kind != "pint":
        return [f'telemetry.kind = "{kind}": packets of the lab carry PINT or nothing: set "pint" or "none"']
    found = []
    if engine and (queued := sorted(QUEUED & set(_values_of(telemetry)))):
        found.append(
            f"telemetry.queries: {', '.join(queued)} follow from queues, and the programs of switches see "
            "those of the kernel, not the engine's: choose --ports kernel, or queries for other values such "
            "as switch-id"
        )
    if "queries" not in telemetry:
        found.append("telemetry.queries: the lab needs a file of queries (without, PINT serves HPCC alone)")
    if values.get("transport", {}).get("kind") not in engine_hosts.KERNEL:
        found.append(
            'telemetry.kind = "pint": the lab tells flows of transport.kind = "tcp" and "mptcp" apart'
        )
    if telemetry.get("arithmetic", "tables") != "tables" and "utilisation" in _values_of(telemetry):
        found.append('telemetry.arithmetic: the lab\'s switches compute loads with tables: set "tables"')
    found += programs.problems('telemetry.kind = "pint"', objects())
    return found


def differs(values: dict[str, Any]) -> list[str]:
    """Return what of PINT the two engines cannot have alike."""
    found = [
        "packet ids: hashes of headers here, of flow and byte in the simulator; so other coins fall",
        "digests are on acknowledgements and handshakes too, and no packet is longer for them; the "
        "simulator's data packets are",
        "times of PINT are of the machine's clock, not from the run's time zero; loads are averaged over the "
        "lab's own longest round trip",
    ]
    if (share := values["telemetry"].get("record", 1)) != 1:
        found.append(f"telemetry.record = {share}: the lab records every digest")
    if values["telemetry"].get("paths"):
        found.append(
            "telemetry.paths: from the routes, where only one way leads from host to host; else null"
        )
    return found


def _values_of(telemetry: dict[str, Any]) -> list[str]:
    file = telemetry.get("queries")
    return Queries.open(file).values if file else []


@dataclass(frozen=True)
class Stamping:
    """A plan of queries and how the switches compute."""

    queries: Queries
    paper: bool
    paths: bool
    horizon_ns: int
    seed: int

    def loads(self, network: Network) -> list[programs.Load]:
        """Return what every switch of a network loads."""
        made, found = network.plan, []
        hosts = {node.name for node in made.nodes if node.is_host}
        for number, node in enumerate(made.nodes):
            if node.is_host:
                continue
            config = self.queries._native.switch_config(number, CARRIERS[made.ip.version])
            maps, filters, sink = [("pint_config", _key(0), config)], [], False
            for place, (end, index) in enumerate(programs.interfaces(network, node)):
                to_host = end.peer[0] in hosts
                key = self.seed << 32 ^ number << 16 ^ place
                entry = _native.pint_port(
                    programs.port_number(end),
                    end.port.rate_bps,
                    self.horizon_ns,
                    key & (1 << 64) - 1,
                    to_hosts=to_host,
                    paper=self.paper,
                )
                maps.append(("pint_ports", _key(index), entry))
                first = "pint_source" if to_host else "pint_arrival"
                filters += [(end.interface, "ingress", PLACE, first)]
                filters += [(end.interface, "egress", PLACE, "pint_switch")]
                sink |= to_host
            load = programs.Load(
                switch=number,
                namespace=network.name(node.name),
                file=objects(),
                maps=maps,
                filters=filters,
                counts=(COUNTS, NAMES),
                ring=("pint_records", RECORD_BYTES - 8) if sink else None,
            )
            found.append(load)
        return found


def _key(number: int) -> bytes:
    return struct.pack("I", number)


def asked(values: dict[str, Any], horizon_ns: int, seed: int, ip: int) -> Stamping | None:
    """Return what a scenario without `problems` asks for over a version of IP.

    Raises
    ------
    InputError
        If the digest is wider than its carrier.
    """
    if not wanted(values):
        return None
    telemetry = values["telemetry"]
    queries = Queries.open(telemetry["queries"])
    queries._native.switch_config(0, CARRIERS[ip])
    paper, paths = telemetry.get("law") == "paper", bool(telemetry.get("paths"))
    return Stamping(queries, paper, paths, horizon_ns, seed)


@dataclass
class Digests:
    """The rows of telemetry.parquet, and what has no place in them."""

    rows: list[dict[str, Any]]
    of_receivers: int
    """Of acknowledgements, which no digest of the simulator is on."""
    strangers: int
    """Of packets that belong to no flow of the run."""
    after_end: int = 0
    """Of packets that arrived after the time at which the run ends, as nothing does in the simulator."""

    def facts(self, counts: dict[str, int]) -> dict[str, Any]:
        """Return what goes into the summary: what the programs counted, and where the reports went."""
        return {
            "programs": counts,
            "recorded": len(self.rows),
            "of_receivers": self.of_receivers,
            "strangers": self.strangers,
            "after_end": self.after_end,
        }

    def warnings(self, counts: dict[str, int], ports_used_twice: int) -> list[str]:
        """Return what a reader has to know before trusting the digests."""
        found = []
        if not counts:
            found.append("PINT: what the switches' programs counted is not known, and digests may be missing")
        for name, text in (
            ("lost", "digests were lost at sinks, whose ring buffer was full"),
            ("hop_limit", "packets began with a hop limit of which hops cannot be counted"),
        ):
            if number := counts.get(name):
                found.append(f"PINT: {number} {text}")
        if self.strangers:
            found.append(f"PINT: {self.strangers} digests were of packets that belong to no flow of the run")
        if ports_used_twice:
            found.append(f"PINT: {ports_used_twice} flows reused a port; digests of both are the later one's")
        return found


def read(made: Plan, records: bytes, ports: dict[Ends, int], zero_ns: int) -> Digests:
    """Return the records as rows; `ports` has the flow of its ends."""
    assert made.stamping is not None
    hosts = [node for node in made.nodes if node.is_host]
    number_of = {
        internet.number(address): (number, subflow)
        for number, node in enumerate(hosts)
        for subflow, address in enumerate([node.address or "", *node.aliases])
    }
    listens = {made.listens(flow["congestion"]) for flow in made.flows}
    # Programs read the monotonic clock; the times of the run are those of the real-time clock.
    offset = time.time_ns() - time.monotonic_ns() - zero_ns
    found = Digests([], 0, 0)
    version = made.stamping.queries.version
    routes = _paths(made) if made.stamping.paths else {}
    for place in range(0, len(records), RECORD_BYTES):
        _, at, packet = struct.unpack_from("=QQQ", records, place)
        ends = [struct.unpack_from("=QQ", records, place + 24 + 16 * k) for k in (0, 1)]
        source_port, destination_port, digest = struct.unpack_from("=HHH", records, place + 56)
        hops, looped = records[place + 64], records[place + 66]
        source, target = (number_of.get(high << 64 | low) for high, low in ends)
        if source_port in listens and destination_port not in listens:
            found.of_receivers += 1
            continue
        if made.until_ns is not None and at + offset > made.until_ns:
            found.after_end += 1
            continue
        flow = ports.get((*source, source_port, target[0])) if source and target else None
        if source is None or target is None or flow is None:
            found.strangers += 1
            continue
        found.rows.append(
            {
                "time_ns": float(at + offset),
                "flow_id": flow,
                "src": source[0],
                "dst": target[0],
                "packet_id": packet,
                "digest": digest,
                "hops": hops,
                # As in the simulator: the number of the subflow.
                "src_port": source[1],
                "plan_version": version,
                "sink": target[0],
                "path": routes.get((source[0], target[0])),
                "loop": looped,
            }
        )
    found.rows.sort(key=lambda row: row["time_ns"])
    return found


def _paths(made: Plan) -> dict[tuple[int, int], str]:
    """Return the switches between two hosts where only one way leads from the one to the other."""
    nodes = {node.name: node for node in made.nodes}
    hosts = [node for node in made.nodes if node.is_host]
    found = {}
    for src, source in enumerate(hosts):
        for dst, target in enumerate(hosts):
            here, passed = source, []
            while here is not target:
                ways = here.routes.get(target.address or "", [])
                if len(ways) != 1:
                    break
                here = nodes[ways[0].peer[0]]
                passed.append(here.name)
            else:
                found[src, dst] = " ".join(passed[:-1])
    return found


def write(path: Path, digests: Digests) -> None:
    """Write telemetry.parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"time_ns": pa.float64(), "packet_id": pa.uint64(), "digest": pa.uint64(), "path": pa.string()}
    fields = [pa.field(name, kinds.get(name, pa.uint32()), nullable=name == "path") for name in COLUMNS]
    table = pa.Table.from_pylist(digests.rows, schema=pa.schema(fields))
    parquet.write_table(table, path, compression="zstd")
