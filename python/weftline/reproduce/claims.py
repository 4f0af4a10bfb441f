"""Claims: sentences of a source, each as a bound on a number, checked against what was measured.

    kind = "curve"    geometric mean, over the bins of flows within `sizes` = { min, max }, of the slowdown
                      `percentile` of `line` over that of `against`; of several, the worst one counts
    kind = "metric"   a metric of `line` (`weftline.measures.metrics`), over that of `against` if it is given
    kind = "trend"    on a figure of that kind: a metric of `line` at the place `at`, over that of `against`
                      or at `against_at` if one of these is given
    kind = "cost"     on a figure of that kind; see `weftline.reproduce.cost`
    kind = "law"      what was found against what a formula expects; see `weftline.reproduce.agreement`
    kind = "agreement", "order"   place by place against published points; see `weftline.reproduce.agreement`

`than` = { figure, panel, line, against, percentile, sizes, metric, at, against_at }, those of them that
differ: the number is that over the same of another panel, percentile or line, as where a lead grows with the
load, or of another figure, as one of flows of other sizes.

`below` and `above` are the bounds; `at_most` is one that may be reached. The published number is computed in
the same way from the published curves where there are any, else it is what the claim says.

A run that did not end, unfinished flows in a number of finished ones, too few flows for a percentile, fewer
than three seeds: each makes a claim OPEN, with the reason below the table (`weftline.measures.evidence`).

Over several seeds a number is the mean of the seeds' own numbers, with Student's 95 % interval; of a ratio
both are those of the ratios seed by seed. A claim is decided where the whole interval keeps its bounds, or
none of it; else OPEN. One of "none" (at most 0, of a number that is never negative) does not hold where one
seed has some. An experiment with `seeded = false`, whose results no seed changes, needs one seed alone. The
ledger's verdicts on direction and size are made of the same numbers, in `weftline.reproduce.verdicts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from weftline import quantities
from weftline.measures import evidence
from weftline.measures.lines import Line, Mean, at_share
from weftline.measures.metrics import Flows, metric
from weftline.reproduce import verdicts
from weftline.reproduce.panels import ratio as line_ratio
from weftline.terminal import Table

SIGNED = ("backlog_growth",)
"""Metrics that can be negative."""
Curve = list[tuple[float, float, float]]
"""(share of flows, largest size in the bin in bytes, slowdown)"""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a claim."""

    text: str
    measured: float | None
    published: float | None
    bound: str
    holds: bool | None
    """None when the number could not be measured."""
    write: Callable[[float | None], str]
    detail: Table | None = None
    """What it came to place by place, of a claim on many."""
    places: list[dict[str, Any]] = field(default_factory=list)
    """The same for programs."""
    interval: tuple[float, float] | None = None
    """Of the measured number, 95 % over seeds; None for one seed, and where there is no such thing."""
    decided: bool | None = None
    """Whether it holds; None where the interval reaches over a bound or there is a reason against it."""
    reasons: tuple[evidence.Reason, ...] = ()
    """Reasons against a verdict."""
    seeds: int = 1
    """On how many it was measured."""
    by_seed: tuple[float | None, ...] = ()
    """The number of each seed, where there are several."""
    unseeded: bool = False
    """Whether no seed changes it."""
    bounds: Mapping[str, float] = field(default_factory=dict)
    """`above`, `below`, `at_most`, those that there are."""
    ratio: bool = False
    """Whether it is a ratio to another line, or to another place."""
    counts: str = ""
    """"agreement" or "order" of a claim that counts places."""
    signed: bool = False
    """Whether the number can be negative."""

    @property
    def measured_text(self) -> str:
        """The measured number with its interval, as text: ``"1.03 (1.01 to 1.05)"``.

        The interval of a number that cannot be negative starts at 0 or above.
        """
        text = self.write(self.measured)
        if self.interval is None:
            return text
        low, high = self.interval
        low = low if self.signed else max(0.0, low)
        return f"{text} ({self.write(low)} to {self.write(high)})"

    @property
    def word(self) -> str:
        """PASS or DIFFERS; OPEN if the interval reaches over a bound or there is a reason against a verdict.

        A dash where there is no number.
        """
        if self.holds is None:
            return "–"
        if (self.interval or self.reasons) and self.decided is None:
            return "OPEN"
        return "PASS" if self.holds else "DIFFERS"


def check(
    claim: dict[str, Any],
    lines: Sequence[Line],
    published: Sequence[dict[str, Any]],
    *,
    than: tuple[Sequence[Line], Sequence[dict[str, Any]]] | None = None,
    seeded: bool = True,
) -> Verdict:
    """Check one claim against the lines of its panel and the published values of that panel.

    `than`: lines and published values of the panel that the claim compares with, if it does (`than_panel`).
    `seeded`: whether a seed can change the number.
    """
    sides = [_Side(claim, lines, published)]
    if than is not None:
        sides.append(_Side({**claim, **claim["than"]}, *than))
    mean, text, write = _over(sides)
    if mean is None:
        return verdict(claim, None, write, published=text)
    interval = None if mean.interval is None else (mean.low, mean.high)
    used = [line for side in sides for line in used_lines(side.claim, side.lines)]
    seeds = min((len(line.runs) for line in used), default=1)
    return verdict(
        claim,
        mean.value,
        write,
        published=text,
        interval=interval,
        reasons=[*(few_seeds(seeds) if seeded else []), *_reasons(claim, used)],
        seeds=seeds,
        by_seed=_by_seed(sides, seeds),
        unseeded=not seeded,
    )


def than_panel(claim: dict[str, Any]) -> dict[str, Any] | None:
    """Return the panel that a claim compares its own with, None if it compares with none."""
    if "than" not in claim:
        return None
    return {**claim.get("panel", {}), **claim["than"].get("panel", {})}


def asked_lines(claim: dict[str, Any]) -> set[str]:
    """Return the labels of the lines that a claim needs in its panel."""
    against = claim.get("against", [])
    return {claim["line"], *([against] if isinstance(against, str) else against)}


@dataclass(frozen=True)
class _Side:
    """What a number is measured on."""

    claim: dict[str, Any]
    lines: Sequence[Line]
    published: Sequence[dict[str, Any]]

    def alone(self, number: int) -> _Side:
        """Return the same of one seed."""
        kept = [replace(line, runs=[line.runs[number]]) for line in self.lines if len(line.runs) > number]
        return _Side(self.claim, kept, [])


def _over(sides: Sequence[_Side]) -> tuple[Mean | None, float | None, Callable[..., Any]]:
    """The number of the first side, over that of the second if there is one; the published one; its form."""
    found = [_measured(side.claim, side.lines, side.published) for side in sides]
    if len(found) == 1:
        return found[0]
    (mine, drawn, _), (other, there, _) = found
    published = sides[0].claim.get("published", drawn / there if drawn and there else None)
    if not (mine and other and other.value):
        return None, published, quantities.digits
    seeds = min(len(line.runs) for side in sides for line in used_lines(side.claim, side.lines))
    mean = Mean.of(_by_seed(sides, seeds)) if seeds > 1 else Mean(mine.value / other.value)
    return mean, published, quantities.digits


def few_seeds(seeds: int) -> list[evidence.Reason]:
    """Return the reason that so few seeds give, if they do."""
    if seeds >= verdicts.MIN_SEEDS:
        return []
    counted = "1 seed" if seeds == 1 else f"{seeds} seeds"
    return [evidence.Reason("seeds", f"{counted}; a verdict needs {verdicts.MIN_SEEDS}")]


def _measured(
    claim: dict[str, Any], lines: Sequence[Line], published: Sequence[dict[str, Any]]
) -> tuple[Mean | None, float | None, Callable[..., Any]]:
    """The measured number, the published one, and how it is written."""
    by_label = {line.label: line for line in lines}
    if claim.get("kind") == "trend":
        mean, write = _trend(claim, lines)
        return mean, claim.get("published", _drawn(claim, published)), write
    elif claim.get("kind", "metric") == "curve":
        mean, text = _curve(claim, by_label, published)
        return mean, text, quantities.digits
    else:
        mean, write = _metric(claim, by_label)
    return mean, claim.get("published"), write


def _by_seed(sides: Sequence[_Side], seeds: int) -> tuple[float | None, ...]:
    """The number of each seed by itself."""
    if seeds < 2:
        return ()
    means = [_over([side.alone(number) for side in sides])[0] for number in range(seeds)]
    return tuple(mean.value if mean else None for mean in means)


def used_lines(claim: dict[str, Any], lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a panel that a claim is about, at its places where it names them."""
    labels = asked_lines(claim)
    places = {claim[key] for key in ("at", "against_at") if key in claim}
    return [line for line in lines if line.label in labels and (not places or line.place in places)]


def _reasons(claim: dict[str, Any], used: Sequence[Line]) -> list[evidence.Reason]:
    """Return the reasons against a verdict in the runs of a claim, except for their number and steadiness."""
    name = "slowdown_mean" if claim.get("kind") == "curve" else claim.get("metric", "")
    found = []
    for line in used:
        flows = Flows(min_size=line.sizes[0], max_size=line.sizes[1], group=line.group)
        found += evidence.against(line.runs, name, flows=flows, remark="")
    return list(dict.fromkeys(reason for reason in found if reason.kind != "seeds"))


def verdict(
    claim: dict[str, Any],
    measured: float | None,
    write: Callable[..., Any],
    *,
    published: float | None = None,
    interval: tuple[float, float] | None = None,
    reasons: Sequence[evidence.Reason] = (),
    seeds: int = 1,
    by_seed: tuple[float | None, ...] = (),
    unseeded: bool = False,
) -> Verdict:
    """Return what a number, None where there is none, says about a claim."""
    holds = None if measured is None else _within(claim, measured)
    bounds: dict[str, float] = {key: claim[key] for key in ("above", "below", "at_most") if key in claim}
    signed = claim.get("metric") in SIGNED
    some = verdicts.has_some({"bounds": bounds, "signed": signed, "measured": measured, "by_seed": by_seed})
    if some and all(reason.kind == "seeds" for reason in reasons):
        undecided = False
    else:
        undecided = bool(reasons) or (interval is not None and not _on_one_side(claim, interval))
    return Verdict(
        text=claim["text"],
        measured=measured,
        published=published,
        bound=_bound(claim, write),
        holds=holds,
        write=write,
        interval=interval,
        decided=None if undecided else holds,
        reasons=tuple(reasons),
        seeds=seeds,
        by_seed=by_seed,
        unseeded=unseeded,
        bounds=bounds,
        ratio=claim.get("kind") == "curve" or bool({"against", "against_at", "than"} & claim.keys()),
        signed=signed,
    )


def table(found: Sequence[Verdict]) -> Table:
    """Return the verdicts as a table."""
    notes = evidence.Footnotes()
    rows = [
        [v.text, v.word + notes.mark(v.reasons), v.measured_text, v.bound, v.write(v.published)]
        for v in found
    ]
    columns = ["claim", "", "measured", "expected", "published"]
    if all(v.published is None for v in found):
        rows, columns = [row[:-1] for row in rows], columns[:-1]
    return Table(columns, rows, left=2, note=notes.text())


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict for programs."""
    names = ("text", "measured", "interval", "published", "bound", "holds", "decided", "seeds")
    found = {name: getattr(verdict, name) for name in names} | {"said": verdict.measured_text}
    more = ("by_seed", "unseeded", "bounds", "ratio", "counts", "signed")
    found |= {name: value for name in more if (value := getattr(verdict, name))}
    found |= {"reasons": [asdict(reason) for reason in verdict.reasons]} if verdict.reasons else {}
    return found | ({"places": verdict.places} if verdict.places else {})


def _curve(
    claim: dict[str, Any], lines: dict[str, Line], published: Sequence[dict[str, Any]]
) -> tuple[Mean | None, float | None]:
    """The measured and the published number of a claim on curves."""
    percentile = claim.get("percentile", "p95")
    others = claim["against"] if isinstance(claim["against"], list) else [claim["against"]]
    used = [claim["line"], *others]
    if any(not lines[label].has_flows for label in used):
        return None, claim.get("published")
    bins = min(lines[label].bins for label in used)
    points = {label: lines[label].curve(bins) for label in used}
    measured = {
        label: [(p["share"], p["size_bytes"], p[percentile].value) for p in found]
        for label, found in points.items()
    }
    # Published curves give shares of flows; the sizes at these shares are those of the flows that were run.
    mine = points[claim["line"]]
    entries: dict[str, Curve] = {}
    for entry in published:
        if entry.get("percentile") == percentile and entry["line"] in used:
            values = entry["values"]
            shares = [(i + 1) / len(values) for i in range(len(values))]
            sizes = [at_share(mine, share)["size_bytes"] for share in shares]
            entries[entry["line"]] = list(zip(shares, sizes, values, strict=True))
    complete = all(label in entries for label in used)
    theirs = _worst_ratio(claim, entries, others) if complete else claim.get("published")
    by_seed = _curve_by_seed(claim, [lines[label] for label in used])
    if len(by_seed) > 1:
        return Mean.of(by_seed), theirs
    ratio = _worst_ratio(claim, measured, others)
    return None if ratio is None else Mean(ratio), theirs


def _curve_by_seed(claim: dict[str, Any], used: Sequence[Line]) -> list[float | None]:
    """The number of each seed of a claim on curves, the first line against the others; none of one seed."""
    count = min(len(line.runs) for line in used)
    if count < 2:
        return []
    alone = {**claim, "against": [line.label for line in used[1:]]}
    ratios = []
    for number in range(count):
        of_seed = {line.label: replace(line, runs=[line.runs[number]]) for line in used}
        mean, _ = _curve(alone, of_seed, [])
        ratios.append(mean.value if mean else None)
    return ratios


def _worst_ratio(claim: dict[str, Any], curves: dict[str, Curve], others: Sequence[str]) -> float | None:
    sizes = claim.get("sizes", {})
    low = quantities.parse_bytes(sizes["min"]) if "min" in sizes else 0
    high = quantities.parse_bytes(sizes["max"]) if "max" in sizes else math.inf
    ratios = []
    for other in others:
        logs = [
            math.log(value / _value_at(curves[other], share))
            for share, size, value in curves[claim["line"]]
            if low <= size <= high
        ]
        if logs:
            ratios.append(math.exp(math.fsum(logs) / len(logs)))
    if not ratios:
        return None
    if "above" in claim and {"below", "at_most"} & claim.keys():
        return max(ratios, key=lambda ratio: abs(math.log(ratio)))
    return max(ratios) if "below" in claim or "at_most" in claim else min(ratios)


def _value_at(curve: Curve, share: float) -> float:
    return next((value for reached, _, value in curve if reached >= share - 1e-9), curve[-1][2])


def _metric(claim: dict[str, Any], lines: dict[str, Line]) -> tuple[Mean | None, Callable[..., Any]]:
    name, line = claim["metric"], lines[claim["line"]]
    if "against" not in claim:
        return line.metric(name), metric(name).text
    against = lines[claim["against"]]
    return line_ratio(line, against, name), quantities.digits


def _trend(claim: dict[str, Any], lines: Sequence[Line]) -> tuple[Mean | None, Callable[..., Any]]:
    name, at = claim["metric"], claim["at"]
    by_place = {(line.label, line.place): line for line in lines}
    mine = by_place.get((claim["line"], at))
    if "against" not in claim and "against_at" not in claim:
        return (mine.metric(name) if mine else None), metric(name).text
    other = by_place.get((claim.get("against", claim["line"]), claim.get("against_at", at)))
    return line_ratio(mine, other, name), quantities.digits


def _drawn(claim: dict[str, Any], published: Sequence[dict[str, Any]]) -> float | None:
    """Return the published point of a claim on one value of a trend, in the stored unit of the metric."""
    if "against" in claim or "against_at" in claim:
        return None
    values = [
        y for e in published if e["line"] == claim["line"] for x, y in e["points"] if str(x) == claim["at"]
    ]
    return values[0] / metric(claim["metric"]).scale if values else None


def _within(claim: dict[str, Any], value: float) -> bool:
    below, above = claim.get("below", math.inf), claim.get("above", -math.inf)
    return above < value < below and value <= claim.get("at_most", math.inf)


def _on_one_side(claim: dict[str, Any], interval: tuple[float, float]) -> bool:
    """Whether no bound lies within an interval."""
    bounds = [claim[key] for key in ("below", "above") if key in claim]
    reached = claim.get("at_most", math.inf)
    low, high = interval
    return not any(low <= bound <= high for bound in bounds) and not low <= reached < high


def _bound(claim: dict[str, Any], write: Callable[[float | None], str]) -> str:
    parts = []
    if "above" in claim:
        parts.append(f"> {write(claim['above'])}")
    if "below" in claim:
        parts.append(f"< {write(claim['below'])}")
    if "at_most" in claim:
        parts.append(f"≤ {write(claim['at_most'])}")
    return ", ".join(parts)
