"""The commands on results that are there: `report` and `compare`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from weftline.cli import arguments


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands; `command` makes one of a name, what it does, and its help."""
    report = command("report", _report, "write one HTML page over runs, or over a sweep")
    report.add_argument(
        "folders", nargs="+", metavar="DIR", help="folder of a run, of a sweep, or a result store"
    )
    arguments.add_out(
        report,
        "FILE.html",
        "file of the page (default: report.html in the folder, or next to a sweep's folder)",
    )
    report.add_argument("--title", default="", metavar="TEXT", help="the page's title")
    report.add_argument("--question", default="", metavar="TEXT", help="the question that the page answers")
    arguments.add_json(report)
    report.add_argument(
        "--why",
        type=arguments.count,
        default=0,
        metavar="N",
        help="also say why the N slowest flows of each run were slow, by running it again",
    )

    compare = command("compare", _compare, "compare runs, or the settings of scenarios")
    compare.add_argument(
        "folders",
        nargs="+",
        metavar="DIR",
        help="folders of runs or sweeps; runs that differ only in the seed are averaged. Or scenarios "
        "(SCENARIO.toml): the settings in force that differ",
    )
    compare.add_argument(
        "--against", metavar="LABEL", help="baseline of the differences (default: the first line)"
    )
    compare.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="TEXT",
        help="what a line is called; given once for each line, in their order",
    )
    for option, metavar, what in (
        ("--group", "NAME", "only flows of this group count"),
        ("--min-size", "SIZE", "only flows of at least this size count, such as 10KB"),
        ("--max-size", "SIZE", "only flows of at most this size count"),
        (
            "--warmup",
            "TIME",
            "flows that start in this time, or share such as 10%%, of the arrivals do not count",
        ),
        ("--drain", "TIME", "flows that start in this time or share at the end do not count"),
    ):
        compare.add_argument(option, metavar=metavar, help=f"{what} (default: as the report of a sweep says)")
    arguments.add_out(compare, "FILE.html", "also write a page with the figures")
    arguments.add_json(compare)


def _report(options: argparse.Namespace) -> int:
    from weftline.report import run_page

    page = _without_damaged(
        options.folders,
        lambda: run_page.of_folders(
            options.folders,
            options.out,
            title=options.title,
            question=options.question,
            answers=options.why,
        ),
    )
    if options.json:
        arguments.print_json({"page": str(page)})
    else:
        print(page)
    return 0


def _without_damaged(folders: Sequence[str], do: Callable[..., Any]) -> Any:
    """Return what `do` returns; once more without runs of stores that turn out to be damaged."""
    from pathlib import Path

    from weftline.errors import InputError, RunFailed
    from weftline.sweeps.store import Store

    try:
        return do()
    except (InputError, RunFailed):
        stores = [Store(folder) for folder in map(Path, folders) if Store.is_at(folder)]
        if sum(store.suspect_damaged() for store in stores) == 0:
            raise
    return do()


def _compare(options: argparse.Namespace) -> int:
    from pathlib import Path

    scenarios = [name for name in options.folders if name.endswith(".toml") and not Path(name).is_dir()]
    if len(scenarios) == len(options.folders):
        from weftline.cli import differences

        return differences.command(options)
    if scenarios:
        from weftline.errors import InputError

        raise InputError(
            f"{scenarios[0]}: is a scenario; expected the folder of a run, or scenarios (.toml) alone"
        )
    from weftline import terminal
    from weftline.errors import Conflict
    from weftline.measures import comparison
    from weftline.report import run_page

    choice = comparison.chosen_flows(
        prefix="--",
        **{key: getattr(options, key) for key in ("group", "min_size", "max_size", "warmup", "drain")},
    )

    def compare() -> Any:
        compared = comparison.comparison_of(
            options.folders, against=options.against, labels=options.label, choice=choice
        )
        colour = terminal.has_colour(sys.stdout)
        return compared, compared.as_json() if options.json else compared.text(colour=colour)

    compared, shown = _without_damaged(options.folders, compare)
    found = compared.lines
    if options.json:
        arguments.print_json(shown)
    else:
        print(shown)
    for text in compared.warnings:
        terminal.say("error" if isinstance(text, Conflict) else "warning", text)
    if options.out:
        page = run_page.write(found, Path(options.out))
        print(f"page: {page}", file=sys.stderr if options.json else sys.stdout)
    return 0
