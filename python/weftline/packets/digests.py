"""PINT's digests out of captures of a run, as rows of the table that `weftline pint decode` reads.

A frame has the digest, the hops passed, the flow (its queue pair) and the packet's number; the packet's id
follows from the flow and the first byte, as in the simulator (`docs/packets.md`, Telemetry). A frame does not
state the plan's version, so that the rows have the one of the plan with which they are to be read.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from weftline.errors import InputError
from weftline.packets import captures

COLUMNS = (
    *("time_ns", "flow_id", "src", "dst", "packet_id", "digest", "hops"),
    *("plan_version", "sink", "loop"),
)
_UDP, _TELEMETRY_PORT, _PINT, _TIMESTAMP = 17, 49_201, 2, 4
_SEND_FIRST, _SEND_MIDDLE, _SENDS = 0, 1, (0, 1, 2, 4)
_FIRST_PAIR = 256
_NUMBERS = 1 << 24
"""Packets are numbered modulo this."""
_HOSTS = 0x0A00_0001
"""Address of host 0."""


class Frame(NamedTuple):
    """A data packet with a digest."""

    time_ns: int
    link: str
    to: int
    """The node at the end of the link."""
    flow: int
    src: int
    dst: int
    number: int
    """Of the packet in its flow, modulo `_NUMBERS`."""
    payload: int
    is_full: bool
    """Whether its payload is that of a full packet, because others follow."""
    digest: int
    width: int
    """Bytes of the digest."""
    hops: int
    looped: bool


@dataclass
class _Flow:
    """What a first pass over a capture finds out about a flow."""

    links: dict[str, int] = field(default_factory=dict)
    """Most hops that a packet had passed on each link."""
    arrives: bool = False
    """Whether one of them ends at the flow's destination."""
    mtu: int = 0


def write(
    capture: str | os.PathLike[str], out: str | os.PathLike[str], *, plan_version: int, width: int
) -> list[str]:
    """Write the digests of a capture as CSV and return what deserves a second look.

    Of each flow, only the captured link after the largest number of switches counts: before it, digests are
    incomplete. A flow of which no captured link ends at its destination is left out and counted: its digests
    are of a part of its path. Of a capture that is cut off or damaged, the packets before that place count.

    Parameters
    ----------
    width : int
        Bytes of a digest under the plan.

    Raises
    ------
    InputError
        If the capture cannot be read, holds no digests, those of a plan with digests of another length, or
        none of a link that ends at a flow's destination.
    """
    flows: dict[int, _Flow] = {}
    notes: list[str] = []
    for frame in _frames(capture, width, notes.append):
        known = flows.setdefault(frame.flow, _Flow())
        known.links[frame.link] = max(frame.hops, known.links.get(frame.link, 0))
        known.arrives |= frame.to == frame.dst
        if frame.is_full:
            known.mtu = max(frame.payload, known.mtu)
    if not flows:
        raise InputError(
            f"{capture}: holds no digests of PINT; expected a capture of a run with [telemetry] kind = "
            f'"pint" and an RDMA transport (UDP port {_TELEMETRY_PORT})'
        )
    on_the_way = sum(not flow.arrives for flow in flows.values())
    if on_the_way == len(flows):
        raise InputError(
            f"{capture}: no captured link ends at the destination of a flow, so that all digests are of "
            'parts of paths; capture the links to hosts, such as [measure] pcap = "leaf*->host*"'
        )
    mtus = {flow.mtu for flow in flows.values() if flow.mtu}
    ends = {number: max(flow.links.values()) for number, flow in flows.items()}
    before = unnumbered = taken = 0
    last: dict[int, int] = {}
    with open(out, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for frame in _frames(capture, width, lambda _: None):
            flow = flows[frame.flow]
            if not flow.arrives:
                continue
            if flow.links[frame.link] < ends[frame.flow]:
                before += 1
                continue
            number = _unwrapped(frame.number, last.get(frame.flow, 0))
            last[frame.flow] = number
            mtu = flow.mtu or (next(iter(mtus)) if len(mtus) == 1 else 0)
            if number and not mtu:
                unnumbered += 1
                continue
            taken += 1
            packet_id = frame.flow << 32 ^ number * mtu
            cells = (frame.time_ns, frame.flow, frame.src, frame.dst, packet_id, frame.digest, frame.hops)
            rows.writerow((*cells, plan_version, frame.dst, int(frame.looped)))
    if not taken:
        raise InputError(f"{capture}: no packet has a number from which its first byte follows")
    notes += [f"{capture}: a capture does not state the plan's version: the digests are read as of this plan"]
    if before:
        notes.append(
            f"{capture}: {before:,} digests on links before the last captured one of their flow are left out"
        )
    if on_the_way:
        notes.append(
            f"{capture}: {on_the_way:,} of {len(flows):,} flows are left out: no captured link ends at their "
            "destination, so that their digests are of a part of the path"
        )
    if unnumbered:
        notes.append(f"{capture}: {unnumbered:,} digests of flows without a full packet are left out")
    return notes


def _unwrapped(number: int, near: int) -> int:
    """Return the number nearest to `near` that is `number` modulo `_NUMBERS`, and not negative."""
    found = near + (number - near + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2
    return found if found >= 0 else found + _NUMBERS


def _frames(capture: str | os.PathLike[str], width: int, ended: Callable[[str], None]) -> Iterator[Frame]:
    for packet in captures.read(Path(capture), ended=ended):
        frame = _frame(packet)
        if frame is None:
            continue
        if frame.width != width:
            raise InputError(
                f"{capture}: record {packet.number}: a digest of {frame.width} bytes: those of this plan "
                f"have {width}; give the queries that the run's scenario names"
            )
        yield frame


def _frame(packet: captures.Captured) -> Frame | None:
    """Return what a frame of ours says; None for one without a digest, and for acknowledgements."""
    data = packet.bytes
    if packet.link_type != 1 or data[12:14] != b"\x08\x00" or len(data) < 34 or data[23] != _UDP:
        return None
    at = 14 + 4 * (data[14] & 15)
    if len(data) < at + 16 or _number(data, at + 2, 2) != _TELEMETRY_PORT:
        return None
    udp_length, shim = _number(data, at + 4, 2), at + 8
    contents, width, length = data[shim] & 15, data[shim + 1], _number(data, shim + 2, 2)
    header = shim + length
    digest_at = shim + 8 + (8 if contents & _TIMESTAMP else 0)
    if data[shim] >> 4 != 1 or not contents & _PINT or not 1 <= width <= 8:
        return None
    if digest_at + width > header or len(data) < header + 12 or data[header] not in _SENDS:
        return None
    padding = data[header + 1] >> 4 & 3
    return Frame(
        time_ns=packet.time_ns,
        link=packet.interface,
        to=_number(data, 2, 4),
        flow=(_number(data, header + 5, 3) - _FIRST_PAIR) % _NUMBERS,
        src=_number(data, 26, 4) - _HOSTS,
        dst=_number(data, 30, 4) - _HOSTS,
        number=_number(data, header + 9, 3),
        payload=udp_length - 8 - length - 12 - 4 - padding,
        is_full=data[header] in (_SEND_FIRST, _SEND_MIDDLE),
        digest=_number(data, digest_at, width),
        width=width,
        hops=data[shim + 7],
        looped=bool(data[shim + 6] & 128),
    )


def _number(data: bytes, at: int, count: int) -> int:
    return int.from_bytes(data[at : at + count], "big")
