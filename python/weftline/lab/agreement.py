"""Whether a run of the lab agrees with the simulated run of the same flows: equal, different or open.

The same scenario and seed have the same flows in both engines, so each run of the lab gives one difference,
and an interval is over runs, never over the flows of a run, which depend on each other. A quantity is *equal*
where the 90 % interval of the difference lies inside its margin (two one-sided tests at 5 %), *different*
where the interval leaves zero out, else *open*. Contaminated runs are dropped and counted;
where more than 30 % of the runs are, everything is open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from weftline import quantities
from weftline.measures import stats
from weftline.measures.lines import Line
from weftline.measures.pooling import seed_of
from weftline.runs import Run
from weftline.terminal import Table

MOST_DROPPED = 0.3
ENOUGH_FOR_P99 = 100
Flow = dict[str, float | None]


@dataclass(frozen=True)
class Quantity:
    """What is compared: a number of a run, and how far two of them may be apart."""

    name: str
    value: Callable[[list[Flow]], float | None]
    margin: float
    relative: bool = True
    digits: Callable[[float | None], str] = quantities.digits


def is_lab(run: Run) -> bool:
    """Return whether a run is one of the lab."""
    return run.summary.get("engine") == "lab"


def _fcts(flows: list[Flow]) -> list[float]:
    return sorted(found for flow in flows if (found := flow["fct_ns"]))


def _goodputs(flows: list[Flow]) -> list[float]:
    return [8e9 * (flow["size_bytes"] or 0) / fct for flow in flows if (fct := flow["fct_ns"])]


def _mean_goodput(flows: list[Flow]) -> float | None:
    found = _goodputs(flows)
    return sum(found) / len(found) if found else None


def _jain(flows: list[Flow]) -> float | None:
    found = _goodputs(flows)
    return sum(found) ** 2 / (len(found) * sum(x * x for x in found)) if len(found) > 1 else None


def _p99(flows: list[Flow]) -> float | None:
    found = _fcts(flows)
    return found[math.ceil(0.99 * len(found)) - 1] if len(found) >= ENOUGH_FOR_P99 else None


QUANTITIES = (
    Quantity(
        "bytes of finished flows",
        lambda flows: sum(f["size_bytes"] or 0 for f in flows if f["fct_ns"]),
        0.01,
        digits=quantities.bytes_text,
    ),
    Quantity("mean goodput", _mean_goodput, 0.10, digits=quantities.rate_text),
    Quantity(
        "median FCT",
        lambda flows: median(_fcts(flows)) if _fcts(flows) else None,
        0.15,
        digits=quantities.time_text,
    ),
    Quantity("p99 FCT", _p99, 0.50, digits=quantities.time_text),
    Quantity("Jain index of goodputs", _jain, 0.03, relative=False),
)
CLOSE = (0.8, 1.25)
"""Ratios of completion times that count as close."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One quantity of both engines."""

    name: str
    simulated: float | None
    """None: in no run enough flows finished."""
    lab: float | None
    low: float | None
    """Lower end of the 90 % interval of the difference: a share of the simulated value, or as it is."""
    high: float | None
    margin: float
    word: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Everything about one scenario."""

    verdicts: list[Verdict]
    runs: int
    dropped: int
    median_ratio: float | None
    """The geometric mean of the medians of the runs."""
    ratio_range: tuple[float, float] | None
    """Student's 95 % interval of the median ratio over the runs; None for one run."""
    close: float | None
    differs: list[str]
    lateness_ns: float | None
    spoilt: bool = False
    """Too many are contaminated, so none is dropped from the numbers."""

    def table(self) -> Table:
        """Return one row a quantity."""
        named = {one.name: one for one in QUANTITIES}
        rows = []
        for one in self.verdicts:
            text = named[one.name].digits
            scale = 100 if named[one.name].relative else 1
            unit = " %" if named[one.name].relative else ""
            between = (
                "–"
                if one.low is None or one.high is None
                else f"{scale * one.low:+.3g} to {scale * one.high:+.3g}{unit}"
            )
            rows.append(
                [
                    one.name,
                    text(one.simulated),
                    text(one.lab),
                    between,
                    f"{scale * one.margin:g}{unit}",
                    one.word,
                ]
            )
        return Table(
            ["lab against simulation", "simulated", "lab", "90 % interval", "margin", "verdict"],
            rows,
            note=self.note(),
        )

    def note(self) -> str:
        """Return what the table does not say."""
        count = self.runs + self.dropped if self.spoilt else self.runs
        parts = [
            f"{count} run{'s' * (count != 1)} of the lab, {self.dropped} "
            + ("of them contaminated." if self.spoilt else "more dropped as contaminated.")
        ]
        if self.median_ratio is not None:
            interval = (
                f" ({self.ratio_range[0]:.3f} to {self.ratio_range[1]:.3f})" if self.ratio_range else ""
            )
            parts.append(
                f"Completion times, lab over simulated, flow by flow: "
                f"median {self.median_ratio:.3f}{interval} in the mean run, "
                f"{self.close or 0:.0%} between {CLOSE[0]} and {CLOSE[1]}."
            )
        if reasons := sorted({one.reason for one in self.verdicts if one.reason}):
            parts.append(f"Open: {'; '.join(reasons)}.")
        if self.differs:
            parts.append(f"Not alike in both: {'; '.join(self.differs)}.")
        return " ".join(parts)


def of(lines: Sequence[Line]) -> list[Agreement]:
    """Return the agreement of each line of the lab with the simulated line of its scenario."""
    simulated = _simulated(lines)
    found = []
    for line in lines:
        pairs = [(run, simulated.get(_key(run))) for run in line.runs if is_lab(run)]
        both = [(lab, sim) for lab, sim in pairs if sim is not None]
        if both:
            found.append(_agreement(both))
    return found


def without_twins(lines: Sequence[Line]) -> list[str]:
    """Return sentences on the runs of the lab that have no simulated run of their scenario and seed."""
    simulated = _simulated(lines)
    found = []
    for line in lines:
        alone = [run for run in line.runs if is_lab(run) and _key(run) not in simulated]
        if alone:
            found.append(
                f"{line.label}: {len(alone)} run{'s' * (len(alone) != 1)} of the lab without a simulated run "
                "of the same scenario, [scale], end and seed here, so there is no verdict on them: simulate "
                f"that with weftline run {alone[0].out}/scenario.toml."
            )
    return found


def _simulated(lines: Sequence[Line]) -> dict[tuple[str, int], Run]:
    return {_key(run): run for line in lines for run in line.runs if not is_lab(run)}


def _key(run: Run) -> tuple[str, int]:
    return _scenario(run), seed_of(run)


def _agreement(pairs: list[tuple[Run, Run]]) -> Agreement:
    clean = [pair for pair in pairs if not pair[0].summary.get("lab", {}).get("contaminated")]
    dropped = len(pairs) - len(clean)
    late = [
        pair[0].summary.get("lab", {}).get("lateness", {}).get("links", {}).get("p99_ns") for pair in pairs
    ]
    worst = max((one for one in late if one is not None), default=None)
    spoilt = dropped > MOST_DROPPED * len(pairs)
    causes = [text for run, _ in pairs for text in run.summary.get("lab", {}).get("contaminated") or []]
    # Links without delays have no lateness.
    shown = causes[:1] if worst is None else [f"p99 of lateness below {quantities.time_text(worst)}"]
    tables = [(_flows(lab), _flows(sim)) for lab, sim in (pairs if spoilt else clean)]
    reason = ""
    if spoilt:
        reason = (
            f"{dropped} of {len(pairs)} runs are contaminated, more than {MOST_DROPPED:.0%} "
            f"({'; '.join(shown)}), so none is dropped from the numbers"
        )
    verdicts = [one for quantity in QUANTITIES if (one := _verdict(quantity, tables, reason))]
    medians, ratios = [], []
    for lab, sim in tables:
        by_id = {flow["flow_id"]: flow["fct_ns"] for flow in sim}
        here = [
            fct / other for flow in lab if (fct := flow["fct_ns"]) and (other := by_id.get(flow["flow_id"]))
        ]
        ratios += here
        medians += [median(here)] if here else []
    return Agreement(
        verdicts=verdicts,
        runs=len(clean),
        dropped=dropped,
        median_ratio=math.exp(math.fsum(map(math.log, medians)) / len(medians)) if medians else None,
        ratio_range=stats.interval_of_ratios(medians) if len(medians) > 1 else None,
        close=sum(CLOSE[0] < r < CLOSE[1] for r in ratios) / len(ratios) if ratios else None,
        differs=list(pairs[0][0].summary.get("lab", {}).get("differs", [])),
        lateness_ns=worst,
        spoilt=spoilt,
    )


def _verdict(quantity: Quantity, tables: list[tuple[list[Flow], list[Flow]]], spoilt: str) -> Verdict | None:
    values = [(quantity.value(lab), quantity.value(sim)) for lab, sim in tables]
    if not any(sim is not None for _, sim in values) and not any(lab is not None for lab, _ in values):
        return None
    both = [(lab, sim) for lab, sim in values if lab is not None and sim is not None]
    means = (_mean([pair[side] for pair in values]) for side in (1, 0))
    low = high = None
    word, reason = "open", spoilt
    logarithmic = quantity.relative and all(one > 0 and other > 0 for one, other in both)
    apart = _apart(both, relative=quantity.relative, logarithmic=logarithmic)
    if len(both) < len(values):
        reason = reason or "a run has too few finished flows for it"
    elif apart is None:
        reason = reason or "the simulated value is 0: no flow finished there"
    elif len(apart) > 1:
        low, high = stats.interval_t(apart, level=0.9)
    else:
        reason = reason or "one run has no interval: --repeats 5"
    # The margin of a ratio counts both ways alike: a tenth more or a tenth less of the logarithm.
    margin = math.log1p(quantity.margin) if logarithmic else quantity.margin
    if low is not None and high is not None and not spoilt:
        if -margin <= low and high <= margin:
            word = "equal"
        elif low > 0 or high < 0:
            word = "different"
        else:
            reason = "the interval is wider than the margin"
    if logarithmic and low is not None and high is not None:
        low, high = math.expm1(low), math.expm1(high)
    simulated, lab = means
    return Verdict(
        name=quantity.name,
        simulated=simulated,
        lab=lab,
        low=low,
        high=high,
        margin=quantity.margin,
        word=word,
        reason=reason if word == "open" else "",
    )


def _mean(values: Sequence[float | None]) -> float | None:
    found = [one for one in values if one is not None]
    return sum(found) / len(found) if found else None


def _apart(both: Sequence[tuple[float, float]], *, relative: bool, logarithmic: bool) -> list[float] | None:
    """Return how far the lab's value of each run is from the simulated one; None: as a share of 0."""
    if not relative:
        return [lab - sim for lab, sim in both]
    if logarithmic:
        return [math.log(lab / sim) for lab, sim in both]
    return [lab / sim - 1 for lab, sim in both] if all(sim > 0 for _, sim in both) else None


def _flows(run: Run) -> list[Flow]:
    import pyarrow

    return pyarrow.table(run.flows).select(["flow_id", "size_bytes", "fct_ns"]).to_pylist()


def _scenario(run: Run) -> str:
    """Return the scenario of a run without what may differ between engines."""
    return repr(
        sorted(
            (key, repr(value.get("until") if key == "run" else value))
            for key, value in run.scenario.items()
            if key not in ("name", "seed", "measure")
        )
    )
