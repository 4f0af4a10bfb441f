"""The timeline of jobs as a Chrome trace, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Every rank of a job is a process of the trace. Its first track is the whole step, the others are its parts of
collective operations: as many tracks as overlap. Times are microseconds of the run. Computations and single
messages are not in it: ranks.parquet has no row of theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from weftline.measures.steps import job_names, job_of

if TYPE_CHECKING:
    from weftline.runs import Run


def write(run: Run, file: IO[str]) -> int:
    """Write the trace of a run, and return the number of spans in it."""
    before, count = "", 0
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    for event in events(run):
        file.write(before + json.dumps(event))
        before = ",\n"
        count += event["ph"] == "X"
    file.write("\n]}\n")
    return count


def events(run: Run) -> Iterator[dict[str, Any]]:
    """Return the events of the trace: the name of every rank, then its spans."""
    named: dict[tuple[int, int], int] = {}
    jobs = job_names([run])
    for row, track in spans(run.ranks.to_dicts(), run):
        key = (row["workload"], row["rank"])
        if key not in named:
            named[key] = len(named)
            name = f"{jobs[job_of(row)]} rank {row['rank']} (host {row['host']})"
            yield {"ph": "M", "name": "process_name", "pid": named[key], "args": {"name": name}}
        yield {
            "ph": "X",
            "name": row["operation"],
            "cat": row["job"],
            "pid": named[key],
            "tid": track,
            "ts": row["start_ns"] / 1e3,
            "dur": (row["finish_ns"] - row["start_ns"]) / 1e3,
            "args": {
                "step": row["step"],
                "bytes_sent": row["bytes_sent"],
                "exposed_us": row["exposed_ns"] / 1e3,
                "late_us": None if row["late_ns"] is None else row["late_ns"] / 1e3,
            },
        }


def spans(rows: list[dict[str, Any]], run: Run) -> Iterator[tuple[dict[str, Any], int]]:
    """Return the rows of ranks.parquet by rank, each with its track, none of whose spans overlap.

    A row that had not ended when the run did ends with it.
    """
    end = run.summary.get("end_ns") or 0.0
    by_rank: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in rows:
        whole = row if row["finish_ns"] is not None else row | {"finish_ns": max(end, row["start_ns"])}
        by_rank.setdefault((row["workload"], row["rank"]), []).append(whole)
    for of_rank in by_rank.values():
        ends: list[float] = []
        for row in sorted(of_rank, key=lambda row: (row["start_ns"], -row["finish_ns"], row["step"])):
            free = (track for track, until in enumerate(ends) if until <= row["start_ns"])
            track = next(free, len(ends))
            ends[track : track + 1] = [row["finish_ns"]]
            yield row, track
