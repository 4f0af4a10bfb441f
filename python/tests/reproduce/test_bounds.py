"""What is wrong with bounds, groups and published entries is an error before anything runs."""

import json
import math
import re
from pathlib import Path

import pytest

from weftline.errors import InputError
from weftline.measures.metrics import METRICS
from weftline.reproduce import checks, experiments, published_entries, runner
from weftline.reproduce.experiments import FigureDefinition

PAGE = Path(__file__).parents[3] / "docs" / "adding-a-experiment.md"
CLAIM = {"text": "c", "figure": "f", "line": "one"}


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ({"metric": "fct_mean", "above": 1, "below": 0}, "below: no number is above 1 and below 0"),
        ({"metric": "fct_mean", "above": 1, "at_most": 1}, "at_most: no number is above 1 and at most 1"),
        ({"metric": "utilisation_mean", "below": 45}, "45 is 4,500 %: did you mean 0.45? expected a bound"),
        ({"metric": "share web", "above": 1}, "share web is a share from 0 to 1, and 1 is 100 %"),
        (
            {"metric": "jain", "above": 1.2},
            "jain is an index from 0 to 1: expected a bound below 1, found 1.2",
        ),
        ({"metric": "drops", "below": 0}, "drops is never negative, so no number is below 0; that there is"),
        ({"metric": "drops", "above": -1}, "drops is never negative, so every number is above -1"),
        ({"metric": "backlog_growth", "against": "two", "at_most": -1}, ""),
        ({"metric": "drops", "against": "two", "at_most": -1}, "a ratio is never negative, so no number"),
        ({"kind": "curve", "against": "two", "below": 0}, "a ratio is never negative"),
        ({"kind": "curve", "against": "two", "below": 1, "percentile": "p90"}, 'unknown "p90": did you mean'),
        ({"kind": "curve", "against": "two", "below": 1, "sizes": {"mim": "1KB"}}, 'did you mean "min"?'),
        ({"kind": "order", "outside": -1}, "outside: expected a number of places from 0, found -1"),
        ({"kind": "order", "outside": 0, "apart": 0.9}, "apart: expected a factor of at least 1"),
        (
            {"kind": "agreement", "outside": 0, "within": [{"figure": "f", "absolute": -1}]},
            "within: absolute: expected a number from 0, found -1",
        ),
        ({"kind": "law", "tolerance": {"relative": -0.1}}, "relative and absolute are not negative"),
        ({"kind": "law", "tolerance": {"at_most": math.inf}}, "tolerance: expected { relative }"),
        ({"kind": "trials", "metric": "false_negatives", "below": 45}, "45 is 4,500 %: did you mean 0.45?"),
        ({"kind": "trials", "metric": "mean", "below": 0}, "mean is never negative, so no number is below 0"),
        ({"kind": "trials", "metric": "mean", "against_at": "2", "below": 1}, 'expected the key "at", the'),
        ({"kind": "trials", "metric": "error", "above": 1.5}, ""),
        ({"kind": "cost", "metric": "growth", "at": "2", "against_at": "1", "above": -1}, ""),
        ({"metric": "drops", "at_most": 0}, ""),
        ({"metric": "backlog_growth", "below": 0, "above": -0.1}, ""),
        ({"metric": "imbalance", "above": 1.5}, ""),
        ({"metric": "utilisation_mean", "against": "two", "above": 1.5}, ""),
        ({"metric": "slowdown_p99", "above": 1, "below": 45}, ""),
    ],
    ids=str,
)
def test_a_bound_that_no_number_or_every_number_meets_is_refused(claim, says):
    if not says:
        return checks.check_claim(CLAIM | claim, {})
    with pytest.raises(InputError) as error:
        checks.check_claim(CLAIM | claim, {})
    assert says in str(error.value) and str(error.value).startswith('claim "c": ')


def test_limits_of_metrics_follow_from_their_units_except_where_they_say_so():
    unlike = {
        name: (of.minimum, of.maximum)
        for name, of in METRICS.items()
        if (of.minimum, of.maximum) != (0.0, 1.0 if of.unit == "share" else math.inf)
    }
    above, index = (0.0, math.inf), (0.0, 1.0)
    assert unlike == {
        "backlog_growth": (-math.inf, math.inf),
        **dict.fromkeys(("imbalance", "latency_median_error", "latency_tail_error"), above),
        **dict.fromkeys(("jain", "jain_without_last_second", "jain_ideal", "fairness"), index),
    }


EXPERIMENT = """
title = "t"
scenario = "s.toml"
[small]
seeds = [1]
[full]
[[axis]]
name = "scheme"
variants = [{ name = "one" }, { name = "two", set = { "workload.0.group" = "storage" } }]
[[figure]]
name = "f"
title = ""
kind = "bars"
lines = "scheme"
metric = "fct_mean"
"""
BOUND = '[[claim]]\ntext = "c"\nfigure = "f"\nline = "one"\nbelow = 3\nmetric = '


@pytest.fixture
def folder(tmp_path, scenario):
    made = tmp_path / "mine"
    made.mkdir()
    text = scenario.read_text().replace("[[workload]]", '[[workload]]\ngroup = "web"', 1)
    (made / "s.toml").write_text(text)
    return made


def planned(folder, text):
    (folder / "experiment.toml").write_text(EXPERIMENT + text)
    experiment = experiments.load(str(folder))
    return runner.plan_points(experiment, runner.chosen_size(experiment), folder / "out")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f'{BOUND}"slowdown_p99 of wbe"', 'experiment.toml:16: claim "c": metric "slowdown_p99 of wbe": no'),
        (f'{BOUND}"slowdown_p99 of storage"', 'has the group "storage": known: web'),
        (f'{BOUND}"drops"\nagainst = "two"\nthan = {{ metric = "flow webb" }}', 'did you mean "web"?'),
        ('group = "wbe"\n', 'experiment.toml:10: figure "f": group: no workload of its runs has the group'),
    ],
)
def test_a_group_that_no_workload_has_is_refused_before_anything_runs(engine, folder, text, says):
    with pytest.raises(InputError, match=re.escape(says)):
        planned(folder, text)
    assert engine.runs == []


def test_a_group_that_the_runs_of_the_line_have_is_accepted(engine, folder):
    assert planned(folder, f'{BOUND}"slowdown_p99 of web"')
    assert planned(folder, f'{BOUND}"slowdown_p99 of storage"\n'.replace('"one"', '"two"'))


def page_of(tmp_path):
    """The experiment of the page, with its published points."""
    text = PAGE.read_text()
    toml = next(t for t in re.findall(r"```toml\n(.*?)```", text, re.S) if "[[figure]]" in t)
    published = json.loads(re.search(r"```json\n(.*?)```", text, re.S)[1])
    drawn = toml.replace('metric = "pauses"   ', 'published = "pauses"\nmetric = "pauses"   ')
    assert drawn != toml
    (tmp_path / "experiment.toml").write_text(drawn)
    (tmp_path / "published.json").write_text(json.dumps(published))
    return published


def test_the_published_points_of_the_page_fit_its_experiment(tmp_path):
    page_of(tmp_path)
    experiment = experiments.load(str(tmp_path))
    (figure,) = experiment.figures
    assert [entry["value"] for entry in experiment.published(figure)] == [120, 0]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"line": "4 MiB", "points": [[1, 2]]}, 'unknown key "points": '),
        ({"line": "4 MiB"}, 'expected the key "value"; an entry of a figure of kind "bars" has line, value'),
        ({"line": "4 MiB", "value": "120"}, "value: expected a number, found '120'"),
        ({"line": "4 MB", "value": 1}, 'unknown line "4 MB": did you mean "4 MiB"? known: 4 MiB, 32 MiB'),
        ({"line": "4 MiB", "value": 1, "metric": "drops"}, 'unknown metric of the figure "drops"'),
        ({"line": "4 MiB", "value": 1, "panel": {"bufer": "x"}}, 'unknown axis "bufer": did you mean'),
        ({"line": "4 MiB", "value": 1, "panel": {"buffer": "x"}}, 'has no panels of the axis "buffer"'),
        ("4 MiB", "expected a table, found '4 MiB'"),
    ],
)
def test_an_entry_that_does_not_fit_is_named_with_the_keys_that_it_needs(tmp_path, entry, says):
    published = page_of(tmp_path)
    published["pauses"].insert(1, entry)
    (tmp_path / "published.json").write_text(json.dumps(published))
    with pytest.raises(InputError) as error:
        experiments.load(str(tmp_path))
    here = f'{tmp_path}/published.json: figure "pauses", key "pauses", entry 2: '
    assert str(error.value).startswith(here) and says in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"pauzes": [{}]}', 'expected the key "pauses" with a list of entries: did you mean "pauzes"?'),
        ('{"pauses": []}', 'key "pauses": expected entries, found an empty list'),
        ("[", 'no published values "pauses"'),
        ("[]", "known: none"),
    ],
)
def test_a_file_without_the_entries_is_an_error(tmp_path, text, says):
    page_of(tmp_path)
    (tmp_path / "published.json").write_text(text)
    with pytest.raises(InputError, match=re.escape(says)):
        experiments.load(str(tmp_path))


def test_published_points_that_nothing_names_are_an_error(tmp_path):
    published = page_of(tmp_path)
    (tmp_path / "published.json").write_text(json.dumps(published | {"drops": [{"line": "4 MiB"}]}))
    here = f'{tmp_path}/published.json: key "drops": no figure or claim names it, so its entries are not used'
    with pytest.raises(InputError, match=re.escape(here)):
        experiments.load(str(tmp_path))
    path = tmp_path / "experiment.toml"
    path.write_text(path.read_text().replace('published = "pauses"\n', ""))
    (tmp_path / "published.json").write_text(json.dumps(published))
    with pytest.raises(InputError, match='set published = "pauses" in the figure that draws them'):
        experiments.load(str(tmp_path))


def test_a_figure_that_draws_no_published_points_refuses_them(tmp_path):
    page_of(tmp_path)
    path = tmp_path / "experiment.toml"
    text = path.read_text().replace('kind = "bars"', 'kind = "over-time"')
    path.write_text(text[: text.index("[[claim]]")])
    with pytest.raises(InputError, match='published has no effect in a figure of kind "over-time"'):
        experiments.load(str(tmp_path))


def entries_of_page():
    """The entries in the table of the page, by the kind of their figure."""
    rows = re.findall(r"^\| (?:`([\w-]+)`|a claim of kind `(order)`) \| `(\{.*?\})`", PAGE.read_text(), re.M)
    return {figure or claim: json.loads(entry) for figure, claim, entry in rows}


def test_the_page_shows_an_entry_of_every_kind_and_each_fits():
    shown = entries_of_page()
    assert shown.keys() == published_entries.FORMATS.keys()
    for kind, entry in shown.items():
        needed, more = (keys.split() for keys in published_entries.FORMATS[kind])
        assert {*needed} <= entry.keys() <= {*needed, *more}
        assert all(published_entries._IS[key][1](value) for key, value in entry.items()), kind


def test_the_page_names_every_key_of_a_figure():
    table = PAGE.read_text().split("Keys of a figure:")[1].split("## 2")[0]
    known = {key for keys in checks._KEYS["figure"].values() for key in keys.split()}
    assert known == set(re.findall(r"`(\w+)`", re.sub(r"^(\|[^|]*).*$", r"\1", table, flags=re.M))) | {"log"}


def test_agreement_needs_published_points_of_its_line():
    claim = {"text": "c", "kind": "agreement", "line": "FIFO", "within": [{"figure": "f", "relative": 0.1}]}

    class Drawn:
        folder = Path("mine")

        def published(self, figure):
            return [{"line": "FIFO'", "points": [[1, 2]]}]

    def check(**more):
        options = {"name": "f", "title": "", "lines": "a", "kind": "trend", "published": "p"} | more
        published_entries._check_agreement(Drawn(), claim, {"f": FigureDefinition(**options)})

    with pytest.raises(InputError, match='nothing was published of the line "FIFO": did you mean'):
        check()
    with pytest.raises(InputError, match='figure "f" has no published points: expected "published"'):
        check(published="")
    with pytest.raises(InputError, match='figure "f" is of kind "bars", expected "trend"'):
        check(kind="bars")
