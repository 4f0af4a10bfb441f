"""A picture of the network whose links are coloured by what was measured, with a slider over time.

Nodes stand in tiers, hosts at the bottom; a network without tiers is laid out by springs. Each link is drawn
as two lines, one for each direction. `assets/network.js` draws it in the browser.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weftline import quantities
from weftline.figures import marks
from weftline.measures import networks, over_seeds, over_time
from weftline.measures.lines import Line
from weftline.runs import Run

MAX_NODES, MAX_LINKS = 1500, 4000
MAX_FRAMES, MAX_VALUES = 60, 60_000
"""Of one measure of one run: what a browser moves through at once, and what fits into a page."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What can colour the links."""

    metric: str
    """In the series table."""
    title: str
    unit: str
    scale: float
    """From the stored value to the unit."""
    combine: str
    """How the samples of a frame become one value: ``mean``, ``max`` or ``sum``."""
    key: str
    """Of [measure], which asks for it."""


MEASURES = (
    Measure(
        metric="utilisation", title="utilisation", unit="%", scale=100, combine="mean", key="utilisation"
    ),
    Measure(metric="queue_bytes", title="longest queue", unit="KB", scale=1e-3, combine="max", key="queues"),
    Measure(metric="drops", title="dropped packets", unit="", scale=1, combine="sum", key="port_events"),
    Measure(metric="ecn_marks", title="marked packets", unit="", scale=1, combine="sum", key="port_events"),
    Measure(metric="pauses", title="pauses received", unit="", scale=1, combine="sum", key="port_events"),
)


@dataclass(kw_only=True)
class NetworkView:
    """The picture: what the page embeds, and its caption."""

    data: dict[str, Any]
    """For the browser: ``nodes``, ``links``, ``runs``."""
    notes: list[str] = field(default_factory=list)

    @property
    def has_values(self) -> bool:
        """Whether something was measured that can colour the links."""
        return any(run["measures"] for run in self.data["runs"])


def view(lines: Sequence[Line], built: Mapping[str, Any] | None = None) -> NetworkView | None:
    """Return the picture of the lines' network, None where there is none to draw.

    Lines on other networks than the first one's are left out, as are links beyond what a picture can show.
    """
    built = built or networks.built(lines[0].runs[0])
    if not built or not built["nodes"]:
        return None
    shown, notes = _reduced(built)
    if shown is None:
        return None
    topology = lines[0].runs[0].scenario.get("topology")
    alike = [line for line in lines if line.runs[0].scenario.get("topology") == topology]
    if len(alike) < len(lines):
        notes.append("The network of the first run is shown; runs on other networks are left out.")
    notes += filter(None, [over_seeds.drawn_seed(alike)])
    tiers = {node["tier"] for node in shown["nodes"] if node["kind"] == "switch"}
    tiered = len(tiers) > 1 or len(shown["nodes"]) - len(shown["links"]) == 1
    data = {
        "tiered": tiered,
        "nodes": _placed(shown, tiered),
        "links": [
            [link["a"], link["b"], link["a_port"], link["b_port"], quantities.rate_text(link["rate_bps"])]
            for link in shown["links"]
        ],
        "runs": [
            {
                "label": line.label,
                "folder": shlex.quote(str(run.out)),
                "measures": _measures(run, shown),
                "failures": _failures(run, shown),
            }
            for line, run in ((line, over_seeds.drawn_run(line)) for line in alike)
        ],
    }
    return NetworkView(data=data, notes=notes)


def _failures(run: Run, shown: Mapping[str, Any]) -> list[list[Any]]:
    """Return time in ns, links (by number), change and text of each failure and repair of a run."""
    found = []
    for one in marks.failure_events(run):
        links = [
            number
            for number, link in enumerate(shown["links"])
            if set(one.ends) <= {shown["nodes"][link["a"]]["name"], shown["nodes"][link["b"]]["name"]}
        ]
        found.append([one.at_ns, links, one.change if one.change in ("down", "up") else "rate", one.text])
    return found


def _reduced(built: Mapping[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """The network without its hosts where there are too many to draw."""
    nodes, links = built["nodes"], built["links"]
    if len(nodes) <= MAX_NODES and len(links) <= MAX_LINKS:
        return {"nodes": nodes, "links": links}, []
    kept = [i for i, node in enumerate(nodes) if node["kind"] == "switch"]
    place = {old: new for new, old in enumerate(kept)}
    inner = [
        {**link, "a": place[link["a"]], "b": place[link["b"]]}
        for link in links
        if link["a"] in place and link["b"] in place
    ]
    if len(kept) > MAX_NODES or len(inner) > MAX_LINKS:
        return None, []
    hosts = len(nodes) - len(kept)
    return {"nodes": [nodes[i] for i in kept], "links": inner}, [f"Its {hosts:,} hosts are not drawn."]


def _measures(run: Run, shown: Mapping[str, Any]) -> list[dict[str, Any]]:
    place = {}
    for i, link in enumerate(shown["links"]):
        place[link["a_port"]], place[link["b_port"]] = 2 * i, 2 * i + 1
    found = [_frames(run, measure, place) for measure in MEASURES]
    return [entry for entry in found if entry]


def _frames(run: Run, measure: Measure, place: Mapping[str, int]) -> dict[str, Any] | None:
    """One measure over time: a value for each direction of each link, None where it was not measured.

    A last interval that the end of the run cuts short belongs to the frame of the one before.
    """
    series = over_time.intervals(run, measure.metric)
    series = {port: found for port, found in series.items() if port in place}
    if not series:
        return None
    end = max(one.end for found in series.values() for one in found if one.part == 1 or one is found[0])
    every = over_time.interval_ns(run, measure.key) or end
    highest = max(1, min(MAX_FRAMES, MAX_VALUES // (2 * len(place) or 1)))
    length = every * math.ceil(end / every / highest - 1e-9)
    count = max(1, math.ceil(end / length - 1e-9))
    sums: list[list[float | None]] = [[None] * len(place) for _ in range(count)]
    parts = [[0.0] * len(place) for _ in range(count)]
    for port, found in series.items():
        column = place[port]
        for one in found:
            frame = min(count - 1, max(0, math.ceil(one.end / length - 1e-9) - 1))
            value = one.value * one.part if measure.combine == "mean" else one.value
            old = sums[frame][column]
            sums[frame][column] = (
                value if old is None else max(old, value) if measure.combine == "max" else old + value
            )
            parts[frame][column] += one.part
    if measure.combine == "mean":
        sums = [
            [None if v is None else v / n for v, n in zip(row, seen, strict=True)]
            for row, seen in zip(sums, parts, strict=True)
        ]
    values = [[None if v is None else _short(v * measure.scale) for v in row] for row in sums]
    known = [value for row in values for value in row if value is not None]
    return {
        "title": measure.title,
        "unit": measure.unit,
        "most": max(known, default=0),
        "length_ns": length,
        "values": values,
    }


def _short(value: float) -> float:
    """Three figures: what a colour and a tooltip can tell."""
    rounded = float(f"{value:.3g}")
    return int(rounded) if rounded == int(rounded) else rounded


def _placed(shown: Mapping[str, Any], tiered: bool) -> list[list[Any]]:
    """Nodes as ``[name, is host, x, y]``, both coordinates from 0 to 1, y downward."""
    points = (_in_tiers if tiered else _by_springs)(shown["nodes"], shown["links"])
    return [
        [node["name"], int(node["kind"] == "host"), round(x, 4), round(y, 4)]
        for node, (x, y) in zip(shown["nodes"], points, strict=True)
    ]


def _in_tiers(
    nodes: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]
) -> list[tuple[float, float]]:
    """Each tier is a row; hosts stand under their switch, switches above the middle of what is below them."""
    rows: dict[int, list[int]] = {}
    for i, node in enumerate(nodes):
        rows.setdefault(node["tier"], []).append(i)
    order = sorted(rows)
    x = [0.5] * len(nodes)
    neighbours = _neighbours(len(nodes), links)
    above = {i: [n for n in neighbours[i] if nodes[n]["tier"] > nodes[i]["tier"]] for i in range(len(nodes))}
    # Hosts in the order of their switches keep the lines from crossing.
    rows[order[0]].sort(key=lambda i: (min(above[i], default=0), i))
    for tier in order:
        row = rows[tier]
        for place, i in enumerate(row):
            x[i] = (place + 0.5) / len(row)
    top = len(order) - 1 or 1
    height = {tier: place for place, tier in enumerate(order)}
    return [(x[i], 1 - height[node["tier"]] / top) for i, node in enumerate(nodes)]


def _by_springs(
    nodes: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]
) -> list[tuple[float, float]]:
    """Switches by springs (Fruchterman and Reingold 1991), their hosts around them."""
    switches = [i for i, node in enumerate(nodes) if node["kind"] == "switch"]
    place = {node: n for n, node in enumerate(switches)}
    inner = [(place[k["a"]], place[k["b"]]) for k in links if k["a"] in place and k["b"] in place]
    spots = _springs(len(switches), inner)
    points = [(0.5, 0.5)] * len(nodes)
    for at, spot in zip(switches, spots, strict=True):
        points[at] = spot
    neighbours = _neighbours(len(nodes), links)
    seen: dict[int, int] = {}
    for i, node in enumerate(nodes):
        if node["kind"] == "host" and neighbours[i]:
            at = neighbours[i][0]
            rank = seen[at] = seen.get(at, -1) + 1
            x, y = points[at]
            angle = math.atan2(y - 0.5, x - 0.5) + 0.5 * ((rank + 1) // 2) * (-1) ** rank
            points[i] = (x + 0.07 * math.cos(angle), y + 0.07 * math.sin(angle))
    return _into_the_unit_square(points)


def _springs(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    spots = [
        (0.5 + 0.45 * math.cos(2 * math.pi * i / count), 0.5 + 0.45 * math.sin(2 * math.pi * i / count))
        for i in range(count)
    ]
    if not 2 < count <= 80:
        return spots
    ideal = math.sqrt(0.6 / count)
    for step in range(120):
        moves = [[0.0, 0.0] for _ in range(count)]
        for i in range(count):
            for j in range(i):
                _push(spots, moves, i, j, lambda d: ideal * ideal / d)
        for i, j in edges:
            if i != j:
                _push(spots, moves, i, j, lambda d: -d * d / ideal)
        heat = 0.1 * (1 - step / 120)
        for i, (dx, dy) in enumerate(moves):
            length = math.hypot(dx, dy) or 1
            reach = min(length, heat) / length
            spots[i] = (spots[i][0] + dx * reach, spots[i][1] + dy * reach)
    return spots


def _push(spots: Any, moves: Any, i: int, j: int, force: Any) -> None:
    dx, dy = spots[i][0] - spots[j][0], spots[i][1] - spots[j][1]
    distance = math.hypot(dx, dy) or 1e-3
    strength = force(distance) / distance
    moves[i][0] += dx * strength
    moves[i][1] += dy * strength
    moves[j][0] -= dx * strength
    moves[j][1] -= dy * strength


def _into_the_unit_square(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    spans = []
    for axis in (0, 1):
        low, high = min(p[axis] for p in points), max(p[axis] for p in points)
        spans.append((low, (high - low) or 1))
    (x0, width), (y0, height) = spans
    return [((x - x0) / width, (y - y0) / height) for x, y in points]


def _neighbours(count: int, links: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for link in links:
        found[link["a"]].append(link["b"])
        found[link["b"]].append(link["a"])
    return found
