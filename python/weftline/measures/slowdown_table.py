"""The table of slowdown by flow size and of costs, three rows a line; where one line is best in a column."""

from __future__ import annotations

from collections.abc import Sequence

from weftline import quantities
from weftline.measures import evidence, losses, separations, stats
from weftline.measures.lines import PERCENTILES, Line, Mean
from weftline.measures.metrics import METRICS, metric
from weftline.terminal import Table

COSTS = ("queue_p99", "pauses", *losses.SHOWN, *losses.SENT_AGAIN, "seconds", "speed")
BEST = "*"
"""Marks the best of a column, in text and on pages."""


def table(lines: Sequence[Line], *, title: str = "") -> Table:
    """Return percentiles of slowdown by flow size, queues, pauses, seconds and speed: three rows a line."""
    decades = {line.label: line.by_decade() for line in lines}
    shown = sorted({decade for by_decade in decades.values() for decade in by_decade})
    columns = ["FCT slowdown", "", *(f"≤ {quantities.bytes_text(10**d)}" for d in shown), "all"]
    rare = (*losses.SHOWN, *losses.SENT_AGAIN)
    costs = [name for name in COSTS if name not in rare or any(positive(line.metric(name)) for line in lines)]
    columns += [METRICS[name].title for name in costs]
    if any(positive(line.metric("unfinished")) for line in lines):
        costs.append("unfinished")
        columns.append(METRICS["unfinished"].title)
    result = Table(columns, title=title, left=2)
    odd = []
    for line in lines:
        overall = line.overall()
        counts = [separations.fewest([line], d) for d in shown]
        fewest = line.flows_counted
        for row, percentile in enumerate(PERCENTILES):
            cells = [line.label if row == 0 else "", percentile]
            found = [decades[line.label].get(d, {}).get(percentile) for d in shown]
            cells += [
                _cell(line, mean if enough(percentile, count) else None, d)
                for mean, count, d in zip(found, counts, shown, strict=True)
            ]
            cells.append(_cell(line, overall[percentile] if enough(percentile, fewest) else None))
            odd += [mean.oddity for mean in (*found, overall[percentile]) if mean]
            cells += [line.metric_text(name) if row == 0 else "" for name in costs]
            result.rows.append(cells)
        odd += [mean.oddity for name in costs if (mean := line.metric(name))]
        flows = [f"{count:,}" for count in (*counts, fewest)]
        result.rows.append(["", "flows", *flows, *("" for _ in costs)])
    result.note = (
        "Columns: flows over a tenth of that size up to it; flows: how many finished, in the run with the "
        "fewest. "
        "hops/s: packets sent on any link, per CPU second."
    )
    counts = sorted({len(line.runs) for line in lines})
    if counts[-1] > 1:
        result.note += f" Means over {stats.seeds_text(counts)}; ±: half of the 95 % interval."
        result.note = f"{result.note} {stats.oddities_text(odd)}".rstrip()
    _mark_best(result, lines, shown, costs)
    few = separations.few_flows(lines, shown)
    result.note += f" Too few flows for that percentile: {few}." if few else ""
    return result


def _mark_best(result: Table, lines: Sequence[Line], sizes: Sequence[int], costs: Sequence[str]) -> None:
    """Mark the best line of each column and percentile, where its 95 % interval overlaps no other's.

    A column in which a line has no interval, or a reason against it, has no best.
    """
    height = len(PERCENTILES) + 1
    marked = False
    for row, percentile in enumerate(PERCENTILES):
        subjects = [separations.of_size(size, percentile) for size in sizes]
        subjects.append(separations.of_metric(f"slowdown_{percentile}"))
        columns = [(2 + place, subject, False) for place, subject in enumerate(subjects)]
        if row == 0:
            names = ((2 + len(subjects) + place, name) for place, name in enumerate(costs))
            columns += [
                (column, separations.of_metric(name), metric(name).higher_is_better)
                for column, name in names
                if name not in ("seconds", "speed")
            ]
        for column, subject, highest in columns:
            best = _best(lines, subject, highest=highest)
            if best is not None:
                at = best * height + row
                result.rows[at][column] += f" {BEST}"
                result.marks[at, column] = "better"
                marked = True
    if marked:
        result.note += f" {BEST}: the best of its column; its 95 % interval overlaps no other line's."


def _best(lines: Sequence[Line], subject: separations.Subject, *, highest: bool) -> int | None:
    means = [subject.mean(line) for line in lines]
    known = [mean for mean in means if mean is not None and mean.interval is not None]
    if len(lines) < 2 or len(known) < len(lines) or any(subject.reasons(line) for line in lines):
        return None
    sign = -1 if highest else 1
    place = min(range(len(known)), key=lambda i: sign * known[i].value)
    if any(subject.differ(lines[place], line) for line in lines if line is not lines[place]):
        return None
    others = known[:place] + known[place + 1 :]
    apart = (
        known[place].low > max(mean.high for mean in others)
        if highest
        else known[place].high < min(mean.low for mean in others)
    )
    return place if apart else None


def enough(percentile: str, count: int) -> bool:
    """Return whether this number of flows supports the percentile: at least two have to lie beyond it."""
    return count > 0 and not evidence.few_flows(f"slowdown_{percentile}", count)


def _cell(line: Line, mean: Mean | None, decade: int | None = None) -> str:
    """A mean over finished flows: with how many runs have it, if fewer, and how many flows did not finish."""
    if mean is None:
        return "–"
    flows = line.by_size.flows() if decade is None else separations.flows_of(decade, line)
    unfinished = line.by_size.unfinished_of(line.runs, flows)
    left = evidence.left_text("slowdown_mean", line.runs, flows, unfinished_flows=unfinished)
    count, asked = len(line.runs) if mean.count is None else mean.count, max(len(line.runs), len(line.asked))
    return mean.text(quantities.digits) + evidence.qualifier(runs=count, asked=asked, left=left)


def positive(mean: Mean | None) -> bool:
    return mean is not None and mean.value > 0
