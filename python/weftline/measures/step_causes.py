"""Where the time of a whole step of a job went: computing, communication, waiting for other ranks.

A step of a training job, or the job of a file, is a row of jobs.parquet, and ranks.parquet has a row for each
of its ranks. Of every rank the time of all steps of a job is

- computing: at least one of its streams computed. For every time in which none did, what counts is the event
  that let the rank compute again:
- waiting for senders: until the message that let it was sent, as in a pipeline that fills;
- waiting for the slowest: until the last rank had joined the collective operation whose end let it; and after
  the last step from the own end to that of the last rank;
- exposed communication: the rest.

The four add up to that time. Over the number of steps they are those of a step.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.measures import stats
from weftline.measures.steps import is_whole, job_names, job_of, mean
from weftline.terminal import Table

if TYPE_CHECKING:
    from weftline.measures.lines import Line, Mean
    from weftline.runs import Run

NOTE = (
    "Means over ranks and steps, which add up to the time. A rank that did not compute waited for what came "
    "before it computed again: for the sender of a message until it was sent, for the slowest rank of a "
    "collective operation until it had joined; the rest is exposed communication. The slowest: also after "
    "the own end of the last step. Computes longest: the rank with the longest computation next to ranks "
    "that have the same work, and how many times the median of these it is; a dash: none takes 1 % longer. "
    "Last rank: it ended the last step, which does not make it the cause."
)
STAGES_NOTE = (
    " Ranks of one pipeline stage have the same work. Longest stage: the stage whose ranks compute longest, "
    "and how many times the median of all stages that is. It has more work than the others, such as the last "
    "one with the output layer, or its ranks are slow."
)


def causes(run: Run) -> list[dict[str, Any]]:
    """Return a row for each job with whole steps.

    It has the number of the steps that ended for all ranks, and of one of them, in means over steps and
    ranks, the time and the four causes, in ns.
    """
    ended = [step for step in run.steps if is_whole(step) and step["time_ns"] is not None]
    if not ended:
        return []
    by_step: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in run.ranks.to_dicts():
        by_step.setdefault((row["workload"], row["step"]), []).append(row)
    found, names = [], job_names([run])
    for workload in dict.fromkeys(step["workload"] for step in ended):
        job = [step for step in ended if step["workload"] == workload]
        steps = [by_step.get((workload, step["step"]), []) for step in job]
        steps = [rows for rows in steps if rows and all(row["finish_ns"] is not None for row in rows)]
        rows = [row for of_step in steps for row in of_step]
        if rows and all(row.get("unsent_ns") is not None for row in rows):
            named = {"job": names[job_of(job[0])], "operation": job[0]["operation"]}
            stages = _stages(run, workload)
            found.append(named | {"steps": len(steps)} | _causes(steps) | _computes_longest(steps, stages))
    return found


def _stages(run: Run, workload: int) -> int:
    """Return the number of pipeline stages of a job: each is a block of ranks that have the same work.

    1 for a job of a file, of whose ranks nothing is known.
    """
    workloads = run.scenario.get("workload", [])
    of = workloads[workload] if workload < len(workloads) else {}
    return int(of.get("pipeline", 1)) if of.get("kind") == "training" else 1


def _causes(steps: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return time and causes of one of these steps, each the rows of its ranks, in their order."""
    rows, count = [row for step in steps for row in step], len(steps)

    def of_step(value: Callable[[dict[str, Any]], float]) -> float:
        return mean([value(row) for row in rows])

    begin, last = min(row["start_ns"] for row in steps[0]), max(steps[-1], key=lambda row: row["finish_ns"])
    before = mean([row["start_ns"] - begin for row in steps[0]])
    after = mean([last["finish_ns"] - row["finish_ns"] for row in steps[-1]])
    time = (last["finish_ns"] - begin) / count
    compute = of_step(lambda row: row["finish_ns"] - row["start_ns"] - row["exposed_ns"])
    senders = of_step(lambda row: row["unsent_ns"])
    slowest = of_step(lambda row: row["unjoined_ns"]) + (before + after) / count
    return {
        "time_ns": time,
        "computing_ns": compute,
        "communication_ns": time - compute - senders - slowest,
        "senders_ns": senders,
        "waiting_ns": slowest,
        "last_rank": last["rank"],
    }


def _computes_longest(steps: list[list[dict[str, Any]]], stages: int) -> dict[str, Any]:
    """Return the rank that computes longest next to the others of its stage, and the longest stage.

    Times are means over these steps, in ns. The rank is None where each stage has one rank only, which
    nothing is compared with, and the stage where there is one. The time of a stage is the lower median of its
    ranks: one slow rank of two does not make it.
    """
    by_rank: dict[int, list[float]] = {}
    for row in (row for step in steps for row in step):
        computing = row["finish_ns"] - row["start_ns"] - row["exposed_ns"]
        by_rank.setdefault(row["rank"], []).append(computing)
    times = {rank: mean(all_steps) for rank, all_steps in by_rank.items()}
    size = max(1, len(times) // stages)
    of_stage: dict[int, dict[int, float]] = {}
    for rank in sorted(times):
        of_stage.setdefault(rank // size, {})[rank] = times[rank]
    ratios = [
        (_ratio(own, mates), rank, own, mates)
        for ranks in of_stage.values()
        for rank, own in ranks.items()
        if (mates := _median_of_others(ranks, rank)) is not None
    ]
    # Where the others do not compute at all, several ratios are infinite: then the time itself counts.
    slowest = max(ratios, default=None, key=lambda ratio: (ratio[0], ratio[2]))
    stage_times = {stage: statistics.median_low(ranks.values()) for stage, ranks in of_stage.items()}
    longest = max(stage_times, key=lambda stage: stage_times[stage]) if len(stage_times) > 1 else None
    return {
        "stages": len(stage_times),
        "longest_rank": slowest and slowest[1],
        "longest_computing_ns": slowest and slowest[2],
        "mates_computing_ns": slowest and slowest[3],
        "longest_stage": longest,
        "longest_stage_ranks": None if longest is None else list(of_stage[longest]),
        "longest_stage_computing_ns": None if longest is None else stage_times[longest],
        "median_stage_computing_ns": None if longest is None else statistics.median(stage_times.values()),
    }


def _median_of_others(ranks: dict[int, float], rank: int) -> float | None:
    """Return the median computing time of the other ranks of a stage; None: there are none."""
    others = [time for other, time in ranks.items() if other != rank]
    return statistics.median(others) if others else None


def _ratio(time: float, other: float) -> float:
    return time / other if other else (math.inf if time else 1.0)


def table(run: Run, *, name: str = "") -> Table | None:
    """Return a row for each job with whole steps of a run; None: there are none. `name`: which run it is."""
    rows = causes(run)
    if not rows:
        return None
    columns = ["job", "operation", "steps", "time", "computing", "exposed communication"]
    columns += ["waiting for senders", "waiting for the slowest", "computes longest"]
    has_stages = any(row["stages"] > 1 for row in rows)
    columns += ["longest stage", "last rank"] if has_stages else ["last rank"]
    note = NOTE + (STAGES_NOTE if has_stages else "")
    title = f"Where the time of steps went{name and ', '}{name}"
    result = Table(columns, title=title, left=2, note=note)
    for row in rows:
        keys = ("computing_ns", "communication_ns", "senders_ns", "waiting_ns")
        parts = [row[key] for key in keys]
        shown = [f"{quantities.time_text(part)} ({part / row['time_ns']:.0%})" for part in parts]
        time = quantities.time_text(row["time_ns"])
        steps = f"{row['steps']:,}"
        ends = [_longest_text(row), *([_stage_text(row)] if has_stages else []), str(row["last_rank"])]
        result.rows.append([row["job"], row["operation"], steps, time, *shown, *ends])
    return result


PARTS = ("time_ns", "computing_ns", "communication_ns", "senders_ns", "waiting_ns")
"""The time of a step, and the four causes that add up to it."""


def means(line: Line) -> list[tuple[str, str, dict[str, Mean]]]:
    """Return each job of the runs of a line with its operation: means of `PARTS` over the seeds."""
    from weftline.measures.lines import Mean

    of_runs = [{(row["job"], row["operation"]): row for row in causes(run)} for run in line.runs]
    found = []
    for job, operation in dict.fromkeys(key for rows in of_runs for key in rows):
        own = [rows.get((job, operation)) for rows in of_runs]
        of_parts = {
            key: Mean.of([row[key] if row else None for row in own], line.interval, keys=line.keys)
            for key in PARTS
        }
        found.append((job, operation, {key: mean for key, mean in of_parts.items() if mean}))
    return found


def means_json(line: Line) -> list[dict[str, Any]]:
    """Return `means` as JSON: each with half of its 95 % interval and the number of seeds."""
    return [
        {"job": job, "operation": operation}
        | {
            key: {"value": mean.value, "interval": mean.interval, "seeds": mean.count}
            for key, mean in parts.items()
        }
        for job, operation, parts in means(line)
    ]


def means_table(line: Line, *, name: str = "") -> Table | None:
    """Return `means` as a table; None: there are none. `name`: which line it is."""
    rows = means(line)
    if not rows:
        return None
    columns = ["job", "operation", "time", "computing", "exposed communication"]
    columns += ["waiting for senders", "waiting for the slowest"]
    title = f"Where the time of steps went{name and ', '}{name}, over the seeds"
    counts = sorted({mean.count or 0 for *_, parts in rows for mean in parts.values()})
    note = f"Means over {stats.seeds_text(counts)}; ±: half of the 95 % interval."
    result = Table(columns, title=title, left=2, note=note)
    for job, operation, parts in rows:
        shown = [parts[key].text(quantities.time_text) if key in parts else "–" for key in PARTS]
        result.rows.append([job, operation, *shown])
    return result


def _longest_text(row: dict[str, Any]) -> str:
    """Return the rank that computes longest, with its time over that of ranks with the same work.

    A dash where these are alike.
    """
    if row["longest_rank"] is None:
        return "one rank a stage" if row["stages"] > 1 else "–"
    ratio = _ratio(row["longest_computing_ns"], row["mates_computing_ns"])
    if ratio <= 1.01:
        return "–"
    return f"rank {row['longest_rank']}{_ratio_text(ratio)}"


def _stage_text(row: dict[str, Any]) -> str:
    """Return the stage whose ranks compute longest, with its time over the median of all stages."""
    if row["longest_stage"] is None:
        return "–"
    ratio = _ratio(row["longest_stage_computing_ns"], row["median_stage_computing_ns"])
    if ratio <= 1.01:
        return "–"
    ranks = row["longest_stage_ranks"]
    which = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]}-{ranks[-1]}"
    return f"stage {row['longest_stage']}, {which}{_ratio_text(ratio)}"


def _ratio_text(ratio: float) -> str:
    return f" ({ratio:.2f} x)" if math.isfinite(ratio) else ""
