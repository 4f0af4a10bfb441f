"""Packets and records put together to flows: all of one five-tuple until it rests for a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from weftline.errors import InputError
from weftline.packets import captures, headers


class Seen(NamedTuple):
    """Bytes of a five-tuple that crossed a network from `start_ns` to `end_ns`."""

    src: str
    dst: str
    protocol: int
    ports: tuple[int, int]
    start_ns: int
    end_ns: int
    payload: int


@dataclass(slots=True)
class Flow:
    """A flow in one direction."""

    src: str
    dst: str
    protocol: int
    ports: tuple[int, int]
    start_ns: int
    end_ns: int
    size_bytes: int


def gather(seen: Iterable[Seen], *, idle_ns: int) -> list[Flow]:
    """Return the flows of what was seen, by start.

    What belongs to one five-tuple and begins at most `idle_ns` after all before it has ended is one flow.
    What has no payload belongs to none. `seen` is in order of time for each five-tuple, if not as a whole.
    """
    open_flows: dict[tuple[Any, ...], Flow] = {}
    flows: list[Flow] = []
    for each in seen:
        if each.payload <= 0:
            continue
        key = (each.src, each.dst, each.protocol, each.ports)
        flow = open_flows.get(key)
        if flow is not None and each.start_ns - flow.end_ns <= idle_ns:
            flow.size_bytes += each.payload
            flow.start_ns = min(flow.start_ns, each.start_ns)
            flow.end_ns = max(flow.end_ns, each.end_ns)
            continue
        open_flows[key] = flow = Flow(*key, each.start_ns, each.end_ns, each.payload)
        flows.append(flow)
    flows.sort(key=lambda flow: (flow.start_ns, flow.src, flow.dst, flow.ports))
    return flows


def of_capture(path: str | Path, *, partial: bool = False) -> Iterator[Seen]:
    """Yield the packets of a capture that are of flows.

    Of TCP, bytes that are sent again count once: those that do not go beyond the highest number seen.

    Raises
    ------
    InputError
        If the capture cannot be read, or is of a kind of link that is not known.
    """
    highest: dict[tuple[Any, ...], int] = {}
    for packet in captures.read(path, partial=partial):
        if not headers.known(packet.link_type):
            where, expected = f"{path}: record {packet.number}", headers.link_types()
            raise InputError(f"{where}: link type {packet.link_type}: expected {expected}")
        found = headers.segment(packet)
        if found is None:
            continue
        payload = found.payload
        if found.sequence is not None:
            payload = _fresh(highest, found)
        yield Seen(found.src, found.dst, found.protocol, found.ports, packet.time_ns, packet.time_ns, payload)


def _fresh(highest: dict[tuple[Any, ...], int], found: headers.Segment) -> int:
    """Return how many of a segment's bytes were not sent before."""
    key = (found.src, found.dst, found.ports)
    sequence = found.sequence or 0
    end = (sequence + found.payload + found.opens) & 0xFFFFFFFF
    before = highest.get(key)
    if before is None or found.opens:
        highest[key] = end
        return found.payload
    beyond = (end - before) & 0xFFFFFFFF
    if not 0 < beyond < 1 << 31:
        return 0
    highest[key] = end
    return min(beyond, found.payload)
