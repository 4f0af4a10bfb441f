"""Numbers of a run from Python: what is chosen by a wrong name or range is an error, not a zero."""

import json
import pickle
import shutil
import warnings
from types import SimpleNamespace

import pytest

import weftline
from weftline import _native, run_status, scenarios
from weftline.cli.main import main
from weftline.errors import DamagedError, InputError, ResultsWarning
from weftline.measures import flow_rows, over_time, pooling
from weftline.measures.metrics import METRICS, metric
from weftline.sweeps import store

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")

SCENARIO = {
    "name": "small",
    "topology": {"kind": "star", "hosts": 4},
    "workload": [
        {"kind": "poisson", "size": "50KB", "duration": "100us", "load": 0.4, "group": "web"},
        {"kind": "incast", "senders": 2, "size": "10KB", "start": "1s", "group": "late"},
    ],
    "run": {"until": "200us"},
    "measure": {"queues": {"ports": "*", "every": "10us"}},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return weftline.run(SCENARIO, out=tmp_path_factory.mktemp("run") / "small")


def test_a_series_that_no_run_can_have_is_an_error_and_one_not_measured_is_empty(run):
    assert run.over_time("queue_bytes") and run.over_time("goodput_bps") == {}
    assert run.over_time("tail_share") == {}, "a series that a queue discipline declares"
    with pytest.raises(InputError, match='no series "queue_byts": did you mean "queue_bytes"'):
        run.over_time("queue_byts")
    with pytest.raises(InputError, match="recorded: queue_bytes; internals of controllers need"):
        run.over_time("alpha")
    with pytest.raises(InputError, match="max_points: expected a whole number"):
        run.over_time("queue_bytes", max_points=-1)
    # In tables and figures of several schemes, one may have what the other does not.
    assert run.recorded("alpha") == {} and over_time.reader("mean of alpha")(run) is None


@pytest.mark.parametrize("number", ["completion", "deadlines", "distribution", "slowdown"])
def test_a_group_that_the_run_does_not_have_is_an_error_that_names_the_known_ones(run, number):
    with pytest.raises(InputError, match=r'group "wbe".*did you mean "web".*known: web'):
        getattr(run, number)(group="wbe")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            {"reason": "no payload was delivered for 1s (run.stall = 1s)"},
            "stalled: flows are unfinished, and no payload was delivered for 1s (run.stall = 1s); see o",
        ),
        ({"waiting": ["rank 0 waits", "rank 1 waits"]}, "stalled: rank 0 waits; rank 1 waits; see o"),
        (
            {"reason": "no payload was delivered for 1s (run.stall = 1s)", "waiting": ["rank 0 waits"]},
            "stalled: flows are unfinished, and no payload was delivered for 1s (run.stall = 1s); rank 0 "
            "waits; see o",
        ),
        # As former versions wrote it.
        ({}, "stalled: flows are unfinished; see o"),
    ],
)
def test_a_stalled_run_states_the_cause_that_applied(found, text):
    run = SimpleNamespace(summary={"status": "stalled"} | found, out="o")
    assert run_status.ending(run) == text and " or " not in text


def test_a_group_none_of_whose_flows_started_has_no_flows(run):
    assert run.completion(group="late")["count"] == 0 and run.completion(group="web")["count"] > 0
    assert run.deadlines(group="late") == (0, 0)


def test_sizes_are_bytes_or_text_with_a_unit(run):
    every = run.completion()["count"]
    for size in (50_000, 5e4, "50KB"):
        assert run.completion(min_size=size, max_size=size)["count"] == every
    assert run.completion(min_size="50.001KB")["count"] == run.completion(max_size="49KB")["count"] == 0
    with pytest.raises(InputError, match="expected min_size at most max_size, found 10 and 5"):
        run.completion(min_size=10, max_size=5)
    for wrong in ("10", "10us", -1, 1.5, None, [1], True):
        with pytest.raises(InputError, match="min_size: expected a size"):
            run.completion(min_size=wrong)
    for size in ("9" * 300 + "KB", "9" * 300):
        with pytest.raises(InputError, match="min_size: expected a size") as error:
            run.completion(min_size=size)
        assert len(str(error.value)) < 150


def test_a_difference_is_that_of_a_line_or_of_its_label(run):
    found = weftline.compare({"first": run, "second": run})
    assert found.difference("fct_mean", "second") == found.difference("fct_mean", found.lines[1])
    assert found.separation("fct_mean", "second").order == 0 and found.base_of("second") is found.lines[0]
    for wrong in (1, "secnd", None):
        with pytest.raises(InputError, match=r"expected a line or its label, found .*known: first, second"):
            found.difference("fct_mean", wrong)


@pytest.mark.parametrize("open_it", [weftline.Run.open, weftline.load, weftline.compare])
def test_a_file_in_place_of_the_folder_of_a_run_is_named(tmp_path, open_it):
    file = tmp_path / "base.txt"
    file.write_text("")
    with pytest.raises(InputError, match=r"base\.txt: is a file; expected the folder of a run"):
        open_it(file)


def test_compare_takes_runs_or_several_scenarios_and_not_one(run, tmp_path, capsys):
    file = tmp_path / "base.toml"
    file.write_text(scenarios.to_toml(SCENARIO))
    assert main(["compare", str(file)]) == 2
    assert "base.toml: is one scenario; expected two scenarios to compare" in capsys.readouterr().err
    assert main(["compare", str(run.out), str(file)]) == 2
    assert "base.toml: is a scenario; expected the folder of a run" in capsys.readouterr().err
    assert main(["compare", str(file), str(file)]) == 0
    assert "the settings in force are the same" in capsys.readouterr().out


def test_a_run_whose_folder_holds_other_results_or_none_reads_nothing_of_them(tmp_path):
    one = weftline.run(SCENARIO, out=tmp_path / "r")
    same = weftline.run(SCENARIO, out=tmp_path / "r", force=True)
    table, slowdown = one.flows, one.slowdown()
    assert one.completion() == same.completion() and table.to_dicts() == same.flows.to_dicts()
    other = weftline.run(SCENARIO, set={"workload.0.load": 0.9}, out=tmp_path / "r", force=True)
    reads = [
        lambda: one.flows,
        lambda: one.scenario,
        lambda: one.steps,
        lambda: one.queues,
        table.to_dicts,
        one.verify,
        one.backlog,
        one.shares,
        one.deadlines,
        one.distribution,
        lambda: one.completion(max_size=1000),
        lambda: one.over_time("queue_bytes"),
        lambda: flow_rows.read(one),
        lambda: METRICS["backlog_growth"].read(one),
    ]
    for read in reads:
        with pytest.raises(DamagedError, match="holds the results of another run now"):
            read()
    assert one.slowdown() == slowdown and other.over_time("queue_bytes") and other.verify()
    shutil.rmtree(tmp_path / "r")
    for read in (lambda: other.over_time("queue_bytes"), lambda: other.queues, other.backlog, other.verify):
        with pytest.raises(DamagedError, match="the results that were opened are no longer there"):
            read()


def test_results_without_digests_are_recognised_by_their_summary(run, tmp_path):
    shutil.copytree(run.out, tmp_path / "r")
    (tmp_path / "r/digests.json").unlink()
    summary = {key: value for key, value in run.summary.items() if key != "file_digests"}
    (tmp_path / "r/summary.json").write_text(json.dumps(summary))
    with pytest.warns(ResultsWarning):
        old = weftline.Run.read(tmp_path / "r")
    assert old.over_time("queue_bytes")
    (tmp_path / "r/summary.json").write_text(json.dumps(summary | {"flows": 1}))
    with pytest.raises(DamagedError, match="holds the results of another run now"):
        old.over_time("queue_bytes")


def test_a_table_and_a_scenario_go_to_other_processes(run):
    table = pickle.loads(pickle.dumps(run.flows))
    assert table.to_dicts() == run.flows.to_dicts()
    scenario = weftline.Scenario(SCENARIO, set={"workload.0.load": 0.5}, seed=3)
    assert repr(weftline.Scenario.__new__(weftline.Scenario)) == "<weftline.Scenario, not loaded>"
    again = pickle.loads(pickle.dumps(scenario))
    assert again.resolved == scenario.resolved and again.values["seed"] == 3


def test_what_a_relative_path_opened_is_read_from_another_working_directory(run, tmp_path, monkeypatch):
    shutil.copytree(run.out, tmp_path / "r")
    (tmp_path / "trace.csv").write_text("start_ns,src,dst,size_bytes\n0,0,1,1000\n")
    trace = [{"kind": "trace", "file": "trace.csv"}]
    (tmp_path / "s.toml").write_text(scenarios.to_toml({**SCENARIO, "workload": trace}))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    weftline.sweep(SCENARIO, {"workload.0.load": [0.4, 0.5]}, seeds=1, out="s", jobs=1)
    opened, scenario = weftline.Run.open("r"), weftline.Scenario("s.toml")
    table, stored = opened.flows, weftline.load("s")
    assert str(opened.out) == "r" and str(stored.path) == "s"
    monkeypatch.chdir("elsewhere")
    assert table.to_dicts() == opened.flows.to_dicts() == run.flows.to_dicts()
    assert opened.verify() and opened.out == tmp_path / "r"
    assert len(stored.rows) == 2 and stored.path == tmp_path / "s"
    assert pickle.loads(pickle.dumps(scenario)).resolved == scenario.resolved
    assert scenario.run(out="t").summary["flows"] == 1


def test_an_answer_that_is_changed_does_not_change_the_next_one(run):
    def answers():
        return run.completion(), run.slowdown(), metric("fct_p99").read(run)

    before = json.dumps(answers())
    completion, slowdown, _ = answers()
    completion["fct_ns"]["p99"] /= 1e6
    slowdown["overall"]["p50"] = slowdown["bins"].clear()
    assert json.dumps(answers()) == before


@pytest.fixture
def traced(tmp_path):
    """A scenario of a trace, and what writes a trace of some flows."""

    def write(folder, flows):
        folder.mkdir(exist_ok=True)
        rows = [f"{flow},3,1000,0\n" for flow in range(flows)]
        (folder / "t.csv").write_text("".join(["src,dst,size_bytes,start_ns\n", *rows]))

    star = {"kind": "star", "hosts": 4}
    return {"topology": star, "workload": [{"kind": "trace", "file": "t.csv"}]}, write


def test_a_scenario_whose_file_was_written_since_is_not_run_as_of_the_new_one(tmp_path, monkeypatch, traced):
    scenario, write = traced
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 1)
    before = weftline.Scenario(scenario)
    write(tmp_path, 3)
    with pytest.raises(InputError, match=r"t\.csv: was written since this Scenario read it"):
        before.run(out="run")
    assert not (tmp_path / "run").exists()
    assert weftline.run(scenario, out="run").summary["flows"] == 3


def test_a_scenario_that_is_unpickled_elsewhere_has_the_files_of_its_own_folder(
    tmp_path, monkeypatch, traced
):
    scenario, write = traced
    for name, flows in (("a", 1), ("b", 3)):
        write(tmp_path / name, flows)
    monkeypatch.chdir(tmp_path / "a")
    pickled = pickle.dumps(weftline.Scenario(scenario))
    monkeypatch.chdir(tmp_path / "b")
    assert pickle.loads(pickled).run(out="run").summary["flows"] == 1


def test_a_sweep_does_not_mix_two_contents_of_a_file(tmp_path, monkeypatch, traced):
    scenario, write = traced
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 1)
    point = store.point(tmp_path / "s", scenarios.load(scenario), {}, 1, name="p")
    assert point.scenario().check()
    write(tmp_path, 3)
    with pytest.raises(InputError, match=r"t\.csv: the content has changed since the sweep began"):
        point.scenario()


def test_points_whose_file_changed_are_run_by_a_sweep_that_finds_it_as_it_was(tmp_path, monkeypatch, traced):
    scenario, write = traced
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 1)

    def sweep():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return weftline.sweep(scenario, {"workload.0.start": ["0us", "1us"]}, out="s", jobs=1)

    keep = store.Store.keep
    with monkeypatch.context() as during:
        during.setattr(store.Store, "keep", lambda *run: (keep(*run), write(tmp_path, 3)))
        failed = sweep().failed
    assert len(failed) == 1 and "since the sweep began" in failed[0][-1]
    write(tmp_path, 1)
    assert sweep().failed == []


def test_flows_are_the_same_where_a_link_alone_is_faster(tmp_path):
    def runs(name, **changes):
        return [
            weftline.run(SCENARIO, set=changes, seed=seed, out=tmp_path / f"{name}{seed}") for seed in (1, 2)
        ]

    base = runs("base")
    assert pooling.same_traffic(base, runs("slower", **{"topology.host_link.delay": "2us"}))
    # A job that has no rows in the table of flows.
    job = {"kind": "collective", "messages": False}
    one, other = (
        runs(size, workload=[*SCENARIO["workload"], {**job, "bytes": size}]) for size in ("10KB", "20KB")
    )
    assert not pooling.same_traffic(one, other)
    assert not pooling.same_traffic(base, runs("larger", **{"topology.hosts": 5}))
    assert not pooling.same_traffic(base, runs("loaded", **{"workload.0.load": 0.5}))


def test_a_replay_of_flows_that_start_together_is_the_same_run(tmp_path):
    leaf_spine = {"kind": "leaf-spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 4}
    flows = [{"kind": "permutation", "size": "30KB"}, {"kind": "permutation", "size": "20KB"}]
    first = weftline.run({"topology": leaf_spine, "workload": flows}, out=tmp_path / "first")
    trace = [{"kind": "trace", "file": str(tmp_path / "first/flows.parquet")}]
    again = weftline.run({"topology": leaf_spine, "workload": trace}, out=tmp_path / "again")
    assert again.summary["fingerprint"] == first.summary["fingerprint"]


def test_the_goodput_of_a_job_without_rows_counts_next_to_a_group_that_does_not_start(tmp_path):
    job = {"kind": "collective", "bytes": "100KB", "messages": False, "group": "job"}
    scenario = {
        **SCENARIO,
        "workload": [job, SCENARIO["workload"][1]],
        "measure": {"goodput": {"by": "group"}},
    }
    run = weftline.run(scenario, out=tmp_path / "run")
    assert over_time.reader("max of goodput_bps")(run) > 0


def test_what_a_job_without_rows_delivers_is_not_taken_from_the_backlog_of_flows(tmp_path):
    web = {"kind": "poisson", "size": "50KB", "count": 20, "load": 0.4, "group": "web", "hosts": "0-1"}
    job = {"kind": "collective", "bytes": "1MB", "messages": False, "group": "job", "hosts": "2-3"}
    scenario = {**SCENARIO, "workload": [web, job], "run": {}, "measure": {"goodput": {"by": "group"}}}
    found = weftline.run(scenario, out=tmp_path / "run").backlog()
    alone = weftline.run({**scenario, "workload": [web]}, out=tmp_path / "alone").backlog()
    assert found == pytest.approx(alone) and found["last_bytes"] >= 0
