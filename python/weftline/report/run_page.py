"""The page over run folders: answer, scenario in words, tables, figures, the network, how to rerun."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weftline.controllers import stand_ins
from weftline.errors import InputError
from weftline.figures import (
    flow_figures,
    job_figures,
    marks,
    network_view,
    path_figures,
    specs,
    time_figures,
)
from weftline.measures import (
    given,
    groups,
    jobs,
    line_notes,
    measured_alike,
    networks,
    over_seeds,
    queue_ports,
    slowdown_table,
    step_causes,
    steps,
)
from weftline.measures.lines import Line
from weftline.report import answer_text, headline, page, why_page
from weftline.report.page import Lead, Section
from weftline.runs import Run
from weftline.terminal import Table

MAX_HEATS = 4
"""Heat maps of queues on a page, one a line."""
MAX_STEPS = 60
"""Maximum number of steps of jobs that a page lists individually."""
MAX_PARTS = 500_000
"""Maximum number of parts of ranks in steps of jobs that a page draws."""
MAX_DOCUMENTS = 40
"""Resolved scenarios on a page; more runs than this differ in the seed, or are a sweep with its own file."""


def write(
    lines: Sequence[Line],
    path: Path,
    *,
    title: str = "",
    subtitle: str = "",
    question: str = "",
    command: str = "",
    answers: int = 0,
) -> Path:
    """Write the page over `lines` to `path` and return the path.

    Parameters
    ----------
    question : str
        What the reader wants to know; asked in general terms without it.
    answers : int
        Of how many of the slowest flows the page says why, by running each line's first run again.
    """
    text = html(lines, title=title, subtitle=subtitle, question=question, command=command, answers=answers)
    return page.save(path, text)


def of_folders(
    folders: Sequence[str],
    out: str | None = None,
    *,
    title: str = "",
    question: str = "",
    answers: int = 0,
) -> Path:
    """Write the page over folders of runs, or over one sweep, and return its path.

    Without `out` it is report.html in the one folder, or next to the first of several.
    """
    from weftline.report import sweep_page
    from weftline.sweeps.result import FILE, SweepResult

    first = Path(folders[0])
    path = Path(out) if out else (first if len(folders) == 1 else first.parent) / "report.html"
    if len(folders) == 1 and (first / FILE).exists():
        return sweep_page.write(
            SweepResult.open(first), path, title=title, question=question, answers=answers
        )
    lines = given.lines_in(folders)
    if not lines:
        raise InputError(f"{first}: holds no finished run")
    return write(lines, path, title=title, question=question, answers=answers)


def html(
    lines: Sequence[Line],
    *,
    title: str = "",
    subtitle: str = "",
    question: str = "",
    command: str = "",
    link: why_page.Address | None = None,
    answers: int = 0,
) -> str:
    """Return the page over `lines` as text; the parameters are those of `write`.

    Parameters
    ----------
    link : callable, optional
        The address that says why a flow of a run, or a step of its jobs, was slow, where there is a server.
    """
    names = list(dict.fromkeys(run.name for line in lines for run in line.runs))
    title = title or (
        names[0] if len(names) == 1 else "Comparison of " + ", ".join(line.label for line in lines)
    )
    built = networks.built(lines[0].runs[0])
    return page.html(
        title=title,
        subtitle=subtitle or _subtitle(lines),
        about=about([(line.label, run) for line in lines for run in line.runs], command=command),
        lead=lead(lines, question),
        sections=[
            Section(title="The scenario", text="\n\n".join(answer_text.scenario(lines, built))),
            *result_sections(lines, link=link),
            *figure_sections(lines),
            *network_sections(lines, built),
            *why_page.slowest_section(lines, link=link, answers=answers),
            rerun_section(lines),
        ],
    )


def lead(lines: Sequence[Line], question: str = "") -> Lead:
    """Return what a page over some lines begins with."""
    return Lead(
        question=question or answer_text.question(lines),
        notes=answer_text.unsaid(lines),
        answer=answer_text.answer(lines),
        numbers=headline.key_numbers(lines),
        cautions=headline.cautions(lines),
    )


def figure_sections(lines: Sequence[Line], *, by_size: bool = True, heats: bool = True) -> list[Section]:
    """Return the figures of some lines by topic; what has no data is left out.

    Parameters
    ----------
    by_size, heats : bool
        Whether slowdown by flow size, and the queues, are among them.
    """
    finished = [line for line in lines if line.has_flows]
    flows = []
    # Flows of one size share a bin: there is nothing to draw by size.
    ends = [{size for sizes, _ in line.sized for size in (sizes[0], sizes[-1])} for line in finished]
    if by_size and any(len(of) > 1 for of in ends):
        caption = line_notes.ideal_text(lines)
        flows.append(specs.slowdown("FCT slowdown by flow size", finished, caption=caption))
    if finished:
        chosen = any(not line.by_size.is_all for line in finished)
        caption = f"Flows that finished{', of all sizes and times of start' * chosen}."
        caption += line_notes.left_out(lines, of_all=True)
        flows.append(flow_figures.cumulative("Slowdown of all flows", finished, caption=caption))
    queues = []
    if heats and any(line.runs[0].queues for line in lines):
        queues.append(specs.queue_cdf(queue_ports.figure_title(lines), lines))
    queued = [line for line in lines if heats and _ever_queued(line.runs[0])][:MAX_HEATS]
    queues += time_figures.queue_heats("Queues by port and time", queued)
    goodputs = [_goodput(lines)] if heats else []
    shared = [line for line in lines if len(line.runs[0].over_time("goodput_bps", max_points=1)) > 1]
    if shared:
        goodputs.append(time_figures.fairness("Fairness over time", shared))
    traced = [line for line in lines if (line.runs[0].out / "telemetry.parquet").is_file()]
    known = path_figures.paths_known("Paths that PINT knows", traced) if traced else None
    topics = {
        "Flow completion": flows,
        "Queues": queues,
        "Goodput": [figure for figure in goodputs if figure.spec["data"]["values"]],
        "Paths": [known] if known and known.tables else [],
    }
    for figures in topics.values():
        _keep_marks(figures, lines)
    return [Section(title=name, figures=figures) for name, figures in topics.items() if figures]


def _keep_marks(figures: Sequence[specs.Figure], lines: Sequence[Line]) -> None:
    """Draw each line as in figures of all lines of the page, also where a figure lacks some of them."""
    for figure in figures:
        marks.keep_marks(figure.spec, [line.label for line in lines])


def _goodput(lines: Sequence[Line]) -> specs.Figure:
    each = len(lines) == 1 and specs.curves_over_time(lines, "goodput_bps") <= len(marks.COLOURS)
    return specs.over_time(
        "Goodput over time",
        lines,
        metric_name="goodput_bps",
        axis="goodput (Gb/s)",
        scale=1e-9,
        combine="each" if each else "sum",
        caption=_goodput_caption(lines, few=each),
    )


def _goodput_caption(lines: Sequence[Line], *, few: bool = True) -> str:
    """Return of which flows the goodput was measured, and whether these are one curve.

    Those of one line are not if they are `few`.
    """
    counts = {line.label: measured_alike.flows_measured(line.runs[0]) for line in lines}
    texts = {
        label: "all flows" if count is None or count[0] == count[1] else f"{count[0]:,} of {count[1]:,} flows"
        for label, count in counts.items()
    }
    if len(set(texts.values())) > 1:
        each = "; ".join(f"{label} {text}" for label, text in texts.items())
        return f"Payload bytes delivered by flows together: {each}."
    each = "by group" if None in counts.values() else "each by itself"
    how = each if len(lines) == 1 and few else "together"
    return f"Payload bytes delivered by {next(iter(texts.values()))}, {how}."


def network_sections(lines: Sequence[Line], built: Mapping[str, Any] | None) -> list[Section]:
    """Return the picture of the network with its slider, if there is a network to draw."""
    view = network_view.view(lines, built)
    if view is None:
        return []
    text = (
        "Each link is two lines, one for each direction. Move the slider or play; point at a link to read it."
        if view.has_values
        else 'Colours and a slider over time come with measure.utilisation = { ports = "*" }.'
    )
    return [Section(title="The network over time", text=text, networks=[view])]


def _ever_queued(run: Run) -> bool:
    means = run.over_time("queue_bytes", max_points=1)
    return any(value > 0 for points in means.values() for _, value in points)


def rerun_section(lines: Sequence[Line]) -> Section:
    """Return how to have the same runs again, with their resolved scenarios."""
    laws = dict.fromkeys(name for line in lines for name in stand_ins(_resolved(line.runs[0])))
    where = "".join(f" --controller {name}=FILE.py:CLASS" for name in laws)
    text = (
        "Save a resolved scenario as scenario.toml; the same version of weftline then gives the same bits, "
        f"which the fingerprint shows:\n\nweftline run scenario.toml{where}"
    )
    documents = []
    for line in lines:
        for run in line.runs:
            seed = f", seed {run.summary.get('seed', '–')}" if len(line.runs) > 1 else ""
            title = f"scenario.toml of {line.label}{seed}, fingerprint {run.summary.get('fingerprint', '–')}"
            documents.append((title, _resolved(run)))
    return Section(title="How to run it again", text=text, documents=documents[:MAX_DOCUMENTS])


def _resolved(run: Run) -> str:
    try:
        return (run.out / "scenario.toml").read_text("utf-8")
    except (OSError, ValueError) as error:
        return f"{run.out / 'scenario.toml'}: cannot be read: {error}"


def comparison_sections(lines: Sequence[Line]) -> list[Section]:
    """Return everything that is drawn of some lines: cautions, results, figures, the network over time."""
    results = result_sections(lines)
    if results:
        results[0].cautions = headline.cautions(lines)
    return [*results, *figure_sections(lines), *network_sections(lines, None)]


def result_sections(lines: Sequence[Line], *, link: why_page.Address | None = None) -> list[Section]:
    """Return the tables of some lines: slowdown by flow size, and the costs."""
    if not lines:
        return []
    whole = slowdown_table.table(lines)
    # A page has no room for both side by side.
    end = whole.columns.index("all") + 1
    slowdown = Table(whole.columns[:end], [row[:end] for row in whole.rows], left=whole.left, note=whole.note)
    rows = [[row[0], *row[end:]] for row in whole.rows if row[0]]
    costs = Table(["", *whole.columns[end:]], rows, note=queue_ports.note(lines))
    title = "Side by side" if len(lines) > 1 else "Results"
    by_group = groups.table(lines)
    tables = [slowdown, *([by_group] if by_group else []), costs]
    return [Section(title=title, tables=tables), *job_sections(lines, link=link)]


def about(named: Sequence[tuple[str, Run]], *, command: str = "") -> list[tuple[str, str]]:
    """Return the facts on runs for the foot of a page, each given with its label."""
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
    runs = [run for line in lines for run in line.runs]
    flows = [run.summary["flows"] for run in runs if run.summary.get("flows") is not None]
    counts = " to ".join(f"{count:,}" for count in sorted({min(flows), max(flows)})) if flows else ""
    kinds = dict.fromkeys(str(run.scenario.get("topology", {}).get("kind", "")) for run in runs)
    topologies = ", ".join(filter(None, kinds))
    parts = [f"{counts} flows" if counts else "", f"topology {topologies}" if topologies else ""]
    return ", ".join(part for part in parts if part)


def job_sections(lines: Sequence[Line], *, link: why_page.Address | None = None) -> list[Section]:
    """Return the jobs of runs that have some: their table, the time of each step, and the slowest steps."""
    table = jobs.table(lines)
    if table is None:
        return []
    of_page, lines = lines, [line for line in lines if line.runs[0].steps]
    run, seed = over_seeds.drawn_run(lines[0]), over_seeds.drawn_seed(lines)
    of_run = [jobs.steps_table(run, max_steps=MAX_STEPS)] if len(lines) == 1 else []
    figures = []
    if any(len(steps.own(line.runs[0])) > 1 for line in lines):
        times = job_figures.steps("Time of each step", lines, caption=jobs.IDEAL)
        figures += [times] if times.spec["data"]["values"] else []
    several = any(len(line.runs[0].steps) > 1 for line in lines)
    if several and any(step["busbw_bps"] for line in lines for step in line.runs[0].steps):
        figures.append(job_figures.steps("Bus bandwidth of each step", lines, column="busbw_bps"))
    _keep_marks(figures, of_page)
    text = f"Open a step for the chain of flows that made it long, and its causes. {seed}".strip()
    if len(lines) == 1 and sum(step["ranks"] for step in run.steps) <= MAX_PARTS:
        of_run.append(step_causes.table(lines[0].runs[0]))
        if timeline := job_figures.timeline("What ranks did", run):
            timeline.caption = f"{seed} {timeline.caption}".strip()
            figures.append(timeline)
    tables = [table, *filter(None, of_run)]
    for one in tables[1:]:
        one.note = f"{seed} {one.note}".strip()
    drawings = why_page.slowest_steps(lines, link=link)
    return [Section(title="Jobs", text=text, drawings=drawings, tables=tables, figures=figures)]
