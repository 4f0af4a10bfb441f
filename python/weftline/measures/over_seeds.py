"""What figures and tables show of a line of several seeds: none of it depends on the order of the seeds.

curves of shares      pooled: all samples of queues, or all finished flows, of all runs together
numbers in tables     the mean of the runs' own numbers with its 95 % interval, as of every metric
what happens over time, steps and the slowest flows: those of one run, and `drawn_seed` names it
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate

from weftline.measures import evidence, queue_ports
from weftline.measures.lines import Line, Mean
from weftline.measures.metrics import Flows
from weftline.measures.pooling import seed_of
from weftline.measures.readings import QUEUE_BIN_BYTES
from weftline.runs import Run

Curve = list[tuple[float, float]]
"""(value, share at or below it), both ascending."""
QUEUE_NUMBERS = ("p50", "p95", "p99", "p999", "max")


def queue_cdf(line: Line, *, without: Collection[str] = ()) -> Curve:
    """Return (bytes, share of the samples of all runs that are shorter) at upper edges of bins.

    Of all sampled ports but those of the hosts `without`.
    """
    every = [queue_ports.without(run, without) for run in line.runs]
    if len(every) == 1:
        return every[0]["cdf"] if every[0] else []
    steps: dict[float, int] = {}
    for found in every:
        if found:
            samples, before = found["percentiles"]["samples"], 0
            for size, share in found["cdf"]:
                count = round(share * samples)
                steps[size] = steps.get(size, 0) + count - before
                before = count
    total, seen, curve = sum(steps.values()), 0, []
    for size, count in sorted(steps.items()):
        seen += count
        curve.append((size, seen / total))
    return curve


def queue_texts(
    line: Line, write: Callable[[float | None], str], *, without: Collection[str] = ()
) -> list[str]:
    """Return `QUEUE_NUMBERS` over the seeds as text; nothing if no run measured its queues.

    Of all sampled ports but those of the hosts `without`.
    """
    every = [queue_ports.without(run, without) for run in line.runs]
    found = [queues["percentiles"] if queues else {} for queues in every]
    if not any(found):
        return []
    return [
        text(
            line,
            [numbers.get(name) for numbers in found],
            write,
            bin_width=0.0 if name == "max" else QUEUE_BIN_BYTES,
        )
        for name in QUEUE_NUMBERS
    ]


def text(
    line: Line,
    values: Sequence[float | None],
    write: Callable[[float | None], str],
    *,
    bin_width: float = 0.0,
) -> str:
    """Return the mean of a value of each run as text, with how many runs have it if not all do."""
    mean = Mean.of(values, line.interval, keys=line.keys, bin_width=bin_width)
    if mean is None:
        return "–"
    count = len(line.runs) if mean.count is None else mean.count
    return mean.text(write) + evidence.qualifier(runs=count, asked=max(len(line.runs), len(line.asked)))


def cumulative(line: Line, column: str, *, max_points: int = 300) -> Curve:
    """Return `Run.distribution` of the finished flows of all runs together."""
    if len(line.runs) == 1:
        return line.runs[0].distribution(column, group=line.group, max_points=max_points)
    counts: dict[float, int] = {}
    for run in line.runs:
        flows, before = run.completion_of(Flows(group=line.group))["count"], 0
        for value, share in run.distribution(column, group=line.group, max_points=0):
            up_to = round(share * flows)
            counts[value] = counts.get(value, 0) + up_to - before
            before = up_to
    values = sorted(counts)
    up_to_each = list(accumulate(counts[value] for value in values))
    return [(values[at], up_to_each[at] / up_to_each[-1]) for at in _kept(up_to_each, max_points)]


def _kept(up_to_each: Sequence[int], max_points: int) -> list[int]:
    """Return the places of the values that are kept of a curve, as the native `distribution` chooses them.

    Half of them at equal steps of the share, half at equal steps of the logarithm of the rest; the first and
    the last value are among them.
    """
    if not max_points or len(up_to_each) <= max_points:
        return list(range(len(up_to_each)))
    count, half = up_to_each[-1], max_points // 2
    ranks = {max(1, i * count // half) for i in range(half + 1)} if half else {count}
    ranks |= {max(1, count - int(count ** (1 - i / half))) for i in range(1, half)}
    return sorted({bisect_left(up_to_each, rank) for rank in ranks})


def pooled_text(lines: Sequence[Line], what: str) -> str:
    """Return ``"Samples of all seeds together."``, "" where each line is one run."""
    return f"{what} of all seeds together." if _are_several(lines) else ""


def means_text(lines: Sequence[Line]) -> str:
    """Return what the numbers of a table are, "" where each line is one run."""
    return "means over the seeds, with 95 % intervals" if _are_several(lines) else ""


def drawn_run(line: Line) -> Run:
    """Return the run that stands for a line where runs cannot be averaged."""
    return line.runs[0]


def drawn_seed(lines: Sequence[Line]) -> str:
    """Return ``"Only the run of seed 1 is shown."``, "" where each line is one run."""
    if not _are_several(lines):
        return ""
    seeds = {line.label: seed_of(drawn_run(line)) for line in lines}
    if len(set(seeds.values())) == 1:
        return f"Only the run of seed {min(seeds.values())} is shown."
    named = ", ".join(f"{label} seed {seed}" for label, seed in seeds.items())
    return f"Only one run of each is shown: {named}."


def _are_several(lines: Sequence[Line]) -> bool:
    return any(len(line.runs) > 1 for line in lines)
