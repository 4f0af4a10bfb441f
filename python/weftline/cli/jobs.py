"""`weftline jobs`: steps of jobs by cause, collectives as nccl-tests print them, and the timeline."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weftline.cli import arguments

if TYPE_CHECKING:
    from weftline.measures.lines import Line
    from weftline.runs import Run
    from weftline.terminal import Table


NOTE = (
    "GB: 10^9 bytes. Times begin with the first message of an operation: within a training job they include "
    "waiting for ranks that join later, so that a slow rank lowers the bandwidth, too."
)


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; `command` makes one of a name, what it does, and its help."""
    jobs = command("jobs", _jobs, "say where the time of steps of jobs went, and print bus bandwidth by size")
    jobs.add_argument("folders", nargs="+", metavar="RUN", help="folders of runs, such as one for each size")
    arguments.add_json(jobs)
    arguments.add_out(
        jobs, "TIMELINE.json", "write the timeline of one run as a Chrome trace, for ui.perfetto.dev"
    )


def _jobs(options: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from weftline import integrity, terminal, timeline
    from weftline.errors import InputError
    from weftline.measures import step_causes
    from weftline.measures import steps as rows_of
    from weftline.measures.lines import lines_of
    from weftline.measures.pooling import seed_of
    from weftline.outputs import whole_file
    from weftline.runs import Run

    runs = [Run.open(folder) for folder in options.folders]
    for folder, run in zip(options.folders, runs, strict=True):
        # A job of ranks that had not begun has no rows.
        if rows_of.planned(run) or any(row["operation"] != "incast" for row in run.steps):
            continue
        incasts = "; the events of its incasts are in jobs.parquet" if run.steps else ""
        raise InputError(
            f"{folder}: this run has no jobs: it needs a workload such as collective or training{incasts}"
        )
    if options.out and len(runs) > 1:
        raise InputError(f"--out: one timeline is of one run, found {len(runs)} folders")
    if options.out:
        integrity.refuse_result(Path(options.out))
    lines = lines_of(runs)
    for text in dict.fromkeys(text for line in lines for text in line.warnings):
        terminal.say("warning", text)
    # Of a run that was given twice one counts.
    runs = [run for line in lines for run in line.runs]
    by_size = sizes(lines)
    if options.json:
        causes = [
            [{"run": str(run.out), "seed": seed_of(run), **row} for row in step_causes.causes(run)]
            for run in runs
        ]
        means = [
            {"line": line.label, **row}
            for line in lines
            if len(line.runs) > 1
            for row in step_causes.means_json(line)
        ]
        found = {"causes": causes, "means": means, "sizes": by_size, "unended": unended(runs)}
        print(json.dumps(found, indent=2))
    else:
        alone, tables = len(lines) == 1, []
        for line in lines:
            tables += [step_causes.table(run, name=_name(line, run, alone=alone)) for run in line.runs]
            if len(line.runs) > 1:
                tables.append(step_causes.means_table(line, name="" if alone else line.label))
        for table in [*filter(None, tables), *filter(None, [sizes_table(by_size)])]:
            print(table.text())
        for row in unended(runs):
            print(
                f"{row['folder']}: {row['job']}: {row['ended']:,} of {row['asked']:,} {row['what']} had "
                "ended when the run did; numbers are of these"
            )
    if options.out:
        with whole_file(options.out) as part, part.open("w", encoding="utf-8") as file:
            count = timeline.write(runs[0], file)
        if not options.json:
            print(f"{count:,} spans: {options.out}")
    return 0


def _name(line: Line, run: Run, *, alone: bool) -> str:
    """Return which run one of several is: its line, and its seed where the line has several."""
    from weftline.measures.pooling import seed_of

    parts = [] if alone else [line.label]
    parts += [f"seed {seed_of(run)}"] if len(line.runs) > 1 else []
    return ", ".join(parts)


def unended(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return a row for each job of each run with steps, or operations within them, that did not end."""
    from weftline.measures import steps as rows_of

    found = []
    for run in runs:
        for job, name in rows_of.job_names([run]).items():
            rows = [row for row in run.steps if rows_of.job_of(row) == job]
            own = [row for row in rows if not row.get("part")]
            parts = [row for row in rows if row.get("part")]
            left = rows_of.unbegun(run, job[1], job[0])
            for what, some, more in (("steps", own, left), ("operations that had begun", parts, 0)):
                ended = sum(row["time_ns"] is not None for row in some)
                asked = len(some) + more
                if ended < asked:
                    named = {"folder": str(run.out), "job": name, "what": what}
                    found.append(named | {"ended": ended, "asked": asked})
    return found


def sizes(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return a row for each scenario, job, kind of operation and size: means over steps, as nccl-tests.

    The runs of a line differ in the seed alone: times and bandwidths are means over these runs of their own,
    with half of the 95 % interval, None of one seed; a barrier has no bandwidths. `line` is its label;
    `family` the number of those lines that differ in the sizes of their jobs alone, of which an average over
    sizes can be taken.
    """
    from weftline.measures import steps as rows_of
    from weftline.measures.lines import Mean

    rows = []
    reads = {"time_us": _mean_us, "algbw_GBps": _rate_of("algbw_bps"), "busbw_GBps": _rate_of("busbw_bps")}
    for line, family in zip(lines, _families(lines), strict=True):
        names = [rows_of.job_names([run]) for run in line.runs]
        jobs = list(dict.fromkeys(name for of_run in names for name in of_run.values()))
        found: dict[tuple[int, str, int, bool, int], list[list[dict[str, Any]]]] = {}
        for number, (run, of_run) in enumerate(zip(line.runs, names, strict=True)):
            for step in run.steps:
                if step["time_ns"] is not None and rows_of.is_of_ranks(step) and not rows_of.is_whole(step):
                    job = jobs.index(of_run[rows_of.job_of(step)])
                    of_kind = (job, *rows_of.kind(step), step["bytes"])
                    found.setdefault(of_kind, [[] for _ in line.runs])[number].append(step)
        for (job, operation, ranks, inside, size), by_run in sorted(found.items()):
            times = [step["time_ns"] for steps in by_run for step in steps]
            means = {
                name: Mean.of([read(steps) for steps in by_run], line.interval, keys=line.keys)
                for name, read in reads.items()
            }
            rows.append(
                {
                    "line": line.label,
                    "family": family,
                    "runs": [str(run.out) for run in line.runs],
                    "job": jobs[job],
                    "operation": operation,
                    "ranks": ranks,
                    "inside": inside,
                    "bytes": size,
                    "steps": len(times),
                    "seeds": max((mean.count or 0 for mean in means.values() if mean), default=0),
                    "min_us": min(times) / 1e3,
                    "max_us": max(times) / 1e3,
                    **{name: mean and mean.value for name, mean in means.items()},
                    "intervals": {name: mean and mean.interval for name, mean in means.items()},
                }
            )
    key = ("family", "job", "operation", "ranks", "inside", "bytes")
    order = {name: n for n, name in enumerate(dict.fromkeys(row["job"] for row in rows))}
    return sorted(rows, key=lambda row: [order[row[k]] if k == "job" else row[k] for k in key])


def _mean_us(steps: Sequence[dict[str, Any]]) -> float | None:
    from weftline.measures import steps as rows_of

    return rows_of.mean([step["time_ns"] for step in steps]) / 1e3 if steps else None


def _rate_of(key: str) -> Callable[[Sequence[dict[str, Any]]], float | None]:
    """Return the reader of a bandwidth of the steps of a run in GB/s."""
    from weftline.measures import steps as rows_of

    def read(steps: Sequence[dict[str, Any]]) -> float | None:
        rate = rows_of.rate(steps, key)
        return None if rate is None else rate / 8e9

    return read


def _families(lines: Sequence[Line]) -> list[int]:
    """Return for each line the number of its family: its scenario without the sizes of jobs."""
    known: dict[object, int] = {}
    found = []
    for line in lines:
        facts = line.pool.facts if line.pool else {}
        rest = {
            path: value
            for path, value in facts.items()
            if not (path[0] == "workload" and path[-1] == "bytes")
        }
        key = (line.pool.status if line.pool else "", tuple(sorted(rest.items(), key=lambda item: item[0])))
        found.append(known.setdefault(key, len(known)))
    return found


def sizes_table(rows: Sequence[dict[str, Any]]) -> Table | None:
    """Return the rows of `sizes` as nccl-tests print them; None: there are none."""
    from weftline.measures import stats
    from weftline.measures import steps as rows_of
    from weftline.terminal import Table

    if not rows:
        return None
    columns = ["job", "operation", "ranks", "size (B)", "steps", "time (us)", "min (us)", "max (us)"]
    several = len({row["line"] for row in rows}) > 1
    table = Table(
        [*(["line"] if several else []), *columns, "algbw (GB/s)", "busbw (GB/s)"],
        title="Collective operations by size, as nccl-tests",
        left=2 + several,
    )
    for row in rows:
        intervals = {key: "" if half is None else f" ±{half:,.2f}" for key, half in row["intervals"].items()}
        times = [f"{row[key]:,.2f}{intervals.get(key, '')}" for key in ("time_us", "min_us", "max_us")]
        bandwidths = [
            "–" if row[key] is None else f"{row[key]:.2f}{intervals[key]}"
            for key in ("algbw_GBps", "busbw_GBps")
        ]
        table.rows.append(
            [
                *([row["line"]] if several else []),
                row["job"],
                f"{row['operation']}{' in a domain' if row['inside'] else ''}",
                *(str(row[key]) for key in ("ranks", "bytes", "steps")),
                *times,
                *bandwidths,
            ]
        )
    families: dict[int, list[str]] = {}
    for row in rows:
        families.setdefault(row["family"], []).append(row["line"])
    of_kinds: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        if row["busbw_GBps"] is None:  # a barrier has no data
            continue
        kind = (row["job"], rows_of.kind_text(row))
        lines = dict.fromkeys(families[row["family"]])
        named = ("; ".join(lines), *kind) if len(families) > 1 else kind
        of_kinds.setdefault(named, []).append(row["busbw_GBps"])
    averages = {kind: f"{sum(values) / len(values):.2f} GB/s" for kind, values in of_kinds.items()}
    texts = [f"{average} ({', '.join(kind)})" for kind, average in averages.items()]
    text = ", ".join(texts if len(texts) > 1 else averages.values())
    counts = sorted({row["seeds"] for row in rows})
    means = f" Means over {stats.seeds_text(counts)}; ±: half of the 95 % interval." if counts[-1] > 1 else ""
    average = f" Average bus bandwidth: {text}." if text else ""
    table.note = f"{NOTE}{means}{average}"
    return table
