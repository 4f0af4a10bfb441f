"""Laws: what was found at each place of a figure of kind "trend", held against what its formula expects.

A claim with `kind = "law"` on a figure with `expected` (see `weftline.reproduce.formulas`): at every place
the found number of `line` over the expected one, seed by seed, is within `tolerance = { relative = 0.1 }`
of 1 or between those of `{ from = 0.5, to = 1.1 }`, or differs from it by at most `{ absolute = 1.0 }`.
PASS needs the whole 95 % interval at every place, DIFFERS an interval wholly outside at one; else it is
OPEN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.errors import InputError
from weftline.measures import evidence
from weftline.measures.lines import Line, Mean
from weftline.measures.metrics import Flows, metric
from weftline.reproduce.formulas import expected, formula_of
from weftline.terminal import Table

if TYPE_CHECKING:
    from weftline.reproduce.claims import Verdict
    from weftline.reproduce.exhibits import Panel


@dataclass(kw_only=True)
class _Place:
    """What became of a law at one place."""

    name: str
    expected: float
    found: Mean
    deviation: Mean
    """From what was expected: as a ratio, or as a difference."""
    holds: bool | None
    """None where the interval reaches over the bound."""


def check(claim: dict[str, Any], panels: Sequence[Panel]) -> Verdict | None:
    """Check a claim of kind "law"; None where nothing of it was run."""
    from weftline.reproduce.claims import Verdict, few_seeds

    panel = next((p for p in panels if p.figure.name == claim["figure"]), None)
    lines = [line for line in panel.lines if line.label == claim["line"]] if panel else []
    if panel is None or not lines:
        return None
    relative, bound = _tolerance(claim)
    if "expected" not in panel.figure.options:
        raise InputError(f'claim "{claim["text"]}": figure "{panel.figure.name}" has no key "expected"')
    name = panel.figure.options["metric"]
    over = panel.figure.options.get("over")
    base = next((line for line in lines if line.place == over), None)
    judged = [line for line in lines if line is not base] if over else lines
    places = [_judged(panel, line, base, name, (relative, bound)) for line in judged]
    known = [place for place in places if place is not None]
    if not known:
        return None
    worst = max(known, key=lambda p: abs(p.deviation.value - relative))
    seeds = min(len(line.runs) for line in lines)
    reasons = [*few_seeds(seeds), *_reasons(lines, name)]
    wrong = any(place.holds is False for place in known)
    decided = False if wrong else None if any(place.holds is None for place in known) else True
    text = quantities.digits if over else metric(name).text
    write = quantities.digits if relative else text
    return Verdict(
        text=claim["text"],
        measured=worst.deviation.value,
        published=None,
        bound=f"{write(relative - bound)} to {write(relative + bound)}" if relative else f"± {write(bound)}",
        holds=abs(worst.deviation.value - relative) <= bound,
        decided=None if reasons else decided,
        reasons=tuple(reasons),
        write=write,
        interval=worst.deviation.interval and (worst.deviation.low, worst.deviation.high),
        detail=_table(claim, panel, known, text, write, relative),
        places=[_as_json(place) for place in known],
        seeds=seeds,
        counts="agreement",
    )


def _tolerance(claim: dict[str, Any]) -> tuple[float, float]:
    """Return the middle and half the width of what a ratio may be; of a difference the middle is 0."""
    match claim.get("tolerance"):
        case {"relative": int() | float() as bound, **rest} if not rest:
            return 1.0, float(bound)
        case {"from": int() | float() as low, "to": int() | float() as high, **rest} if (
            not rest and low < high
        ):
            return (low + high) / 2, (high - low) / 2
        case {"absolute": int() | float() as bound, **rest} if not rest:
            return 0.0, float(bound)
    raise InputError(
        f'claim "{claim["text"]}": tolerance: expected {{ relative }} or {{ from, to }} of the ratio,'
        " or { absolute }"
    )


def _judged(
    panel: Panel, line: Line, base: Line | None, name: str, tolerance: tuple[float, float]
) -> _Place | None:
    """Judge a line at its place, relative to `base` where the figure is drawn so."""
    relative, bound = tolerance
    theory, found = expected(panel.figure, line), line.values(name)
    if base is not None:
        of_base = base.values(name)
        found = [a / b if a is not None and b else None for a, b in zip(found, of_base, strict=True)]
    pairs = [(a, b) for a, b in zip(found, theory, strict=True) if a is not None and b is not None]
    if not pairs or (relative and not all(b for _, b in pairs)):
        return None
    deviation = Mean.of([a / b if relative else a - b for a, b in pairs])
    means = Mean.of([b for _, b in pairs]), Mean.of([a for a, _ in pairs])
    assert deviation and means[0] and means[1]
    low, high = deviation.low - relative, deviation.high - relative
    inside, outside = max(-low, high) <= bound, low > bound or high < -bound
    return _Place(
        name=line.place,
        expected=means[0].value,
        found=means[1],
        deviation=deviation,
        holds=True if inside else False if outside else None,
    )


def _reasons(lines: Sequence[Line], name: str) -> list[evidence.Reason]:
    found = []
    for line in lines:
        flows = Flows(min_size=line.sizes[0], max_size=line.sizes[1], group=line.group)
        found += evidence.against(line.runs, name, flows=flows, remark="")
    return list(dict.fromkeys(reason for reason in found if reason.kind != "seeds"))


_WORDS = {True: "PASS", False: "DIFFERS", None: "OPEN"}


def _table(
    claim: dict[str, Any],
    panel: Panel,
    places: Sequence[_Place],
    text: Callable[[float | None], str],
    write: Callable[[float | None], str],
    relative: float,
) -> Table:
    rows = [
        [
            place.name,
            _WORDS[place.holds],
            text(place.expected),
            place.found.text(text),
            place.deviation.text(write),
        ]
        for place in places
    ]
    axis = panel.figure.options.get("axis", panel.figure.along)
    columns = [axis, "", "expected", "found", "found / expected" if relative else "found - expected"]
    note = f"expected: {formula_of(panel.figure, claim['line'])}"
    return Table(
        columns,
        rows,
        title=f"{claim['text']}: {metric(panel.figure.options['metric']).title}",
        left=2,
        note=note,
    )


def _as_json(place: _Place) -> dict[str, Any]:
    return {
        "place": place.name,
        "holds": place.holds,
        "expected": place.expected,
        "found": place.found.value,
        "interval": None if place.found.interval is None else [place.found.low, place.found.high],
        "deviation": place.deviation.value,
    }
