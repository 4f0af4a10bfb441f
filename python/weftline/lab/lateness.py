"""How late processes of this machine run, as a histogram whose buckets are up to a quarter wide."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

UNIT_NS = 1_000
WATCH_STEP_NS = 5_000_000
BUCKETS = 160
CORES = Path("/dev/cpu_dma_latency")
"""Who has this open says how late a core that idles may wake up, in µs."""
SHARE_OF_DELAY = 0.1
"""A time scale is right when the p99 of lateness is below this share of the shortest delay."""
MOST_HOPS = 10_000
"""Packet-hops a second that the process of the delays passes on in time on a core that is shared."""


def bucket_of(late_ns: int) -> int:
    """Return the bucket of a lateness: one for each µs below 8 µs, then four for each doubling.

    As in the processes of links and hosts (crates/ports).
    """
    late = max(late_ns, 0) // UNIT_NS
    shift = max(late.bit_length() - 3, 0)
    return min(4 * shift + (late >> shift), BUCKETS - 1)


def below_ns(bucket: int) -> int:
    """Return the upper bound of a bucket, in ns; what lies at it is in the next one."""
    shift = max(bucket // 4 - 1, 0)
    return (bucket - 4 * shift + 1 << shift) * UNIT_NS


@dataclass
class Histogram:
    """How many were how late, by bucket."""

    counts: list[int] = field(default_factory=lambda: [0] * BUCKETS)

    def add(self, late_ns: int) -> None:
        """Count one."""
        self.counts[bucket_of(late_ns)] += 1

    @classmethod
    def of(cls, counts: Iterable[int]) -> Histogram:
        """Return the histogram with these counts."""
        found = list(counts)
        return cls(found + [0] * (BUCKETS - len(found)))

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram([one + more for one, more in zip(self.counts, other.counts, strict=True)])

    def quantile_ns(self, share: float) -> int | None:
        """Return the upper end of the bucket in which a share of all lies, None if there are none."""
        total, seen = sum(self.counts), 0
        for bucket, count in enumerate(self.counts):
            seen += count
            if count and seen >= share * total:
                return below_ns(bucket)
        return None

    def as_json(self) -> dict[str, object]:
        """Return counts and quantiles; with the bounds of the buckets."""
        last = max((k for k, count in enumerate(self.counts) if count), default=-1)
        return {
            "below_ns": [below_ns(bucket) for bucket in range(last + 1)],
            "counts": self.counts[: last + 1],
            "p50_ns": self.quantile_ns(0.5),
            "p99_ns": self.quantile_ns(0.99),
        }


@contextlib.contextmanager
def awake() -> Iterator[bool]:
    """Keep the cores of this machine from sleeping for a while; yield whether this user may do so.

    The kernel takes the request back when the file is closed, so at the latest when this process ends.
    """
    with contextlib.ExitStack() as stack:
        asked = False
        with contextlib.suppress(OSError):
            file = os.open(CORES, os.O_WRONLY)
            stack.callback(os.close, file)
            asked = os.write(file, struct.pack("=i", 0)) == 4
        yield asked


def measure(seconds: float = 1.0, step_ns: int = 1_000_000) -> Histogram:
    """Sleep to many due times and return how late this process was at each.

    Each of the times that pass while it does not run counts: a pause of half a second is not one of many.
    """
    ctypes.CDLL(None).prctl(29, 1)
    found = Histogram()
    due = time.monotonic_ns() + step_ns
    end = due + int(seconds * 1e9)
    while due < end:
        time.sleep(max(due - time.monotonic_ns(), 0) / 1e9)
        now = time.monotonic_ns()
        for missed in range(due, now + 1, step_ns):
            found.add(now - missed)
            due = missed + step_ns
    return found


def watch() -> None:
    """Measure until the process is ended, then print the histogram as JSON."""
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    found = Histogram()
    print("ready", flush=True)
    while not ended:
        found.counts = [a + b for a, b in zip(found.counts, measure(0.1, WATCH_STEP_NS).counts, strict=True)]
    print(json.dumps(found.counts), flush=True)


def pressure() -> float | None:
    """Return the share of the last ten seconds in which something waited for a core, in percent."""
    try:
        first = Path("/proc/pressure/cpu").read_text().split("\n")[0]
        return float(dict(part.split("=") for part in first.split()[1:])["avg10"])
    except (OSError, ValueError, KeyError):
        return None


def scale_for(shortest_delay_ns: float | None, late_ns: int, hops_per_second: float) -> int:
    """Return the smallest time scale, 1, 2 or 5 times a power of ten, that this machine can hold.

    Lateness is then a small share of the shortest delay, and packets no faster than can be passed on.
    """
    wanted = hops_per_second / MOST_HOPS
    if shortest_delay_ns:
        wanted = max(wanted, late_ns / SHARE_OF_DELAY / shortest_delay_ns)
    power = 1
    while True:
        for step in (1, 2, 5):
            if step * power >= wanted:
                return step * power
        power *= 10


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from agent import die_with_parent, first_line  # type: ignore[import-not-found]

    if "stays" not in sys.argv:
        die_with_parent()
    first_line()
    watch()
