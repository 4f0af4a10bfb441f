"""Runs beside each other: slowdown by flow size, what it costs, and what schemes differ by.

For the terminal, for a page and as JSON. Runs that differ in the seed alone are one line; differences are
taken seed by seed where two lines carried the same flows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from weftline import quantities
from weftline.errors import InputError, nearest
from weftline.measures import losses, stats
from weftline.measures.lines import PERCENTILES, Line, Mean, lines_of, scheme_name
from weftline.measures.metrics import METRICS, metric
from weftline.runs import Run
from weftline.terminal import Table

_IDEALS = {
    "alone": "what the flow takes alone on its path: all its packets with headers and telemetry, back to "
    "back, and the last acknowledgement on its way back",
    "hpcc": "as the HPCC authors define it, base RTT plus all bytes with 48 B headers at the slowest link; "
    "telemetry is not in it, so its cost counts against a scheme",
    "phost": "as the pHost authors define it (OPT), without the last acknowledgement",
}
COSTS = ("queue_p99", "pauses", *losses.SHOWN, *losses.SENT_AGAIN, "seconds", "speed")
COMPARED = (
    "slowdown_mean",
    "slowdown_p50",
    "slowdown_p95",
    "slowdown_p99",
    "fct_mean",
    "goodput",
    "queue_p99",
    "drops",
)
"""Metrics whose differences are shown, where they were measured."""


class Comparison:
    """Runs beside each other.

    Attributes
    ----------
    lines : list of Line
        What is compared: each a label and its runs, which differ in the seed alone.
    base : Line
        What the others' differences are taken from.
    """

    def __init__(self, lines: Sequence[Line], *, against: str | None = None) -> None:
        self.lines = list(lines)
        if not self.lines:
            raise InputError("nothing to compare: expected folders of runs or of sweeps that have results")
        labels = [line.label for line in self.lines]
        if against is not None and against not in labels:
            raise InputError(f'against "{against}": {nearest(against, labels)}known: {", ".join(labels)}')
        self.base = self.lines[labels.index(against) if against is not None else 0]

    def difference(self, name: str, line: Line) -> stats.Difference | None:
        """Return a metric of a line minus that of `base`: by seed if both carried the same flows."""
        ours, theirs = (
            {_seed(run): v for run, v in zip(one.runs, one.values(name), strict=True)}
            for one in (line, self.base)
        )
        distinct = len(ours) == len(line.runs) and len(theirs) == len(self.base.runs)
        return stats.difference(ours, theirs, paired=distinct and self.same_flows(line))

    def same_flows(self, line: Line) -> bool:
        """Return whether a line and `base` are offered the same flows under the same seed."""
        from weftline.sweeps.result import traffic_of

        return traffic_of(line.runs[0]) == traffic_of(self.base.runs[0])

    def table(self) -> Table:
        """Return slowdown by flow size and costs, three rows a line."""
        return table(self.lines)

    def differences(self) -> Table | None:
        """Return what each line differs by from `base`, None if there is no other."""
        from weftline.sweeps.tables import difference_text

        others = [line for line in self.lines if line is not self.base]
        if not others:
            return None
        names = [name for name in COMPARED if name != "drops" or _positive(self.base.metric(name))]
        found = {line.label: {name: self.difference(name, line) for name in names} for line in others}
        names = [name for name in names if any(of[name] for of in found.values())]
        rows = [
            [label, *(difference_text(of[name], metric(name).text) for name in names)]
            for label, of in found.items()
        ]
        paired = {one.paired for of in found.values() for name in names if (one := of[name])}
        how = {
            frozenset({True}): "seed by seed on the same flows",
            frozenset({False}): "as of independent runs: flows or seeds are not the same",
        }.get(frozenset(paired), "seed by seed where flows and seeds are the same")
        note = f"Differences are taken {how}; * zero is not in the 95 % interval."
        return Table([f"minus {self.base.label}", *(metric(n).title for n in names)], rows, note=note)

    def as_json(self) -> dict:
        """Return all numbers for programs."""
        differences = {
            line.label: {
                name: {
                    "mean": found.estimate.mean,
                    "low": found.estimate.low,
                    "high": found.estimate.high,
                    "paired": found.paired,
                }
                for name in COMPARED
                if (found := self.difference(name, line))
            }
            for line in self.lines
            if line is not self.base
        }
        return {**as_json(self.lines), "against": self.base.label, "differences": differences}

    def __str__(self) -> str:
        return "\n\n".join(found.text() for found in (self.table(), self.differences()) if found)

    def __repr__(self) -> str:
        return f"<weftline.Comparison of {', '.join(repr(line.label) for line in self.lines)}>"

    def _repr_html_(self) -> str:
        return "".join(found.html() for found in (self.table(), self.differences()) if found)


def _seed(run: Run) -> int:
    return int(run.summary.get("seed") or 0)


def compare(*of: str | os.PathLike | Run, against: str | None = None) -> Comparison:
    """Compare runs: percentiles by flow size, costs, and differences with 95 % intervals.

    Parameters
    ----------
    *of : path or Run
        Runs, folders of runs, or result stores, whose runs are all taken. What differs in the seed alone is
        averaged.
    against : str, optional
        The label of what the others are compared with; the first without it.

    Raises
    ------
    InputError
        If a folder holds no results.
    """
    return Comparison(lines_in(of), against=against)


def lines_in(of: Sequence[str | os.PathLike | Run]) -> list[Line]:
    """Return the lines of runs, folders and stores; one sweep alone keeps the names of its variants."""
    from weftline.sweeps.result import FILE, SweepResult
    from weftline.sweeps.store import Store

    if len(of) == 1 and not isinstance(of[0], Run) and (Path(of[0]) / FILE).exists():
        result = SweepResult.open(of[0])
        return [
            Line(", ".join(variant for _, variant in cell.choice) or result.name, list(cell.runs.values()))
            for cell in result.cells
        ]
    runs: list[Run] = []
    for one in of:
        if isinstance(one, Run):
            runs.append(one)
        elif Store.is_at(one):
            kept = Store.open(one)
            runs += [Run.open(kept.points / entry.key) for entry in kept.entries()]
        else:
            runs.append(Run.open(one))
    return lines_of(runs)


def ideal_text(lines: Sequence[Line]) -> str:
    """Return what slowdown means in these runs, as a sentence for the caption of a figure."""
    kinds = dict.fromkeys(
        str(run.scenario.get("measure", {}).get("ideal", "alone")) for line in lines for run in line.runs
    )
    ideal = "; or ".join(_IDEALS.get(kind, kind) for kind in kinds)
    return f"Slowdown: completion time over the ideal one, at least 1. Ideal: {ideal}."


def table(lines: Sequence[Line], *, title: str = "") -> Table:
    """Return percentiles of slowdown by flow size, queues, pauses, seconds and speed: three rows a line."""
    decades = {line.label: line.by_decade() for line in lines}
    shown = sorted({decade for by_decade in decades.values() for decade in by_decade})
    columns = ["FCT slowdown", "", *(f"≤ {quantities.bytes_text(10**d)}" for d in shown), "all"]
    rare = (*losses.SHOWN, *losses.SENT_AGAIN)
    costs = [
        name for name in COSTS if name not in rare or any(_positive(line.metric(name)) for line in lines)
    ]
    columns += [METRICS[name].title for name in costs]
    if any(_positive(line.metric("unfinished")) for line in lines):
        costs.append("unfinished")
        columns.append(METRICS["unfinished"].title)
    result = Table(columns, title=title, left=2)
    for line in lines:
        overall = line.overall()
        for row, percentile in enumerate(PERCENTILES):
            cells = [line.label if row == 0 else "", percentile]
            cells += [_cell(decades[line.label].get(d, {}).get(percentile)) for d in shown]
            cells.append(_cell(overall[percentile]))
            cells += [line.metric_text(name) if row == 0 else "" for name in costs]
            result.rows.append(cells)
    result.note = "Columns: flows up to that size. hops/s: packets sent on any link, per CPU second."
    if any(len(line.runs) > 1 for line in lines):
        result.note += " ±: half of the 95 % interval over the seeds."
    return result


def as_json(lines: Sequence[Line]) -> dict:
    """Return the same numbers for programs; ``interval`` is null for a single run."""
    return {
        "lines": [
            {
                "label": line.label,
                "runs": [str(run.out) for run in line.runs],
                "seeds": [run.summary.get("seed") for run in line.runs],
                "slowdown": {
                    "all": _numbers(line.overall()),
                    **{str(10**decade): _numbers(p) for decade, p in sorted(line.by_decade().items())},
                },
                "metrics": {
                    name: _number(line.metric(name)) for name in METRICS if not name.startswith("slowdown")
                },
            }
            for line in lines
        ]
    }


def facts(run: Run) -> list[tuple[str, str]]:
    """Return what one run says of itself after it ends, as names and texts."""
    summary = run.summary
    overall = run.slowdown(bins=1)["overall"]
    done, flows = summary.get("flows_done"), summary.get("flows")
    rows = [
        ("scheme", scheme_name(run)),
        ("flows", f"{done:,} of {flows:,} done" if done is not None and flows is not None else "–"),
        ("simulated", quantities.time_text(summary.get("end_ns"))),
        ("slowdown p50 / p95 / p99", " / ".join(quantities.digits(overall.get(p)) for p in PERCENTILES)),
    ]
    if run.queues:
        found = run.queues["percentiles"]
        queue = " / ".join(quantities.bytes_text(found.get(p)) for p in ("p95", "p99", "max"))
        rows.append(("queue p95 / p99 / max", queue))
    rows.append(("pauses", METRICS["pauses"].text(summary.get("pauses"))))
    rows += losses.shown(run) or [("packets lost", "none")]
    speed = METRICS["speed"].text(summary.get("packet_hops_per_cpu_second"))
    hops = METRICS["packet_hops"].text(summary.get("packet_hops"))
    rows.append(
        ("packet-hops", f"{hops} in {quantities.seconds_text(summary.get('cpu_seconds'))}, {speed}/s")
    )
    if isinstance(threads := summary.get("threads"), int) and threads > 1:
        rows.append(("threads", _threads_text(threads, summary)))
    rows.append(("seed, fingerprint", f"{summary.get('seed', '–')}, {summary.get('fingerprint', '–')}"))
    rows.append(("folder", str(run.out)))
    return rows


def _threads_text(threads: int, summary: dict) -> str:
    """How the work was spread: threads, busiest region over the mean, share of packets between regions."""
    balance, crossing = summary.get("balance"), summary.get("crossing_share")
    wall = quantities.seconds_text(summary.get("wall_seconds"))
    parts = [f"{threads}, {wall} wall"]
    if isinstance(balance, int | float):
        parts.append(f"busiest region {balance:.2f} of mean")
    if isinstance(crossing, int | float):
        parts.append(f"{crossing:.0%} of hops between regions")
    return ", ".join(parts)


def facts_table(run: Run) -> Table:
    """Return `facts` as a table, one fact a row."""
    return Table([run.name, ""], [list(row) for row in facts(run)], left=2)


def _cell(mean: Mean | None) -> str:
    return mean.text(quantities.digits) if mean else "–"


def _positive(mean: Mean | None) -> bool:
    return mean is not None and mean.value > 0


def _number(mean: Mean | None) -> dict | None:
    return None if mean is None else {"value": mean.value, "interval": mean.interval}


def _numbers(percentiles: dict[str, Mean | None]) -> dict:
    return {p: _number(mean) for p, mean in percentiles.items()}
