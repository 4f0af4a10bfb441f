"""Packets and records put together to flows: all of one five-tuple until it rests for a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from weftline.errors import InputError
from weftline.packets import headers, points
from weftline.packets.fragments import Fragments
from weftline.packets.transports import CutOffError, Numbers

MAX_RANGES = 1_000
"""Of the numbers that were seen of a stream: beyond it, the oldest gap counts as never filled."""
ANY_POINT = -1


class Seen(NamedTuple):
    """Bytes of a five-tuple that crossed a network from `start_ns` to `end_ns`."""

    src: str
    dst: str
    protocol: int
    ports: tuple[int, int]
    start_ns: int
    end_ns: int
    payload: int
    """Those that were not seen before, at any point of observation, if the transport has numbers."""
    point: int = 0
    """Where it was seen."""
    is_numbered: bool = False


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
    points: int = 1
    """At how many points of observation it was seen."""
    is_numbered: bool = False
    """Whether its packets have numbers, by which bytes that are seen again are known."""


@dataclass(slots=True)
class _Share:
    """What was seen of a flow at one point, or at all of them if its packets have numbers."""

    start_ns: int
    end_ns: int
    size_bytes: int


@dataclass(slots=True)
class _Open:
    """A flow to which later packets may belong."""

    flow: Flow
    seen_at: int
    """A bit for each point."""
    shares: dict[int, _Share] | None
    """By point, once there are several."""
    point: int
    """Of the flow's own numbers, while `shares` is None."""


def gather(seen: Iterable[Seen], *, idle_ns: int) -> list[Flow]:
    """Return the flows of what was seen, by start.

    What belongs to one five-tuple and begins at most `idle_ns` after all before it has ended is one flow.
    What has no payload belongs to none. A flow that was seen at several points, and whose packets have no
    numbers, is what was seen of it at the point with most of its bytes, the first one of equals. `seen` is in
    order of time for each five-tuple, if not as a whole.
    """
    open_flows: dict[tuple[Any, ...], _Open] = {}
    flows: list[_Open] = []
    for each in seen:
        key = (each.src, each.dst, each.protocol, each.ports)
        known = open_flows.get(key)
        goes_on = known is not None and each.start_ns - known.flow.end_ns <= idle_ns
        if each.payload <= 0:
            if goes_on and known is not None:
                known.seen_at |= 1 << each.point
            continue
        point = ANY_POINT if each.is_numbered else each.point
        if not goes_on or known is None:
            flow = Flow(*key, each.start_ns, each.end_ns, each.payload, is_numbered=each.is_numbered)
            open_flows[key] = known = _Open(flow, 1 << each.point, None, point)
            flows.append(known)
            continue
        known.seen_at |= 1 << each.point
        flow = known.flow
        if known.shares is None and point != known.point:
            known.shares = {known.point: _Share(flow.start_ns, flow.end_ns, flow.size_bytes)}
        flow.start_ns = min(flow.start_ns, each.start_ns)
        flow.end_ns = max(flow.end_ns, each.end_ns)
        if known.shares is None:
            flow.size_bytes += each.payload
            continue
        share = known.shares.setdefault(point, _Share(each.start_ns, each.end_ns, 0))
        share.start_ns = min(share.start_ns, each.start_ns)
        share.end_ns = max(share.end_ns, each.end_ns)
        share.size_bytes += each.payload
    found = [_closed(each) for each in flows]
    found.sort(key=lambda flow: (flow.start_ns, flow.src, flow.dst, flow.ports))
    return found


def _closed(known: _Open) -> Flow:
    flow = known.flow
    flow.points = known.seen_at.bit_count()
    if known.shares is not None:
        largest = max(known.shares.values(), key=lambda share: (share.size_bytes, -share.start_ns))
        flow.start_ns, flow.end_ns, flow.size_bytes = largest.start_ns, largest.end_ns, largest.size_bytes
    return flow


def of_captures(
    paths: Sequence[str | Path],
    *,
    partial: bool = False,
    ended: Callable[[str], None] | None = None,
    counts: Counter[str] | None = None,
) -> Iterator[Seen]:
    """Yield the packets of captures that are of flows, by time.

    Bytes that a transport numbers (TCP) or sends in numbered packets (RoCEv2 and weftline's own) count once,
    wherever and however often they were seen. Packets of which too little was kept to tell whether they have
    data are left out; ``counts["cut off"]`` is their number. ``counts["overlong"]`` is that of packets whose
    headers say that they were longer than they were on the wire, and ``counts["fragments"]`` that of
    fragments left out because the first one of their packet was not seen (`fragments`).

    Raises
    ------
    InputError
        If a capture cannot be read, or is of a kind of link that is not known.
    """
    counts = Counter() if counts is None else counts
    streams = Streams()
    fragments = Fragments(counts)
    for point, packet in points.in_order(paths, partial=partial, ended=ended):
        if not headers.known(packet.link_type):
            where, expected = f"record {packet.number}", headers.link_types()
            raise InputError(f"{packet.file}: {where}: link type {packet.link_type}: expected {expected}")
        try:
            found = headers.segment(packet)
        except CutOffError:
            counts["cut off"] += 1
            continue
        if found is None:
            continue
        counts["overlong"] += found.is_overlong
        parts: Sequence[tuple[headers.Segment, int]]
        if isinstance(found, headers.Fragment) or found.key is not None:
            parts = fragments.take(found, point, packet.time_ns)
        else:
            parts = ((found, packet.time_ns),)
        for one, at in parts:
            payload, numbered = one.payload, one.numbers is not None
            if one.numbers is not None:
                payload = streams.fresh(one, one.numbers)
            yield Seen(one.src, one.dst, one.protocol, one.ports, at, at, payload, point, numbered)
    fragments.end()


class Streams:
    """The numbers that were seen of every stream."""

    def __init__(self) -> None:
        self._ranges: dict[tuple[Any, ...], Ranges] = {}
        self._messages: dict[tuple[Any, ...], int] = {}
        """Of flows of the lab: the size of the message that each is, `_CONNECTION`, or `_BYTES`."""

    def fresh(self, found: headers.Segment, numbers: Numbers) -> int:
        """Return how many of a packet's bytes were not seen before."""
        flow = (found.src, found.dst, found.protocol, found.ports)
        if numbers.other is not None:
            numbers = self._of_lab(flow, numbers, numbers.other)
        key = (*flow, numbers.stream)
        known = self._ranges.get(key)
        # A SYN that is sent again restarts nothing.
        if known is None or (found.opens and known.opened_at != numbers.first):
            known = self._ranges[key] = Ranges(numbers.first, numbers.bits)
            known.opened_at = numbers.first if found.opens else None
        if numbers.length == 0:
            return 0
        return found.payload * known.add(numbers.first, numbers.length) // numbers.length

    def _of_lab(self, flow: tuple[Any, ...], numbers: Numbers, other: int) -> Numbers:
        """Return the numbers by which bytes of a packet of the lab count once.

        The first packet of a flow tells: only multipath TCP begins with two zeros, because the second number
        of others is that of bytes left, and only messages begin with a size that fits the packet's number.
        """
        first, length = numbers.first, numbers.length
        known = self._messages.get(flow)
        if known is None:
            is_message = 0 < first >= (other + 1) * length
            known = first if is_message else _CONNECTION if first == other == 0 else _BYTES
        elif known > 0 and known != first:
            known = _BYTES
        self._messages[flow] = known
        if known == _CONNECTION:
            return Numbers(other, length, 32, "connection")
        return Numbers(other, 1, 32, ("message", first)) if known > 0 else numbers


_BYTES, _CONNECTION = 0, -1
"""Flows of the lab whose packets have the number of their first byte, and those with subflows."""


class Ranges:
    """The numbers that were seen of a stream, as ranges that do not touch, in order.

    Numbers wrap around: one is taken to be within half of all numbers of the highest one so far.
    """

    __slots__ = ("_bits", "_ends", "_starts", "opened_at")

    def __init__(self, first: int, bits: int) -> None:
        self._bits = bits
        self._starts, self._ends = [first], [first]
        self.opened_at: int | None = None
        """The first number, if the stream was seen to open."""

    def add(self, first: int, count: int) -> int:
        """Return how many of these numbers were not there, and put them in."""
        starts, ends = self._starts, self._ends
        highest = ends[-1]
        half = 1 << self._bits - 1
        start = highest + ((first - highest + half) % (2 * half)) - half
        if start == highest:
            ends[-1] = start + count
            return count
        end = start + count
        if starts[-1] <= start and end <= highest:
            return 0
        low, high = bisect_left(ends, start), bisect_right(starts, end)
        known = sum(min(end, ends[n]) - max(start, starts[n]) for n in range(low, high))
        if low < high:
            start, end = min(start, starts[low]), max(end, ends[high - 1])
        starts[low:high], ends[low:high] = [start], [end]
        if len(starts) > MAX_RANGES:
            del starts[1], ends[0]
        return count - known
