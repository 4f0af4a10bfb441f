"""Every verdict counts the requested seeds, and names those without a number."""

from types import SimpleNamespace

import pytest
from test_agreement import CLAIM, Share, figure, panel

from weftline.measures.lines import Line
from weftline.reproduce import agreement, claims, experiments, joined, panels, runner, verdicts
from weftline.reproduce.panels import Panel


class Numbers(Line):
    """A line whose runs are the numbers that they come to; a run that is missing failed."""

    def values(self, name):
        return [run.number for run in self.runs]


def line(label, place="60", asked=(), **by_seed):
    runs = [
        SimpleNamespace(number=number, scenario={"seed": int(seed[1:])}, summary={"end_ns": 1e9})
        for seed, number in by_seed.items()
    ]
    return Numbers(label=label, runs=runs, place=place, asked=asked)


@pytest.fixture(autouse=True)
def runs_without_faults(monkeypatch):
    monkeypatch.setattr(claims, "of_lines", lambda lines, name, **_: [])


SPEED = {"text": "fast", "line": "one", "metric": "convergence", "below": 3e6}
LESS = {"text": "less", "line": "one", "against": "other", "metric": "drops", "below": 1}


def words(verdict):
    return verdict.word, verdict.seeds, verdict.asked, [reason.text for reason in verdict.reasons]


def test_seeds_that_never_have_the_number_open_a_claim():
    found = [line("one", s1=None, s2=1e6, s3=1e6, s4=1e6, s5=None, s6=None)]
    verdict = claims.check(SPEED, found, [])
    text = "3 of 6 seeds have it; seeds 1, 5-6: the run does not have it"
    assert words(verdict) == ("OPEN", 3, 6, [text])
    assert verdict.by_seed == (None, 1e6, 1e6, 1e6, None, None)
    two = claims.check(SPEED, [line("one", s1=None, s2=1e6, s3=1e6)], [])
    assert two.reasons[0].text == "2 seeds; a verdict needs 3"
    assert "too few seeds (2 seeds; a verdict needs 3)" in claims.table([two]).text()
    none = claims.check(SPEED, [line("one", s1=None, s2=None, s3=None)], [])
    assert (none.word, none.seeds, none.asked, none.reasons[-1].kind) == ("–", 0, 3, "measured")
    assert claims.check(SPEED, [line("one", s1=1e6, s2=1e6, s3=1e6)], []).word == "PASS"
    assert claims.check(SPEED, [line("one", s1=1e6)], [], seeded=False).word == "PASS"


@pytest.mark.parametrize("more", [{}, {"kind": "trend", "at": "60"}, {"than": {"metric": "pauses"}}])
def test_seeds_whose_base_is_zero_open_a_ratio(more):
    found = [line("one", s1=0, s2=12, s3=0, s5=7, s7=1), line("other", s1=0, s2=0, s3=0, s5=119, s7=9)]
    than = (found, []) if "than" in more else None
    verdict = claims.check(LESS | more, found, [], than=than)
    assert words(verdict)[:3] == ("OPEN", 2, 5)
    assert [reason.kind for reason in verdict.reasons] == ["seeds", "measured"]
    assert verdict.reasons[1].text.startswith(f"{verdict.seeds} of 5 seeds have it; seeds 1")
    assert "seeds 1-3: the ratio would divide by 0" in verdict.reasons[1].text


def test_a_run_that_failed_is_named_and_the_others_are_paired_by_their_seeds():
    asked = (1, 2, 3, 4)
    one = line("one", asked=asked, s1=1.0, s3=3.0, s4=4.0)
    other = line("other", asked=asked, s1=2.0, s2=4.0, s3=6.0, s4=8.0)
    verdict = claims.check(LESS, [one, other], [])
    assert verdict.by_seed == (0.5, None, 0.5, 0.5), "seed 3 over seed 3, not over seed 2"
    assert words(verdict) == ("OPEN", 3, 4, ["3 of 4 seeds have it; seed 2: the run failed"])
    lost = claims.check(LESS, [one, line("other", asked=asked)], [])
    assert (lost.word, lost.seeds, lost.asked) == ("–", 0, 4)
    assert lost.reasons[-1].text == "0 of 4 seeds have it; seeds 1-4: the run failed"


def test_lines_of_which_all_runs_failed_are_still_asked_for(tmp_path):
    experiment = experiments.load("pint-sampling")
    size = runner.chosen_size(experiment, seeds=[1, 2])
    plan = runner.plan_points(experiment, size, tmp_path)
    folders = {point.folder for *_, points in plan for point in points}
    drawn = runner.collect(experiment, plan, lost=folders)
    assert all(not p.lines and all(one.asked == (1, 2) for one in p.failed) for of in drawn for p in of)
    found = runner.check_claims(experiment, drawn)
    assert found and {verdict.word for verdict in found} == {"–"}
    assert all(verdict.reasons[-1].text.endswith("seeds 1-2: the run failed") for verdict in found)


def test_one_seed_that_has_some_contradicts_none_whatever_the_others_have():
    none = {"text": "none", "line": "one", "metric": "drops", "at_most": 0}
    some = claims.check(none, [line("one", s1=None, s2=3, s3=0)], [])
    assert some.word == "DIFFERS"
    assert verdicts.of(claims.as_json(some)).direction.word == verdicts.NO
    assert claims.check(none, [line("one", s1=None, s2=0, s3=0, s4=0)], []).word == "OPEN"


def test_the_ledger_and_what_is_stored_count_seeds_without_a_number():
    claim = {"measured": 0.5, "interval": (0.4, 0.6), "seeds": 8, "bounds": {"below": 1}, "ratio": True}
    claim |= {"by_seed": [0.5, 0.5, 0.5, None, None, None, None, None], "said": "0.5", "published": None}
    assert verdicts.of(claim).direction.text == "open: 3 of 8 seeds have it"
    experiment = experiments.load("pint-sampling")
    text = "with p = 1/16 shares are fair after less than three times as long as with p = 1"
    stored = claim | {"text": text, "holds": True, "decided": True, "seeds": 3}
    (again,) = joined.judged_again(experiment, [stored])
    assert again["decided"] is None
    assert not joined._enough({"seeds": 4, "by_seed": [0.5, None, None, None]})


def seeds_of_place(runs, published=0.9, **more):
    definition = figure(options={"metric": "jain"}, **more)
    lines = [Line("FIFO", runs, place="1")]
    points = [{"line": "FIFO", "points": [[1, published]]}]
    return [Panel(figure=definition, choice=(), lines=lines, published=points, title="")]


class Ahead:
    """An experiment whose file says that group b has more than a."""

    def __init__(self, *places):
        self.places = places or ("1",)

    def variants(self, figure, axis):
        return list(self.places)

    def published_values(self, key):
        return [{"line": "FIFO", "place": "1", "groups": {"a": 20.0, "b": 30.0}}]


@pytest.mark.parametrize(
    ("rates", "word"),
    [
        # The first seed alone agrees.
        ([(22.41, 22.42), (22.73, 22.22), (21.72, 15.81), (25.0, 20.22), (25.94, 19.12)], "OPEN"),
        ([(22.41, 22.42), (29.73, 20.2), (29.7, 19.8), (29.0, 22.2), (29.9, 21.1)], "DIFFERS"),
        ([(20, 30), (20, 31), (20, 32)], "PASS"),
        ([(20, 30), (20, 31)], "OPEN"),
    ],
)
def test_an_order_is_decided_over_all_seeds(rates, word):
    runs = [Share(seed=seed, a=[a], b=[b]) for seed, (a, b) in enumerate(rates, 1)]
    claim = CLAIM | {"kind": "order", "outside": 0}
    verdict = agreement.check(Ahead(), claim, seeds_of_place(runs))
    assert (verdict.word, verdict.seeds) == (word, len(rates))
    lacking = [*runs, Share(seed=9, a=[1])]
    assert agreement.check(Ahead(), claim, seeds_of_place(lacking)).word == "OPEN"


@pytest.mark.parametrize(("published", "word"), [(0.80, "PASS"), (0.885, "OPEN"), (0.95, "DIFFERS")])
def test_an_agreement_counts_the_interval(published, word):
    # Jain's index of (9, 3) is 0.8, and that of seeds near it 0.77 to 0.83: half an interval of 0.07.
    runs = [Share(seed=seed, a=[9, low]) for seed, low in enumerate((2.75, 3, 3.3), 1)]
    claim = CLAIM | {"within": [{"figure": "f", "absolute": 0.09}], "outside": 0}
    verdict = agreement.check(Ahead(), claim, seeds_of_place(runs, published))
    assert verdict.word == word
    if word == "OPEN":
        assert "at 1 the interval reaches over the bound" in verdict.reasons[0].text
        assert verdicts.of(claims.as_json(verdict)).size.word == verdicts.OPEN
        loose = agreement.check(Ahead(), claim | {"outside": 1}, seeds_of_place(runs, published))
        assert loose.word == "PASS", "one place may differ, so it does not matter whether it does"


def test_a_place_without_a_number_opens_an_agreement_and_a_law():
    runs = [Share(seed=seed, a=[9, 3]) for seed in (1, 2, 3)]
    empty = [Share(seed=4)]
    claim = CLAIM | {"within": [{"figure": "f", "absolute": 0.05}], "outside": 0}
    assert agreement.check(Ahead(), claim, seeds_of_place(runs, 0.8)).word == "PASS"
    verdict = agreement.check(Ahead(), claim, seeds_of_place(runs + empty, 0.8))
    text = "at 1: 3 of 4 seeds have it; seed 4: the run does not have it"
    assert words(verdict) == ("OPEN", 3, 4, [text])
    law = {"text": "law", "kind": "law", "figure": "f", "line": "FIFO", "tolerance": {"relative": 0.1}}
    for found, word in ((runs, "PASS"), (runs + empty, "OPEN"), (runs[:1], "OPEN")):
        drawn = seeds_of_place(found, 0.8)
        drawn[0].figure.options["expected"] = "0.8"
        assert agreement.check_law(Ahead("1"), law, drawn).word == word
    assert agreement.check_law(Ahead("1"), law, drawn, seeded=False).word == "PASS"
    fewer = agreement.check_law(Ahead("1", "2", "3"), law, drawn, seeded=False)
    assert words(fewer)[::3] == ("OPEN", ["not run: 2, 3"]), "it says so of every place of the figure"
    drawn[0].lines.append(Line("FIFO", empty, place="2"))
    whole = agreement.check_law(Ahead("1", "2"), law, drawn, seeded=False)
    assert (whole.word, [place["place"] for place in whole.places]) == ("OPEN", ["1", "2"])


def test_one_run_decides_where_no_seed_changes_it():
    claim = CLAIM | {"within": [{"figure": "f", "absolute": 0.05}], "outside": 0}
    for published, word in ((0.84, "PASS"), (0.86, "DIFFERS")):
        found = agreement.check(Ahead(), claim, [panel([Share(a=[9, 3])], [published])], seeded=False)
        assert (found.word, found.reasons) == (word, ())


def test_a_figure_of_ratios_says_how_many_seeds_have_them():
    definition = figure(options={"metric": "drops", "against": "other"})
    lines = [line("one", place="1", s1=1, s2=2), line("other", place="1", s1=0, s2=4)]
    p = Panel(figure=definition, choice=(), lines=lines, published=[], title="")
    assert panels._trend_table(p, "").rows == [["one", "0.500 (1 of 2 seeds)"]]


def of_ratios(published, **options):
    """A figure of ratios, 0.5 at each place: "one" over "other", or over itself at 0."""
    definition = figure(options={"metric": "drops", **options})
    lines = [
        line("one", place="0", s1=8, s2=8, s3=8),
        line("one", place="1 000", s1=4, s2=4, s3=4),
        line("other", place="1 000", s1=8, s2=8, s3=8),
    ]
    points = [{"line": "one", "points": [[1000.0, published]]}]
    return Panel(figure=definition, choice=(), lines=lines, published=points, title="")


@pytest.mark.parametrize("options", [{"against": "other"}, {"over": "0"}])
def test_an_agreement_on_a_figure_of_ratios_is_about_the_ratios(options):
    bound = {"within": [{"figure": "f", "relative": 0.1}], "line": "one", "outside": 0}
    for published, word in ((0.5, "PASS"), (4.0, "DIFFERS")):
        verdict = agreement.check(Ahead(), CLAIM | bound, [of_ratios(published, **options)])
        assert verdict.word == word
        assert verdict.places[0]["drops"] == {"measured": 0.5, "published": published}


@pytest.mark.parametrize(
    ("options", "more", "published"),
    [
        ({}, {}, 0.5),
        ({}, {"metric": "pauses"}, None),
        ({}, {"against": "other"}, None),
        ({"against": "other"}, {}, None),
        ({"against": "other"}, {"against": "other"}, 0.5),
        ({"over": "0"}, {}, None),
        ({"over": "0"}, {"against_at": "0"}, 0.5),
        ({"over": "0"}, {"against": "other"}, None),
    ],
)
def test_published_points_are_of_a_claim_on_the_same_number_alone(options, more, published):
    claim = {
        "text": "t",
        "kind": "trend",
        "line": "one",
        "at": "1 000",
        "metric": "drops",
        "below": 9,
        **more,
    }
    p = of_ratios(0.5, **options)
    entries = panels.published_for(claim, p)
    assert claims.check(claim, p.asked_lines, entries).published == published
