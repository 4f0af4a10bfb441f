"""Training jobs: their steps, the causes of their time, the timeline."""

import json
from itertools import pairwise

import pytest
from job_scenarios import STEPS, TRAINING

pytest.importorskip("weftline._native")

import weftline
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.figures import job_figures
from weftline.measures import jobs, step_causes
from weftline.measures.lines import Line, lines_of
from weftline.measures.metrics import Flows, metric
from weftline.quantities import bytes_text
from weftline.report import run_page


def test_the_causes_of_a_step_add_up_to_its_time(training):
    (row,) = step_causes.causes(training)
    parts = [row[key] for key in ("computing_ns", "communication_ns", "waiting_ns")]
    assert sum(parts) + row["senders_ns"] == pytest.approx(row["time_ns"]) and min(parts) > 0
    assert row["time_ns"] == pytest.approx(training.steps[0]["time_ns"])
    # By hand, of the rank that ended last: it does not wait after its end.
    whole = [rank for rank in training.ranks.to_dicts() if rank["step"] == 0]
    computing = [rank["finish_ns"] - rank["start_ns"] - rank["exposed_ns"] for rank in whole]
    assert row["computing_ns"] == pytest.approx(sum(computing) / 16)


def test_the_rank_that_computes_longest_is_named(tmp_path, capsys):
    """A slow GPU is not the rank that ends last: all of its step wait for it, and another one ends it."""
    even = {"workload.0.jitter": 0}
    slow = even | {"workload.0.slow_ranks": "5", "workload.0.slow_factor": 2.0}
    named = []
    for name, changes in (("even", even), ("slow", slow)):
        run = weftline.run(TRAINING, set=changes, out=tmp_path / name)
        (row,) = step_causes.causes(run)
        named.append((row["longest_rank"], row["longest_computing_ns"] / row["mates_computing_ns"]))
        assert main(["jobs", str(run.out)]) == 0
    assert named[0][1] == pytest.approx(1) and named[1] == (5, pytest.approx(2, rel=1e-6))
    text = capsys.readouterr().out
    assert text.count("rank 5 (2.00 x)") == 1 and "computes longest" in text


def test_of_ranks_next_to_others_that_do_not_compute_the_longest_is_named(tmp_path):
    file = tmp_path / "job.goal"
    ranks = [f"rank {rank} {{\nc: calc {time}\n}}\n" for rank, time in enumerate((3000, 0, 0, 100_000))]
    file.write_text(f"num_ranks 4\n{''.join(ranks)}")
    scenario = TRAINING | {"workload": [{"kind": "job-file", "file": str(file)}]}
    (row,) = step_causes.causes(weftline.run(scenario, out=tmp_path / "run"))
    assert (row["longest_rank"], row["longest_computing_ns"], row["mates_computing_ns"]) == (3, 100_000, 0)


PIPELINE = {
    "name": "pipeline",
    "topology": {"kind": "star", "hosts": 8},
    "transport": {"controller": {"kind": "none"}},
    "workload": [
        {
            "kind": "training",
            "layers": 8,
            "hidden": 256,
            "sequence": 128,
            "pipeline": 4,
            "micro_batches": 4,
            "slow_ranks": "1",
            "slow_factor": 1.3,
        }
    ],
}


def test_a_slow_rank_is_compared_with_ranks_of_its_stage(tmp_path, capsys):
    """The last stage has the output layer, so that its ranks compute longer than a slow rank of another."""
    run = weftline.run(PIPELINE, out=tmp_path / "slow")
    (row,) = step_causes.causes(run)
    assert row["longest_rank"] == 1
    assert row["longest_computing_ns"] / row["mates_computing_ns"] == pytest.approx(1.3, rel=1e-6)
    assert (row["stages"], row["longest_stage"], row["longest_stage_ranks"]) == (4, 3, [6, 7])
    assert row["longest_stage_computing_ns"] > 1.3 * row["median_stage_computing_ns"]
    (shown,) = step_causes.table(run).rows
    assert "rank 1 (1.30 x)" in shown and any(cell.startswith("stage 3, ranks 6-7 (") for cell in shown)
    even = weftline.run(PIPELINE, set={"workload.0.slow_factor": 1.0}, out=tmp_path / "even")
    (shown,) = step_causes.table(even).rows
    assert "–" in shown and any(cell.startswith("stage 3, ranks 6-7 (") for cell in shown)


def test_a_rank_alone_in_its_stage_is_compared_with_nothing(tmp_path):
    scenario = PIPELINE | {"topology": {"kind": "star", "hosts": 4}}
    run = weftline.run(scenario, out=tmp_path / "run")
    (row,) = step_causes.causes(run)
    assert row["longest_rank"] is None and row["longest_stage"] == 3
    (shown,) = step_causes.table(run).rows
    assert "one rank a stage" in shown and any(cell.startswith("stage 3, rank 3 (") for cell in shown)


def test_the_steps_of_a_training_job_follow_each_other(training_steps):
    """Each is a row whose time begins with the end of the one before, so that the times add up."""
    rows = [row for row in training_steps.steps if row["whole"]]
    assert [row["step"] for row in rows] == [0, 1, 2] and {row["operation"] for row in rows} == {"training"}
    for before, row in pairwise(rows):
        assert row["start_ns"] == before["finish_ns"] and row["finish_to_finish_ns"] == row["time_ns"]
    assert rows[0]["finish_to_finish_ns"] is None and len({row["time_ns"] for row in rows}) == 3
    # A rank does not wait for others at the end of a step: it begins the next when it has ended its own.
    ranks = training_steps.ranks.to_dicts()
    of_rank = [[row for row in ranks if row["rank"] == rank and row["step"] < 3] for rank in range(16)]
    for own in of_rank:
        assert [row["start_ns"] for row in own[1:]] == [row["finish_ns"] for row in own[:-1]]
        waited = [(row["unsent_ns"] + row["unjoined_ns"], row["exposed_ns"]) for row in own]
        assert all(0 <= for_others <= exposed * (1 + 1e-9) for for_others, exposed in waited)
    for step, row in enumerate(rows):
        ends = sorted(own[step]["finish_ns"] for own in of_rank)
        assert ends[-1] == row["finish_ns"] and ends[-1] - ends[7] == pytest.approx(row["straggler_ns"])
    (cause,) = step_causes.causes(training_steps)
    time = sum(row["time_ns"] for row in rows) / 3
    assert cause["steps"] == 3 and cause["time_ns"] == pytest.approx(time)
    parts = ("computing_ns", "communication_ns", "waiting_ns", "senders_ns")
    assert sum(cause[key] for key in parts) == pytest.approx(time) and min(cause[key] for key in parts) > 0


def test_steps_of_a_training_job_do_not_change_what_it_sends(training, tmp_path):
    """The first of two steps is the step of a job of one, to the nanosecond."""
    even = {"workload.0.jitter": 0}
    twice = weftline.run(TRAINING, set=even | {"workload.0.steps": 2}, out=tmp_path / "twice")
    once = weftline.run(TRAINING, set=even, out=tmp_path / "once")
    (step,) = [row for row in once.steps if row["whole"]]
    first, second = [row for row in twice.steps if row["whole"]]
    for key in ("time_ns", "bytes", "exposed_ns", "straggler_ns"):
        assert first[key] == step[key], key
    assert second["bytes"] == step["bytes"]


def test_a_training_job_that_is_cut_off_says_which_steps_ended(tmp_path, training_steps):
    first, second, _ = [row for row in training_steps.steps if row["whole"]]
    until = (first["finish_ns"] + second["finish_ns"]) / 2
    cut = weftline.run(TRAINING, set=STEPS | {"run.until": f"{until:.0f}ns"}, out=tmp_path / "cut")
    ended, running = [row for row in cut.steps if row["whole"]]
    assert ended["time_ns"] == first["time_ns"] and running["finish_ns"] is None
    assert running["start_ns"] == first["finish_ns"]
    assert jobs.table(lines_of([cut])).rows[0][4] == "1 of 3", "the third had not begun and has no row"
    (cause,) = step_causes.causes(cut)
    assert cause["steps"] == 1 and cause["time_ns"] == pytest.approx(first["time_ns"])


def test_times_of_steps_are_of_the_whole_job_and_bandwidths_of_one_kind(training_steps):
    """All-reduces within a node are parts of the step, and their rates are not those between nodes."""
    training = training_steps
    wholes = [row for row in training.steps if row["operation"] == "training"]
    times = [row["time_ns"] for row in wholes]
    assert metric("step_mean").value(training, Flows()) == pytest.approx(sum(times) / 3)
    assert metric("step_max").value(training, Flows()) == max(times)
    parts = [row for row in training.steps if row not in wholes]
    assert {row["inside"] for row in parts} == {True, False}
    assert all(row["finish_to_finish_ns"] is None for row in parts)
    assert metric("busbw").value(training, Flows()) is None
    rows = jobs.table(lines_of([training])).rows
    assert [row[1] for row in rows][:2] == ["training", "all-reduce in a domain"]
    sent = [rank["bytes_sent"] for rank in training.ranks.to_dicts() if rank["step"] == 0]
    assert wholes[0]["bytes"] == sum(sent) and rows[0][3] == bytes_text(sum(sent))
    assert "of a whole step what all ranks sent together" in jobs.table(lines_of([training])).note
    assert rows[0][4] == "3" and rows[0][5] != rows[0][6], "the mean and the slowest of three steps"
    assert len({tuple(row[:4]) for row in rows}) == len(rows)


def test_ranks_wait_for_others_within_the_time_in_which_they_do_not_compute(training):
    rows = training.ranks.to_dicts()
    whole = [row for row in rows if row["step"] == 0]
    assert all(row["unsent_ns"] == 0 for row in whole), "without a pipeline nobody waits for one message"
    assert all(0 <= row["unjoined_ns"] <= row["exposed_ns"] for row in whole)
    assert sum(row["unjoined_ns"] for row in whole) > 0
    assert all(row["unsent_ns"] is row["unjoined_ns"] is None for row in rows if row["step"] > 0)


def test_a_timeline_is_a_chrome_trace_without_overlaps(training, tmp_path, capsys):
    file = tmp_path / "timeline.json"
    assert main(["jobs", str(training.out), "--out", str(file)]) == 0
    text = capsys.readouterr().out
    assert "Where the time of steps went" in text and "as nccl-tests" in text
    events = json.loads(file.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == len(training.ranks.to_dicts())
    assert len([event for event in events if event["ph"] == "M"]) == 16
    ends = {}
    for span in spans:
        place = (span["pid"], span["tid"])
        assert span["ts"] >= ends.get(place, 0) - 1e-6, "spans of a track overlap"
        ends[place] = span["ts"] + span["dur"]
    figure = job_figures.timeline("What ranks did", training)
    assert figure.spec["data"]["values"] and "timeline.json" in figure.caption


def test_the_figure_of_a_training_job_has_the_times_of_its_steps_and_bandwidths_of_its_operations(tmp_path):
    run = weftline.run(TRAINING, set={"workload.0.steps": 2}, out=tmp_path / "run")
    whole = [step for step in run.steps if step["whole"]]
    for column in ("time_ns", "finish_to_finish_ns"):
        rows = run.plot.jobs(column).spec["data"]["values"]
        known = [step for step in whole if step[column] is not None]
        assert [row["x"] for row in rows if "ideal" not in row["line"]] == [step["step"] for step in known]
        of_steps = [row["y"] for row in rows if "ideal" not in row["line"]]
        assert known and of_steps == pytest.approx([1e-3 * step[column] for step in known], rel=1e-4)
    lines = {row["line"] for row in run.plot.jobs("busbw_bps").spec["data"]["values"]}
    assert lines and all("ranks" in line for line in lines)


def test_a_column_that_no_step_has_is_no_figure(tmp_path):
    incast = {"topology": {"kind": "star", "hosts": 3}, "workload": [{"kind": "incast", "size": "10KB"}]}
    run = weftline.run(incast, out=tmp_path / "run")
    with pytest.raises(InputError, match="busbw_bps: no step of these runs has one"):
        run.plot.jobs("busbw_bps")


def test_a_page_names_the_seed_of_the_steps_that_it_lists(training):
    def texts(runs):
        (section,) = run_page.job_sections([Line("A", runs)])
        of_run = [table.note for table in section.tables if table.title != "Steps of jobs"]
        return [section.text, *of_run, *(figure.caption for figure in section.figures)]

    one = "Only the run of seed 1 is shown."
    assert len(texts([training])) >= 4 and not any("seed" in text for text in texts([training]))
    several = texts([training, weftline.Run.read(training.out)])
    assert [text for text in several if one not in text] == []


def test_causes_of_several_seeds_name_the_seed(tmp_path, capsys):
    folders = [str(weftline.run(TRAINING, seed=seed, out=tmp_path / str(seed)).out) for seed in (1, 2)]
    assert main(["jobs", *folders]) == 0
    printed = capsys.readouterr().out
    assert [f"Where the time of steps went, seed {seed}" in printed for seed in (1, 2)] == [True, True]
    assert main(["jobs", *folders, "--json"]) == 0
    causes = json.loads(capsys.readouterr().out)["causes"]
    assert [(row["seed"], row["run"]) for of_run in causes for row in of_run] == [
        (seed, folder) for seed, folder in zip((1, 2), folders, strict=True)
    ]
