"""Figures of path tracing, and of the network itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weftline.figures import network_view
from weftline.figures.marks import HEIGHT, WIDTH, rows_of, unit_of_lines
from weftline.figures.specs import Figure
from weftline.measures import decoded, over_seeds
from weftline.measures.lines import Line
from weftline.terminal import Table


def paths_known(title: str, lines: Sequence[Line]) -> Figure:
    """Return the share of flows whose path PINT's collector knows after n packets, by hops of the path.

    The flows of all seeds together; runs without digests of a query for paths have no curve.
    """
    rows, texts, labels = [], [], []
    for line in lines:
        by_hops: dict[int, list[int | None]] = {}
        for run in line.runs:
            for hops, packets in decoded.packets_until_known(run).items():
                by_hops.setdefault(hops, []).extend(packets)
        for hops, packets in sorted(by_hops.items()):
            path = f"{hops} switch{'es' if hops > 1 else ''}"
            label = path if len(lines) == 1 else f"{line.label}, {path}"
            known = sorted(p for p in packets if p is not None)
            labels.append(label)
            rows.append({"line": label, "x": 0, "y": 0.0})
            rows += [
                {"line": label, "x": p, "y": float(f"{100 * (i + 1) / len(packets):.5g}")}
                for i, p in enumerate(known)
            ]
            # Of all flows: a path that never became known took more packets than any other.
            half = len(packets) // 2
            middle = known[half] if half < len(known) else None
            texts.append([label, str(len(packets)), str(len(known)), "–" if middle is None else str(middle)])
    x = {"field": "x", "type": "quantitative", "title": "packets of the flow", "axis": {"format": ",~r"}}
    y = {"field": "y", "type": "quantitative", "title": "paths known (%)", "scale": {"domain": [0, 100]}}
    unit = unit_of_lines(labels, x, y, points=False, order="y", interpolate="step-after")
    spec = rows_of(rows) | {"width": 2 * WIDTH, "height": HEIGHT, **unit}
    table = Table(["path", "flows", "known", "median packets"], texts)
    caption = over_seeds.pooled_text(lines, "Flows")
    return Figure(title=title, spec=spec, caption=caption, tables=[table] if texts else [])


def network(title: str, line: Line, *, metric: str = "utilisation") -> Figure | None:
    """Return a picture of the network that stands still: links coloured by what they carried.

    Each link is drawn once, in the colour of its busier direction; None where the network cannot be drawn.
    `metric` is one of `network_view.MEASURES`; without it in the run, no link has a colour.
    """
    view = network_view.view([line])
    if view is None:
        return None
    nodes, links = view.data["nodes"], view.data["links"]
    wanted = next(m for m in network_view.MEASURES if m.metric == metric)
    frames = next((m for m in view.data["runs"][0]["measures"] if m["title"] == wanted.title), None)
    values = _over_the_run(frames["values"], wanted.combine, len(links)) if frames else [None] * len(links)
    down: set[int] = set()
    for _, failed, change, _ in view.data["runs"][0]["failures"]:
        down = down | set(failed) if change == "down" else down - set(failed) if change == "up" else down
    name = f"{wanted.title} ({wanted.unit})" if wanted.unit else wanted.title
    rows = [
        {
            "kind": "link",
            "name": f"{nodes[a][0]} – {nodes[b][0]}",
            "x": nodes[a][2],
            "y": nodes[a][3],
            "x2": nodes[b][2],
            "y2": nodes[b][3],
            "value": value,
            "down": number in down,
        }
        for number, ((a, b, *_), value) in enumerate(zip(links, values, strict=True))
    ]
    rows += [
        {"kind": "host" if host else "switch", "name": label, "x": x, "y": y} for label, host, x, y in nodes
    ]
    spec = rows_of(rows) | {"width": 3 * WIDTH, "height": 340 if view.data["tiered"] else 460}
    spec |= {"layer": _network_layers(name, frames is not None)}
    how = "mean" if wanted.combine == "mean" else "sum" if wanted.combine == "sum" else "most"
    text = f"Each link in the colour of its busier direction, the {how} over the run." if frames else ""
    dashed = "Dashed links are down at the end." if down else ""
    return Figure(title=title, spec=spec, caption=" ".join(filter(None, [text, dashed, *view.notes])))


def _over_the_run(frames: Sequence[Sequence[Any]], combine: str, links: int) -> list[float | None]:
    """One value for each link: of its two directions, the larger."""

    def of(direction: int) -> float | None:
        known = [row[direction] for row in frames if row[direction] is not None]
        if not known:
            return None
        return max(known) if combine == "max" else sum(known) / (len(known) if combine == "mean" else 1)

    pairs = [(of(2 * link), of(2 * link + 1)) for link in range(links)]
    return [max((v for v in pair if v is not None), default=None) for pair in pairs]


def _network_layers(name: str, coloured: bool) -> list[dict[str, Any]]:
    place = {
        "x": {"field": "x", "type": "quantitative", "axis": None, "scale": {"domain": [-0.03, 1.03]}},
        "y": {"field": "y", "type": "quantitative", "axis": None, "scale": {"domain": [1.08, -0.08]}},
    }
    scale = {"scheme": "yelloworangebrown", "domainMin": 0}
    legend = {"orient": "top", "symbolType": "stroke", "symbolSize": 300}
    colour = {"field": "value", "type": "quantitative", "title": name, "scale": scale, "legend": legend}
    thick = {"field": "value", "type": "quantitative", "title": name, "legend": legend}
    thick["scale"] = {"range": [1.2, 4.5]}
    parts = [{"field": "name"}, {"field": "value", "type": "quantitative", "title": name}]
    lines = {
        "transform": [{"filter": "datum.kind == 'link'"}],
        "mark": {"type": "rule", "strokeCap": "round"},
        "encoding": {
            **place,
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
            "tooltip": parts,
            "strokeDash": {"condition": {"test": "datum.down", "value": [2, 5]}, "value": [1, 0]},
        }
        | ({"color": colour, "strokeWidth": thick} if coloured else {"color": {"value": "#999999"}}),
    }
    dots = {
        "transform": [{"filter": "datum.kind != 'link'"}],
        "mark": {"type": "point", "filled": True, "opacity": 1, "fill": "#FFFFFF", "stroke": "#777777"},
        "encoding": place
        | {
            "size": {"condition": {"test": "datum.kind == 'host'", "value": 30}, "value": 110},
            "tooltip": [{"field": "name"}],
        },
    }
    texts = {
        "transform": [{"filter": "datum.kind == 'switch'"}],
        "mark": {"type": "text", "dy": -11, "fontSize": 10},
        "encoding": {**place, "text": {"field": "name"}},
    }
    return [lines, dots, texts]
