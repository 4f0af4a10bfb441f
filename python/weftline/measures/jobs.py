"""Tables of jobs: how long collectives and requests took, next to their ideal time, and their bandwidths.

A step is one operation, a row of jobs.parquet. Steps that had not ended when the run did have no time; tables
state how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.measures.lines import Line, Mean
from weftline.measures.pooling import key_of
from weftline.measures.steps import (
    Job,
    has_scale_up,
    is_whole,
    job_names,
    job_of,
    kind,
    mean,
    rate,
    row_over_ideal,
    unbegun,
)
from weftline.terminal import Table

if TYPE_CHECKING:
    from weftline.runs import Run

MAX_STEPS = 12
"""Maximum number of steps that are listed individually after a run."""
BANDWIDTHS = (
    "algbw: data of every rank over the time of a step, or over the mean time of several; busbw: that times "
    "2 (n - 1) / n for an all-reduce, 1 for a broadcast or a reduce and (n - 1) / n for other operations, as "
    "nccl-tests define them."
)
DATA = (
    "data: of every rank; of a whole step what all ranks sent together, in their domains too; "
    "of an incast its flows."
)
TIME = (
    "time: what a step adds to its job, from its start, or from the end of the step before if that is later; "
    "time / ideal: from its start."
)
IDEAL = "ideal: a lower bound of the step alone on the network."
SCALE_UP = (
    " With scale_up_rate: ideal counts the links within domains; busbw may exceed the rate of a NIC, since "
    "it counts the bytes within domains too."
)


def table(lines: Sequence[Line]) -> Table | None:
    """Return a row for each job of each line and each of its operations, means over steps; None: no jobs."""
    several = len(lines) > 1
    columns = [
        *(["line"] if several else []),
        "job",
        "operation",
        "ranks",
        "data",
        "steps",
        "time",
        "slowest",
    ]
    columns += ["ideal", "time / ideal", "finish to finish", "algbw", "busbw", "last host"]
    result = Table(columns, title="Steps of jobs", left=3 if several else 2)
    for line in lines:
        for job, name in job_names(line.runs).items():
            of_job = [step for run in line.runs for step in run.steps if job_of(step) == job]
            label = [line.label] if several else []
            if not of_job:
                steps = sum(unbegun(run, job[1], job[0]) for run in line.runs)
                count = columns.index("steps") - len(label) - 1
                row = (
                    ["–"] * count + [f"0 of {steps:,}"] + ["–"] * (len(columns) - columns.index("steps") - 1)
                )
                result.rows.append([*label, name, *row])
            for chosen in _kinds(of_job):
                result.rows.append([*label, name, *_row(line.runs, job, chosen)])
    if not result.rows:
        return None
    inside = " In a domain: no message crosses the network." if _is_inside(lines) else ""
    seeds = " over the seeds" if any(len(line.runs) > 1 for line in lines) else ""
    last = "last host: it ended most steps, and how many."
    scale_up = SCALE_UP if any(has_scale_up(run) for line in lines for run in line.runs) else ""
    result.note = f"Means over steps{seeds}. {TIME} {DATA} {IDEAL} {BANDWIDTHS} {last}{inside}{scale_up}"
    return result


Choice = Callable[[dict[str, Any]], bool]
"""Which rows of jobs.parquet are meant."""


def _kinds(of_job: Sequence[dict[str, Any]]) -> list[Choice]:
    """Return the rows of the table of one job: its operations, and the parts of a whole job by kind and size.

    Sizes that are many are one row.
    """
    parts = [step for step in of_job if not is_whole(step)]
    if len(parts) == len(of_job):
        return _alike(of_job, lambda step: step["operation"])
    by_size = _alike(parts, lambda step: (kind(step), step["bytes"]))
    return [is_whole, *(by_size if len(by_size) <= MAX_STEPS else _alike(parts, kind))]


def _alike(rows: Sequence[dict[str, Any]], key: Callable[[dict[str, Any]], object]) -> list[Choice]:
    def having(value: object) -> Choice:
        return lambda step: not is_whole(step) and key(step) == value

    return [having(value) for value in dict.fromkeys(map(key, rows))]


def _is_inside(lines: Sequence[Line]) -> bool:
    return any(kind(step)[2] for line in lines for run in line.runs for step in run.steps)


def _row(runs: Sequence[Run], job: Job, is_chosen: Choice) -> list[str]:
    """Return the row of some operations of a job, after the name of the job."""

    def chosen(run: Run) -> list[dict[str, Any]]:
        return [step for step in run.steps if job_of(step) == job and is_chosen(step)]

    steps = [step for run in runs for step in chosen(run)]
    done = [step for step in steps if step["time_ns"] is not None]
    is_part, keys = bool(steps[0].get("part")), list(map(key_of, runs))
    asked = len(steps) + (0 if is_part else sum(unbegun(run, job[1], job[0]) for run in runs))

    def text(
        read: Callable[[dict[str, Any]], float | None],
        fold: Callable[[list[float]], float],
        write: Callable[[float | None], str],
    ) -> str:
        values = [
            [x for step in chosen(run) if step["time_ns"] is not None and (x := read(step)) is not None]
            for run in runs
        ]
        found = Mean.of([fold(of_run) if of_run else None for of_run in values], keys=keys)
        return found.text(write) if found else "–"

    def bandwidth(key: str) -> str:
        found = Mean.of([rate(chosen(run), key) for run in runs], keys=keys)
        return found.text(quantities.rate_text) if found else "–"

    def column(key: str) -> Callable[[dict[str, Any]], float | None]:
        return lambda step: step[key]

    times = quantities.time_text
    hosts = (step["last_host"] for step in done)
    lasts = Counter(host for host in hosts if host is not None).most_common(1)
    return [
        f"{steps[0]['operation']}{' in a domain' if kind(steps[0])[2] else ''}",
        _range([step["ranks"] for step in steps], str),
        _range([step["bytes"] for step in steps], quantities.bytes_text),
        f"{len(done):,}" if len(done) == asked else f"{len(done):,} of {asked:,}",
        text(column("time_ns"), mean, times),
        text(column("time_ns"), max, times),
        text(column("ideal_ns"), mean, times),
        text(row_over_ideal, mean, quantities.digits),
        text(column("finish_to_finish_ns"), mean, times),
        bandwidth("algbw_bps"),
        bandwidth("busbw_bps"),
        f"{lasts[0][0]} ({lasts[0][1]:,})" if lasts else "–",
    ]


def _range(values: Sequence[float], write: Callable[[float], str]) -> str:
    low, high = write(min(values)), write(max(values))
    return low if low == high else f"{low} to {high}"


def steps_table(run: Run, *, max_steps: int = MAX_STEPS) -> Table | None:
    """Return a row for each step of a run, None where there are none or more than `max_steps`."""
    if not 0 < len(run.steps) <= max_steps:
        return None
    columns = [
        "job",
        "step",
        "started",
        "time",
        "ideal",
        "time / ideal",
        "finish to finish",
        "algbw",
        "busbw",
    ]
    result = Table([*columns, "last host"], title="Step by step", left=2)
    result.note = (
        "algbw, busbw: over the time from the start of the step, in which it may overlap the step before."
    )
    times, rates, names = quantities.time_text, quantities.rate_text, job_names([run])
    for step in run.steps:
        ideal, time = step["ideal_ns"], step["time_ns"]
        result.rows.append(
            [
                names[job_of(step)],
                str(step["step"]),
                times(step["start_ns"]),
                "not ended" if time is None else times(time),
                times(ideal),
                quantities.digits(None if time is None else row_over_ideal(step)),
                times(step["finish_to_finish_ns"]),
                rates(step["algbw_bps"]),
                rates(step["busbw_bps"]),
                "–" if step["last_host"] is None else str(step["last_host"]),
            ]
        )
    return result
