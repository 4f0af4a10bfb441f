"""Figures of kind "trend": a metric against the numbers of an axis."""

import json
import re
from types import SimpleNamespace

import pytest

from weftline.cli.main import main
from weftline.errors import InputError
from weftline.measures.lines import Line
from weftline.reproduce import claims, experiments, formulas

pytest.importorskip("vl_convert", reason="the page needs vl-convert-python")

EXPERIMENT = """
title = "Goodput by load"
source = "own"
scenario = "scenario.toml"
[small]
seeds = [1]
[[axis]]
name = "load"
variants = [
  { name = "20", set = { "workload.0.load" = 0.2 } },
  { name = "60", set = { "workload.0.load" = 0.6 } },
]
[[axis]]
name = "scheme"
variants = [
  { name = "one", set = { "transport.controller.kind" = "hpcc" } },
  { name = "other", set = { "transport.controller.kind" = "dctcp" } },
]
[[figure]]
name = "goodput"
title = "Goodput"
kind = "trend"
lines = "scheme"
along = "load"
axis = "load (%)"
metric = "goodput"
sizes = { min = "10MB" }
published = "goodput"
[[claim]]
text = "one is ahead of the other"
figure = "goodput"
kind = "trend"
line = "one"
against = "other"
at = "60"
metric = "goodput"
above = 1.5
[[claim]]
text = "goodput halves from 20 to 60 %"
figure = "goodput"
kind = "trend"
line = "one"
at = "60"
against_at = "20"
metric = "goodput"
below = 0.6
[[claim]]
text = "goodput at 20 %"
figure = "goodput"
kind = "trend"
line = "one"
at = "20"
metric = "goodput"
above = 90e9
"""

PUBLISHED = {"goodput": [{"line": "one", "points": [[20, 70], [60, 30]]}]}


@pytest.fixture
def folder(engine, tmp_path, scenario):
    made = tmp_path / "mine"
    made.mkdir()
    (made / "experiment.toml").write_text(EXPERIMENT)
    (made / "scenario.toml").write_text(scenario.read_text())
    (made / "published.json").write_text(json.dumps(PUBLISHED))
    return made


def test_a_line_has_a_point_at_each_number_and_the_published_one_next_to_it(engine, folder, capsys, tmp_path):
    assert main(["reproduce", str(folder)]) == 0
    printed = capsys.readouterr().out
    # The stand-in: 100 Gb/s times what the load leaves, halved for the other scheme.
    assert re.search(r"one +80 Gb/s / 70 Gb/s +40 Gb/s / 30 Gb/s", printed)
    assert re.search(r"other +40 Gb/s +20 Gb/s", printed)
    assert "flows that count: 7 a point" in printed
    assert len(engine.runs) == 4
    page = (tmp_path / "out/experiments/mine/report.html").read_text()
    (spec,) = json.loads(re.search(r'id="figures">(.*?)</script>', page)[1])
    drawn = {(row["line"], row["x"], row["y"], row["published"]) for row in spec["data"]["values"]}
    assert drawn == {
        ("one", 20, 80, False),
        ("one", 60, 40, False),
        ("other", 20, 40, False),
        ("other", 60, 20, False),
        ("one", 20, 70, True),
        ("one", 60, 30, True),
    }


def test_claims_compare_lines_and_places(folder, capsys):
    main(["reproduce", str(folder), "--json"])
    found = json.loads(capsys.readouterr().out)
    measured = [(claim["measured"], claim["holds"]) for claim in found["claims"]]
    assert measured == [(2.0, True), (0.5, True), (pytest.approx(80e9), False)]
    assert {point["load"] for point in found["points"].values()} == {"20", "60"}


class Numbers(Line):
    """A line whose runs are the numbers that they come to, by seed."""

    def values(self, name):
        return [run.number for run in self.runs]


def numbered(values, first=1):
    return [
        SimpleNamespace(number=v, scenario={"seed": seed}, summary={}) for seed, v in enumerate(values, first)
    ]


def test_a_claim_is_open_where_its_interval_reaches_over_a_bound(monkeypatch):
    monkeypatch.setattr(claims, "_reasons", lambda *given, **named: [])

    def line(label, values):
        return Numbers(label=label, runs=numbered(values), place="60")

    # Ratios of 1, 2 and 3: mean 2, and Student's 4.303 times 1 / sqrt(3) to each side.
    lines = [line("one", [1.0, 4.0, 9.0]), line("other", [1.0, 2.0, 3.0])]
    claim = {
        "text": "ahead", "kind": "trend", "line": "one", "against": "other", "at": "60", "metric": "goodput"
    }  # fmt: skip
    mean = claims.check({**claim, "above": 1}, lines, [])
    assert (mean.measured, mean.holds, mean.decided, mean.word) == (2.0, True, None, "OPEN")
    half = 4.303 / 3**0.5
    assert mean.interval == pytest.approx((2 - half, 2 + half), abs=1e-3)
    assert mean.measured_text == "2.00 (0 to 4.48)", "a ratio is never negative"
    assert claims.check({**claim, "above": -1}, lines, []).word == "PASS"
    assert claims.check({**claim, "above": 5}, lines, []).word == "DIFFERS"
    assert mean.by_seed == (1.0, 2.0, 3.0)
    two = [line("one", [1.0, 4.0]), line("other", [1.0, 2.0])]
    few = claims.check({**claim, "above": -9}, two, [])
    assert few.word == "OPEN" and few.reasons[0].text == "2 seeds; a verdict needs 3"
    assert claims.check({**claim, "above": -9}, two, [], seeded=False).word == "PASS"


def test_slowdowns_can_be_drawn_over_those_of_one_line(folder, tmp_path):
    figure = '[[figure]]\nname = "s"\ntitle = "S"\nkind = "slowdown"\nlines = "scheme"\nover = "one"\n'
    text = EXPERIMENT[: EXPERIMENT.index("[[figure]]")] + figure + 'only = { load = ["20"] }\n'
    (folder / "published.json").unlink()
    (folder / "experiment.toml").write_text(text)
    assert main(["reproduce", str(folder), "--quiet"]) == 0
    page = (tmp_path / "out/experiments/mine/report.html").read_text()
    (spec,) = json.loads(re.search(r'id="figures">(.*?)</script>', page)[1])
    drawn = {(row["line"], round(row["y"], 3)) for row in spec["data"]["values"]}
    # The stand-in's medians are 1.1 and 1.2, and a noise that both share.
    assert {line for line, _ in drawn} == {"one", "other"}
    assert {ratio for line, ratio in drawn if line == "one"} == {1.0}
    assert all(1.05 < ratio < 1.1 for line, ratio in drawn if line == "other")
    (folder / "experiment.toml").write_text(text.replace('over = "one"', 'over = "onee"'))
    with pytest.raises(InputError, match='did you mean "one"'):
        experiments.load(str(folder))


def test_over_draws_the_ratio_to_one_place(folder, capsys):
    text = EXPERIMENT.replace('published = "goodput"', 'over = "20"')
    (folder / "published.json").unlink()
    (folder / "experiment.toml").write_text(text)
    assert main(["reproduce", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"other +1\.00 +0\.500", printed) and "relative to load (%) 20" in printed


def test_against_draws_the_ratio_to_one_line(folder, capsys):
    text = EXPERIMENT.replace('published = "goodput"', 'against = "one"')
    (folder / "published.json").unlink()
    (folder / "experiment.toml").write_text(text)
    assert main(["reproduce", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "relative to one, seed by seed" in printed
    assert re.search(r"^other +[0-9.]+ +[0-9.]+", printed, re.M) and not re.search(
        r"^one +[0-9.]+ ", printed, re.M
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('published = "goodput"', 'against = "onee"', 'did you mean "one"?'),
        ('published = "goodput"', 'over = "20"\nagainst = "one"', "expected over or against, not both"),
        ('metric = "goodput"\nsizes', 'metric = "godput"\nsizes', 'did you mean "goodput"?'),
        ('metric = "goodput"\nsizes', "sizes", 'expected the key "metric"'),
        ('name = "20"', 'name = "low"', 'expected variants such as "20" or "1/16", found "low"'),
        ('along = "load"', 'along = "laod"', 'did you mean "load"?'),
        ('published = "goodput"', 'over = "30"', 'over: no "30" on load: 20, 60'),
        ('"10MB"', '"10"', 'expected a size with its unit such as "200KB"'),
    ],
)
def test_what_is_wrong_with_a_trend_is_reported(folder, old, new, message):
    (folder / "experiment.toml").write_text(EXPERIMENT.replace(old, new))
    with pytest.raises(InputError) as refused:
        experiments.load(str(folder))
    assert message in str(refused.value)


def test_numbers_are_whole_decimal_or_fractions():
    assert [formulas.number(text) for text in ("20", "0.5", "1/16", "1 024", "low", "1/0")] == [
        20.0,
        0.5,
        0.0625,
        1024.0,
        None,
        None,
    ]
