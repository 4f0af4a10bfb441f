"""Jobs whose group is the same, as it is by default: the number of their workload distinguishes them."""

import json
import re
import shlex
from html import unescape

import pytest
from job_scenarios import SCENARIO

pytest.importorskip("weftline._native")

import weftline
from weftline.cli.main import main
from weftline.figures import job_figures
from weftline.measures import evidence, jobs
from weftline.measures.comparison import Comparison
from weftline.measures.lines import lines_of
from weftline.measures.metrics import Flows, metric
from weftline.report import run_page
from weftline.sweeps import tables

RING = {"kind": "collective", "hosts": "0-3", "bytes": "400KB", "repeat": 2}


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    shuffle = {"kind": "collective", "hosts": "4-7", "operation": "all-to-all", "bytes": "3MB", "repeat": 2}
    return weftline.run(
        SCENARIO | {"workload": [RING, shuffle]}, out=tmp_path_factory.mktemp("twins") / "run"
    )


def _step(run, workload, number):
    return next(row for row in run.steps if (row["workload"], row["step"]) == (workload, number))


@pytest.mark.parametrize("workload", [0, 1])
@pytest.mark.parametrize("group", [[], ["--group", "collective"]])
def test_why_explains_the_step_of_the_job_that_is_chosen(twins, workload, group, capsys):
    asked = ["why", str(twins.out), "--step", "1", *group]
    assert main([*asked, "--workload", str(workload), "--json"]) == 0
    step, row = json.loads(capsys.readouterr().out)["step"], _step(twins, workload, 1)
    assert (step["workload"], step["operation"]) == (workload, row["operation"])
    # Its time is from its own start, whenever the step before ended.
    assert step["time_ps"] == round((row["finish_ns"] - row["start_ns"]) * 1000)
    assert main([*asked, "--workload", str(workload)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith(f"step 1 of collective (workload {workload}): {row['operation']} of ")


def test_why_asks_which_of_several_jobs_is_meant(twins, run, capsys):
    for of, asked, why in [
        (twins, ["--step", "1"], "2 jobs have the group collective: choose one with --workload (0, 1)"),
        (twins, ["--step", "1", "--workload", "2"], "workloads with jobs are 0 (collective), 1 (collective)"),
        (twins, ["--workload", "1"], "--workload chooses the job of --step"),
        (run, ["--step", "0", "--group", "ring", "--workload", "1"], "it has no job of group ring"),
    ]:
        assert main(["why", str(of.out), *asked]) == 2
        assert why in " ".join(capsys.readouterr().err.split())
    assert main(["why", str(twins.out), "--step", "slowest", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"]["workload"] == 1


def test_commands_of_a_page_explain_the_step_that_they_stand_under(twins, capsys):
    page = unescape(re.sub("<[^b/]*?>", " ", run_page.html(lines_of([twins]))))
    found = re.findall(r"step (\d) of collective \(workload (\d)\): (\S+) of.*?(weftline why [^\n<]*)", page)
    assert {(number, workload) for number, workload, *_ in found} == {(a, b) for a in "01" for b in "01"}
    for number, workload, operation, command in found:
        assert main([*shlex.split(command)[1:], "--json"]) == 0
        step = json.loads(capsys.readouterr().out)["step"]
        found = str(step["step"]), str(step["workload"]), step["operation"]
        assert found == (number, workload, operation)


def test_a_page_has_no_command_for_events_of_an_incast(tmp_path):
    incast = {"kind": "incast", "hosts": "4-7", "senders": 3, "size": "1MB", "group": "fan-in"}
    run = weftline.run(SCENARIO | {"workload": [RING, incast]}, out=tmp_path / "run")
    page = run_page.html(lines_of([run]))
    assert "--step 1 --group collective" in page and "--group fan-in" not in page
    assert max(run.steps, key=lambda row: row["time_ns"])["operation"] == "incast"


def test_each_job_has_its_rows(twins, capsys):
    rows = jobs.table(lines_of([twins])).rows
    assert [row[:2] for row in rows] == [
        ["collective (workload 0)", "ring-all-reduce"],
        ["collective (workload 1)", "all-to-all"],
    ]
    assert [row[0] for row in jobs.steps_table(twins).rows].count("collective (workload 1)") == 2
    assert main(["jobs", str(twins.out), "--json"]) == 0
    sizes = json.loads(capsys.readouterr().out)["sizes"]
    assert [row["job"] for row in sizes] == ["collective (workload 0)", "collective (workload 1)"]
    labels = {value["rank"] for value in job_figures.timeline("ranks", twins).spec["data"]["values"]}
    assert {"collective (workload 0) 0", "collective (workload 1) 0"} <= labels


def test_a_mean_over_jobs_of_different_kinds_carries_a_note(twins):
    note = evidence.pooled_text("step_mean", [twins])
    assert note == (
        "step_mean is over the steps of jobs of different kinds: "
        "collective (workload 0: ring-all-reduce of 4 ranks, 400 KB); "
        "collective (workload 1: all-to-all of 4 ranks, 3 MB); "
        '"step_mean of JOB" is that of one where each job has a group of its own.'
    )
    assert evidence.pooled_text("step_mean", [twins], Flows(group="collective")) == note
    of_group = evidence.pooled_text("step_mean of collective", [twins])
    assert of_group == note.replace("step_mean is", "step_mean of collective is")
    assert note in Comparison(lines_of([twins])).notes


def test_a_mean_over_training_jobs_of_different_sizes_carries_a_note(tmp_path):
    job = {"kind": "training", "layers": 2, "hidden": 128, "sequence": 64, "vocabulary": 0}
    small, large = job | {"hosts": "0-3"}, job | {"hosts": "4-7", "hidden": 256}
    two = weftline.run(SCENARIO | {"workload": [small, large]}, out=tmp_path / "two")
    note = evidence.pooled_text("step_mean", [two])
    assert "training (workload 0: training of 4 ranks, " in note and "training (workload 1: " in note
    assert note in Comparison(lines_of([two])).notes
    assert "in the mean over jobs of different kinds" in run_page.html(lines_of([two]))
    report = {"metrics": ["step_mean", "busbw"]}
    swept = weftline.sweep(SCENARIO | {"workload": [small, large]}, report=report, out=tmp_path / "sweep")
    assert note in tables.notes(swept)
    (row,) = swept.rows
    assert row["busbw"] is None and row["step_mean"] > 0


def test_a_bandwidth_is_not_over_operations_of_two_jobs_and_sizes(tmp_path):
    other = RING | {"hosts": "4-7", "bytes": "3MB"}
    two = weftline.run(SCENARIO | {"workload": [RING, other]}, out=tmp_path / "two")
    assert metric("busbw").value(two, Flows()) is metric("algbw").value(two, Flows()) is None
    alike = weftline.run(SCENARIO | {"workload": [RING, RING | {"hosts": "4-7"}]}, out=tmp_path / "alike")
    assert metric("busbw").value(alike, Flows()) > 0 and evidence.pooled_text("step_mean", [alike]) == ""


def test_check_warns_of_jobs_of_one_group(tmp_path, twins, capsys):
    assert main(["check", str(twins.out / "scenario.toml"), "--json"]) == 0
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert warning.startswith('workload.1.group: workload 0 is a job of the group "collective", too')
