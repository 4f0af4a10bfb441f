"""How flows that join a link come to share it: from their goodput over time (`[measure] goodput` by flow).

Jain's index of n goodputs x is (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything. It is
taken over spans of 1 ms, or longer intervals of the measure, that lie in the time that all flows share, from
the last one's start to the first one's end; a last one that the end of the run cuts short is left out. A flow
that did not finish ends with the run. A group starts with its first flow and ends with its last.

Source: Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination for resource allocation in
shared computer systems", DEC TR-301, 1984.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weftline import columns, quantities
from weftline.errors import InputError
from weftline.measures import flow_paths, over_time, steps
from weftline.measures.over_time import Interval

if TYPE_CHECKING:
    from weftline.runs import Run

SPAN_NS = 1e6
SECOND_NS = 1e9
COUNTED = 98 / 99
"""What the authors of Cebinae count of a full link: their last sample is never taken."""
TO_THE_END = ("jain", "jain_without_last_second", "jain_ideal", "first_share")
"""Metrics of goodputs to the end of the run, in which a flow that ends before it has its size alone."""
EARLY = 0.01
"""Share of the measured time by which a flow that ended early ended before the run did."""
FAIR = 0.95
"""Jain's index from which shares count as fair."""


def jain(goodputs: Sequence[float]) -> float | None:
    """Return Jain's index, None where nothing was received."""
    squares = math.fsum(x * x for x in goodputs)
    return math.fsum(goodputs) ** 2 / (len(goodputs) * squares) if squares else None


def indices(
    series: Mapping[str, Sequence[Interval]], lives: Mapping[str, tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return (time since the last start in ns, Jain's index) of the end of every whole span that all share.

    `series` has the goodput of each flow over the same spans; `lives` the start and the end of each flow in
    ns. A flow that is not in `lives` did not start and is left out.
    """
    names = [name for name in series if name in lives]
    if not names:
        return []
    start, end = max(lives[name][0] for name in names), min(lives[name][1] for name in names)
    # The spans in which the last one starts and the first one ends are theirs in part only.
    inside = {name: [one for one in series[name] if start <= one.begin and one.end <= end] for name in names}
    return [(time - start, index) for time, index in by_span(inside)]


def by_span(series: Mapping[str, Sequence[Interval]]) -> list[tuple[float, float]]:
    """Return (end in ns, Jain's index) of every whole span that all have, and in which anything came."""
    by_time: dict[float, list[float]] = {}
    for spans in series.values():
        for one in spans:
            if one.part == 1:
                by_time.setdefault(one.end, []).append(one.value)
    shared = sorted((time, goodputs) for time, goodputs in by_time.items() if len(goodputs) == len(series))
    return [(time, index) for time, goodputs in shared if (index := jain(goodputs)) is not None]


def of_living(
    series: Mapping[str, Sequence[Interval]], times: Mapping[str, Sequence[tuple[float, float]]]
) -> list[tuple[float, float]]:
    """Return (end in ns, Jain's index) of every whole span in which two or more last from begin to end.

    `series` is that of `indices`, `times` are those of `under_way`; a pause that is shorter than a span ends
    nothing. Spans in which these received nothing are left out.
    """
    by_time: dict[float, list[float]] = {}
    for name, spans in series.items():
        length = max((one.end - one.begin for one in spans), default=0.0)
        lasting = _joined(times.get(name, ()), length * (1 - 1e-9))
        at = 0
        for one in spans:
            while at < len(lasting) and lasting[at][1] * (1 + 1e-9) < one.end:
                at += 1
            if one.part == 1 and at < len(lasting) and lasting[at][0] <= one.begin * (1 + 1e-9):
                by_time.setdefault(one.end, []).append(one.value)
    shared = [(time, goodputs) for time, goodputs in sorted(by_time.items()) if len(goodputs) > 1]
    return [(time, index) for time, goodputs in shared if (index := jain(goodputs)) is not None]


def of_run(run: Run) -> list[tuple[float, float]]:
    """Return the same of a run's flows or groups; nothing if their goodput was not measured."""
    series = over_time.intervals(run, "goodput_bps", SPAN_NS)
    return indices(series, lifetimes(run)) if series else []


def lifetimes(run: Run) -> dict[str, tuple[float, float]]:
    """Return start and end in ns of every group, or flow (`flow3`), by its name in series."""
    return {name: (times[0][0], times[-1][1]) for name, times in under_way(run).items()}


def under_way(run: Run) -> dict[str, list[tuple[float, float]]]:
    """Return when something of each group, or flow (`flow3`), was under way: starts and ends in ns, in order.

    Flows where their goodput was measured by flow, else groups.

    A job whose messages are not in the table of flows has its steps.
    """
    of = columns.read(run.flows, ("flow_id", "group", "start_ns", "finish_ns"))
    by_flow = run.scenario.get("measure", {}).get("goodput", {}).get("by") == "flow"
    found: dict[str, list[tuple[float, float]]] = {}
    over = over_time.end_ns(run)
    for flow, group, start, finish in zip(*of.values(), strict=True):
        lasts = start, over if finish is None else finish
        found.setdefault(f"flow{flow}" if by_flow else group, []).append(lasts)
    of_steps: dict[str, list[tuple[float, float]]] = {}
    for row in [] if by_flow else steps.own(run):
        if row["job"] not in found:
            end = over if row["finish_ns"] is None else row["finish_ns"]
            of_steps.setdefault(row["job"], []).append((row["start_ns"], end))
    return {name: _joined(times, 0.0) for name, times in (found | of_steps).items()}


def _joined(times: Sequence[tuple[float, float]], pause: float) -> list[tuple[float, float]]:
    """Return times from start to end in order, as one where the pause between them is at most `pause`."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(times):
        if found and start <= found[-1][1] + pause:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def convergence_ns(run: Run) -> float | None:
    """Return how long after the last start the shares are first fair; None if they never are."""
    return next((time for time, index in of_run(run) if index >= FAIR), None)


def final_fairness(run: Run) -> float | None:
    """Return the mean of Jain's index over the last third of the time that all flows share."""
    found = [index for _, index in of_run(run)]
    last = found[2 * len(found) // 3 :]
    return math.fsum(last) / len(last) if last else None


def goodputs(run: Run, *, ns3: bool = False) -> list[tuple[str, float]]:
    """Return (group, mean goodput in bit/s) of every flow that was measured, in order of the flows.

    Over the time from the first flow's start to the end of the run; in folders of earlier builds to the end
    of the last whole interval. With `ns3` as the authors of Cebinae count in their runs of 100 s: 98 s of
    what was delivered over 99 s; that is, the mean without the last second times 98/99. Nothing where no time
    is left without that second.
    """
    shares = run.shares()
    if not shares:
        return []
    start, end = min(share["start_ns"] for share in shares), over_time.end_ns(run)
    measured = max(share["until_ns"] for share in shares)
    if ns3:
        end -= SECOND_NS
        shares = run.shares(0, end) if end > start else []
    end = min(end, measured)
    if end <= start:
        return []
    factor = COUNTED if ns3 else 1.0
    return [(share["group"], factor * 8e9 * share["bytes"] / (end - start)) for share in shares]


def group_means(run: Run, *, ns3: bool = False) -> dict[str, float]:
    """Return the mean goodput of a flow in bit/s by group, counted as `goodputs` does."""
    by_group: dict[str, list[float]] = {}
    for group, rate in goodputs(run, ns3=ns3):
        by_group.setdefault(group, []).append(rate)
    return {group: math.fsum(rates) / len(rates) for group, rates in by_group.items()}


def ended(run: Run) -> tuple[int, int]:
    """Return how many of the flows whose goodput was measured ended before the run did, and of how many."""
    shares = run.shares()
    if not shares or not run.summary.get("flows_done"):
        return 0, len(shares)
    start, end = min(share["start_ns"] for share in shares), over_time.end_ns(run)
    of = columns.read(run.flows, ("flow_id", "finish_ns"))
    finishes = dict(zip(*of.values(), strict=True))
    latest = end - EARLY * (end - start)
    times = [finishes.get(share["flow"]) for share in shares]
    return sum(time is not None and time < latest for time in times), len(shares)


def total_goodput(run: Run, *, ns3: bool = False) -> float | None:
    """Return the goodput of all measured flows together, in bit/s."""
    found = goodputs(run, ns3=ns3)
    return math.fsum(rate for _, rate in found) if found else None


def bottleneck_throughput(run: Run) -> float | None:
    """Return the throughput of a dumbbell's bottleneck in bit/s, counted as `goodputs` does with `ns3`.

    Everything on the wire counts. Needs ``measure.utilisation`` of that one port; None where no time is left
    without the last second.
    """
    link = run.scenario.get("topology", {}).get("bottleneck_link", {})
    if "rate" not in link:
        return None
    ports = list(over_time.intervals(run, "utilisation").values())
    shares = run.shares()
    if len(ports) != 1 or not shares:
        return None
    start, end = min(share["start_ns"] for share in shares), over_time.end_ns(run) - SECOND_NS
    end = min(end, ports[0][-1].end)
    if end <= start:
        return None
    # Of the interval in which the time ends, its part.
    busy = math.fsum(one.value * (min(one.end, end) - one.begin) for one in ports[0] if one.begin < end)
    return COUNTED * quantities.parse_rate(link["rate"]) * busy / (end - start)


def index(run: Run, *, ns3: bool = False) -> float | None:
    """Return Jain's index of the flows' mean goodputs over the run, counted as `goodputs` does."""
    return jain([rate for _, rate in goodputs(run, ns3=ns3)])


def normalised_index(run: Run, ideal: Sequence[float]) -> float | None:
    """Return Jain's index of goodputs, without the last second, over ideal ones, in order of the flows.

    None where no time is left without that second.
    """
    found = goodputs(run, ns3=True)
    return jain([rate / best for (_, rate), best in zip(found, ideal, strict=True)]) if found else None


def index_against_ideal(run: Run) -> float | None:
    """Return Jain's index of mean goodputs over the max-min fair ones; None where `ideal` is None."""
    best = ideal(run)
    return normalised_index(run, best) if best and len(best) == len(goodputs(run)) else None


def ideal(run: Run) -> list[float] | None:
    """Return the max-min fair rate of each measured flow in bit/s, in order, by water filling.

    None where the links of a flow are not known, see `weftline.measures.flow_paths`.
    """
    found = flow_paths.links_of_flows(run)
    return max_min(*found) if found else None


def max_min(
    capacities: Sequence[float], paths: Sequence[Sequence[int]], demands: Sequence[float] | None = None
) -> list[float]:
    """Return the max-min fair rates of flows over links, by water filling.

    Parameters
    ----------
    capacities : sequence of float
        Of each link, in bit/s.
    paths : sequence of sequences of int
        The links that each flow crosses, counted from 0.
    demands : sequence of float, optional
        Maximum rate of each flow; without it, there is no maximum.

    Returns
    -------
    list of float
        Rates in the order of the flows; infinite where neither a link nor a demand limits a flow. Source:
        Bertsekas and Gallager, Data Networks, §6.5.2.

    Raises
    ------
    InputError
        If a rate is negative or not a number, or there is no such link.
    """
    _check_rates(capacities, paths, demands)
    rates = [0.0 if path or demands is not None else math.inf for path in paths]
    left = list(capacities)
    rising = {flow for flow, path in enumerate(paths) if path or demands is not None}
    while rising:
        users = [sum(link in paths[flow] for flow in rising) for link in range(len(left))]
        steps = [room / n for room, n in zip(left, users, strict=True) if n]
        steps += [demands[flow] - rates[flow] for flow in rising] if demands is not None else []
        step = max(0.0, min(steps))
        for flow in rising:
            rates[flow] += step
        left = [room - step * n for room, n in zip(left, users, strict=True)]
        full = {link for link, room in enumerate(left) if room <= 1e-9 * capacities[link]}
        rising = {
            flow
            for flow in rising
            if not full.intersection(paths[flow])
            and (demands is None or rates[flow] < demands[flow] * (1 - 1e-12))
        }
    return rates


def _check_rates(
    capacities: Sequence[float], paths: Sequence[Sequence[int]], demands: Sequence[float] | None
) -> None:
    for link, rate in enumerate(capacities):
        if not 0 <= rate < math.inf:
            raise InputError(f"capacities: expected a rate from 0 for link {link}, found {rate!r}")
    for flow, path in enumerate(paths):
        for link in path:
            if not 0 <= link < len(capacities):
                raise InputError(f"paths: flow {flow} crosses link {link} of {len(capacities)} links")
    if demands is None:
        return
    if len(demands) != len(paths):
        raise InputError(f"demands: expected one for each of {len(paths)} flows, found {len(demands)}")
    for flow, rate in enumerate(demands):
        if not rate >= 0:
            raise InputError(f"demands: expected a rate from 0 for flow {flow}, found {rate!r}")
