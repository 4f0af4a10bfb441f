"""What is checked of an experiment's file before anything is run: keys, their types, and what they name.

Errors have the line of the key, the figure or the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from weftline import scenarios
from weftline.errors import InputError, nearest
from weftline.measures import metrics
from weftline.measures.lines import PERCENTILES
from weftline.reproduce import bounds, formulas
from weftline.toml_lines import Where, check_keys

if TYPE_CHECKING:
    from weftline.reproduce.experiments import Experiment, FigureDefinition

KINDS: dict[str, tuple[str, str]] = {
    "comparison": ("", "group"),
    "slowdown": ("", "published percentiles over group caption"),
    "queue-cdf": ("", "published caption"),
    "bars": ("", "published metric metrics sizes group caption"),
    "over-time": ("metric", "axis scale combine entities log caption"),
    "trend": (
        "along metric",
        "published axis over against log sizes group expected where metrics caption",
    ),
    "matrix": ("along metric", "axis sizes group caption"),
    "cost": ("along", "axis metrics caption"),
    "trials": ("along", "published axis metrics log caption"),
    "cdf": ("", "published log caption"),
    "groups": ("", "published log caption"),
}
"""Kinds of figures: the keys that they need beyond those of all, and those that they may have."""
_OF_ALL_FIGURES = "name title kind lines panels only set"
_BOUNDS = "below above at_most"
CLAIMS: dict[str, tuple[str, str, str, str]] = {
    "metric": (
        "comparison slowdown queue-cdf bars over-time cdf groups",
        "line metric",
        f"against {_BOUNDS} published than",
        "figure panel line against metric",
    ),
    "curve": (
        "slowdown",
        "line against",
        f"percentile sizes {_BOUNDS} published than",
        "figure panel line against percentile sizes",
    ),
    "trend": (
        "trend matrix",
        "line metric at",
        f"against against_at {_BOUNDS} published than",
        "figure panel line against at against_at metric",
    ),
    "law": ("trend", "line tolerance", "", ""),
    "agreement": ("trend", "line within outside", "seconds", ""),
    "order": ("trend", "line outside", "groups apart seconds", ""),
    "cost": ("cost", "line metric", f"at against against_at {_BOUNDS}", ""),
    "trials": ("trials", "line metric", f"at against against_at {_BOUNDS} published", ""),
}
"""Kinds of claims: of which kinds of figures they are, the keys that they need, those that they may have, and
those that `than` may have."""
_OF_ALL_CLAIMS = "text figure kind panel seeded"
_KEYS: dict[str, dict[str, str]] = {
    "experiment": {
        "text": "title source text scenario folder",
        "table": "small full published",
        "table of tables": "hosts",
        "list of tables": "axis figure claim",
        "list of texts": "duration_keys",
        "whole number": "repeats",
        "true or false": "seeded steady",
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
        "true or false": "seeded",
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
    "number": formulas.is_number,
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
    if kind in ("figure", "claim"):
        _check_kind_has(table, kind, where, header, number)


def _keys_of(kind: str, own: str) -> list[str]:
    """The keys that have an effect in a figure or a claim of its own kind."""
    if kind == "claim":
        return f"{_OF_ALL_CLAIMS} {CLAIMS[own][1]} {CLAIMS[own][2]}".split()
    seeds = "" if own in ("cost", "trials") else "seeds"
    return f"{_OF_ALL_FIGURES} {seeds} {KINDS[own][0]} {KINDS[own][1]}".split()


def _check_kind_has(table: dict[str, Any], kind: str, where: Where, header: str, number: int) -> None:
    """Refuse keys that would have no effect in a figure or a claim of this kind."""
    kinds, own = list(CLAIMS if kind == "claim" else KINDS), table.get("kind", "metric")
    if own not in kinds:
        return
    known = {one: _keys_of(kind, one) for one in kinds}
    _refuse_idle(table, own, known, _called(table, kind), f"a {kind}", where, header, number)
    if "than" in table:
        known = {one: CLAIMS[one][3].split() for one in kinds}
        here = f"{_called(table, kind)}than: "
        _refuse_idle(table["than"], own, known, here, "than in a claim", where, header, number)


def _refuse_idle(
    table: dict[str, Any],
    own: str,
    known: Mapping[str, list[str]],
    here: str,
    what: str,
    where: Where,
    header: str,
    number: int,
) -> None:
    for key in table:
        kinds = [kind for kind, keys in known.items() if key in keys]
        if kinds and own not in kinds:
            raise InputError(
                f'{where(key, header, number)}: {here}{key} has no effect in {what} of kind "{own}", which '
                f"has {', '.join(known[own])}; kinds that have {key}: {', '.join(kinds)}"
            )


def unique(data: Mapping[str, Any], where: Where) -> None:
    """Refuse axes, variants, figures and claims of which an earlier one has the same name or text."""
    for kind, key in (("axis", "name"), ("figure", "name"), ("claim", "text")):
        seen: set[str] = set()
        for number, entry in enumerate(data.get(kind, [])):
            with located(where, key, kind, number):
                _require_new(str(entry[key]), seen, f"{key} of {kind}")
            of_axis: set[str] = set()
            for variant in entry["variants"] if kind == "axis" else ():
                with located(where, "variants", kind, number):
                    _require_new(str(variant["name"]), of_axis, f"axis {entry['name']}: variant")


def _require_new(name: str, seen: set[str], what: str) -> None:
    if name in seen:
        raise InputError(f'{what}: expected a name that no other has, found "{name}" twice')
    seen.add(name)


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
    for size, settings in experiment.sizes.items():
        with located(where, "seeds", size):
            _check_seeds(settings, f"{size}: ")
            _check_set(settings.get("set", {}), f"{size}: set: ")
    for number, figure in enumerate(experiment.figures):
        with located(where, "", "figure", number):
            _check_figure(experiment, figure)
            _check_set(figure.set, f'figure "{figure.name}": set: ')
    for number, axis in enumerate(experiment.axes):
        with located(where, "", "axis", number):
            _check_axis(experiment, axis)
    _check_cost(experiment)
    _check_trials(experiment)
    for number, claim in enumerate(experiment.claims):
        claim_references(experiment, claim, where, "claim", number)


def claim_references(
    experiment: Experiment, claim: dict[str, Any], where: Where, header: str, number: int
) -> None:
    """Check that what a claim, below the `number`-th header, names exists, and that it has what it needs."""
    figures = {figure.name: figure for figure in experiment.figures}
    with located(where, "", header, number):
        check_claim(claim, figures)
        _check_names(experiment, claim, figures)


def _known(what: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise InputError(f'unknown {what} "{name}": {nearest(name, names)}known: {", ".join(names)}')


def _value_known(key: str, value: str, known: list[str]) -> None:
    if value not in known:
        raise InputError(f'{key}: unknown "{value}": {nearest(value, known)}known: {", ".join(known)}')


def _check_figure(experiment: Experiment, figure: FigureDefinition) -> None:
    here = f'figure "{figure.name}": '
    _known("kind of figure", figure.kind, list(KINDS))
    along = {"along": figure.along} if figure.along else {}
    _needs({**figure.options, **along}, KINDS[figure.kind][0], here)
    drawn = [figure.lines, *along.values(), *figure.panels]
    for axis in [*drawn, *figure.only]:
        _known("axis", axis, list(experiment.axes))
    for axis in drawn:
        if drawn.count(axis) > 1:
            raise InputError(
                f'{here}expected different axes as lines, along and panels, found "{axis}" twice'
            )
    for axis, variants in figure.only.items():
        for variant in variants:
            _known(f"variant of {axis}", variant, list(experiment.axes[axis]))
        if not variants or len({*variants}) < len(variants):
            raise InputError(f"{here}only: {axis}: expected different variants, found {variants!r}")
    _check_seeds({"seeds": figure.seeds} if figure.seeds else {}, here)
    _check_options(experiment, figure, here)
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


def _check_axis(experiment: Experiment, name: str) -> None:
    """Check that an axis is used, and that its variants name those of other axes."""
    figures, axes = experiment.figures, experiment.axes
    if not any(name in (f.lines, f.along, *f.panels, *f.only) for f in figures):
        raise InputError(f'axis "{name}": no figure has it as lines, along or panels, or in only')
    others = [variant for axis, variants in axes.items() if axis != name for variant in variants]
    for variant, settings in axes[name].items():
        for other, more in settings.get("with", {}).items():
            _value_known(f"axis {name}: {variant}: with", other, others)
            _check_set(more, f"axis {name}: {variant}: with: ")
        for key in ("set", "full"):
            _check_set(settings.get(key, {}), f"axis {name}: {variant}: {key}: ")
        if "threads" in settings and not experiment.measures_cost:
            raise InputError(
                f'axis {name}: {variant}: threads has an effect in experiments of kind "cost" alone; '
                "expected the option --threads"
            )


def _check_seeds(settings: Mapping[str, Any], here: str) -> None:
    """Check seeds that the file lists: each of them once."""
    seeds = settings.get("seeds", [1])
    if not seeds or len({*seeds}) < len(seeds) or min(seeds) < 0:
        raise InputError(f"{here}seeds: expected different numbers from 0, found {seeds!r}")


def _check_set(settings: Mapping[str, Any], here: str) -> None:
    """Refuse settings that what runs a point replaces."""
    if "seed" in settings:
        raise InputError(
            f"{here}seed has no effect: every point is run with each of the seeds of its size or figure; "
            f"expected the key seeds there, found seed = {settings['seed']!r}"
        )


_VALUES = {"percentiles": PERCENTILES, "combine": ("sum", "max", "each")}
"""What some keys of figures may be, alone or in a list."""


def _check_options(experiment: Experiment, figure: FigureDefinition, here: str) -> None:
    """Check the values of what figures of its kind may have."""
    options = figure.options
    for key, known in _VALUES.items():
        values = options.get(key, [])
        for value in [values] if isinstance(values, str) else values:
            _value_known(f"{here}{key}", value, list(known))
        if key in options and (not values or len({*values}) < len(values)) and not isinstance(values, str):
            raise InputError(f"{here}{key}: expected different ones, found {values!r}")
    logs = {"over-time": (True, False), "trials": ("", "x")}.get(figure.kind, ("", "x", "y", "xy"))
    if "log" in options and options["log"] not in logs:
        listed = " or ".join(scenarios.value_to_toml(log) for log in logs)
        raise InputError(f"{here}log: expected {listed}, found {options['log']!r}")
    bounds.check_sizes(options, here)
    listed = options.get("metrics", [])
    if figure.kind in ("cost", "trials"):
        if not isinstance(listed, list):
            raise InputError(f"{here}metrics: expected a list of metrics, found {listed!r}")
        for name in listed:
            _value_known(f"{here}metrics", name, list(bounds.drawn_metrics(figure.kind)))
    if figure.kind in ("bars", "trend", "matrix"):
        read = [options.get("metric"), *(listed.values() if isinstance(listed, dict) else listed)]
        read += [claim.get("metric") for claim in experiment.claims if claim["figure"] == figure.name]
        chosen = {key for name in read if name for key in metrics.metric(str(name)).chosen_by}
        for key in ("sizes", "group"):
            if key in options and key not in chosen:
                raise InputError(f"{here}{key} has no effect: none of its metrics is one of some flows")


def _check_panel(
    experiment: Experiment, figure: FigureDefinition, panel: Mapping[str, str], here: str
) -> None:
    """Check that a claim names one panel of a figure."""
    axes = experiment.panel_axes(figure)
    for axis, variant in panel.items():
        _known("axis", axis, list(experiment.axes))
        if axis not in axes:
            raise InputError(
                f'{here}panel: figure "{figure.name}" has no panels of the axis "{axis}": '
                f"{'its panels are of ' + ', '.join(axes) if axes else 'it has one panel'}"
            )
        _known(f"variant of {axis}", variant, experiment.named(figure, axis))
    for axis in axes:
        variants = experiment.named(figure, axis)
        if axis not in panel and len(variants) > 1:
            raise InputError(
                f'{here}panel: figure "{figure.name}" has {len(variants)} panels of the axis "{axis}": '
                f'expected panel = {{ "{axis}" = one of them }}: {", ".join(variants)}'
            )


def _check_names(
    experiment: Experiment, claim: dict[str, Any], figures: Mapping[str, FigureDefinition]
) -> None:
    """Check that there is what a claim, and the side that it compares with, names."""
    here = _called(claim, "claim")
    thans: list[dict[str, Any]] = [{}, claim.get("than", {})]
    for than in thans:
        side = {**claim, **than}
        _known("figure", side["figure"], list(figures))
        figure = figures[side["figure"]]
        against = side.get("against", [])
        for line in [side.get("line", ""), *([against] if isinstance(against, str) else against)]:
            _known("line", line, experiment.named(figure, figure.lines))
        for place in (side[key] for key in ("at", "against_at") if key in side):
            _known(f"variant of {figure.along}", place, experiment.named(figure, figure.along))
        _check_panel(
            experiment, figure, _panel_there(experiment, claim, figure) | than.get("panel", {}), here
        )
        at = side.get("at")
        if "against" in side or "against_at" in side:
            other = side.get("against", side["line"])
            if side["line"] in (other if isinstance(other, list) else [other]) and at == side.get(
                "against_at", at
            ):
                raise InputError(f'{here}against: "{side["line"]}" would be compared with itself')
    for bound in claim.get("within", []):
        _known("figure", bound.get("figure", ""), list(figures))
        figure = figures[bound["figure"]]
        _check_panel(experiment, figure, _panel_there(experiment, claim, figure), here)
    if "than" in claim:
        _check_than(experiment, claim, figures, here)


def _panel_there(experiment: Experiment, claim: dict[str, Any], figure: FigureDefinition) -> dict[str, str]:
    """The panel of a claim on another figure: of the axes that this one has; on its own figure all of it."""
    axes = experiment.panel_axes(figure) if figure.name != claim["figure"] else list(claim.get("panel", {}))
    return {axis: variant for axis, variant in claim.get("panel", {}).items() if axis in axes}


def _check_than(
    experiment: Experiment, claim: dict[str, Any], figures: Mapping[str, FigureDefinition], here: str
) -> None:
    """Check that a claim compares with something else, under seeds that both have."""
    panel = {**claim.get("panel", {}), **claim["than"].get("panel", {})}
    if {**claim, **claim["than"], "panel": panel} == {"panel": {}, **claim}:
        raise InputError(f"{here}than: expected what differs from the claim, found {claim['than']!r}")
    one, other = figures[claim["figure"]], figures[claim["than"].get("figure", claim["figure"])]
    for size in experiment.sizes:
        mine, theirs = (experiment.seeds(size, figure) for figure in (one, other))
        if not {*mine} & {*theirs}:
            raise InputError(
                f"{here}than: numbers are compared seed by seed, but the figures have no seed in common: "
                f'"{one.name}" has {mine!r}, "{other.name}" {theirs!r}'
            )


def check_claim(claim: dict[str, Any], figures: Mapping[str, FigureDefinition]) -> None:
    """Check that a claim has what its kind needs, so that nothing is found missing once all has run."""
    here = _called(claim, "claim")
    kind = claim.get("kind", "metric")
    if kind not in CLAIMS:
        raise InputError(
            f'{here}kind: unknown "{kind}": {nearest(kind, list(CLAIMS))}known: {", ".join(CLAIMS)}'
        )
    of, needed, *_ = CLAIMS[kind]
    _needs(claim, needed, here)
    figure = figures.get(claim["figure"])
    for one in (figure, figures.get(claim.get("than", {}).get("figure", ""))):
        if one is None or one.kind in of.split():
            continue
        fitting = [name for name, (kinds, *_) in CLAIMS.items() if one.kind in kinds.split()]
        raise InputError(
            f'{here}kind: a figure of kind "{one.kind}" has claims of kind {" or ".join(fitting)}, not {kind}'
        )
    if "metric" in needed.split():
        for side in (claim, claim.get("than", {})):
            bounds.claimed_metric(kind, side.get("metric", claim["metric"]))
    if kind in ("cost", "trials"):
        _check_compared(claim, here)
    for against in (side["against"] for side in (claim, claim.get("than", {})) if "against" in side):
        if isinstance(against, list) and (kind != "curve" or not against):
            raise InputError(
                f"{here}against: expected one line, found {against!r}; "
                'several lines, of which the worst one counts, are for claims of kind "curve"'
            )
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


def _check_compared(claim: dict[str, Any], here: str) -> None:
    """Check that a claim on cost or trials names what it is compared with, as its metric needs it."""
    wanted = {"growth": ("against_at", "against"), "differences": ("against", "against_at")}
    needed, idle = wanted.get(claim["metric"], ("", ""))
    _needs(claim, needed, f"{here}{claim['metric']}: ")
    if idle in claim:
        raise InputError(
            f'{here}{idle} has no effect with metric = "{claim["metric"]}", which compares with "{needed}"'
        )
    if "against_at" in claim and "at" not in claim:
        raise InputError(
            f'{here}expected the key "at", the place that is compared with against_at: without it that is the'
            " last place of a size"
        )


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
