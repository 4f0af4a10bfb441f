"""Claims on agreement with published results, place by place along the axis of x of figures of kind "trend".

    kind = "agreement"   `line` is within all bounds of `within` at all places but `outside`:
                         within = [{ figure, absolute = 0.03 }, { figure, relative = 0.015 }]: the metric of
                         that figure against its published points
    kind = "order"       the same groups win and lose at all places but `outside`: published.json has under
                         `groups` entries { line, place, groups = { name = Mb/s of a flow } }; of two groups
                         whose published goodputs differ by more than the factor `apart` (default 1.1), the
                         one that has more there must have more here

With `seconds` a claim is about runs of that length: of shorter ones the places are shown, but nothing is
decided. Only places that were run count; what each came to is the verdict's detail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from weftline import quantities
from weftline.errors import InputError
from weftline.measures import evidence, sharing
from weftline.measures.lines import Line
from weftline.measures.metrics import Flows, metric
from weftline.reproduce import trends
from weftline.reproduce.claims import Verdict, few_seeds
from weftline.reproduce.exhibits import Panel
from weftline.reproduce.experiments import Experiment
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
    if "outside" not in claim:
        raise InputError(f'claim "{claim["text"]}": expected "outside", how many places may differ')
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
    bounds = claim.get("within", [])
    if not bounds or any(("absolute" in bound) == ("relative" in bound) for bound in bounds):
        raise InputError(
            f'claim "{claim["text"]}": within: expected {{ figure, absolute }} or {{ figure, relative }}'
        )
    columns, by_place = [], {}
    for bound in bounds:
        panel, lines = _lines(panels, bound["figure"], claim["line"])
        if panel is None:
            return [], []
        found = metric(panel.figure.options["metric"])
        columns.append(found.title)
        text = trends.published(panel)
        for name, line in lines.items():
            theirs = text.get((claim["line"], trends.number(name)))
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
