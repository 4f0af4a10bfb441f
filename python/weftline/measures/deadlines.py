"""Deadlines of flows: which share of them was met, and how many were not decided when the run ended.

A flow that did not finish has missed its deadline only if that lay within the run. The deadline of one that
was still under way may lie after the end: whether it would have been met is unknown. Such flows are not
decided; they are counted apart, and the share of met deadlines is over the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from weftline import columns, quantities
from weftline.measures import flow_rows, stats
from weftline.measures.flow_rows import ALL, Flows
from weftline.measures.pooling import pairs_by_seed, seed_of

if TYPE_CHECKING:
    from weftline.runs import Run

METRIC = "deadlines_met"


def share_met(run: Run, flows: Flows = ALL, *, undecided: bool | None = None) -> float | None:
    """Return the share of deadlines that were met; None where no deadline was decided.

    Parameters
    ----------
    undecided : bool, optional
        Count the deadlines that were not decided, too: as met, or as missed. Without it they do not count.
    """
    count, met, open_ones = counts(run, flows)
    if undecided is None:
        count -= open_ones
    return (met + (open_ones if undecided else 0)) / count if count else None


def counts(run: Run, flows: Flows = ALL) -> tuple[int, int, int]:
    """Return how many flows have a deadline, how many of these met it, and how many are not decided."""
    done, total = run.summary.get("flows_done"), run.summary.get("flows")
    all_done = done is not None and done == total
    of_group = run.deadlines_of(flows)
    if not of_group[0] or (all_done and not (flows.is_by_size or flows.is_by_start)):
        return (*of_group, 0)
    of = columns.read(run.flows, ("deadline_ns", "met_deadline", "fct_ns"))
    deadline, end = of["deadline_ns"], run.summary.get("end_ns") or 0.0
    rows = [n for n in flow_rows.chosen(run, flows, finished=None) if deadline[n] is not None]
    # Earlier versions wrote false, in place of null, where a deadline is not decided.
    left = sum(of["fct_ns"][n] is None and deadline[n] > end for n in rows)
    return len(rows), sum(of["met_deadline"][n] is True for n in rows), left


def difference_text(
    runs: Sequence[Run],
    others: Sequence[Run],
    values: Mapping[int, float | None],
    base: Mapping[int, float | None],
    *,
    chosen: Callable[[Run], Flows],
    factor: float,
    method: str = "t",
) -> str:
    """Return why a difference of the shares that two schemes met does not compare them; "" if it does.

    Both carried the same flows under each seed. The reason is that these have other deadlines: their mean
    times are apart by more than `factor`, or the sign of the difference is another, or chance,
    where the flows of both schemes have the deadlines of one of the two. The other arguments are those of
    `weftline.measures.ideals.sign_text`.
    """
    pairs = pairs_by_seed(runs, others)
    # Ideal times are those of the scheme: the first seed shows how far apart they are.
    times = [pair for run, other in pairs[:1] for pair in _common(run, other, chosen(run))]
    if all(ours == theirs for ours, theirs in times):
        return ""
    ours, theirs = (math.fsum(pair[k] for pair in times) for k in (0, 1))
    if max(ours, theirs) > factor * min(ours, theirs):
        texts = (quantities.time_text(total / len(times)) for total in (ours, theirs))
        return f"{' and '.join(texts)} after the start in the mean"
    found = stats.difference(values, base, method=method)
    if found is None or not found.estimate.is_apart_from_zero:
        return ""
    over_theirs = {seed_of(run): _share_met_by(run, other, chosen(run)) for run, other in pairs}
    over_ours = {seed_of(other): _share_met_by(other, run, chosen(other)) for run, other in pairs}
    for again in (
        stats.difference({**values, **over_theirs}, base, method=method),
        stats.difference(values, {**base, **over_ours}, method=method),
    ):
        is_apart = again is not None and again.estimate.is_apart_from_zero
        if again is None or not is_apart or again.estimate.mean * found.estimate.mean < 0:
            apart = max(abs(a / b - 1) for a, b in times if b)
            return (
                f"those of the same flows are up to {100 * apart:.2g} % apart: with the deadlines of one of "
                "the two, the sign of the difference is another or chance"
            )
    return ""


def _times(run: Run) -> dict[int, float]:
    """Return how long after its start a flow has its deadline, by flow, where it has one."""
    of = columns.read(run.flows, ("flow_id", "start_ns", "deadline_ns"))
    rows = zip(of["flow_id"], of["start_ns"], of["deadline_ns"], strict=True)
    return {flow: deadline - start for flow, start, deadline in rows if deadline is not None}


def _common(run: Run, other: Run, flows: Flows) -> list[tuple[float, float]]:
    """Return these times in two runs, of the flows that count in the first and that both have."""
    ids = columns.read(run.flows, ("flow_id",))["flow_id"]
    ours, theirs = _times(run), _times(other)
    counted = (ids[n] for n in flow_rows.chosen(run, flows, finished=None))
    return [(ours[flow], theirs[flow]) for flow in counted if flow in ours and flow in theirs]


def _share_met_by(run: Run, other: Run, flows: Flows) -> float | None:
    """Return which share of the deadlines that the flows have in another run they meet in this one.

    None if the other lacks one of them. Those that are not decided do not count.
    """
    of, times = columns.read(run.flows, ("flow_id", "start_ns", "fct_ns", "deadline_ns")), _times(other)
    end, met = run.summary.get("end_ns") or 0.0, []
    for n in flow_rows.chosen(run, flows, finished=None):
        if of["deadline_ns"][n] is None:
            continue
        if (time := times.get(of["flow_id"][n])) is None:
            return None
        fct = of["fct_ns"][n]
        if fct is not None or of["start_ns"][n] + time <= end:
            met.append(fct is not None and fct <= time)
    return sum(met) / len(met) if met else None
