"""The tables of a sweep: estimates, differences between schemes, the answer; for the terminal and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from weftline.errors import nearest
from weftline.measures import evidence, given, over_time, queue_ports, run_warnings, stats
from weftline.measures.judgements import Footnotes, Separation
from weftline.measures.lines import Mean
from weftline.measures.metrics import Flows, metric, split
from weftline.measures.pooling import (
    alike_texts,
    are_same_bits,
    mixed_builds,
    same_results,
    same_runs_text,
    shortened,
)
from weftline.measures.run_warnings import RunWarning
from weftline.sweeps import store, store_files
from weftline.sweeps.axes import OF_ESTIMATES, OF_POINTS
from weftline.sweeps.result import Cell, SweepResult
from weftline.sweeps.sweepfile import Choice
from weftline.terminal import Table

NO_RUN = "no run"
"""What a table has for a combination without results."""
_OPERATIONS = "collective operations of one kind, such as those of one job (weftline jobs has each kind)"
_LONGER = "in the scenario, and a run of over 1 s from the first start of a flow"
_BY_FLOW = f"measure.goodput by flow {_LONGER}"
_BY_FLOW_AND_PORT = f"measure.goodput by flow and measure.utilisation of the bottleneck {_LONGER}"
_WHILE_FLOWS_START = "in the scenario, at intervals shorter than the time in which flows start"
_NEEDED = {
    "flow GROUP": _BY_FLOW,
    "goodput_without_last_second": _BY_FLOW,
    "jain_without_last_second": _BY_FLOW,
    "jain_ideal": f"measure.goodput by flow, and paths that are known, {_LONGER}",
    "throughput_without_last_second": _BY_FLOW_AND_PORT,
    "queue_p50": "measure.queue_histogram in the scenario",
    "queue_p95": "measure.queue_histogram in the scenario",
    "queue_p99": "measure.queue_histogram in the scenario",
    "queue_max": "measure.queue_histogram in the scenario",
    "backlog_growth": f"measure.goodput by group {_WHILE_FLOWS_START}, and groups for endless flows alone",
    "sent_share": f"measure.utilisation {_WHILE_FLOWS_START}",
    "received_share": f"measure.utilisation {_WHILE_FLOWS_START}",
    "utilisation_mean": f"measure.utilisation {_WHILE_FLOWS_START}",
    "utilisation_max": f"measure.utilisation {_WHILE_FLOWS_START}",
    "imbalance": f"measure.utilisation of several links {_WHILE_FLOWS_START}",
    "recovery": "a failure, and measure.goodput by group at intervals of at most half of the time before it",
    "deficit": "a failure, and measure.goodput by group at intervals of at most half of the time before it",
    "algbw": _OPERATIONS,
    "busbw": _OPERATIONS,
}


def tables(result: SweepResult) -> list[Table]:
    """Return the answer first, then each metric, then what schemes differ by; none before the first run."""
    if not (result.cells or result.failed):
        return []
    found = []
    if result.report.bound:
        found.append(_answer(result))
    if result.report.along:
        found += [_over(result, metric(name).title, _estimate_of(result, name)) for name in result.metrics]
    else:
        found.append(_flat(result, result.metrics, "", _estimate_of))
    found += _differences(result)
    return found


def _answer(result: SweepResult) -> Table:
    """Return the verdict on each combination; below it the reasons of those that are open."""
    notes = Footnotes()

    def text(cell: Cell) -> str:
        judged = result.judgement(cell)
        return judged.answer + notes.mark(judged.reasons)

    table = _over(result, f"{result.report.answer}?", text)
    bound = result.report.bound
    table.note = "\n".join(filter(None, [notes.text(), _no_effect_text(result, bound[:1] if bound else ())]))
    kinds = {"yes": "better", "no": "worse", "open": "open"}
    for place, row in enumerate(table.rows):
        for column, cell in enumerate(row[table.left :], start=table.left):
            kind = next((kinds[word] for word in kinds if cell.startswith(word)), None)
            table.marks |= {(place, column): kind} if kind else {}
    return table


def _estimate_of(result: SweepResult, name: str) -> Callable[[Cell], str]:
    def text(cell: Cell) -> str:
        if not cell.runs:
            return NO_RUN
        found = result.estimate(name, cell)
        message = estimate_text(found, metric(name).text)
        left = result.left_text(name, cell)
        return message + evidence.qualifier(runs=found.count if found else 0, asked=result.asked, left=left)

    return text


def estimate_text(found: stats.Estimate | None, write: Callable[[float | None], str]) -> str:
    """Return ``"1.23 ±0.05"``; both ends of an interval that is not even, as of a bootstrap."""
    if found is None:
        return "–"
    return Mean.of_estimate(found).text(write)


def _difference_of(result: SweepResult, name: str, notes: Footnotes) -> Callable[[Cell], str]:
    def text(cell: Cell) -> str:
        base = result.base_of(cell)
        if base is None:
            return ""
        found = result.difference(name, cell)
        write, separation = metric(name).difference_text, result.separation(name, cell, paired=False)
        text = difference_text(found, write, separation, notes)
        asked = 0 if found is None else result.asked
        left = result.left_text(name, cell, base)
        return text + evidence.qualifier(runs=found.estimate.count if found else 0, asked=asked, left=left)

    return text


WHATEVER = (
    *("steps differ", "paths differ", "flows differ", "ideals differ", "deadlines differ", "measures differ"),
    *("flows", "requests"),
)
"""Kinds of reasons that are marked at a difference with any interval, and at one without.

Its two numbers cannot be compared, or they are percentiles of too few flows.
"""


def difference_text(
    found: stats.Difference | None,
    write: Callable[[float | None], str],
    separation: Separation,
    notes: Footnotes,
) -> str:
    """Return ``"+0.12 ±0.05 (+9 %) *"``: the star where the two are separated.

    Where half of the seeds or more make no difference it is ``"+0.12 ±0.25 (+9 %; 2 of 5 seeds differ)"``,
    where one is far from all others ``"+0.12 ±0.25 (+9 %; 0.9 in 1 of 10 seeds)"``.
    Where the interval leaves out zero and there is another reason against a verdict, the number of that
    footnote replaces the star. Some footnotes stand whatever the interval.
    """
    if found is None:
        return "–"
    mean = found.estimate.mean
    odd = found.estimate.oddity
    text = ("+" if mean > 0 else "") + estimate_text(replace(found.estimate, oddity=None), write)
    facts = [] if found.relative is None else [_percent_text(found.relative)]
    if found.mostly_equal:
        facts.append(f"{found.unequal} of {found.estimate.count} seeds differ")
    elif odd is not None:
        facts.append(odd.text(write))
    if facts:
        text += f" ({'; '.join(facts)})"
    if separation.order:
        return f"{text} *"
    apart = found.estimate.is_apart_from_zero
    return text + notes.mark([one for one in separation.reasons if apart or one.kind in WHATEVER])


def _percent_text(share: float) -> str:
    """Return ``"+12 %"``, and a digit after the point where that would be 0 and the share is not."""
    percent = 100 * share
    return f"{percent:+.1f} %" if 0 < abs(percent) < 0.95 else f"{percent:+.0f} %"


def differences_note(
    how: str,
    notes: Footnotes,
    *,
    intervals: bool,
    found: Sequence[stats.Difference] = (),
    unfinished: bool = False,
    same: Sequence[str] = (),
    recorded: Sequence[str] = (),
) -> str:
    """Return what stands below a table of differences: what the star means, if there are intervals at all.

    `found`: the differences. `unfinished`: whether some flows did not finish. `same` are those whose runs
    have the same fingerprints, in words; `recorded` the titles of metrics that have a star between two of
    them.
    """
    alike = (
        f"Flows and ports are the same to the bit: {shortened(same)}. What sets them apart moved no packet."
        if same
        else ""
    )
    if recorded:
        alike += (
            f" A star between runs that are the same to the bit ({shortened(recorded)}) is of what they "
            "recorded of the packets, or computed from it."
        )
    finished = " Means are over the flows that finished: other ones in each line where some did not."
    finished = finished if unfinished else ""
    few = _few_differ_text(found)
    if not intervals:
        text = (
            f"Differences are taken {how}. There are no intervals, so "
            f"differences cannot be distinguished from chance.{finished}"
        )
        return "\n".join(filter(None, [text, alike, notes.text()]))
    text = (
        f"Differences are taken {how}; * separated: zero is not in the 95 % interval. Those without * "
        f"are not ranked: the runs do not tell which is lower.{finished}{_chance_text(found)}{few}"
    )
    return "\n".join(filter(None, [text, alike, notes.text()]))


MANY = 20
"""With this number of differences a star by chance is likely, and is written of."""


def _chance_text(found: Sequence[stats.Difference]) -> str:
    """Return how many stars are to be expected by chance among many differences, as a sentence; else ""."""
    count = sum(bool(one.estimate.half) for one in found)
    if count < MANY:
        return ""
    chance = round(count / 20)
    return f" Of {count} differences, about {chance} would have a star by chance if all were alike."


def _few_differ_text(found: Sequence[stats.Difference]) -> str:
    """Return what few seeds that differ, and oddities, mean for an interval, as sentences; "" without any."""
    few = any(one.mostly_equal for one in found)
    odd = stats.oddities_text(one.estimate.oddity for one in found if not one.mostly_equal)
    text = (
        "Where half of the seeds or more make no difference, the interval holds the mean in fewer than 95 of "
        "100 cases, and a star needs six that do, all of one sign."
    )
    return "".join(f" {one}" for one in (text if few else "", odd) if one)


def _differences(result: SweepResult) -> list[Table]:
    cells = [cell for cell in result.cells if result.base_of(cell) is not None]
    if not cells:
        return []
    title, notes = f"minus {result.against}", Footnotes()
    if result.report.along:
        found = [
            _over(result, f"{metric(name).title}, {title}", _difference_of(result, name, notes), only=cells)
            for name in result.metrics
        ]
    else:
        found = [
            _flat(result, result.metrics, title, lambda r, name: _difference_of(r, name, notes), only=cells)
        ]
    base = {cell.choice: result.base_of(cell) for cell in cells}
    pairs = [(cell, b, name) for cell in cells for name in result.metrics if (b := base[cell.choice])]
    apart = [one for cell, _, name in pairs if (one := result.difference(name, cell))]
    how = stats.pairing_text(apart)
    others = dict.fromkeys(filter(None, (result.other_flows(*pair) for pair in pairs)))
    if others and any(result.same_flows(cell, b) for cell, b, _ in pairs):
        how += f" (times of start depend on the scheme: {shortened(list(others))})"
    intervals = any(one.estimate.low is not None for one in apart)
    same = same_results((_name(cell), cell.runs.values()) for cell in result.cells)
    recorded = [
        metric(name).title
        for name in result.metrics
        if any(
            b is not None
            and are_same_bits(cell.runs.values(), b.runs.values())
            and result.separation(name, cell, paired=False).order
            for cell in cells
            for b in (base[cell.choice],)
        )
    ]
    left = any(result.left_text(name, cell, b) for cell, b, name in pairs if metric(name).completion)
    found[-1].note = differences_note(
        how, notes, intervals=intervals, found=apart, unfinished=left, same=same, recorded=recorded
    )
    return found


def _over(
    result: SweepResult, title: str, text: Callable[[Cell], str], *, only: Sequence[Cell] | None = None
) -> Table:
    """Return a table with the axis `along`, and those that advance with it, as columns."""
    along, rows_axis = result.report.along, result.rows_axis
    across = [axis.name for axis in result.axes if axis.name in result.together(along)]
    order = [axis.name for axis in result.axes if axis.name not in {rows_axis, *across}]
    order += [rows_axis] if rows_axis else []
    shown = {cell.choice for cell in (result.combinations if only is None else only)}
    heads: dict[Choice, str] = {}
    rows: dict[Choice, dict[Choice, str]] = {}
    for cell in result.combinations:
        column = tuple((name, cell.at(name)) for name in across)
        heads[column] = ", ".join(" ".join(pair) for pair in column) or title
        if cell.choice in shown:
            row = rows.setdefault(tuple((name, cell.at(name)) for name in order), {})
            row[column] = text(cell)
    body = [
        [*(name for _, name in row), *(of.get(column, "") for column in heads)] for row, of in rows.items()
    ]
    return Table([*order, *heads.values()], body, title=title if along else "", left=max(1, len(order)))


def _flat(
    result: SweepResult,
    names: Sequence[str],
    title: str,
    text: Callable[[SweepResult, str], Callable[[Cell], str]],
    *,
    only: Sequence[Cell] | None = None,
) -> Table:
    """Return a table with the metrics as columns."""
    axes = [axis.name for axis in result.axes]
    body = [
        [*(cell.at(name) for name in axes), *(text(result, name)(cell) for name in names)]
        for cell in (result.combinations if only is None else only)
    ]
    heads = [metric(name).title for name in names]
    return Table([*axes, *heads], body, title=title, left=len(axes))


def notes(result: SweepResult) -> list[str]:
    """Return notes on the numbers: how intervals are found, which flows count."""
    report = result.report
    found = [_runs_text(result)] if result.asked > 1 and result.cells else []
    counted = f"{result.choice.text()}; percentiles are of each run, then averaged."
    found.append(" ".join(filter(None, [counted, _no_effect_text(result, result.metrics)])))
    found += filter(None, [result.choice.counts_text(result.runs)])
    each = (result.estimate(name, cell) for cell in result.cells for name in result.metrics)
    found += filter(None, [stats.oddities_text(one.oddity for one in each if one)])
    flows = Flows(group=report.group)
    pooled = (evidence.pooled_text(name, result.runs, flows) for name in result.metrics)
    return found + list(filter(None, [*pooled, _ports_text(result)]))


def _ports_text(result: SweepResult) -> str:
    """Return which ports the metrics of queues are of, where ports of hosts are among them."""
    if not any("queue_histogram" in metric(name).measured_by for name in result.metrics):
        return ""
    return queue_ports.note([given.result_line(result, _name(cell), cell) for cell in result.cells])


def _runs_text(result: SweepResult) -> str:
    """Return over how many runs the means are, which may be fewer than requested."""
    counts = [len(cell.runs) for cell in result.cells]
    lowest, highest = min(counts), max(counts)
    span = str(lowest) if lowest == highest else f"{lowest} to {highest}"
    if lowest == result.asked:
        text = f"Means over {span} seeds"
    else:
        text = f"Means over {span} of the {result.asked} seeds, given with each mean of fewer runs"
    if highest < 2:
        return f"{text}; a single run has no interval."
    if result.report.interval == "t":
        return f"{text}; ± is half of the 95 % interval (Student's, over the seeds)."
    return (
        f"{text}; brackets hold both ends of the 95 % interval (by bootstrap, over the seeds), and ± is half "
        "of one that is even."
    )


def _no_effect_text(result: SweepResult, names: Sequence[str]) -> str:
    """Return which keys of the report have no effect on which of these metrics, "" if all have."""
    by_keys: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        by_keys.setdefault(tuple(result.no_effect(name)), []).append(name)
    parts = [
        f"{' and '.join(keys)} {'has' if len(keys) == 1 else 'have'} no effect on {', '.join(without)}"
        for keys, without in by_keys.items()
        if keys
    ]
    return f"Of [report], {'; '.join(parts)}." if parts else ""


def warnings(result: SweepResult) -> list[str]:
    """Return what deserves a look before the numbers are trusted."""
    found = []
    seeds = len(result.seeds)
    if seeds == 1:
        found.append(
            "one seed: no interval, and a difference cannot be distinguished from chance; try seeds = 5"
        )
    elif result.report.interval == "bootstrap" and seeds < stats.FEW_OF_BOOTSTRAP:
        found.append(
            f"{seeds} seeds: a bootstrap interval over fewer than {stats.FEW_OF_BOOTSTRAP} is too narrow and "
            f'decides nothing; use interval = "t", or {stats.FEW_OF_BOOTSTRAP} seeds or more'
        )
    elif seeds < stats.FEW:
        found.append(f"{seeds} seeds: {stats.FEW_TEXT}")
    found += alike_texts([(_name(cell), cell.runs.values()) for cell in result.cells])
    found += _same_runs(result)
    found += mixed_builds(result.runs)
    for name in result.metrics:
        if result.cells and all(
            v is None for cell in result.cells for v in result.values(name, cell).values()
        ):
            if any(over_time.has_infinite(run, name) for cell in result.cells for run in cell.runs.values()):
                found.append(f"{name} does not exist: values of the series are infinite")
                continue
            if text := _no_such_links(result, name):
                found.append(text)
                continue
            needed = _NEEDED.get("flow GROUP" if name.startswith("flow ") else split(name)[0])
            hint = f": it needs {needed}" if needed else _nothing_counts(result, name)
            found.append(f"{name} was not measured{hint}")
    for reason in evidence.of_endings(result.runs):
        if reason.kind == "runs":
            found.append(f"{reason.text}; what they finished is shown")
    left = sum(map(result.unfinished, result.cells))
    if left and any(map(evidence.of_finished_flows, result.metrics)):
        text = evidence.unfinished_text(left, result.runs)
        found.append(
            f"{text}: metrics of finished flows exclude them, which "
            f"favours schemes with many unfinished flows"
        )
    flows = Flows(group=result.report.group)
    of_steps = (evidence.steps_text(name, result.runs, flows) for name in result.metrics)
    found += [
        f"{text}: metrics of steps exclude the others, which favours schemes with many unfinished steps"
        for text in dict.fromkeys(filter(None, of_steps))
    ]
    of_sizes: dict[str, list[str]] = {}
    for name in result.metrics:
        if text := evidence.ended_text(name, result.runs):
            of_sizes.setdefault(text, []).append(name)
    found += [f"{', '.join(names)}: {text}" for text, names in of_sizes.items()]
    of_paths = (evidence.paths_text(name, result.runs) for name in result.metrics)
    found += [
        f"{text}: metrics of known paths exclude them, which favours schemes with many unknown paths"
        for text in dict.fromkeys(filter(None, of_paths))
    ]
    return found + _few_flows(result) + _not_pooled(result) + _unsteady(result) + _of_runs(result)


def _no_such_links(result: SweepResult, name: str) -> str:
    """Return that no run has the links of a metric such as ``drops host -> leaf``; "" if one has them."""
    kinds = list(dict.fromkeys(kind for run in result.runs for kind in run.summary.get("links") or ()))
    kind = name.removeprefix("drops ")
    if kind == name or not kinds or kind in kinds:
        return ""
    return f"{name}: no link of this kind: {nearest(kind, kinds)}known: {', '.join(kinds)}"


def _nothing_counts(result: SweepResult, name: str) -> str:
    """Return that no flow is left for a metric of finished flows, "" if it is something else."""
    if not evidence.of_finished_flows(name) or any(result.counted(name, cell) for cell in result.cells):
        return ""
    what = "request" if evidence.is_of_requests(name) else "flow"
    chosen = [key for key in metric(name).chosen_by if getattr(result.report, key)]
    by = f" with {' and '.join(chosen)} of [report]" if chosen else ""
    return f": no {what} that counts{by} finished"


def _of_runs(result: SweepResult) -> list[str]:
    """Return what runs themselves warn of, each once: in which combinations, and in how many runs."""
    cells: dict[run_warnings.Shape, list[Cell]] = {}
    pooled: dict[run_warnings.Shape, RunWarning] = {}
    for cell in result.cells:
        for shape, one in run_warnings.of_runs(cell.runs.values()).items():
            cells.setdefault(shape, []).append(cell)
            known = pooled.setdefault(shape, RunWarning(one.text, differs=one.differs))
            known.add(one.text, one.runs)
            known.differs |= one.differs
    found = []
    for shape, one in pooled.items():
        runs = sum(len(cell.runs) for cell in cells[shape])
        found.append(f"{_which(cells[shape], len(result.cells))}: {one.short}{one.of(runs, always=True)}")
    return found


def _few_flows(result: SweepResult) -> list[str]:
    """A percentile of few flows is one flow, or that of one busy period."""
    names: dict[tuple[str, str], list[str]] = {}
    for name in filter(evidence.needed, result.metrics):
        counts = [result.counted(name, cell) for cell in result.cells]
        if not any(counts):
            continue
        counted = evidence.counted_text(name, fewest := min(counts))
        if evidence.few_flows(name, fewest):
            names.setdefault((counted, "too few for that percentile"), []).append(name)
        elif result.asked > 1 and (short := evidence.short_runs(name, fewest)):
            wanted = f"too few for an interval of that percentile, which needs {short[0].text.split()[-1]}"
            names.setdefault((counted, wanted), []).append(name)
    found = [f"{', '.join(of)}: some runs have {counted}, {why}" for (counted, why), of in names.items()]
    runs = [run for cell in result.cells if len(cell.runs) > 1 for run in cell.runs.values()]
    return found + [
        f"{name}: {reason.text}"
        for name in result.metrics
        for reason in evidence.short_for_queues(name, runs)
    ]


def _same_runs(result: SweepResult) -> list[str]:
    """Return which combinations have the same run under several seeds."""
    cells: dict[str, list[Cell]] = {}
    for cell in result.cells:
        if text := same_runs_text(list(cell.runs.values())):
            cells.setdefault(text, []).append(cell)
    return [f"{_which(of, len(result.cells))}: {text}" for text, of in cells.items()]


def _not_pooled(result: SweepResult) -> list[str]:
    """Return where the percentile of all runs together is not in the interval of the mean of theirs."""
    found = []
    for name in filter(evidence.needed, result.metrics):
        cells = [
            cell
            for cell in result.cells
            if any(reason.kind == "pooled" for reason in result.reasons(name, cell))
        ]
        if cells:
            found.append(
                f"{_which(cells, len(result.cells))}: {name} of all runs together is not in the interval of "
                "the mean of the runs' own: the runs are too short for it"
            )
    return found


def _unsteady(result: SweepResult) -> list[str]:
    remarks: dict[str, list[Cell]] = {}
    for cell in result.cells:
        for text in dict.fromkeys(result.remark(cell, name) for name in result.metrics):
            if text:
                remarks.setdefault(text, []).append(cell)
    return [f"{_which(cells, len(result.cells))}: {text}" for text, cells in remarks.items()]


def _name(cell: Cell) -> str:
    return "/".join(variant for _, variant in cell.choice) or "the scenario"


def _which(cells: Sequence[Cell], of: int) -> str:
    named = [_name(cell) for cell in cells]
    shown = ", ".join(named[:3])
    return shown if len(cells) <= 3 else f"{len(cells)} of {of} combinations ({shown}, ...)"


def write(result: SweepResult) -> None:
    """Write ``points.csv``, a row a run, and ``table.csv``, a row a combination and metric."""
    # A variant is written as the sweep's file has it, in both.
    of_runs = [cell for cell in result.cells for _ in cell.runs]
    of_cells = [cell for cell in result.combinations for _ in result.metrics]
    points = _csv(result, [*OF_POINTS, *result.metrics], result.rows, of_runs)
    table = _csv(result, OF_ESTIMATES, result.estimates, of_cells)
    store.Store(result.path).write({store_files.POINTS: points, store_files.ESTIMATES: table})


def _csv(
    result: SweepResult, columns: Sequence[str], rows: Sequence[dict[str, Any]], cells: Sequence[Cell]
) -> str:
    """Return a column for each axis, then those of the rows."""
    axes = [axis.name for axis in result.axes]
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow([*axes, *columns])
    for row, cell in zip(rows, cells, strict=True):
        lines.writerow([*map(cell.at, axes), *(row[column] for column in columns)])
    return out.getvalue()
