"""`weftline reproduce --published`: its plan, its budget, its sittings, and what the ledger makes of it."""

import json
from pathlib import Path

import pytest
from texts import TWO_SCHEMES

from weftline.cli.main import main
from weftline.errors import InputError, WeftlineWarning
from weftline.reproduce import experiments, joined, published

HERE = TWO_SCHEMES.replace("fabric.toml", "scenario.toml").replace("seeds = [1, 2, 3]", "seeds = [1]")
LEDGER = """
[[source]]
name = "Own"
title = "Nobody, nowhere, 2026"
[[source.row]]
id = "faster"
at = "Fig 1"
claim = "One is faster"
experiment = "first"
claims = ["HPCC is faster"]
"""


@pytest.fixture
def book(engine, scenario, tmp_path, monkeypatch):
    """Two experiments on one scenario, the second of which is to be run first, and a part of it alone."""
    pytest.importorskip("vl_convert", reason="the page needs vl-convert-python")
    folder = tmp_path / "experiments"
    parts = {
        "first": '[published]\norder = 2\nset = { "workload.0.load" = 0.6 }\n',
        "second": '[published]\norder = 1\nsays = "HPCC alone"\nonly = { scheme = ["HPCC"] }\nseeds = [1]\n',
    }
    for name, part in parts.items():
        (folder / name).mkdir(parents=True)
        text = HERE.replace("[[axis]]", f"{part}[[axis]]", 1)
        (folder / name / "experiment.toml").write_text(text)
        (folder / name / "scenario.toml").write_text(scenario.read_text())
    (folder / "ledger.toml").write_text(LEDGER)
    monkeypatch.setenv("WEFTLINE_EXPERIMENTS", str(folder))
    monkeypatch.setattr(experiments, "directories", lambda: [folder])
    return folder


def planned(capsys, *options):
    assert main(["reproduce", "--published", "--dry-run", "--json", "--jobs", "1", *options]) == 0
    rounds = json.loads(capsys.readouterr().out)["rounds"]
    return [(r["experiment"], r["seeds"], r["runs"], r["finished"], r["runs_left_out"]) for r in rounds]


def test_one_seed_of_each_comes_first_in_order(book, engine, capsys):
    assert planned(capsys) == [("second", "1", 1, 0, 0), ("first", "1", 2, 0, 0), ("first", "2, 3", 4, 0, 0)]
    assert planned(capsys, "first") == [("first", "1", 2, 0, 0), ("first", "2, 3", 4, 0, 0)]
    assert engine.runs == []


def test_the_budget_keeps_what_comes_first_and_names_the_rest_with_its_hours(book, engine, capsys):
    # A run takes 83.4 s by the stand-in's estimate.
    assert planned(capsys, "--budget", "170s") == [
        ("second", "1", 1, 0, 0),
        ("first", "1", 1, 0, 1),
        ("first", "2, 3", 0, 0, 4),
    ]
    main(["reproduce", "--published", "--dry-run", "--jobs", "1", "--budget", "170s"])
    printed = capsys.readouterr().out
    assert "left out of first, seeds 2, 3: 4 runs" in printed
    assert "weftline reproduce --published first --budget 999h" in printed


def test_a_sitting_leaves_what_would_end_later_and_the_next_call_goes_on(book, engine, capsys):
    assert main(["reproduce", "--published", "--sitting", "60s", "--quiet"]) == 2
    assert "the shortest takes 1:23 min" in capsys.readouterr().err and engine.runs == []
    assert main(["reproduce", "--published", "--sitting", "1h", "--quiet"]) == 0
    assert len(engine.runs) == 7
    capsys.readouterr()
    assert main(["reproduce", "--published", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"], "one document: the ledger"
    assert len(engine.runs) == 7
    assert [runs[3] for runs in planned(capsys)] == [1, 2, 4]


@pytest.mark.parametrize("how", ["--quiet", "--json"])
def test_what_has_no_result_is_named_however_quiet_the_command_is(book, engine, capsys, how):
    command = ["reproduce", "--published", "--jobs", "1", how]
    assert main([*command, "--budget", "170s"]) == 0 and len(engine.runs) == 2
    # Five runs of 83.4 s.
    assert "runs without a result: 5 of first; 0.12 hours of this machine" in capsys.readouterr().err
    assert main(command) == 0
    assert "without a result" not in capsys.readouterr().err


def test_claims_at_their_published_size_take_the_place_of_others(book, engine):
    assert main(["reproduce", "--all", "--quiet"]) == 0
    row = json.loads(Path("out/ledger/ledger.json").read_text())["rows"][0]
    assert (row["direction"], row["direction_why"]) == ("open", "one seed")
    assert main(["reproduce", "--published", "--quiet"]) == 0
    row = json.loads(Path("out/ledger/ledger.json").read_text())["rows"][0]
    assert row["direction"] == "confirmed" and row["claims"][0]["at"] == "published size"
    assert "Published size: 3 seeds" in row["ran"]
    assert main(["reproduce", "--all", "--quiet"]) == 0
    row = json.loads(Path("out/ledger/ledger.json").read_text())["rows"][0]
    assert row["direction"] == "confirmed"


def test_seeds_that_ran_apart_come_to_what_they_come_to_together(book, engine):
    stated = experiments.load("first").claims

    def claims_of(seeds, out):
        options = ["--seeds", seeds, "--out", out, "--quiet"]
        assert main(["reproduce", "--published", "first", *options]) == 0
        text = Path(out, "ledger/results/first-published.json").read_text()
        return json.loads(text)["result"]["claims"]

    first, others, whole = (claims_of(*at) for at in (("1", "a"), ("2,3", "b"), ("1-3", "c")))
    assert [claim["of_seeds"] for claim in first] == [[1]]
    found = joined.with_older(stated, first, others)
    assert found[0]["of_seeds"] == [1, 2, 3] and list(found[0]["by_seed"]) == whole[0]["by_seed"]
    assert found[0]["interval"] == pytest.approx(whole[0]["interval"], rel=0.02)
    assert "reasons" not in found[0] and (found[0]["seeds"], found[0]["decided"]) == (3, True)
    again = joined.with_older(stated, whole, others)[0]
    assert again["of_seeds"] == [1, 2, 3] and list(again["by_seed"]) == whole[0]["by_seed"]
    assert joined.with_older(stated, others, whole) == whole, "all seeds are newer"
    changed = [{**claim, "bounds": {"below": 0.1}} for claim in first]
    with pytest.warns(WeftlineWarning, match="seeds 1 are not joined .* bounds of the claim were others"):
        assert joined.with_older(stated, changed, others) == others
    unrecorded = [{key: of for key, of in claim.items() if key != "measurement"} for claim in first]
    with pytest.warns(WeftlineWarning, match="seeds 1 are not joined .* was not recorded"):
        assert joined.with_older(stated, unrecorded, others) == others


@pytest.mark.parametrize(
    ("file", "old", "new", "why"),
    [
        ("experiment.toml", "slowdown_p95", "slowdown_p99", "the claim was another one"),
        ("scenario.toml", '"1ms"', '"2ms"', "the scenarios, their files or the version differ"),
    ],
)
def test_results_of_another_measurement_are_not_joined(book, engine, file, old, new, why):
    def claims_of(seeds, out):
        options = ["--seeds", seeds, "--out", out, "--quiet"]
        assert main(["reproduce", "--published", "first", *options]) == 0
        text = Path(out, "ledger/results/first-published.json").read_text()
        return json.loads(text)["result"]["claims"]

    first = claims_of("1", "a")
    path = book / "first" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    others = claims_of("2,3", "b")
    with pytest.warns(WeftlineWarning, match=why):
        assert joined.with_older(experiments.load("first").claims, first, others) == others


def test_seeds_of_an_earlier_call_stay_when_one_of_them_is_run_alone(book, engine):
    main(["reproduce", "--published", "--quiet"])
    main(["reproduce", "--published", "first", "--seeds", "2", "--quiet"])
    assert (
        "Published size: 3 seeds" in json.loads(Path("out/ledger/ledger.json").read_text())["rows"][0]["ran"]
    )


def test_each_claim_has_the_seeds_of_which_its_own_panel_is_finished(book, engine):
    """Panels come in the order of `only`, so the claims of the first are decided before the others ran."""
    file = book / "first/experiment.toml"
    text = file.read_text().replace('lines = "scheme"', 'lines = "scheme"\npanels = ["load"]')
    loads = '[[axis]]\nname = "load"\nvariants = [{ name = "low" }, { name = "high" }]\n[[figure]]'
    text = text.replace("[[figure]]", loads).replace(
        "order = 2", 'order = 2\nonly = { load = ["high", "low"] }'
    )
    text = text.replace('{ name = "low"', '{ set = { "workload.0.load" = 0.2 }, name = "low"')
    text, claim = text.split("[[claim]]")
    for load in ("low", "high"):
        text += f'[[claim]]\npanel = {{ load = "{load}" }}' + claim.replace("faster", f"faster, {load}")
        text = text.replace("faster, high", "faster")
    both = 'than = { panel = { load = "high" } }\npanel = { load = "low" }'
    file.write_text(text + f"[[claim]]\n{both}" + claim.replace("faster", "faster than at high"))
    # The runs of seed 1, and those of the others at high load.
    assert main(["reproduce", "--published", "first", "--quiet", "--jobs", "1", "--budget", "0.19h"]) == 0
    assert len(engine.runs) == 8
    result = json.loads(Path("out/ledger/results/first-published.json").read_text())["result"]
    assert [(claim["text"], claim["of_seeds"], claim["seeds"]) for claim in result["claims"]] == [
        ("HPCC is faster, low", [1], 1),
        ("HPCC is faster", [1, 2, 3], 3),
        ("HPCC is faster than at high", [1], 1),
    ]
    assert "1 panel with 3 seeds, 1 with 1" in result["size"]
    assert "1 panel with 3 seeds, 1 with 1" in Path("out/experiments/first/published.html").read_text()


def test_results_of_a_part_that_has_changed_are_left_out_with_a_note(book, engine, capsys):
    main(["reproduce", "--published", "--quiet"])
    file = book / "first/experiment.toml"
    file.write_text(file.read_text() + "\n# Changed.\n")
    main(["reproduce", "--all", "--quiet"])
    assert "first-published.json: damaged, or of another version" in capsys.readouterr().err
    assert json.loads(Path("out/ledger/ledger.json").read_text())["rows"][0]["direction"] == "open"
    runs = len(engine.runs)
    main(["reproduce", "--published", "first", "--quiet"])
    assert json.loads(Path("out/ledger/ledger.json").read_text())["rows"][0]["direction"] == "confirmed"
    assert len(engine.runs) == runs, "finished runs are kept"


def test_a_folder_that_cannot_be_made_is_named_before_the_first_run(book, engine, capsys):
    Path("taken").write_text("a file")
    assert main(["reproduce", "--published", "--out", "taken"]) == 2
    assert "the folder cannot be made" in capsys.readouterr().err and engine.runs == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", "3 days"], 'expected a time such as "16h"'),
        (["--sitting", "0h"], 'expected a time such as "16h"'),
        (["--sitting", "2", "--dry-run"], '--sitting 2: expected a time such as "16h"'),
        (["--full"], "--full: not with --published"),
        (["--seeds", "7-8"], "--seeds 7, 8: no seeds of a published part; second has 1; first has 1, 2, 3"),
    ],
)
def test_options_that_mean_nothing_here_are_refused(book, capsys, options, message):
    assert main(["reproduce", "--published", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("order = 2", 'order = "2"', "published: order: expected whole number, found '2'"),
        ('only = { scheme = ["HPCC"] }', 'only = { scheem = ["HPCC"] }', 'did you mean "scheme"'),
        ('only = { scheme = ["HPCC"] }', 'only = { scheme = ["HPPC"] }', 'did you mean "HPCC"'),
        ("order = 2", 'order = 2\nfigures = ["bar"]', 'unknown figure "bar": did you mean "bars"'),
        ("order = 2", "order = 2\norders = 3", 'unknown key "orders" of published'),
    ],
)
def test_a_wrong_part_is_refused_with_the_nearest_name(book, old, new, message):
    for name in ("first", "second"):
        path = book / name / "experiment.toml"
        if old in path.read_text():
            path.write_text(path.read_text().replace(old, new))
            with pytest.raises(InputError, match=message.replace("(", "\\(")):
                experiments.load(name)


def test_the_shipped_plan_has_the_experiments_that_need_the_published_size():
    found = {name: experiments.load(name).published_part for name in experiments.names()}
    order = sorted((part.order, name) for name, part in found.items() if part)
    assert [name for _, name in order][:4] == ["hpcc-fct", "hpcc-eta", "pint-fig7", "pint-fig8"]
    assert len({number for number, _ in order}) == len(order)


def test_times_are_read_in_hours():
    assert [published.hours(text, "") for text in ("16h", "2.5h", "150min", "3600s")] == [16, 2.5, 2.5, 1]
