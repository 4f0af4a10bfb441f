"""Why a step took long."""

import json

import pytest
from job_scenarios import SCENARIO, TRAINING

pytest.importorskip("weftline._native")

import weftline
from weftline.cli.main import main
from weftline.measures.lines import lines_of
from weftline.measures.metrics import Flows, metric
from weftline.report import run_page


def test_why_a_step_took_long_adds_up(run, capsys, tmp_path):
    assert main(["why", str(run.out), "--step", "1", "--group", "ring", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    step = answer["step"]
    assert (step["job"], step["step"], step["ranks"]) == ("ring", 1, 4)
    assert sum(part["ps"] for part in step["causes"]) == step["time_ps"]
    at = step["start_ps"]
    for part in step["chain"]:
        assert part["from_ps"] == at
        if "flow" in part:
            flow = answer["flows"][part["flow"]]
            assert (flow["start_ps"], flow["fct_ps"]) == (at, part["ps"])
            assert (flow["src"], flow["dst"]) == (part["host"], part["to_host"])
        at += part["ps"]
    assert at == step["start_ps"] + step["time_ps"]
    page = tmp_path / "why.html"
    assert main(["why", str(run.out), "--step", "slowest", "--out", str(page)]) == 0
    text = capsys.readouterr().out
    assert (
        "decided when it ended" in text
        and "time of the step" in text
        and "What this step waited for" in page.read_text()
    )


def test_a_step_that_cannot_be_named_is_refused(run, capsys):
    for asked, why in [
        (["--step", "0"], "name the job with --group; its jobs are ring, shuffle"),
        (["--step", "9", "--group", "ring"], "steps are 0 to 2"),
        (["--step", "0", "--group", "rings"], "the run has no such job"),
        (["--step", "0", "--flow", "1"], "expected none of --flow, --slowest and --link"),
    ]:
        assert main(["why", str(run.out), *asked]) == 2
        assert why in capsys.readouterr().err


def test_a_step_of_a_page_opens_its_why(run):
    def address(run, *, flow=None, step=None):
        return f"/why?flow={flow}" if step is None else f"/why?job={step[0][1]}&step={step[1]}"

    text = run_page.html(lines_of([run]), link=address)
    slowest = max(run.steps, key=lambda step: step["time_ns"])
    assert f'href="/why?job={slowest["job"]}&amp;step={slowest["step"]}"' in text
    assert f"--step {slowest['step']} --group {slowest['job']}" in text


def test_why_a_step_of_a_training_job_took_long_goes_over_computations_and_messages(training, capsys):
    assert main(["why", str(training.out), "--step", "0", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    step = answer["step"]
    assert (step["operation"], step["ranks"], step["undivided"]) == ("training", 16, None)
    assert sum(part["ps"] for part in step["chain"]) == step["time_ps"]
    assert sum(part["ps"] for part in step["causes"]) == step["time_ps"]
    assert {"computation", "message"} <= {part["what"] for part in step["chain"]}
    assert main(["why", str(training.out), "--step", "0"]) == 0
    text = capsys.readouterr().out
    for found in ("operations of the chain", "ranks of the chain", "all-reduce", "computation"):
        assert found in text


def test_messages_without_rows_take_as_long_alone_as_those_with(training, tmp_path, capsys):
    hidden = weftline.run(TRAINING, set={"workload.0.messages": False}, out=tmp_path / "run")
    alone = []
    for run in (training, hidden):
        assert main(["why", str(run.out), "--step", "0", "--json"]) == 0
        alone.append([flow["ideal_ps"] for flow in json.loads(capsys.readouterr().out)["flows"]])
    assert alone[0] == alone[1] and min(alone[0]) > 0


def test_the_step_before_is_named_where_steps_overlap(tmp_path, capsys):
    job = {"kind": "collective", "bytes": "400KB", "ranks": 8, "repeat": 3}
    run = weftline.run(SCENARIO | {"workload": [job]}, out=tmp_path / "run")
    first, *later = run.steps
    ends = [first, *later[:-1]]
    for step, before in zip(later, ends, strict=True):
        assert step["start_ns"] < before["finish_ns"], "ranks that are ahead do not wait"
        assert step["time_ns"] == pytest.approx(step["finish_ns"] - before["finish_ns"])
        assert step["time_ns"] == pytest.approx(step["finish_to_finish_ns"])
    assert metric("step_over_ideal").value(run, Flows()) >= 1
    assert main(["why", str(run.out), "--step", "1"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "the step before ended" in text and "to its job" in text


def test_the_slowest_step_is_the_one_that_took_longest_from_its_own_start(tmp_path, capsys):
    job = {"kind": "collective", "operation": "all-to-all", "bytes": "500KB", "ranks": 8, "repeat": 3}
    run = weftline.run(SCENARIO | {"workload": [job]}, out=tmp_path / "run")
    took = [step["finish_ns"] - step["start_ns"] for step in run.steps]
    added = [step["time_ns"] for step in run.steps]
    assert took.index(max(took)) != added.index(max(added))
    assert main(["why", str(run.out), "--step", "slowest", "--json"]) == 0
    step = json.loads(capsys.readouterr().out)["step"]
    assert step["step"] == took.index(max(took))
    assert step["time_ps"] == pytest.approx(max(took) * 1000)


def test_steps_that_a_run_repeats_have_the_causes_of_simulated_ones(tmp_path, capsys):
    job = {"kind": "collective", "bytes": "400KB", "repeat": 3, "compute": "200us", "connections": "fresh"}
    star = {"topology": {"kind": "star", "hosts": 4}, "transport": {"controller": {"kind": "dcqcn"}}}
    causes = []
    for memo in (True, False):
        run = weftline.run(star | {"workload": [job], "run": {"memo": memo}}, out=tmp_path / str(memo))
        for asked in (["--step", "2"], ["--flow", str(run.steps[2]["last_flow"])]):
            assert main(["why", str(run.out), *asked, "--json"]) == 0
            answer = json.loads(capsys.readouterr().out)
            causes.append(answer.get("step", answer["flows"][0])["causes"])
    assert causes[:2] == causes[2:]
    assert {"transmission", "propagation"} <= {part["cause"] for part in causes[1]}
