"""Sentences on lines: warnings, which flows count, what slowdown means, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence

from weftline.measures import evidence, pooling, run_warnings
from weftline.measures.flow_choice import FlowChoice
from weftline.measures.lines import Line
from weftline.measures.metrics import Flows
from weftline.measures.pooling import shortened

_IDEALS = {
    "alone": "what the flow takes alone on its path: all its packets with headers and "
    "telemetry, back to back, plus the return of the last acknowledgement",
    "hpcc": "as the HPCC authors define it, base RTT plus all bytes with 48 B headers at the slowest link; "
    "telemetry is not in it, so its cost counts against a scheme",
    "phost": "as the pHost authors define it (OPT), without the last acknowledgement",
}


def warnings_of(lines: Sequence[Line]) -> list[str]:
    """Return what deserves a look before lines are trusted: how they were pooled, what their runs say."""
    found: dict[str, None] = {}
    for text in pooling.alike_texts([(line.label, line.runs) for line in lines]):
        found[text] = None
    for line in lines:
        if text := pooling.same_runs_text(line.runs):
            found[f"{line.label}: {text}"] = None
        for text in line.warnings:
            named = text if str(line.runs[0].out) in text else f"{line.label}: {text}"
            found[type(text)(named)] = None
        ends = [run for run in line.runs if run.summary.get("status") not in ("done", None)]
        for run in ends:
            message = f"the run in {run.out} is {run.summary.get('status')}; what it has is shown"
            found[f"{line.label}: {message}"] = None
        for one in run_warnings.of_runs(line.runs).values():
            found[f"{line.label}: {one.text}{one.of(len(line.runs))}"] = None
    return list(found)


def counted_texts(lines: Sequence[Line]) -> list[str]:
    """Return which flows count for which lines, where these are not all."""
    by_choice: dict[FlowChoice, list[str]] = {}
    for line in lines:
        by_choice.setdefault(line.by_size, []).append(line.label)
    if all(choice.is_all for choice in by_choice):
        return []
    if len(by_choice) == 1:
        choice = next(iter(by_choice))
        counts = choice.counts_text([run for line in lines for run in line.runs])
        text = f"{choice.text()}, in slowdowns, completion times and all that is computed from flows."
        return list(filter(None, [text, counts]))
    return [f"{shortened(labels)}: {small(choice.text())}." for choice, labels in by_choice.items()]


def small(text: str) -> str:
    return text[:1].lower() + text[1:]


def ideal_text(lines: Sequence[Line]) -> str:
    """Return what slowdown means in these runs, as a sentence for the caption of a figure."""
    kinds = dict.fromkeys(
        str(run.scenario.get("measure", {}).get("ideal", "alone")) for line in lines for run in line.runs
    )
    ideal = "; or ".join(_IDEALS.get(kind, kind) for kind in kinds)
    return f"Slowdown: completion time over the ideal one. Ideal: {ideal}.{left_out(lines)}"


def finished_text(lines: Sequence[Line]) -> str:
    """Return which flows a curve of all finished ones is of, and how many are left out, as a caption."""
    chosen = any(not line.by_size.is_all for line in lines)
    of_all = ", of all sizes and times of start" * chosen
    return f"Flows that finished{of_all}.{left_out(lines, of_all=True)}"


def left_out(lines: Sequence[Line], *, of_all: bool = False) -> str:
    """Return how many flows of which lines did not finish and are left out, as a sentence to append.

    Flows that count, or with `of_all` those of the line's group.
    """
    counts = [
        (line, evidence.unfinished(line.runs, Flows(group=line.group)))
        if of_all
        else (line, line.by_size.unfinished(line.runs))
        for line in lines
    ]
    parts = [
        f"{evidence.unfinished_text(left, line.runs)} of {_named(line)}" for line, left in counts if left
    ]
    return f" Left out: {'; '.join(parts)}." if parts else ""


def unknown_paths(lines: Sequence[Line], name: str) -> str:
    """Return how many paths of which lines a metric leaves out as they never became known, as a sentence."""
    found = [(line, evidence.paths_text(name, line.runs)) for line in lines]
    parts = [f"{text} of {_named(line)}" for line, text in found if text]
    return f"Left out: {'; '.join(parts)}." if parts else ""


def _named(line: Line) -> str:
    return f"{line.label}, {line.place}" if line.place else line.label
