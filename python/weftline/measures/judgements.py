"""Reasons against a verdict, and the verdict that remains: yes, no, or open with its reasons.

Every verdict that weftline prints is made here, of an estimate with its 95 % interval and of the reasons that
`evidence.against` finds in the runs. A single reason makes a verdict open, whatever the interval says:

    seeds        fewer than two runs: there is no interval; claims of experiments need three
    bootstrap    too few runs for a bootstrap interval: it is too narrow
    same         all seeds gave the same flows, bit by bit, and the same number: it is one observation
    runs         a run stalled, was interrupted or is missing
    unfinished   flows that never finished, where the number is of finished flows only: they flatter it
    steps        steps of jobs that never ended, where the number is of those that did
    steps differ two schemes did not end as many steps of their jobs under the same seeds
    paths        paths that PINT's collector never came to know, where the number is of those it knows
    paths differ two schemes did not leave the same share of paths unknown under the same seeds
    flows        too few flows for the percentile: fewer than two lie beyond it in some run
    requests     too few requests for it
    short        fewer than twenty of them lie beyond it in some run: they are of one busy period or two, so
                 that the percentiles of the runs, and their mean, lie below that of a long run
    pooled       the percentile of the flows of all runs together is not in the interval of the mean of the
                 runs' own
    steady       flows under way were still growing, or (of a bound) the empty beginning counts
    flows differ two schemes did not carry the same flows under the same seeds
    ideals differ the same flows have other ideal times under two schemes, to which slowdowns relate: far
                 apart, or enough to decide the sign of the difference; or these are of two definitions
                 (measure.ideal)
    deadlines differ
                 the same flows have other deadlines under two schemes, which are at least some ideal times:
                 far apart, or enough to decide the sign of the difference
    measures differ
                 the runs did not measure alike what the metric is computed from (see `measured_alike`)
    samples      too few samples of queues for the percentile: fewer than twenty lie beyond it in some run
    bin          the bound, or the difference, lies within a bin of the histogram that the number is read from
    undecided    flows that had not finished when the run ended, and whose deadline lies after that
    left out     a group of flows of which none counts, as all start in the warm-up or too late
    failed       a failure of links or switches in the time that warm-up or drain leaves out
    ended early  a workload ended early, so that the number is partly without it
    ended        measured flows ended before the run did, where the number is of their goodputs to its end
    recovered    runs whose goodput had not recovered: the time to recover is a lower bound
    places       a place of the figure was not run, of a claim on all places
    same runs    two lines are the same run, of a claim on their ratio
    measured     the number is not there
    interval     the 95 % interval holds the bound, or zero
    uneven       half of the seeds or more have the same value, or make no difference, or one seed is far from
                 all others, so that the interval holds less than 95 %; and the seeds by themselves do not
                 say the same: one of them is on the other side, or fewer than six are not at the bound

A scheme is named before others (lowest, highest) only where the paired interval of its difference from each
of them leaves out zero, and there is no reason against either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weftline import quantities
from weftline.measures import stats

KINDS = {
    "seeds": "too few seeds",
    "bootstrap": "too few seeds for a bootstrap",
    "same": "the same flows under all seeds",
    "runs": "runs that did not end, or are missing",
    "unfinished": "unfinished flows, which the number leaves out",
    "steps": "unfinished steps, which the number leaves out",
    "steps differ": "not as many steps",
    "paths": "paths that never became known, which the number leaves out",
    "paths differ": "not the same share of paths became known",
    "flows": "too few flows for the percentile",
    "requests": "too few requests for the percentile",
    "short": "runs too short for an interval of the percentile",
    "pooled": "not the percentile of all runs together",
    "steady": "no steady state",
    "flows differ": "not the same flows",
    "ideals differ": "other ideal times, so that the ratios to them do not compare the times",
    "deadlines differ": "other deadlines, which are at least some ideal times after the start",
    "measures differ": "not measured alike",
    "samples": "too few samples for the percentile",
    "bin": "within a bin of the histogram",
    "undecided": "deadlines that were not decided when the run ended",
    "left out": "a group of flows of which none counts",
    "failed": "a failure in the part of the run that does not count",
    "ended early": "a workload that ended early or began late, so that the number is partly without it",
    "ended": "flows that ended before the run, so that the number is one of their sizes",
    "recovered": "goodput that had not recovered, so that the time is a lower bound",
    "measured": "no value",
    "places": "places that were not run",
    "same runs": "the same runs",
    "interval": "within chance",
    "uneven": "seeds too unlike for an interval",
    "base": "nothing to compare with",
}
"""What each kind of reason is, in short."""
MAX_TEXTS = 3
MIN_APART = 6
"""Where some seeds lie exactly at a bound, or make no difference, at least this many others decide.

With fewer, all on one side are chance in over 5 of 100 cases (two-sided sign test).
"""


@dataclass(frozen=True)
class Reason:
    """One reason against a verdict: its kind, one of `KINDS`, and the facts."""

    kind: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """``yes`` or ``no``, for which there is no reason to doubt; else ``open``, with all reasons."""

    answer: str
    reasons: tuple[Reason, ...] = ()

    def __post_init__(self) -> None:
        assert (self.answer == "open") == bool(self.reasons), self
        assert self.answer in ("yes", "no", "open"), self


@dataclass(frozen=True)
class Separation:
    """How two schemes stand: -1 lower, 1 higher, 0 not separated, then with all reasons."""

    order: int
    reasons: tuple[Reason, ...] = ()

    @property
    def word(self) -> str:
        """``lower``, ``higher`` or ``not separated``."""
        return {-1: "lower", 1: "higher"}.get(self.order, "not separated")


ONE_SEED = Reason("seeds", "one seed gives no interval: a difference cannot be distinguished from chance")


def judged(found: stats.Estimate | None, sign: str, limit: float, reasons: Iterable[Reason] = ()) -> Verdict:
    """Return whether a number keeps a bound: the one place where an interval becomes a verdict.

    Parameters
    ----------
    sign : {"<", ">"}
        On which side of `limit` the whole 95 % interval has to lie.
    reasons : iterable of Reason
        Reasons against a verdict; a single one makes it open.
    """
    doubts = list(dict.fromkeys(reasons))
    answer = "open"
    if found is None or not math.isfinite(found.mean):
        doubts.append(Reason("measured", "it was not measured"))
    elif found.low is None or found.high is None:
        doubts += [] if any(reason.kind in ("seeds", "same") for reason in doubts) else [ONE_SEED]
    elif known := _side(found.low, found.high, sign, limit, is_open=found.bin_width > 0):
        answer = known
        doubts += _uneven(found, sign, limit, known)
    elif _side(found.low, found.high - found.bin_width, sign, limit):
        text = f"the bound lies within a bin, which is {quantities.bytes_text(found.bin_width)} wide"
        doubts.append(Reason("bin", text))
    else:
        doubts.append(Reason("interval", "the 95 % interval holds the bound"))
    return Verdict("open", tuple(doubts)) if doubts else Verdict(answer)


def _uneven(found: stats.Estimate, sign: str, limit: float, answer: str) -> list[Reason]:
    """Return the reason that values give which are far from normal, where they do not say the same each."""
    odd, width = found.oddity, found.bin_width
    if odd is None:
        return []
    sides = [(value, _side(value, value + width, sign, limit, is_open=width > 0)) for value in found.values]
    apart = [side for value, side in sides if value != limit or side == answer]
    agree = all(side == answer for side in apart)
    if agree and (len(apart) == len(sides) or len(apart) >= MIN_APART):
        return []
    if odd.count > 1:
        what = "make no difference" if odd.value == limit == 0 else "have the same value"
    else:
        what = "is far from all others"
    text = f"{odd.count} of {odd.of} seeds {what}"
    if agree:
        return [Reason("uneven", f"{text}; a verdict needs {MIN_APART} that do")]
    return [Reason("uneven", f"{text}, and not every seed by itself is on that side")]


def _side(low: float, high: float, sign: str, limit: float, *, is_open: bool = False) -> str:
    """Return yes or no where an interval lies on one side of a bound, else "".

    `is_open`: the upper end is not part of it, as the upper edge of a bin is not.
    """
    below = high <= limit if is_open else high < limit
    if sign == "<":
        return "yes" if below else "no" if low >= limit else ""
    return "yes" if low > limit else "no" if high <= limit else ""


def separated(
    found: stats.Difference | None, reasons: Iterable[Reason] = (), *, paired: bool = True
) -> Separation:
    """Return how a difference of two schemes leaves them: lower, higher or not separated.

    Parameters
    ----------
    reasons : iterable of Reason
        Reasons against a verdict on either of the two.
    paired : bool
        Whether only a difference that was taken seed by seed, on the same flows, can separate them.
    """
    doubts = list(reasons)
    if paired and found is not None and not found.paired:
        doubts.append(Reason("flows differ", "the flows or the seeds are not the same"))
    estimate = found.estimate if found else None
    if estimate is not None and estimate.low is None and estimate.count > 1:
        # Several seeds without an interval: they gave the same runs.
        known = any(reason.kind == "same" for reason in doubts)
        doubts += [] if known else [Reason("same", "the difference is one observation")]
    below = judged(estimate, "<", 0.0, doubts)
    if below.answer == "yes":
        return Separation(-1)
    above = judged(estimate, ">", 0.0, doubts)
    if above.answer == "yes":
        return Separation(1)
    of_chance = Reason("interval", "the 95 % interval of the difference holds zero")
    if found is not None and found.is_within_bin:
        text = f"less than a bin of {quantities.bytes_text(found.bin_width)} beyond the interval"
        of_chance = Reason("bin", text)
    against = dict.fromkeys([*below.reasons, *above.reasons])
    left = [reason for reason in against if reason.kind != "interval"]
    inside = estimate is not None and estimate.low is not None and not estimate.is_apart_from_zero
    return Separation(0, tuple([*left, of_chance] if inside or not left else left))


@dataclass(frozen=True)
class Standing:
    """How one of several schemes, that with the best mean, stands to the others."""

    best: str | None
    """The one with the lowest (or highest) mean; None where not all have a value."""
    beaten: tuple[str, ...] = ()
    """Those that it is separated from."""
    level: tuple[str, ...] = ()
    """Those that it is not separated from."""
    reasons: tuple[Reason, ...] = ()
    """Why it is not separated from these."""

    @property
    def first(self) -> str | None:
        """The best one where it is separated from all others, else None."""
        return None if self.level else self.best


def leader(
    names: Sequence[str],
    values: Mapping[str, float],
    between: Callable[[str, str], Separation],
    *,
    highest: bool = False,
) -> Standing:
    """Return how the one with the lowest mean stands to the others: which of them it is separated from.

    Parameters
    ----------
    names : sequence of str
        What is compared; at least two.
    values : mapping
        The mean of each.
    between : callable
        How the first stands to the second.
    highest : bool
        Whether the highest is looked for instead of the lowest.
    """
    known = [name for name in names if name in values]
    if len(known) < 2 or len(known) < len(names):
        return Standing(None, reasons=(Reason("measured", "it was not measured for all"),))
    best = (max if highest else min)(known, key=lambda name: values[name])
    found = {other: between(best, other) for other in known if other != best}
    wanted = 1 if highest else -1
    beaten = tuple(other for other, separation in found.items() if separation.order == wanted)
    level = tuple(other for other in found if other not in beaten)
    reasons = dict.fromkeys(reason for other in level for reason in found[other].reasons)
    if level and not reasons:
        # Lower in the mean of all runs, higher where both have one.
        reasons = {Reason("interval", "the runs that both have say the opposite of the means"): None}
    return Standing(best, beaten, level, tuple(reasons))


def reasons_text(reasons: Iterable[Reason]) -> str:
    """Return reasons in one line: those of one kind together, at most `MAX_TEXTS` of each."""
    texts: dict[str, list[str]] = {}
    for reason in dict.fromkeys(reasons):
        texts.setdefault(reason.kind, []).append(reason.text)
    return "; ".join(_kind_text(kind, found) for kind, found in texts.items())


def _kind_text(kind: str, texts: Sequence[str]) -> str:
    shown = "; ".join(texts[:MAX_TEXTS]) + ("; ..." if len(texts) > MAX_TEXTS else "")
    return f"{KINDS.get(kind, kind)} ({shown})"


@dataclass
class Footnotes:
    """The reasons of a table's cells: a number for each kind, and what the numbers mean below it."""

    texts: dict[str, list[str]] = field(default_factory=dict)

    def mark(self, reasons: Iterable[Reason]) -> str:
        """Return ``" [1, 2]"`` for a cell with these reasons, "" without any."""
        for reason in reasons:
            known = self.texts.setdefault(reason.kind, [])
            if reason.text not in known:
                known.append(reason.text)
        kinds = list(self.texts)
        numbers = sorted({kinds.index(reason.kind) + 1 for reason in reasons})
        return f" [{', '.join(map(str, numbers))}]" if numbers else ""

    def text(self) -> str:
        """Return what the numbers mean, a line for each."""
        return "\n".join(
            f"[{number}] {_kind_text(kind, texts)}"
            for number, (kind, texts) in enumerate(self.texts.items(), start=1)
        )
