"""Deadlines of flows: which share of them was met, and how many were not decided when the run ended.

A flow that did not finish has missed its deadline only if that lay within the run. The deadline of one that
was still under way may lie after the end: whether it would have been met is unknown. Such flows are not
decided; they are counted apart, and the share of met deadlines is over the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftline import columns
from weftline.measures import flow_rows
from weftline.measures.flow_rows import ALL, Flows

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
