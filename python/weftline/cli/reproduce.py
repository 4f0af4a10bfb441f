"""The options of `weftline reproduce`; the command itself is imported when it runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from weftline.cli import arguments


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; `command` makes one of a name, what it does, and its help."""
    reproduce = command(
        "reproduce",
        _reproduce,
        "run the experiment of a published table or figure and compare with the published numbers",
    )
    reproduce.add_argument(
        "experiment",
        nargs="?",
        metavar="EXPERIMENT",
        help="name of the experiment; `weftline list experiments` lists them",
    )
    reproduce.add_argument(
        "--all",
        action="store_true",
        help="run every experiment that the ledger of claims names, then write the "
        "ledger; finished experiments are not repeated",
    )
    reproduce.add_argument(
        "--skip",
        action="append",
        metavar="EXPERIMENT",
        help="with --all or --published: skip an experiment; may be given several times",
    )
    reproduce.add_argument(
        "--dry-run",
        action="store_true",
        help="print what is left and how long it takes; run nothing",
    )
    reproduce.add_argument(
        "--published",
        action="store_true",
        help="run what has to have the published size to decide claims, of all experiments or one, in order",
    )
    reproduce.add_argument(
        "--budget", metavar="TIME", help="with --published: limit of the time of all of it (default 16h)"
    )
    reproduce.add_argument(
        "--sitting",
        metavar="TIME",
        help="with --published: end this call before it takes longer, such as 2.5h",
    )
    reproduce.add_argument(
        "--full", action="store_true", help="run the published size instead of the small default"
    )
    reproduce.add_argument("--duration", metavar="TIME", help="time in which flows arrive, such as 5ms")
    reproduce.add_argument(
        "--seconds", type=arguments.seconds, metavar="N", help="--duration in seconds, such as 30 or 0.5"
    )
    reproduce.add_argument(
        "--rows", metavar="LIST", help="rows of a table, such as 1-10,12, at either size (as --only row=LIST)"
    )
    reproduce.add_argument("--hosts", type=arguments.count, metavar="N", help="how many hosts")
    reproduce.add_argument(
        "--seeds",
        metavar="LIST",
        help="seeds, such as 1-5 or 1,2,7; numbers are means over them, curves over time those of the first",
    )
    arguments.add_out(
        reproduce, "DIR", "folder for points and page (default out/experiments/NAME; with --all out)"
    )
    reproduce.add_argument(
        "--only",
        action="append",
        metavar="AXIS=VARIANT",
        help='run a part: such as --only load="50 %%" --only scheme=DCTCP, numbers also as --only row=1-3,7; '
        "may be given several times",
    )
    arguments.add_places(reproduce)
    arguments.add_output(reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from weftline.reproduce import runner

    if (options.experiment or "").startswith("lab-"):
        from weftline.lab import experiment

        return experiment.command(options)
    return runner.command(options)
