"""Steps that did not end, and jobs that are stalled."""

import json

import pytest
from job_scenarios import SCENARIO

pytest.importorskip("weftline._native")

import weftline
from weftline.cli.main import main
from weftline.measures import comparison, jobs
from weftline.measures.lines import lines_of
from weftline.report import headline, sweep_page


def test_steps_that_did_not_end_are_shown(tmp_path):
    with pytest.warns(weftline.WeftlineWarning):
        cut = weftline.run(SCENARIO, set={"run.until": "60us"}, out=tmp_path / "cut")
    assert any(row["time_ns"] is None for row in cut.steps)
    table = jobs.table(lines_of([cut]))
    assert " of " in table.rows[0][4], table.rows


def test_jobs_says_how_many_steps_had_ended(run, tmp_path, capsys):
    assert main(["jobs", str(run.out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unended"] == []
    folder = tmp_path / "cut"
    with pytest.warns(weftline.WeftlineWarning):
        cut = weftline.run(SCENARIO, set={"run.until": "60us"}, out=folder)
    ended = sum(row["time_ns"] is not None for row in cut.steps if row["job"] == "ring")
    assert ended < 3
    assert main(["jobs", str(folder)]) == 0
    text = f"{folder}: ring: {ended} of 3 steps had ended when the run did; numbers are of these"
    assert text in capsys.readouterr().out.splitlines()
    training = SCENARIO | {"workload": [{"kind": "training", "layers": 2, "hidden": 256, "sequence": 256}]}
    weftline.run(training, set={"run.until": "10us"}, out=tmp_path / "none")
    assert main(["jobs", str(tmp_path / "none")]) == 0
    assert "training: 0 of 1 steps had ended when the run did" in capsys.readouterr().out


def test_a_run_of_incasts_has_no_jobs_and_one_whose_jobs_had_not_begun_says_so(tmp_path, capsys):
    incast = {"kind": "incast", "senders": 3, "size": "20KB"}
    weftline.run(SCENARIO | {"workload": [incast]}, out=tmp_path / "incast")
    assert main(["jobs", str(tmp_path / "incast")]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert "this run has no jobs" in text and "the events of its incasts are in jobs.parquet" in text
    late = {"kind": "collective", "bytes": "400KB", "ranks": 4, "group": "late", "start": "5ms"}
    with pytest.warns(weftline.WeftlineWarning):
        weftline.run(SCENARIO | {"workload": [incast, late]}, set={"run.until": "2ms"}, out=tmp_path / "late")
    assert main(["jobs", str(tmp_path / "late")]) == 0
    assert "late: 0 of 1 steps had ended when the run did" in capsys.readouterr().out


def test_steps_that_did_not_end_are_a_reason_against_an_answer_and_a_difference(tmp_path):
    """A step that a dead link stops is not in the mean, which would make the scheme look good."""
    job = {"kind": "collective", "bytes": "400KB", "ranks": 8, "repeat": 3, "compute": "5us"}
    event = {"at": "150us", "link": ["host5", "leaf1"]}
    result = weftline.sweep(
        SCENARIO | {"workload": [job], "run": {"until": "1ms"}},
        {"fabric": {"whole": {}, "dead": {"failures.event": [event]}}},
        seeds=3,
        report={"metrics": ["step_max", "step_mean"], "answer": "step_max < 10ms"},
        out=tmp_path / "sweep",
    )
    whole, dead = result.cells
    ended = [sum(step["time_ns"] is not None for step in run.steps) for run in dead.runs.values()]
    assert result.verdict(whole) == "yes" and max(ended) < 3
    expected = f"{sum(ended)} of 9 steps ended"
    judged = result.judgement(dead)
    assert [reason.kind for reason in judged.reasons] == ["steps"] and expected in judged.reasons[0].text
    for name in ("step_max", "step_mean"):
        kinds = {reason.kind for reason in result.separation(name, dead).reasons}
        assert {"steps", "steps differ"} <= kinds
    answers, means, differences = result.tables()
    assert answers.rows[0][1] == "yes" and answers.rows[1][1].startswith("open [")
    assert expected not in " ".join(means.rows[0]) and all(expected in cell for cell in means.rows[1][1:3])
    assert all(f"{sum(ended) + 9} of 18 steps ended" in cell for cell in differences.rows[0][1:3])
    assert "*" not in "".join(differences.rows[0][1:3]) and "not as many steps" in differences.note
    assert any(text.startswith(f"{sum(ended) + 9} of 18 steps ended") for text in result.warnings)
    rows = {(row["fabric"], row["metric"]): row["unfinished"] for row in result.estimates}
    assert rows["whole", "step_max"] == 0 and rows["dead", "step_max"] == 9 - sum(ended)
    lines = lines_of(result.runs)
    compared = comparison.Comparison(lines)
    assert compared.separation("step_mean", lines[1]).order == 0
    assert expected in lines[1].metric_text("step_mean") and "steps ended" in compared.text()
    assert any("times of steps leave" in caution.text for caution in headline.cautions(lines))
    # What the runs themselves warn of is there once, with the combination, on the page too.
    warned = [text for text in result.warnings if "a job had not ended when the run did" in text]
    assert len(warned) == 1 and warned[0].startswith("dead: ") and "(3 of 3 runs" in warned[0]
    assert any("flows did not finish" in text and text.startswith("dead: ") for text in result.warnings)
    page = sweep_page.write(result, tmp_path / "page.html").read_text()
    assert "a job had not ended when the run did" in page


def test_a_pipeline_that_is_cut_off_is_no_circle_of_ranks(tmp_path):
    training = {"kind": "training", "layers": 8, "hidden": 1024, "sequence": 1024, "vocabulary": 0}
    job = training | {"micro_batches": 8, "pipeline": 4, "teraflops": 100}
    scenario = {
        "topology": {"kind": "star", "hosts": 4},
        "transport": {"controller": {"kind": "none"}},
        "workload": [job],
        "run": {"until": "3ms"},
    }
    with pytest.warns(weftline.WeftlineWarning, match="a job had not ended when the run did") as warned:
        weftline.run(scenario, out=tmp_path / "cut")
    assert not any("wait for each other" in str(warning.message) for warning in warned)


def test_import_has_no_end_for_ranks_with_operations_that_never_end(tmp_path, capsys):
    file = tmp_path / "circle.goal"
    ops = "s: send 10b to {} tag 7\nr: recv 10b from {} tag 7\ns requires r\n"
    ranks = [f"rank {rank} {{\n{ops.format(1 - rank, 1 - rank)}}}\n" for rank in range(2)]
    file.write_text(f"num_ranks 3\n{''.join(ranks)}rank 2 {{\nc: calc 5\n}}\n")
    assert main(["import", str(file), "--loggops", "L=1"]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "rank 0 never ends",
        "rank 1 never ends",
        "rank 2 ends at 5 ns",
        "never done: rank 0: a send to rank 1 with tag 7 (line 3)",
        "never done: rank 0: a receive from rank 1 with tag 7 (line 4)",
        "never done: rank 1: a send to rank 0 with tag 7 (line 8)",
        "never done: rank 1: a receive from rank 0 with tag 7 (line 9)",
    ]
    assert main(["import", str(file), "--loggops", "L=1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["rank_ends_ns"] == [None, None, 5]


def test_a_job_whose_ranks_wait_for_each_other_is_named_before_a_run(tmp_path, capsys):
    file = tmp_path / "circle.goal"
    ops = "r: recv 10b from {} tag 7\ns: send 10b to {} tag 7\ns requires r\n"
    ranks = [f"rank {rank} {{\n{ops.format(1 - rank, 1 - rank)}}}\n" for rank in range(2)]
    file.write_text(f"num_ranks 2\n{''.join(ranks)}")
    assert main(["import", str(file)]) == 1
    text = "2 ranks wait for each other in a circle, so that the job never ends: rank 1 waits to receive from"
    assert f"never done: {text} rank 0, tag 7 (line 8)" in capsys.readouterr().out
    job = {"kind": "job-file", "file": str(file)}
    warnings = weftline.Scenario(SCENARIO | {"workload": [job]}).check()["warnings"]
    assert any(text in warning for warning in warnings)
    file.write_text(file.read_text().replace("s requires r\n", "", 1))
    assert main(["import", str(file)]) == 0


def test_a_step_that_had_not_begun_is_not_one_that_does_not_exist(tmp_path, capsys):
    training = {"kind": "training", "layers": 2, "hidden": 256, "sequence": 256, "steps": 4}
    scenario = SCENARIO | {"workload": [training], "run": {"until": "10us"}}
    weftline.run(scenario, out=tmp_path / "cut")
    assert main(["why", str(tmp_path / "cut"), "--step", "3"]) == 2
    assert "step 3: it had not begun when the run ended" in capsys.readouterr().err


def test_why_a_job_is_stalled_is_printed_once(tmp_path, capsys):
    file = tmp_path / "circle.goal"
    ops = "s: send 10b to {} tag 7\nr: recv 10b from {} tag 7\ns requires r\n"
    ranks = [f"rank {rank} {{\n{ops.format(1 - rank, 1 - rank)}}}\n" for rank in range(2)]
    file.write_text(f"num_ranks 2\n{''.join(ranks)}")
    scenario = tmp_path / "circle.toml"
    scenario.write_text(
        '[topology]\nkind = "star"\nhosts = 2\n[[workload]]\nkind = "job-file"\nfile = "circle.goal"\n'
    )
    text = "ranks 0 -> 1 -> 0 wait for each other"
    assert main(["run", str(scenario), "--out", str(tmp_path / "run")]) == 1
    assert capsys.readouterr().err.count(text) == 1
    assert main(["jobs", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().err.count(text) == 1


def test_a_job_that_had_not_begun_counts_as_none_of_its_steps(tmp_path, capsys):
    """Without its steps an answer on the others would be a yes."""
    job = {"kind": "collective", "bytes": "400KB", "ranks": 4}
    late = job | {"group": "late", "repeat": 3, "start": "5ms"}
    scenario = SCENARIO | {"workload": [job | {"group": "ring"}, late]}
    result = weftline.sweep(
        scenario,
        {"end": {"whole": {}, "cut": {"run.until": "2ms"}}},
        seeds=3,
        report={"metrics": ["busbw of late", "busbw of ring"], "answer": "step_max < 10ms"},
        out=tmp_path / "sweep",
    )
    whole, cut = result.cells
    # The job draws nothing at random: its three seeds are one observation.
    assert [reason.kind for reason in result.judgement(whole).reasons] == ["same"]
    assert result.verdict(cut) == "open"
    assert any("3 of 12 steps ended" in reason.text for reason in result.judgement(cut).reasons)
    run = next(iter(cut.runs.values()))
    table = jobs.table(lines_of([run]))
    at = table.columns.index("steps")
    assert [(row[0], row[at]) for row in table.rows] == [("ring", "1"), ("late", "0 of 3")]
    assert main(["jobs", str(run.out)]) == 0
    assert "late: 0 of 3 steps had ended when the run did" in capsys.readouterr().out
    assert any("none of its flows start" in text for text in run.summary["warnings"])
