"""How numbers of steps are read out of a run: the rows of jobs.parquet, one an operation of a job."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weftline.measures.readings import ALL, Flows

if TYPE_CHECKING:
    from weftline.runs import Run


def names(runs: Sequence[Run]) -> list[str]:
    """Return the jobs of runs, in their order."""
    return list(dict.fromkeys(step["job"] for run in runs for step in run.steps))


def ended(run: Run, flows: Flows = ALL) -> list[dict[str, Any]]:
    """Return the steps that ended, of one job if a group is given."""
    return [
        step
        for step in run.steps
        if step["time_ns"] is not None and (flows.group is None or step["job"] == flows.group)
    ]


def value(key: str, fold: Callable[[list[float]], float]) -> Callable[..., float | None]:
    """Return the reader of a column, its values folded over the steps that have it."""

    def read(run: Run, flows: Flows = ALL) -> float | None:
        found = [step[key] for step in ended(run, flows) if step[key] is not None]
        return fold(found) if found else None

    return read


def over_ideal(run: Run, flows: Flows = ALL) -> float | None:
    """Return the mean over steps of time over ideal time."""
    found = [step["time_ns"] / step["ideal_ns"] for step in ended(run, flows) if step["ideal_ns"]]
    return mean(found) if found else None


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean."""
    return math.fsum(values) / len(values)
