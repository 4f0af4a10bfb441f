"""Figures of kind "trend": a metric against the numbers of an axis, one line for each variant of `lines`.

    along = axis        its variants are named by numbers: "20", "0.5", "1/16"
    metric              a metric of `weftline.measures.metrics`
    sizes               { min, max }: the flows that count, where the metric is one of flows
    axis                title of the axis of x, with its unit
    over = variant      each line is drawn as its ratio to itself there, seed by seed
    against = line      each other line is drawn as its ratio to that one at the same place, seed by seed
    log                 "x", "y" or "xy": logarithmic axes

Published points are [x, y] in the units of the axes: hollow markers, and the second number in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.errors import InputError
from weftline.figures import specs
from weftline.measures.lines import Line, Mean
from weftline.measures.metrics import metric
from weftline.terminal import Table

if TYPE_CHECKING:
    from weftline.reproduce.exhibits import Panel
    from weftline.reproduce.experiments import FigureDefinition


def number(variant: str) -> float | None:
    """Return the number that a variant is named by, None if it is none."""
    try:
        return float(Fraction(variant.replace(" ", "")))
    except (ValueError, ZeroDivisionError):
        return None


def sizes(options: dict[str, Any]) -> tuple[int, int | None]:
    """Return the minimum and the maximum size in bytes of the flows that count."""
    wanted = options.get("sizes", {})
    smallest = int(quantities.parse_bytes(wanted["min"])) if "min" in wanted else 0
    return smallest, int(quantities.parse_bytes(wanted["max"])) if "max" in wanted else None


def check(figure: FigureDefinition, places: Sequence[str], path: object) -> None:
    """Raise InputError if a figure of this kind is not as it should be."""
    here = f'{path}: figure "{figure.name}"'
    if "metric" not in figure.options:
        raise InputError(f'{here}: expected the key "metric"')
    metric(figure.options["metric"])
    sizes(figure.options)
    for place in places:
        if number(place) is None:
            raise InputError(f'{here}: along: expected variants such as "20" or "1/16", found "{place}"')
    over = figure.options.get("over")
    if over is not None and over not in places:
        raise InputError(f'{here}: over: no "{over}" on {figure.along}: {", ".join(places)}')
    if over is not None and "against" in figure.options:
        raise InputError(f"{here}: expected over or against, not both")


def ratio(mine: Line | None, other: Line | None, name: str) -> Mean | None:
    """Return a metric of one line over that of another, seed by seed."""
    if mine is None or other is None:
        return None
    pairs = zip(mine.values(name), other.values(name), strict=False)
    return Mean.of([a / b for a, b in pairs if a is not None and b])


def published(p: Panel) -> dict[tuple[str, float], float]:
    """Return the published values by line and number, in the stored unit of the metric."""
    options = p.figure.options
    relative = options.get("over") or options.get("against")
    scale = 1.0 if relative else metric(options["metric"]).scale
    return {(e["line"], float(x)): y / scale for e in p.published for x, y in e["points"]}


def values(p: Panel) -> dict[str, dict[str, Mean]]:
    """Return what was measured by line and place, in their order; what is missing is not there."""
    name, over = p.figure.options["metric"], p.figure.options.get("over")
    against = p.figure.options.get("against")
    by_place = {(line.label, line.place): line for line in p.lines}
    found: dict[str, dict[str, Mean]] = {line.label: {} for line in p.lines if line.label != against}
    for (label, place), line in by_place.items():
        if label == against:
            continue
        if over or against:
            other = by_place.get((label, over) if over else (against, place))
            mean = ratio(line, other, name)
        else:
            mean = line.metric(name)
        if mean is not None:
            found[label][place] = mean
    return found


def draw(p: Panel, title: str) -> specs.Figure:
    """Return the panel as a figure."""
    options = p.figure.options
    found = metric(options["metric"])
    relative = options.get("over") or options.get("against")
    scale = 1.0 if relative else found.scale
    measured = values(p)
    points = [
        (label, number(place), scale * mean.value)
        for label, places in measured.items()
        for place, mean in places.items()
    ]
    published = [(e["line"], x, y) for e in p.published if e["line"] in measured for x, y in e["points"]]
    drawn = specs.trend(
        title,
        list(measured),
        points,
        published,
        axes=(
            options.get("axis", p.figure.along),
            f"{found.title}, relative" if relative else found.axis or found.title,
        ),
        log=options.get("log", ""),
        zero=not relative,
    )
    drawn.tables = [table(p, "")]
    return drawn


def table(p: Panel, title: str) -> Table:
    """Return the panel as a table: a row for each line, measured / published at each place."""
    from weftline.measures import comparison

    found, over = metric(p.figure.options["metric"]), p.figure.options.get("over")
    against = p.figure.options.get("against")
    write = quantities.digits if over or against else found.text
    measured = values(p)
    places = list(dict.fromkeys(line.place for line in p.lines))
    message = published(p)
    rows = []
    for label, means in measured.items():
        cells = []
        for place in places:
            text = means[place].text(write) if place in means else "–"
            theirs = message.get((label, number(place)))
            cells.append(text if theirs is None else f"{text} / {write(theirs)}")
        rows.append([label, *cells])
    theirs = "expected" if "expected" in p.figure.options else "published"
    note = [f"measured / {theirs}"] if message else []
    if over:
        note.append(f"relative to {p.figure.options.get('axis', p.figure.along)} {over}")
    if against:
        note.append(f"relative to {against}, seed by seed")
    if found.of_flows and "sizes" in p.figure.options:
        note.append(f"flows that count: {_counted(p.lines)} a point")
    if found.completion and (left := comparison.left_out(p.lines)):
        note.append(left.strip())
    heading = f"{found.title}, by {p.figure.options.get('axis', p.figure.along)}"
    return Table([heading, *places], rows, title=title, note="; ".join(note))


def _counted(lines: Sequence[Line]) -> str:
    counts = [
        run.completion(min_size=line.sizes[0], max_size=line.sizes[1], group=line.group)["count"]
        for line in lines
        for run in line.runs
    ]
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{low}" if low == high else f"{low} to {high}"
