"""The page of `weftline why`: for each flow its causes, and its critical chain over time, link by link."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from weftline.quantities import bytes_text, time_text
from weftline.report import page
from weftline.terminal import Table

COLOURS = {
    "transmission": "#4c78a8",
    "propagation": "#9ecae9",
    "own queue": "#f2cf5b",
    "queue of others": "#f58518",
    "higher priority": "#e45756",
    "pause": "#b279a2",
    "failure": "#333333",
    "queue discipline": "#d67195",
    "NIC shared": "#ff9da6",
    "pacing": "#72b7b2",
    "window": "#54a24b",
    "opening": "#88d27a",
    "receiver": "#439894",
    "retransmission": "#9d755d",
    "timeout": "#79706e",
    "transport": "#bab0ac",
    "computation": "#d3d3d3",
    "connection in use": "#8c8c8c",
}
WIDTH, LEFT, ROW, STEPS = 1000, 190, 22, 800
MAX_ROWS = 40
"""Flows of the chain of a step that have a row of their own in its drawing; of more, links have."""
MAX_FLOWS = 5
"""Flows of such a chain that have a section of their own."""


def write(path: Path, answer: dict, *, run: str, tables: Sequence[Sequence[Table]]) -> Path:
    """Write the page of an answer; `tables` has those of each flow."""
    sections = []
    shown = list(zip(answer["flows"], tables, strict=True))
    if "step" in answer:
        sections.append(_step_section(answer))
        shown.sort(key=lambda one: one[0]["ideal_ps"] - one[0]["fct_ps"])
        shown = shown[:MAX_FLOWS]
    for flow, of_flow in shown:
        ideal = (
            f", {flow['fct_ps'] / flow['ideal_ps']:.2f} times what it takes alone" if flow["ideal_ps"] else ""
        )
        text = (
            f"{bytes_text(flow['size_bytes'])} from {flow['src']} to {flow['dst']} ({flow['group']}) took "
            f"{time_text(flow['fct_ps'] / 1000)}{ideal}. The drawing shows its critical chain, which is read "
            "from the end back to the start: at each time, where the flow was and what it waited for."
        )
        sections.append(
            page.Section(
                title=f"Flow {flow['flow']}", text=text, tables=list(of_flow), drawings=[drawing(flow)]
            )
        )
    return page.write(
        path,
        title="What this step waited for" if "step" in answer else "Why these flows were slow",
        subtitle=run,
        about=[("command", f"weftline why {run}"), ("fingerprint", answer["fingerprint"])],
        sections=sections,
    )


def _step_section(answer: dict) -> page.Section:
    """Return what a step waited for: its causes, the flows of its chain, and the chain over time."""
    from weftline.cli import why

    step = answer["step"]
    by_flow = len(answer["flows"]) <= MAX_ROWS
    intervals = []
    for flow, gap in zip(answer["flows"], step["gaps"], strict=True):
        row = f"flow {flow['flow']}, {flow['src']} to {flow['dst']}"
        at = flow["start_ps"] - gap["compute_ps"] - gap["held_ps"]
        for cause, ps in (("computation", gap["compute_ps"]), ("connection in use", gap["held_ps"])):
            if ps:
                intervals.append(
                    {"from_ps": at, "to_ps": at + ps, "cause": cause, "link": row if by_flow else None}
                )
            at += ps
        intervals += [part | ({"link": row} if by_flow else {}) for part in flow["intervals"]]
    chain = {
        "flow": step["step"],
        "start_ps": step["start_ps"],
        "fct_ps": step["time_ps"],
        "intervals": intervals,
    }
    return page.Section(
        title=f"Step {step['step']} of {step['job']}",
        text=f"{why.step_sentence(answer)}.",
        tables=why.step_tables(answer),
        drawings=[drawing(chain, name="step")],
    )


def drawing(flow: dict, *, name: str = "flow") -> str:
    """Return the chain of a flow over time as SVG: a row for each link, in order of its first interval."""
    rows: dict[str, int] = {}
    for part in flow["intervals"]:
        rows.setdefault(part["link"] or "at the sender", len(rows))
    start, span = flow["start_ps"], max(flow["fct_ps"], 1)
    height = (len(rows) + 2) * ROW
    shapes = []
    for name, row in rows.items():
        y = row * ROW + ROW * 0.7
        shapes.append(f'<text x="{LEFT - 8}" y="{y:.0f}" text-anchor="end">{escape(name)}</text>')
    for part in _merged(flow["intervals"], span // STEPS):
        x = LEFT + (WIDTH - LEFT) * (part["from_ps"] - start) / span
        width = max((WIDTH - LEFT) * (part["to_ps"] - part["from_ps"]) / span, 0.5)
        y = rows[part["link"] or "at the sender"] * ROW + 3
        text = f"{part['cause']}: {time_text((part['to_ps'] - part['from_ps']) / 1000)}"
        shapes.append(
            f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{ROW - 6}" '
            f'fill="{COLOURS[part["cause"]]}">'
            f"<title>{escape(text)}</title></rect>"
        )
    base = len(rows) * ROW
    for quarter in range(5):
        x = LEFT + (WIDTH - LEFT) * quarter / 4
        anchor = "end" if quarter == 4 else "middle"
        label = escape(time_text(span * quarter / 4000))
        shapes.append(f'<text x="{x:.0f}" y="{base + 15}" text-anchor="{anchor}">{label}</text>')
    x = LEFT
    for cause in dict.fromkeys(part["cause"] for part in flow["intervals"]):
        shapes.append(f'<rect x="{x}" y="{base + 25}" width="12" height="12" fill="{COLOURS[cause]}"/>')
        shapes.append(f'<text x="{x + 16}" y="{base + 35}">{escape(cause)}</text>')
        x += 30 + 7 * len(cause)
    return (
        f'<svg viewBox="0 0 {max(WIDTH, x)} {height}" width="100%" role="img" '
        f'aria-label="Critical chain of {name} {flow["flow"]}" font-size="12" fill="currentColor">'
        + "".join(shapes)
        + "</svg>"
    )


def _merged(parts: Sequence[dict], step: int) -> list[dict]:
    """Return the intervals; those of one cause and link with less than a step between them become one."""
    merged: list[dict] = []
    last: dict[tuple, dict] = {}
    for part in parts:
        key = (part["link"], part["cause"])
        before = last.get(key)
        if before and part["from_ps"] - before["to_ps"] < step:
            before["to_ps"] = part["to_ps"]
            continue
        last[key] = dict(part)
        merged.append(last[key])
    return merged
