"""How numbers of steps are read out of a run: the rows of jobs.parquet, one an operation of a job.

A training job has a row for each of its steps, a job of a file one that is all of it, and both have rows of
their collective operations. These are parts of the whole: times of steps leave them out, and bandwidths are
of operations of one kind.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.measures import pooling
from weftline.measures.flow_rows import ALL, Flows

if TYPE_CHECKING:
    from weftline.runs import Run


Job = tuple[int, str]
"""A job of a run: the number of its workload and its group, which another job may have, too."""


def job_of(row: dict[str, Any]) -> Job:
    """Return the job of a row of jobs.parquet or ranks.parquet."""
    return row["workload"], row["job"]


def job_names(runs: Sequence[Run]) -> dict[Job, str]:
    """Return the name of each job of runs of one scenario, in their order; last those that had not begun.

    It is its group, with the number of its workload where several jobs have that group.
    """
    begun = dict.fromkeys(job_of(step) for run in runs for step in run.steps)
    found = [*begun, *dict.fromkeys(job for run in runs for job in planned(run) if job not in begun)]
    count = Counter(group for _, group in found)
    return {
        (workload, group): group if count[group] == 1 else f"{group} (workload {workload})"
        for workload, group in found
    }


def share_a_group(runs: Sequence[Run]) -> set[Job]:
    """Return the jobs of runs of one scenario whose group another job has, too."""
    return {of for of, name in job_names(runs).items() if name != of[1]}


def is_whole(row: dict[str, Any]) -> bool:
    """Return whether a row of jobs.parquet is all that the ranks of a job do."""
    return bool(row.get("whole"))


def kind(row: dict[str, Any]) -> tuple[str, int, bool]:
    """Return what operations of one kind share: name, number of ranks, whether they stay in a domain."""
    return row["operation"], row["ranks"], bool(row.get("inside"))


def kind_text(row: dict[str, Any]) -> str:
    """Return the kind of an operation in words, such as `all-reduce of 8 ranks in a domain`."""
    operation, ranks, inside = kind(row)
    return f"{operation} of {ranks} ranks{' in a domain' if inside else ''}"


def has_jobs(run: Run) -> bool:
    """Return whether a run is of ranks that work together, not only of the events of incasts."""
    return any(is_of_ranks(row) for row in own(run))


def is_of_ranks(row: dict[str, Any]) -> bool:
    """Return whether a row of jobs.parquet is of ranks that work together, not the event of an incast."""
    return bool(row["operation"] != "incast")


def parts(run: Run) -> list[dict[str, Any]]:
    """Return the rows that are parts of a whole job."""
    return [row for row in run.steps if row.get("part")]


def own(run: Run) -> list[dict[str, Any]]:
    """Return the rows of steps: all but those that are parts of a whole job."""
    return [row for row in run.steps if not row.get("part")]


def ended(rows: Sequence[dict[str, Any]], flows: Flows) -> list[dict[str, Any]]:
    """Return the rows that ended, of one job if a group is given."""
    return [row for row in rows if row["time_ns"] is not None and flows.group in (None, row["job"])]


def kinds_text(runs: Sequence[Run], flows: Flows) -> str:
    """Return what jobs of different kinds have steps in these runs, "" if they are of one kind.

    A kind is the operation, the number of ranks and the size, which is not looked at in incasts.
    """
    every = [row for run in runs for row in own(run) if flows.group in (None, row["job"])]
    # The bytes of a whole step that had not ended are those sent until then.
    rows = [row for row in every if row["time_ns"] is not None] or every
    found: dict[Job, dict[tuple[str, int, int], None]] = {}
    for row in rows:
        size = 0 if row["operation"] == "incast" else row["bytes"]
        found.setdefault(job_of(row), {})[row["operation"], row["ranks"], size] = None
    if len({frozenset(kinds) for kinds in found.values()}) <= 1:
        return ""
    shared = share_a_group(runs)
    texts = []
    for of, kinds in found.items():
        workload = f"workload {of[0]}: " if of in shared else ""
        texts.append(f"{of[1]} ({workload}{_job_text(list(kinds))})")
    return pooling.shortened(texts)


def _job_text(kinds: Sequence[tuple[str, int, int]]) -> str:
    operation, ranks, size = kinds[0]
    more = f" and {len(kinds) - 1} more" if len(kinds) > 1 else ""
    of = f", {quantities.bytes_text(size)}" if size else ""
    return f"{operation} of {ranks} ranks{of}{more}"


def has_scale_up(run: Run) -> bool:
    """Return whether ranks of a job of a run reach others outside the network."""
    return any(of.get("scale_up_rate", "auto") != "auto" for of in run.scenario.get("workload", []))


def planned(run: Run) -> dict[Job, int]:
    """Return how many steps each job of ranks has by the scenario, whether they began or not."""
    workloads = enumerate(run.scenario.get("workload", []))
    return {
        (number, str(of.get("group", ""))): int(of.get("steps", of.get("repeat", 1)))
        for number, of in workloads
        if "placement" in of  # only ranks are placed
    }


def unbegun(run: Run, group: str | None = None, workload: int | None = None) -> int:
    """Return how many steps of the jobs of ranks had not begun, so that they have no row.

    Counted are those of the jobs of a group or workload, where one is given.
    """
    begun = Counter(map(job_of, own(run)))
    of_jobs = ((job, count) for job, count in planned(run).items() if group in (None, job[1]))
    return sum(max(0, count - begun[job]) for job, count in of_jobs if workload in (None, job[0]))


def ended_by_job(run: Run, flows: Flows) -> Counter[Job]:
    """Return how many steps of each job ended."""
    return Counter(map(job_of, ended(own(run), flows)))


def asked(run: Run, flows: Flows) -> int:
    """Return how many steps the jobs of a run have, ended or not."""
    rows = [row for row in own(run) if flows.group in (None, row["job"])]
    return len(rows) + unbegun(run, flows.group)


def time(fold: Callable[[list[float]], float]) -> Callable[..., float | None]:
    """Return the reader of the time of a step, folded over the steps that ended."""

    def read(run: Run, flows: Flows = ALL) -> float | None:
        found = [row["time_ns"] for row in ended(own(run), flows)]
        return fold(found) if found else None

    return read


def finish_to_finish(run: Run, flows: Flows = ALL) -> float | None:
    """Return the mean time from the end of a step to that of the next."""
    rows = ended(own(run), flows)
    found = [row["finish_to_finish_ns"] for row in rows if row["finish_to_finish_ns"] is not None]
    return mean(found) if found else None


def bandwidth(key: str) -> Callable[..., float | None]:
    """Return the reader of a column of bandwidths, over the operations that have it; see `rate`.

    Where these are of several kinds, there is none: a number over those within nodes and those between them,
    or over jobs of different operations or sizes, would be one of neither.
    """

    def read(run: Run, flows: Flows = ALL) -> float | None:
        rows = [row for row in ended(run.steps, flows) if row[key] is not None]
        sizes: dict[Job, set[int]] = {}
        for row in rows:
            sizes.setdefault(job_of(row), set()).add(row["bytes"])
        is_one_kind = len(set(map(kind, rows))) <= 1 and len(set(map(frozenset, sizes.values()))) <= 1
        return rate(rows, key) if is_one_kind else None

    return read


def rate(rows: Sequence[dict[str, Any]], key: str) -> float | None:
    """Return a bandwidth of operations together: their bytes over their time, as nccl-tests have it.

    For one size that is the size over the mean time, which the mean of the bandwidths is not: that of a row
    is over the time from its own start, in which it may overlap the operation before it.
    """
    rows = [row for row in rows if row[key] is not None and row["time_ns"]]
    time = math.fsum(row["time_ns"] for row in rows)
    return math.fsum(8e9 * row["bytes"] * _over_algbw(row, key) for row in rows) / time if rows else None


def _over_algbw(row: dict[str, Any], key: str) -> float:
    """Return a bandwidth of a row over its algorithm bandwidth."""
    return row[key] / row["algbw_bps"] if row["algbw_bps"] else 1.0


def over_ideal(run: Run, flows: Flows = ALL) -> float | None:
    """Return the mean over steps of time over ideal time, see `row_over_ideal`."""
    ratios = [row_over_ideal(row) for row in ended(own(run), flows)]
    found = [ratio for ratio in ratios if ratio is not None]
    return mean(found) if found else None


def row_over_ideal(row: dict[str, Any]) -> float | None:
    """Return the time of a step that ended over its ideal time, None without one.

    It is that from the step's own start, whenever the step before ended: the ideal time is that of the step
    alone.
    """
    return (row["finish_ns"] - row["start_ns"]) / row["ideal_ns"] if row["ideal_ns"] else None


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean."""
    return math.fsum(values) / len(values)
