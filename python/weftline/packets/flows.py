"""Packets and records put together to flows: all of one five-tuple until it rests for a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from weftline.errors import InputError
from weftline.packets import headers, links, points
from weftline.packets.fragments import Fragments
from weftline.packets.transports import CutOffError, Numbers

MAX_RANGES = 1_000
"""Of the numbers that were seen of a stream: beyond it, the oldest gap counts as never filled."""
_BEFORE_SYN = 1 << 20
"""Numbers after that of a SYN which a capture may have before it."""
ANY_POINT = -1
_ALL = Fraction(1)


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
    factor: Fraction = _ALL
    """The sampling factor by which the payload was multiplied."""


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
    is_mean: bool = False
    """Whether its size is a mean of estimates, because several points sampled it."""


@dataclass(slots=True)
class _Share:
    """What was seen of a flow at one point, or at all of them if its packets have numbers."""

    start_ns: int
    end_ns: int
    size_bytes: int
    factor: Fraction
    """The largest sampling factor of its records; 1: all packets were seen."""

    def add(self, start_ns: int, end_ns: int, size_bytes: int, factor: Fraction) -> None:
        self.start_ns = min(self.start_ns, start_ns)
        self.end_ns = max(self.end_ns, end_ns)
        self.size_bytes += size_bytes
        if factor is not self.factor:
            self.factor = max(self.factor, factor)


@dataclass(slots=True)
class _Open:
    """A flow to which later packets may belong."""

    whole: _Share
    seen_at: int
    """A bit for each point."""
    is_numbered: bool
    point: int
    """Of `whole`, while `shares` is None."""
    shares: dict[int, _Share] | None = None
    """By point, once there are several."""

    def add(self, each: Seen) -> None:
        """Put in what was seen, which has a payload."""
        point, whole = _point(each), self.whole
        if self.shares is None and point != self.point:
            self.shares = {self.point: replace(whole)}
        whole.add(each.start_ns, each.end_ns, each.payload, each.factor)
        if self.shares is not None:
            self._share(point, each.start_ns, each.end_ns).add(*each[4:7], each.factor)

    def join(self, other: _Open) -> None:
        """Put in all of another flow."""
        shares = other.shares or {other.point: other.whole}
        if self.shares is None:
            self.shares = {self.point: replace(self.whole)}
        for point, one in shares.items():
            self._share(point, one.start_ns, one.end_ns).add(*astuple(one))
        self.whole.add(*astuple(other.whole))
        self.seen_at |= other.seen_at

    def _share(self, point: int, start_ns: int, end_ns: int) -> _Share:
        assert self.shares is not None
        return self.shares.setdefault(point, _Share(start_ns, end_ns, 0, _ALL))


def _point(each: Seen) -> int:
    return ANY_POINT if each.is_numbered else each.point


def gather(seen: Iterable[Seen], *, idle_ns: int) -> list[Flow]:
    """Return the flows of what was seen, by start.

    What belongs to one five-tuple is one flow while it rests for at most `idle_ns`, whatever the order
    in which it comes. What has no payload belongs to none. A flow that was seen at several points, and whose
    packets have no numbers, is what was seen of it at the point with most of its bytes, the first one of
    equals. Where all points sampled, it is the mean of those with the smallest sampling factor.
    """
    by_key: dict[tuple[Any, ...], list[_Open]] = {}
    for each in seen:
        key = (each.src, each.dst, each.protocol, each.ports)
        of_key = by_key.get(key)
        known: _Open | None
        if of_key is None:
            known, place = None, 0
        elif each.start_ns >= of_key[-1].whole.start_ns:
            known, place = of_key[-1], len(of_key)
            if each.start_ns - known.whole.end_ns > idle_ns:
                known = None
        else:
            known, place = _near(of_key, each, idle_ns)
        if known is not None:
            known.seen_at |= 1 << each.point
        if each.payload <= 0:
            continue
        if known is not None:
            known.add(each)
            continue
        share = _Share(each.start_ns, each.end_ns, each.payload, each.factor)
        by_key.setdefault(key, []).insert(
            place, _Open(share, 1 << each.point, each.is_numbered, _point(each))
        )
    found = [_closed(key, each) for key, of_key in by_key.items() for each in of_key]
    found.sort(key=lambda flow: (flow.start_ns, flow.src, flow.dst, flow.ports))
    return found


def _near(of_key: list[_Open], each: Seen, idle_ns: int) -> tuple[_Open | None, int]:
    """Return the flow to which something belongs that begins before a later flow of its five-tuple.

    Flows between which it leaves no rest become one. The number is where a new flow has its place.
    """
    end = bisect_right(of_key, each.end_ns + idle_ns, key=lambda one: one.whole.start_ns)
    first = end
    while first > 0 and each.start_ns - of_key[first - 1].whole.end_ns <= idle_ns:
        first -= 1
    if first == end:
        return None, end
    known = of_key[first]
    if each.payload > 0:
        for other in of_key[first + 1 : end]:
            known.join(other)
        del of_key[first + 1 : end]
    return known, first


def _closed(key: tuple[Any, ...], known: _Open) -> Flow:
    src, dst, protocol, ports = key
    share, averaged = known.whole, 0
    if known.shares is not None:
        factor = min(one.factor for one in known.shares.values())
        shares = [one for one in known.shares.values() if one.factor == factor]
        share = max(shares, key=lambda one: (one.size_bytes, -one.start_ns))
        if factor != 1:
            averaged = len(known.shares)
            size = round(Fraction(sum(one.size_bytes for one in shares), len(shares)))
            begin, end = min(one.start_ns for one in shares), max(one.end_ns for one in shares)
            share = _Share(begin, end, size, factor)
    return Flow(
        src,
        dst,
        protocol,
        ports,
        share.start_ns,
        share.end_ns,
        share.size_bytes,
        points=known.seen_at.bit_count(),
        is_numbered=known.is_numbered,
        is_mean=averaged > 1,
    )


def of_captures(
    paths: Sequence[str | Path],
    *,
    partial: bool = False,
    ended: Callable[[str], None] | None = None,
    counts: Counter[str] | None = None,
    unread: Counter[str] | None = None,
) -> Iterator[Seen]:
    """Yield the packets of captures that are of flows, by time.

    Bytes that a transport numbers (TCP) or sends in numbered packets (RoCEv2 and weftline's own) count once,
    wherever and however often they were seen. What was seen in tunnels and outside of them at one interface
    are two points of observation, because a capture may have a packet both before and after the tunnel was
    put around it. Packets of which too little was kept to tell whether they have data are left out;
    ``counts["cut off"]`` is their number. ``counts["overlong"]`` is that of packets whose headers say that
    they were longer than they were on the wire, and ``counts["fragments"]`` that of fragments left out
    because the first one of their packet was not seen (`fragments`). ``counts["no interface"]`` is the number
    of packets with a payload and without numbers of which the capture does not state the interface, and
    ``counts["joins"]`` that of subflows by which multipath TCP joined its connections. `unread`
    gets how many packets of each kind have no IP header that can be read.

    Raises
    ------
    InputError
        If a capture cannot be read, or is of a kind of link that is not known.
    """
    counts = Counter() if counts is None else counts
    unread = Counter() if unread is None else unread
    streams = Streams()
    fragments = Fragments(counts)
    numbers: dict[tuple[int, bool], int] = {}
    joined: set[tuple[str, str, tuple[int, int]]] = set()
    for point, packet in points.in_order(paths, partial=partial, ended=ended):
        if not links.known(packet.link_type):
            where, expected = f"record {packet.number}", links.link_types()
            raise InputError(f"{packet.file}: {where}: link type {packet.link_type}: expected {expected}")
        try:
            found = headers.segment(packet)
        except CutOffError:
            counts["cut off"] += 1
            continue
        if isinstance(found, links.Unread):
            unread[found.kind] += 1
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
            elif payload > 0:
                counts["no interface"] += packet.link_type == links.COOKED
            if one.joins:
                joined.add((one.src, one.dst, one.ports))
                counts["joins"] = len(joined)
            number = numbers.setdefault((point, one.is_in_tunnel), len(numbers))
            yield Seen(one.src, one.dst, one.protocol, one.ports, at, at, payload, number, numbered)
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
        if known is None:
            known = self._ranges[key] = Ranges(numbers.first, numbers.bits, opens=found.opens)
            if found.protocol == headers.TCP and numbers.length == 1 and not found.opens:
                # A keep-alive repeats the last byte, which was sent before the capture began.
                known.add(numbers.first, 1)
        elif found.opens:
            known.open(numbers.first)
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

    __slots__ = ("_bits", "_ends", "_opened_at", "_starts")

    def __init__(self, first: int, bits: int, *, opens: bool = False) -> None:
        self._bits = bits
        self._starts, self._ends = [first], [first]
        self._opened_at = first if opens else None
        """The first number, if the stream was seen to open."""

    def open(self, first: int) -> None:
        """Forget the numbers of streams before the one that begins with `first`, unless it is known.

        Numbers soon after the first one are its own: a capture may have them before the SYN.
        """
        begin, opened_at = self._place(first), self._opened_at
        if opened_at is not None and (begin - opened_at) % (1 << self._bits) == 0:
            # The SYN was sent again.
            return
        end = begin + _BEFORE_SYN
        if opened_at is not None and opened_at > begin:
            end = min(end, opened_at)
        pairs = zip(self._starts, self._ends, strict=True)
        own = [each for each in pairs if begin <= each[0] < end]
        if not own or own[0][0] > begin:
            own.insert(0, (begin, begin))
        self._starts, self._ends = [start for start, _ in own], [end for _, end in own]
        self._opened_at = begin

    def _place(self, first: int) -> int:
        """Return a number as one that does not wrap around."""
        highest, half = self._ends[-1], 1 << self._bits - 1
        return highest + ((first - highest + half) % (2 * half)) - half

    def add(self, first: int, count: int) -> int:
        """Return how many of these numbers were not there, and put them in."""
        starts, ends = self._starts, self._ends
        highest = ends[-1]
        start = self._place(first)
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
