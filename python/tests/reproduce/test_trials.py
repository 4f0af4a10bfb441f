"""Experiments on accuracy: their points, what is kept, published points next to ours, claims and the page."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from weftline import provenance
from weftline.cli.main import main
from weftline.reproduce import experiments, runner, trial_kinds, trials

pytest.importorskip("vl_convert", reason="the page needs vl-convert-python")

EXPERIMENT = """
title = "Two widths on a ring"
source = "own"
[small]
set = { trials = 40 }
seeds = [1]
[full]
set = { trials = 60 }
seeds = [1]
[[axis]]
name = "hops"
variants = [{ name = "2" }, { name = "4" }, { name = "5" }, { name = "9", size = "full" }]
[[axis]]
name = "scheme"
variants = [
  { name = "2x8", set = { copies = 2 } },
  { name = "1", set = { bits = 1 } },
  { name = "PPM", set = { scheme = "ppm" } },
]
[[figure]]
name = "ring"
title = "Ring"
kind = "trials"
lines = "scheme"
along = "hops"
metrics = ["mean", "p99"]
published = "ring"
set = { topology = "ring.gml", longest = 5, know = "neighbours" }
[[claim]]
text = "two bytes need fewer packets than a bit"
kind = "trials"
figure = "ring"
line = "2x8"
against = "1"
metric = "mean"
at = "4"
below = 1
[[claim]]
text = "PPM needs few"
kind = "trials"
figure = "ring"
line = "PPM"
metric = "mean"
at = "5"
at_most = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of an experiment on a ring of 8 switches."""
    found = tmp_path / "ring"
    found.mkdir()
    nodes = "".join(f"node [ id {n} ] " for n in range(8))
    links = "".join(f"edge [ source {n} target {(n + 1) % 8} ] " for n in range(8))
    (found / "ring.gml").write_text(f"graph [ {nodes} {links} ]")
    (found / "experiment.toml").write_text(EXPERIMENT)
    published = [{"line": "PPM", "metric": "mean", "points": [[4, 128.5], [5, 170]]}]
    (found / "published.json").write_text(json.dumps({"ring": published}))
    monkeypatch.chdir(tmp_path)
    return found


def panel(folder, *, full=False):
    experiment = experiments.load(str(folder))
    size = runner.chosen_size(experiment, full=full)
    return trials.plan(experiment, size, folder / "out")[0]


def test_points_are_as_long_as_the_network_has_paths_and_know_their_settings(folder):
    found = panel(folder)
    assert found.places == ["2", "4", "5"]
    assert [p.place for p in panel(folder, full=True).points] == ["2", "4", "5"] * 3, "none has 9"
    first = found.points[0].settings
    assert (first["hops"], first["bits"], first["copies"], first["know"]) == (2, 8, 2, "neighbours")
    assert len({p.file for p in found.points}) == 9


def test_numbers_and_published_points_stand_side_by_side(folder, capsys, tmp_path):
    assert main(["reproduce", str(folder), "--jobs", "2"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"PPM +\d[\d.]* +\d[\d.]* / 12[89] +\d[\d.]* / 170", printed), printed
    assert re.search(r"two bytes need fewer packets than a bit +OPEN \[1\]", printed), "one seed"
    page = (tmp_path / "out/experiments/ring/report.html").read_text()
    specs = json.loads(re.search(r'id="figures">(.*?)</script>', page)[1])
    rows = specs[0]["data"]["values"]
    hollow = [(row["line"], row["x"], row["y"]) for row in rows if row["published"]]
    assert hollow == [("PPM", 4, 128.5), ("PPM", 5, 170)]
    assert len(rows) == 2 * 9 + 2


def test_what_was_tried_is_kept_and_is_the_same_with_any_number_of_jobs(folder, monkeypatch, capsys):
    assert main(["reproduce", str(folder), "--json", "--jobs", "1"]) == 0
    once = json.loads(capsys.readouterr().out)["points"]
    asked = []
    tried = trial_kinds._try_path
    monkeypatch.setattr(trial_kinds, "_try_path", lambda *of: asked.append(of) or tried(*of))
    assert main(["reproduce", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["points"] == once and not asked
    assert main(["reproduce", str(folder), "--json", "--jobs", "3", "--out", "again"]) == 0
    assert json.loads(capsys.readouterr().out)["points"] == once and len(asked) == 9
    assert all(point["found"].get("wrong") == 0 for point in once)


def test_a_changed_topology_is_tried_again(folder):
    before = {p.file for p in panel(folder).points if p.line != "PPM"}
    (folder / "ring.gml").write_text((folder / "ring.gml").read_text() + " ")
    assert not before & {p.file for p in panel(folder).points}


def test_another_build_tries_again(folder, monkeypatch):
    before = {p.file for p in panel(folder).points}
    monkeypatch.setattr(provenance, "build", lambda: "another")
    assert not before & {p.file for p in panel(folder).points}


def test_a_folder_that_cannot_be_made_is_reported_before_the_first_trial(folder, monkeypatch, capsys):
    Path("taken").write_text("a file")
    monkeypatch.setattr(trial_kinds, "_try_path", lambda *of: pytest.fail("tried for nothing"))
    assert main(["reproduce", str(folder), "--out", "taken"]) == 2
    assert "taken/trials: the folder cannot be made" in capsys.readouterr().err


def test_a_choice_that_leaves_nothing_is_refused_by_a_dry_run_too(folder, capsys):
    command = ["reproduce", str(folder), "--full", "--only", "hops=9"]
    for more in ([], ["--dry-run"]):
        assert main([*command, *more]) == 2
        assert "has all requested variants" in capsys.readouterr().err


def test_processes_that_try_the_same_point_at_once_do_not_disturb_each_other(folder):
    point = panel(folder).points[0]
    keep = (
        "import pathlib, types; from weftline.reproduce import trials\n"
        f"point = types.SimpleNamespace(file=pathlib.Path({str(point.file)!r}))\n"
        "point.file.parent.mkdir(parents=True, exist_ok=True)\n"
        "for _ in range(300): trials._keep(point, {'mean': 1.0})"
    )
    here = {**os.environ, "PYTHONPATH": str(Path(trials.__file__).parents[2])}
    command = [sys.executable, "-c", keep]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, env=here) for _ in range(3)]
    assert [one.communicate()[1] for one in running] == [b""] * 3
    assert trials.kept(point) == {"mean": 1.0}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("copies = 2", "copeis = 2", 'unknown "copeis": did you mean "copies"'),
        ('know = "neighbours"', 'know = "neighbors"', 'unknown "neighbors": did you mean "neighbours"'),
        ('scheme = "ppm"', 'scheme = "pmp"', 'unknown "pmp"'),
        ('"mean", "p99"', '"mean", "p98"', 'unknown "p98": did you mean "p99"'),
        ("trials = 40", "trials = 0", "trials: expected 1 to 1000000, found 0"),
        ('"ring.gml"', '"rign.gml"', "rign.gml"),
        ("bits = 1 ", "bits = 99 ", "bits"),
        ('{ name = "4" }', '{ name = "four" }', 'expected a number such as "59", found "four"'),
        ('kind = "trials"\nlines', 'kind = "trails"\nlines', 'did you mean "trials"'),
    ],
)
def test_what_cannot_be_tried_is_reported_before_the_first_trial(folder, capsys, old, new, message):
    file = folder / "experiment.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    assert main(["reproduce", str(folder)]) == 2
    assert message in capsys.readouterr().err


def test_an_error_of_ours_in_a_trial_ends_the_experiment(folder, monkeypatch):
    def broken(points, folder):
        raise KeyError("ours")

    kind = replace(trial_kinds.KINDS["path"], tried=broken)
    monkeypatch.setitem(trial_kinds.KINDS, "path", kind)
    with pytest.raises(KeyError, match="ours"):
        main(["reproduce", str(folder)])


def test_every_seed_has_its_trials_and_numbers_are_means_with_intervals(folder, capsys):
    assert main(["reproduce", str(folder), "--seeds", "1-3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["points"]) == 3 * 9 and {point["seed"] for point in found["points"]} == {1, 2, 3}
    two, few = found["claims"]
    assert len(two["by_seed"]) == 3 and two["measured"] == pytest.approx(sum(two["by_seed"]) / 3)
    assert two["interval"][0] < two["measured"] < two["interval"][1] and two["decided"] is True
    assert few["decided"] is False, "a finding, not an error"
    assert main(["reproduce", str(folder), "--seeds", "1-3"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"two bytes need fewer packets than a bit +PASS", printed)
    assert re.search(r"PPM needs few +DIFFERS +\d+", printed)


@pytest.mark.parametrize("name", ["pint-fig10", "pint-topology-aware", "pint-fig9"])
def test_the_published_experiments_are_whole(name, tmp_path):
    experiment = experiments.load(name)
    size = runner.chosen_size(experiment, full=True)
    panels = trials.plan(experiment, size, tmp_path)
    drawn = [figure for figure in experiment.figures if figure.published]
    assert drawn and all(any(p.published for p in panels if p.figure is figure) for figure in drawn)
    assert all(trials.check(claim, panels) is not None for claim in experiment.claims)


RECORD = """
bits = 32
hops = { expected = 1, maximal = 3 }
[[query]]
name = "latency"
value = "hop-latency"
aggregation = "quantiles"
bits = 32
copies = 2
largest = 16777216
"""

INCAST = """
name = "incast"
[topology]
kind = "star"
hosts = 4
[transport]
kind = "rdma"
controller = { kind = "dctcp" }
[telemetry]
kind = "pint"
queries = "record.toml"
[[workload]]
kind = "flows"
flows = [
  { src = 0, dst = 3, size = "400KB", start = "0us" },
  { src = 1, dst = 3, size = "400KB", start = "0us" },
  { src = 2, dst = 3, size = "100KB", start = "20us" },
]
"""

LATENCY = """
title = "Two senders, one port"
source = "own"
scenario = "scenario.toml"
[small]
set = { trials = 200 }
seeds = [1]
[full]
says = "the same"
[[axis]]
name = "samples"
variants = [{ name = "50" }, { name = "200" }]
[[axis]]
name = "scheme"
variants = [
  { name = "8 bits" },
  { name = "exact", set = { bits = 0 } },
  { name = "independent", set = { independent = true } },
  { name = "sketch", set = { sketch_bytes = 60 } },
]
[[figure]]
name = "median"
title = "Median"
kind = "trials"
lines = "scheme"
along = "samples"
metrics = ["error", "typical"]
set = { what = "latency", quantile = 0.5, longest_sample = 200, "scenario.seed" = 2 }
[[claim]]
text = "8 bits are as good as exact values"
kind = "trials"
figure = "median"
line = "8 bits"
against = "exact"
metric = "error"
at_most = 1.2
"""


def test_latency_is_tried_on_what_one_run_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "port"
    folder.mkdir()
    for name, text in (("record", RECORD), ("scenario", INCAST), ("experiment", LATENCY)):
        (folder / f"{name}.toml").write_text(text)
    assert main(["reproduce", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(list((tmp_path / "out/experiments/points").iterdir())) == 1, "all points share one run"
    errors = {(p["line"], p["samples"]): p["found"]["mean_relative_error"] for p in found["points"]}
    assert len(errors) == 8 and {p["found"]["streams"] for p in found["points"]} == {2}
    assert errors["8 bits", 200] == pytest.approx(errors["exact", 200], abs=0.03)
    assert 0 < errors["independent", 200] < 0.1
    assert errors["sketch", 200] != errors["8 bits", 200]
    assert found["claims"][0]["holds"]

    changed = (folder / "experiment.toml").read_text().replace("quantile = 0.5", "quantile = 5")
    (folder / "experiment.toml").write_text(changed)
    assert main(["reproduce", str(folder)]) == 2
    assert "quantile: expected a number between 0 and 1, found 5" in capsys.readouterr().err
