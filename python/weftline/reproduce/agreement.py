"""Claims place by place along the axis of x of figures of kind "trend": agreement with what was published,
and laws, what a formula expects.

    kind = "agreement"   `line` is within all bounds of `within` at all places but `outside`:
                         within = [{ figure, absolute = 0.03 }, { figure, relative = 0.015 }]: the metric of
                         that figure against its published points
    kind = "order"       the same groups win and lose at all places but `outside`: published.json has under
                         `groups` entries { line, place, groups = { name = Mb/s of a flow } }; of two groups
                         whose published goodputs differ by more than the factor `apart` (default 1.1), the
                         one that has more there must have more here

With `seconds` a claim is about runs of that length: of shorter ones the places are shown, but nothing is
decided. Only places that were run count; what each came to is the verdict's detail.

Laws: what was found at each place of a figure of kind "trend", held against what its formula expects.

A claim with `kind = "law"` on a figure with `expected` (see `weftline.reproduce.formulas`): at every place
the found number of `line` over the expected one, seed by seed, is within `tolerance = { relative = 0.1 }`
of 1 or between those of `{ from = 0.5, to = 1.1 }`, or differs from it by at most `{ absolute = 1.0 }`, or
is at most `{ at_most = 0 }` above it.
PASS needs the whole 95 % interval at every place, DIFFERS an interval wholly outside at one; else it is
OPEN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from weftline import quantities
from weftline.measures import evidence, sharing
from weftline.measures.lines import Line, Mean
from weftline.measures.metrics import Flows, metric
from weftline.reproduce import formulas
from weftline.reproduce.claims import Verdict, few_seeds
from weftline.reproduce.experiments import Experiment
from weftline.reproduce.formulas import expected, formula_of
from weftline.reproduce.panels import Panel, published_points
from weftline.terminal import Table

APART = 1.1
"""Published goodputs of two groups must differ by this factor for their order to count."""


@dataclass(kw_only=True)
class Place:
    """What became of one place."""

    name: str
    cells: list[str]
    agrees: bool
    values: dict[str, Any] = field(default_factory=dict)
    """For programs: measured and published, by metric or group."""


def check(
    experiment: Experiment, claim: dict[str, Any], panels: Sequence[Panel], *, seeded: bool = True
) -> Verdict | None:
    """Check a claim of either kind; None where nothing of it was run or published.

    `seeded`: whether a seed can change what the places come to.
    """
    found = _order(experiment, claim, panels) if claim["kind"] == "order" else _within(claim, panels)
    columns, places = found
    if not places:
        return None
    outside = [place.name for place in places if not place.agrees]
    total = len(places)
    rows = [[p.name, "PASS" if p.agrees else "DIFFERS", *p.cells] for p in places]
    figure = next(p.figure for p in panels if p.figure.name == claim["figure"])
    seconds = claim.get("seconds", 0)
    ran = _seconds(claim, panels)
    short = ran < seconds
    holds = None if short else len(outside) <= claim["outside"]
    seeds = _seeds(claim, panels)
    reasons = [*(few_seeds(seeds) if seeded else []), *_reasons(claim, panels)]
    title = f"{claim['text']}: {total - len(outside)} of {total} here"
    note = f"{ran:g} s measured / {seconds:g} s published" if short else "measured / published"
    table = Table([figure.along, "", *columns], rows, title=title, note=note, left=2)
    return Verdict(
        text=claim["text"],
        measured=len(outside),
        published=None,
        bound=f"≤ {claim['outside']}",
        holds=holds,
        decided=None if reasons else holds,
        reasons=tuple(reasons),
        seeds=seeds,
        unseeded=not seeded,
        bounds={"at_most": claim["outside"]},
        counts=claim["kind"],
        write=_counted(total, outside),
        detail=table,
        places=[{"place": p.name, "agrees": p.agrees} | p.values for p in places],
    )


def _reasons(claim: dict[str, Any], panels: Sequence[Panel]) -> list[evidence.Reason]:
    """Reasons against a verdict in the runs that the claim looks at: those that did not end."""
    figures = [bound["figure"] for bound in claim.get("within", [])] or [claim["figure"]]
    found = []
    for figure in figures:
        panel, lines = _lines(panels, figure, claim["line"])
        name = panel.figure.options.get("metric", "") if panel and claim["kind"] != "order" else ""
        for line in lines.values():
            flows = Flows(min_size=line.sizes[0], max_size=line.sizes[1], group=line.group)
            found += evidence.against(line.runs, name, flows=flows, remark="")
    return list(dict.fromkeys(reason for reason in found if reason.kind != "seeds"))


def _seconds(claim: dict[str, Any], panels: Sequence[Panel]) -> float:
    """The simulated seconds of the shortest run that the claim looks at."""
    _, lines = _lines(panels, claim["figure"], claim["line"])
    return min(1e-9 * run.summary["end_ns"] for line in lines.values() for run in line.runs)


def _seeds(claim: dict[str, Any], panels: Sequence[Panel]) -> int:
    """On how many seeds each place was run."""
    _, lines = _lines(panels, claim["figure"], claim["line"])
    return min(len(line.runs) for line in lines.values())


def _counted(total: int, outside: Sequence[str]) -> Callable[[float | None], str]:
    named = f" ({', '.join(outside)})" if outside else ""
    return lambda count: "–" if count is None else f"{count:.0f} of {total} differ{named}"


def _lines(panels: Sequence[Panel], figure: str, label: str) -> tuple[Panel | None, dict[str, Line]]:
    """A figure's panel, and the runs of a line by place."""
    panel = next((p for p in panels if p.figure.name == figure), None)
    found = {line.place: line for line in panel.lines if line.label == label} if panel else {}
    return panel, found


def _within(claim: dict[str, Any], panels: Sequence[Panel]) -> tuple[list[str], list[Place]]:
    bounds = claim["within"]
    columns: list[str] = []
    by_place: dict[str, Place] = {}
    for bound in bounds:
        panel, lines = _lines(panels, bound["figure"], claim["line"])
        if panel is None:
            return [], []
        found = metric(panel.figure.options["metric"])
        columns.append(found.title)
        text = published_points(panel)
        for name, line in lines.items():
            x = formulas.number(name)
            theirs = None if x is None else text.get((claim["line"], x))
            mean = line.metric(panel.figure.options["metric"])
            if theirs is None or mean is None:
                continue
            place = by_place.setdefault(name, Place(name=name, cells=[], agrees=True))
            place.cells.append(f"{mean.text(found.text)} / {found.text(theirs)}")
            place.agrees &= _is_within(bound, mean.value, theirs)
            place.values[panel.figure.options["metric"]] = {"measured": mean.value, "published": theirs}
    return columns, [place for place in by_place.values() if len(place.cells) == len(bounds)]


def _is_within(bound: dict[str, Any], ours: float, theirs: float) -> bool:
    highest = bound["absolute"] if "absolute" in bound else bound["relative"] * abs(theirs)
    return abs(ours - theirs) <= highest


def _order(
    experiment: Experiment, claim: dict[str, Any], panels: Sequence[Panel]
) -> tuple[list[str], list[Place]]:
    _, lines = _lines(panels, claim["figure"], claim["line"])
    entries = experiment.published_values(claim.get("groups", "groups"))
    by_name = {entry["place"]: entry["groups"] for entry in entries if entry["line"] == claim["line"]}
    places = []
    for name, line in lines.items():
        theirs = by_name.get(name)
        ours = sharing.group_means(line.runs[0], ns3=True)
        if theirs is None or not ours:
            continue
        cells = [f"{group} {_mbps(ours.get(group))} / {_mbps(1e6 * rate)}" for group, rate in theirs.items()]
        agrees = same_order(ours, {g: 1e6 * rate for g, rate in theirs.items()}, claim.get("apart", APART))
        values = {"measured_bps": ours, "published_mbps": theirs}
        places.append(Place(name=name, cells=[", ".join(cells)], agrees=agrees, values=values))
    return ["goodput of a flow, mean by group (Mb/s)"], places


def _mbps(rate: float | None) -> str:
    return quantities.digits(None if rate is None else 1e-6 * rate)


def same_order(ours: dict[str, float], theirs: dict[str, float], apart: float = APART) -> bool:
    """Return whether of any two groups that are apart in `theirs` the same one has more in `ours`."""
    for winner, highest in theirs.items():
        for loser, lowest in theirs.items():
            if highest > apart * lowest and not ours.get(winner, 0.0) > ours.get(loser, 0.0):
                return False
    return True


@dataclass(kw_only=True)
class _LawPlace:
    """What became of a law at one place."""

    name: str
    expected: float
    found: Mean
    deviation: Mean
    """From what was expected: as a ratio, or as a difference."""
    holds: bool | None
    """None where the interval reaches over the bound."""


def check_law(claim: dict[str, Any], panels: Sequence[Panel]) -> Verdict | None:
    """Check a claim of kind "law"; None where nothing of it was run."""
    panel = next((p for p in panels if p.figure.name == claim["figure"]), None)
    lines = [line for line in panel.lines if line.label == claim["line"]] if panel else []
    if panel is None or not lines:
        return None
    allowed = formulas.tolerance(claim)
    name = panel.figure.options["metric"]
    over = panel.figure.options.get("over")
    base = next((line for line in lines if line.place == over), None)
    judged = [line for line in lines if line is not base] if over else lines
    places = [_judged(panel, line, base, name, allowed) for line in judged]
    known = [place for place in places if place is not None]
    if not known:
        return None
    worst = max(known, key=lambda p: allowed.beyond(p.deviation.value))
    seeds = min(len(line.runs) for line in lines)
    reasons = [*few_seeds(seeds), *_law_reasons(lines, name)]
    wrong = any(place.holds is False for place in known)
    decided = False if wrong else None if any(place.holds is None for place in known) else True
    text = quantities.digits if over else metric(name).text
    write = quantities.digits if allowed.is_ratio else text
    return Verdict(
        text=claim["text"],
        measured=worst.deviation.value,
        published=None,
        bound=_allowed_text(allowed, write),
        holds=allowed.beyond(worst.deviation.value) <= 0,
        decided=None if reasons else decided,
        reasons=tuple(reasons),
        write=write,
        interval=(worst.deviation.low, worst.deviation.high) if worst.deviation.interval else None,
        detail=_law_table(claim, panel, known, text, write, is_ratio=allowed.is_ratio),
        places=[_law_as_json(place) for place in known],
        seeds=seeds,
        counts="agreement",
        signed=not allowed.is_ratio,
    )


def _allowed_text(allowed: formulas.Tolerance, write: Callable[[float | None], str]) -> str:
    """What the deviation may be, as text."""
    if allowed.is_ratio:
        return f"{write(allowed.low)} to {write(allowed.high)}"
    return f"≤ {write(allowed.high)}" if math.isinf(allowed.low) else f"± {write(allowed.high)}"


def _judged(
    panel: Panel, line: Line, base: Line | None, name: str, allowed: formulas.Tolerance
) -> _LawPlace | None:
    """Judge a line at its place, relative to `base` where the figure is drawn so."""
    theory, found = expected(panel.figure, line), line.values(name)
    if base is not None:
        of_base = base.values(name)
        found = [a / b if a is not None and b else None for a, b in zip(found, of_base, strict=True)]
    pairs = [(a, b) for a, b in zip(found, theory, strict=True) if a is not None and b is not None]
    if not pairs or (allowed.is_ratio and not all(b for _, b in pairs)):
        return None
    deviation = Mean.of([a / b if allowed.is_ratio else a - b for a, b in pairs])
    means = Mean.of([b for _, b in pairs]), Mean.of([a for a, _ in pairs])
    assert deviation and means[0] and means[1]
    inside = allowed.low <= deviation.low and deviation.high <= allowed.high
    outside = deviation.low > allowed.high or deviation.high < allowed.low
    return _LawPlace(
        name=line.place,
        expected=means[0].value,
        found=means[1],
        deviation=deviation,
        holds=True if inside else False if outside else None,
    )


def _law_reasons(lines: Sequence[Line], name: str) -> list[evidence.Reason]:
    found = []
    for line in lines:
        flows = Flows(min_size=line.sizes[0], max_size=line.sizes[1], group=line.group)
        found += evidence.against(line.runs, name, flows=flows, remark="")
    return list(dict.fromkeys(reason for reason in found if reason.kind != "seeds"))


_WORDS = {True: "PASS", False: "DIFFERS", None: "OPEN"}


def _law_table(
    claim: dict[str, Any],
    panel: Panel,
    places: Sequence[_LawPlace],
    text: Callable[[float | None], str],
    write: Callable[[float | None], str],
    *,
    is_ratio: bool,
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
    columns = [axis, "", "expected", "found", "found / expected" if is_ratio else "found - expected"]
    note = f"expected: {formula_of(panel.figure, claim['line'])}"
    return Table(
        columns,
        rows,
        title=f"{claim['text']}: {metric(panel.figure.options['metric']).title}",
        left=2,
        note=note,
    )


def _law_as_json(place: _LawPlace) -> dict[str, Any]:
    return {
        "place": place.name,
        "holds": place.holds,
        "expected": place.expected,
        "found": place.found.value,
        "interval": None if place.found.interval is None else [place.found.low, place.found.high],
        "deviation": place.deviation.value,
    }
