"""`weftline why`: where the completion times of flows went, by running the stored scenario again."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from weftline.errors import InputError, nearest
from weftline.quantities import bytes_text, time_text
from weftline.terminal import Table

SHOWN = 5
"""Rows of the flows that shared a queue, and of the links of a run."""
SAMPLE = 20
"""How many of the slowest flows say which link limits a run."""


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; `command` makes one of a name, what it does, and its help."""
    from weftline.cli import main

    why = command("why", _why, "say why flows were slow, and which link they waited for")
    why.add_argument("folder", metavar="RUN", help="folder of a run")
    why.add_argument("--flow", type=_flow, metavar="N", help="one flow, by its flow_id")
    why.add_argument(
        "--slowest",
        type=main._count,
        metavar="N",
        help="the N flows of the largest slowdown",
    )
    why.add_argument("--group", metavar="NAME", help="only flows of this group")
    why.add_argument(
        "--link", metavar="A->B", help="only those of the slowest flows that waited at this link"
    )
    why.add_argument(
        "--controller",
        action="append",
        default=[],
        metavar="NAME=FILE.py:CLASS",
        help="a congestion controller in Python that the scenario names as python:NAME",
    )
    why.add_argument("--json", action="store_true", help="print JSON, with every interval")
    why.add_argument(
        "--out", metavar="FILE.html", help="also write a page, with the chain of each flow over time"
    )


def _flow(text: str) -> int:
    from weftline.cli import main

    return main._whole(text, 0, 2**32 - 1)


def _why(options: argparse.Namespace) -> int:
    if options.flow is not None and (options.slowest or options.group or options.link):
        raise InputError("--flow names one flow: expected none of --slowest, --group and --link with it")
    one_by_one = options.flow is not None or options.slowest or options.group or options.link
    answer = why(
        options.folder,
        flow=options.flow,
        slowest=options.slowest or (SHOWN if one_by_one and not options.link else SAMPLE),
        group=options.group,
        intervals=bool(options.json or options.out),
        controllers=options.controller,
    )
    if options.link:
        answer["flows"] = waited_at(answer, options.link)
    if options.out:
        from weftline.report import why_page

        tables = [flow_tables(flow) for flow in answer["flows"]]
        path = why_page.write(Path(options.out), answer, run=str(options.folder), tables=tables)
        if not options.json:
            print(f"page: {path}")
    if options.json:
        print(json.dumps(answer, indent=2))
        return 0
    if one_by_one:
        print("\n\n".join(flow_text(flow) for flow in answer["flows"]))
    if not one_by_one or len(answer["flows"]) > 1:
        print(("\n" if one_by_one else "") + links_text(answer))
    return 0


def why(
    folder: str | Path,
    *,
    flow: int | None = None,
    slowest: int = SHOWN,
    group: str | None = None,
    intervals: bool = False,
    controllers: list[str] | None = None,
) -> dict:
    """Return where the completion times of flows of a stored run went.

    Raises
    ------
    InputError
        If there is no such flow, or the scenario does not give the stored results again.
    """
    from weftline import _native
    from weftline.runs import Run

    run = Run.read(folder)
    status = run.summary.get("status")
    if status not in ("done", "stalled"):
        raise InputError(f"{folder}: its status is {status}; expected a run that came to its end")
    path = run.out / "scenario.toml"
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    laws = None
    if controllers:
        from weftline import controllers as own_laws

        laws = {name: law.make for name, law in own_laws.parse(controllers).items()}
    scenario = _native.Scenario(text, str(path), Path.cwd(), controllers=laws)
    found = scenario.why(
        str(run.summary.get("fingerprint")), flow=flow, slowest=slowest, group=group, intervals=intervals
    )
    return json.loads(found)


def waited_at(answer: dict, link: str) -> list[dict]:
    """Return the flows of an answer that waited at a link, the longest wait first.

    Raises
    ------
    InputError
        If none of them did.
    """
    waited = {
        flow["flow"]: sum(part["ps"] for part in flow["waits"] if part["link"] == link)
        for flow in answer["flows"]
    }
    found = [flow for flow in answer["flows"] if waited[flow["flow"]]]
    if not found:
        known = [one["link"] for one in answer["links"]]
        hint = nearest(link, known) or (f"they waited at {', '.join(known[:SHOWN])}" if known else "")
        raise InputError(
            f'none of the {len(answer["flows"])} slowest flows waited at the link "{link}": {hint}'.rstrip(
                ": "
            )
        )
    return sorted(found, key=lambda flow: -waited[flow["flow"]])


def _ps(value: int) -> str:
    return time_text(value / 1000)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def flow_tables(flow: dict) -> list[Table]:
    """Return the tables of one flow: its causes, and where it waited."""
    fct = flow["fct_ps"]
    causes = Table(["went to", "time", "share", "ps"])
    for part in sorted(flow["causes"], key=lambda part: -part["ps"]):
        causes.rows.append([part["cause"], _ps(part["ps"]), _share(part["ps"], fct), str(part["ps"])])
    total = sum(part["ps"] for part in flow["causes"])
    causes.rows.append(["completion time", _ps(total), _share(total, fct), str(total)])
    if not flow["waits"]:
        return [causes]
    waits = Table(["at the link", "waited for", "time"], left=2)
    for part in sorted(flow["waits"], key=lambda part: -part["ps"]):
        waits.rows.append([part["link"], part["cause"], _ps(part["ps"])])
    return [causes, waits]


def flow_text(flow: dict) -> str:
    """Return the account of one flow as text."""
    fct, ideal = flow["fct_ps"], flow["ideal_ps"]
    slowdown = f", {fct / ideal:.2f} times the {_ps(ideal)} that it takes alone" if ideal else ""
    lines = [
        f"flow {flow['flow']}: {bytes_text(flow['size_bytes'])} from {flow['src']} to {flow['dst']} "
        f"({flow['group']}) took {_ps(fct)}{slowdown}",
        "path of its last packet, and of the answer if it ends with that: " + ", ".join(flow["path"]),
    ]
    lines += [table.text() for table in flow_tables(flow)]
    worst = flow["worst_queue"]
    if worst:
        others = [f"flow {one['flow']} {_ps(one['ps'])}" for one in worst["shared"][:SHOWN]]
        left = len(worst["shared"]) - SHOWN
        more = f", and {left} more" if left > 0 else ""
        lines.append(
            f"worst queue: {worst['link']}, {_ps(worst['ps'])} for packets of: {', '.join(others)}{more}"
        )
    return "\n".join(lines)


def links_text(answer: dict) -> str:
    """Return the links by the time for which flows waited there."""
    links = answer["links"]
    count = len(answer["flows"])
    if not links:
        return f"none of the {count} slowest flows waited for another on its critical chain"
    table = Table(
        ["link", "worst queue of", "waited there"],
        title=f"links that the {count} flows of the largest slowdown waited for",
    )
    for link in links[:SHOWN]:
        table.rows.append(
            [link["link"], f"{link['flows']} flow{'s' * (link['flows'] != 1)}", _ps(link["waited_ps"])]
        )
    left = len(links) - SHOWN
    table.note = f"and {left} more links" if left > 0 else ""
    return table.text()
