"""The series of goodput of a run of the lab, from looks at the bytes of flows that were acknowledged.

Rows stand where the simulator's do: at the multiples of the interval and at the end of the run. Looks are not
at these moments; bytes count as if they were acknowledged evenly from one look to the next. The last look at
a flow is that of its end, so its rows hold all of its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Looks = list[tuple[float, float]]
"""Time since the begin of the run, and bytes that were acknowledged until then; both grow."""


def rows(
    flows: Mapping[int, dict[str, Any]],
    looks: Iterable[tuple[int, int, int]],
    *,
    zero_ns: int,
    every_ns: int,
    end_ns: float,
) -> Iterator[tuple[float, str, str, float]]:
    """Yield time, flow, metric and bit/s of every interval until the end of the run, which may cut the last.

    `flows`: what agents reported, by number. `looks`: time since `zero_ns`, flow, bytes until then.
    """
    of_flows: dict[int, Looks] = {}
    for at, flow, acknowledged in sorted(looks):
        of_flows.setdefault(flow, []).append((at, acknowledged))
    ends = [float(at) for at in range(every_ns, int(end_ns) + 1, every_ns)]
    if end_ns > (ends[-1] if ends else 0.0):
        ends.append(end_ns)
    for number, found in sorted(flows.items()):
        last = found.get("last")
        points = _growing(
            found["start_ns"] - zero_ns,
            of_flows.get(number, []),
            (last[0] - zero_ns, last[1]) if last else None,
        )
        begin = before = 0.0
        for end, total in zip(ends, _until(points, ends), strict=True):
            yield end, f"flow{number}", "goodput_bps", (total - before) * 8e9 / (end - begin)
            begin, before = end, total


def _growing(start_ns: float, looks: Looks, last: tuple[float, float] | None) -> Looks:
    """Return the start of a flow, the looks at it, and its end if that is known; nothing is after the end."""
    found = [(start_ns, 0.0)]
    for at, total in looks:
        if at > found[-1][0] and (last is None or at < last[0]):
            found.append((at, max(total, found[-1][1])))
    if last is not None and last[0] > found[-1][0]:
        found.append((last[0], max(last[1], found[-1][1])))
    return found


def _until(points: Looks, times: Iterable[float]) -> Iterator[float]:
    """Yield the bytes that were acknowledged until each of the times, which grow."""
    place = 0
    for time in times:
        while place + 1 < len(points) and points[place + 1][0] <= time:
            place += 1
        at, total = points[place]
        if time <= at or place + 1 == len(points):
            yield total if time >= at else 0.0
        else:
            later, more = points[place + 1]
            yield total + (more - total) * (time - at) / (later - at)
