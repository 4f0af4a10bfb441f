"""What lines are compared by, and whether two of them are separated there.

A `Subject` is one number of a run: the p99 slowdown of the flows up to a size, that of all flows, their
median, the p99 of queues. Two lines are separated by it where the difference of runs under the same seed, on
the same flows, has a 95 % interval without zero and there is no reason against either (see `evidence`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weftline import quantities
from weftline.measures import evidence, judgements, stats, steps
from weftline.measures.flow_choice import FlowChoice
from weftline.measures.judgements import Reason, Separation
from weftline.measures.lines import PERCENTILES, Line, Mean
from weftline.measures.metrics import Flows, metric
from weftline.measures.pooling import keys_of, same_traffic, seed_of, shortened
from weftline.measures.readings import OF_FLOWS
from weftline.runs import Run

Values = Mapping[int, float | None]


@dataclass(frozen=True)
class Subject:
    """One number that lines are compared by."""

    title: str
    write: Callable[[float | None], str]
    values: Callable[[Line], Values]
    """Of each run of a line, by seed."""
    reasons: Callable[[Line], list[Reason]]
    """Reasons against a verdict on it."""
    left: Callable[[Line], str]
    """What it leaves out because it did not finish, as `evidence.left_text` says it."""
    differ: Callable[[Line, Line], list[Reason]] = lambda line, other: []
    """Reasons against a verdict on a difference of two lines alone."""
    whole: bool = True
    """Whether it is of all flows, not of some sizes."""
    bin_width: float = 0.0
    """Width of the bins whose lower edges its values are; 0: they are exact."""
    other_flows: Callable[[Line, Line], str] = lambda line, other: ""
    """Under which seed it counts other flows in two lines; "" if it counts the same."""

    def mean(self, line: Line) -> Mean | None:
        """Return the mean over a line's runs."""
        values = self.values(line)
        keys = keys_of(line.runs)
        return Mean.of(
            list(values.values()),
            line.interval,
            keys=[keys[seed] for seed in values],
            bin_width=self.bin_width,
        )

    def is_paired(self, line: Line, other: Line) -> bool:
        """Return whether it is of the same flows in two lines, under each seed that both have."""
        return same_traffic(line.runs, other.runs) and not self.other_flows(line, other)

    def difference(self, line: Line, other: Line) -> stats.Difference | None:
        """Return the number of a line minus that of another: by seed where both carried the same flows."""
        ours, theirs = self.values(line), self.values(other)
        distinct = len(ours) == len(line.runs) and len(theirs) == len(other.runs)
        return stats.difference(
            ours,
            theirs,
            method=line.interval,
            paired=distinct and self.is_paired(line, other),
            keys=(keys_of(line.runs), keys_of(other.runs)),
            bin_width=self.bin_width,
        )

    def between(self, line: Line, other: Line, *, paired: bool = True) -> Separation:
        """Return how a line stands to another one; see `judgements.separated`."""
        doubts = [*self.reasons(line), *self.reasons(other), *self.differ(line, other)]
        found = self.difference(line, other)
        return judgements.separated(found, evidence.of_difference(found, doubts), paired=paired)


def _ideals_decide(
    subject: Subject, name: str, line: Line, other: Line, chosen: Callable[[Run], Flows]
) -> list[Reason]:
    return evidence.ideals_decide(
        name,
        line.runs,
        other.runs,
        subject.values(line),
        subject.values(other),
        chosen=chosen,
        method=line.interval,
        paired=subject.is_paired(line, other),
    )


def of_metric(name: str, title: str = "") -> Subject:
    """Return a metric of `weftline.measures.metrics` as a subject."""

    def values(line: Line) -> Values:
        return dict(zip(map(seed_of, line.runs), line.values(name), strict=True))

    def reasons(line: Line) -> list[Reason]:
        counted = line.counts.counted(line.runs, name) if evidence.needed(name) else None
        return evidence.against(
            line.runs,
            name,
            flows=line.counts.flows(name),
            asked=len(line.asked),
            counted=counted,
            left=_left(line, name),
            known=sum(value is not None for value in line.values(name)),
            undecided=line.counts.undecided_text(line.runs, name),
            **line.counts.doubts(line.runs, name),
            values=line.values(name),
            pooled=line.counts.pooled(line.runs, name, counted),
            method=line.interval,
        )

    def left(line: Line) -> str:
        return line.left_text(name)

    def differ(line: Line, other: Line) -> list[Reason]:
        found = evidence.differ(name, line.runs, other.runs, line.counts.flows(name))
        found += _ideals_decide(subject, name, line, other, lambda run: line.counts.of_run(run, name))
        return found + _chosen_differ(line, other, metric(name).chosen_by)

    def other_flows(line: Line, other: Line) -> str:
        return line.counts.other_flows(line.runs, other.runs, name)

    title, width = title or metric(name).title, metric(name).bin_width
    subject = Subject(
        title, metric(name).text, values, reasons, left, differ, bin_width=width, other_flows=other_flows
    )
    return subject


def _left(line: Line, name: str) -> int:
    return line.unfinished(name) if evidence.of_finished_flows(name) else 0


def _chosen_differ(line: Line, other: Line, chosen_by: Sequence[str] = OF_FLOWS) -> list[Reason]:
    """Return the reason that two lines give of which other flows count."""
    found = []
    for one, theirs in ((line.counts, other.counts), (other.counts, line.counts)):
        parts = {
            "warmup": one.warmup != theirs.warmup,
            "drain": one.drain != theirs.drain,
            "sizes": (one.min_size, one.max_size) != (theirs.min_size, theirs.max_size),
            "group": one.group != theirs.group,
        }
        if any(parts[key] for key in chosen_by if key in parts):
            found.append(one.text())
    return [Reason("flows differ", " / ".join(found))] if found else []


def of_size(decade: int, percentile: str = "p99") -> Subject:
    """Return a percentile of the slowdown of the flows of one power of ten, as `Line.by_decade` has it."""
    name = f"slowdown_{percentile}"

    def rows(line: Line) -> dict[int, dict[str, Any]]:
        found = {}
        for run in line.runs:
            for row in line.slowdown(run, scheme="decades")["bins"]:
                if row["count"] and decade_of(row["size_bytes"]) == decade:
                    found[seed_of(run)] = row
        return found

    def values(line: Line) -> Values:
        of = rows(line)
        return {seed_of(run): of.get(seed_of(run), {}).get(percentile) for run in line.runs}

    def choice(line: Line) -> FlowChoice:
        sizes = flows_of(decade, line)
        return replace(line.by_size, min_size=sizes.min_size, max_size=sizes.max_size)

    def pooled(line: Line, counted: int) -> float | None:
        return choice(line).pooled(line.runs, name, counted)

    def unfinished(line: Line) -> int:
        return line.counts.unfinished_of(line.runs, flows_of(decade, line))

    def reasons(line: Line) -> list[Reason]:
        counts = [row["count"] for row in rows(line).values()]
        counted = min(counts, default=0) if len(counts) == len(line.runs) else 0
        return evidence.against(
            line.runs,
            name,
            flows=flows_of(decade, line),
            asked=len(line.asked),
            counted=counted,
            left=unfinished(line),
            **choice(line).doubts(line.runs, name),
            values=list(values(line).values()) if len(values(line)) == len(line.runs) else None,
            pooled=pooled(line, counted),
            method=line.interval,
        )

    below = quantities.bytes_text(10 ** (decade - 1))
    title = f"{metric(name).title}, flows over {below} up to {quantities.bytes_text(10**decade)}"

    def left(line: Line) -> str:
        return evidence.left_text(name, line.runs, flows_of(decade, line), unfinished_flows=unfinished(line))

    def differ(line: Line, other: Line) -> list[Reason]:
        found = evidence.differ(name, line.runs, other.runs, flows_of(decade, line))
        found += _ideals_decide(subject, name, line, other, lambda run: choice(line).of_run(run, name))
        return found + _chosen_differ(line, other)

    def other_flows(line: Line, other: Line) -> str:
        return choice(line).other_flows(line.runs, other.runs, name)

    subject = Subject(
        title, quantities.digits, values, reasons, left, differ, whole=False, other_flows=other_flows
    )
    return subject


def decade_of(size_bytes: float) -> int:
    """Return the power of ten that a bin of flow sizes ends at or below."""
    return math.ceil(math.log10(max(1, size_bytes)))


def flows_of(decade: int, line: Line) -> Flows:
    """Return the flows of one power of ten that count for a line."""
    below = 10 ** (decade - 1) if decade > 0 else 0
    chosen = line.chosen
    low, high = (chosen.min_size, chosen.max_size) if chosen else (0, None)
    highest = 10**decade if high is None else min(high, 10**decade)
    return Flows(min_size=max(low, 1 + below), max_size=highest, group=line.group)


def fewest(lines: Sequence[Line], decade: int) -> int:
    """Return how many flows of one power of ten the run with the fewest has."""
    return min(
        sum(
            row["count"]
            for row in line.slowdown(run, scheme="decades")["bins"]
            if decade_of(row["size_bytes"]) == decade
        )
        for line in lines
        for run in line.runs
    )


def _has_many(line: Line, decade: int) -> bool:
    """Return whether a line has enough flows of one power of ten for a page to compare lines by them."""
    return fewest([line], decade) >= min(20, line.flows_counted / 50)


def few_flows(lines: Sequence[Line], decades: Sequence[int]) -> str:
    """Return for which percentiles of which sizes some run has too few flows, "" if all have enough."""
    counts = {decade: fewest(lines, decade) for decade in decades}
    parts = []
    for percentile in PERCENTILES:
        name = f"slowdown_{percentile}"
        sizes = [d for d in decades if evidence.few_flows(name, counts[d])]
        few = [f"≤ {quantities.bytes_text(10**d)} ({counts[d]:,})" for d in sizes]
        of_all = min(line.flows_counted for line in lines)
        few += [f"all ({of_all:,})"] if evidence.few_flows(name, of_all) else []
        if few:
            named = ", ".join(few)
            parts.append(f"{percentile} needs {evidence.needed(name)} in a run, {named}")
    return "; ".join(parts)


def percentile_warnings(lines: Sequence[Line]) -> list[str]:
    """Return which percentiles of slowdowns and queues have intervals that cannot be relied on, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in (*(f"slowdown_{percentile}" for percentile in PERCENTILES), "queue_p99"):
        subject = of_metric(name)
        for line in lines:
            is_shown = line.has_flows and line.metric(name) is not None
            for reason in subject.reasons(line) if len(line.runs) > 1 and is_shown else ():
                if reason.kind in ("short", "pooled"):
                    found.setdefault((subject.title, reason.text), []).append(line.label)
    return [f"{title}, {shortened(labels)}: {text}" for (title, text), labels in found.items()]


def subjects(lines: Sequence[Line]) -> list[Subject]:
    """Return what lines are compared by on a page, where all have it."""
    decades = [set(line.by_decade()) for line in lines]
    common = sorted(set.intersection(*decades)) if decades else []
    sizes = [decade for decade in common if all(_has_many(line, decade) for line in lines)]
    found = [of_size(decade) for decade in sizes] if len(sizes) > 1 else []
    if all(steps.has_jobs(run) and line.metric("step_mean") for line in lines for run in line.runs):
        found.append(of_metric("step_mean"))
    found.append(of_metric("slowdown_p99", "slowdown, p99, all flows"))
    found.append(of_metric("slowdown_p50", "slowdown, median, all flows"))
    if all(line.metric("queue_p99") for line in lines):
        found.append(of_metric("queue_p99"))
    return found
