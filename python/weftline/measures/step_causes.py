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

import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.measures.lines import Line
from weftline.measures.steps import is_whole, mean
from weftline.terminal import Table

if TYPE_CHECKING:
    from weftline.runs import Run

NOTE = (
    "Means over ranks and steps, which add up to the time. A rank that did not compute waited for what came "
    "before it computed again: for the sender of a message until it was sent, for the slowest rank of a "
    "collective operation until it had joined; the rest is exposed communication. The slowest: also after "
    "the own end of the last step. Computes longest: the rank with the longest computation, and how many "
    "times the median of all ranks it is; a dash: none takes 1 % longer than the median. Last rank: it ended "
    "the last step, which does not make it the cause."
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
    found = []
    for workload in dict.fromkeys(step["workload"] for step in ended):
        job = [step for step in ended if step["workload"] == workload]
        steps = [by_step.get((workload, step["step"]), []) for step in job]
        steps = [rows for rows in steps if rows and all(row["finish_ns"] is not None for row in rows)]
        rows = [row for of_step in steps for row in of_step]
        if rows and all(row.get("unsent_ns") is not None for row in rows):
            named = {"job": job[0]["job"], "operation": job[0]["operation"]}
            found.append(named | {"steps": len(steps)} | _causes(steps))
    return found


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
    longest_rank, longest, median = _computes_longest(steps)
    return {
        "time_ns": time,
        "computing_ns": compute,
        "communication_ns": time - compute - senders - slowest,
        "senders_ns": senders,
        "waiting_ns": slowest,
        "last_rank": last["rank"],
        "longest_rank": longest_rank,
        "longest_computing_ns": longest,
        "median_computing_ns": median,
    }


def _computes_longest(steps: list[list[dict[str, Any]]]) -> tuple[int, float, float]:
    """Return the rank that computes longest, its time and the median, in means over these steps, in ns."""
    by_rank: dict[int, list[float]] = {}
    for row in (row for step in steps for row in step):
        computing = row["finish_ns"] - row["start_ns"] - row["exposed_ns"]
        by_rank.setdefault(row["rank"], []).append(computing)
    times = {rank: mean(all_steps) for rank, all_steps in by_rank.items()}
    rank = max(times, key=lambda rank: times[rank])
    return rank, times[rank], statistics.median(times.values())


def table(line: Line) -> Table | None:
    """Return a row for each job with whole steps of the first run of a line; None: there are none."""
    rows = causes(line.runs[0])
    if not rows:
        return None
    columns = ["job", "operation", "steps", "time", "computing", "exposed communication"]
    columns += ["waiting for senders", "waiting for the slowest"]
    result = Table(
        [*columns, "computes longest", "last rank"], title="Where the time of steps went", left=2, note=NOTE
    )
    for row in rows:
        keys = ("computing_ns", "communication_ns", "senders_ns", "waiting_ns")
        parts = [row[key] for key in keys]
        shown = [f"{quantities.time_text(part)} ({part / row['time_ns']:.0%})" for part in parts]
        time = quantities.time_text(row["time_ns"])
        steps = f"{row['steps']:,}"
        ends = [_longest_text(row), str(row["last_rank"])]
        result.rows.append([row["job"], row["operation"], steps, time, *shown, *ends])
    return result


def _longest_text(row: dict[str, Any]) -> str:
    """Return the rank that computes longest, with its time over the median; a dash where ranks are alike."""
    longest, median = row["longest_computing_ns"], row["median_computing_ns"]
    if longest <= 1.01 * median:
        return "–"
    ratio = f" ({longest / median:.2f} x)" if median > 0 else ""
    return f"rank {row['longest_rank']}{ratio}"
