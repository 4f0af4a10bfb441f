"""Ideal times under two schemes, and whether they decide which of the two has the lower slowdown.

The ideal time of a flow counts the headers and the telemetry of its scheme. A scheme with more of them has
longer ideal times, so its slowdown may be the lower one while its flows take longer. `sign_text` takes the
difference of slowdowns again over the ideal times of one scheme: of each flow where both schemes carried the
same flows, else of the mean. Where its sign is not the same, the ideal times decided it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from weftline import columns, quantities
from weftline.measures import flow_rows, readings, stats, steps
from weftline.measures.flow_rows import Flows
from weftline.measures.pooling import pairs_by_seed, seed_of
from weftline.runs import Run

Values = Mapping[int, float | None]
RELATIVE = ("slowdown_", "small_p", "nfct", "step_over_ideal")
"""Beginnings of the names of metrics that are relative to ideal times."""
CLEAR = 3.0
"""A difference this many times larger than that of the mean ideal times is not decided by them.

The ideal times of single flows differ by more than their means do, but not by that factor.
"""


def of_steps(run: Run, flows: Flows) -> float | None:
    """Return the mean ideal time of the steps that ended; None without any."""
    found = [row["ideal_ns"] for row in steps.ended(steps.own(run), flows) if row["ideal_ns"]]
    return math.fsum(found) / len(found) if found else None


def pair_of(name: str, run: Run, other: Run, flows: Flows) -> tuple[float | None, float | None]:
    """Return the mean ideal times of what a metric is of in two runs under one seed.

    Of flows, those count that finished in both: what one run alone finished may be larger ones.
    """
    if name.startswith("step_"):
        return of_steps(run, flows), of_steps(other, flows)
    if not any(_has_unfinished(one) for one in (run, other)):
        return of_flows(run, flows), of_flows(other, flows)
    ours, theirs = (_by_id(one, flows) for one in (run, other))
    both = [(ours[flow], theirs[flow]) for flow in ours.keys() & theirs.keys()]
    if not both:
        return None, None
    return math.fsum(a for a, _ in both) / len(both), math.fsum(b for _, b in both) / len(both)


def _has_unfinished(run: Run) -> bool:
    return run.summary.get("flows") != run.summary.get("flows_done")


def _by_id(run: Run, flows: Flows) -> dict[int, float]:
    of, ids = flow_rows.read(run), _ids(run)
    return {ids[n]: ideal for n in flow_rows.chosen(run, flows) if (ideal := of["ideal_fct_ns"][n])}


def of_flows(run: Run, flows: Flows) -> float | None:
    """Return the mean ideal time of the flows that finished; None without flows."""
    of = run.completion_of(flows)
    return of["fct_ns"]["mean"] / of["nfct"] if of["fct_ns"] and of["nfct"] else None


def sign_text(
    name: str,
    runs: Sequence[Run],
    others: Sequence[Run],
    values: Values,
    base: Values,
    *,
    chosen: Callable[[Run], Flows],
    method: str = "t",
    paired: bool = True,
) -> str:
    """Return the mean ideal times where they decide the sign of a difference of slowdowns, "" if they do not.

    Parameters
    ----------
    name : str
        The metric, without a group.
    values, base : mapping
        The metric of each of `runs` and of each of `others`, by seed.
    chosen : callable
        Which flows of a run count.
    """
    if not name.startswith(RELATIVE) or not runs or not others:
        return ""
    found = stats.difference(values, base, method=method, paired=paired)
    if found is None or not found.estimate.is_apart_from_zero:
        return ""
    pairs = pairs_by_seed(runs, others)
    first, second = pairs[0] if pairs else (runs[0], others[0])
    # Those of flows are looked up by size and group: times of start change their mean by little.
    flows = _without_window(chosen(first))
    if pairs and paired:
        ours, theirs = pair_of(name, first, second, flows)
    else:
        ideal = of_steps if name.startswith("step_") else of_flows
        ours, theirs = ideal(first, flows), ideal(second, _without_window(chosen(second)))
    if not ours or not theirs:
        return ""
    apart = abs(ours / theirs - 1)
    nearest_end = min(abs(found.estimate.low or 0.0), abs(found.estimate.high or 0.0))
    if apart < 1e-9 or nearest_end > CLEAR * apart * abs(found.base):
        return ""
    exact = paired and not name.startswith("step_")
    over_theirs = _over(name, pairs if exact else [], values, ours / theirs, chosen)
    over_ours = _over(name, [(b, a) for a, b in pairs] if exact else [], base, theirs / ours, chosen)
    for again in (
        stats.difference(over_theirs, base, method=method, paired=paired),
        stats.difference(values, over_ours, method=method, paired=paired),
    ):
        if (
            again is None
            or not again.estimate.is_apart_from_zero
            or again.estimate.mean * found.estimate.mean < 0
        ):
            return f"{quantities.time_text(ours)} and {quantities.time_text(theirs)} in the mean"
    return ""


def _without_window(flows: Flows) -> Flows:
    return Flows(min_size=flows.min_size, max_size=flows.max_size, group=flows.group)


def _over(
    name: str,
    pairs: Sequence[tuple[Run, Run]],
    values: Values,
    factor: float,
    chosen: Callable[[Run], Flows],
) -> dict[int, float | None]:
    """Return values over the ideal times of the other run of each pair; without a pair, times `factor`."""
    scaled = {seed: None if value is None else value * factor for seed, value in values.items()}
    exact = {seed_of(run): _of_rows(name, run, other, chosen(run)) for run, other in pairs}
    return scaled | {seed: value for seed, value in exact.items() if value is not None and seed in scaled}


def _of_rows(name: str, run: Run, other: Run, flows: Flows) -> float | None:
    """Return a metric of the flows of a run over their ideal times in another; None if that lacks some."""
    theirs = flow_rows.read(other)
    ideals = dict(zip(_ids(other), theirs["ideal_fct_ns"], strict=True))
    of, ids = flow_rows.read(run), _ids(run)
    rows = [n for n in flow_rows.chosen(run, flows) if of["slowdown"][n] is not None]
    if name.startswith("small_p"):
        rows = readings.of_smallest(rows, of["size_bytes"])
    if not rows or not all(ideals.get(ids[n]) for n in rows):
        return None
    times, over = [of["fct_ns"][n] for n in rows], [ideals[ids[n]] for n in rows]
    if name == "nfct":
        return math.fsum(times) / math.fsum(over)
    minimum = 1.0 if run.scenario.get("measure", {}).get("ideal") == "hpcc" else 0.0
    slowdowns = [max(minimum, time / ideal) for time, ideal in zip(times, over, strict=True)]
    return flow_rows.number(slowdowns, name.rpartition("_")[2])


def _ids(run: Run) -> list[int]:
    return columns.read(run.flows, ("flow_id",))["flow_id"]
