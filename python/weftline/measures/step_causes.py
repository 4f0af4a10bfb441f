"""Where the time of a whole step of a job went: computing, communication, waiting for other ranks.

A step of a training job or of a job's file is a row of jobs.parquet, and ranks.parquet has a row for each of
its ranks. Of every rank the time of the step is

- computing: at least one of its streams computed. For every time in which none did, what counts is the event
  that let the rank compute again:
- waiting for senders: until the message that let it was sent, as in a pipeline that fills;
- waiting for the slowest: until the last rank had joined the collective operation whose end let it; and from
  the own end to that of the last rank;
- exposed communication: the rest.

The four add up to the time of the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.measures.lines import Line
from weftline.measures.steps import is_whole, mean, steps_in
from weftline.terminal import Table

if TYPE_CHECKING:
    from weftline.runs import Run

NOTE = (
    "Means over ranks, which add up to the time. A rank that did not compute waited for what came before it "
    "computed again: for the sender of a message until it was sent, for the slowest rank of a collective "
    "operation until it had joined; the rest is exposed communication. The slowest: also after the own end."
)


def causes(run: Run) -> list[dict[str, Any]]:
    """Return a row for each whole step: its job, time and, in means over ranks, the four causes, in ns."""
    if not any(is_whole(step) and step["time_ns"] is not None for step in run.steps):
        return []
    found = []
    rows = run.ranks.to_dicts()
    for step in run.steps:
        if not is_whole(step) or step["time_ns"] is None:
            continue
        job = [row for row in rows if row["workload"] == step["workload"]]
        whole = [row for row in job if row["step"] == step["step"]]
        if not whole or any(row["finish_ns"] is None for row in whole):
            continue
        if any(row.get("unsent_ns") is None for row in whole):
            continue
        begin = min(row["start_ns"] for row in whole)
        end = max(row["finish_ns"] for row in whole)
        time = end - begin
        compute = mean([row["finish_ns"] - row["start_ns"] - row["exposed_ns"] for row in whole])
        senders = mean([row["unsent_ns"] for row in whole])
        around = [time - (row["finish_ns"] - row["start_ns"]) for row in whole]
        slowest = mean([row["unjoined_ns"] + idle for row, idle in zip(whole, around, strict=True)])
        last = max(whole, key=lambda row: row["finish_ns"])
        found.append(
            {
                "job": step["job"],
                "operation": step["operation"],
                "steps": steps_in(step),
                "time_ns": time,
                "computing_ns": compute,
                "communication_ns": time - compute - senders - slowest,
                "senders_ns": senders,
                "waiting_ns": slowest,
                "last_rank": last["rank"],
            }
        )
    return found


def table(line: Line) -> Table | None:
    """Return a row for each whole step of the first run of a line; None: there are none."""
    rows = causes(line.runs[0])
    if not rows:
        return None
    columns = ["job", "operation", "time", "computing", "exposed communication"]
    columns += ["waiting for senders", "waiting for the slowest"]
    result = Table([*columns, "last rank"], title="Where the time of steps went", left=2, note=NOTE)
    for row in rows:
        keys = ("computing_ns", "communication_ns", "senders_ns", "waiting_ns")
        parts = [row[key] for key in keys]
        shown = [f"{quantities.time_text(part)} ({part / row['time_ns']:.0%})" for part in parts]
        time = quantities.time_text(row["time_ns"])
        operation = row["operation"] + (f", {row['steps']:,} steps" if row["steps"] > 1 else "")
        result.rows.append([row["job"], operation, time, *shown, str(row["last_rank"])])
    return result
