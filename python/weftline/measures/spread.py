"""How traffic was spread over links, and how long a failure cost packets: numbers of one run.

Links are those between switches that `measure.utilisation` names, in both directions; where it names none of
these, the links from switches to hosts. Only the intervals count that end by the start of the last flow, so
that what drains in the end does not. Where none does, because all flows start at once or the interval is too
long, there is no number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from weftline.measures import flow_rows, networks, over_time, recovery

if TYPE_CHECKING:
    from weftline.runs import Run


def _links(run: Run) -> dict[str, list[float]]:
    """Return the utilisation of each measured link over whole intervals, until the last flow has started."""
    ports = over_time.intervals(run, "utilisation")
    sides = networks.port_sides(run)
    of_switches = {port: sides[port] for port in ports if port in sides and not sides[port].of_host}
    links = [port for port, side in of_switches.items() if not side.to_host] or list(of_switches)
    if not links or (last := flow_rows.last_start_ns(run)) is None:
        return {}
    return {port: over_time.values_until(ports[port], last) for port in links}


def _means(run: Run) -> list[float]:
    return [math.fsum(values) / len(values) for values in _links(run).values() if values]


def mean_utilisation(run: Run) -> float | None:
    """Return the mean over the links, None where none was measured."""
    means = _means(run)
    return math.fsum(means) / len(means) if means else None


def max_utilisation(run: Run) -> float | None:
    """Return the mean of the link with the largest."""
    return max(_means(run), default=None)


def imbalance(run: Run) -> float | None:
    """Return the mean over time of (max - min) / mean over the links, after CONGA's paper.

    Times at which all links were idle do not count. None where fewer than two links were measured.
    """
    links = [values for values in _links(run).values() if values]
    if len(links) < 2:
        return None
    spreads = []
    for at_once in zip(*links, strict=False):
        mean = math.fsum(at_once) / len(at_once)
        if mean > 0:
            spreads.append((max(at_once) - min(at_once)) / mean)
    return math.fsum(spreads) / len(spreads) if spreads else None


def failure_to_last_loss_ns(run: Run) -> float | None:
    """Return the time from the first failure to the last packet that a dead link or a missing route cost.

    None where nothing failed, nothing was lost since, or links lose packets at random, too.
    """
    times, last = recovery.changes_ns(run), run.summary.get("last_loss_ns")
    if last is None or not times or run.scenario.get("failures", {}).get("loss", 0) or last < times[0]:
        return None
    return last - times[0]
