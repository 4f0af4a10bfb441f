"""Numbers by group of flows: one row per group of each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from weftline.measures import evidence, flow_rows
from weftline.measures.lines import Line
from weftline.measures.metrics import METRICS
from weftline.terminal import Table

SHOWN = ("slowdown_p50", "slowdown_p95", "slowdown_p99", "fct_mean", "goodput")


def names(lines: Sequence[Line]) -> list[str]:
    """Return the groups of the runs, in their order."""
    found = (run.summary.get("slowdown") or {} for line in lines for run in line.runs)
    return list(dict.fromkeys(name for of in found for name in of.get("by_group") or {}))


def table(lines: Sequence[Line], shown: Sequence[str] = SHOWN) -> Table | None:
    """Return metrics of each group, None where there is one alone; "–": too few flows for a percentile."""
    groups = names(lines)
    if len(groups) < 2:
        return None
    several = len(lines) > 1
    titles = [*(["line"] if several else []), "group", "flows", *(METRICS[name].title for name in shown)]
    result = Table(titles, title="By group", left=2 if several else 1)
    for line in lines:
        unfinished = [_unfinished(run) for run in line.runs]
        for group in groups:
            of_group = replace(line, group=group)
            counts = [_count(run, group) for run in line.runs]
            left = max(found[group] for found in unfinished)
            if not max(counts) and not left:
                continue
            cells = ["–" if evidence.few_flows(n, min(counts)) else of_group.metric_text(n) for n in shown]
            flows = f"{min(counts):,}" + (f", {left:,} unfinished" if left else "")
            result.rows.append([*([line.label] if several else []), group, flows, *cells])
    if not result.rows:
        return None
    result.note = "flows: how many finished, in the run with the fewest."
    return result


def _count(run: Any, group: str) -> int:
    found = (run.summary.get("slowdown") or {}).get("by_group") or {}
    return (found.get(group) or {}).get("count") or 0


def _unfinished(run: Any) -> Counter[str]:
    """Return how many flows of each group did not finish."""
    if not run.summary.get("flows_unfinished"):
        return Counter()
    of = flow_rows.read(run)
    return Counter(of["group"][row] for row in flow_rows.chosen(run, flow_rows.ALL, finished=False))
