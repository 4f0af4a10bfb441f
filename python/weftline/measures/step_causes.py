"""Where the time of a whole step of a job went: computing, exposed communication, waiting for slower ranks.

A step of a training job or of a job's file is a row of jobs.parquet, and ranks.parquet has a row for each of
its ranks and for each rank's part of a collective operation. Of every rank the time of the step is

- computing: at least one of its streams computed;
- waiting for the slowest: it had joined a collective operation that others had not joined, and did not
  compute; or it had ended, and others had not;
- exposed communication: the rest. A rank that waits for a message that is sent to it alone, as in a pipeline,
  is in it.

The three add up to the time of the step. Where operations of a rank overlap, waiting is at most what was
exposed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.measures.lines import Line
from weftline.measures.steps import mean
from weftline.terminal import Table

if TYPE_CHECKING:
    from weftline.runs import Run

WHOLE = ("training", "goal", "chakra")
"""Operations of jobs.parquet that are all that the ranks of a job do."""
NOTE = (
    "Means over ranks, which add up to the time. Waiting: in a collective operation that another rank had "
    "not joined, or after the own end; waiting for a message of one rank, as in a pipeline, counts as "
    "communication."
)


def causes(run: Run) -> list[dict[str, Any]]:
    """Return a row for each whole step: its job, time and, in means over ranks, the three causes, in ns."""
    if not any(step["operation"] in WHOLE and step["time_ns"] is not None for step in run.steps):
        return []
    found = []
    rows = run.ranks.to_dicts()
    for step in run.steps:
        if step["operation"] not in WHOLE or step["time_ns"] is None:
            continue
        job = [row for row in rows if row["workload"] == step["workload"]]
        whole = [row for row in job if row["operation"] in WHOLE and row["step"] == step["step"]]
        if not whole or any(row["finish_ns"] is None for row in whole):
            continue
        waited = _waited([row for row in job if row["operation"] not in WHOLE])
        begin = min(row["start_ns"] for row in whole)
        end = max(row["finish_ns"] for row in whole)
        computing, waiting = [], []
        for row in whole:
            computing.append(row["finish_ns"] - row["start_ns"] - row["exposed_ns"])
            idle = min(row["exposed_ns"], waited.get(row["rank"], 0.0))
            waiting.append(idle + (end - row["finish_ns"]) + (row["start_ns"] - begin))
        time, compute, wait = end - begin, mean(computing), mean(waiting)
        slowest = max(whole, key=lambda row: row["finish_ns"])
        found.append(
            {
                "job": step["job"],
                "operation": step["operation"],
                "time_ns": time,
                "computing_ns": compute,
                "communication_ns": time - compute - wait,
                "waiting_ns": wait,
                "last_rank": slowest["rank"],
            }
        )
    return found


def _waited(parts: list[dict[str, Any]]) -> dict[int, float]:
    """Return, by rank, the time that it waited for others to join operations, without computing."""
    joined: dict[int, float] = {}
    for row in parts:
        joined[row["step"]] = max(joined.get(row["step"], 0.0), row["start_ns"])
    waited: dict[int, float] = {}
    for row in parts:
        late = min(row["exposed_ns"], joined[row["step"]] - row["start_ns"])
        waited[row["rank"]] = waited.get(row["rank"], 0.0) + late
    return waited


def table(line: Line) -> Table | None:
    """Return a row for each whole step of the first run of a line; None: there are none."""
    rows = causes(line.runs[0])
    if not rows:
        return None
    columns = ["job", "operation", "time", "computing", "exposed communication", "waiting for the slowest"]
    result = Table([*columns, "last rank"], title="Where the time of steps went", left=2, note=NOTE)
    for row in rows:
        parts = [row[key] for key in ("computing_ns", "communication_ns", "waiting_ns")]
        shown = [f"{quantities.time_text(part)} ({part / row['time_ns']:.0%})" for part in parts]
        time = quantities.time_text(row["time_ns"])
        result.rows.append([row["job"], row["operation"], time, *shown, str(row["last_rank"])])
    return result
