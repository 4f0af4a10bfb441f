"""Bandwidths of collective operations by size, as nccl-tests print them."""

import json

import pytest
from job_scenarios import SCENARIO

pytest.importorskip("weftline._native")

import weftline
from weftline.cli.main import main
from weftline.measures import jobs
from weftline.measures.lines import Mean, lines_of
from weftline.measures.metrics import Flows, metric
from weftline.measures.steps import has_jobs, rate
from weftline.quantities import rate_text


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


def test_runs_of_other_scenarios_have_rows_of_their_own_and_a_run_given_twice_counts_once(tmp_path, capsys):
    job = {"kind": "collective", "bytes": "400KB", "ranks": 8, "repeat": 2}

    def run(name, rate="100Gbps", seed=1, **more):
        scenario = SCENARIO | {"seed": seed, "workload": [job | more]}
        scenario["topology"] = scenario["topology"] | {"host_link": {"rate": rate}}
        return str(weftline.run(scenario, out=tmp_path / name).out)

    quick, slow, again = run("quick"), run("slow", "25Gbps"), run("again", seed=2)
    alone = {}
    for folder in (quick, slow):
        assert main(["jobs", folder, "--json"]) == 0
        (alone[folder],) = json.loads(capsys.readouterr().out)["sizes"]
    assert main(["jobs", quick, slow, again, quick, "--json"]) == 0
    printed = capsys.readouterr()
    first, second = json.loads(printed.out)["sizes"]
    assert "is given twice and counts once" in printed.err
    assert first["runs"] == [quick, again] and first["steps"] == 4, "seeds of one scenario"
    assert second["runs"] == [slow] and second["steps"] == 2
    assert second["busbw_GBps"] == alone[slow]["busbw_GBps"] < alone[quick]["busbw_GBps"] / 2
    assert {first["family"], second["family"]} == {0, 1}
    assert main(["jobs", quick, slow]) == 0
    text = capsys.readouterr().out
    averages = [f"{alone[folder]['busbw_GBps']:.2f} GB/s (host_link.rate" for folder in (quick, slow)]
    assert all(average in text for average in averages) and "\nline" in text
    # Runs of several sizes are one family, as of nccl-tests: one average.
    assert main(["jobs", quick, run("large", bytes="800KB")]) == 0
    text = capsys.readouterr().out
    assert text.count(" GB/s") == 1


def test_several_seeds_have_a_mean_and_an_interval(tmp_path, capsys):
    """Mean and interval of bandwidths are those that a comparison has."""
    job = {"kind": "collective", "bytes": "400KB", "ranks": 4, "repeat": 2, "placement": "random"}
    runs = [
        weftline.run(SCENARIO | {"seed": seed, "workload": [job]}, out=tmp_path / str(seed))
        for seed in (1, 2, 3)
    ]
    (line,) = lines_of(runs)
    mean = Mean.of([metric("busbw").value(run, Flows()) for run in runs], line.interval, keys=line.keys)
    folders = [str(run.out) for run in runs]
    assert main(["jobs", *folders, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["sizes"]
    assert row["busbw_GBps"] == pytest.approx(mean.value / 8e9)
    assert row["intervals"]["busbw_GBps"] == pytest.approx(mean.interval / 8e9) and row["seeds"] == mean.count
    assert main(["jobs", *folders]) == 0
    text = capsys.readouterr().out
    assert f"Means over {mean.count} seeds; ±: half of the 95 % interval." in text
    assert f"{mean.value / 8e9:.2f} ±{mean.interval / 8e9:.2f}" in text
    assert main(["jobs", folders[0]]) == 0
    assert "±" not in capsys.readouterr().out


def test_no_step_has_more_bus_bandwidth_than_its_links(tmp_path):
    """Ranks of a gather or reduce do not wait for each other: the second step adds little to its job."""
    for operation, over_algbw in [
        ("all-reduce", 1.5),
        ("reduce-scatter", 0.75),
        ("all-gather", 0.75),
        ("broadcast", 1),
        ("reduce", 1),
        ("gather", 0.75),
        ("scatter", 0.75),
        ("all-to-all", 0.75),
    ]:
        job = {"kind": "collective", "operation": operation, "bytes": "1MB", "ranks": 4, "repeat": 2}
        run = weftline.run(SCENARIO | {"workload": [job]}, out=tmp_path / operation)
        for step in run.steps:
            own = 8e15 / (step["finish_ns"] - step["start_ns"])
            assert step["busbw_bps"] == pytest.approx(over_algbw * own) and step["busbw_bps"] < 100e9
        time = sum(step["time_ns"] for step in run.steps) / 2
        assert metric("busbw").value(run, Flows()) == pytest.approx(over_algbw * 8e15 / time), operation


def test_bandwidths_of_several_steps_are_over_the_times_that_they_add():
    steps = [
        {"bytes": 1000, "time_ns": time, "algbw_bps": 8e12 / own, "busbw_bps": 6e12 / own}
        for time, own in [(4000, 4000), (1000, 4000)]
    ]
    assert rate(steps, "algbw_bps") == pytest.approx(8e9 * 2000 / 5000)
    assert rate(steps, "busbw_bps") == pytest.approx(6e9 * 2000 / 5000)


def test_a_barrier_has_a_row_without_bandwidths_and_is_a_job(tmp_path, capsys):
    barrier = {"kind": "collective", "operation": "barrier", "ranks": 4, "repeat": 3, "compute": "5us"}
    run = weftline.run(SCENARIO | {"workload": [barrier]}, out=tmp_path / "run")
    assert has_jobs(run)
    assert main(["jobs", str(run.out)]) == 0
    text = capsys.readouterr().out
    assert "Collective operations by size" in text and "barrier" in text and "Average bus" not in text
    assert main(["jobs", str(run.out), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["sizes"]
    assert (row["operation"], row["steps"], row["busbw_GBps"], row["algbw_GBps"]) == (
        "barrier",
        3,
        None,
        None,
    )
    assert row["time_us"] == pytest.approx(sum(step["time_ns"] for step in run.steps) / 3e3)
