"""Estimates over seeds: known tables, hand-computed cases, coverage."""

import math
import random

import pytest

from weftline.measures import judgements, lines, stats
from weftline.measures.judgements import Footnotes, Separation
from weftline.measures.lines import Mean
from weftline.measures.metrics import metric
from weftline.sweeps import tables


@pytest.mark.parametrize(
    "share, freedom, expected",
    [
        # Any table of Student's distribution.
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 3, 3.182),
        (0.975, 4, 2.776),
        (0.975, 9, 2.262),
        (0.975, 10, 2.228),
        (0.975, 30, 2.042),
        (0.975, 60, 2.000),
        (0.975, 120, 1.980),
        (0.975, 10_000, 1.960),
        (0.95, 7, 1.895),
        (0.995, 9, 3.250),
        (0.9995, 5, 6.869),
    ],
)
def test_quantiles_of_t_are_those_of_the_tables(share, freedom, expected):
    assert stats.t_quantile(share, freedom) == pytest.approx(expected, abs=6e-4)


def test_t_with_one_degree_is_cauchys_and_with_two_has_a_closed_form():
    assert stats.t_quantile(0.975, 1) == pytest.approx(math.tan(math.pi * 0.475), rel=1e-9)
    assert stats.t_quantile(0.975, 2) == pytest.approx(0.95 / math.sqrt(2 * 0.975 * 0.025), rel=1e-9)


def test_the_mean_of_three_has_the_interval_worked_out_by_hand():
    found = stats.estimate([1.0, 2.0, 3.0, None])
    # s = 1, so half of it is 4.3027 / sqrt(3).
    assert (found.mean, found.count) == (2.0, 3)
    assert found.half == pytest.approx(2.4841, abs=1e-4)
    assert found.low == pytest.approx(2 - found.half)


def test_one_value_has_no_interval_and_none_has_no_estimate():
    assert stats.estimate([5.0]) == stats.Estimate(5.0)
    assert stats.estimate([None, None]) is None


def test_the_bootstrap_stays_within_the_values_and_repeats_itself():
    values = [1.0, 1.1, 0.9, 1.2, 5.0, 1.0, 0.8, 1.05]
    low, high = stats.interval_bootstrap(values)
    assert min(values) <= low < sum(values) / 8 < high <= max(values)
    assert stats.interval_bootstrap(values) == (low, high)


def test_a_bootstrap_interval_of_ten_holds_the_mean_about_as_often_as_students():
    """The plain percentiles held that of normal numbers in 89 of 100 cases, and of a log-normal law in 74."""
    draw = random.Random(4)
    for law, mean, lowest in (
        (lambda: draw.gauss(0.0, 1.0), 0.0, 0.92),
        (lambda: draw.lognormvariate(0.0, 1.0), math.exp(0.5), 0.78),
    ):
        held = 0
        for _ in range(300):
            low, high = stats.interval_bootstrap([law() for _ in range(10)], resamples=1000)
            held += low <= mean <= high
        assert held / 300 >= lowest


def test_a_mean_has_the_ends_of_its_interval_also_where_they_are_nearly_even():
    values = [1.0, 1.1, 0.9, 1.2, 1.3, 1.0, 0.8, 1.05, 1.0, 1.15, 0.95, 1.1]
    found = stats.estimate(values, method="bootstrap")
    mean = Mean.of_estimate(found)
    assert (mean.low, mean.high) == pytest.approx((found.low, found.high), rel=1e-12)
    assert found.is_even and "±" in mean.text("{:.2f}".format)


def test_a_paired_difference_cancels_what_the_seeds_share():
    base = {seed: 100.0 * seed for seed in range(1, 6)}
    ours = {seed: value + 1.0 + 0.01 * (-1) ** seed for seed, value in base.items()}
    found = stats.difference(ours, base)
    assert found.paired and found.estimate.half < 0.02
    assert found.estimate.mean == pytest.approx(0.998)
    assert found.relative == pytest.approx(0.998 / 300)
    apart = stats.difference(ours, base, paired=False)
    assert not apart.paired and apart.estimate.half > 100


def test_a_difference_that_rests_on_few_seeds_says_on_how_many():
    def text(*differences):
        of = dict(enumerate(differences, start=1))
        found = stats.difference({seed: 10 + one for seed, one in of.items()}, dict.fromkeys(of, 10.0))
        return tables.difference_text(found, "{:g}".format, Separation(0), Footnotes())

    assert text(0, 3, 0, 0, 2) == "+1 ±1.75598 (+10 %; 2 of 5 seeds differ)"
    assert text(0, 3, 0, 2) == "+1.25 ±2.38683 (+12 %; 2 of 4 seeds differ)"
    assert "seeds differ" not in text(0, 3, 1, 0, 2) + text(0, 0, 0)
    independent = stats.difference({1: 1.0, 2: 2.0}, {3: 1.0, 4: 2.0})
    assert independent.unequal is None and not independent.mostly_equal


def test_where_seeds_make_no_difference_chance_seldom_separates():
    # The null hypothesis: differences of either sign. What the documentation states of the direction.
    source, apart = random.Random(3), 0
    for _ in range(2000):
        values = [source.choice((-1, 1)) * source.expovariate(1) * (source.random() < 0.3) for _ in range(10)]
        found = stats.estimate(values)
        apart += found.is_apart_from_zero
    assert apart <= 0.05 * 2000


def test_percentages_differ_by_points_and_relatively_by_per_cent():
    found = stats.difference({1: 0.02, 2: 0.03, 3: 0.025}, {1: 0.03, 2: 0.035, 3: 0.035})
    text = tables.difference_text(found, metric("drop_rate").difference_text, Separation(0), Footnotes())
    assert text == "-0.833 points ±0.717 points (-25 %)"
    assert metric("fct_mean").difference_text(2e3) == metric("fct_mean").text(2e3) == "2 us"


def separated(*differences):
    of = dict(enumerate(map(float, differences), start=1))
    found = stats.difference({seed: 10 + one for seed, one in of.items()}, dict.fromkeys(of, 10.0))
    assert found.estimate.is_apart_from_zero
    return judgements.separated(found)


def test_where_half_of_the_seeds_differ_six_of_one_sign_separate():
    # Student's interval leaves out zero in each of these.
    found = separated(0, 0, 0, 0, 0, 0, 3, 3, 3, 3)
    assert found.order == 0
    assert judgements.reasons_text(found.reasons) == (
        "seeds too unlike for an interval (6 of 10 seeds make no difference; a verdict needs 6 that do)"
    )
    # The interval of the mean, [-2.6, -0.1], and a seed of the other sign.
    found = separated(*[0] * 12, *[-3] * 10, 1)
    assert found.order == 0
    assert judgements.reasons_text(found.reasons) == (
        "seeds too unlike for an interval (12 of 23 seeds make no difference, and not every seed by itself "
        "is on that side)"
    )
    assert separated(*[0] * 10, *[-3] * 8).order == -1
    assert separated(0, 3, 3, 3, 3).order == 1, "most seeds differ"


def test_a_bound_on_equal_numbers_has_to_be_kept_by_each_seed():
    found = stats.estimate([0.0, 0.0, 0.0, 500.0, 0.0])
    assert found.high == pytest.approx(377.6, abs=0.1)
    assert judgements.judged(found, "<", 600.0).answer == "yes"
    verdict = judgements.judged(found, "<", 400.0)
    assert verdict.answer == "open"
    assert judgements.reasons_text(verdict.reasons) == (
        "seeds too unlike for an interval (4 of 5 seeds have the same value, and not every seed by itself "
        "is on that side)"
    )
    assert lines.Mean.of_estimate(found).text("{:.0f}".format) == "100 ±278 (0 in 4 of 5 seeds)"
    # No value is at the bound, and all are on one side: as before.
    assert judgements.judged(stats.estimate([5.0, 5.0, 5.0, 5.5, 5.0]), ">", 4.0).answer == "yes"


def test_a_seed_far_from_all_others_is_named_and_opens_a_bound_that_it_breaks():
    values = [9.0, 10.0, 11.0, 10.5, 9.5, 10.2, 9.8, 10.1, 9.9, 40.0]
    found = stats.estimate(values)
    assert found.oddity == stats.Oddity(40.0, 1, 10)
    assert lines.Mean.of_estimate(found).text("{:.0f}".format) == "13 ±7 (40 in 1 of 10 seeds)"
    assert judgements.judged(found, "<", 50.0).answer == "yes"
    assert [one.kind for one in judgements.judged(found, "<", 30.0).reasons] == ["uneven"]
    scaled = lines.Mean.of_estimate(found).scaled(2.0)
    assert scaled.oddity.value == 80.0


def test_normal_and_few_values_are_not_odd():
    source = random.Random(11)
    odd = sum(stats.estimate([source.gauss(5, 1) for _ in range(10)]).oddity is not None for _ in range(4000))
    assert odd <= 12, "one in a thousand"
    assert stats.estimate([1.0, 1.1, 9.0]).oddity is None
    assert stats.estimate([1.0, 1.0, 1.0]).oddity is None, "a value that does not vary"
    # Lower edges of bins are equal because of the bins.
    assert stats.estimate([5e3, 5e3, 5e3, 6e3, 5e3], bin_width=1e3).oddity is None
    assert stats.estimate([5e3, 5e3, 5e3, 90e3, 5e3], bin_width=1e3).oddity == stats.Oddity(90e3, 1, 5)
    # Equal runs are one observation: two values are left.
    assert stats.estimate([1.0, 1.0, 1.0, 2.0], keys=["a", "a", "a", "b"]).oddity is None


def test_grubbs_limits_are_those_of_the_tables():
    # Two-sided, at the level of 0.001: the one-sided table at 0.0005 has 1.788 of five values.
    for count, level, expected in ((5, 0.05, 1.715), (10, 0.05, 2.290), (20, 0.05, 2.709)):
        t = stats.t_quantile(1 - level / (2 * count), count - 2)
        assert (count - 1) / count**0.5 * t / (count - 2 + t * t) ** 0.5 == pytest.approx(expected, abs=1e-3)
    assert stats._far_off(10) == pytest.approx(2.645, abs=1e-3)


def test_how_often_the_interval_holds_the_mean_is_as_the_documentation_states():
    """Of 100 sweeps, under 5, 10 and 20 seeds: the table of docs/sweeps.md."""
    source = random.Random(5)
    normal, seldom = source.gauss, source.random
    laws = (
        (lambda: normal(1, 1), 1.0, (95, 95, 95)),
        (lambda: math.exp(normal(0, 1)), math.exp(0.5), (82, 84, 87)),
        (lambda: math.exp(normal(0, 2)), math.exp(2.0), (53, 58, 62)),
        (lambda: source.expovariate(1) if seldom() < 0.3 else 0.0, 0.3, (68, 78, 86)),
        (lambda: normal(-1, 0.1) if seldom() < 0.9 else normal(20, 1), 1.1, (41, 66, 87)),
    )
    for law, mean, expected in laws:
        for count, share in zip((5, 10, 20), expected, strict=True):
            held = 0
            for _ in range(1500):
                low, high = stats.interval_t([law() for _ in range(count)])
                held += low <= mean <= high
            assert held / 15 == pytest.approx(share, abs=4), (expected, count)


def test_many_differences_say_how_many_stars_are_chance():
    one = stats.difference({1: 1.0, 2: 3.0, 3: 2.5}, {1: 1.5, 2: 2.0, 3: 2.0})
    note = tables.differences_note("x", Footnotes(), intervals=True, found=[one] * 80)
    assert "Of 80 differences, about 4 would have a star by chance if all were alike." in note
    assert "by chance" not in tables.differences_note("x", Footnotes(), intervals=True, found=[one] * 19)


def test_unlike_seeds_are_compared_as_welch_does():
    # Means 2 and 7, variances 1 and 4 of 3: s^2/n 1/3 and 4/3, 2.94 degrees of freedom, taken as 2.
    found = stats.difference({1: 1.0, 2: 2.0, 3: 3.0}, {4: 5.0, 5: 7.0, 6: 9.0})
    assert not found.paired and found.estimate.mean == -5.0
    assert found.estimate.half == pytest.approx(4.3027 * math.sqrt(5 / 3), abs=1e-3)


def test_only_common_seeds_are_paired():
    found = stats.difference({1: 2.0, 2: 3.0, 3: 99.0}, {1: 1.0, 2: 2.0, 4: 0.0})
    assert found.estimate == stats.Estimate(1.0, 1.0, 1.0, 2) and found.base == 1.5


@pytest.mark.parametrize("draw", [lambda d: d.gauss(3, 2), lambda d: 6 * d.random()])
def test_the_interval_covers_the_mean_nineteen_times_in_twenty(draw):
    source = random.Random(7)
    covered = 0
    for _ in range(1000):
        low, high = stats.interval_t([draw(source) for _ in range(5)])
        covered += low <= 3 <= high
    # 950 expected; 4 standard deviations are 28, and the uniform one is a little off at five values.
    assert 915 <= covered <= 978


def test_an_unpaired_difference_has_the_interval_that_was_asked_for():
    ours, theirs = {n: float(n * n) for n in range(8)}, {n: n + 3.0 for n in range(10, 18)}
    welch, bootstrap = (
        stats.difference(ours, theirs, method=method).estimate for method in ("t", "bootstrap")
    )
    assert bootstrap.mean == welch.mean and bootstrap.count == welch.count == 8
    assert (bootstrap.low, bootstrap.high) != (welch.low, welch.high)
    # The squares have their long tail above.
    assert welch.low < bootstrap.low < bootstrap.mean < welch.high < bootstrap.high
    assert stats.difference(ours, theirs, method="bootstrap").estimate == bootstrap, "the same draws"
    # Not even, as the squares are not.
    assert abs(bootstrap.high + bootstrap.low - 2 * bootstrap.mean) > 0.01
    assert stats.difference({1: 2.0}, {2: 1.0}, method="bootstrap").estimate.low is None


def test_uneven_intervals_have_the_same_ends_everywhere():
    found = stats.estimate([1.0, 1.1, 1.2, 1.4, 1.7, 2.1, 2.7, 4.8], method="bootstrap")
    mean = lines.Mean.of_estimate(found)
    assert not found.is_even and (mean.low, mean.high) == (found.low, found.high)
    assert mean.text(str) == tables.estimate_text(found, str) == f"{found.mean} [{found.low}, {found.high}]"
    double = mean.scaled(2.0)
    assert (double.value, double.low, double.high) == (2 * found.mean, 2 * found.low, 2 * found.high)
    even = stats.estimate([1.0, 2.0, 3.0, 4.0])
    assert even.is_even and lines.Mean.of_estimate(even).ends is None
