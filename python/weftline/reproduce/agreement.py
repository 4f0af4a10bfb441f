"""Claims place by place along the axis of x of figures of kind "trend": agreement with what was published,
and laws, what a formula expects.

    kind = "agreement"   `line` is within all bounds of `within` at all places but `outside`:
                         within = [{ figure, absolute = 0.03 }, { figure, relative = 0.015 }]: the metric of
                         that figure against its published points
    kind = "order"       the same groups win and lose at all places but `outside`: published.json has under
                         `groups` entries { line, place, groups = { name = Mb/s of a flow } }; of two groups
                         whose published goodputs differ by more than the factor `apart` (default 1.1), the
                         one that has more there must have more here

A place agrees where the whole 95 % interval over its seeds is within the bound (of an order: that of the
difference of the two groups, seed by seed, is above 0), and differs where all of it is outside; else it is
open. PASS needs that no more places than `outside` differ even if all open ones did, DIFFERS that more do
even if no open one did. A seed without the number makes its place and the claim open.

With `seconds` a claim is about runs of that length: of shorter ones the places are shown, but nothing is
decided. Places with published numbers that were not run are open, as at a small size or under --only. What
each place came to is the verdict's detail.

Laws: what was found at each place of a figure of kind "trend", held against what its formula expects.

A claim with `kind = "law"` on a figure with `expected` (see `weftline.reproduce.formulas`): at every place
the found number of `line` over the expected one, seed by seed, is within `tolerance = { relative = 0.1 }`
of 1 or between those of `{ from = 0.5, to = 1.1 }`, or differs from it by at most `{ absolute = 1.0 }`, or
is at most `{ at_most = 0 }` above it.
PASS needs the whole 95 % interval at every place of the figure, DIFFERS an interval wholly outside at one;
else it is OPEN, as where a place was not run (at a small size, or under --only), a seed has no number at one,
or fewer than three have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from weftline import quantities
from weftline.measures import judgements, sharing
from weftline.measures.lines import Line, Mean
from weftline.measures.metrics import metric
from weftline.reproduce import claims, formulas, numbers
from weftline.reproduce.claims import Verdict
from weftline.reproduce.experiments import Experiment
from weftline.reproduce.formulas import expected, formula_of
from weftline.reproduce.panels import Panel, published_points, trend_base, trend_number
from weftline.runs import Run
from weftline.terminal import Table

APART = 1.1
"""Published goodputs of two groups must differ by this factor for their order to count."""


@dataclass(kw_only=True)
class Place:
    """What became of one place."""

    name: str
    cells: list[str]
    agrees: bool | None
    """None where the interval reaches over a bound, or a seed has no number."""
    values: dict[str, Any] = field(default_factory=dict)
    """For programs: measured and published, by metric or group."""
    of_seeds: list[numbers.BySeed] = field(default_factory=list)
    """The numbers that it was decided on."""

    @property
    def seeds(self) -> int:
        """How many seeds have all of its numbers."""
        return min(numbers.known(found) for found in self.of_seeds)

    @property
    def asked(self) -> int:
        """How many were to have them."""
        return max(len(found) for found in self.of_seeds)

    @property
    def lacking(self) -> list[judgements.Reason]:
        """The reasons that seeds without a number give."""
        return list(dict.fromkeys(r for found in self.of_seeds for r in numbers.without(found, self.name)))


def check(
    experiment: Experiment,
    claim: dict[str, Any],
    panels: Sequence[Panel],
    *,
    seeded: bool = True,
    steady: bool = True,
) -> Verdict | None:
    """Check a claim of either kind; None where nothing of it was run.

    `seeded`: whether a seed can change what the places come to. `steady`: whether runs have to come to a
    steady state.
    """
    found = _order(experiment, claim, panels) if claim["kind"] == "order" else _within(claim, panels)
    columns, places = found
    _, asked = _lines(panels, claim["figure"], claim["line"])
    if not asked or not all(_lines(panels, figure, claim["line"])[1] for figure in _figures(claim)):
        return None
    if not places:
        return _nothing_published(claim, list(asked), seeded=seeded)
    outside = [place.name for place in places if place.agrees is False]
    undecided = [place.name for place in places if place.agrees is None]
    total = len(places)
    rows = [[p.name, _WORDS[p.agrees], *p.cells] for p in places]
    figure = next(p.figure for p in panels if p.figure.name == claim["figure"])
    seconds = claim.get("seconds", 0)
    ran = _seconds(claim, panels)
    short = ran < seconds
    seeds = min(place.seeds for place in places)
    reasons = [*(numbers.few_seeds(seeds) if seeded else []), *_reasons(claim, panels, steady=steady)]
    reasons += [reason for place in places for reason in place.lacking]
    missing = _not_run(experiment, claim, panels)
    decided = _decided(claim["outside"], len(outside), len(undecided) + len(missing))
    unclear = [place.name for place in places if place.agrees is None and not place.lacking]
    if decided is None:
        reasons += _unclear(unclear)
        reasons += [judgements.Reason("places", f"not run: {', '.join(missing)}")] if missing else []
    title = f"{claim['text']}: {total - len(outside) - len(undecided)} of {total} here"
    note = f"{ran:g} s measured / {seconds:g} s published" if short else "measured / published"
    if alone := [name for name in asked if name not in {place.name for place in places}]:
        note = f"{note}; not published, and not counted: {', '.join(alone)}"
    table = Table([figure.along, "", *columns], rows, title=title, note=note, left=2)
    return Verdict(
        text=claim["text"],
        measured=len(outside),
        published=None,
        bound=f"≤ {claim['outside']}",
        holds=None if short else len(outside) <= claim["outside"],
        decided=None if reasons or short else decided,
        reasons=tuple(reasons),
        seeds=seeds,
        asked=max(place.asked for place in places),
        unseeded=not seeded,
        unsteady=not steady,
        bounds={"at_most": claim["outside"]},
        counts=claim["kind"],
        write=_counted(total, outside, undecided),
        detail=table,
        places=[{"place": p.name, "agrees": p.agrees} | p.values for p in places],
    )


def _unclear(places: Sequence[str]) -> list[judgements.Reason]:
    """The reason that places give at which the interval is neither inside nor outside."""
    text = f"at {', '.join(places)} the interval reaches over the bound"
    return [judgements.Reason("interval", text)] if places else []


def _nothing_published(claim: dict[str, Any], places: Sequence[str], *, seeded: bool) -> Verdict:
    """What becomes of a claim where nothing was published at the places that were run."""
    text = f"nothing was published at the places that were run: {', '.join(places)}"
    return Verdict(
        text=claim["text"],
        measured=None,
        published=None,
        bound=f"≤ {claim['outside']}",
        holds=None,
        reasons=(judgements.Reason("measured", text),),
        seeds=0,
        asked=0,
        unseeded=not seeded,
        bounds={"at_most": claim["outside"]},
        counts=claim["kind"],
        write=lambda _: "–",
    )


def _decided(allowed: int, outside: int, undecided: int) -> bool | None:
    """Whether no more places differ than may, whatever those come to that are not decided; None if open."""
    if outside > allowed:
        return False
    return True if outside + undecided <= allowed else None


def _figures(claim: dict[str, Any]) -> list[str]:
    """The figures of which a claim compares numbers."""
    return [bound["figure"] for bound in claim.get("within", [])] or [claim["figure"]]


def _reasons(claim: dict[str, Any], panels: Sequence[Panel], *, steady: bool) -> list[judgements.Reason]:
    """Reasons against a verdict in the runs that the claim looks at, such as those that did not end."""
    found = []
    for figure in _figures(claim):
        panel, lines = _lines(panels, figure, claim["line"])
        name = panel.figure.options.get("metric", "") if panel and claim["kind"] != "order" else ""
        found += claims.of_lines(list(lines.values()), name, steady=steady)
    return list(dict.fromkeys(found))


def _seconds(claim: dict[str, Any], panels: Sequence[Panel]) -> float:
    """The simulated seconds of the shortest run that the claim looks at."""
    _, lines = _lines(panels, claim["figure"], claim["line"])
    ends = (1e-9 * run.summary["end_ns"] for line in lines.values() for run in line.runs)
    return min(ends, default=math.inf)


def _counted(total: int, outside: Sequence[str], undecided: Sequence[str]) -> Callable[[float | None], str]:
    named = f" ({', '.join(outside)})" if outside else ""
    left = f", {len(undecided)} open ({', '.join(undecided)})" if undecided else ""
    return lambda count: "–" if count is None else f"{count:.0f} of {total} differ{named}{left}"


def _lines(panels: Sequence[Panel], figure: str, label: str) -> tuple[Panel | None, dict[str, Line]]:
    """A figure's panel, and the runs of a line by place, those of which all runs failed among them."""
    panel = next((p for p in panels if p.figure.name == figure), None)
    found = {line.place: line for line in panel.asked_lines if line.label == label} if panel else {}
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
        text, relative = published_points(panel), trend_base(panel.figure, claim["line"], "") is not None
        write = quantities.digits if relative else found.text
        for name, line in lines.items():
            x = formulas.number(name)
            theirs = None if x is None else text.get((claim["line"], x))
            if theirs is None:
                continue
            of_seeds = trend_number(panel, line)
            mean = numbers.mean(of_seeds)
            place = by_place.setdefault(name, Place(name=name, cells=[], agrees=True))
            place.cells.append(f"{mean.text(write) if mean else '–'} / {write(theirs)}")
            place.agrees = _both(place.agrees, _is_within(bound, of_seeds, theirs))
            place.of_seeds.append(of_seeds)
            ours = {"measured": mean.value if mean else None, "published": theirs}
            place.values[panel.figure.options["metric"]] = ours
    return columns, [place for place in by_place.values() if len(place.cells) == len(bounds)]


def _both(one: bool | None, other: bool | None) -> bool | None:
    """Whether both hold: not if one does not, and None if that is open."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _is_within(bound: dict[str, Any], ours: numbers.BySeed, theirs: float) -> bool | None:
    highest = bound["absolute"] if "absolute" in bound else bound["relative"] * abs(theirs)
    return _inside(numbers.difference(ours, dict.fromkeys(ours, numbers.Number(theirs))), -highest, highest)


def _inside(deviations: numbers.BySeed, lowest: float, highest: float) -> bool | None:
    """Whether the whole interval lies within two bounds, or none of it; None if it is open."""
    mean = numbers.mean(deviations)
    if mean is None or numbers.known(deviations) < len(deviations):
        return None
    if lowest <= mean.low and mean.high <= highest:
        return True
    return False if mean.low > highest or mean.high < lowest else None


def _not_run(experiment: Experiment, claim: dict[str, Any], panels: Sequence[Panel]) -> list[str]:
    """The places of a claim's figure at which all that it needs was published, and which were not run."""
    panel, lines = _lines(panels, claim["figure"], claim["line"])
    if panel is None:
        return []
    shown = experiment.variants(panel.figure, panel.figure.along)
    if claim["kind"] == "order":
        known = list(_published_groups(experiment, claim, panel))
    else:
        bounds = [p for figure in _figures(claim) if (p := _lines(panels, figure, claim["line"])[0])]
        points = [published_points(p) for p in bounds]
        known = [name for name in shown if all((claim["line"], formulas.number(name)) in of for of in points)]
    return [name for name in shown if name in known and name not in lines]


def _published_groups(
    experiment: Experiment, claim: dict[str, Any], panel: Panel | None
) -> dict[str, dict[str, float]]:
    """The published goodputs of groups by place, of a claim on their order."""
    choice = dict(panel.choice) if panel else {}
    return {
        entry["place"]: entry["groups"]
        for entry in experiment.published_values(claim.get("groups", "groups"))
        if entry["line"] == claim["line"] and entry.get("panel", {}).items() <= choice.items()
    }


def _order(
    experiment: Experiment, claim: dict[str, Any], panels: Sequence[Panel]
) -> tuple[list[str], list[Place]]:
    panel, lines = _lines(panels, claim["figure"], claim["line"])
    by_name = _published_groups(experiment, claim, panel)
    places = []
    for name, line in lines.items():
        theirs = by_name.get(name)
        if theirs is None:
            continue
        means = {id(run): sharing.group_means(run, ns3=True) for run in line.runs}
        ours = {group: numbers.of_runs(line, partial(_of_group, means, group)) for group in theirs}
        of_groups = {group: mean for group, found in ours.items() if (mean := numbers.mean(found))}
        cells = [
            f"{group} {of_groups[group].text(_mbps) if group in of_groups else '–'} / {_mbps(1e6 * rate)}"
            for group, rate in theirs.items()
        ]
        values = {
            "measured_bps": {group: mean.value for group, mean in of_groups.items()},
            "published_mbps": theirs,
        }
        agrees = same_order(ours, theirs, claim.get("apart", APART))
        cell = ", ".join(cells)
        of_seeds: list[numbers.BySeed] = list(ours.values())
        places.append(Place(name=name, cells=[cell], agrees=agrees, values=values, of_seeds=of_seeds))
    return ["goodput of a flow, mean by group (Mb/s)"], places


def _of_group(means: Mapping[int, Mapping[str, float]], group: str, run: Run) -> numbers.Number:
    return numbers.Number.of(means[id(run)].get(group), f'the run has no goodput of "{group}"')


def _mbps(rate: float | None) -> str:
    return quantities.digits(None if rate is None else 1e-6 * rate)


def same_order(
    ours: Mapping[str, numbers.BySeed], theirs: Mapping[str, float], apart: float = APART
) -> bool | None:
    """Return whether of any two groups that are apart in `theirs` the same one has more in `ours`.

    It has where the whole 95 % interval of the difference, seed by seed, is above 0, and has not where none
    of it is; None where that is open for two groups, and for none of them is the other one ahead.
    """
    found: bool | None = True
    for winner, highest in theirs.items():
        for loser, lowest in theirs.items():
            if highest > apart * lowest:
                found = _both(found, _is_ahead(numbers.difference(ours[winner], ours[loser])))
    return found


def _is_ahead(difference: numbers.BySeed) -> bool | None:
    mean = numbers.mean(difference)
    if mean is None or numbers.known(difference) < len(difference):
        return None
    return True if mean.low > 0 else False if mean.high <= 0 else None


@dataclass(kw_only=True)
class _LawPlace:
    """What became of a law at one place."""

    name: str
    expected: Mean | None
    found: Mean | None
    deviations: numbers.BySeed
    """From what was expected: as a ratio, or as a difference."""
    holds: bool | None
    """None where the interval reaches over the bound, or a seed has no number."""

    @property
    def deviation(self) -> Mean | None:
        """The mean of the seeds that have a number, None if none has."""
        return numbers.mean(self.deviations)


def check_law(
    experiment: Experiment,
    claim: dict[str, Any],
    panels: Sequence[Panel],
    *,
    seeded: bool = True,
    steady: bool = True,
) -> Verdict | None:
    """Check a claim of kind "law"; None where nothing of it was run.

    `seeded`: whether a seed can change what the places come to. `steady`: whether runs have to come to a
    steady state.
    """
    panel, by_place = _lines(panels, claim["figure"], claim["line"])
    over = panel.figure.options.get("over") if panel else None
    judged = [line for place, line in by_place.items() if place != over]
    if panel is None or not judged or (over and over not in by_place):
        return None
    allowed = formulas.tolerance(claim)
    name = panel.figure.options["metric"]
    places = [_judged(panel, line, allowed) for line in judged]
    # The place that decides: of those that differ, else of those that are open, the farthest from the bound.
    known = [(place.holds, mean) for place in places if (mean := place.deviation)]
    weight = {False: 2, None: 1, True: 0}
    _, worst = max(
        known, key=lambda one: (weight[one[0]], allowed.beyond(one[1].value)), default=(None, None)
    )
    seeds = min(numbers.known(place.deviations) for place in places)
    reasons = [
        *(numbers.few_seeds(seeds) if seeded else []),
        *claims.of_lines(list(by_place.values()), name, steady=steady),
    ]
    reasons += [reason for place in places for reason in numbers.without(place.deviations, place.name)]
    wrong = any(place.holds is False for place in places)
    decided = False if wrong else None if any(place.holds is None for place in places) else True
    if not wrong:
        unclear = [p.name for p in places if p.holds is None and not numbers.without(p.deviations)]
        reasons += _unclear(unclear)
        shown = experiment.variants(panel.figure, panel.figure.along)
        missing = [place for place in shown if place not in by_place]
        reasons += [judgements.Reason("places", f"not run: {', '.join(missing)}")] if missing else []
    relative = trend_base(panel.figure, claim["line"], "") is not None
    text = quantities.digits if relative else metric(name).text
    write = quantities.digits if allowed.is_ratio else text
    return Verdict(
        text=claim["text"],
        measured=worst.value if worst else None,
        published=None,
        bound=_allowed_text(allowed, write),
        holds=allowed.beyond(worst.value) <= 0 if worst else None,
        decided=None if reasons else decided,
        reasons=tuple(reasons),
        write=write,
        interval=(worst.low, worst.high) if worst and worst.interval is not None else None,
        detail=_law_table(claim, panel, places, text, write, is_ratio=allowed.is_ratio),
        places=[_law_as_json(place) for place in places],
        seeds=seeds,
        asked=max(len(place.deviations) for place in places),
        unseeded=not seeded,
        unsteady=not steady,
        counts="agreement",
        signed=not allowed.is_ratio,
    )


def _allowed_text(allowed: formulas.Tolerance, write: Callable[[float | None], str]) -> str:
    """What the deviation may be, as text."""
    if allowed.is_ratio:
        return f"{write(allowed.low)} to {write(allowed.high)}"
    return f"≤ {write(allowed.high)}" if math.isinf(allowed.low) else f"± {write(allowed.high)}"


def _judged(panel: Panel, line: Line, allowed: formulas.Tolerance) -> _LawPlace:
    """Judge what a figure draws of a line at its place."""
    theory, found = numbers.of_values(line, expected(panel.figure, line)), trend_number(panel, line)
    compare = numbers.ratio if allowed.is_ratio else numbers.difference
    deviations = compare(found, theory)
    both = [seed for seed, number in deviations.items() if number.value is not None]
    return _LawPlace(
        name=line.place,
        expected=numbers.mean({seed: theory[seed] for seed in both}),
        found=numbers.mean({seed: found[seed] for seed in both}),
        deviations=deviations,
        holds=_inside(deviations, allowed.low, allowed.high),
    )


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
            text(place.expected.value if place.expected else None),
            place.found.text(text) if place.found else "–",
            place.deviation.text(write) if place.deviation else "–",
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
    found = place.found
    return {
        "place": place.name,
        "holds": place.holds,
        "expected": place.expected.value if place.expected else None,
        "found": found.value if found else None,
        "interval": [found.low, found.high] if found and found.interval is not None else None,
        "deviation": place.deviation.value if place.deviation else None,
    }
