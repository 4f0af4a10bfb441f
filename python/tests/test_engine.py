"""The package with the real engine: short runs from end to end. Skipped where it has not been built."""

import json
import sys
from pathlib import Path

import pytest

import weftline
from weftline import _native
from weftline.cli.main import main
from weftline.reproduce import experiments, runner
from weftline.scenario import status_of

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)

STAR = {
    "name": "star",
    "topology": {"kind": "star", "hosts": 5, "host_link": {"rate": "100Gbps", "delay": "1us"}},
    "transport": {"kind": "rdma", "controller": {"kind": "hpcc"}},
    "workload": [{"kind": "incast", "hosts": "0-3", "receiver": "4", "size": "100KB"}],
    "measure": {
        "queues": {"ports": "s0->host4", "every": "1us"},
        "queue_histogram": {"ports": "s0->host4", "every": "1us"},
        "goodput": {"by": "group", "every": "5us"},
    },
}

CODE = """
import weftline


class Half(weftline.Controller):
    def __init__(self, flow):
        super().__init__(flow)
        self.rate_bps = flow.line_rate_bps / 8

    def on_ack(self, ack):
        pass
"""


@pytest.fixture(autouse=True)
def empty_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_four_flows_finish_and_every_table_has_them():
    run = weftline.run(STAR)
    assert run.summary["status"] == "done" and run.summary["flows_done"] == 4
    assert run.slowdown(bins=1)["overall"]["count"] == 4
    assert run.queues["percentiles"]["max"] > 0
    assert sum(value for _, value in run.over_time("goodput_bps")["incast"]) > 0


def test_tables_go_to_arrow_with_the_columns_of_the_contract():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(weftline.run(STAR).flows)
    assert table.num_rows == 4
    assert {"flow_id", "src", "dst", "size_bytes", "start_ns", "finish_ns", "fct_ns", "slowdown"} <= set(
        table.column_names
    )


def test_tables_become_frames_of_every_library_and_plain_rows():
    flows = weftline.run(STAR).flows
    rows = flows.to_dicts()
    assert sorted(row["flow_id"] for row in rows) == [0, 1, 2, 3] and list(rows[0]) == flows.columns
    assert flows.to_dicts(max_rows=2) == rows[:2]
    for package, method in (("pyarrow", "to_arrow"), ("polars", "to_polars"), ("pandas", "to_pandas")):
        pytest.importorskip(package)
        frame = getattr(flows, method)()
        assert list(frame["fct_ns"].to_numpy()) == [row["fct_ns"] for row in rows]
    html = flows._repr_html_()
    assert "<th>fct_ns</th>" in html and "the first" not in html


def test_a_table_without_its_library_names_it(monkeypatch):
    flows = weftline.run(STAR).flows
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(weftline.InputError, match="pip install polars"):
        flows.to_polars()


def test_a_damaged_table_raises():
    run = weftline.run(STAR)
    flows = run.flows
    (run.out / "flows.parquet").write_bytes(b"PAR1")
    with pytest.raises(weftline.DamagedError):
        flows.to_dicts()


def test_the_same_scenario_gives_the_same_fingerprint():
    first = weftline.run(STAR, out="a")
    again = weftline.run((first.out / "scenario.toml"), out="b")
    assert first.summary["fingerprint"] == again.summary["fingerprint"]


def test_the_same_run_again_returns_the_results_that_are_there(capsys):
    first = weftline.run(STAR)
    again = weftline.run(STAR)
    assert (first.reused, again.reused, again.out) == (False, True, first.out)
    assert "has the results of this run already; force=True runs it again" in capsys.readouterr().err
    assert not weftline.run(STAR, force=True).reused
    # The number of threads does not change results.
    assert weftline.run(STAR, threads=2).reused


def test_results_of_another_run_are_refused_with_what_differs(tmp_path, monkeypatch):
    weftline.run(STAR, out="a")
    with pytest.raises(
        weftline.InputError, match=r"a: holds the results of another run: its scenario.*force"
    ):
        weftline.run(STAR, out="a", seed=77)
    monkeypatch.setattr("weftline.provenance.build", lambda: "ffffffffffff")
    with pytest.raises(weftline.InputError, match="another build of weftline made them"):
        weftline.run(STAR, out="a")
    # A build that cannot be read is equal to nothing.
    monkeypatch.setattr("weftline.provenance.build", lambda: None)
    with pytest.raises(weftline.InputError, match="another build of weftline made them"):
        weftline.run(STAR, out="a")


def test_a_file_with_other_contents_makes_another_run(tmp_path):
    trace = tmp_path / "flows.csv"
    trace.write_text("src,dst,size_bytes,start_ns\n0,1,1000,0\n")
    scenario = {**STAR, "workload": [{"kind": "trace", "file": str(trace)}]}
    weftline.run(scenario, out="a")
    assert weftline.run(scenario, out="a").reused
    trace.write_text("src,dst,size_bytes,start_ns\n0,1,2000,0\n")
    with pytest.raises(weftline.InputError, match="the content of the files that it names differs"):
        weftline.run(scenario, out="a")


def test_changed_code_of_a_controller_runs_again(tmp_path):
    (tmp_path / "law.py").write_text(CODE)
    controllers = {"half": "law.py:Half"}
    scenario = {**STAR, "transport": {"kind": "rdma", "controller": {"kind": "python:half"}}}
    first = weftline.run(scenario, controllers=controllers)
    assert weftline.run(scenario, controllers=controllers).reused
    (tmp_path / "law.py").write_text(CODE.replace("/ 8", "/ 80"))
    changed = weftline.run(scenario, controllers=controllers)
    assert not changed.reused and changed.out != first.out
    assert weftline.Run.open(first.out).summary["fingerprint"] == first.summary["fingerprint"]
    assert changed.summary["slowdown"]["p50"] > first.summary["slowdown"]["p50"]


def test_damaged_results_are_no_results():
    first = weftline.run(STAR)
    (first.out / "flows.parquet").write_bytes(b"PAR1")
    with pytest.warns(weftline.errors.ResultsWarning, match="run again"):
        assert not weftline.run(STAR).reused


def test_an_unknown_name_is_reported_with_the_nearest(tmp_path, capsys):
    path = tmp_path / "wrong.toml"
    path.write_text('[topology]\nkind = "star"\n[transport]\nkind = "rdma"\ncontroller = { kind = "hpc" }\n')
    assert main(["run", str(path)]) == 2
    output = capsys.readouterr().err
    assert "wrong.toml:5" in output and 'did you mean "hpcc"?' in output


def test_a_controller_in_python_steers_its_flows():
    class Slow(weftline.Controller):
        def __init__(self, flow):
            super().__init__(flow)
            self.rate_bps = flow.line_rate_bps / 40

        def on_ack(self, ack):
            self.rate_bps = self.flow.line_rate_bps / 40

    change = {"transport.controller": {"kind": "python:slow"}}
    slow = weftline.run(STAR, set=change, controllers={"slow": Slow})
    fast = weftline.run(STAR)
    assert slow.slowdown(bins=1)["overall"]["p50"] > 1.5 * fast.slowdown(bins=1)["overall"]["p50"]


def test_an_exception_in_a_controller_is_a_failed_run_with_its_text():
    class Broken(weftline.Controller):
        def on_ack(self, ack):
            raise ValueError("out of ideas")

    with pytest.raises(weftline.RunFailed, match="out of ideas"):
        weftline.run(STAR, set={"transport.controller": {"kind": "python:x"}}, controllers={"x": Broken})


def test_progress_that_raises_stops_the_run_and_leaves_its_folder():
    def stop(state):
        raise KeyboardInterrupt

    long = STAR | {"workload": [{"kind": "incast", "hosts": "0-3", "receiver": "4", "size": "500MB"}]}
    with pytest.raises(KeyboardInterrupt):
        weftline.run(long, out="a", progress=stop)
    assert status_of(Path("a")) == "interrupted"


@pytest.mark.parametrize("name", [n for n in experiments.names() if not experiments.load(n).tries])
@pytest.mark.parametrize("full", [False, True])
def test_the_engine_accepts_every_scenario_of_every_experiment(name, full, tmp_path):
    experiment = experiments.load(name)
    assert runner.plan_points(experiment, runner.chosen_size(experiment, full=full), tmp_path)


def test_a_short_demo_ends_with_a_page(capsys, tmp_path):
    pytest.importorskip("vl_convert")
    assert main(["reproduce", "demo", "--duration", "200us"]) == 0
    assert (tmp_path / "out/demo/report.html").stat().st_size > 500_000
    assert "HPCC" in capsys.readouterr().out


def test_check_list_schema_and_explain_answer(tmp_path, capsys):
    path = tmp_path / "star.toml"
    path.write_text(weftline.scenarios.to_toml(STAR))
    for arguments in (
        ["check", str(path)],
        ["list"],
        ["schema"],
        ["explain", "hpcc"],
        ["explain", "slowdown"],
    ):
        assert main(arguments) == 0, arguments
    main(["check", str(path), "--json"])
    assert capsys.readouterr().out
    main(["schema"])
    assert json.loads(capsys.readouterr().out)


def test_under_hpcc_ns3_balancers_of_flowlets_tell_flows_apart(tmp_path):
    # There packets carry a UDP port for the hash of ECMP, and flows of different pairs have the same ports.
    text = """
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 8
[transport]
kind = "rdma"
controller = { kind = "dcqcn" }
[switch]
balancer = { kind = "letflow" }
[[workload]]
kind = "poisson"
load = 0.3
count = 200
destinations = "inter-rack"
[compat]
like = "hpcc-ns3"
"""
    (tmp_path / "s.toml").write_text(text)
    run = weftline.run(tmp_path / "s.toml", out=tmp_path / "out")
    # A flowlet at least at the leaf of its sender, and one of acknowledgements at that of its receiver.
    # Two flows may share a slot of the table.
    assert run.summary["flows"] == 200 and run.summary["flowlets"] > 390
