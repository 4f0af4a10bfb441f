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

`below` and `above` are the bounds; `at_most` is one that may be reached. The published number is what the
claim states as `published`, else it is computed in the same way from the published curves or points, if any.

A run that did not end, unfinished flows in a number of finished ones, too few flows for a percentile, a seed
without the number, fewer than three seeds that have it, flows under way that were still growing
(`weftline.measures.steady`): each makes a claim OPEN, with the reason below the table
(`weftline.measures.evidence`). An experiment with `steady = false`, whose paper measured so, needs no steady
state, and the table states it. Two lines that are the same run make a bound on their ratio OPEN, unless
two bounds say that they are alike. So do seeds that change nothing, which are one observation, and lines of a
ratio that did not measure alike what it is computed from. Too few are those of which fewer than two lie
beyond the percentile in a run, or with several seeds fewer than twenty; a claim on curves averages over bins,
so the flows of all bins within its sizes count together. A bound that lies within the bins of a percentile of
queues is OPEN too.

Over several seeds a number is the mean of the seeds' own numbers, with Student's 95 % interval; of a ratio
both are those of the ratios seed by seed. A claim is decided where the whole interval keeps its bounds, or
none of it; else OPEN. One of "none" (at most 0, of a number that is never negative) does not hold where one
seed has some. An experiment, or a claim, with `seeded = false`, whose results no seed changes, needs one seed
alone. The ledger's verdicts on direction and size are made of the same numbers, in
`weftline.reproduce.verdicts`.

A seed is without the number where its run failed, where the run does not have it (its flows did not converge
before its end), or where a ratio would divide by 0. That alone decides nothing: a longer run might have the
number, and 12 drops over none are more, but not how many times as many. The other seeds are those in which
the run went well, so their mean decides nothing either (`weftline.reproduce.numbers`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from weftline import quantities
from weftline.measures import evidence, judgements, pooling
from weftline.measures.lines import Line, at_share
from weftline.measures.metrics import METRICS, Flows, metric
from weftline.measures.pooling import seed_of
from weftline.reproduce import formulas, numbers, verdicts
from weftline.reproduce.bounds import is_ratio
from weftline.runs import Run
from weftline.terminal import Table

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
    reasons: tuple[judgements.Reason, ...] = ()
    """Reasons against a verdict."""
    seeds: int = 1
    """How many seeds have the number."""
    asked: int = 1
    """How many were to have it."""
    by_seed: tuple[float | None, ...] = ()
    """The number of each of these, where there are several; None of one without."""
    unseeded: bool = False
    """Whether no seed changes it."""
    unsteady: bool = False
    """Whether no steady state was required."""
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

        The interval of a number that cannot be negative starts at 0 or above. Numbers near a bound have more
        figures, so that none looks like a bound that it is not equal to.
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
        if self.decided is None:
            return "OPEN"
        return "PASS" if self.decided else "DIFFERS"


def check(
    claim: dict[str, Any],
    lines: Sequence[Line],
    published: Sequence[dict[str, Any]],
    *,
    than: tuple[Sequence[Line], Sequence[dict[str, Any]]] | None = None,
    seeded: bool = True,
    steady: bool = True,
) -> Verdict:
    """Check one claim against the lines of its panel and the published values of the same number.

    `than`: lines and published values of the panel that the claim compares with, if it does (`than_panel`).
    `seeded`: whether a seed can change the number. `steady`: whether runs have to come to a steady state.
    """
    sides = [_Side(claim, lines, published)]
    if than is not None:
        sides.append(_Side({**claim, **claim["than"]}, *than))
    text, write = _published(sides), _write(claim)
    if not all(side.is_run for side in sides):
        return verdict(claim, None, write, published=text)
    found = dict(sides[0].by_seed())
    if len(sides) > 1:
        found = numbers.ratio(found, sides[1].by_seed())
    mean = numbers.mean(found)
    used = [(side.claim, used_lines(side.claim, side.lines)) for side in sides]
    against = dict.fromkeys(
        reason
        for of, lines in used
        for reason in _reasons(of, [line for line in lines if line.runs], steady=steady)
    )
    if mean:
        against |= dict.fromkeys(_within_bin(claim, _by_edge(sides)))
    against |= dict.fromkeys(_same_runs(sides, found))
    same = _one_observation(used)
    against |= dict.fromkeys(same if seeded else [])
    against |= dict.fromkeys(_measures_differ(sides))
    return verdict(
        claim,
        mean.value if mean else None,
        write,
        published=text,
        interval=(mean.low, mean.high) if mean and mean.interval is not None and not same else None,
        reasons=[*numbers.reasons(found, seeded=seeded), *against],
        seeds=numbers.known(found),
        asked=len(found),
        by_seed=tuple(number.value for number in found.values()) if len(found) > 1 else (),
        unseeded=not seeded,
        unsteady=not steady,
    )


def than_panel(claim: dict[str, Any]) -> dict[str, Any] | None:
    """Return the panel that a claim compares its own with, None if it compares with none."""
    if "than" not in claim:
        return None
    return {**claim.get("panel", {}), **claim["than"].get("panel", {})}


def asked_lines(claim: dict[str, Any]) -> set[str]:
    """Return the labels of the lines that a claim needs in its panel."""
    return {claim["line"], *_others(claim)}


@dataclass(frozen=True)
class _Side:
    """What a number is measured on."""

    claim: dict[str, Any]
    lines: Sequence[Line]
    """Those of which all runs failed are among them, without runs."""
    published: Sequence[dict[str, Any]]

    @property
    def is_run(self) -> bool:
        """Whether all was to be run that the number is of."""
        return all(self.line(*one) for one in self.needed)

    @property
    def needed(self) -> list[tuple[str, str | None]]:
        """Label and place of the line that the number is of, then of those that it is relative to."""
        claim, of_places = self.claim, self.claim.get("kind") == "trend"
        at = claim["at"] if of_places else None
        found = [(claim["line"], at)]
        if of_places and {"against", "against_at"} & claim.keys():
            found.append((claim.get("against", claim["line"]), claim.get("against_at", at)))
        elif "against" in claim:
            found += [(label, None) for label in _others(claim)]
        return found

    def line(self, label: str, place: str | None) -> Line | None:
        """Return a line of the panel, at a place on the axis of x unless it is None."""
        fitting = [one for one in self.lines if one.label == label and place in (None, one.place)]
        return fitting[-1] if fitting else None

    def by_edge(self) -> list[dict[int, numbers.Number]]:
        """Return the lowest and the highest number of each seed by edges of bins; nothing: it is exact."""
        if self.claim.get("kind") == "curve" or not (width := metric(self.claim["metric"]).bin_width):
            return []
        used = [line for one in self.needed if (line := self.line(*one))]
        lower = [numbers.of_line(line, self.claim["metric"]) for line in used]
        upper = [numbers.combined([side], lambda values: values[0] + width) for side in lower]
        if len(used) == 1:
            return [lower[0], upper[0]]
        return [numbers.ratio(lower[0], upper[1]), numbers.ratio(upper[0], lower[1])]

    def by_seed(self) -> dict[int, numbers.Number]:
        """Return the number of each seed."""
        used = [line for one in self.needed if (line := self.line(*one))]
        if self.claim.get("kind") == "curve":
            return _curve(self.claim, used)
        values = [numbers.of_line(line, self.claim["metric"]) for line in used]
        return numbers.ratio(*values) if len(values) > 1 else values[0]


def _others(claim: dict[str, Any]) -> list[str]:
    """The labels of the lines that a claim compares with."""
    against = claim.get("against", [])
    return [against] if isinstance(against, str) else list(against)


def _write(claim: dict[str, Any]) -> Callable[..., Any]:
    return quantities.digits if is_ratio(claim) else metric(claim["metric"]).text


def _published(sides: Sequence[_Side]) -> float | None:
    """The published number: what a claim says, or what it comes to on the published curves or points."""
    if "published" in sides[0].claim:
        return sides[0].claim["published"]
    drawn = [_drawn(side) for side in sides]
    if len(drawn) == 1:
        return drawn[0]
    mine, other = drawn
    return mine / other if mine and other else None


def _drawn(side: _Side) -> float | None:
    claim = side.claim
    if claim.get("kind") == "curve":
        return _published_curve(side)
    return _published_point(claim, side.published) if claim.get("kind") == "trend" else None


def used_lines(claim: dict[str, Any], lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a panel that a claim is about, at its places where it names them."""
    labels = {claim["line"], *_others(claim)}
    places = {claim[key] for key in ("at", "against_at") if key in claim}
    return [line for line in lines if line.label in labels and (not places or line.place in places)]


def _reasons(claim: dict[str, Any], used: Sequence[Line], *, steady: bool) -> list[judgements.Reason]:
    """Return the reasons against a verdict in the runs of a number, except for how many there are."""
    if claim.get("kind") != "curve":
        return of_lines(used, claim.get("metric", ""), steady=steady)
    return [*of_lines(used, "slowdown_mean", steady=steady), *_few_flows(claim, used)]


def _by_edge(sides: Sequence[_Side]) -> list[numbers.BySeed]:
    """Return the lowest and the highest number of each seed by edges of bins; nothing: it is exact."""
    edges = [side.by_edge() for side in sides]
    if len(sides) == 1 or not any(edges):
        return list(edges[0])
    # A side without bins is exact.
    mine, other = (edge or [side.by_seed()] * 2 for edge, side in zip(edges, sides, strict=True))
    return [numbers.ratio(mine[0], other[1]), numbers.ratio(mine[1], other[0])]


def _within_bin(claim: dict[str, Any], edges: Sequence[numbers.BySeed]) -> list[judgements.Reason]:
    """Return the reason that bins give: a bound lies within what the number can be between their edges."""
    means = [numbers.mean(edge) for edge in edges]
    known = [mean for mean in means if mean is not None]
    if len(known) < 2 or _on_one_side(claim, (known[0].low, known[1].high)):
        return []
    return [judgements.Reason("bin", "the number is known up to a bin, in which a bound lies")]


def _same_runs(sides: Sequence[_Side], ratios: numbers.BySeed) -> list[judgements.Reason]:
    """Return the reason that a ratio of runs that are the same gives: what differs has no effect.

    Not where two bounds say that the two are alike, and not of two numbers of one run.
    """
    claim = sides[0].claim
    if "above" in claim and {"below", "at_most"} & claim.keys():
        return []
    used = [[line for one in side.needed if (line := side.line(*one))] for side in sides]
    if any(number.value != 1.0 for number in ratios.values()):
        return []
    if len(sides) == 1:
        mine, *others = used[0]
        same = [line for line in others if pooling.are_same_bits(mine.runs, line.runs)]
        alike = [mine, *same] if same else []
    else:
        pairs = list(zip(*used, strict=False))
        same_bits = all(pooling.are_same_bits(one.runs, other.runs) for one, other in pairs)
        one_run = all(_folders(one) == _folders(other) for one, other in pairs)
        alike = [*used[0], *used[1]] if len(used[0]) == len(used[1]) and same_bits and not one_run else []
    if not alike:
        return []
    names = dict.fromkeys(" at ".join(filter(None, (line.label, line.place))) for line in alike)
    text = f"{' and '.join(names)} gave the same results under every seed: what differs has no effect"
    return [judgements.Reason("same runs", text)]


def _one_observation(used: Sequence[tuple[dict[str, Any], Sequence[Line]]]) -> list[judgements.Reason]:
    """Return the reason that seeds give which changed nothing in any line that a number is of."""
    lines = {(line.label, line.place): line for _, of in used for line in of if line.runs}.values()
    found = [reason for line in lines for reason in evidence.same_runs(line.runs, [1.0] * len(line.runs))]
    return found[:1] if found and len(found) == len(lines) else []


def _measures_differ(sides: Sequence[_Side]) -> list[judgements.Reason]:
    """Return the reason that lines give which did not measure alike what a ratio of them is computed from."""
    found = []
    for side in sides:
        used = [line for one in side.needed if (line := side.line(*one)) and line.runs]
        name = side.claim.get("metric", "")
        for other in used[1:] if name and side.claim.get("kind") != "curve" else []:
            found += evidence.measures_differ(name, used[0].runs, other.runs)
    return found


def _folders(line: Line) -> set[str]:
    return {pooling.folder_of(run) for run in line.runs}


def _few_flows(claim: dict[str, Any], used: Sequence[Line]) -> list[judgements.Reason]:
    """Return the reason that too few flows in all bins of a claim on curves together give, if they do."""
    low, high = _sizes(claim)
    counts = [
        sum(row["count"] for row in rows if low <= row["size_bytes"] <= high)
        for lines in _seed_by_seed(used).values()
        for line in lines
        for rows in [line.slowdown(line.runs[0], bins=min(one.bins for one in lines))["bins"]]
    ]
    name, several = f"slowdown_{_percentile(claim)}", any(len(line.runs) > 1 for line in used)
    if not counts:
        return []
    short = evidence.short_runs(name, min(counts)) if several else []
    return evidence.few_flows(name, min(counts)) or short


def of_lines(lines: Sequence[Line], name: str, *, steady: bool = True) -> list[judgements.Reason]:
    """Return the reasons against a verdict on a metric in the runs of lines, except for their number.

    `steady`: whether the runs have to come to a steady state.
    """
    remark = None if steady else ""
    found = []
    for line in lines:
        flows = Flows(min_size=line.sizes[0], max_size=line.sizes[1], group=line.group)
        found += evidence.against(line.runs, name, flows=flows, remark=remark) if line.runs else []
    return list(dict.fromkeys(reason for reason in found if reason.kind != "seeds"))


def verdict(
    claim: dict[str, Any],
    measured: float | None,
    write: Callable[..., Any],
    *,
    published: float | None = None,
    interval: tuple[float, float] | None = None,
    reasons: Sequence[judgements.Reason] = (),
    seeds: int = 1,
    asked: int = 1,
    by_seed: tuple[float | None, ...] = (),
    unseeded: bool = False,
    unsteady: bool = False,
) -> Verdict:
    """Return what a number, None where there is none, says about a claim.

    Of `asked` seeds `seeds` have it; with `by_seed` both follow from that.
    """
    holds = None if measured is None else _within(claim, measured)
    bounds: dict[str, float] = {key: claim[key] for key in ("above", "below", "at_most") if key in claim}
    of = METRICS.get(claim.get("metric", ""))
    signed = of is not None and (of.minimum or 0.0) < 0
    some = verdicts.has_some({"bounds": bounds, "signed": signed, "measured": measured, "by_seed": by_seed})
    if by_seed:
        seeds, asked = sum(value is not None for value in by_seed), len(by_seed)
    if some and all(reason.kind in verdicts.OF_SEEDS for reason in reasons):
        undecided = False
    else:
        undecided = bool(reasons) or (interval is not None and not _on_one_side(claim, interval))
    low, high = interval or (measured, measured)
    low = low if low is None or signed else max(0.0, low)
    shown = [value for value in (measured, low, high) if value is not None]
    figures = quantities.figures_apart(write, shown, list(bounds.values()))
    return Verdict(
        text=claim["text"],
        measured=measured,
        published=published,
        bound=_bound(claim, write),
        holds=holds,
        write=partial(write, figures=figures) if figures > 3 else write,
        interval=interval,
        decided=None if undecided else holds,
        reasons=tuple(reasons),
        seeds=seeds,
        asked=asked,
        by_seed=by_seed,
        unseeded=unseeded,
        unsteady=unsteady,
        bounds=bounds,
        ratio=is_ratio(claim),
        signed=signed,
    )


def table(found: Sequence[Verdict]) -> Table:
    """Return the verdicts as a table."""
    notes = judgements.Footnotes()
    rows = [
        [v.text, v.word + notes.mark(v.reasons), v.measured_text, v.bound, v.write(v.published)]
        for v in found
    ]
    columns = ["claim", "", "measured", "expected", "published"]
    if all(v.published is None for v in found):
        rows, columns = [row[:-1] for row in rows], columns[:-1]
    note = "\n".join(filter(None, [notes.text(), UNSTEADY if any(v.unsteady for v in found) else ""]))
    return Table(columns, rows, left=2, note=note)


UNSTEADY = "Steadiness was not judged: the source measured without a steady state (steady = false)."


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict for programs."""
    names = ("text", "measured", "interval", "published", "bound", "holds", "decided", "seeds", "asked")
    found = {name: getattr(verdict, name) for name in names} | {"said": verdict.measured_text}
    more = ("by_seed", "unseeded", "unsteady", "bounds", "ratio", "counts", "signed")
    found |= {name: value for name in more if (value := getattr(verdict, name))}
    found |= {"reasons": [asdict(reason) for reason in verdict.reasons]} if verdict.reasons else {}
    return found | ({"places": verdict.places} if verdict.places else {})


def _curve(claim: dict[str, Any], used: Sequence[Line]) -> dict[int, numbers.Number]:
    """The number of each seed of a claim on curves, the first line against the others."""
    by_line = [numbers.of_runs(line, partial(_finished, line)) for line in used]
    found = numbers.combined(by_line, lambda values: 1.0)
    for seed, alone in _seed_by_seed(used).items():
        if found[seed].value is not None:
            found[seed] = numbers.Number.of(_curve_of_seed(claim, alone))
    return found


def _seed_by_seed(used: Sequence[Line]) -> dict[int, list[Line]]:
    """Return lines with the run of one seed alone, of each seed that all of them have finished flows of."""
    by_seed = [{seed_of(run): replace(line, runs=[run]) for run in reversed(line.runs)} for line in used]
    return {
        seed: [lines[seed] for lines in by_seed]
        for seed in sorted(by_seed[0] if by_seed else ())
        if all(seed in lines and lines[seed].has_flows for lines in by_seed)
    }


def _finished(line: Line, run: Run) -> numbers.Number:
    """1 where a run has a slowdown."""
    return numbers.Number.of(1.0 if replace(line, runs=[run]).has_flows else None)


def _curve_of_seed(claim: dict[str, Any], used: Sequence[Line]) -> float | None:
    percentile = _percentile(claim)
    bins = min(line.bins for line in used)
    curves = {
        line.label: [(p["share"], p["size_bytes"], p[percentile].value) for p in line.curve(bins)]
        for line in used
    }
    return _worst_ratio(claim, curves, [line.label for line in used[1:]])


def _published_curve(side: _Side) -> float | None:
    """The number of a claim on the published curves; None where these or runs are missing."""
    claim, percentile = side.claim, _percentile(side.claim)
    drawn = {e["line"]: e["values"] for e in side.published if e.get("percentile") == percentile}
    used = [claim["line"], *_others(claim)]
    lines = [line for label in used if (line := side.line(label, None))]
    if not all(label in drawn for label in used):
        return None
    if len(lines) < len(used) or not all(line.runs and line.has_flows for line in lines):
        return None
    # Published curves give shares of flows; the sizes at these shares are those of the flows that were run.
    mine = lines[0].curve(min(line.bins for line in lines))
    entries: dict[str, Curve] = {}
    for label in used:
        values = drawn[label]
        shares = [(i + 1) / len(values) for i in range(len(values))]
        sizes = [at_share(mine, share)["size_bytes"] for share in shares]
        entries[label] = list(zip(shares, sizes, values, strict=True))
    return _worst_ratio(claim, entries, used[1:])


def _worst_ratio(claim: dict[str, Any], curves: dict[str, Curve], others: Sequence[str]) -> float | None:
    low, high = _sizes(claim)
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


def _percentile(claim: dict[str, Any]) -> str:
    return claim.get("percentile", "p95")


def _sizes(claim: dict[str, Any]) -> tuple[float, float]:
    """The minimum and the maximum size in bytes that a bin of a claim on curves ends at."""
    sizes = claim.get("sizes", {})
    low = quantities.parse_bytes(sizes["min"]) if "min" in sizes else 0
    return low, quantities.parse_bytes(sizes["max"]) if "max" in sizes else math.inf


def _value_at(curve: Curve, share: float) -> float:
    return next((value for reached, _, value in curve if reached >= share - 1e-9), curve[-1][2])


def _published_point(claim: dict[str, Any], published: Sequence[dict[str, Any]]) -> float | None:
    """Return the published point of a claim on one value of a trend, in the stored unit of the metric."""
    at, relative = formulas.number(claim["at"]), {"against", "against_at"} & claim.keys()
    values = [y for e in published if e["line"] == claim["line"] for x, y in e["points"] if x == at]
    return values[0] / (1.0 if relative else metric(claim["metric"]).scale) if values else None


def _within(claim: dict[str, Any], value: float) -> bool:
    below, above = claim.get("below", math.inf), claim.get("above", -math.inf)
    return above < value < below and value <= claim.get("at_most", math.inf)


def _on_one_side(claim: dict[str, Any], interval: tuple[float, float]) -> bool:
    """Whether no bound lies within an interval."""
    bounds = [claim[key] for key in ("below", "above") if key in claim]
    reached = claim.get("at_most", math.inf)
    low, high = interval
    return not any(low <= bound <= high for bound in bounds) and not low <= reached < high


def _bound(claim: dict[str, Any], write: Callable[..., str]) -> str:
    signs = {"above": ">", "below": "<", "at_most": "≤"}
    return ", ".join(
        f"{sign} {quantities.exact(write, claim[key])}" for key, sign in signs.items() if key in claim
    )
