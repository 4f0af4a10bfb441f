"""What is checked of an experiment's file before anything is run: keys, their types, and what they name.

Errors have the line of the key, the figure or the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weftline.errors import InputError, nearest
from weftline.measures import metrics
from weftline.reproduce import bounds, formulas
from weftline.toml_lines import Where, check_keys

if TYPE_CHECKING:
    from weftline.reproduce.experiments import Experiment, FigureDefinition

KINDS = {
    "comparison": "",
    "slowdown": "",
    "queue-cdf": "",
    "bars": "",
    "over-time": "metric",
    "trend": "along metric",
    "matrix": "along metric",
    "cost": "along",
    "trials": "along",
    "cdf": "",
    "groups": "",
}
"""Kinds of figures, and the keys that they need beyond those of all."""
CLAIMS: dict[str, tuple[str, str]] = {
    "metric": ("comparison slowdown queue-cdf bars over-time cdf groups", "line metric"),
    "curve": ("slowdown", "line against"),
    "trend": ("trend matrix", "line metric at"),
    "law": ("trend", "line tolerance"),
    "agreement": ("trend", "line within outside"),
    "order": ("trend", "line outside"),
    "cost": ("cost", "line metric"),
    "trials": ("trials", "line metric"),
}
"""Kinds of claims: of which kinds of figures they are, and the keys that they need."""
_KEYS: dict[str, dict[str, str]] = {
    "experiment": {
        "text": "title source text scenario folder",
        "table": "small full published",
        "table of tables": "hosts",
        "list of tables": "axis figure claim",
        "list of texts": "duration_keys",
        "whole number": "repeats",
        "true or false": "seeded",
    },
    "size": {
        "text": "says duration",
        "whole number": "hosts",
        "list of whole numbers": "seeds",
        "table": "set",
    },
    "published": {
        "text": "says",
        "whole number": "order",
        "list of texts": "figures",
        "list of whole numbers": "seeds",
        "table": "set",
        "table of lists of texts": "only",
    },
    "axis": {"text": "name", "list of tables": "variants"},
    "variant": {
        "text": "name size",
        "table": "set full",
        "table of tables": "with",
        "whole number": "threads",
    },
    "figure": {
        "text": "name title kind lines along published caption metric axis combine entities group log over"
        " against expected",
        "true or false": "log",
        "list of texts": "panels percentiles metrics",
        "list of whole numbers": "seeds",
        "number": "scale",
        "table": "set sizes metrics expected where",
        "table of lists of texts": "only",
    },
    "claim": {
        "text": "text figure kind line against at against_at percentile metric groups",
        "list of texts": "against",
        "list of tables": "within",
        "number": "below above at_most published outside apart seconds",
        "table": "sizes tolerance than",
        "table of texts": "panel",
    },
    "than": {
        "text": "figure line against at against_at percentile metric",
        "list of texts": "against",
        "table": "sizes",
        "table of texts": "panel",
    },
    "within": {"text": "figure", "number": "absolute relative"},
}
"""Keys of each table of the file, by what they may be."""
_NEEDED = {
    "experiment": "title figure",
    "published": "order",
    "axis": "name variants",
    "variant": "name",
    "figure": "name title kind lines",
    "claim": "text figure",
}


def _a(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _list(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(of, value))


def _table(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(of, value.values()))


_IS: dict[str, Callable[[Any], bool]] = {
    "text": _a(str),
    "true or false": _a(bool),
    "whole number": _a(int),
    "number": _a(int, float),
    "table": _a(dict),
    "list of texts": _list(_a(str)),
    "list of whole numbers": _list(_a(int)),
    "list of tables": _list(_a(dict)),
    "table of texts": _table(_a(str)),
    "table of tables": _table(_a(dict)),
    "table of lists of texts": _table(_list(_a(str))),
}


@contextmanager
def located(where: Where, *place: Any) -> Iterator[None]:
    """Put `where(*place)` before errors that occur here and name no place."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(where()):
            raise
        raise InputError(f"{where(*place)}: {error}") from None


def keys(table: dict[str, Any], kind: str, where: Where, header: str = "", number: int = 0) -> None:
    """Check that a table of the file has the keys that its kind needs, no unknown ones, and their types.

    It lies below the `number`-th header of this name.
    """
    kinds, here = _KEYS[kind], _called(table, kind)
    check_keys(table, kind, " ".join(kinds.values()), where, header, number)
    for key, value in table.items():
        expected = [what for what, keys in kinds.items() if key in keys.split()]
        if not any(_IS[what](value) for what in expected):
            at = where(key, header, number)
            raise InputError(f"{at}: {here}{key}: expected {' or '.join(expected)}, found {value!r}")
    with located(where, "", header, number):
        _needs(table, _NEEDED.get(kind, ""), here)


def _needs(table: Mapping[str, Any], keys: str, here: str) -> None:
    for key in keys.split():
        if key not in table:
            raise InputError(f'{here}expected the key "{key}"')


def _called(table: dict[str, Any], kind: str) -> str:
    """Begin an error message with what a table is, and its name if it has one."""
    name = table.get("name", table.get("text", ""))
    return "" if kind == "experiment" else f'{kind} "{name}": ' if name else f"{kind}: "


def references(experiment: Experiment, where: Where) -> None:
    """Check that what figures and claims name exists, and that each has what its kind needs."""
    for number, figure in enumerate(experiment.figures):
        with located(where, "", "figure", number):
            _check_figure(experiment, figure)
    _check_cost(experiment)
    _check_trials(experiment)
    figures = {figure.name: figure for figure in experiment.figures}
    for number, claim in enumerate(experiment.claims):
        with located(where, "", "claim", number):
            check_claim(claim, figures)
            _check_names(experiment, claim, figures)


def _known(what: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise InputError(f'unknown {what} "{name}": {nearest(name, names)}known: {", ".join(names)}')


def _check_figure(experiment: Experiment, figure: FigureDefinition) -> None:
    _known("kind of figure", figure.kind, list(KINDS))
    along = {"along": figure.along} if figure.along else {}
    _needs({**figure.options, **along}, KINDS[figure.kind], f'figure "{figure.name}": ')
    for axis in [figure.lines, *along.values(), *figure.panels, *figure.only]:
        _known("axis", axis, list(experiment.axes))
    for axis, variants in figure.only.items():
        for variant in variants:
            _known(f"variant of {axis}", variant, list(experiment.axes[axis]))
    if figure.kind == "slowdown" and "over" in figure.options:
        _known("line", figure.options["over"], experiment.named(figure, figure.lines))
    if figure.kind == "bars":
        _check_bars(figure)
    if figure.kind == "trend":
        if "against" in figure.options:
            _known("line", figure.options["against"], experiment.variants(figure, figure.lines))
        formulas.check_trend(figure, experiment.named(figure, figure.along))
        lines, places = (experiment.named(figure, axis) for axis in (figure.lines, figure.along))
        formulas.check_figure(figure, lines, places)
    if figure.kind == "matrix":
        metrics.metric(str(figure.options.get("metric", "")))


def _check_names(
    experiment: Experiment, claim: dict[str, Any], figures: Mapping[str, FigureDefinition]
) -> None:
    """Check that there is what a claim, and the side that it compares with, names."""
    for side in (claim, {**claim, **claim.get("than", {})}):
        _known("figure", side.get("figure", ""), list(figures))
        figure = figures[side["figure"]]
        against = side.get("against", [])
        for line in [side.get("line", ""), *([against] if isinstance(against, str) else against)]:
            _known("line", line, experiment.named(figure, figure.lines))
        for place in (side[key] for key in ("at", "against_at") if key in side):
            _known(f"variant of {figure.along}", place, experiment.named(figure, figure.along))
        for axis, variant in side.get("panel", {}).items():
            _known("axis", axis, list(experiment.axes))
            _known(f"variant of {axis}", variant, experiment.named(figure, axis))
    for bound in claim.get("within", []):
        _known("figure", bound.get("figure", ""), list(figures))


def check_claim(claim: dict[str, Any], figures: Mapping[str, FigureDefinition]) -> None:
    """Check that a claim has what its kind needs, so that nothing is found missing once all has run."""
    here = _called(claim, "claim")
    kind = claim.get("kind", "metric")
    if kind not in CLAIMS:
        raise InputError(
            f'{here}kind: unknown "{kind}": {nearest(kind, list(CLAIMS))}known: {", ".join(CLAIMS)}'
        )
    of, needed = CLAIMS[kind]
    _needs(claim, needed, here)
    figure = figures.get(claim["figure"])
    if figure is not None and figure.kind not in of.split():
        fitting = [name for name, (kinds, _) in CLAIMS.items() if figure.kind in kinds.split()]
        raise InputError(
            f'{here}kind: a figure of kind "{figure.kind}" has claims of kind {" or ".join(fitting)}, '
            f"not {kind}"
        )
    if "metric" in needed.split() and kind not in ("cost", "trials"):
        metrics.metric(claim["metric"])
    if kind == "law":
        formulas.tolerance(claim)
        if figure is not None and "expected" not in figure.options:
            raise InputError(f'{here}figure "{figure.name}" has no key "expected"')
    elif kind == "agreement":
        if not claim["within"] or any(
            ("absolute" in bound) == ("relative" in bound) for bound in claim["within"]
        ):
            raise InputError(f"{here}within: expected {{ figure, absolute }} or {{ figure, relative }}")
    elif kind != "order" and not claim.keys() & {*bounds.KEYS}:
        raise InputError(f'{here}expected "below", "above" or "at_most"')
    bounds.check(claim, here)


def _check_bars(figure: FigureDefinition) -> None:
    """What a figure of bars draws: `metric`, or several as `metrics`."""
    wanted = figure.options.get(
        "metrics", [figure.options[key] for key in ("metric",) if key in figure.options]
    )
    if (
        not isinstance(wanted, list)
        or not wanted
        or ("metric" in figure.options and "metrics" in figure.options)
    ):
        raise InputError(f'figure "{figure.name}": expected a metric, or a list of metrics')
    for name in wanted:
        metrics.metric(str(name))


def _check_cost(experiment: Experiment) -> None:
    """Check figures of kind "cost": no other kinds in the experiment, and numbers along them."""
    if not experiment.measures_cost:
        return
    if not 1 <= experiment.repeats <= 1000:
        raise InputError(f"repeats: expected a number from 1 to 1000, found {experiment.repeats!r}")
    _check_like(experiment, "cost", "1 024")
    for figure in experiment.figures:
        for variant in experiment.variants(figure, figure.lines):
            threads = experiment.axes[figure.lines][variant].get("threads", 1)
            if not 1 <= threads <= 65535:
                raise InputError(
                    f"axis {figure.lines}: {variant}: threads: expected 1 to 65535, found {threads!r}"
                )


def _check_trials(experiment: Experiment) -> None:
    """Check figures of kind "trials": no other kinds in the experiment, and numbers along them."""
    if not experiment.tries:
        return
    _check_like(experiment, "trials", "59")


def _check_like(experiment: Experiment, kind: str, example: str) -> None:
    """All figures are of one kind, and have numbers along them."""
    for figure in experiment.figures:
        if figure.kind != kind:
            raise InputError(
                f'figure "{figure.name}": one of kind "{kind}" can be combined only with others of its kind'
            )
        for variant in experiment.variants(figure, figure.along):
            if not variant.replace(" ", "").isdecimal():
                raise InputError(
                    f'axis {figure.along}: expected a number such as "{example}", found "{variant}"'
                )
