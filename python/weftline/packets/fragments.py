"""Fragments of IP packets: those after the first one, which have no ports, as parts of its flow.

A fragment is of the first one with the same identification that was seen at the same point of observation
within a minute, before it or after it. Where that one has a fragment of the same offset already, it is of
the next one: hosts may send the fragments of a packet in reverse order, and use an identification again. Its
payload counts as if it had come in a packet of its own.

Source: RFC 791 §3.2, RFC 8200 §4.5 (fragments of a packet are put together within 60 seconds).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from weftline.packets.headers import Fragment, Segment

_WAIT_NS = 60 * 10**9
MAX_KNOWN = 1 << 16
"""Packets of which the first fragment is remembered, and fragments that wait for one."""

_Key = tuple[Any, ...]


class Fragments:
    """The fragments that were seen of packets, at every point of observation."""

    def __init__(self, counts: Counter[str]) -> None:
        """Count fragments of which no first one was seen in ``counts["fragments"]``."""
        self._counts = counts
        self._first: dict[_Key, tuple[Segment, int, set[int]]] = {}
        """The first fragment of a packet, when it came, and the offsets of those that were added."""
        self._waiting: dict[_Key, list[tuple[Fragment, int]]] = {}
        self._count = 0
        """Of those that wait."""

    def take(self, found: Segment | Fragment, point: int, time_ns: int) -> Sequence[tuple[Segment, int]]:
        """Return what is known now of a packet because of a fragment: parts of its flow, with their times."""
        key = (point, *found.key) if found.key is not None else (point,)
        if isinstance(found, Segment):
            return self._begin(key, found, time_ns)
        known = self._first.get(key)
        if known is not None:
            first, at, offsets = known
            if abs(time_ns - at) <= _WAIT_NS and found.offset not in offsets:
                offsets.add(found.offset)
                return ((_part(first, found), time_ns),)
        self._waiting.setdefault(key, []).append((found, time_ns))
        self._count += 1
        if self._count > MAX_KNOWN:
            self._give_up(next(iter(self._waiting)))
        return ()

    def _begin(self, key: _Key, first: Segment, time_ns: int) -> Sequence[tuple[Segment, int]]:
        # Those that came last go last.
        self._first.pop(key, None)
        offsets: set[int] = set()
        self._first[key] = first, time_ns, offsets
        if len(self._first) > MAX_KNOWN:
            del self._first[next(iter(self._first))]
        earlier = self._waiting.pop(key, [])
        self._count -= len(earlier)
        parts, later = [(first, time_ns)], []
        for fragment, at in earlier:
            if abs(time_ns - at) > _WAIT_NS:
                self._counts["fragments"] += 1
            elif fragment.offset in offsets:
                later.append((fragment, at))
            else:
                offsets.add(fragment.offset)
                parts.append((_part(first, fragment), at))
        if later:
            self._waiting[key] = later
            self._count += len(later)
        return parts

    def end(self) -> None:
        """Count those that still wait."""
        for key in list(self._waiting):
            self._give_up(key)

    def _give_up(self, key: _Key) -> None:
        count = len(self._waiting.pop(key))
        self._counts["fragments"] += count
        self._count -= count


def _part(first: Segment, fragment: Fragment) -> Segment:
    """Return a later fragment as a segment of the flow of the first one."""
    numbers = first.numbers
    if numbers is not None:
        # A packet that has one number has one for each fragment, in a stream of its own.
        at = fragment.offset - first.before
        one_each = numbers.length != first.payload
        stream = (numbers.stream, numbers.first) if one_each else numbers.stream
        base = 0 if one_each else numbers.first
        numbers = numbers._replace(first=base + at, length=fragment.payload, stream=stream)
    return first._replace(payload=fragment.payload, numbers=numbers, opens=False)
