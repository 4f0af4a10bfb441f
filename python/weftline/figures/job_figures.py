"""Figures of jobs: time and bandwidth step by step."""

from __future__ import annotations

from collections.abc import Sequence

from weftline.figures import specs
from weftline.figures.marks import time_unit
from weftline.figures.specs import Figure
from weftline.measures import steps as rows_of
from weftline.measures.lines import Line

AXES = {
    "time_ns": "time of the step",
    "finish_to_finish_ns": "from finish to finish",
    "algbw_bps": "algorithm bandwidth (Gb/s)",
    "busbw_bps": "bus bandwidth (Gb/s)",
}
"""Title of the axis of a column."""


def steps(title: str, lines: Sequence[Line], *, column: str = "time_ns", caption: str = "") -> Figure:
    """Return a column of jobs.parquet over the steps, a line for each job of the first run of each line.

    Next to times it has the ideal time of each job that has one.
    """
    axis, scale = AXES[column], 1e-9
    rows = [(line, step) for line in lines for step in line.runs[0].steps]
    if column.endswith("_ns"):
        unit, scale = time_unit(max((step[column] or 0 for _, step in rows), default=0))
        axis = f"{axis} ({unit})"
    points: list[tuple[str, float, float]] = []
    for line in lines:
        for job in rows_of.names(line.runs[:1]):
            label = ", ".join(filter(None, [line.label if len(lines) > 1 else "", job]))
            of_job = [step for step in line.runs[0].steps if step["job"] == job]
            points += [(label, step["step"], step[column] * scale) for step in of_job if step[column]]
            if column == "time_ns":
                ideal = [(step["step"], step["ideal_ns"] * scale) for step in of_job if step["ideal_ns"]]
                points += [(f"{label}, ideal", number, value) for number, value in ideal]
    labels = list(dict.fromkeys(label for label, _, _ in points))
    several = any(len(line.runs) > 1 for line in lines)
    note = " ".join(filter(None, [caption, "The first seed of each." if several else ""]))
    at = "values" if len({x for _, x, _ in points}) <= 16 else "published"
    return specs.trend(title, labels, points, [], axes=("step", axis), points_at=at, caption=note)
