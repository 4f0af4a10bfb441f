"""The options of the commands on result stores, `sweep` and `query`; what they do is imported when asked."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from weftline.cli import arguments


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands; `command` makes one of a name, what it does, and its help."""
    _sweep_options(
        command("sweep", _sweep, "run a scenario over axes and seeds, and compare the results with intervals")
    )
    query = command("query", _query, "query a result store in SQL: tables runs, points, flows, series")
    query.add_argument("folder", metavar="DIR", help="folder of a sweep, or of a run")
    query.add_argument(
        "sql", metavar="SQL", nargs="?", help="the question; without it the tables are described"
    )
    query.add_argument(
        "--csv",
        action="store_true",
        help="print CSV; without SQL: every run with its axes and numbers, which needs no package",
    )
    query.add_argument(
        "--external", action="store_true", help="let the SQL read and write files outside of the folder"
    )
    arguments.add_json(query, "print JSON, as --format json does")
    query.add_argument("--format", choices=("table", "csv", "json"), default="table", help="output format")


def _sweep_options(sweep: argparse.ArgumentParser) -> None:
    sweep.add_argument("sweep", metavar="SWEEP.toml", help="scenario, axes, seeds and what to report")
    sweep.add_argument(
        "--resume", action="store_true", help="resume an interrupted sweep (this is the default)"
    )
    sweep.add_argument("--retry", action="store_true", help="run failed points again")
    sweep.add_argument(
        "--array", action="store_true", help="run one point, of index SLURM_ARRAY_TASK_ID or --index"
    )
    sweep.add_argument(
        "--index",
        type=arguments.whole(0, 10**9),
        metavar="N",
        help="with --array: index of the point, from 0",
    )
    arguments.add_places(sweep)
    arguments.add_out(sweep, "DIR", "the result store (default out/sweeps/NAME)")
    sweep.add_argument("--dry-run", action="store_true", help="print what would be run; run nothing")
    arguments.add_output(sweep)


def _sweep(options: argparse.Namespace) -> int:
    from weftline.cli import sweep

    return sweep.command(options)


def _query(options: argparse.Namespace) -> int:
    from weftline.sweeps import query

    return query.command(options)
