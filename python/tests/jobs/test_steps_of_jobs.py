"""Steps of jobs in tables, metrics, figures and pages."""

import pytest
from job_scenarios import SCENARIO, TRAINING

pytest.importorskip("weftline._native")

import weftline
from weftline.errors import InputError
from weftline.measures import comparison, groups, jobs, run_facts
from weftline.measures.lines import lines_of
from weftline.measures.metrics import Flows, metric
from weftline.report import answer_text, run_page
from weftline.sweeps import tables


def test_a_row_a_step_with_the_bandwidths_of_nccl_tests(run):
    rows = run.jobs.to_dicts()
    assert rows == run.steps
    assert [(row["job"], row["step"], row["ranks"]) for row in rows] == [
        ("ring", 0, 4),
        ("ring", 1, 4),
        ("ring", 2, 4),
        ("shuffle", 0, 4),
    ]
    for row in rows:
        assert row["time_ns"] == pytest.approx(row["finish_ns"] - row["start_ns"])
        assert row["time_ns"] >= row["ideal_ns"] > 0
        assert row["algbw_bps"] == pytest.approx(8e9 * 400_000 / row["time_ns"])
        factor = 6 / 4 if row["job"] == "ring" else 3 / 4
        assert row["busbw_bps"] == pytest.approx(factor * row["algbw_bps"])
    assert rows[0]["finish_to_finish_ns"] is None
    assert rows[1]["finish_to_finish_ns"] == pytest.approx(rows[1]["finish_ns"] - rows[0]["finish_ns"])


def test_metrics_of_all_jobs_of_one_and_of_a_group(run):
    ring = [row for row in run.steps if row["job"] == "ring"]
    mean = 8e9 * 1.5 * 400_000 / (sum(row["time_ns"] for row in ring) / 3)
    assert metric("busbw of ring").value(run, Flows()) == pytest.approx(mean)
    assert metric("busbw").value(run, Flows(group="ring")) == pytest.approx(mean)
    assert metric("step_max").value(run, Flows()) == max(row["time_ns"] for row in run.steps)
    assert metric("step_over_ideal").value(run, Flows()) >= 1
    of_group = run.completion(group="shuffle")["fct_ns"]["mean"]
    assert metric("fct_mean of shuffle").value(run, Flows()) == of_group
    with pytest.raises(InputError, match="a number of the whole run"):
        metric("drops of ring")


def test_numbers_over_jobs_of_different_kinds_are_none_or_have_a_note(run, tmp_path):
    """A ring and a shuffle have no common bandwidth; the mean of their steps lists the jobs."""
    assert metric("busbw").value(run, Flows()) is metric("algbw").value(run, Flows()) is None
    lines = lines_of([run])
    (note,) = [text for text in comparison.Comparison(lines).notes if "different kinds" in text]
    assert "ring (ring-all-reduce of 4 ranks, 400 KB); shuffle (all-to-all of 4 ranks, 400 KB)" in note
    assert "in the mean over jobs of different kinds." in " ".join(answer_text.answer(lines))
    report = {"metrics": ["step_mean", "step_max of ring", "busbw"]}
    with pytest.warns(weftline.WeftlineWarning, match="busbw was not measured: .* of one kind"):
        result = weftline.sweep(SCENARIO, seeds=1, report=report, out=tmp_path / "sweep")
    (of_sweep,) = [text for text in tables.notes(result) if "different kinds" in text]
    assert of_sweep == note
    one = {"workload": SCENARIO["workload"][:1]}
    alone = weftline.run(SCENARIO | one, out=tmp_path / "one")
    assert metric("busbw").value(alone, Flows()) and not comparison.Comparison(lines_of([alone])).notes


def test_jobs_with_domains_differ_by_size_and_have_an_ideal_time(tmp_path):
    job = {"kind": "collective", "operation": "all-reduce", "algorithm": "hierarchical", "domain": 2}
    job |= {"scale_up_rate": "3.6Tbps"}
    workload = [
        job | {"group": "a", "bytes": "400KB", "hosts": "0-3"},
        job | {"group": "b", "bytes": "100KB", "hosts": "4-7"},
    ]
    run = weftline.run(SCENARIO | {"workload": workload}, out=tmp_path / "run")
    lines = lines_of([run])
    (note,) = [text for text in comparison.Comparison(lines).notes if "different kinds" in text]
    assert "a (all-reduce of 4 ranks, 400 KB); b (all-reduce of 4 ranks, 100 KB)" in note
    assert all(0.9 * row["time_ns"] < row["ideal_ns"] <= row["time_ns"] for row in run.steps)
    assert "With scale_up_rate: ideal counts the links within domains" in jobs.table(lines).note


def test_tables_after_a_run_have_groups_jobs_and_steps(run):
    facts, by_group, of_jobs, steps = run_facts.run_tables(run)
    assert dict(row[:2] for row in facts.rows)["CPU time, wall time"].count(" s") == 2
    assert [row[0] for row in by_group.rows] == ["ring", "shuffle"]
    assert by_group.rows[1][1] == "12" and by_group.rows[1][4] == "–", "12 flows have no p99"
    assert [row[:2] for row in of_jobs.rows] == [["ring", "ring-all-reduce"], ["shuffle", "all-to-all"]]
    assert len(steps.rows) == 4
    lines = lines_of([run])
    assert groups.table(lines, shown=("drops",)) and jobs.table(lines)


def test_the_page_shows_jobs(run):

    text = run_page.html(lines_of([run]))
    assert "<h2>Jobs</h2>" in text and "Bus bandwidth of each step" in text and "By group" in text


def test_a_job_without_messages_has_no_last_host(tmp_path):
    file = tmp_path / "job.goal"
    file.write_text("num_ranks 2\nrank 0 {\nl1: calc 1000\n}\nrank 1 {\nl1: calc 5000\n}\n")
    job = {"kind": "job-file", "file": str(file)}
    run = weftline.run(TRAINING | {"workload": [job]}, out=tmp_path / "run")
    assert [(step["time_ns"], step["last_host"]) for step in run.steps] == [(5000, None)]
    assert jobs.table(lines_of([run])).rows[0][-1] == "–"
