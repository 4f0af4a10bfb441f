"""Figures of jobs: time and bandwidth step by step, and what ranks did over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weftline import timeline as spans_of
from weftline.figures import marks, specs
from weftline.figures.marks import time_unit
from weftline.figures.specs import Figure
from weftline.measures import over_seeds
from weftline.measures import steps as rows_of
from weftline.measures.lines import Line

if TYPE_CHECKING:
    from weftline.runs import Run

AXES = {
    "time_ns": "time of the step",
    "finish_to_finish_ns": "from finish to finish",
    "algbw_bps": "algorithm bandwidth (Gb/s)",
    "busbw_bps": "bus bandwidth (Gb/s)",
}
"""Title of the axis of a column."""
MAX_RANKS, MAX_SPANS = 32, 4000
"""Maximum numbers of ranks and of spans that a timeline shows."""


def steps(title: str, lines: Sequence[Line], *, column: str = "time_ns", caption: str = "") -> Figure:
    """Return a column of jobs.parquet over the steps, a line for each job; of several seeds, of one run.

    Next to times it has the ideal time of each job that has one. Times are of steps; of a whole job, which is
    made of collective operations, bandwidths are those of its parts, a line for each kind.
    """
    axis, scale = AXES[column], 1e-9
    is_time = column.endswith("_ns")
    if is_time:
        runs = [over_seeds.drawn_run(line) for line in lines]
        longest = max((step[column] or 0 for run in runs for step in rows_of.own(run)), default=0)
        unit, scale = time_unit(longest)
        axis = f"{axis} ({unit})"
    points: list[tuple[str, float, float]] = []
    left_out = []
    for line in lines:
        run = over_seeds.drawn_run(line)
        rows = rows_of.own(run)
        open_steps = sum(row["finish_ns"] is None for row in rows) + rows_of.unbegun(run)
        if open_steps:
            of = f"{open_steps} of {len(rows) + rows_of.unbegun(run)} steps"
            left_out.append(f"{of} of {line.label}" if len(lines) > 1 else of)
        for job, name in rows_of.job_names([run]).items():
            label = ", ".join(filter(None, [line.label if len(lines) > 1 else "", name]))
            of_job = [step for step in rows_of.own(run) if rows_of.job_of(step) == job]
            parts = [part for part in rows_of.parts(run) if rows_of.job_of(part) == job and not is_time]
            points += [
                (f"{label}, {rows_of.kind_text(part)}", part["step"], part[column] * scale)
                for part in parts
                if part[column]
            ]
            if not parts:
                points += [(label, step["step"], step[column] * scale) for step in of_job if step[column]]
            if column == "time_ns" and any(step[column] for step in of_job):
                ideal = [(step["step"], step["ideal_ns"] * scale) for step in of_job if step["ideal_ns"]]
                points += [(f"{label}, ideal", number, value) for number, value in ideal]
    labels = list(dict.fromkeys(label for label, _, _ in points))
    unfinished = f"Left out: {', '.join(left_out)}, which had not ended." if left_out else ""
    note = " ".join(filter(None, [caption, over_seeds.drawn_seed(lines), unfinished]))
    at = "values" if len({x for _, x, _ in points}) <= 16 else "published"
    return specs.trend(title, labels, points, [], axes=("step", axis), points_at=at, caption=note)


def timeline(title: str, run: Run) -> Figure | None:
    """Return what ranks did over time, a bar for each part of an operation; None: the run has no ranks.

    Of many ranks some are shown, from the first to the last, and no span shorter than a pixel.
    """
    rows = [row for row, _ in spans_of.spans(run.ranks.to_dicts(), run)]
    if not rows:
        return None
    end = max(row["finish_ns"] for row in rows)
    begin = min(row["start_ns"] for row in rows)
    long = [row for row in rows if row["finish_ns"] - row["start_ns"] >= (end - begin) / (3 * marks.WIDTH)]
    wholes = {(step["workload"], step["step"]) for step in run.steps if rows_of.is_whole(step)}
    parts = [row for row in long if (row["workload"], row["step"]) not in wholes]
    drawn = parts or long
    names = list(dict.fromkeys((row["workload"], row["rank"]) for row in rows))
    of_rank: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in drawn:
        of_rank.setdefault((row["workload"], row["rank"]), []).append(row)
    widest = max((len(found) for found in of_rank.values()), default=1)
    count = max(1, min(MAX_RANKS, len(names), MAX_SPANS // widest))
    shown = [names[at * len(names) // count] for at in range(count)]
    unit, scale = time_unit(end)
    jobs = rows_of.job_names([run])
    labels = {key: f"{jobs[rows_of.job_of(of_rank[key][0])]} {key[1]}" for key in shown if key in of_rank}
    values = [
        {
            "rank": label,
            "operation": row["operation"],
            "step": row["step"],
            "from": round(row["start_ns"] * scale, 6),
            "to": round(row["finish_ns"] * scale, 6),
        }
        for key, label in labels.items()
        for row in of_rank[key]
    ]
    operations = list(dict.fromkeys(value["operation"] for value in values))
    x = {"field": "from", "type": "quantitative", "title": f"time ({unit})", "axis": {"format": ",~f"}}
    x |= {"scale": {"domain": [begin * scale, end * scale], "nice": False}}
    colour = {
        "field": "operation",
        "type": "nominal",
        "title": None,
        "scale": {"domain": operations, "range": list(marks.COLOURS[: len(operations)])},
        "legend": {"orient": "top"},
    }
    spec = marks.rows_of(values) | {
        "width": 3 * marks.WIDTH,
        "height": 12 * max(1, len(labels)),
        "mark": {"type": "bar", "height": 9, "opacity": 0.75, "tooltip": True},
        "encoding": {
            "x": x,
            "x2": {"field": "to"},
            "y": {"field": "rank", "type": "nominal", "sort": list(labels.values()), "title": "rank"},
            "color": colour,
        },
    }
    notes = ["Between bars a rank computes or waits for a message of another rank."]
    if len(labels) < len(names):
        notes.append(f"{len(labels)} of {len(names)} ranks are shown.")
    hidden = len(rows) - len(long)
    if hidden:
        notes.append(f"{hidden:,} spans shorter than a pixel are left out.")
    notes.append("`weftline jobs RUN --out timeline.json` writes all of them, for ui.perfetto.dev.")
    return Figure(title=title, spec=spec, caption=" ".join(notes))
