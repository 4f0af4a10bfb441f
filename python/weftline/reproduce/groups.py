"""Groups of flows that figures and claims name: those that no workload of their runs has are errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from weftline.errors import InputError, nearest
from weftline.measures.metrics import group_of
from weftline.reproduce.checks import located
from weftline.toml_lines import Where

if TYPE_CHECKING:
    from weftline.reproduce.experiments import Choice, Experiment, FigureDefinition
    from weftline.sweeps.store import Point

Plan = Sequence[tuple["FigureDefinition", "Choice", str, Sequence["Point"]]]
"""Figure, panel, label of the line and its points, one per seed."""


def check(experiment: Experiment, plan: Plan) -> None:
    """Refuse figures and claims on a group of flows, or a job, that none of their runs has.

    Raises
    ------
    InputError
        Names the file, the figure or the claim, the group, and the nearest one that there is.
    """
    path = experiment.folder / "experiment.toml"
    where = Where(str(path), path.read_text("utf-8"))
    for number, figure in enumerate(experiment.figures):
        for what, group in _of_figure(figure):
            with located(where, "", "figure", number):
                points = _points(plan, figure.name)
                _require(f'figure "{figure.name}": {what}', group, points)
    for number, claim in enumerate(experiment.claims):
        for what, group, side in _of_claim(experiment, claim):
            with located(where, "", "claim", number):
                points = _points(plan, side["figure"], _labels(side), side.get("place"))
                _require(f'claim "{claim["text"]}": {what}', group, points)


def _of_figure(figure: FigureDefinition) -> Iterator[tuple[str, str]]:
    """What of a figure names a group, and the group."""
    options = figure.options
    if "group" in options:
        yield "group", options["group"]
    listed = options.get("metrics", [])
    formula = list(listed.values()) if isinstance(listed, dict) else listed
    for name in [*([options["metric"]] if "metric" in options else []), *formula]:
        if group := group_of(name):
            yield f'metric "{name}"', group


def _of_claim(experiment: Experiment, claim: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What of a claim names a group, the group, and figure, lines and place of the runs that have it."""
    for side in [claim, *([{**claim, **claim["than"]}] if "than" in claim else [])]:
        if group := group_of(side.get("metric", "")):
            yield f'metric "{side["metric"]}"', group, side
    if claim.get("kind") == "order":
        key = claim.get("groups", "groups")
        for entry in experiment.published_values(key):
            for group in entry["groups"] if entry["line"] == claim["line"] else ():
                place = entry["place"]
                yield f'"{key}" of published.json, place {place}', group, {**claim, "place": place}


def _labels(side: dict[str, Any]) -> set[str]:
    against = side.get("against", [])
    return {side["line"], *([against] if isinstance(against, str) else against)}


def _points(plan: Plan, figure: str, labels: set[str] | None = None, place: str | None = None) -> list[Point]:
    """A point of each place, or of one, of some lines of a figure."""
    return [
        points[0]
        for of, _, label, points in plan
        if of.name == figure and (labels is None or label in labels) and place in (None, points[0].place)
    ]


def _require(what: str, group: str, points: Sequence[Point]) -> None:
    # Workloads name their groups, except for traces, whose files do: these are read only if necessary.
    known: dict[str, None] = {}
    for groups_of in (_named, _of_flows):
        for point in points:
            known.update(dict.fromkeys(groups_of(point)))
            if group in known:
                return
    if points:
        raise InputError(
            f'{what}: no workload of its runs has the group "{group}": {nearest(group, list(known))}'
            f"known: {', '.join(known) or 'none'}"
        )


def _named(point: Point) -> list[str]:
    """The groups that the workloads of a point name."""
    workloads = point.scenario().values.get("workload", [])
    return [str(workload["group"]) for workload in workloads if "group" in workload]


def _of_flows(point: Point) -> list[str]:
    """The groups of all flows of a point."""
    return [str(group) for group in point.scenario().check().get("traffic", {}).get("groups", [])]
