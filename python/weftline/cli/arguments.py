"""Arguments that several commands share, each defined once, and the numbers that arguments take.

`--json` prints the answer as JSON on standard output; every command has it. `--out` is the place where a
command writes files: a folder (`DIR`) where it writes several, else the file itself.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable


def add_json(command: argparse.ArgumentParser, what: str = "print JSON") -> None:
    """Add `--json`."""
    command.add_argument("--json", action="store_true", help=what)


def add_out(command: argparse.ArgumentParser, place: str, what: str, *, required: bool = False) -> None:
    """Add `--out`; `place` is DIR or the name of a file, `what` the help: what is written."""
    command.add_argument("--out", metavar=place, help=what, required=required)


def add_output(command: argparse.ArgumentParser) -> None:
    """Add `--json` and `--quiet` to a command that computes for a while."""
    add_json(command, "print the summary as JSON")
    command.add_argument("--quiet", action="store_true", help="no progress and no table")


def add_jobs(command: argparse.ArgumentParser) -> None:
    """Add how many runs a command makes at the same time."""
    command.add_argument(
        "--jobs", type=count, metavar="N", help="number of parallel runs (default: number of cores)"
    )


def add_places(command: argparse.ArgumentParser) -> None:
    """Add where the runs of a command are executed, and with how many threads."""
    add_jobs(command)
    command.add_argument(
        "--threads", type=count, default=1, metavar="N", help="threads of each run (default 1)"
    )
    command.add_argument(
        "--on",
        choices=("local", "ray"),
        default="local",
        help="where the runs are executed (default: this machine)",
    )


def add_set(command: argparse.ArgumentParser, what: str) -> None:
    """Add `--set`."""
    command.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help=what)


def add_controllers(command: argparse.ArgumentParser) -> None:
    """Add controllers written in Python."""
    command.add_argument(
        "--controller",
        action="append",
        default=[],
        metavar="NAME=FILE.py:CLASS",
        help="a congestion controller in Python, which the scenario names as python:NAME",
    )


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return what reads a whole number from `low` to `high`."""

    def read(text: str) -> int:
        if not (text.isdecimal() and text.isascii() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"expected a whole number from {low} to {high}, found {text!r}")
        return int(text)

    return read


count = whole(1, 10**6)
threads = whole(0, 1024)


def seconds(text: str) -> float:
    """Read seconds such as 30 or 0.5."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII) or not 0 < float(text) <= 1e6:
        raise argparse.ArgumentTypeError(f"expected seconds such as 30 or 0.5, found {text!r}")
    return float(text)


def percent(text: str) -> float:
    """Read a percentage, a plain decimal number: float() alone also takes "nan", "1_0" and " 5"."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"expected a percentage such as 3 or 2.5, found {text!r}")
    return float(text)


def print_json(value: object) -> None:
    """Print an answer as JSON, as every `--json` does."""
    import json

    print(json.dumps(value, indent=2, ensure_ascii=False))


def time_ns(option: str, text: str | None) -> int | None:
    """Return the nanoseconds of an option such as ``10s``, None without it; an error names the option."""
    from weftline.errors import InputError
    from weftline.quantities import parse_time_ns

    try:
        found = None if text is None else parse_time_ns(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
    if found is not None and found >= 2**63:
        raise InputError(f"{option}: expected less than 292 years, found {text}")
    return None if found is None else int(found)
