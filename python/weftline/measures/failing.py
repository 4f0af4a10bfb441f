"""When links and switches fail in a run, and which parts of the time of its arrivals that concerns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from weftline.runs import Run
from weftline.sweeps.sweepfile import time_ns


class Failure(NamedTuple):
    """From when to when a link or switch fails, detection included, in nanoseconds."""

    begin: float
    end: float
    """Of one that lasts to the end of the run: when routes avoid it."""
    is_lasting: bool
    """Whether it lasts to the end of the run."""


def failures(run: Run) -> list[Failure]:
    """Return the failures of a run, by its changes; without one that begins at 0 and lasts.

    A link that changes its rate fails from its first change to its last one.
    """
    asked = run.scenario.get("failures") or {}
    detection = time_ns(str(asked.get("detection", "100us")))
    found, since, rates = [], dict[str, float](), dict[str, list[float]]()
    for change in run.summary.get("failures") or []:
        at, text = change["at_ns"], str(change["change"])
        what, _, kind = text.rpartition(" ")
        if kind == "down":
            since[what] = at
        elif kind == "up":
            found.append(Failure(since.pop(what, at), at + detection, False))
        elif rated := re.fullmatch(r"(.*) at \S+", text):
            rates.setdefault(rated[1], []).append(at)
    found += [Failure(at, at + detection, True) for at in since.values()]
    found += [Failure(times[0], times[-1] + detection, len(times) == 1) for times in rates.values()]
    return sorted(one for one in found if one.begin > 0 or not one.is_lasting)


def begins_or_ends(found: Iterable[Failure], first: float, last: float) -> bool:
    """Return whether a failure begins or ends in a span of time."""
    return any(first <= at < last for one in found for at in (one.begin, one.end))


def concerned(found: Iterable[Failure], quarters: tuple[float, float]) -> set[int]:
    """Return which quarters of a span of time, from 0, a failure concerns: also the one after its end."""
    first, last = quarters
    quarter = (last - first) / 4
    return {
        n
        for one in found
        for n in range(4)
        if one.begin < first + (n + 1) * quarter
        and (math.inf if one.is_lasting else one.end) > first + (n - 1) * quarter
    }
