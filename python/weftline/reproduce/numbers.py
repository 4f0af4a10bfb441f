"""Numbers seed by seed: the number of each seed of a line, or the reason why it is missing.

A claim, and a figure that draws ratios, is about every seed that it was to be run with. A seed is without a
number where its run failed, where the run does not have the metric (nothing converged, nothing was measured),
or where a ratio would divide by 0. No number is made up for it, and it is not left out silently: it is
counted and named in a reason, and a reason opens a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from weftline.measures import judgements
from weftline.measures.lines import Line, Mean
from weftline.measures.pooling import seed_of
from weftline.reproduce import verdicts
from weftline.runs import Run

FAILED, ABSENT, ZERO = "the run failed", "the run does not have it", "the ratio would divide by 0"
"""Why a seed has no number."""


@dataclass(frozen=True)
class Number:
    """What a number came to under one seed."""

    value: float | None
    why: str = ""
    """Why there is none."""

    @classmethod
    def of(cls, value: float | None, why: str = ABSENT) -> Number:
        """Return a value as a number; None, and what is not a number, with the reason `why`."""
        return cls(float(value)) if value is not None and value == value else cls(None, why)


BySeed = Mapping[int, Number]


def seeds_of(line: Line) -> tuple[int, ...]:
    """Return the seeds that a line was to be run with."""
    return line.asked or tuple(seed_of(run) for run in line.runs)


def of_runs(line: Line, read: Callable[[Run], Number]) -> dict[int, Number]:
    """Return what `read` finds in the run of each seed of a line."""
    by_seed = {seed_of(run): run for run in line.runs}
    return {seed: read(by_seed[seed]) if seed in by_seed else Number(None, FAILED) for seed in seeds_of(line)}


def of_values(line: Line, values: Sequence[float | None]) -> dict[int, Number]:
    """Return values, one for each run of a line, by seed."""
    known = {seed_of(run): Number.of(value) for run, value in zip(line.runs, values, strict=True)}
    return {seed: known.get(seed, Number(None, FAILED)) for seed in seeds_of(line)}


def of_line(line: Line, name: str) -> dict[int, Number]:
    """Return a metric of each seed of a line."""
    return of_values(line, line.values(name))


def combined(sides: Sequence[BySeed], combine: Callable[[list[float]], float | None]) -> dict[int, Number]:
    """Return a number made of several, seed by seed, of the seeds that all of them were to be run with.

    Where all are known and `combine` returns None, it would divide by 0.
    """
    found = {}
    for seed in sides[0]:
        if all(seed in side for side in sides):
            of_seed = [side[seed] for side in sides]
            values = [number.value for number in of_seed if number.value is not None]
            lacking = next((number for number in of_seed if number.value is None), None)
            found[seed] = lacking or Number.of(combine(values), ZERO)
    return found


def ratio(mine: BySeed, other: BySeed) -> dict[int, Number]:
    """Return one number over another, seed by seed."""
    return combined([mine, other], lambda values: values[0] / values[1] if values[1] else None)


def difference(mine: BySeed, other: BySeed) -> dict[int, Number]:
    """Return one number minus another, seed by seed."""
    return combined([mine, other], lambda values: values[0] - values[1])


def mean(numbers: BySeed) -> Mean | None:
    """Return the mean over the seeds that have a number, None if none has."""
    return Mean.of([number.value for number in numbers.values()])


def known(numbers: BySeed) -> int:
    """Return how many seeds have a number."""
    return sum(number.value is not None for number in numbers.values())


def few_seeds(count: int) -> list[judgements.Reason]:
    """Return the reason that so few seeds give, if they do."""
    if count >= verdicts.MIN_SEEDS:
        return []
    counted = "1 seed" if count == 1 else f"{count} seeds"
    return [judgements.Reason("seeds", f"{counted}; a verdict needs {verdicts.MIN_SEEDS}")]


def without(numbers: BySeed, place: str = "") -> list[judgements.Reason]:
    """Return the reason that seeds without a number give: how many have it, which do not, and why.

    `place`: where along the axis of x, of a claim on several places.
    """
    count = known(numbers)
    if count == len(numbers):
        return []
    by_cause: dict[str, list[int]] = {}
    for seed, number in numbers.items():
        if number.value is None:
            by_cause.setdefault(number.why, []).append(seed)
    causes = "; ".join(
        f"seed{'s' * (len(seeds) > 1)} {spans(seeds)}: {why}" for why, seeds in by_cause.items()
    )
    text = f"{count} of {len(numbers)} seeds have it; {causes}"
    return [judgements.Reason("measured", f"at {place}: {text}" if place else text)]


def reasons(numbers: BySeed, *, seeded: bool = True) -> list[judgements.Reason]:
    """Return the reasons against a verdict in how many seeds have a number.

    `seeded`: whether a seed can change the number; if none can, one seed is enough.
    """
    return [*(few_seeds(known(numbers)) if seeded else []), *without(numbers)]


def spans(seeds: Sequence[int]) -> str:
    """Return ``"1-5, 7"`` for seeds in any order."""
    found: list[list[int]] = []
    for seed in sorted(seeds):
        if found and found[-1][-1] == seed - 1:
            found[-1].append(seed)
        else:
            found.append([seed])
    return ", ".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else f"{span[0]}" for span in found)
