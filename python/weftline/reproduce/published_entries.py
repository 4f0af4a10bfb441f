"""Entries of an experiment's published.json: what each kind of figure draws, checked when the file is read.

    slowdown     { line, percentile = "p95", values = [slowdown of each bin, of equally many flows, by size] }
    queue-cdf    { line, kilobytes = { "50" = KB, "95" = KB } }: percentiles of the queue length
    bars         { line, value }, in the stored unit of the metric (ns, bytes, bit/s, a share from 0 to 1);
                 with metric where the figure has several
    trend        { line, points = [[x, y], ...] }, in the units of the axes
    trials       { line, metric, points = [[x, y], ...] }, in the units of the axes
    cdf          { line, mbps = [Mb/s of each flow] }
    groups       { line, group, points = [[seconds, Mb/s], ...] } or { line, group, mean = Mb/s }
    order        { line, place, groups = { name = Mb/s of a flow } }: for a claim of this kind

Each may have panel = { axis = variant }: it is of that panel alone. Points of a trend stand at places of its
axis of x: their x is the number of a place to four digits (0.3333 is at "1/3"). Curves of trials may have
points between the places, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weftline.errors import InputError, nearest
from weftline.measures.lines import PERCENTILES
from weftline.reproduce import formulas

if TYPE_CHECKING:
    from weftline.reproduce.experiments import Experiment, FigureDefinition

FORMATS: dict[str, tuple[str, str]] = {
    "slowdown": ("line percentile values", "panel"),
    "queue-cdf": ("line kilobytes", "panel"),
    "bars": ("line value", "metric panel"),
    "trend": ("line points", "panel"),
    "trials": ("line metric points", "panel"),
    "cdf": ("line mbps", "panel"),
    "groups": ("line group", "points mean panel"),
    "order": ("line place groups", "panel"),
}
"""Keys that an entry needs, and those that it may have, by kind of figure, and for claims of kind "order"."""


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(formulas.is_number, value))


def _is_points(value: Any) -> bool:
    listed = isinstance(value, list) and bool(value)
    return listed and all(_is_numbers(point) and len(point) == 2 for point in value)


def _is_percentiles(value: Any) -> bool:
    named = isinstance(value, dict) and bool(value)
    return named and all(
        key.replace(".", "", 1).isdecimal() and formulas.is_number(value[key]) for key in value
    )


_IS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "line": ("a text", lambda value: isinstance(value, str)),
    "metric": ("a text", lambda value: isinstance(value, str)),
    "group": ("a text", lambda value: isinstance(value, str)),
    "place": ("a text", lambda value: isinstance(value, str)),
    "percentile": (f"one of {', '.join(PERCENTILES)}", lambda value: value in PERCENTILES),
    "values": (
        "a list of slowdowns above 0",
        lambda value: _is_numbers(value) and all(one > 0 for one in value),
    ),
    "mbps": ("a list of numbers", _is_numbers),
    "points": ("a list of points [x, y]", _is_points),
    "value": ("a number", formulas.is_number),
    "mean": ("a number", formulas.is_number),
    "kilobytes": ('a table of percentile and KB such as {"50": 1.5}', _is_percentiles),
    "groups": (
        "a table of group and Mb/s",
        lambda value: (
            isinstance(value, dict) and bool(value) and all(map(formulas.is_number, value.values()))
        ),
    ),
    "panel": (
        "a table of axis and variant",
        lambda value: isinstance(value, dict) and all(isinstance(one, str) for one in value.values()),
    ),
}
"""What the value of a key has to be."""


def check(experiment: Experiment) -> None:
    """Check what published.json has of the figures and claims of an experiment.

    Raises
    ------
    InputError
        If an entry is not as its kind of figure needs it; it names the file, the figure and the entry.
    """
    path = experiment.folder / "published.json"
    for figure in experiment.figures:
        if figure.published:
            here = f'{path}: figure "{figure.name}", key "{figure.published}"'
            _check_all(experiment, figure, figure.kind, figure.published, here)
    figures = {figure.name: figure for figure in experiment.figures}
    for claim in experiment.claims:
        if claim.get("kind") == "order":
            key = claim.get("groups", "groups")
            here = f'{path}: claim "{claim["text"]}", key "{key}"'
            figure = figures[claim["figure"]]
            entries = _check_all(experiment, figure, "order", key, here)
            _require_line(claim["line"], entries, here)
        elif claim.get("kind") == "agreement":
            _check_agreement(experiment, claim, figures)


def check_use(experiment: Experiment) -> None:
    """Check that figures or claims name every list of published.json.

    Raises
    ------
    InputError
        If none does: what was published would be neither drawn nor compared. It names the key.
    """
    named = [figure.published for figure in experiment.figures if figure.published]
    named += [claim.get("groups", "groups") for claim in experiment.claims if claim.get("kind") == "order"]
    for key in experiment.published_keys():
        if key not in named:
            raise InputError(
                f'{experiment.folder / "published.json"}: key "{key}": no figure or claim names it, so its '
                f'entries are not used: set published = "{key}" in the figure that draws them'
            )


def _check_agreement(
    experiment: Experiment, claim: Mapping[str, Any], figures: Mapping[str, FigureDefinition]
) -> None:
    """Check that there are published points of the line of a claim that counts how many agree with them."""
    for bound in claim["within"]:
        figure = figures[bound["figure"]]
        here = f'{experiment.folder / "experiment.toml"}: claim "{claim["text"]}": within'
        if figure.kind != "trend":
            raise InputError(
                f'{here}: figure "{figure.name}" is of kind "{figure.kind}", expected "trend": '
                "places along an axis are compared"
            )
        if not figure.published and "expected" not in figure.options:
            raise InputError(f'{here}: figure "{figure.name}" has no published points: expected "published"')
        _require_line(claim["line"], experiment.published(figure), here)


def _require_line(line: str, entries: list[dict[str, Any]], here: str) -> None:
    known = list(dict.fromkeys(entry["line"] for entry in entries))
    if line not in known:
        raise InputError(
            f'{here}: nothing was published of the line "{line}": {nearest(line, known)}'
            f"published: {', '.join(known)}"
        )


def _check_all(
    experiment: Experiment, figure: FigureDefinition, kind: str, key: str, here: str
) -> list[dict[str, Any]]:
    entries = experiment.published_values(key)
    for number, entry in enumerate(entries, 1):
        _check_entry(experiment, figure, kind, entry, f"{here}, entry {number}")
        for earlier, other in enumerate(entries[: number - 1], 1):
            if _are_of_the_same(entry, other):
                raise InputError(
                    f"{here}, entry {number}: line: entry {earlier} is of the same: expected one entry of a "
                    f"panel, line{', ' + ', '.join(_tells(entry)) if _tells(entry) else ''}"
                )
    return entries


def _tells(entry: Mapping[str, Any]) -> list[str]:
    return [key for key in ("percentile", "metric", "group", "place") if key in entry]


def _are_of_the_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two entries are of the same line, in a panel that both are of."""
    panels = one.get("panel", {}), other.get("panel", {})
    same = all(one.get(key) == other.get(key) for key in ("line", "percentile", "metric", "group", "place"))
    return same and all(panels[1].get(axis, variant) == variant for axis, variant in panels[0].items())


def _check_entry(experiment: Experiment, figure: FigureDefinition, kind: str, entry: Any, here: str) -> None:
    needed, more = (keys.split() for keys in FORMATS[kind])
    options = figure.options.get("metrics", [])
    if kind == "bars" and len(options) > 1:
        needed, more = [*needed, "metric"], [name for name in more if name != "metric"]
    one_of = [name for name in ("points", "mean") if kind == "groups"]
    what = f'a claim of kind "{kind}"' if kind == "order" else f'a figure of kind "{kind}"'
    keys = f"an entry of {what} has {', '.join(needed)}"
    keys += f" and {' or '.join(one_of)}" if one_of else ""
    rest = [name for name in more if name not in one_of]
    keys += f", and may have {' and '.join(rest)}" if rest else ""
    if not isinstance(entry, dict):
        raise InputError(f"{here}: expected a table, found {entry!r}; {keys}")
    for name in entry:
        if name not in (*needed, *more):
            raise InputError(f'{here}: unknown key "{name}": {nearest(name, [*needed, *more])}{keys}')
    for name in needed:
        if name not in entry:
            raise InputError(f'{here}: expected the key "{name}"; {keys}')
    if one_of and not any(name in entry for name in one_of):
        raise InputError(f'{here}: expected the key "points" or "mean"; {keys}')
    for name, value in entry.items():
        expected, fits = _IS[name]
        if not fits(value):
            raise InputError(f"{here}: {name}: expected {expected}, found {value!r}; {keys}")
    _check_names(experiment, figure, kind, entry, here)


def _check_names(
    experiment: Experiment, figure: FigureDefinition, kind: str, entry: Mapping[str, Any], here: str
) -> None:
    """Check the lines, panels, places and metrics that an entry names."""
    if kind != "trials":  # of which lines may be published alone
        _known(here, "line", entry["line"], experiment.named(figure, figure.lines))
    if "place" in entry:
        _known(here, f"variant of {figure.along}", entry["place"], experiment.named(figure, figure.along))
    if "metric" in entry:
        listed = figure.options.get("metrics", [figure.options.get("metric", "mean")])
        _known(here, "metric of the figure", entry["metric"], listed)
    axes = experiment.panel_axes(figure)
    for axis, variant in entry.get("panel", {}).items():
        _known(here, "axis", axis, list(experiment.axes))
        if axis not in axes:
            raise InputError(
                f'{here}: panel: figure "{figure.name}" has no panels of the axis "{axis}": '
                f"{'its panels are of ' + ', '.join(axes) if axes else 'it has one panel'}"
            )
        _known(here, f"variant of {axis}", variant, list(experiment.axes[axis]))
    if kind in ("trend", "trials"):
        _check_places(experiment, figure, kind, entry["points"], here)


def _check_places(
    experiment: Experiment, figure: FigureDefinition, kind: str, points: list[list[float]], here: str
) -> None:
    """Check that points stand at places of the axis of x; one of them at least where a curve is drawn."""
    places = list(experiment.axes[figure.along])
    off = [x for x, _ in points if formulas.at_place(x, places) is None]
    if off and (kind == "trend" or len(off) == len(points)):
        raise InputError(
            f"{here}: points: x = {off[0]:g} is not among the places of {figure.along}: {', '.join(places)}"
        )


def _known(here: str, what: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise InputError(f'{here}: unknown {what} "{name}": {nearest(name, names)}known: {", ".join(names)}')
