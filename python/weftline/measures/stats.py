"""Estimates over seeds: means with 95 % intervals, and differences between two schemes on the same seeds.

A run is one observation. The runs of one scheme differ in the seed alone, so they are independent, and the
interval is Student's over their values (`interval_t`). The percentile bootstrap over seeds
(`interval_bootstrap`) follows the skew of quantities that are far from normal. Its percentiles are taken
further out by what Student's interval is wider than the normal one; below about ten seeds it is too narrow
all the same.

Runs that are the same one, bit by bit, are one observation, however many seeds they had: nothing in them was
drawn at random. `Keys` tell them apart. The mean is over all runs, and the interval that of as many values as
there are distinct observations.

Values that are the lower edges of bins are known up to the width of a bin: an interval reaches to the upper
edges, and that of a difference is wider by a bin at both ends.

No interval of a mean holds it in 95 of 100 cases whatever the distribution: what happens under few seeds may
be under none of those that were run. Where the values show that they are far from normal (`Oddity`: half of
them or more are equal, or one is far from all others), the number states it, and `judgements.judged` asks
each seed by itself too.

Two schemes that met the same seeds carried the same flows, so their difference is taken seed by seed: what
the flows have in common cancels (common random numbers). Where no seed is shared the interval is Welch's, or
that of a bootstrap which draws the runs of both schemes again, each from its own.

Sources: Student's distribution for whole degrees of freedom, Abramowitz and Stegun, Handbook of Mathematical
Functions, 26.7.3 and 26.7.4. Welch, Biometrika 34 (1947). Efron and Tibshirani, An Introduction to the
Bootstrap (1993), ch. 13. Hesterberg, What Teachers Should Know About the Bootstrap, The American
Statistician 69 (2015), expanded percentile interval. Grubbs, Annals of Mathematical Statistics 21 (1950), of
one value that is far from the others.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import NormalDist

METHODS = ("t", "bootstrap")
FEW = 5
"""With fewer runs an interval is several times wider than with ten."""
FEW_TEXT = (
    "an interval over few seeds assumes a normal distribution; where numbers have few values, as with paths "
    f"by a hash, seeds that happen to agree give one far too narrow; use {FEW} or more"
)
FEW_OF_BOOTSTRAP = 10
"""With fewer runs a bootstrap interval has no means far enough out: with two it holds the mean in half."""
RESAMPLES = 2000
Keys = Mapping[int, Hashable]
"""What each run is, by seed: runs with the same key and the same value are one observation."""


UNEVEN = 0.05
"""Share of half an interval by which its middle may be off the mean, for the ends to be written as ±."""
FAR_LEVEL = 0.001
"""Level of the test for a value far from all others: in this share of cases normal ones have it by chance."""


@dataclass(frozen=True)
class Oddity:
    """What shows that values are far from normal: the interval holds their mean less often than stated."""

    value: float
    """The one that half of the seeds or more have, or that of the one seed which is far from all others."""
    count: int
    """How many seeds have it: 1 of a seed that is far off."""
    of: int
    """How many seeds there are."""

    def text(self, write: Callable[[float | None], str]) -> str:
        """Return ``"0 in 4 of 5 seeds"``."""
        return f"{write(self.value)} in {self.count} of {self.of} seeds"


def oddities_text(found: Iterable[Oddity | None]) -> str:
    """Return what the oddities of some numbers mean, as a sentence; "" without any."""
    if not any(found):
        return ""
    return (
        "A value that is given with its seeds, such as 0 in 4 of 5 seeds: half of them or more have it, or "
        "it is far from all others. The interval then holds the mean in fewer than 95 of 100 cases."
    )


@dataclass(frozen=True)
class Estimate:
    """A mean over runs and the ends of its 95 % interval; both None for a single observation."""

    mean: float
    low: float | None = None
    high: float | None = None
    count: int = 1
    """How many runs have the value."""
    bin_width: float = 0.0
    """Width of the bins whose lower edges the values are, with which `high` is that of the upper edges."""
    values: tuple[float, ...] = field(default=(), compare=False, repr=False)
    """What it is the mean of; () where that is of two independent groups of runs."""
    oddity: Oddity | None = field(default=None, compare=False)
    """What shows that the values are far from normal; None where nothing does."""

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def is_even(self) -> bool:
        """Whether the ends of the interval are about equally far from the mean, bins aside."""
        return (
            self.low is None or self.high is None or is_even(self.mean, self.low, self.high - self.bin_width)
        )

    @property
    def is_apart_from_zero(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def is_even(mean: float, low: float, high: float, by: float = UNEVEN) -> bool:
    """Return whether the middle of an interval is the mean, up to the share `by` of its half width."""
    half = (high - low) / 2
    return abs(mean - low - half) <= by * half


def estimate(
    values: Sequence[float | None],
    *,
    method: str = "t",
    keys: Sequence[Hashable] | None = None,
    bin_width: float = 0.0,
) -> Estimate | None:
    """Return the mean of what is there with its interval, None if nothing is.

    Parameters
    ----------
    values : sequence of float or None
        One value a run; None where a run does not have it.
    method : {"t", "bootstrap"}
        How the interval is found.
    keys : sequence of hashable, optional
        What each run is; those with the same key and value are one observation. Without it each is one.
    bin_width : float
        Width of the bins whose lower edges the values are; 0: the values are exact.
    """
    each = zip(values, range(len(values)) if keys is None else keys, strict=True)
    found = [(float(v), key) for v, key in each if v is not None and v == v]
    if not found:
        return None
    known, distinct = [value for value, _ in found], len(set(found))
    mean = math.fsum(known) / len(known)
    if distinct < 2:
        return Estimate(mean, count=len(known), bin_width=bin_width, values=tuple(known))
    low, high = (interval_bootstrap if method == "bootstrap" else interval_t)(known, count=distinct)
    odd = _oddity(known, [value for value, _ in dict.fromkeys(found)], bin_width)
    return Estimate(mean, low, high + bin_width, len(known), bin_width, tuple(known), odd)


def _oddity(known: Sequence[float], distinct: Sequence[float], bin_width: float) -> Oddity | None:
    """Return what shows that values are far from normal: equal ones, or one that is far from all others.

    `distinct`: those of distinct observations, which decide. Numbers that are known up to the width of a bin
    are equal for that reason.
    """
    if min(distinct) == max(distinct):
        return None
    value, count = Counter(distinct).most_common(1)[0]
    if 2 * count >= len(distinct) and count > 1 and not bin_width:
        return Oddity(value, sum(one == value for one in known), len(known))
    mean = math.fsum(distinct) / len(distinct)
    # A bin hides where in it a value lies.
    spread = math.sqrt(_variance(distinct) + bin_width**2 / 12)
    far = max(distinct, key=lambda one: abs(one - mean))
    if len(distinct) < FEW or abs(far - mean) <= _far_off(len(distinct)) * spread:
        return None
    return Oddity(far, sum(one == far for one in known), len(known))


@lru_cache(maxsize=256)
def _far_off(count: int) -> float:
    """Return beyond how many standard deviations from the mean none of `count` normal values is (Grubbs)."""
    t = t_quantile(1 - FAR_LEVEL / (2 * count), count - 2)
    return (count - 1) / math.sqrt(count) * t / math.sqrt(count - 2 + t * t)


def interval_t(
    values: Sequence[float], *, count: int | None = None, level: float = 0.95
) -> tuple[float, float]:
    """Return Student's interval of the mean of two or more values, of 95 % unless `level` is another share.

    `count`: how many of them are distinct observations; all without it.
    """
    mean, count = math.fsum(values) / len(values), count or len(values)
    half = t_quantile((1 + level) / 2, count - 1) * math.sqrt(_variance(values) / count)
    return mean - half, mean + half


def interval_of_ratios(values: Sequence[float]) -> tuple[float, float]:
    """Return Student's 95 % interval of the geometric mean of two or more ratios, by their logarithms."""
    low, high = interval_t([math.log(value) for value in values])
    return math.exp(low), math.exp(high)


def interval_bootstrap(
    values: Sequence[float], *, count: int | None = None, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Return the 95 % percentile-bootstrap interval of the mean; the same values give the same one.

    `count`: how many of them are distinct observations, which is how many are drawn; all without it.
    """
    draw, count = random.Random(len(values)), count or len(values)
    return _middle_of([_resampled_mean(values, draw, count) for _ in range(resamples)], count)


def _resampled_mean(values: Sequence[float], draw: random.Random, count: int) -> float:
    return math.fsum(draw.choices(values, k=count)) / count


def _middle_of(means: list[float], count: int) -> tuple[float, float]:
    """Return the ends of the part of some means, each of `count` values drawn again, that is an interval.

    Means of values drawn again deviate by the values' spread over all of them, not over one less, and by the
    normal law: so what lies outside is what Student's interval leaves out of the normal law.
    """
    outside = NormalDist().cdf(-math.sqrt(count / (count - 1)) * t_quantile(0.975, count - 1))
    means.sort()
    place = math.floor(outside * len(means))
    return means[place], means[len(means) - 1 - place]


@dataclass(frozen=True)
class Difference:
    """One scheme minus another."""

    estimate: Estimate
    paired: bool
    """Whether it was taken seed by seed."""
    base: float
    """Mean of what was taken away, over the runs that count."""
    bin_width: float = 0.0
    """Width of the bins whose lower edges both values are; the interval is wider by it at both ends."""
    unequal: int | None = None
    """Under how many of the seeds that both have they are not equal; None if it was not taken by seed."""

    @property
    def mostly_equal(self) -> bool:
        """Whether half of the seeds or more make no difference, and some do.

        The mean is then that of a few differences and of zeros, whose distribution is skewed: the interval
        holds the true mean less often than 95 times in 100.
        """
        return self.unequal is not None and 0 < 2 * self.unequal <= self.estimate.count

    @property
    def is_within_bin(self) -> bool:
        """Whether the interval holds zero, and would not if the values were exact."""
        low, high = self.estimate.low, self.estimate.high
        if low is None or high is None or not low <= 0 <= high:
            return False
        return low + self.bin_width > 0 or high - self.bin_width < 0

    @property
    def relative(self) -> float | None:
        """The difference as a share of the base; None where that is zero."""
        return self.estimate.mean / abs(self.base) if self.base else None


def difference(
    values: Mapping[int, float | None],
    base: Mapping[int, float | None],
    *,
    method: str = "t",
    paired: bool = True,
    keys: tuple[Keys, Keys] | None = None,
    bin_width: float = 0.0,
) -> Difference | None:
    """Return the mean of `values` minus that of `base`, both by seed; None if there is nothing to compare.

    Seeds that both have are paired, and the others are left out; without a common one, or with `paired`
    False, it is the difference of two independent means. `keys` (of `values` and of `base`) and `bin_width`
    are as in `estimate`.
    """
    of_ours, of_theirs = keys or ({}, {})
    ours = {seed: v for seed, v in values.items() if v is not None}
    theirs = {seed: v for seed, v in base.items() if v is not None}
    common = sorted(ours.keys() & theirs.keys()) if paired else []
    if common:
        pairs = [(of_ours.get(s, s), of_theirs.get(s, s), theirs[s]) for s in common]
        differences = [ours[s] - theirs[s] for s in common]
        found = estimate(differences, method=method, keys=pairs)
        mean = math.fsum(theirs[s] for s in common) / len(common)
        unequal = sum(one != 0 for one in differences)
        if found and found.oddity and found.oddity.count > 1 and found.oddity.value != 0:
            found = replace(found, oddity=None)  # most seeds differ, and by the same
        return Difference(_wider(found, bin_width), True, mean, bin_width, unequal) if found else None
    if not ours or not theirs:
        return None
    a, b = list(ours.values()), list(theirs.values())
    counts = (
        len({(of_ours.get(s, s), v) for s, v in ours.items()}),
        len({(of_theirs.get(s, s), v) for s, v in theirs.items()}),
    )
    found = (_bootstrap_of_two if method == "bootstrap" else _welch)(a, b, counts)
    return Difference(_wider(found, bin_width), False, math.fsum(b) / len(b), bin_width)


def _wider(found: Estimate, by: float) -> Estimate:
    if found.low is None or found.high is None:
        return found
    return replace(found, low=found.low - by, high=found.high + by)


def how_taken(shown: Sequence[Difference]) -> str:
    """Return how differences were taken and over how many seeds, as the end of a sentence."""
    counts = sorted({one.estimate.count for one in shown})
    how = pairing_text(shown)
    return f"{how}, over {seeds_text(counts)}" if counts else how


def pairing_text(shown: Sequence[Difference]) -> str:
    """Return whether differences were taken seed by seed, as the end of a sentence."""
    return {
        frozenset({True}): "seed by seed on the same flows",
        frozenset({False}): "as of independent runs: flows or seeds are not the same",
    }.get(frozenset(one.paired for one in shown), "seed by seed where flows and seeds are the same")


def seeds_text(counts: Sequence[int]) -> str:
    """Return ``"5 seeds"`` or ``"3 to 5 seeds"``, of sorted numbers."""
    if len(counts) > 1:
        return f"{counts[0]} to {counts[-1]} seeds"
    return f"{counts[0]} seed{'s' if counts[0] > 1 else ''}"


def _welch(a: Sequence[float], b: Sequence[float], counts: tuple[int, int]) -> Estimate:
    """Return the difference of two means with Welch's interval; `counts`: distinct observations of each."""
    mean = math.fsum(a) / len(a) - math.fsum(b) / len(b)
    count, (n, m) = min(len(a), len(b)), counts
    if min(counts) < 2:
        return Estimate(mean, count=count)
    of_a, of_b = _variance(a) / n, _variance(b) / m
    if of_a + of_b == 0:
        return Estimate(mean, mean, mean, count)
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (n - 1) + of_b**2 / (m - 1))
    # Down to a whole number: rather too wide.
    half = t_quantile(0.975, max(1, math.floor(freedom))) * math.sqrt(of_a + of_b)
    return Estimate(mean, mean - half, mean + half, count)


def _bootstrap_of_two(a: Sequence[float], b: Sequence[float], counts: tuple[int, int]) -> Estimate:
    """Return the difference of two means with its percentile-bootstrap interval: both are drawn again."""
    mean, count = math.fsum(a) / len(a) - math.fsum(b) / len(b), min(len(a), len(b))
    if min(counts) < 2:
        return Estimate(mean, count=count)
    draw, (n, m) = random.Random(len(a) + len(b)), counts
    means = [_resampled_mean(a, draw, n) - _resampled_mean(b, draw, m) for _ in range(RESAMPLES)]
    return Estimate(mean, *_middle_of(means, min(counts)), count)


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)


@lru_cache(maxsize=256)
def t_quantile(share: float, freedom: int) -> float:
    """Return the value that Student's t stays below with probability `share` (above 0.5).

    Exact to about ten figures; beyond 5000 degrees of freedom that of the normal distribution, which differs
    in the fourth.
    """
    if freedom > 5000:
        return NormalDist().inv_cdf(share)
    low, high = 0.0, 1.0
    while _within(high, freedom) < 2 * share - 1:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < 2 * share - 1 else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """Return the probability that Student's t lies between -t and t: a finite series (26.7.3, 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = 0.0 if freedom == 1 else term
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    series = math.sin(angle) * total
    return (angle + series) * 2 / math.pi if odd else series
