"""`weftline sweep`: plan, run, show."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from weftline import quantities, terminal
from weftline.errors import InputError, RunFailed
from weftline.sweeps import executor, runner, sweepfile, tables
from weftline.sweeps.executor import Outcome
from weftline.sweeps.result import SweepResult
from weftline.sweeps.runner import Estimate, Plan
from weftline.sweeps.store import Point, Store, Unread
from weftline.terminal import ProgressLine, wrapped


def command(options: argparse.Namespace) -> int:
    """Do what the command line asks for and return the exit status."""
    sweep = sweepfile.load(options.sweep)
    plan = runner.plan(sweep, runner.folder_of(sweep, options.out or None))
    quiet = options.quiet or options.json
    if not quiet:
        print(wrapped(sweep.question or sweep.name))
        for sentence in [*plan.same, *plan.unused]:
            print(f"note: {sentence}")
    if options.dry_run:
        return _dry_run(plan, options)
    only = _part(plan, options)
    if options.array and only is None:
        return _how_to_array(plan, options)
    line = ProgressLine(quiet=quiet)
    wanted = len(plan.points if only is None else only)

    def announce(left: int, failed: int, cost: Estimate) -> None:
        print(_announcement(plan, wanted, left, failed, cost, on=options.on))

    result, outcome = runner.run(
        plan,
        jobs=options.jobs,
        threads=options.threads,
        on=options.on,
        retry=options.retry,
        show=lambda text: line.show(text, at_once=True),
        announce=None if quiet else announce,
        only=only,
    )
    line.clear()
    return _end(plan, result, outcome, options, whole=only is None)


def _end(
    plan: Plan, result: SweepResult, outcome: Outcome, options: argparse.Namespace, *, whole: bool
) -> int:
    """Show what there is; return the exit status."""
    if whole:
        try:
            _show_and_write(plan, result, outcome, options)
        except (InputError, RunFailed) as error:
            moved = [] if outcome.unwritten else runner.put_damaged_aside(result, error)
            if not moved:
                raise
            outcome.remarks += moved
            outcome.stopped = outcome.stopped or "some results were damaged and are not in the tables"
            _show_and_write(plan, runner.result_of(plan), outcome, options)
    for remark in [*outcome.remarks, *runner.other_versions(plan)]:
        print(f"note: {remark}", file=sys.stderr)
    for point, why in outcome.failed:
        print(f"failed: {point.name}, seed {point.seed}: {why}", file=sys.stderr)
    if not options.retry and any(not isinstance(why, Unread) for _, why in outcome.failed):
        print("failed points are not run again without --retry", file=sys.stderr)
    going_on = "finished runs are kept; run the same command to resume"
    if outcome.stopped:
        print(f"failed: {outcome.stopped}; {going_on}", file=sys.stderr)
    elif outcome.interrupted:
        print(f"interrupted; {going_on}", file=sys.stderr)
    if not (options.quiet or options.json):
        written = whole and result.cells and not outcome.unwritten
        done = ", tables in points.csv and table.csv" if written else ""
        print(f"store: {plan.path}{done}")
    return 1 if outcome.failed or outcome.stopped or outcome.interrupted else 0


def _show_and_write(plan: Plan, result: SweepResult, outcome: Outcome, options: argparse.Namespace) -> None:
    """Show the tables and write them into the store; a damaged run is found while they are made."""
    _show(result, options)
    if outcome.unwritten:
        return
    try:
        runner.write_tables(plan, result)
    except OSError as error:
        outcome.stopped = outcome.stopped or executor.error_text(error, Store(result.path))


def _show(result: SweepResult, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(as_json(result), indent=2, ensure_ascii=False))
        return
    if options.quiet:
        return
    for table in result.tables():
        print()
        print(table.text(colour=terminal.has_colour(sys.stdout)))
    if not result.cells:
        return
    print()
    for note in tables.notes(result):
        print(wrapped(note))
    for warning in tables.warnings(result):
        print(wrapped(f"warning: {warning}"), file=sys.stderr)


def as_json(result: SweepResult) -> dict[str, Any]:
    """Return all numbers of a sweep for programs."""
    return {
        "name": result.name,
        "question": result.question,
        "store": str(result.path),
        "interval": result.report.interval,
        "answer": [
            {
                **result.axis_values(cell.choice),
                "answer": (judged := result.judgement(cell)).answer,
                "reasons": [asdict(reason) for reason in judged.reasons],
            }
            for cell in result.combinations
            if result.report.bound
        ],
        "estimates": result.estimates,
        "runs": result.rows,
        "failed": [
            {**result.axis_values(choice), "seed": seed, "error": why} for choice, seed, why in result.failed
        ],
        "missing": [{**result.axis_values(choice), "seed": seed} for choice, seed in result.missing],
        "warnings": tables.warnings(result),
    }


def _announcement(
    plan: Plan, wanted: int, left: int, failed: int, cost: Estimate, *, on: str = "local"
) -> str:
    """Return how many runs there are; `left` are to be run, `failed` were tried and are not run again."""
    sizes = " x ".join(f"{axis.name} ({len(axis.variants)})" for axis in plan.sweep.axes) or "the scenario"
    seeds = len(plan.sweep.seeds)
    text = f"{len(plan.points)} runs: {sizes}, {seeds} seed{'s' if seeds > 1 else ''}"
    if plan.sweep.zipped:
        text += " (" + "; ".join(" with ".join(names) for names in plan.sweep.zipped) + ")"
    if wanted < len(plan.points):
        text += f"; {wanted} of them here"
    if finished := wanted - left - failed:
        text += f"; {finished} {'is' if finished == 1 else 'are'} finished already"
    if failed:
        text += (
            f"; {failed} failed earlier, and without --retry {'is' if failed == 1 else 'are'} not run again"
        )
    if left and on == "ray":  # how many run at a time is known when it answers
        time = quantities.seconds_text(float(f"{cost.seconds_of_a_core:.2g}"))
        text += f"; the rest takes about {time} of a core"
    elif left:
        time = quantities.seconds_text(float(f"{cost.seconds:.2g}"))
        memory = quantities.bytes_text(cost.memory_bytes, figures=2)
        text += (
            f"; the rest takes about {time} with {cost.jobs} at a time, "
            f"and {memory} in addition to the program"
        )
    return text


def _dry_run(plan: Plan, options: argparse.Namespace) -> int:
    """Print what would be run, and run nothing."""
    jobs = options.jobs or max(1, executor.cores() // max(1, options.threads))
    store = Store.planned(plan.path)
    left, known = executor.waiting(plan.points, store, retry=options.retry, touch=False)
    cost = runner.estimate(left, jobs=jobs)
    if options.json:
        points = [{**dict(p.choice), "seed": p.seed, "run": p.key, "left": p in left} for p in plan.points]
        found = {"points": points, "seconds": cost.seconds, "memory_bytes": cost.memory_bytes, "jobs": jobs}
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    print(_announcement(plan, len(plan.points), len(left), len(known.failed), cost, on=options.on))
    for axis in plan.sweep.axes:
        print(f"  {axis.name}: {', '.join(axis.variants)}")
    print(f"  seeds: {', '.join(map(str, plan.sweep.seeds))}")
    print(f"store: {plan.path}")
    return 0


def _part(plan: Plan, options: argparse.Namespace) -> Sequence[Point] | None:
    """Return the points of one task of an array, None if this is none.

    With as many tasks as points each has one; with fewer, task k of n has every n-th from the k-th. An array
    of one task, or with gaps (``3,7``: some indices again), runs the points of these indices.
    """
    if options.index is not None and not options.array:
        raise InputError("--index: only with --array")
    if not options.array:
        return None
    index, count = options.index, len(plan.points)
    if index is None and "SLURM_ARRAY_TASK_ID" in os.environ:
        index, first, step = _slurm("ID", 0), _slurm("MIN", 0), max(1, _slurm("STEP", 1))
        tasks = _slurm("COUNT", count)
        if tasks > 1 and _slurm("MAX", first + (tasks - 1) * step) == first + (tasks - 1) * step:
            index, count = (index - first) // step, tasks
    if index is None:
        return None
    found = plan.points[index::count] if 0 <= index < count else []
    if not found:
        raise InputError(f"--array: index {index}: expected 0 to {len(plan.points) - 1}, one for each point")
    return found


def _slurm(name: str, default: int) -> int:
    text = os.environ.get(f"SLURM_ARRAY_TASK_{name}")
    if text is None:
        return default
    if not (text.isdecimal() and text.isascii()):
        raise InputError(f"SLURM_ARRAY_TASK_{name}: expected a number, found {text!r}")
    return int(text)


def _how_to_array(plan: Plan, options: argparse.Namespace) -> int:
    out = f" --out {options.out}" if options.out else ""
    again = f"weftline sweep {options.sweep}{out}"
    print(f"{len(plan.points)} points, one for each index. Under Slurm:")
    print(
        f"  sbatch --array=0-{len(plan.points) - 1} --cpus-per-task={options.threads}"
        f' --wrap "{again} --array"'
    )
    print("with fewer indices each task takes several points. The tables, when all are done:")
    print(f"  {again}")
    return 0
