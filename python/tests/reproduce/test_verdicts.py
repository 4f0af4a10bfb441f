"""Verdicts on claims and on rows of the ledger, from stored numbers."""

import math
import random
import re
from pathlib import Path

import numpy as np
import pytest

from weftline.measures.lines import Mean
from weftline.quantities import count_text, digits, share_text, time_text
from weftline.reproduce import claims, experiments, joined, ledger
from weftline.reproduce import verdicts as rules


def row(**more):
    return ledger.Row(id="r", at="Fig 1", claim="c", experiment="e", claims=("a", "b"), **more)


INTERVALS = {True: (0.7, 0.9), False: (1.1, 1.3), None: (0.9, 1.1)}


NONE = {"at_most": 0}
STALLED = {"kind": "stalled", "text": "stalled"}


def facts(interval=(0.7, 0.9), **more):
    """A stored claim that a ratio is below 1."""
    low, high = interval
    mean = (low + high) / 2
    found = {"measured": mean, "interval": interval, "seeds": 3, "bounds": {"below": 1}, "ratio": True}
    return found | {"said": f"{mean:.1f}", "published": None, "by_seed": [low, mean, high]} | more


def result(*decided):
    output = [facts(INTERVALS[one], text=text) for text, one in zip("ab", decided, strict=False)]
    return {"e": {"claims": output, "size": "small", "weftline": "1", "date": "2026-01-01"}}


@pytest.mark.parametrize(
    ("decided", "verdict"),
    [
        ((True, True), "confirmed"),
        ((True, False), "partly"),
        ((False, False), "contradicted"),
        ((None, None), "open"),
        ((True, None), "partly"),
        ((False, None), "contradicted"),
        ((True,), "partly"),
        ((), "open"),
    ],
)
def test_a_verdict_follows_from_the_claims(decided, verdict):
    assert ledger.judge(row(), result(*decided)).direction == verdict


def test_weaker_claims_confirm_no_more_than_a_part():
    weak = row(at_most="partly")
    assert ledger.judge(weak, result(True, True)).direction == "partly"
    assert ledger.judge(weak, result(False, False)).direction == "contradicted"


def test_what_was_not_run_or_not_tried_is_reported():
    assert ledger.judge(row(), {}).direction == "not run"
    untried = ledger.Row(id="r", at="Fig 1", claim="c", not_tried="hardware")
    assert ledger.judge(untried, {}).direction == "not tried"


@pytest.mark.parametrize(
    ("claim", "direction", "size"),
    [
        ({**facts(), "seeds": 1, "interval": None}, "open: one seed", "–"),
        ({**facts(), "seeds": 2}, "open: 2 seeds", "–"),
        ({**facts(), "seeds": 1, "interval": None, "unseeded": True}, "yes", "–"),
        (facts(by_seed=[0.7, 1.02, 0.8]), "open: 2 of 3 seeds", "–"),
        (facts(by_seed=[0.8] * 6 + [1.02]), "open: 6 of 7 seeds", "–"),
        (facts(by_seed=[0.8] * 9 + [1.02]), "yes: 9 of 10 seeds", "–"),
        (facts(by_seed=[0.8] * 8 + [1.02] * 2), "open: 8 of 10 seeds", "–"),
        (facts((0.7, 1.1), by_seed=[0.8] * 20, bounds={"below": 1}), "open: within chance", "–"),
        (facts(reasons=[{"kind": "unfinished", "text": "3 flows"}]), "open: 3 flows", "–"),
        (facts(published=0.81), "yes", "yes"),
        # An interval that holds no effect too, as wide as it is, holds nearly every number.
        (
            facts((0.7, 1.1), published=0.75, bounds={"below": 1}),
            "open: within chance",
            "open: within chance",
        ),
        (facts((0.7, 0.9), published=0.75, bounds={"below": 1}), "yes", "yes"),
        (facts((0.79, 0.81), published=0.82), "yes", "yes"),
        # A fifth less is not a tenth less, though 0.8 is within 15 % of 0.9.
        (facts((0.79, 0.81), published=0.9), "yes", "no"),
        (facts(published=0.6), "yes", "no"),
        # Without a published number the bound is all that there is.
        (facts((1.05, 1.1), bounds={"above": 1.5}), "no", "–"),
        # "No effect" is a ratio of 1, not the bound: the direction is as published, and the size is not.
        (facts((1.05, 1.1), bounds={"above": 1.5}, published=1.7), "yes", "no"),
        # The bounds allow 1: about the same.
        (facts((1.05, 1.1), bounds={"above": 0.9, "below": 1.08}), "open: within chance", "–"),
        (facts((1.1, 1.2), bounds={"above": 0.9, "below": 1.08}, published=1.04), "no", "–: without a size"),
        # A published level has a size alone; without a published number its bounds are the statement.
        (facts((4, 6), bounds={"above": 3, "below": 9}, ratio=False), "yes", "–"),
        (facts((4, 6), bounds={"above": 4, "below": 9}, ratio=False, published=5), "–", "yes"),
        (
            facts((-9, 19), bounds={"above": 4, "below": 9}, ratio=False, published=8),
            "–",
            "open: the interval is too wide",
        ),
        # None at all: one seed that has some is enough, and no other number of them is the published 0.
        (facts((-9, 29), by_seed=[0, 9, 21], bounds=NONE, ratio=False, published=0), "no", "no"),
        (facts((0, 0), by_seed=[0, 0, 0], bounds=NONE, ratio=False, published=0), "yes", "yes"),
        ({**facts((1, 1), by_seed=[], bounds=NONE, ratio=False), "seeds": 1, "interval": None}, "no", "–"),
        (
            facts((-9, 29), by_seed=[0, 9, 21], bounds=NONE, ratio=False, reasons=[STALLED]),
            "open: stalled",
            "–",
        ),
        # Of what can be negative the mean decides.
        (
            facts((-9, 29), by_seed=[-9, 9, 21], bounds=NONE, ratio=False, signed=True),
            "open: within chance",
            "–",
        ),
        (facts((0.9, 1.1), bounds={"above": 0.8, "below": 1.2}, published=1.04), "yes", "–: without a size"),
        (facts(counts="agreement", holds=True), "–", "yes"),
        (facts(counts="order", holds=False), "no", "–"),
    ],
)
def test_both_verdicts_on_a_claim_follow_from_its_numbers(claim, direction, size):
    found = rules.of(claim)
    assert (found.direction.text, found.size.text) == (direction, size)


@pytest.mark.parametrize("seeds", range(1, 60))
def test_the_number_of_seeds_that_agree_is_that_of_a_sign_test(seeds):
    def chance(count):
        return sum(math.comb(seeds, n) for n in range(count, seeds + 1)) / 2**seeds

    needed = rules.needed(seeds)
    assert needed == seeds if seeds < 8 else chance(needed) <= rules.SIGN_LEVEL < chance(needed - 1)
    assert needed > seeds / 2
    assert needed / seeds >= rules.needed(2 * seeds) / (2 * seeds), "a smaller share of more seeds"


@pytest.mark.parametrize(("seeds", "lowest"), [(5, 0.25), (10, 0.4), (20, 0.85)])
def test_a_direction_is_seldom_confirmed_by_chance_and_more_often_with_more_seeds(seeds, lowest):
    draw = random.Random(seeds)

    def confirmed(effect):
        values = [draw.gauss(effect, 1) for _ in range(seeds)]
        mean = Mean.of(values)
        claim = facts((mean.low, mean.high), bounds={"above": 0}, ratio=False, by_seed=values)
        return rules.of(claim | {"seeds": seeds, "measured": mean.value}).direction.word == rules.YES

    assert sum(confirmed(0.0) for _ in range(2000)) / 2000 < 0.035
    assert sum(confirmed(1.0) for _ in range(500)) / 500 > lowest


def test_seeds_that_do_not_agree_are_counted_at_the_row():
    answers = [rules.Answer(rules.YES, "9 of 10 seeds"), rules.Answer(rules.YES)]
    assert rules.together(answers, 2) == rules.Answer(rules.YES, "9 of 10 seeds")


@pytest.mark.parametrize(
    ("answers", "wanted", "direction", "size"),
    [
        (
            "yes no no open open",
            5,
            "partly: 1 of 5; 2 contradicted; 2 open: w",
            "partly: 1 of 5 same; 2 other; 2 open: w",
        ),
        ("yes open", 2, "partly: 1 of 2; 1 open: w", "partly: 1 of 2 same; 1 open: w"),
        ("yes yes", 3, "partly: 2 of 3; 1 not run", "partly: 2 of 3 same; 1 not run"),
        ("no no", 2, "no", "no"),
        ("no open", 3, "no: 1 of 3; 1 open: w; 1 not run", "no: 1 of 3; 1 open: w; 1 not run"),
        ("yes unsized", 2, "yes: 1 of 2; 1 without a size", "yes: 1 of 2; 1 without a size"),
        ("no unsized", 2, "no: 1 of 2; 1 without a size", "no: 1 of 2; 1 without a size"),
        ("unsized unsized", 2, "–", "–"),
        ("open open", 2, "open: w", "open: w"),
    ],
)
def test_a_row_counts_its_claims_where_they_differ(answers, wanted, direction, size):
    made = {"open": rules.Answer("open", "w"), "unsized": rules.Answer("", rules.UNSIZED)}
    found = [made.get(word) or rules.Answer(word) for word in answers.split()]
    assert rules.together(found, wanted).text == direction
    assert rules.together(found, wanted, rules.SIZE_WORDS).text == size


def test_a_row_of_which_one_number_has_no_size_is_not_plainly_the_same():
    sized = facts(text="a", published=0.8)
    unsized = facts((0.9, 1.1), text="b", published=1.04, bounds={"above": 0.8, "below": 1.2})
    judged = ledger.judge(row(published="0.8, 1.04"), {"e": {"claims": [sized, unsized]}})
    assert ledger.cells(judged)[4] == "same (1 of 2; 1 without a size)"


def test_ratios_are_marked_in_a_row():
    ratio = facts(text="a", published=0.8) | {"said": "6.42 (4.17 to 8.68)"}
    value = facts(text="b", ratio=False) | {"said": "3.9 Gb/s (3 Gb/s to 5 Gb/s)"}
    judged = ledger.judge(row(published="4 Gb/s"), {"e": {"claims": [ratio, value]}})
    assert judged.ours == "6.42 times (4.17 to 8.68); 3.9 Gb/s (3 Gb/s to 5 Gb/s)"


def test_a_size_under_another_definition_has_no_verdict():
    found = {"e": {"claims": [facts(text=text, published=0.8) for text in "ab"]}}
    assert ledger.judge(row(published="0.8"), found).size == "same"
    other = ledger.judge(row(published="0.8", definition="other", why="of the shortest flows"), found)
    assert (other.direction, other.size, other.size_why) == ("confirmed", "–", "another definition")


def test_few_numbers_are_shown_and_of_many_the_range():
    def claim(value):
        return facts(text=str(value), measured=value, ratio=False) | {"said": f"{value} s"}

    many = ledger.Row(id="r", at="", claim="c", experiment="e", claims=("3", "1", "2", "4"))
    found = {"e": {"claims": [claim(value) for value in (3, 1, 2, 4)]}}
    assert ledger.judge(many, found).ours == "1 s … 4 s"
    one = ledger.Row(id="r", at="", claim="c", experiment="e", claims=("3",))
    assert ledger.judge(one, found).ours == "3 s"
    texts = ("3 %", "70 k (61 k to 80 k)", "1 %", "20 us")
    for one, text in zip(found["e"]["claims"], texts, strict=True):
        one["said"] = text
    assert ledger.judge(many, found).ours == "1 % … 3 %; 70 k (61 k to 80 k); 20 us", "unlike units apart"


def test_an_interval_that_reaches_over_a_bound_decides_nothing():
    claim = {"text": "t", "below": 1}
    assert claims.verdict(claim, 0.9, digits, interval=(0.8, 0.95)).decided is True
    assert claims.verdict(claim, 0.9, digits, interval=(0.7, 1.1)).decided is None
    assert claims.verdict(claim, 1.2, digits, interval=(1.1, 1.3)).decided is False
    assert claims.verdict(claim, 0.9, digits).decided is True
    between = {"text": "t", "above": 1, "below": 2}
    assert claims.verdict(between, 1.5, digits, interval=(0.5, 2.5)).decided is None
    assert claims.verdict({"text": "t", "at_most": 1}, 1.0, digits, interval=(1.0, 1.0)).decided is True


def test_one_seed_that_has_some_contradicts_none():
    claim = {"text": "t", "metric": "pauses", "at_most": 0}
    seeds = {"interval": (-23.2, 47.8), "by_seed": (0.0, 9.0, 28.0), "seeds": 3}
    found = claims.verdict(claim, 12.3, digits, **seeds)
    assert (found.decided, found.word) == (False, "DIFFERS")
    assert found.measured_text == "12.3 (0 to 47.8)", "a count is not negative"
    growth = claims.verdict({**claim, "metric": "backlog_growth"}, 12.3, digits, **seeds)
    assert (growth.decided, growth.measured_text) == (None, "12.3 (-23.2 to 47.8)")
    assert claims.as_json(growth)["signed"] is True
    stalled = claims.judgements.Reason("stalled", "stalled")
    assert claims.verdict(claim, 12.3, digits, **seeds, reasons=[stalled]).decided is None


def test_stored_claims_are_judged_again_from_the_numbers_of_their_seeds():
    experiment = experiments.load("pint-sampling")
    text = "with p = 1/16 shares are fair after less than three times as long as with p = 1"
    right = {"text": text, "measured": 2.0, "published": None, "by_seed": [1.0, 2.0, 3.0], "seeds": 3}
    mean = Mean.of(right["by_seed"])
    shifted = right | {"measured": 1.5, "interval": [mean.low - 0.5, mean.high - 0.5], "decided": True}
    (found,) = joined.judged_again(experiment, [shifted])
    assert (found["measured"], found["interval"]) == (2.0, (mean.low, mean.high))
    assert found["decided"] is None and found["said"].startswith("2")
    assert joined.judged_again(experiment, [found]) == [found], "what is right stays"
    old = {key: value for key, value in shifted.items() if key != "by_seed"}
    assert joined.judged_again(experiment, [old]) == [old], "without numbers of seeds it stays"
    assert joined.judged_again(experiment, [{**right, "text": "stated no more"}]) == []


def test_a_published_number_that_a_claim_states_no_more_is_not_kept():
    experiment = experiments.load("ndp-headline")
    text = "an incast from 431 senders ends within 1 % of the optimum"
    times = [156.7e6, 156.7e6, 156.8e6]
    stored = {"text": text, "measured": 156.7e6, "published": 156.27e6, "by_seed": times, "seeds": 3}
    (found,) = joined.judged_again(experiment, [stored])
    assert found["published"] is None
    assert rules.of(found).size.word == rules.NONE, "within 1 % of the optimum is a bound, without a size"
    assert rules.of(found).direction.word == rules.YES


@pytest.mark.parametrize(
    ("write", "bounds", "measured", "interval", "written", "bound"),
    [
        (time_text, {"below": 87_940.0}, 87_930.4, None, "87.93 us", "< 87.94 us"),
        (time_text, {"below": 87_920.0}, 87_930.4, None, "87.93 us", "< 87.92 us"),
        (time_text, {"above": 87_900.0}, 87_930.4, None, "87.93 us", "> 87.9 us"),
        (time_text, {"below": 1_597_000.0}, 2000.0, None, "2 us", "< 1.597 ms"),
        (digits, {"above": 1}, 1.007, (0.9997, 1.0143), "1.007 (0.9997 to 1.014)", "> 1.00"),
        (digits, {"above": 0.9, "below": 1.1}, 1.0999996, None, "1.0999996", "> 0.900, < 1.10"),
        (digits, {"below": 0.9}, 0.9, None, "0.900", "< 0.900"),
        (digits, {"below": 2}, 1.0, (-1.0, 3.0), "1.00 (0 to 3.00)", "< 2.00"),
        (share_text, {"below": 0.95}, 0.95001, None, "95.001 %", "< 95 %"),
        (count_text, {"at_most": 1000}, 1000.4, None, "1.0004 k", "≤ 1 k"),
        (digits, {"below": 2}, None, None, "–", "< 2.00"),
    ],
)
def test_a_number_does_not_look_like_a_bound_that_it_is_not_equal_to(
    write, bounds, measured, interval, written, bound
):
    verdict = claims.verdict({"text": "t", **bounds}, measured, write, interval=interval)
    assert (verdict.measured_text, verdict.bound) == (written, bound)


STUDENT = {3: 4.302653, 5: 2.776445, 10: 2.262157, 20: 2.093024}
"""The 97.5 % quantile of Student's law, by the number of seeds."""


@pytest.mark.parametrize("seeds", STUDENT)
def test_the_page_of_claims_has_the_chances_of_the_rule(seeds):
    page = Path(__file__).resolve().parents[3] / "docs/claims.py"
    row = re.search(rf"^\| {seeds} \| (\d+) \|(.+)\|$", page.read_text("utf-8"), re.M)
    alone, *stated = map(float, row[2].split("|"))
    needed, draws = rules.needed(seeds), 200_000
    tail = sum(math.comb(seeds, kept) for kept in range(needed, seeds + 1)) / 2**seeds
    assert (int(row[1]), alone) == (needed, round(100 * tail, 1))
    normal = np.random.default_rng(seeds).normal(0.0, 1.0, (draws, seeds))
    found = []
    for wanted, effect in [(needed, 0.0), (needed, 1.0), (seeds, 0.0), (seeds, 1.0)]:
        values = normal + effect
        low = values.mean(1) - STUDENT[seeds] * values.std(1, ddof=1) / math.sqrt(seeds)
        found.append(100 * float(((low > 0) & ((values > 0).sum(1) >= wanted)).mean()))
    # Four standard deviations of a share under 200 000 draws, and half of the last digit in the table.
    rounds = [0.05 if value < 10 else 0.5 for value in stated]
    rounds[-1] = 0.5
    off = [400 * math.sqrt(p / 100 * (1 - p / 100) / draws) + r for p, r in zip(found, rounds, strict=True)]
    assert all(abs(a - b) <= c for a, b, c in zip(found, stated, off, strict=True)), (found, stated)


def test_an_order_of_59_switches_takes_the_bits_that_the_texts_state():
    root = Path(__file__).resolve().parents[3]
    bits = math.log2(math.factorial(59))
    for page in ("docs/pint/paths.md", "experiments/pint/fig10/experiment.toml", "experiments/ledger.toml"):
        (stated,) = re.findall(r"log2 59! = ([0-9.]+)", (root / page).read_text("utf-8"))
        assert float(stated) == round(bits, 1), page
