"""Captures at several points of observation: their packets in one order of time.

A point of observation is an interface of a capture, or of captures that continue each other as those of
``tcpdump -C`` do. Linux cooked captures of version 2 state the interface of each packet (``tcpdump -i any``).
A file continues an earlier one if it begins when that one has ended and describes the same interfaces (link
types and names). Of several files that it could continue, it continues the one whose name begins most like
its own, then the one that ended last. Files whose times overlap are different points. The order in which
files are given changes nothing. Each section of a pcapng file is as a file of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weftline.packets import captures, links
from weftline.packets.captures import Captured, Section


@dataclass(slots=True)
class _File:
    """A capture, or a section of one, that is read or that ended a series."""

    path: str
    section: Section | None
    """None: all of the file."""
    first: captures.First
    series: int = 0
    last_ns: int = 0
    """Of its packets so far."""


_Due = tuple[int, int, Captured, Iterator[Captured], _File]
"""Time, order of opening, the packet, where the next ones come from, their file."""


def in_order(
    paths: Sequence[str | Path],
    *,
    partial: bool = False,
    ended: Callable[[str], None] | None = None,
) -> Iterator[tuple[int, Captured]]:
    """Yield the packets of captures by time, each with the number of its point of observation.

    A capture is open only while its packets are due. The packets of one file stay in the order of the file.

    Raises
    ------
    InputError
        As from `captures.read`.
    """
    numbers: dict[tuple[int, int, int], int] = {}
    parts: list[tuple[str, Section | None]] = []
    for path in paths:
        parts += [(str(path), section) for section in captures.sections(path)] or [(str(path), None)]
    packets = (
        _merged(parts, partial, ended)
        if len(parts) > 1
        else ((0, packet) for packet in captures.read(parts[0][0], partial=partial, ended=ended))
    )
    for series, packet in packets:
        index = links.interface_index(packet.bytes, packet.link_type)
        place = (series, packet.interface_number, index)
        point = numbers.get(place)
        if point is None:
            point = numbers[place] = len(numbers)
        yield point, packet


def _merged(
    parts: Sequence[tuple[str, Section | None]], partial: bool, ended: Callable[[str], None] | None
) -> Iterator[tuple[int, Captured]]:
    begins = (
        (path, section, captures.first(path, partial=partial) if section is None else section.first)
        for path, section in parts
    )
    waiting = [_File(path, section, first) for path, section, first in begins if first is not None]
    waiting.sort(key=lambda file: (file.first.time_ns, file.path), reverse=True)
    done: list[_File] = []
    """The last file of each series that may be continued."""
    count = 0
    due: list[_Due] = []
    opened = 0
    while waiting or due:
        # What ends at a time comes before what begins at it.
        if waiting and (not due or waiting[-1].first.time_ns < due[0][0]):
            file = waiting.pop()
            before = _continued(file, done)
            if before is None:
                file.series, count = count, count + 1
            else:
                file.series = before.series
                done.remove(before)
            opened += 1
            packets = captures.read(file.path, partial=partial, ended=ended, section=file.section)
            _advance(due, packets, file, opened, done)
            continue
        _, order, packet, rest, file = heapq.heappop(due)
        yield file.series, packet
        _advance(due, rest, file, order, done)


def _advance(
    due: list[_Due],
    rest: Iterator[Captured],
    file: _File,
    order: int,
    done: list[_File],
) -> None:
    """Make the next packet of a file due, or its series one that may be continued."""
    packet = next(rest, None)
    if packet is None:
        done.append(file)
        return
    file.last_ns = max(file.last_ns, packet.time_ns)
    heapq.heappush(due, (packet.time_ns, order, packet, rest, file))


def _continued(file: _File, done: list[_File]) -> _File | None:
    """Return the file that another one continues."""

    def may_be(before: _File) -> bool:
        begins = file.first.time_ns
        in_time = before.last_ns <= begins and before.first.time_ns < begins
        return in_time and before.first.interfaces == file.first.interfaces

    def likeness(before: _File) -> tuple[int, int, str]:
        return alike(before.path, file.path), before.last_ns, before.path

    return max(filter(may_be, done), key=likeness, default=None)


def alike(one: str, other: str) -> int:
    """Return with how many equal characters two names begin."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
