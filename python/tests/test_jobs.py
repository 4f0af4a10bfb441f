"""Jobs: steps in tables, metrics, figures, pages; why a step took long; groups, labels, drawn failures."""

import json
from itertools import pairwise

import pytest

pytest.importorskip("weftline._native")

import weftline
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.figures import job_figures
from weftline.measures import comparison, groups, jobs, run_warnings, slowdown_table, step_causes
from weftline.measures.lines import lines_of
from weftline.measures.metrics import Flows, metric
from weftline.quantities import bytes_text, rate_text
from weftline.report import answer_text, headline, run_page, sweep_page
from weftline.sweeps import tables

SCENARIO = {
    "name": "jobs",
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
    "workload": [
        {"kind": "collective", "group": "ring", "bytes": "400KB", "ranks": 4, "repeat": 3, "compute": "5us"},
        {
            "kind": "collective",
            "group": "shuffle",
            "operation": "all-to-all",
            "bytes": "400KB",
            "ranks": 4,
            "placement": "random",
        },
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return weftline.run(SCENARIO, out=tmp_path_factory.mktemp("jobs") / "run")


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
    facts, by_group, of_jobs, steps = comparison.run_tables(run)
    assert dict(row[:2] for row in facts.rows)["CPU time, wall time"].count(" s") == 2
    assert [row[0] for row in by_group.rows] == ["ring", "shuffle"]
    assert by_group.rows[1][1] == "12" and by_group.rows[1][4] == "–", "12 flows have no p99"
    assert [row[:2] for row in of_jobs.rows] == [["ring", "ring-all-reduce"], ["shuffle", "all-to-all"]]
    assert len(steps.rows) == 4
    lines = lines_of([run])
    assert groups.table(lines, shown=("drops",)) and jobs.table(lines)


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


def test_warnings_that_differ_in_numbers_alone_are_one():
    class Warned:
        def __init__(self, *texts):
            self.summary = {"warnings": list(texts)}

    waiting = "a job had not ended: rank 0 waits in step 1; rank 1 waits in step 1"
    runs = [Warned("3 of 8 flows did not finish", waiting), Warned("5 of 8 flows did not finish"), Warned()]
    first, second = run_warnings.of_runs(runs).values()
    assert (first.text, first.of(3)) == (
        "3 of 8 flows did not finish",
        " (2 of 3 runs, with the numbers of the first)",
    )
    assert (second.text, second.of(3), second.of(1), second.of(1, always=True)) == (
        waiting,
        " (1 of 3 runs)",
        "",
        " (1 of 1 runs)",
    )


def test_percentiles_of_too_few_flows_are_a_dash_and_their_number_is_shown(run):
    table = slowdown_table.table(lines_of([run]))
    place = table.columns.index("all")
    by_name = {row[1]: row[place] for row in table.rows}
    assert by_name["flows"] == "84" and by_name["p99"] == "–" and by_name["p50"] != "–"


def test_the_page_shows_jobs(run):
    from weftline.report import run_page

    text = run_page.html(lines_of([run]))
    assert "<h2>Jobs</h2>" in text and "Bus bandwidth of each step" in text and "By group" in text


def test_figures_and_comparisons_take_labels(run):
    assert [line.label for line in weftline.plot({"Mine": run}).lines] == ["Mine"]
    assert weftline.plot(run).jobs("busbw_bps").spec["data"]["values"]
    found = weftline.compare({"Mine": run, "Again": str(run.out)})
    assert [line.label for line in found.lines] == ["Mine", "Again"]
    with pytest.raises(InputError, match="2 labels for 1 line"):
        weftline.compare(run, labels=["a", "b"])


def test_compare_gives_lines_the_labels_of_the_command_line(run, capsys):
    assert main(["compare", str(run.out), "--label", "Mine"]) == 0
    assert "Mine" in capsys.readouterr().out


def test_labels_name_what_was_set_and_not_what_follows_from_it(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 3},
        "workload": [{"kind": "permutation", "size": "9KB"}],
    }
    plain = weftline.run(scenario, out=tmp_path / "a")
    off = weftline.run(scenario, set={"switch.pfc.enabled": False}, out=tmp_path / "b")
    slow = weftline.run(scenario, set={"transport.rto": "1ms"}, out=tmp_path / "c")
    assert [line.label for line in lines_of([plain, off])] == ["PFC on", "PFC off"]
    assert lines_of([plain, slow])[1].label == "rto 1 ms"
    assert "transport.rto" in slow.summary["provenance"]["given"]
    assert weftline.run(scenario, out=tmp_path / "a").reused


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


def test_runs_of_other_seeds_draw_other_links_and_are_one_line(tmp_path):
    scenario = {
        "topology": {"kind": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 1},
        "workload": [{"kind": "permutation", "size": "90KB"}],
        "failures": {"event": [{"at": "1us", "random": 1, "lasts": "20us"}]},
    }
    found = [weftline.run(scenario, seed=seed, out=tmp_path / str(seed)) for seed in (1, 2, 3)]
    failed = [run.summary["failures"][0]["change"] for run in found]
    assert len(set(failed)) > 1 and all(" - " in one and one.endswith(" down") for one in failed)
    assert [run.summary["failures"][1]["change"] for run in found] == [
        one.replace(" down", " up") for one in failed
    ]
    assert len(lines_of(found)) == 1


def test_tables_fit_a_narrow_terminal_and_colours_respect_no_color(run, capsys, monkeypatch):
    from weftline import terminal

    for width in (50, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        for command in (["list"], ["compare", str(run.out)], ["check", str(run.out / "scenario.toml")]):
            assert main(command) == 0
            assert max(map(len, capsys.readouterr().out.splitlines())) <= width, command

    class Screen:
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.has_colour(Screen())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not terminal.has_colour(Screen())
    table = terminal.Table(["", "x"], [["a", "1"]], marks={(0, 1): "better"})
    assert "\x1b[32m" in table.text(colour=True) and "\x1b" not in table.text()


def test_people_find_things_by_the_names_that_they_know(capsys):
    for name, found in [("all-reduce", "collective"), ("p99", "slowdown_p99"), ("jct", "step_mean")]:
        assert main(["explain", name]) == 0
        assert f"{name} is explained by {found}" in capsys.readouterr().out
    assert main(["list", "metrics"]) == 0
    assert "busbw" in capsys.readouterr().out
    assert main(["list", "congestion"]) == 0
    assert "dcqcn" in capsys.readouterr().out


def test_a_step_of_a_page_opens_its_why(run):
    def address(run, *, flow=None, step=None):
        return f"/why?flow={flow}" if step is None else f"/why?job={step[0]}&step={step[1]}"

    text = run_page.html(lines_of([run]), link=address)
    slowest = max(run.steps, key=lambda step: step["time_ns"])
    assert f'href="/why?job={slowest["job"]}&amp;step={slowest["step"]}"' in text
    assert f"--step {slowest['step']} --group {slowest['job']}" in text


TRAINING = {
    "name": "training",
    "topology": {"kind": "rail", "nodes": 4, "gpus": 4, "spines": 2},
    "transport": {"controller": {"kind": "dcqcn"}},
    "workload": [
        {
            "kind": "training",
            "layers": 4,
            "hidden": 256,
            "sequence": 128,
            "vocabulary": 0,
            "teraflops": 5.0,
            "tensor": 4,
            "scale_up_rate": "1Tbps",
            "micro_batches": 2,
            "jitter": 0.1,
        }
    ],
}


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    return weftline.run(TRAINING, out=tmp_path_factory.mktemp("training") / "run")


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
        named.append((row["longest_rank"], row["longest_computing_ns"] / row["median_computing_ns"]))
        assert main(["jobs", str(run.out)]) == 0
    assert named[0][1] == pytest.approx(1) and named[1] == (5, pytest.approx(2, rel=1e-6))
    text = capsys.readouterr().out
    assert text.count("rank 5 (2.00 x)") == 1 and "computes longest" in text


STEPS = {"workload.0.steps": 3, "workload.0.tensor": 2, "workload.0.pipeline": 2}


@pytest.fixture(scope="module")
def training_steps(tmp_path_factory):
    return weftline.run(TRAINING, set=STEPS, out=tmp_path_factory.mktemp("training-steps") / "run")


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


def test_a_job_without_messages_has_no_last_host(tmp_path):
    file = tmp_path / "job.goal"
    file.write_text("num_ranks 2\nrank 0 {\nl1: calc 1000\n}\nrank 1 {\nl1: calc 5000\n}\n")
    job = {"kind": "job-file", "file": str(file)}
    run = weftline.run(TRAINING | {"workload": [job]}, out=tmp_path / "run")
    assert [(step["time_ns"], step["last_host"]) for step in run.steps] == [(5000, None)]
    assert jobs.table(lines_of([run])).rows[0][-1] == "–"


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


def test_ranks_wait_for_others_within_the_time_in_which_they_do_not_compute(training):
    rows = training.ranks.to_dicts()
    whole = [row for row in rows if row["step"] == 0]
    assert all(row["unsent_ns"] == 0 for row in whole), "without a pipeline nobody waits for one message"
    assert all(0 <= row["unjoined_ns"] <= row["exposed_ns"] for row in whole)
    assert sum(row["unjoined_ns"] for row in whole) > 0
    assert all(row["unsent_ns"] is row["unjoined_ns"] is None for row in rows if row["step"] > 0)


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


def test_bandwidths_by_size_are_those_of_nccl_tests(run, capsys):
    assert main(["jobs", str(run.out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    ring = next(row for row in found["sizes"] if row["operation"] == "ring-all-reduce")
    times = [step["time_ns"] for step in run.steps if step["job"] == "ring"]
    assert ring["time_us"] == pytest.approx(sum(times) / 3e3) and ring["steps"] == 3
    assert ring["busbw_GBps"] == pytest.approx(1.5 * 400_000 / (sum(times) / 3))
    assert found["causes"] == [[]], "collectives alone have no computation to tell apart"
    assert main(["jobs", str(run.out), str(run.out), "--out", "a.json"]) == 2
    assert "one timeline is of one run" in capsys.readouterr().err


def test_bandwidths_are_bytes_over_time_everywhere(tmp_path, capsys):
    """Steps during a failure take longer, so that the mean of the bandwidths is another number."""
    job = {"kind": "collective", "bytes": "400KB", "ranks": 8, "repeat": 4, "compute": "5us"}
    slow = {"at": "150us", "link": ["host5", "leaf1"], "change": "rate", "rate": "5Gbps", "lasts": "400us"}
    run = weftline.run(SCENARIO | {"workload": [job], "failures": {"event": [slow]}}, out=tmp_path / "run")
    time = sum(step["time_ns"] for step in run.steps) / 4
    rate = 8e9 * 400_000 / time
    of_steps = sum(step["algbw_bps"] for step in run.steps) / 4
    assert of_steps > 1.1 * rate, "the two definitions differ here"
    assert metric("algbw").value(run, Flows()) == pytest.approx(rate)
    assert metric("busbw").value(run, Flows()) == pytest.approx(rate * 14 / 8)
    table = jobs.table(lines_of([run]))
    shown = dict(zip(table.columns, table.rows[0], strict=True))
    assert (shown["algbw"], shown["busbw"]) == tuple(map(rate_text, (rate, rate * 14 / 8)))
    assert main(["jobs", str(run.out), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["sizes"]
    assert row["algbw_GBps"] == pytest.approx(rate / 8e9) and row["busbw_GBps"] == pytest.approx(
        rate * 1.75 / 8e9
    )


def test_bandwidths_by_size_are_of_one_job(tmp_path, capsys):
    """Two tenants run the same operation of the same size; the second has half the rate."""
    job = {"kind": "collective", "bytes": "400KB", "ranks": 4}
    slow = {"hosts": "4-7", "group": "slow"}
    event = {"at": "0us", "link": ["host5", "leaf1"], "change": "rate", "rate": "10Gbps"}
    scenario = SCENARIO | {
        "workload": [job | {"group": "quick", "hosts": "0-3"}, job | slow],
        "failures": {"event": [event]},
    }
    run = weftline.run(scenario, out=tmp_path / "run")
    assert main(["jobs", str(run.out), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["sizes"]
    assert [(row["job"], row["steps"]) for row in rows] == [("quick", 1), ("slow", 1)]
    assert rows[0]["busbw_GBps"] > 2 * rows[1]["busbw_GBps"]
    assert main(["jobs", str(run.out)]) == 0
    text = capsys.readouterr().out
    for row in rows:
        assert f"{row['busbw_GBps']:.2f} GB/s ({row['job']}, ring-all-reduce of 4 ranks)" in text


def test_lines_of_which_a_setting_changes_no_bit_are_named(tmp_path):
    """A star has one path: no packet depends on the balancer, and tables say that."""
    scenario = {
        "name": "star",
        "topology": {"kind": "star", "hosts": 4},
        "workload": [{"kind": "permutation", "size": "90KB"}],
    }
    small = {"transport.mtu": "500B"}
    spray = {"switch.balancer.kind": "spray"}
    variants = {"ecmp": {}, "spray": spray, "small": small, "small, spray": small | spray}
    found = weftline.sweep(scenario, {"balancer": variants}, seeds=3, out=tmp_path / "sweep")
    notes = [table.note for table in found.tables()]
    (note,) = [line for note in notes for line in note.splitlines() if "to the bit" in line]
    same = "ecmp and spray; small and small, spray"
    assert note == f"Flows and ports are the same to the bit: {same}. What sets them apart moved no packet."
    runs = [cell.runs[1] for cell in found.cells]
    assert "to the bit" in weftline.compare(*runs[:2]).differences().note
    assert "to the bit" not in weftline.compare(runs[0], runs[2]).differences().note
    differences = weftline.compare(*runs).differences()
    (note,) = [line for line in differences.note.splitlines() if "to the bit" in line]
    assert note.count("; ") == 1, "two lines that are alike and differ from the base are named as well"


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
