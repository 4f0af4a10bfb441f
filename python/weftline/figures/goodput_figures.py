"""Figures on the goodputs of single flows, from `[measure] goodput` by flow.

    kind = "cdf"      share of flows whose mean goodput is at most x, a line for each line, the flows of all
                      seeds together; published: entries { line, mbps = [of every flow] }
    kind = "groups"   mean goodput of a flow of each group over time, a diagram for each line, of several
                      seeds that of one run, and means over all of them in the table; published:
                      entries { line, group, points = [[seconds, Mb/s], ...] }, { line, group, mean = Mb/s }

Goodputs of whole runs are counted as the authors of Cebinae count (see `weftline.measures.sharing`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from weftline import quantities
from weftline.figures import specs
from weftline.measures import over_seeds, over_time, sharing
from weftline.measures.lines import Line
from weftline.terminal import Table

if TYPE_CHECKING:
    from weftline.reproduce.panels import Panel

SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Shares of flows at which the table of a distribution is printed."""


def _goodputs(line: Line) -> list[float]:
    """Mean goodputs of the flows of all runs of a line, in Mb/s, ascending."""
    return sorted(1e-6 * rate for run in line.runs for _, rate in sharing.goodputs(run, ns3=True))


def _cdf(values: Sequence[float]) -> list[tuple[float, float]]:
    return [(value, 100 * (rank + 1) / len(values)) for rank, value in enumerate(sorted(values))]


def at_share(values: Sequence[float], share: float) -> float | None:
    """Return the value that the share of `values` (ascending) does not exceed; None of no values."""
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else None


def draw_cdf(p: Panel, title: str) -> specs.Figure:
    """Return the panel as a figure."""
    labels = [line.label for line in p.lines]
    points = [(line.label, x, y) for line in p.lines for x, y in _cdf(_goodputs(line))]
    published = [(e["line"], x, y) for e in p.published if e["line"] in labels for x, y in _cdf(e["mbps"])]
    drawn = specs.trend(
        title,
        labels,
        points,
        published,
        axes=("goodput of a flow (Mb/s)", "share of flows (%)"),
        log=p.figure.options.get("log", ""),
        points_at="steps",
    )
    drawn.tables = [cdf_table(p, "")]
    return drawn


def cdf_table(p: Panel, title: str) -> Table:
    """Return the panel as a table: goodput at a few shares of flows, measured / published."""
    values = {entry["line"]: sorted(entry["mbps"]) for entry in p.published}
    rows = []
    for line in p.lines:
        ours, theirs = _goodputs(line), values.get(line.label, [])
        cells = []
        for share in SHARES:
            text = quantities.digits(at_share(ours, share))
            cells.append(f"{text} / {quantities.digits(at_share(theirs, share))}" if theirs else text)
        rows.append([line.label, *cells])
    pooled = over_seeds.pooled_text(p.lines, "flows").removesuffix(".")
    note = "; ".join(filter(None, ["measured / published" if values else "", pooled]))
    columns = ["goodput of a flow (Mb/s) at", *(f"{100 * share:g} %" for share in SHARES)]
    return Table(columns, rows, title=title, note=note)


def _over_time(line: Line) -> dict[str, list[tuple[float, float]]]:
    """(seconds, mean goodput of a flow in Mb/s) by group, of one run of a line."""
    run = over_seeds.drawn_run(line)
    series = over_time.intervals(run, "goodput_bps")
    members: dict[str, list[str]] = {}
    for share in run.shares():
        members.setdefault(share["group"], []).append(f"flow{share['flow']}")
    found = {}
    for group, names in members.items():
        sums: dict[float, float] = {}
        for name in names:
            for one in over_time.whole(series.get(name, [])):
                sums[one.end] = sums.get(one.end, 0.0) + one.value
        found[group] = [(1e-9 * time, 1e-6 * rate / len(names)) for time, rate in sorted(sums.items())]
    return found


def _mbps(rate: float | None) -> str:
    return quantities.digits(None if rate is None else 1e-6 * rate)


def draw_groups(p: Panel, title: str) -> list[specs.Figure]:
    """Return a figure for each line of the panel."""
    drawn, log = [], p.figure.options.get("log", "")
    for line in p.lines:
        groups = _over_time(line)
        entries = [e for e in p.published if e["line"] == line.label and "points" in e]
        measured = [(group, x, y) for group, points in groups.items() for x, y in points]
        published = [(e["group"], x, y) for e in entries if e["group"] in groups for x, y in e["points"]]
        if "y" in log:
            # Seconds in which a group gets nothing have no place on a logarithmic axis.
            measured, published = ([row for row in rows if row[2] > 0] for rows in (measured, published))
        drawn.append(
            specs.trend(
                f"{title}: {line.label}",
                list(groups),
                measured,
                published,
                axes=("time (s)", "goodput of a flow, mean of the group (Mb/s)"),
                log=log,
                points_at="published",
                caption=over_seeds.drawn_seed([line]),
            )
        )
    if drawn:
        drawn[0].tables = [groups_table(p, "")]
    return drawn


def groups_table(p: Panel, title: str) -> Table:
    """Return the panel as a table: mean goodput of a flow of each group over the run, and the published.

    Of several seeds it is the mean over them.
    """
    values = {(e["line"], e["group"]): e["mean"] for e in p.published if "mean" in e}
    means = {line.label: [sharing.group_means(run, ns3=True) for run in line.runs] for line in p.lines}
    groups = list(dict.fromkeys(group for found in means.values() for one in found for group in one))
    rows = []
    for line in p.lines:
        cells = []
        for group in groups:
            ours, theirs = [one.get(group) for one in means[line.label]], values.get((line.label, group))
            text = over_seeds.text(line, ours, _mbps)
            cells.append(text if theirs is None else f"{text} / {quantities.digits(theirs)}")
        rows.append([line.label, *cells, line.metric_text("jain_without_last_second")])
    of_seeds = over_seeds.means_text(p.lines)
    note = "; ".join(filter(None, ["measured / published" if values else "", of_seeds]))
    columns = ["goodput of a flow, mean (Mb/s)", *groups, "Jain's index"]
    return Table(columns, rows, title=title, note=note)
