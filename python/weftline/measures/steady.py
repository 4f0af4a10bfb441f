"""Which flows of a run count, and whether the run had come to its steady state.

A run begins with an empty network, and after the last flow has started it drains: flows at both ends meet
less traffic than the others. `Window` leaves them out by when they start; they are simulated all the same,
and all flows run to their end. Without one all flows count.

Whether a run was steady is judged by the number of flows under way, as time averages over the quarters of the
time in which flows start. A load that the network cannot carry, or a run shorter than its longest flows, has
that number still growing from the third quarter to the fourth. It is judged over the seeds together, so that
one late elephant is not taken for a trend.

Source: averages over disjoint parts of a run compared, as in Law, Simulation Modeling and Analysis, 5th ed.,
§9.5.1; the number under way and the time spent are tied by Little's law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from weftline import columns
from weftline.measures import stats
from weftline.measures.metrics import METRICS, Flows
from weftline.runs import Run
from weftline.sweeps.sweepfile import time_ns

WHOLE = object()
"""The answer of `windowed` for a metric that is of the whole run."""
GROWTH = 0.1
"""Flows under way that grow by more than this share from the third quarter to the fourth are growing."""
MAX_LOOKED_AT = 20
GROWING = "flows under way were still growing at the end of the arrivals: not a steady state; run it longer"
BEGINNING = "the first quarter of the arrivals met fewer flows than the second half: leave it out (warmup)"
_NEEDED = ("start_ns", "finish_ns", "size_bytes", "fct_ns", "ideal_fct_ns", "slowdown", "group")


@lru_cache(maxsize=4)
def _read(folder: Path, modified: int) -> dict[str, list[Any]]:
    from weftline import _native

    del modified  # part of the key alone
    return columns.read(_native.table(str(folder), "flows"), _NEEDED)


def _flows(run: Run) -> dict[str, list[Any]]:
    """Return the columns of a run's flows that decide which of them count, and what of them."""
    return _read(run.out, (run.out / "flows.parquet").stat().st_mtime_ns)


@dataclass(frozen=True, kw_only=True)
class Window:
    """Flows that start from `first_ns` to `last_ns` count."""

    first_ns: float
    last_ns: float

    @classmethod
    def of(cls, run: Run, warmup: str, drain: str) -> Window:
        """Return the window that leaves out the first `warmup` and the last `drain` of the time of arrivals.

        Each is a time such as ``"1ms"``, a share such as ``"20%"`` or empty.
        """
        starts = _flows(run)["start_ns"]
        first, last = (min(starts), max(starts)) if starts else (0.0, 0.0)
        return cls(first_ns=first + _span(warmup, last - first), last_ns=last - _span(drain, last - first))


def _span(text: str, whole: float) -> float:
    text = text.replace(" ", "")
    if not text:
        return 0.0
    return whole * float(text[:-1]) / 100 if text.endswith("%") else time_ns(text)


def windowed(run: Run, name: str, flows: Flows, window: Window) -> float | object | None:
    """Return a metric over the flows of a window, None if there are none; `WHOLE` if it is none of flows."""
    asked = METRICS[name].completion if name in METRICS else None
    if asked is None:
        return WHOLE
    what, key = asked
    of = _flows(run)
    chosen = _chosen(of, flows, window)
    if not chosen:
        return None
    if what == "nfct":
        ideal = math.fsum(of["ideal_fct_ns"][n] for n in chosen)
        return math.fsum(of["fct_ns"][n] for n in chosen) / ideal if ideal else None
    if what == "goodput_bps":
        values = [8e9 * of["size_bytes"][n] / of["fct_ns"][n] for n in chosen]
    else:
        values = [of[what][n] for n in chosen]
    return _of_values([value for value in values if value is not None], key)


def flows_in(run: Run, flows: Flows, warmup: str, drain: str) -> int:
    """Return how many finished flows of a window count."""
    return len(_chosen(_flows(run), flows, Window.of(run, warmup, drain)))


def unfinished_in(run: Run, flows: Flows, warmup: str, drain: str) -> int:
    """Return how many flows of a window did not finish."""
    return len(_chosen(_flows(run), flows, Window.of(run, warmup, drain), finished=False))


def _chosen(of: dict[str, list[Any]], flows: Flows, window: Window, *, finished: bool = True) -> list[int]:
    """Return the rows of the finished flows that count, or of the unfinished ones."""
    highest = math.inf if flows.max_size is None else flows.max_size
    return [
        n
        for n, start in enumerate(of["start_ns"])
        if window.first_ns <= start <= window.last_ns
        and (of["fct_ns"][n] is not None) == finished
        and flows.min_size <= of["size_bytes"][n] <= highest
        and flows.group in (None, of["group"][n])
    ]


def _of_values(values: list[float], key: str) -> float | None:
    """Return the mean or a percentile by the engine's rule: element floor(n p), counted from 0."""
    if not values:
        return None
    if key == "mean":
        return math.fsum(values) / len(values)
    values.sort()
    return values[min(len(values) - 1, int(len(values) * int(key[1:]) / 100))]


def under_way(run: Run) -> list[float] | None:
    """Return the mean number of flows under way in each quarter of the time in which flows start.

    None if all of them start at one moment.
    """
    of = columns.read(run.flows, ("start_ns", "finish_ns"))
    starts = of["start_ns"]
    if len(starts) < 2 or min(starts) == max(starts):
        return None
    first, last = min(starts), max(starts)
    quarter = (last - first) / 4
    found = [0.0] * 4
    for start, finish in zip(starts, of["finish_ns"], strict=True):
        end = last if finish is None else min(finish, last)
        for n in range(4):
            found[n] += max(0.0, min(end, first + (n + 1) * quarter) - max(start, first + n * quarter))
    return [total / quarter for total in found]


def remark(runs: Sequence[Run], *, warmup: bool) -> str:
    """Return what is wrong with the steadiness of runs that differ in the seed alone, "" if nothing shows.

    Flows that do not arrive at random over time have no steady state and are not checked. At
    most `MAX_LOOKED_AT` runs are looked at. `warmup`: whether early flows are left out already.
    """
    runs = runs[:MAX_LOOKED_AT]
    if not runs or all(w.get("kind") != "poisson" for w in runs[0].scenario.get("workload", [])):
        return ""
    quarters = [found for run in runs if (found := under_way(run)) is not None]
    if not quarters:
        return ""
    if _grows([(q[2], q[3]) for q in quarters]):
        return GROWING
    if not warmup and _grows([(q[0], (q[2] + q[3]) / 2) for q in quarters]):
        return BEGINNING
    return ""


def _grows(pairs: Sequence[tuple[float, float]]) -> bool:
    """Return whether the second of each pair is above the first, by more than `GROWTH` and beyond chance."""
    before = math.fsum(a for a, _ in pairs) / len(pairs)
    grown = stats.estimate([b - a for a, b in pairs])
    if grown is None or before <= 0 or grown.mean <= GROWTH * before:
        return False
    if grown.low is None:
        # One run says little: only what it would be under an overload, where the number grows with time.
        return before >= 5 and grown.mean > 0.25 * before
    return grown.low > 0
