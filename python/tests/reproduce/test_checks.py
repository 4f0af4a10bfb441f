"""Keys that would have no effect, names that are used twice, and values that mean nothing: all are errors."""

import json
import re
from types import SimpleNamespace

import pytest

from weftline.errors import InputError
from weftline.reproduce import claims, experiments, runner

TREND = """title = "Mine"
scenario = "s.toml"
[small]
seeds = [1, 2, 3]
[[axis]]
name = "load"
variants = [{ name = "30" }, { name = "1/3" }]
[[axis]]
name = "size"
variants = [{ name = "big" }, { name = "small" }]
[[axis]]
name = "scheme"
variants = [{ name = "A", with = { big = {} } }, { name = "B" }, { name = "C" }]
[[figure]]
name = "trend"
title = "Trend"
kind = "trend"
lines = "scheme"
along = "load"
panels = ["size"]
metric = "fct_mean"
published = "points"
[[figure]]
name = "plain"
title = "Plain"
kind = "bars"
lines = "scheme"
only = { size = ["big"] }
metric = "fct_mean"
[[figure]]
name = "curves"
title = "Curves"
kind = "slowdown"
lines = "scheme"
percentiles = ["p95"]
[[claim]]
text = "metric"
figure = "plain"
line = "A"
metric = "fct_mean"
above = 1
[[claim]]
text = "curve"
kind = "curve"
figure = "curves"
line = "A"
against = ["B", "C"]
above = 1
[[claim]]
text = "trend"
kind = "trend"
figure = "trend"
panel = { size = "big" }
line = "A"
at = "30"
metric = "fct_mean"
above = 1
"""
PUBLISHED = [{"line": "A", "points": [[30, 1], [0.3333, 2]]}]


RUN = SimpleNamespace(scenario={"seed": 1}, summary={})


def load(folder, text, published=None):
    (folder / "experiment.toml").write_text(text)
    (folder / "published.json").write_text(json.dumps({"points": published or PUBLISHED}))
    return experiments.load(str(folder))


def changed(old, new):
    assert TREND.count(old) == 1, old
    return TREND.replace(old, new)


def claim(name, lines):
    return changed(f'text = "{name}"', f'text = "{name}"\n{lines}')


def test_the_experiment_is_valid_and_a_published_point_stands_at_the_place_that_it_meets(tmp_path):
    experiment = load(tmp_path, TREND)
    (entry,) = experiment.published(experiment.figures[0])
    assert entry["points"] == [[30, 1], [1 / 3, 2]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            claim("metric", 'percentile = "p99"'),
            'experiment.toml:38: claim "metric": percentile has no effect in a claim of kind "metric"',
        ),
        (claim("metric", 'sizes = { max = "10KB" }'), "kinds that have sizes: curve"),
        (changed('name = "1/3"', 'name = "1e400"'), 'such as "20" or "1/16", found "1e400"'),
        (claim("metric", "seconds = 100"), "kinds that have seconds: agreement, order"),
        (claim("metric", 'than = { sizes = { max = "1KB" } }'), "than: sizes has no effect in than in a"),
        (claim("metric", "than = {}"), "than: expected what differs from the claim, found {}"),
        (claim("metric", 'than = { metric = "fct_men" }'), 'did you mean "fct_mean"?'),
        (claim("metric", 'than = { figure = "trend" }'), 'a figure of kind "trend" has claims of kind'),
        (claim("curve", 'metric = "fct_mean"'), 'metric has no effect in a claim of kind "curve"'),
        (claim("metric", 'at = "30"'), 'at has no effect in a claim of kind "metric"'),
        (claim("metric", 'against = ["B", "C"]'), "expected one line, found ['B', 'C']"),
        (claim("trend", 'against = ["B", "C"]'), "expected one line, found ['B', 'C']"),
        (claim("metric", 'against = "A"'), 'against: "A" would be compared with itself'),
        (changed('panel = { size = "big" }\n', ""), '2 panels of the axis "size": expected panel ='),
        (claim("metric", 'panel = { load = "30" }'), 'no panels of the axis "load": its panels are of size'),
        (claim("curve", 'panel = { size = "big" }'), 'no panels of the axis "size": it has one panel'),
        (changed('text = "curve"', 'text = "metric"'), "text of claim: expected a name that no other has"),
        (changed('name = "plain"', 'name = "trend"'), "experiment.toml:24: name of figure: expected a name"),
        (changed('name = "size"', 'name = "load"'), "experiment.toml:9: name of axis: expected a name"),
        (changed('name = "C"', 'name = "B"'), "axis scheme: variant: expected a name that no other has"),
        (
            changed("with = { big", "with = { bigg"),
            'with: unknown "bigg": did you mean "big"',
        ),
        (
            changed('along = "load"', 'along = "size"'),
            'different axes as lines, along and panels, found "size"',
        ),
        (changed('only = { size = ["big"] }', "only = { size = [] }"), "only: size: expected different"),
        (changed('only = { size = ["big"] }', 'log = "x"'), 'log has no effect in a figure of kind "bars"'),
        (changed('panels = ["size"]', 'panels = ["size"]\nlog = "z"'), "log: expected"),
        (changed('percentiles = ["p95"]', 'percentiles = ["p1"]'), 'percentiles: unknown "p1": known: p50'),
        (
            changed('percentiles = ["p95"]', "percentiles = []"),
            "percentiles: expected different ones, found []",
        ),
        (changed('panels = ["size"]', 'panels = ["size"]\nsizes = { mim = "1MB" }'), 'did you mean "min"?'),
        (
            changed('panels = ["size"]', 'panels = ["size"]\nsizes = { min = "1MB", max = "1KB" }'),
            "no size is from 1MB to 1KB",
        ),
        (
            changed('panels = ["size"]', 'panels = ["size"]\nsizes = { min = "1MB" }').replace(
                '"fct_mean"', '"drops"'
            ),
            "sizes has no effect: none of its metrics is one of some flows",
        ),
        (
            changed(
                '[[figure]]\nname = "curves"',
                '[[axis]]\nname = "x"\nvariants = []\n[[figure]]\nname = "curves"',
            ),
            'axis "x": no figure has it',
        ),
        (changed("[1, 2, 3]", "[1, 1, 1]"), "experiment.toml:4: small: seeds: expected different numbers"),
        (changed("[1, 2, 3]", "[]"), "seeds: expected different numbers"),
        (
            changed("[1, 2, 3]", "[1, 2, 3]\nset = { seed = 4 }"),
            "small: set: seed has no effect: every point",
        ),
        (changed('name = "B"', 'name = "B", set = { seed = 4 }'), "axis scheme: B: set: seed has no effect"),
        (changed("big = {}", "big = { seed = 4 }"), "axis scheme: A: with: seed has no effect"),
        (changed('panels = ["size"]', 'panels = ["size"]\nset = { seed = 4 }'), '"trend": set: seed has no'),
        (
            changed('panels = ["size"]', 'panels = ["size"]\nseeds = [7, 7]'),
            "seeds: expected different numbers",
        ),
        (
            changed('only = { size = ["big"] }', "seeds = [7, 8, 9]").replace(
                'text = "metric"', 'text = "metric"\nthan = { figure = "curves" }'
            ),
            '"plain" has [7, 8, 9], "curves" [1, 2, 3]',
        ),
    ],
)
def test_what_would_be_ignored_is_refused(tmp_path, text, says):
    with pytest.raises(InputError, match=re.escape(says)) as refused:
        load(tmp_path, text)
    assert re.search(r"experiment\.toml:\d+: ", str(refused.value))


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (
            [{"line": "A", "points": [[31, 1]]}],
            "entry 1: points: x = 31 is not among the places of load: 30, 1/3",
        ),
        ([*PUBLISHED, *PUBLISHED], "entry 2: line: entry 1 is of the same"),
        ([*PUBLISHED, PUBLISHED[0] | {"panel": {"size": "big"}}], "entry 2: line: entry 1 is of the same"),
        ([PUBLISHED[0] | {"panel": {"size": "bigg"}}], 'unknown variant of size "bigg": did you mean "big"'),
        ([PUBLISHED[0] | {"panel": {"scheme": "A"}}], 'has no panels of the axis "scheme": its panels are'),
    ],
)
def test_a_published_entry_that_would_be_ignored_is_refused(tmp_path, entries, says):
    with pytest.raises(InputError, match=re.escape(says)):
        load(tmp_path, TREND, entries)


def test_entries_of_different_panels_are_accepted(tmp_path):
    entries = [PUBLISHED[0] | {"panel": {"size": size}} for size in ("big", "small")]
    assert load(tmp_path, TREND, entries)


def test_a_claim_gives_another_figure_the_axes_of_its_panel_that_this_one_has(tmp_path):
    text = claim("metric", 'panel = { size = "big" }\nthan = { figure = "curves" }')
    experiment = load(tmp_path, text)
    shown = [
        SimpleNamespace(
            figure=figure,
            choice=(("size", "big"),) if figure.name == "plain" else (),
            asked_lines=[
                SimpleNamespace(label="A", place="", runs=[RUN], asked=(1,), values=lambda _, n=number: [n])
            ],
            published=[],
        )
        for number, figure in enumerate(experiment.figures, 1)
    ]
    experiment.claims, experiment.seeded = experiment.claims[:1], False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "_reasons", lambda claim, used, **_: [])
        (verdict,) = runner.check_claims(experiment, [shown])
    assert verdict.measured == pytest.approx(2 / 3), "of plain over that of curves"
    with pytest.raises(InputError, match=re.escape('no panels of the axis "size": it has one panel')):
        load(tmp_path, claim("metric", 'than = { figure = "curves", panel = { size = "big" } }'))


def test_two_lines_of_a_panel_with_the_same_settings_are_refused(engine, tmp_path):
    (tmp_path / "s.toml").write_text(
        '[topology]\nkind = "star"\n[[workload]]\nkind = "poisson"\nload = 0.5\nduration = "1ms"\n'
    )
    text = """title = "Mine"
scenario = "s.toml"
[[axis]]
name = "load"
variants = [
  { name = "A", set = { "workload.0.load" = 0.2 } },
  { name = "B", set = { "workload.0.load" = B } },
]
[[figure]]
name = "one"
title = "One"
kind = "bars"
lines = "load"
metric = "fct_mean"
"""
    for load, is_refused in (("0.3", False), ("0.2", True)):
        (tmp_path / "experiment.toml").write_text(text.replace("= B", f"= {load}"))
        experiment = experiments.load(str(tmp_path))
        size = runner.chosen_size(experiment)
        if is_refused:
            with pytest.raises(InputError, match='figure "one": "A" and "B" are the same runs'):
                runner.plan_points(experiment, size, tmp_path / "out")
        else:
            assert len(runner.plan_points(experiment, size, tmp_path / "out")) == 2


def test_seeds_that_the_user_chooses_are_those_of_every_figure(tmp_path):
    experiment = load(tmp_path, changed('percentiles = ["p95"]', "seeds = [7, 8]"))
    figure = experiment.figures[-1]
    assert runner.chosen_size(experiment).seeds_of(figure) == [7, 8]
    assert runner.chosen_size(experiment, seeds=[1, 2]).seeds_of(figure) == [1, 2]


@pytest.mark.parametrize("name", sorted(experiments.names()))
def test_every_shipped_experiment_is_valid(name):
    assert experiments.load(name).figures
