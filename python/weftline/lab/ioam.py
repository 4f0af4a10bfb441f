"""The kernel's IOAM in the lab: a trace in the packets of every flow, filled by the kernel of each switch.

A sender puts a pre-allocated trace (RFC 9197) with room for all switches of the longest path into the
hop-by-hop options of its packets, by a socket option, so that no route has to insert it. Switches write their
number, the time and the depth of the queue that the packet is for. A process at each receiver keeps the
headers of what arrives, and `read` makes of them one row for each packet.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline.errors import InputError

if TYPE_CHECKING:
    from weftline.lab.plan import Plan
    from weftline.lab.stamps import Ends

NAMESPACE = 22342
"""The number of the IOAM namespace in every switch."""
FIELDS = 1 << 23 | 1 << 21 | 1 << 20 | 1 << 17
"""Hop limit and node, seconds, fraction (Linux: microseconds), depth of the queue (Linux: bytes)."""
WORDS = 4
"""That a switch writes."""
MOST_SWITCHES = 244 // (4 * WORDS)
HEADERS = 16
"""Bytes of the hop-by-hop header and of the option before the room for switches."""
SWITCH_SETTINGS = ("net.ipv6.conf.default.ioam6_enabled=1",)
FOLDER = "captures"
TABLE = "ioam.parquet"
MAGIC = 0xA1B23C4D
"""Of a pcap file with nanoseconds."""
OPTION = 0x31
TCP = 6
OVERFLOW = 8
WORD = (1 << 64) - 1


def settings(number: int) -> tuple[str, ...]:
    """Return what the namespace of a switch of this number is set to before its links exist."""
    return (*SWITCH_SETTINGS, f"net.ipv6.ioam6_id={number}")


def header(switches: int) -> bytes:
    """Return the hop-by-hop header with an empty trace for a path of this many switches."""
    words = WORDS * switches
    trace = struct.pack(">HHI", NAMESPACE, WORDS << 11 | words, FIELDS << 8) + bytes(4 * words)
    option = struct.pack("BBBB", OPTION, len(trace) + 2, 0, 0) + trace
    padded = b"\1\0" + option
    # The kernel writes the next header; the length counts units of 8 bytes after the first.
    return struct.pack("BB", 0, (len(padded) + 2) // 8 - 1) + padded


def problems(values: dict[str, Any]) -> list[str]:
    """Return what of a resolved scenario cannot be traced."""
    kind = values.get("transport", {}).get("kind")
    return (
        [] if kind == "tcp" else [f'--ioam: sockets of "{kind}" take no options: set transport.kind = "tcp"']
    )


def check(switches: int) -> None:
    """Raise InputError if a path is longer than the longest trace."""
    if switches > MOST_SWITCHES:
        raise InputError(
            f"--ioam: a path has {switches} switches, and an IPv6 option holds the traces of {MOST_SWITCHES} "
            f"({4 * WORDS} bytes each): choose a smaller network, or leave --ioam out"
        )


def differs(switches: int) -> list[str]:
    """Return what the two engines do not have alike with traces."""
    return [
        f"packets from senders carry an IOAM trace of {len(header(switches))} bytes, which no simulated one "
        "does"
    ]


@dataclass(frozen=True)
class Hop:
    """What one switch wrote."""

    node: int
    hop_limit: int
    time_ns: int
    """Of its clock (UTC), in whole microseconds."""
    queue_bytes: int


@dataclass(frozen=True)
class Packet:
    """What arrived at a host."""

    time_ns: int
    packet_id: int
    source: int
    destination: int
    source_port: int
    destination_port: int
    overflow: bool
    hops: list[Hop]
    """In the order in which the packet passed them."""


def parse(frame: bytes, time_ns: int) -> Packet | None:
    """Return a frame that carries TCP over IPv6 with a trace of ours; None if it is another one."""
    if len(frame) < 56 or frame[12:14] != b"\x86\xdd" or frame[20] != 0:
        return None
    end = 54 + 8 * frame[55] + 8
    if frame[54] != TCP or len(frame) < end + 20 or (trace := _trace(frame[56:end])) is None:
        return None
    overflow, hops = trace
    source, destination = (int.from_bytes(frame[at : at + 16], "big") for at in (22, 38))
    first, answer, sum_ = struct.unpack_from(">QI4xH", frame, end)
    return Packet(
        time_ns=time_ns,
        packet_id=packet_id(source, destination, first, answer, sum_),
        source=source,
        destination=destination,
        source_port=first >> 48,
        destination_port=first >> 32 & 0xFFFF,
        overflow=overflow,
        hops=hops,
    )


def _trace(options: bytes) -> tuple[bool, list[Hop]] | None:
    at = 0
    while at + 2 <= len(options):
        kind, length = options[at], options[at + 1]
        if kind == 0:  # Pad1 has no length.
            at += 1
            continue
        data = options[at + 4 : at + 2 + length]
        if kind == OPTION and len(data) == length - 2 >= 8 and options[at + 3] == 0:
            space, lengths, fields = struct.unpack_from(">HHI", data)
            nodes = data[8 + 4 * (lengths & 127) :]
            if space == NAMESPACE and fields >> 8 == FIELDS and len(nodes) % (4 * WORDS) == 0:
                words = [struct.unpack_from(">IIII", nodes, place) for place in range(0, len(nodes), 16)]
                hops = [Hop(a & 0xFFFFFF, a >> 24, s * 10**9 + us * 1000, queue) for a, s, us, queue in words]
                return bool(lengths >> 7 & OVERFLOW), hops[::-1]
        at += 2 + length
    return None


def packet_id(source: int, destination: int, first: int, answer: int, sum_: int) -> int:
    """Return the number of a TCP packet as programs of switches and `weftline collect` count it.

    `first`: the first eight bytes of TCP; `answer`: its acknowledgement number; `sum_`: its checksum.
    """
    number = 0
    for word in (source >> 64, source, destination >> 64, destination, TCP, first, answer << 32 | sum_):
        number = _mix(number ^ word & WORD)
    return number


def _mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield time (ns) and bytes of every frame of a capture that `capture.py` wrote."""
    data = path.read_bytes()
    at = 24
    while at + 16 <= len(data):
        seconds, ns, kept, _ = struct.unpack_from("=IIII", data, at)
        yield seconds * 10**9 + ns, data[at + 16 : at + 16 + kept]
        at += 16 + kept


def write(
    place: Path,
    made: Plan,
    captures: dict[str, bytes],
    reports: dict[str, dict[str, Any]],
    ports: dict[Ends, int],
    zero_ns: int,
) -> tuple[dict[str, Any], list[str]]:
    """Write captures and the table of traces; return facts for the summary, and warnings.

    `captures` and `reports`: what the process at each receiver kept, and what it counted.
    """
    import pyarrow as pa
    from pyarrow import parquet

    from weftline.lab import internet

    hosts = [node for node in made.nodes if node.is_host]
    number_of = {internet.number(node.address or ""): at for at, node in enumerate(hosts)}
    folder = place / FOLDER
    folder.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = []
    facts = {"frames": 0, "lost": 0, "traces": 0, "strangers": 0, "overflows": 0}
    receivers = {host.name for host in hosts} - set(made.watched)
    for name in sorted(receivers & set(captures)):
        data = captures[name]
        file = folder / f"{name}.pcap"
        file.write_bytes(data)
        facts["lost"] += reports.get(name, {}).get("lost", 0)
        for at, frame in frames(file):
            facts["frames"] += 1
            if (packet := parse(frame, at)) is None:
                continue
            source, destination = (number_of.get(one, -1) for one in (packet.source, packet.destination))
            flow = ports.get((source, 0, packet.source_port, destination))
            facts["traces"] += 1
            facts["overflows"] += packet.overflow
            if flow is None:
                facts["strangers"] += 1
                continue
            rows.append(
                {
                    "time_ns": float(at - zero_ns),
                    "flow_id": flow,
                    "packet_id": packet.packet_id,
                    "nodes": [hop.node for hop in packet.hops],
                    "hop_limits": [hop.hop_limit for hop in packet.hops],
                    "times_ns": [float(hop.time_ns - zero_ns) for hop in packet.hops],
                    "queues_bytes": [hop.queue_bytes for hop in packet.hops],
                }
            )
    fields = {
        "time_ns": pa.float64(),
        "flow_id": pa.uint32(),
        "packet_id": pa.uint64(),
        "nodes": pa.list_(pa.uint32()),
        "hop_limits": pa.list_(pa.uint8()),
        "times_ns": pa.list_(pa.float64()),
        "queues_bytes": pa.list_(pa.uint32()),
    }
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(fields.items())))
    parquet.write_table(table, place / TABLE, compression="zstd")
    texts = (
        ("lost", "frames were lost by the processes that capture at receivers"),
        ("strangers", "traces were of packets that belong to no flow of the run"),
        ("overflows", "traces had no room for all switches"),
    )
    warnings = [f"IOAM: {facts[name]} {text}" for name, text in texts if facts[name]]
    if missing := [name for name in receivers & set(captures) if "lost" not in reports.get(name, {})]:
        warnings.append(f"IOAM: what was captured at {', '.join(missing)} may be incomplete")
    return facts, warnings
