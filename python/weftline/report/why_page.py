"""Why flows were slow: each flow's critical chain over time, a row for each place, and the slowest flows."""

from __future__ import annotations

import heapq
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Protocol

from weftline import columns
from weftline.measures import held_flows, over_seeds, steps
from weftline.measures.lines import Line
from weftline.quantities import bytes_text, digits, time_text
from weftline.report import page
from weftline.runs import Run
from weftline.terminal import Table

# Each has a contrast of at least 3 to white and to dark paper. What waits is hatched, what moves is plain.
COLOURS = {
    "transmission": "#0072b2",
    "propagation": "#3c96cc",
    "own queue": "#b07d00",
    "queue of others": "#d55e00",
    "higher priority": "#c0392b",
    "pause": "#a0559c",
    "failure": "#d6336c",
    "queue discipline": "#c56a9c",
    "NIC shared": "#a8745a",
    "pacing": "#2a9d8f",
    "window": "#009e73",
    "opening": "#5c8a1e",
    "receiver": "#4f7cac",
    "retransmission": "#8a5a44",
    "timeout": "#7f7f7f",
    "loss detection": "#6f7d8c",
    "transport": "#8a8000",
    "computation": "#878787",
    "connection in use": "#6c6c6c",
}
BLACK, WHITE = "#000000", "#ffffff"
MOVING = ("transmission", "propagation", "retransmission")
SENDER = "at the sender"
LONG, CUT = 0.25, 0.14
"""Intervals with over this share of the time, next to which the others could not be seen, get this width."""
STEPS = 600
"""Intervals of one cause and place with less than this part of the width between them are drawn as one."""
MAX_LINES, MAX_FLOWS = 4, 5
"""Lines whose slowest flows a page lists, and how many of each."""


def write(
    path: Path,
    answer: dict[str, Any],
    *,
    run: str,
    tables: Sequence[Sequence[Table]],
    notes: Sequence[str] = (),
) -> Path:
    """Write the page of an answer; `tables` has those of each flow, `notes` what the answer leaves out."""
    return page.save(path, html(answer, run=run, tables=tables, notes=notes))


def html(
    answer: dict[str, Any], *, run: str, tables: Sequence[Sequence[Table]], notes: Sequence[str] = ()
) -> str:
    """Return the page of an answer as text."""
    shown = list(zip(answer["flows"], tables, strict=True))
    if "step" in answer:
        shown = [] if answer["step"]["undivided"] else shown[-MAX_FLOWS:]
    sections = [
        page.Section(
            title=f"Flow {flow['flow']}", text=text_of(flow), tables=list(of_flow), drawings=[drawing(flow)]
        )
        for flow, of_flow in shown
    ]
    flows = answer["flows"]
    if "step" in answer:
        sections.insert(0, _step_section(answer))
    return page.html(
        title="What this step waited for"
        if "step" in answer
        else f"Why flow {flows[0]['flow']} was slow"
        if len(flows) == 1
        else "Why these flows were slow",
        subtitle=run,
        about=[("command", f"weftline why {run}"), ("fingerprint", answer["fingerprint"])],
        sections=sections,
        lead=page.Lead(
            question="Where did the time go?", answer=[*_answers(answer), *(f"{note}." for note in notes)]
        ),
    )


def _answers(answer: dict[str, Any]) -> list[str]:
    """Return what took most of the time of each flow, or of the step.

    First, where that is not at links, which links limit them.
    """
    flows = answer["flows"]
    if "step" not in answer:
        held = held_flows.text(flows) if len(flows) > 1 else ""
        return [*([held] if held else []), *(_answer(flow) for flow in flows)]
    step = answer["step"]
    held = held_flows.text(flows, "messages of the chain")
    of_step = f"Step {step['step']}, {_largest_causes(step['causes'], step['time_ps'])}."
    return [of_step, *([held] if held else [])]


def _largest_causes(causes: Sequence[dict[str, Any]], whole: int) -> str:
    """Return a time, and what took most of it."""
    largest = sorted(causes, key=lambda part: -part["ps"])[:3]
    named = ", ".join(f"{part['cause']} {100 * part['ps'] / max(whole, 1):.1f} %" for part in largest)
    return f"{time_text(whole / 1000)}: {named}"


def _answer(flow: dict[str, Any]) -> str:
    """Return what took most of a flow's time, in one sentence."""
    return f"Flow {flow['flow']}, {_largest_causes(flow['causes'], flow['fct_ps'])}."


def text_of(flow: dict[str, Any]) -> str:
    """Return what the chain of a flow is, and how to read its drawing."""
    ideal = (
        f", {digits(flow['fct_ps'] / flow['ideal_ps'])} times what it takes alone" if flow["ideal_ps"] else ""
    )
    return (
        f"{bytes_text(flow['size_bytes'])} from {flow['src']} to {flow['dst']} ({flow['group']}) took "
        f"{time_text(flow['fct_ps'] / 1000)}{ideal}. The drawing shows its critical chain: at each time, "
        "where the flow was and what it waited for. Hatched intervals wait, plain ones move bits."
    )


def _step_section(answer: dict[str, Any]) -> page.Section:
    """Return what a step waited for: its causes, and the flows of its chain."""
    from weftline.cli import why

    step = answer["step"]
    return page.Section(
        title=f"Step {step['step']} of {step['job_name']}",
        text=f"{why.step_sentence(answer)}.",
        tables=why.step_tables(answer),
    )


def drawing(flow: dict[str, Any]) -> str:
    """Return the chain of a flow over time as HTML: a row for each place, in order of its first interval."""
    rows: dict[str, list[str]] = {}
    start = flow["start_ps"]
    breaks = _breaks(flow)
    for part in _merged(flow["intervals"], max(flow["fct_ps"], 1) // STEPS):
        x, end = (_place(part[key] - start, breaks) for key in ("from_ps", "to_ps"))
        took = time_text(part["ps"] / 1000)
        is_cut = any(
            part["from_ps"] - start <= t0 and t1 <= part["to_ps"] - start for t0, t1, *_ in breaks[1]
        )
        place = part["link"] or SENDER
        text = f"{part['cause']} {took}" + (", not to scale" if is_cut else "")
        kinds = _hatching(part["cause"])
        kinds += ["cut"] if is_cut else []
        # About a hundredth of the width for each character.
        kinds += [] if end - x > 0.0085 * len(text) else ["thin"]
        colour = COLOURS[part["cause"]]
        rows.setdefault(place, []).append(
            f'<i class="{" ".join(kinds)}" style="left:{100 * x:.3f}%;width:{100 * (end - x):.3f}%;'
            f'background-color:{colour};color:{_ink(colour)}" title="{escape(f"{place}, {text}")}">'
            f"{'' if 'thin' in kinds else escape(text)}</i>"
        )
    chain = "".join(
        f'<div><span>{escape(name)}</span><div class="track">{"".join(bars)}</div></div>'
        for name, bars in rows.items()
    )
    times = [_time(quarter / 4, breaks) / 1000 for quarter in range(5)]
    # As many figures as tell them apart: next to a wait that is cut they differ by little.
    labels = [[time_text(ns, figures=figures) for ns in times] for figures in range(3, 8)]
    shown = next((texts for texts in labels if len(set(texts)) == len(texts)), labels[-1])
    ticks = "".join(f'<b style="left:{25 * i}%">{escape(text)}</b>' for i, text in enumerate(shown))
    spent = sorted(flow["causes"], key=lambda part: -part["ps"])
    swatches = "".join(
        f'<span><i class="{" ".join(_hatching(part["cause"]))}" '
        f'style="background-color:{COLOURS[part["cause"]]}"></i>{escape(part["cause"])} '
        f"{time_text(part['ps'] / 1000)}, {100 * part['ps'] / max(flow['fct_ps'], 1):.1f} %</span>"
        for part in spent
        if part["ps"]
    )
    return (
        f'<div class="swatches">{swatches}</div><div class="chain" role="img" aria-label="Critical chain of '
        f'flow {flow["flow"]}">{chain}<div><span></span><div class="track ticks">{ticks}</div></div></div>'
    )


Span = tuple[int, int, float, float]


def _breaks(flow: dict[str, Any]) -> tuple[list[Span], list[Span]]:
    """Return the pieces of the axis, each with its times and places, and those that are cut.

    A wait that takes most of the time would leave no room for what came before and after it: it is cut.
    """
    total, start = max(flow["fct_ps"], 1), flow["start_ps"]
    long = [
        (part["from_ps"] - start, part["to_ps"] - start)
        for part in flow["intervals"]
        if part["to_ps"] - part["from_ps"] > LONG * total
    ]
    left = total - sum(t1 - t0 for t0, t1 in long)
    if not long or not 0 < left < LONG * total:
        return [(0, total, 0.0, 1.0)], []
    room = (1 - CUT * len(long)) / left
    pieces, cut, at, x = [], [], 0, 0.0
    for t0, t1 in long:
        if t0 > at:
            pieces.append((at, t0, x, x + (t0 - at) * room))
            x = pieces[-1][3]
        pieces.append((t0, t1, x, x + CUT))
        cut.append(pieces[-1])
        at, x = t1, x + CUT
    if at < total:
        pieces.append((at, total, x, 1.0))
    return pieces, cut


def _place(time: int, breaks: tuple[list[Span], list[Span]]) -> float:
    """Return the place of a time, from 0 to 1."""
    t0, t1, x0, x1 = next(piece for piece in breaks[0] if time <= piece[1])
    return x0 + (x1 - x0) * (time - t0) / (t1 - t0)


def _time(place: float, breaks: tuple[list[Span], list[Span]]) -> float:
    """Return the time at a place."""
    t0, t1, x0, x1 = next((piece for piece in breaks[0] if place <= piece[3]), breaks[0][-1])
    return t0 + (t1 - t0) * (place - x0) / (x1 - x0)


def _hatching(cause: str) -> list[str]:
    """Return the classes of a cause: what waits is hatched, with stripes that leave its text readable."""
    if cause in MOVING:
        return []
    return ["hatched", "dark"] if _ink(COLOURS[cause]) == WHITE else ["hatched"]


def _ink(colour: str) -> str:
    """Return black or white, whichever is read better on a colour (WCAG 2.1, relative luminance)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return WHITE if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179 else BLACK


def _merged(parts: Sequence[dict[str, Any]], step: int) -> list[dict[str, Any]]:
    """Return the intervals with ``ps``; adjacent and short ones of one cause and link become one."""
    merged: list[dict[str, Any]] = []
    last: dict[tuple[Any, ...], dict[str, Any]] = {}
    for part in parts:
        key, ps = (part["link"], part["cause"]), part["to_ps"] - part["from_ps"]
        before = last.get(key)
        gap = part["from_ps"] - before["to_ps"] if before else 0
        if before and (gap == 0 or (ps < step and gap < step)):
            before["to_ps"] = part["to_ps"]
            before["ps"] += ps
            continue
        last[key] = {**part, "ps": ps}
        merged.append(last[key])
    return merged


def slowest(run: Run, group: str | None = None, count: int = MAX_FLOWS) -> list[dict[str, Any]]:
    """Return the finished flows of the largest slowdown, as rows of `Run.flows`."""
    names = ["flow_id", "size_bytes", "src", "dst", "fct_ns", "slowdown", "timeouts", "group"]
    # A folder of an earlier version may lack some.
    names = [name for name in names if name in run.flows.columns]
    found = columns.read(run.flows, names)
    value = found["slowdown"]
    counted = (
        i for i in range(len(value)) if value[i] is not None and (group is None or found["group"][i] == group)
    )
    rows = heapq.nsmallest(count, counted, key=lambda i: (-value[i], found["flow_id"][i]))
    return [{name: found[name][i] for name in names} for i in rows]


class Address(Protocol):
    """Where a server says why a flow, or a step of a job, took its time."""

    def __call__(
        self, run: Run, *, flow: int | None = None, step: tuple[steps.Job, int] | None = None
    ) -> str: ...


def slowest_steps(lines: Sequence[Line], *, link: Address | None = None) -> list[str]:
    """Return the slowest steps of each line's first run: each opens the command that says why.

    Events of incasts are not among them: they are jobs without a chain of steps.
    """
    drawn = []
    for line in lines[:MAX_LINES]:
        run = over_seeds.drawn_run(line)
        ended = [step for step in run.steps if step["time_ns"] is not None and step["operation"] != "incast"]
        ended.sort(key=lambda step: -step["time_ns"])
        if ended and len(lines) > 1:
            drawn.append(f"<h3>{escape(line.label)}</h3>")
        drawn += [_slow_step(run, step, link) for step in ended[:MAX_FLOWS]]
    return drawn


def _slow_step(run: Run, step: dict[str, Any], link: Address | None) -> str:
    job, number = steps.job_of(step), step["step"]
    name, group = steps.job_names([run])[job], job[1]
    ratio = steps.row_over_ideal(step)
    ideal = f", {digits(ratio)} times its ideal time" if ratio else ""
    head = (
        f"<b>{escape(time_text(step['time_ns']))}</b> step {number} of {escape(name)}: "
        f"{escape(step['operation'])} of {bytes_text(step['bytes'])} on {step['ranks']} ranks{ideal}"
    )
    named = f" --group {shlex.quote(group)}" if group else ""
    named += f" --workload {job[0]}" if name != group else ""
    command = page.command_html(f"weftline why {shlex.quote(str(run.out))} --step {number}{named}")
    to = _say_why(link(run, step=(job, number))) if link else ""
    return f"<details class=flow><summary>{head}</summary>{to}{command}</details>"


def _say_why(address: str) -> str:
    return f'<p><a href="{escape(address)}" target="_blank">Say why</a>, or in a terminal:</p>'


def slowest_section(
    lines: Sequence[Line], *, link: Address | None = None, answers: int = 0
) -> list[page.Section]:
    """Return the slowest flows of each line's first run: each opens the command that says why, or its answer.

    Parameters
    ----------
    link : callable, optional
        The address that answers for a flow of a run, where there is a server.
    answers : int
        Of how many flows of each line the answer is embedded; each run is repeated twice for it.
    """
    drawn = []
    finished = [line for line in lines if line.has_flows][:MAX_LINES]
    for line in finished:
        run, found = over_seeds.drawn_run(line), {}
        if answers:
            from weftline.cli.why import why

            answer = why(run.out, slowest=answers, group=line.group, intervals=True)
            found = {flow["flow"]: flow for flow in answer["flows"]}
        rows = slowest(run, line.group, max(MAX_FLOWS, answers))
        if len(lines) > 1:
            drawn.append(f"<h3>{escape(line.label)}</h3>")
        drawn += [_slow_flow(run, row, link, found.get(row["flow_id"])) for row in rows]
    text = "Open a flow for its path, what it waited for at each hop, and who shared the queue."
    text = f"{text} {over_seeds.drawn_seed(finished)}".strip()
    return [page.Section(title="The slowest flows", text=text, drawings=drawn)] if drawn else []


def _slow_flow(run: Run, row: dict[str, Any], link: Address | None, answer: dict[str, Any] | None) -> str:
    flow = row["flow_id"]
    timeouts = f", {row['timeouts']} timeouts" if row.get("timeouts") else ""
    head = (
        f"<b>{digits(row['slowdown'])}×</b> flow {flow}, {escape(str(row.get('group', '')))}: "
        f"{bytes_text(row['size_bytes'])} from host {row['src']} to {row['dst']} "
        f"in {time_text(row['fct_ns'])}{timeouts}"
    )
    command = page.command_html(f"weftline why {shlex.quote(str(run.out))} --flow {flow}")
    to = _say_why(link(run, flow=flow)) if link else ""
    shown = f"<p>{escape(text_of(answer))}</p>{drawing(answer)}" if answer else ""
    start = f"<details class=flow{' open' if answer else ''}><summary>{head}</summary>"
    return f"{start}{shown}{to}{command}</details>"
