"""Sweeps on the engine itself: killed and resumed, intervals that cover a known mean, flows left out."""

from __future__ import annotations

import contextlib
import json
import math
import random
import signal
import threading
import time
from pathlib import Path

import commands
import pytest
from texts import FABRIC

import weftline
from weftline import _native, columns
from weftline.cli.main import main
from weftline.measures import flow_rows, stats, steady
from weftline.measures.metrics import METRICS, Flows
from weftline.sweeps import executor, runner, store, sweepfile, tables

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")

SWEEP = """
scenario = "fabric.toml"
seeds = 5
[[axis]]
name = "scheme"
key = "transport.controller.kind"
values = ["hpcc", "dctcp", "timely"]
[[axis]]
name = "load"
key = "workload.0.load"
range = { from = 0.2, to = 0.5, step = 0.1 }
[report]
metrics = ["slowdown_p50", "slowdown_p99", "goodput", "fct_mean"]
along = "load"
"""
MD1 = """
name = "md1"
[topology]
kind = "star"
hosts = 33
host_link = { rate = "4Tbps", delay = "1us" }
[[topology.override]]
between = ["host32", "s0"]
rate = "10Gbps"
[switch]
pfc = { enabled = false }
[transport]
kind = "rdma"
controller = { kind = "none" }
[[workload]]
kind = "poisson"
size = "1000B"
hosts = "0-31"
to = "32"
capacity = "10Gbps"
load_counts = "wire"
load = 0.5
duration = "2500us"
"""


def files(folder: Path) -> Path:
    (folder / "fabric.toml").write_text(FABRIC)
    (folder / "sweep.toml").write_text(SWEEP)
    return folder / "sweep.toml"


def test_a_sweep_killed_twenty_times_gives_the_same_bytes_as_one_that_was_not(tmp_path):
    sweep = files(tmp_path)
    whole = commands.start("sweep", str(sweep), "--quiet", "--out", str(tmp_path / "whole"))
    assert whole.wait(timeout=300) == 0, whole.stderr.read()
    chance = random.Random(1)
    store, landed = tmp_path / "killed", 0
    for _ in range(20):
        child = commands.start("sweep", str(sweep), "--quiet", "--out", str(store))
        # Somewhere between the start of Python and the third point that this one finishes.
        before, wanted = finished(store), chance.randrange(3)
        until = time.monotonic() + 30
        while child.poll() is None and finished(store) - before < wanted and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02) if wanted else chance.uniform(0, 0.3))
        landed += child.poll() is None
        child.kill()
        child.communicate()
    assert landed >= 10, "most of them were at work when they were killed"
    last = commands.start("sweep", str(sweep), "--quiet", "--out", str(store))
    assert last.wait(timeout=300) == 0, last.stderr.read()
    for name in ("points.csv", "table.csv"):
        assert (store / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert finished(store) == 60 and not list((store / "parts").iterdir())
    assert not (store / "damaged").exists(), "what is in its place is whole"


def finished(store: Path) -> int:
    try:
        return len(list((store / "points").iterdir()))
    except FileNotFoundError:
        return 0


def test_two_sweeps_at_once_on_one_store_run_each_point_once(tmp_path):
    sweep = files(tmp_path)
    both = [commands.start("sweep", str(sweep), "--quiet", "--out", str(tmp_path / "s")) for _ in range(2)]
    for child in both:
        assert child.wait(timeout=300) == 0, child.stderr.read()
    text = (tmp_path / "s/index.jsonl").read_text()
    # An empty line stands where one sweep looked at the end of the file while the other wrote.
    lines = [json.loads(line) for line in text.splitlines() if line]
    # Lines with a stamp say that a run was checked, not that it was run.
    noted = [line["key"] for line in lines if not line["stamp"]]
    assert len(set(noted)) == len(noted) == 60


def test_the_interval_covers_the_mean_wait_of_md1_in_190_of_200_sweeps_or_so(tmp_path):
    # Mean wait rho S / (2 (1 - rho)) with rho 0.5 and S 1048 B at 10 Gb/s, on top of what a flow takes alone.
    (tmp_path / "md1.toml").write_text(MD1)
    report = {"metrics": ["nfct"], "warmup": "10%"}
    found = weftline.sweep(tmp_path / "md1.toml", {}, seeds=1000, report=report, out=tmp_path / "s")
    (cell,) = found.cells
    alone = columns.read(cell.runs[1].flows, ["ideal_fct_ns"])["ideal_fct_ns"][0]
    expected = 1 + 0.5 * 838.4 / (2 * 0.5) / alone
    values = list(found.values("nfct", cell).values())
    groups = [values[n : n + 5] for n in range(0, 1000, 5)]
    covered = sum(low <= expected <= high for low, high in map(stats.interval_t, groups))
    assert len(groups) == 200 and 0.90 <= covered / 200 <= 0.99, covered
    low, high = stats.interval_t(values)
    assert (high - low) / 2 < 0.01 * (expected - 1), "all of them together know the wait to a per cent"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "fabric.toml").write_text(FABRIC)
    return weftline.run(folder / "fabric.toml", set={"workload.0.duration": "3ms"}, out=folder / "out")


def test_columns_are_those_of_pyarrow(run):
    pyarrow = pytest.importorskip("pyarrow")
    names = ["flow_id", "size_bytes", "fct_ns", "deadline_ns", "met_deadline", "group", "start_ns"]
    assert columns.read(run.flows, names) == pyarrow.table(run.flows).select(names).to_pydict()


def test_columns_keep_what_is_missing(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(
        {
            "real": [1.5, None, 2.5, None],
            "flag": [True, None, False, True],
            "word": pyarrow.array(["a", "b", None, "a"]).dictionary_encode(),
            "count": pyarrow.array([1, 2, None, 4], pyarrow.uint64()),
        }
    )
    for part in (table, table.slice(1, 2), pyarrow.concat_tables([table.slice(2), table])):
        got = columns.read(part, ["real", "flag", "word", "count"])
        assert got == {name: part[name].to_pylist() for name in got}


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.completion])
@pytest.mark.parametrize("flows", [Flows(), Flows(min_size=10_000, max_size=10**6), Flows(group="poisson")])
def test_a_window_of_everything_counts_as_the_engine_does(run, name, flows):
    everything = steady.Window(first_ns=0, last_ns=math.inf)
    expected = METRICS[name].value(run, flows)
    assert METRICS[name].value(run, everything.of_flows(flows)) == pytest.approx(expected, rel=1e-12)


def test_a_window_leaves_out_the_ends_of_the_arrivals(run):
    starts = sorted(columns.read(run.flows, ["start_ns"])["start_ns"])
    window = steady.Window.of(run, "20%", "500us")
    first, last = starts[0], starts[-1]
    assert window.first_ns == pytest.approx(first + 0.2 * (last - first))
    assert window.last_ns == pytest.approx(last - 5e5)
    inside = sum(window.first_ns <= start <= window.last_ns for start in starts)
    assert 0 < inside < len(starts) and len(flow_rows.chosen(run, window.of_flows(Flows()))) == inside
    assert METRICS["fct_mean"].value(run, window.of_flows(Flows(group="nobody"))) is None


def test_what_chooses_flows_applies_to_every_metric_of_flows_or_is_named(tmp_path):
    flow = {"src": 0, "dst": 1, "size": "10KB", "deadline": "1ms"}
    late = {"src": 2, "dst": 1, "size": "50KB", "deadline": "101us", "start": "100us"}
    incast = {"kind": "incast", "receiver": "3", "request": "30KB", "group": "fast", "start": "200us"}
    star = {"kind": "star", "hosts": 4}
    scenario = {
        "topology": star,
        "workload": [{"kind": "flows", "flows": [flow, late], "group": "few"}, incast],
    }
    metrics = ["deadlines_met", "small_p95", "request_mean", "wire_bytes"]

    def sweep(**report):
        report = {"metrics": metrics, "answer": "request_mean < 1s", **report}
        found = weftline.sweep(scenario, {}, seeds=2, report=report, out=tmp_path / "s")
        return found, "\n".join(tables.notes(found)), found.tables()[0].note

    found, footer, answer = sweep()
    everything = found.rows[0]
    assert everything["deadlines_met"] == 0.5 and "All flows count;" in footer
    assert "no effect" not in footer + answer

    found, footer, answer = sweep(sizes={"min": "20KB"})
    assert [row["deadlines_met"] for row in found.rows] == [0, 0]
    assert found.rows[0]["request_mean"] == everything["request_mean"]
    assert "All flows of at least 20KB count;" in footer
    assert "Of [report], sizes has no effect on request_mean, wire_bytes." in footer
    assert answer.endswith("Of [report], sizes has no effect on request_mean.")

    found, footer, answer = sweep(group="few", warmup="50us")
    assert [row["deadlines_met"] for row in found.rows] == [0, 0]
    # The flow of 50 KB is alone; those of the incast, which are the smallest, are not.
    assert found.rows[0]["small_p95"] == pytest.approx(1) and everything["small_p95"] > 1.1
    assert found.rows[0]["request_mean"] is None
    assert (
        "All flows of group few count, except those that start in the first 50us of the arrivals;" in footer
    )
    assert "Of [report], group and warmup have no effect on wire_bytes." in footer and "effect" not in answer
    assert [row["no_effect"] for row in found.estimates] == ["", "", "", "group, warmup"]


def test_percentiles_of_few_requests_and_of_no_flows_are_warned_of(tmp_path):
    incast = {
        "kind": "incast",
        "senders": 2,
        "size": "10KB",
        "arrivals": "periodic",
        "every": "20us",
        "count": 4,
    }
    scenario = {"topology": {"kind": "star", "hosts": 4}, "workload": [incast]}
    report = {"metrics": ["request_p99", "slowdown_p99"]}
    found = weftline.sweep(scenario, {}, seeds=2, report=report, out=tmp_path / "s")
    warned = tables.warnings(found)
    assert "request_p99: some runs have 4 requests that count, too few for that percentile" in warned
    assert "slowdown_p99: some runs have 8 flows that count, too few for that percentile" in warned
    report = {"metrics": ["slowdown_p99"], "warmup": "1s", "sizes": {"min": "1KB"}}
    found = weftline.sweep(scenario, {}, seeds=2, report=report, out=tmp_path / "s")
    hint = "slowdown_p99 was not measured: no flow that counts with sizes and warmup of [report] finished"
    assert hint in tables.warnings(found)


def test_drops_of_links_that_no_network_has_are_answered_with_the_kinds_that_there_are(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 4},
        "workload": [{"kind": "incast", "senders": 2, "size": "10KB"}],
    }
    report = {"metrics": ["drops host -> leaf", "drops host -> s"]}
    found = weftline.sweep(scenario, {}, report=report, out=tmp_path / "s")
    warned = [text for text in tables.warnings(found) if text.startswith("drops ")]
    known = 'did you mean "host -> s"? known: host -> s, s -> host'
    assert warned == [f"drops host -> leaf: no link of this kind: {known}"]


def test_a_sweep_of_queues_states_that_ports_of_hosts_count(tmp_path):
    incast = {"kind": "incast", "senders": 2, "size": "10KB"}
    scenario = {"topology": {"kind": "star", "hosts": 4}, "workload": [incast]}

    def noted(ports: str, metric: str = "queue_p99") -> list[str]:
        measure = {"queue_histogram": {"ports": ports, "every": "1us"}}
        report = {"metrics": [metric]}
        found = weftline.sweep(
            {**scenario, "measure": measure}, {}, seeds=1, report=report, out=tmp_path / "s"
        )
        return [note for note in tables.notes(found) if note.startswith("Metrics of queues")]

    assert noted("*") == ["Metrics of queues are of 4 switch ports and 4 host ports."]
    assert noted("s0") == [] == noted("*", "slowdown_p99")


def test_an_overload_is_no_steady_state_and_a_light_load_is(tmp_path):
    (tmp_path / "md1.toml").write_text(MD1.replace('10Gbps"\nload_counts', '20Gbps"\nload_counts'))
    report = {"metrics": ["slowdown_mean"]}
    found = weftline.sweep(
        tmp_path / "md1.toml", {"workload.0.load": [0.3, 0.7]}, seeds=3, report=report, out=tmp_path / "s"
    )
    # 0.3 and 0.7 of 20 Gb/s: the link of 10 Gb/s is used to 60 and offered 140 per cent.
    light, heavy = (list(cell.runs.values()) for cell in found.cells)
    assert steady.remark(light, warmup=None) == ""
    assert "not a steady state" in steady.remark(heavy, warmup=None)
    assert "not a steady state" in steady.remark(heavy[:1], warmup=None)


def test_a_warmup_that_is_too_short_for_the_empty_beginning_is_named(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 8, "host_link": {"rate": "10Gbps", "delay": "1us"}},
        "transport": {"controller": {"kind": "dctcp"}},
        "workload": [{"kind": "poisson", "sizes": "websearch", "load": 0.7, "duration": "150ms"}],
    }
    report = {"metrics": ["slowdown_mean"], "warmup": "1%"}
    with pytest.warns(weftline.WeftlineWarning, match="leave out more of them"):
        found = weftline.sweep(scenario, {}, seeds=5, report=report, out=tmp_path / "s")
    runs = list(found.cells[0].runs.values())
    assert steady.remark(runs, warmup="") == steady.BEGINNING
    assert steady.remark(runs, warmup="1%") == steady.STILL_BEGINNING
    assert steady.remark(runs, warmup="20%") == ""
    # No warm-up shortens what is of the whole run, so none helps there.
    assert steady.remark(runs, warmup="20%", is_whole=True) == steady.WHOLE_BEGINNING
    assert found.remark(found.cells[0], "drops") == steady.WHOLE_BEGINNING


@pytest.mark.parametrize(
    "traffic",
    [
        {"kind": "incast", "senders": 5, "receiver": 0, "size": "20KB", "arrivals": "periodic", "count": 42},
        {"kind": "permutation", "size": "100KB", "repeat": 42},
    ],
)
def test_rounds_beyond_the_capacity_are_no_steady_state_and_a_light_load_of_them_is(tmp_path, traffic):
    """100 KB and headers take 84 us at 10 Gb/s: 60, 95 and 120 % of a link."""
    scenario = {
        "topology": {"kind": "star", "hosts": 6, "host_link": {"rate": "10Gbps", "delay": "1us"}},
        "transport": {"controller": {"kind": "dctcp"}},
        "workload": [traffic],
    }
    for every, says in (("140us", ""), ("88us", ""), ("70us", steady.GROWING)):
        changed = {**scenario, "workload": [{**traffic, "every": every}]}
        runs = [
            weftline.run({**changed, "seed": seed}, out=tmp_path / f"{every}{seed}") for seed in range(1, 4)
        ]
        assert steady.remark(runs, warmup="") == says
        assert steady.remark(runs[:1], warmup="") in ("", says)


@pytest.mark.parametrize(
    ("traffic", "says"),
    [
        ({"kind": "incast", "request": "140KB", "arrivals": "poisson"}, "not a steady state"),
        ({"kind": "request-response", "size": "20KB"}, "waited for their connections"),
    ],
)
def test_random_incasts_and_requests_beyond_the_capacity_are_no_steady_state(tmp_path, traffic, says):
    """150 % of what the links carry; requests wait for their connections instead of being under way."""
    capacity = {"incast": "120Gbps", "request-response": "60Gbps"}[traffic["kind"]]
    scenario = {
        "topology": {"kind": "star", "hosts": 8, "host_link": {"rate": "10Gbps", "delay": "1us"}},
        "workload": [{**traffic, "load": 1.0, "capacity": capacity, "duration": "2ms"}],
    }
    report = {"metrics": ["slowdown_mean"]}
    for load, is_over in ((0.2, False), (1.0, True)):
        changes = {"workload.0.load": [load]}
        found = weftline.sweep(scenario, changes, seeds=3, report=report, out=tmp_path / "s")
        (cell,) = found.cells
        runs = list(cell.runs.values())
        assert (says in steady.remark(runs, warmup=None)) == is_over
        assert any("waited" in text for text in runs[0].warnings) == (is_over and "waited" in says)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not say who waited")
def test_short_runs_keep_every_worker_at_work(tmp_path):
    (tmp_path / "fabric.toml").write_text(FABRIC.replace("1ms", "4ms"))
    sweep = sweepfile.read({"scenario": "fabric.toml", "seeds": 30}, file="<test>", base_dir=tmp_path)
    plan = runner.plan(sweep, tmp_path / "s")
    seen: dict[int, int] = {}
    began = time.monotonic()
    done = threading.Event()
    watch = threading.Thread(target=wanted_time, args=(seen, done))
    watch.start()
    executor.run(plan.points, store.Store.create(plan.path), jobs=2)
    took = time.monotonic() - began
    done.set()
    watch.join()
    # On a core or in line for one: what the sweep itself leaves idle is what counts, not who else works here.
    assert sum(sorted(seen.values())[-2:]) / 1e9 > 0.9 * 2 * took


def wanted_time(seen, done):
    """Note how long each worker ran or was ready to, in ns, until all is done."""
    while not done.wait(0.01):
        for thread in threading.enumerate():
            if thread.name.startswith("weftline-") and thread.native_id:
                with contextlib.suppress(OSError):
                    ran, waited, _ = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()
                    seen[thread.native_id] = int(ran) + int(waited)


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_table_that_is_damaged_inside_is_put_aside_and_run_again(tmp_path, capsys, quiet):
    (tmp_path / "fabric.toml").write_text(FABRIC)
    (tmp_path / "sweep.toml").write_text('scenario = "fabric.toml"\nseeds = 3\n')
    command = ["sweep", str(tmp_path / "sweep.toml"), "--out", str(tmp_path / "s")]
    assert main(command) == 0
    before = (tmp_path / "s/points.csv").read_bytes()
    harmed = next((tmp_path / "s/points").iterdir()) / "flows.parquet"
    data = bytearray(harmed.read_bytes())
    data[100:-8] = bytes(byte ^ 0x5A for byte in data[100:-8])
    harmed.write_bytes(data)
    capsys.readouterr()
    assert main(["report", str(tmp_path / "s"), "--out", str(tmp_path / "page.html")]) == 0
    output = capsys.readouterr().err
    assert "1 of 3 runs damaged and left out" in output and f"{harmed}: the results are damaged" in output
    assert main(command + quiet) == 0
    output = capsys.readouterr()
    assert ("slowdown, p99" in output.out) != bool(quiet) and "damaged results are now in" in output.err
    assert main(command) == 0
    assert (tmp_path / "s/points.csv").read_bytes() == before


def test_ctrl_c_ends_a_sweep_at_once_and_keeps_what_is_finished(tmp_path):
    (tmp_path / "fabric.toml").write_text(FABRIC.replace("1ms", "50ms"))
    (tmp_path / "sweep.toml").write_text('scenario = "fabric.toml"\nseeds = 50\n')
    child = commands.start("sweep", str(tmp_path / "sweep.toml"), "--out", str(tmp_path / "s"))
    until = time.monotonic() + 60
    while finished(tmp_path / "s") < 1 and child.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, output = child.communicate(timeout=60)
    assert child.returncode == 1 and b"interrupted; finished runs are kept" in output
    assert time.monotonic() - began < 20, "other runs may want the cores too"
    assert not list((tmp_path / "s/parts").iterdir())
