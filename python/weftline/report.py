"""The page over one or several run folders: slowdown by flow size, queues, goodput, and what was run."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from weftline import comparison, figures, page
from weftline.lines import Line
from weftline.page import Section
from weftline.runs import Run


def write(
    lines: Sequence[Line], path: Path, *, title: str = "", subtitle: str = "", command: str = ""
) -> Path:
    """Write the page over `lines` to `path` and return the path."""
    names = list(dict.fromkeys(run.name for line in lines for run in line.runs))
    title = title or (
        names[0] if len(names) == 1 else "Comparison of " + ", ".join(line.label for line in lines)
    )
    return page.write(
        path,
        title=title,
        subtitle=subtitle or _subtitle(lines),
        about=about([(line.label, run) for line in lines for run in line.runs], command=command),
        sections=[*result_sections(lines)],
    )


def result_sections(lines: Sequence[Line]) -> list[Section]:
    """Return the usual sections: the table, slowdown, queues, goodput; those without data are left out."""
    finished = [line for line in lines if line.has_flows]
    sections = [Section(text="\n\n".join(endings(lines)), tables=[comparison.table(lines)] if lines else [])]
    if finished:
        sections.append(
            Section(
                title="Flow completion",
                figures=[
                    figures.slowdown(
                        "FCT slowdown by flow size", finished, caption=comparison.ideal_text(finished)
                    )
                ],
            )
        )
    if any(line.runs[0].queues for line in lines):
        sections.append(
            Section(title="Queues", figures=[figures.queue_cdf("Queue length of switch ports", lines)])
        )
    goodput = figures.over_time(
        "Goodput over time",
        lines,
        metric_name="goodput_bps",
        axis="goodput (Gb/s)",
        scale=1e-9,
        combine="each",
        caption="Payload bytes delivered in order, all hosts together.",
    )
    if goodput.spec["data"]["values"]:
        sections.append(Section(title="Goodput", figures=[goodput]))
    return sections


def about(named: Sequence[tuple[str, Run]], *, command: str = "") -> list[tuple[str, str]]:
    """Return what the foot of a page says of its runs, each given with its label."""
    from weftline import _native

    runs = [run for _, run in named]

    rows = [("command", command or command_line())]
    seeds = sorted({str(run.summary["seed"]) for run in runs if run.summary.get("seed") is not None})
    rows.append(("seeds", ", ".join(seeds) or "–"))
    versions = {_versions_text(run.summary.get("versions")) for run in runs} - {""}
    rows.append(("versions", "; ".join(sorted(versions)) or f"weftline {_native.version()}"))
    rows.append(("page by", f"weftline {_native.version()}, Python {sys.version.split()[0]}"))
    for label, run in named:
        seed = f"seed {run.summary['seed']}, " if len(seeds) > 1 and "seed" in run.summary else ""
        rows.append((label, f"{seed}fingerprint {run.summary.get('fingerprint', '–')}, {run.out}"))
    return rows


def command_line() -> str:
    """Return the command as it was typed, near enough."""
    name = os.path.basename(sys.argv[0]) or "python"
    return shlex.join(["weftline" if name == "__main__.py" else name, *sys.argv[1:]])


def _versions_text(versions: object) -> str:
    if isinstance(versions, dict):
        return ", ".join(f"{name} {version}" for name, version in versions.items())
    return str(versions or "")


def _subtitle(lines: Sequence[Line]) -> str:
    run = lines[0].runs[0]
    flows = run.summary.get("flows")
    topology = run.scenario.get("topology", {}).get("kind", "")
    parts = [f"{flows:,} flows" if flows is not None else "", f"topology {topology}" if topology else ""]
    return ", ".join(part for part in parts if part)


def endings(lines: Sequence[Line]) -> list[str]:
    """Return a sentence for each run that did not end as it should."""
    return [
        f"{line.label}: the run in {run.out} is {run.summary.get('status')}; what it has is shown."
        for line in lines
        for run in line.runs
        if run.summary.get("status") not in ("done", None)
    ]
