"""The native module itself: runs, folders, tables, interrupts, controllers in Python."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
import texts

native = pytest.importorskip("weftline._native", reason="the native module is not built")
if not hasattr(native, "Table"):
    pytest.skip("the native module is not built", allow_module_level=True)

STAR = f"""
seed = 1
{texts.star("star", hosts=8, sizes='sizes = "websearch"', load=0.5, duration="1ms")}
group = "web"
[run]
until = "flows-done"
[measure]
queues = {{ ports = "*", every = "10us" }}
queue_histogram = {{ ports = "*", every = "1us" }}
"""
ENDLESS = (("workload.0.duration", "10s"), ("workload.0.load", "0.8"))


def start(out, *, sets=(), seed=None, force=False, progress=None, controllers=None, memory=None):
    scenario = native.Scenario(STAR, "star.toml", ".", list(sets), seed, controllers)
    return json.loads(scenario.run(str(out), force=force, threads=1, progress=progress, memory=memory))


TREE = STAR.replace('kind = "star"\nhosts = 8', 'kind = "fat-tree"\nk = 4')


def threaded(out, threads, *sets):
    return json.loads(native.Scenario(TREE, "tree.toml", ".", list(sets)).run(str(out), threads=threads))


def test_threads_share_a_run_and_change_nothing_but_its_cost(tmp_path):
    one, two = threaded(tmp_path / "1", 1), threaded(tmp_path / "2", 2)
    assert (one["threads"], one["regions"], one["lookahead_ns"]) == (1, 1, None)
    assert (two["threads"], two["regions"], two["lookahead_ns"]) == (2, 2, 1000)
    assert two["fingerprint"] == one["fingerprint"] and two["slowdown"] == one["slowdown"]
    assert 1 <= two["balance"] < 1.3 and 1 < two["most_speedup"] <= 2 and 0 < two["crossing_share"] < 0.5
    # On busy cores several threads are not faster, which is reported.
    warnings = [warning for warning in two["warnings"] if "times as fast as one" not in warning]
    assert two["windows"] >= one["windows"] and warnings == []


def test_the_scenario_says_how_many_threads_where_nobody_else_does(tmp_path):
    assert threaded(tmp_path / "1", None, ("run.threads", "2"))["threads"] == 2
    assert threaded(tmp_path / "2", 1, ("run.threads", "2"))["threads"] == 1
    assert threaded(tmp_path / "3", 0)["threads"] >= 1


def test_a_run_that_cannot_be_shared_says_so_and_goes_on_with_one_thread(tmp_path):
    found = threaded(tmp_path / "1", 2, ("compat.like", "hpcc-ns3"))
    assert found["threads"] == 1 and "hpcc-ns3" in found["warnings"][0]
    out = str(tmp_path / "star")
    (warning,) = json.loads(native.Scenario(STAR, "star.toml", ".").run(out, threads=2))["warnings"]
    assert warning.startswith("threads: hosts stay with their switch")


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """The folder of a finished run."""
    out = tmp_path_factory.mktemp("runs") / "star"
    start(out)
    return out


def test_a_run_leaves_a_folder_that_says_what_it_came_to(tmp_path):
    summary = start(tmp_path / "a")
    assert summary["status"] == "done"
    assert summary["flows"] == summary["flows_done"] > 10
    assert summary["packet_hops"] > 10_000
    assert summary["slowdown"]["by_group"]["web"]["count"] == summary["flows"]
    assert summary.pop("out") == str(tmp_path / "a")
    assert json.loads((tmp_path / "a" / "summary.json").read_text()) == summary


def test_the_resolved_scenario_gives_the_same_bits(done, tmp_path):
    first = json.loads((done / "summary.json").read_text())
    text = (done / "scenario.toml").read_text()
    again = json.loads(native.Scenario(text, "again.toml", ".").run(str(tmp_path / "b"), threads=1))
    assert again["fingerprint"] == first["fingerprint"]
    other = start(tmp_path / "c", seed=2)
    assert other["seed"] == 2
    assert other["fingerprint"] != first["fingerprint"]


def test_a_folder_in_use_is_refused_unless_forced(done):
    with pytest.raises(native.InputError, match="--force"):
        start(done)
    start(done, force=True)


def test_flows_are_an_arrow_table(done):
    pyarrow = pytest.importorskip("pyarrow")
    flows = native.table(str(done), "flows")
    table = pyarrow.table(flows)
    assert table.column_names == flows.columns
    assert table.num_rows == json.loads((done / "summary.json").read_text())["flows"]
    assert min(table["slowdown"].to_pylist()) >= 1
    assert set(table["controller"].to_pylist()) == {"hpcc"}
    assert set(pyarrow.table(native.table(str(done), "series"))["metric"].to_pylist()) == {"queue_bytes"}
    assert pyarrow.table(native.table(str(done), "queues")).num_rows > 0


def test_flows_can_be_taken_by_polars(done):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(native.table(str(done), "flows"))
    assert frame["group"].unique().to_list() == ["web"]


def test_flows_can_be_read_by_pandas_and_duckdb(done):
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    frame = pandas.read_parquet(done / "flows.parquet")
    assert set(frame["group"]) == {"web"}
    assert frame["fct_ns"].min() > 0
    query = f"select count(*) from '{done / 'flows.parquet'}' where slowdown >= 1"
    ((count,),) = duckdb.sql(query).fetchall()
    assert count == len(frame)


def test_percentiles_come_as_json(done):
    found = json.loads(native.slowdown(str(done), 5, "equal-count"))
    assert sum(b["count"] for b in found["bins"]) == found["overall"]["count"]
    assert all(b["p50"] <= b["p95"] <= b["p99"] for b in found["bins"])
    queues = json.loads(native.queues(str(done)))
    assert queues["cdf"][-1][1] == 1
    assert queues["percentiles"]["p50"] <= queues["percentiles"]["max"]
    series = json.loads(native.series(str(done), "queue_bytes", 0, 10))["entities"]
    assert all(len(points) <= 10 for points in series.values())
    assert json.loads(native.series(str(done), "no_such_metric", 0, 10)) == {"entities": {}}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda out: start(out, sets=[("transport.controller.kind", "hpc")]), 'did you mean "hpcc"'),
        (lambda out: start(out, seed=-1), "seed: expected a whole number from 0"),
        (
            lambda out: start(out, memory="8 apples"),
            'memory: expected "none" or a size above zero such as "8GB"',
        ),
        (lambda out: start(out, memory="0GB"), 'such as "8GB", found "0GB"'),
        (lambda out: start(out, memory="-8GB"), "is negative"),
        (lambda out: start(out, memory=8), 'such as "8GB", found 8'),
        (lambda out: start(out, sets=[("run.memory", "8 apples")]), "run.memory=8 apples: expected"),
        (lambda out: native.table(str(out), "flows"), "expected the folder of a run"),
        (lambda out: native.table(str(out), "flow"), '"flows"'),
        (lambda out: native.slowdown(str(out), 0, "equal-count"), "bins: expected"),
        (lambda out: native.slowdown(str(out), 5, "decade"), '"decades"'),
        (lambda out: native.explain("hpc"), '"hpcc"'),
        (lambda out: native.Scenario("a = ", "s.toml", "."), "s.toml:1"),
        (lambda out: native.Scenario(STAR, "s.toml", ".").run(str(out), threads=-3), "threads: expected"),
        (lambda out: native.Scenario(STAR, "s.toml", ".").run(str(out), threads=2000), "0 to 1024"),
    ],
)
def test_wrong_input_says_what_was_expected(tmp_path, call, text):
    with pytest.raises(native.InputError) as raised:
        call(tmp_path / "out")
    assert text in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_progress_is_reported_and_can_stop_the_run(tmp_path):
    reported = []

    def progress(now):
        reported.append(now)
        if len(reported) == 3:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        start(tmp_path / "run", sets=ENDLESS, progress=progress)
    assert {"now_ns", "until_ns", "flows_done", "flows", "packet_hops", "hops_per_second", "seconds"} == set(
        reported[0]
    )
    assert reported[0]["packet_hops"] < reported[1]["packet_hops"]
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["status"] == "interrupted"


@pytest.fixture
def heeding_ctrl_c():
    """The parent process may ignore it, as a shell does for what it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding_ctrl_c")
def test_ctrl_c_ends_a_run_within_a_second_and_leaves_readable_files(tmp_path):
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path / "run", sets=ENDLESS)
    assert time.monotonic() - sent[0] < 1
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "interrupted"
    found = json.loads(native.slowdown(str(tmp_path / "run"), 5, "equal-count"))
    assert found["overall"]["count"] == summary["flows_done"] > 0


def held() -> int:
    """Bytes that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is looked at on Linux only")


@linux
def test_a_memory_limit_that_is_passed_ends_the_run_with_its_results_so_far(tmp_path):
    ballast = []

    def progress(now):
        # A run of this size needs little: what goes beyond the limit is ours.
        if now["flows_done"] > 0:
            ballast.append(bytearray(os.urandom(1 << 20) * 64))

    limit = held() + (100 << 20)
    summary = start(tmp_path / "run", sets=ENDLESS, progress=progress, memory=f"{limit}B")
    assert summary["status"] == "memory-limit"
    assert summary["memory_limit_bytes"] == limit < summary["memory_held_bytes"]
    assert summary["memory_held_bytes"] <= summary["peak_memory_bytes"]
    assert 0 < summary["flows_done"] < summary["flows"]
    assert summary["flows_unfinished"] == summary["flows"] - summary["flows_done"]
    found = json.loads(native.slowdown(str(tmp_path / "run"), 5, "equal-count"))
    assert found["overall"]["count"] == summary["flows_done"]
    table = native.table(str(tmp_path / "run"), "flows")
    pyarrow = pytest.importorskip("pyarrow")
    finished = pyarrow.table(table)["finish_ns"]
    # Those that had started or were about to; the others have no row.
    assert finished.null_count == len(finished) - summary["flows_done"] > 0


@linux
def test_a_folder_that_its_memory_limit_ended_can_be_compared_and_reported(tmp_path, capsys):
    from weftline.cli.main import main

    scenario = tmp_path / "star.toml"
    scenario.write_text(STAR)
    out = str(tmp_path / "run")
    assert main(["run", str(scenario), "--out", out, "--memory", "1MB", "--quiet"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("failed: the process used ") and "more than its memory limit of 1 MB" in message
    assert main(["compare", out]) == 0
    assert "is memory-limit; what it has is shown" in capsys.readouterr().err
    pytest.importorskip("vl_convert")
    assert main(["report", out]) == 0
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000


@linux
def test_a_network_beyond_the_memory_limit_does_not_begin_to_run(tmp_path):
    before = time.monotonic()
    large = [("topology", '{ kind = "fat-tree", k = 64 }'), ("workload.0.duration", "10ms")]
    summary = start(tmp_path / "run", sets=large, memory=f"{held() + (1 << 20)}B")
    assert time.monotonic() - before < 60
    assert (summary["status"], summary["end_ns"], summary["flows_done"]) == ("memory-limit", 0, 0)
    (warning,) = [text for text in summary["warnings"] if text.startswith("run.memory")]
    assert "exceed its limit of" in warning and "ends it early" in warning
    import weftline

    assert weftline.Run.open(tmp_path / "run").summary["status"] == "memory-limit"


@linux
def test_the_limit_of_the_call_goes_before_that_of_the_scenario(tmp_path):
    limited = [("run.memory", "1MB")]
    assert start(tmp_path / "a", sets=limited)["status"] == "memory-limit"
    assert start(tmp_path / "b", sets=limited, memory="none")["status"] == "done"
    assert start(tmp_path / "c", memory="100GB")["status"] == "done"


class Steady:
    """Sends at a fixed share of the line rate."""

    def __init__(self, flow):
        self.rate_bps = flow.line_rate_bps / 2
        self.cwnd_bytes = None
        self.acks = 0

    def on_ack(self, ack):
        assert ack.rtt_ns > 0 and ack.acknowledged <= ack.next_byte
        assert ack.hops == []


def lone(out, kind, **more):
    text = STAR.split("[[workload]]")[0] + (
        '[[workload]]\nkind = "flows"\nflows = [{ src = 0, dst = 1, size = "1MB", start = "0ns" }]\n'
    )
    sets = [("transport.controller.kind", kind)]
    return json.loads(native.Scenario(text, "lone.toml", ".", sets, None, more).run(str(out), threads=1))


def test_a_controller_in_python_steers_its_flow(tmp_path):
    fast = lone(tmp_path / "none", "none")
    half = lone(tmp_path / "half", "python:steady", steady=Steady)
    assert fast["slowdown"]["p50"] < 1.001
    assert 1.9 < half["slowdown"]["p50"] < 2.01


def test_a_controller_in_python_sees_the_path(tmp_path):
    seen = []

    class Watcher:
        needs_int = True

        def __init__(self, flow):
            assert flow.base_rtt_ns > 0 and flow.window_bytes > 0 and flow.mtu == 1000

        def on_ack(self, ack):
            seen.append([(hop.rate_bps, hop["queue_bytes"], hop.time_ns, hop.sent_bytes) for hop in ack.hops])
            if len(seen) == 1:
                self.first = ack.hops[0]
            self.since_first = ack.hops[0].since(self.first)

    lone(tmp_path / "run", "python:watcher", watcher=Watcher)
    assert len(seen) >= 1000
    assert all(len(hops) == 1 and hops[0][0] == 100_000_000_000 for hops in seen)


def test_an_exception_in_a_controller_ends_the_run_with_its_traceback(tmp_path):
    class Broken:
        def __init__(self, flow):
            pass

        def on_ack(self, ack):
            raise ZeroDivisionError("no such luck")

    class Unmade:
        def __init__(self):
            pass

    class Odd:
        def __init__(self, flow):
            self.rate_bps = "fast"

        def on_ack(self, ack):
            pass

    with pytest.raises(native.RunFailed, match="no such luck") as raised:
        lone(tmp_path / "a", "python:broken", broken=Broken)
    assert "in on_ack" in str(raised.value) and '"broken"' in str(raised.value)
    assert json.loads((tmp_path / "a" / "summary.json").read_text())["status"] == "failed"
    with pytest.raises(native.RunFailed, match="TypeError"):
        lone(tmp_path / "b", "python:unmade", unmade=Unmade)
    with pytest.raises(native.RunFailed, match="rate_bps is 'fast': expected a number of bit/s"):
        lone(tmp_path / "c", "python:odd", odd=Odd)
    with pytest.raises(native.InputError, match="expected a class"):
        lone(tmp_path / "d", "python:odd", odd=3)


def test_a_parquet_trace_of_other_tools_is_replayed(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "src": [0, 1],
        "dst": [2, 3],
        "size_bytes": [1000.0, 2000.0],
        "start_ns": [0, 10],
        "group": ["a", "b"],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "trace.parquet")
    text = STAR.split("[[workload]]")[0] + '[[workload]]\nkind = "trace"\nfile = "trace.parquet"\n'

    def run(out):
        return json.loads(native.Scenario(text, "t.toml", str(tmp_path)).run(str(tmp_path / out), threads=1))

    summary = run("a")
    assert summary["flows_done"] == 2
    assert set(summary["slowdown"]["by_group"]) == {"a", "b"}
    columns["dst"] = [2, 99]
    parquet.write_table(pyarrow.table(columns), tmp_path / "trace.parquet")
    with pytest.raises(native.InputError, match=r"trace.parquet.*row 1.*99"):
        run("b")


def test_list_and_explain_say_which_transports_a_controller_serves(capsys):
    from weftline.cli.main import main

    assert main(["list", "tcp-controllers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.endswith("[mptcp]")] == ["balia", "lia", "olia"]
    assert [line.split()[0] for line in lines if "rdma as" in line] == ["dctcp"]
    assert main(["explain", "tcp.dctcp"]) == 0
    assert "Transports: mptcp, rdma as tcp.dctcp, tcp" in capsys.readouterr().out


def test_window_controllers_run_over_rdma_alike_on_any_number_of_threads(tmp_path):
    def run(kind, threads):
        text = STAR.replace('"hpcc"', f'"{kind}"')
        out = str(tmp_path / f"{kind}-{threads}")
        return json.loads(native.Scenario(text, "star.toml", ".").run(out, threads=threads))

    for kind in ("tcp.dctcp", "bbr3"):
        one, two = run(kind, 1), run(kind, 2)
        assert one["fingerprint"] == two["fingerprint"] and one["flows_done"] == one["flows"]
