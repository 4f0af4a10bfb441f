"""Scenarios on real packets: runs, what ends them early, what cannot be run."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import weftline
from weftline import _native
from weftline.errors import InputError
from weftline.lab import dctcp, folder, lateness, network, plan, priority, runs
from weftline.lab.network import NAMED, Network, inside, records, started

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)
KERNEL = ["reno", "cubic", "bbr"]


def lab(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start the command line as a process of its own, which heeds Ctrl-C even if these tests do not."""
    return subprocess.Popen(
        [sys.executable, "-m", "weftline", "lab", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def ours() -> set[str]:
    """Return the namespaces that look like ones of the lab."""
    return {path.name for path in NAMED.glob("weftline-*")} if NAMED.is_dir() else set()


def wait_for_flows(process: subprocess.Popen[str], before: set[str]) -> None:
    """Wait until the process has its namespaces and its flows have begun."""
    for _ in range(200):
        time.sleep(0.05)
        if len(ours() - before) >= 7:
            time.sleep(1.2)
            return
        assert process.poll() is None, process.communicate()
    raise AssertionError("the run did not build its network")


@pytest.fixture
def nothing_left():
    """Every test leaves the namespaces that it found, and nothing that it registered."""
    before = ours()
    yield before
    # Another run of these tests may be at work on the same machine.
    others = {name for one in records() if one["alive"] for name in one["namespaces"]}
    assert not ours() - before - others
    assert not set(dctcp.registered()) - {one["id"] for one in records()}


def test_a_killed_process_that_nobody_has_waited_for_has_ended() -> None:
    assert started(os.getpid()) is not None
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert started(child.pid) is not None
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert started(child.pid) is None
    finally:
        child.kill()
        child.wait()


@pytest.mark.usefixtures("machine", "nothing_left")
def test_goodput_and_fairness_are_close_to_the_simulation(dumbbell: Path, tmp_path: Path) -> None:
    done = lab("run", dumbbell, "--out", tmp_path / "lab", "--json")
    out, err = done.communicate(timeout=90)
    assert done.returncode == 0, err
    summary = json.loads(out)
    assert summary["engine"] == "lab" and summary["flows_done"] == 2
    assert summary["lab"]["differs"] and summary["lab"]["lateness"]["links"]["p99_ns"]
    ports = summary["lab"]["ports"]
    sent = ports["s0.p2"]["packets_sent"]
    # Both flows cross the bottleneck; 2072 segments each, and more only as retransmissions.
    assert 4144 <= sent <= 1.1 * 4144
    weftline.run(dumbbell, out=tmp_path / "sim")
    found = weftline.compare(tmp_path / "sim", tmp_path / "lab").as_json()["agreement"][0]
    by_name = {one["name"]: one for one in found["verdicts"]}
    assert by_name["bytes of finished flows"]["lab"] == by_name["bytes of finished flows"]["simulated"]
    goodput, jain = by_name["mean goodput"], by_name["Jain index of goodputs"]
    assert 0.75 < goodput["lab"] / goodput["simulated"] < 1.25
    assert abs(jain["lab"] - jain["simulated"]) < 0.1
    # One run has no interval.
    assert {one["word"] for one in found["verdicts"]} == {"open"}
    over_time = weftline.Run.read(tmp_path / "lab").over_time("queue_bytes")
    assert 0 < max(value for _, value in over_time["s0.p2"]) <= 103_000
    assert weftline.Run.read(tmp_path / "lab").verify()


@pytest.mark.usefixtures("machine", "nothing_left")
def test_a_run_says_which_priority_its_processes_had(dumbbell: Path, tmp_path: Path) -> None:
    found = {}
    for asked in ("auto", "normal"):
        done = lab("run", dumbbell, "--out", tmp_path / asked, "--priority", asked, "--json")
        out, err = done.communicate(timeout=90)
        assert done.returncode == 0, err
        found[asked] = json.loads(out)["lab"]
        # It slept for 5 ms at a time, for three seconds.
        assert sum(found[asked]["lateness"]["processes"]["counts"]) > 200
    assert found["normal"]["priority"] == "normal"
    assert found["auto"]["priority"] in ("real-time", "nice -20")


def outcome(**what: Any) -> runs.Outcome:
    """Return what a run measured that had no flows."""
    return runs.Outcome(
        zero_ns=0,
        flows=what.pop("flows", {}),
        queues=[],
        counters={},
        relay={},
        start_lateness=what.pop("start_lateness", lateness.Histogram()),
        pressure=what.pop("pressure", None),
        status="done",
        seconds=1.0,
        **what,
    )


def late_by(ns: int) -> lateness.Histogram:
    """Return the histogram of something that was late once."""
    found = lateness.Histogram()
    found.add(ns)
    return found


@pytest.mark.parametrize(("waited_ns", "contaminated"), [(100_000, False), (1_000_000, True)])
def test_pressure_counts_only_where_the_processes_are_not_first(waited_ns: int, contaminated: bool) -> None:
    waited = late_by(waited_ns)
    for kind, expected in ((priority.REAL_TIME, contaminated), (priority.NORMAL, True)):
        found = outcome(pressure=80.0, waited=waited, priority=kind)
        assert bool(folder.contamination(lateness.Histogram(), 2_000_000, found)) is expected


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ({"start_lateness": late_by(150_000_000)}, []),
        ({"start_lateness": late_by(450_000_000)}, ["flows started up to 458.752 ms late"]),
        ({"clock_step_ns": 300_000}, []),
        ({"clock_step_ns": 3_000_000}, ["the time of day was set meanwhile"]),
        ({"flows": {0: {"refused": True}, 1: {}}}, ["1 flows were refused"]),
    ],
)
def test_what_the_machine_did_to_flows_contaminates_a_run(what: dict[str, Any], expected: list[str]) -> None:
    found = folder.contamination(lateness.Histogram(), 2_000_000, outcome(**what), 2e9)
    assert len(found) == len(expected) and all(text in one for text, one in zip(expected, found, strict=True))


def test_cores_are_kept_awake_while_the_file_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "latency"
    file.write_bytes(b"")
    monkeypatch.setattr(lateness, "CORES", file)
    with lateness.awake() as awake:
        assert awake and file.read_bytes() == bytes(4)
        held = [os.readlink(one) for one in Path("/proc/self/fd").iterdir() if one.exists()]
        assert str(file) in held
    held = [os.readlink(one) for one in Path("/proc/self/fd").iterdir() if one.exists()]
    assert str(file) not in held
    monkeypatch.setattr(lateness, "CORES", tmp_path / "nothing")
    with lateness.awake() as awake:
        assert not awake


def test_a_host_has_no_more_connections_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs.resource, "getrlimit", lambda _: (64, runs.OTHER_FILES + 3))
    flow = {"src": 0, "start_ns": 0.0, "finish_ns": 10.0}
    runs._check_files([{**flow, "dst": other} for other in (1, 2, 3)])
    runs._check_files([{**flow, "dst": 1, "start_ns": at, "finish_ns": at + 10.0} for at in range(0, 90, 10)])
    with pytest.raises(InputError, match="host 0 has more than 3 flows at a time"):
        runs._check_files([{**flow, "dst": other} for other in (1, 2, 3, 4)])
    with pytest.raises(InputError, match="host 0"):
        runs._check_files([{**flow, "dst": 1, "start_ns": at, "finish_ns": None} for at in range(0, 90, 10)])


def test_a_folder_that_cannot_be_written_to_is_found_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="cannot be written to"), runs._folders([tmp_path / "file" / "x"]):
        raise AssertionError("it began")
    with pytest.raises(KeyboardInterrupt), runs._folders([tmp_path / "new" / "1", tmp_path / "new" / "2"]):
        raise KeyboardInterrupt
    assert not (tmp_path / "new").exists()
    with runs._folders([tmp_path / "kept"]):
        (tmp_path / "kept" / "summary.json").write_text("{}")
    assert (tmp_path / "kept" / "summary.json").exists()


def test_a_queue_without_room_for_a_packet_is_refused(dumbbell: Path) -> None:
    scenario = runs.scenario_of(str(dumbbell), ["switch.queue.limit=1500B"], None)
    with pytest.raises(InputError, match="no room for a full packet, which is 1514 bytes"):
        plan.make(scenario, KERNEL, [])
    enough = runs.scenario_of(str(dumbbell), ["switch.queue.limit=1514B"], None)
    assert plan.make(enough, KERNEL, []).links


def test_what_has_no_place_in_the_lab_is_named_with_its_file(
    dumbbell: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs.doctor, "congestion_controls", lambda: KERNEL)
    scenario = runs.scenario_of(str(dumbbell), ["switch.queue.limit=1500B"], None)
    with pytest.raises(InputError, match=f"^{re.escape(str(dumbbell))}: switch.queue.limit = "):
        runs.planned(scenario, "kernel", "kernel")


def test_measures_that_the_lab_does_not_take_are_listed(dumbbell: Path) -> None:
    changes = ['measure.port_events={ every = "1ms" }', "measure.paths=true", "measure.queues.ports=s0.*"]
    scenario = runs.scenario_of(str(dumbbell), changes, None)
    for hosts, listed in ((False, "queues and goodput, not paths, port_events"), (True, "queues, not paths")):
        differs = plan.make(scenario, KERNEL, [], hosts=hosts).differs
        assert any(listed in text for text in differs)
        assert "measure.queues: the lab looks at every port" in differs


def test_settings_of_transports_that_the_kernel_does_not_follow_are_listed(dumbbell: Path) -> None:
    def listed(*changes: str) -> list[str]:
        found = plan.make(runs.scenario_of(str(dumbbell), list(changes), None), KERNEL, []).differs
        return [text.partition(": ")[2] for text in found if text.startswith("the kernel's transport has")]

    assert not listed()
    assert not listed(
        "transport.initial_window=3", "transport.rto_min=50ms", "transport.mss=1000B", "scale.by=7"
    )
    assert listed("transport.nagle=false", "transport.controller.beta=0.5") == [
        "transport.controller.beta = 0.5, transport.nagle = false"
    ]
    own = 'workload.0.transport={ controller = { kind = "newreno", count = "acks" } }'
    assert listed(own) == ['workload.0.transport.controller.count = "acks"']
    assert "transport.loss_detection" in listed("transport.profile=ns3-3.35")[0]
    port = plan.make(runs.scenario_of(str(dumbbell), ["switch.queue.link_header=20B"], None), KERNEL, [])
    assert "switch.queue.link_header: ports of the kernel add none" in port.differs


def test_signals_wait_for_the_end_of_a_removal_whatever_threads_there_are() -> None:
    # A process in the background of a shell without a terminal ignores it from its begin.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    other = threading.Event()
    thread = threading.Thread(target=other.wait)
    thread.start()
    steps = []
    try:
        with pytest.raises(KeyboardInterrupt), network.uninterrupted():
            for _ in range(3):
                # To the process, whose other thread may take it, not to this thread.
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
            steps.append("removed")
    finally:
        other.set()
        thread.join()
        after = signal.signal(signal.SIGINT, before)
    assert steps == ["removed"] and after is signal.default_int_handler


@pytest.mark.usefixtures("machine", "nothing_left")
@pytest.mark.parametrize(
    ("begins", "left"),
    [
        ("doctor._tried_ipv6 = killed; doctor.findings(measure=False)", 2),
        ("held = network.folder_for_a_while(); held.__enter__(); killed()", 1),
    ],
)
def test_clean_removes_what_a_run_left_that_was_killed_before_it_began(
    begins: str, left: int, tmp_path: Path
) -> None:
    code = (
        "import os; from weftline.lab import doctor, network; "
        f"killed = lambda *_: os.kill(os.getpid(), 9); {begins}"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    out, _ = lab("clean", "--json").communicate(timeout=20)
    assert len(json.loads(out)["removed"]) == left
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("machine", "nothing_left")
def test_a_run_with_an_end_stops_there_and_counts_what_was_sent(dumbbell: Path, tmp_path: Path) -> None:
    later = '{ src = 1, dst = 2, size = "1KB", start = "2s" },\n]'
    text = dumbbell.read_text().replace('"3MB"', '"30MB"').replace("\n]", f"\n    {later}", 1)
    dumbbell.write_text(text + '[run]\nuntil = "1s"\n')
    done = lab("run", dumbbell, "--out", tmp_path / "lab", "--json")
    out, err = done.communicate(timeout=90)
    assert done.returncode == 0, err
    summary = json.loads(out)
    assert (summary["flows"], summary["flows_unfinished"], summary["flows_not_due"]) == (2, 2, 1)
    assert summary["lab"]["cores_awake"] is os.access(lateness.CORES, os.W_OK)
    run = weftline.Run.read(tmp_path / "lab")
    rows = pyarrow.table(run.flows).to_pylist()
    # 20 Mb/s for a second, and what the queue and the links hold of it.
    limit = (20e6 / 8 + 100_000 + 2 * 64_000) / 1500
    assert 400 < sum(row["packets_sent"] - row["packets_retransmitted"] for row in rows) < 1.2 * limit
    assert all(row["fct_ns"] is None and row["start_ns"] > 0 for row in rows)
    # Of a second and not of the time until the processes have ended.
    assert summary["lab"]["ports"]["s0.p2"]["bytes_sent"] < 1.2 * 20e6 / 8
    assert max(at for at, _ in run.over_time("queue_bytes")["s0.p2"]) <= 1e9


@pytest.mark.usefixtures("machine", "nothing_left")
def test_a_run_is_measured_until_its_end_and_its_goodput_holds_all_bytes(
    dumbbell: Path, tmp_path: Path
) -> None:
    dumbbell.write_text(dumbbell.read_text().replace('"3MB"', '"300KB"') + 'goodput = { every = "70ms" }\n')
    done = lab("run", dumbbell, "--out", tmp_path / "lab", "--set", "run.until=2s", "--json")
    out, err = done.communicate(timeout=90)
    assert done.returncode == 0, err
    summary, run = json.loads(out), weftline.Run.read(tmp_path / "lab")
    rows = pyarrow.table(run.flows).to_pylist()
    assert summary["flows_done"] == 2 and summary["end_ns"] == 2e9 and summary["wall_seconds"] > 2
    assert max(row["finish_ns"] for row in rows) < 1.5e9
    assert run.over_time("queue_bytes", max_points=0)["s0.p2"][-1][0] > 1.8e9
    series = run.over_time("goodput_bps", max_points=0)
    assert {name: len(points) for name, points in series.items()} == {"flow0": 29, "flow1": 29}
    assert all(points[-1] == [2e9, 0.0] for points in series.values())
    assert [share["bytes"] for share in run.shares()] == pytest.approx([3e5, 3e5])


@pytest.mark.usefixtures("machine", "nothing_left")
@pytest.mark.skipif(not plan.has_mptcp(), reason="the kernel has no MPTCP")
def test_packets_of_a_multipath_flow_are_those_of_all_its_subflows(dumbbell: Path, tmp_path: Path) -> None:
    mptcp = 'kind = "mptcp"\nsubflows = 4\ncontroller.kind = "cubic"'
    dumbbell.write_text(dumbbell.read_text().replace('kind = "tcp"', mptcp).replace('"3MB"', '"500KB"'))
    (run,) = runs.run(runs.scenario_of(str(dumbbell), [], None), str(tmp_path / "lab"))
    assert not run.summary["lab"]["plain_tcp"]
    rows = pyarrow.table(run.flows).to_pylist()
    # A packet carries 1424 bytes at most.
    assert all(row["packets_sent"] - row["packets_retransmitted"] >= 500_000 / 1424 for row in rows)


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(
    number: signal.Signals, dumbbell: Path, tmp_path: Path, nothing_left: set[str]
) -> None:
    process = lab("run", dumbbell, "--out", tmp_path / "lab")
    wait_for_flows(process, nothing_left)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1 and "interrupted" in err
    assert not (tmp_path / "lab" / "summary.json").exists()


@pytest.mark.usefixtures("machine")
def test_clean_removes_what_a_killed_run_left_and_nothing_else(
    dumbbell: Path, tmp_path: Path, nothing_left: set[str]
) -> None:
    foreign = f"weftline-{os.getpid()}-foreign"
    subprocess.run(["ip", "netns", "add", foreign], check=True)
    try:
        process = lab("run", dumbbell, "--out", tmp_path / "lab")
        wait_for_flows(process, {*nothing_left, foreign})
        process.kill()
        process.wait()
        assert len(ours() - nothing_left) == 8
        clean = lab("clean")
        out, _ = clean.communicate(timeout=20)
        assert out.count("removed") == 7
        assert ours() - nothing_left == {foreign}
    finally:
        subprocess.run(["ip", "netns", "delete", foreign], check=True)


@pytest.mark.usefixtures("machine")
def test_clean_leaves_a_live_run_alone(dumbbell: Path, tmp_path: Path, nothing_left: set[str]) -> None:
    process = lab("run", dumbbell, "--out", tmp_path / "lab")
    wait_for_flows(process, nothing_left)
    out, _ = lab("clean").communicate(timeout=20)
    assert "nothing to remove" in out
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


@pytest.mark.usefixtures("machine", "nothing_left")
def test_up_can_be_looked_into_and_down_removes_it(dumbbell: Path) -> None:
    up = lab("up", dumbbell)
    out, err = up.communicate(timeout=30)
    try:
        assert up.returncode == 0, err
        lines = [line.split() for line in out.splitlines() if line.startswith("weftline-")]
        first, last = lines[0], lines[3]
        with inside(first[0]), socket.socket() as sock:
            begun = time.monotonic()
            with pytest.raises(ConnectionRefusedError):
                sock.connect((last[1], 9))
        # Three links, 2 + 5 + 2 ms, both ways.
        assert 0.018 <= time.monotonic() - begun < 0.1
        out, err = lab("clean").communicate(timeout=20)
        assert "nothing to remove" in out and "stay until `weftline lab down`" in err
    finally:
        out, _ = lab("down").communicate(timeout=20)
    assert out.count("removed") == 7


@pytest.mark.usefixtures("machine", "nothing_left")
def test_packets_that_a_switch_loses_at_no_port_are_found(dumbbell: Path) -> None:
    made, _ = runs.planned(runs.scenario_of(str(dumbbell), [], None), "kernel")
    made = replace(made, links=[replace(link, delay_ns=0) for link in made.links])
    with runs.up(made) as network:
        assert network.lost_inside() == {}
        with inside(network.name("host0")), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for lifetime, count in ((64, 5), (1, 3), (2, 2)):
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, lifetime)
                for _ in range(count):
                    sock.sendto(b"x", (made.nodes[2].address, 9))
        for _ in range(100):
            time.sleep(0.02)
            if sum(network.lost_inside().values()) == 5:
                break
        # The third switch of five that live on is a host.
        assert network.lost_inside() == {"s0": 3, "s1": 2}


@pytest.mark.usefixtures("machine", "nothing_left")
def test_a_namespace_of_the_same_name_is_an_error_and_stays(dumbbell: Path) -> None:
    made, _ = runs.planned(runs.scenario_of(str(dumbbell), [], None))
    network = Network(made)
    name = network.name("s1")
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        with pytest.raises(InputError, match="exists already"):
            network.build()
        assert (NAMED / name).exists()
        assert not any(one["id"] == network.id for one in records())
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("transport.kind=rdma", "tcp and mptcp"),
        ("transport.controller.kind=vegas", 'this kernel has "cubic", "newreno", "bbr"'),
        ("switch.queue.kind=fq-codel", "fifo"),
        ("switch.queue.limit=0B", "share no buffer"),
        ("switch.queue.packets=20", 'have one limit, and here are two (packets = 20, limit = "100KB")'),
        ("switch.queue.nic_packets=3", "has one queue and not two"),
        ("switch.balancer.kind=letflow", 'the lab has "ecmp", "hula"'),
        ("switch.pfc.enabled=true", "cannot pause"),
        ("host.packet_time=1us", "take the time that they take"),
        ("host.queue.kind=fq-codel", "have that of their system"),
        ("host.resequencing.enabled=true", "hand packets on as they come"),
        ("transport.app_rate=1Mbps", "as fast as TCP lets them"),
        ("transport.plb=delay", "keep a flow on its path"),
        ('workload.0={kind="closed-loop", size="1KB", requests=2}', "some start when others end"),
        ("switch.forwarding=cut-through", "forward whole frames"),
    ],
)
def test_what_cannot_be_run_is_named(change: str, expected: str, dumbbell: Path) -> None:
    changes = [change]
    if change == "transport.kind=rdma":
        changes.append("switch.queue.kind=fifo")
    scenario = runs.scenario_of(str(dumbbell), changes, None)
    assert any(expected in text for text in plan.problems(scenario.values, KERNEL))


def test_without_root_nothing_is_changed(
    dumbbell: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match="need root"):
        runs.run(runs.scenario_of(str(dumbbell), [], None), str(tmp_path / "lab"))
    assert not (tmp_path / "lab").exists()


def test_a_folder_that_holds_something_else_is_not_written_to(dumbbell: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        runs.run(runs.scenario_of(str(dumbbell), [], None), str(tmp_path), force=True)


def test_a_folder_that_another_run_writes_is_refused_before_anything_is_done(
    dumbbell: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "planned", lambda *_, **__: pytest.fail("it began"))
    claim = _native.FolderClaim(str(tmp_path / "lab"))
    for repeats, out in ((1, tmp_path / "lab"), (2, tmp_path)):
        (tmp_path / "1").mkdir(exist_ok=True)
        of_second = _native.FolderClaim(str(tmp_path / "2"))
        with pytest.raises(InputError, match="is writing a run into this folder"):
            runs.run(runs.scenario_of(str(dumbbell), [], None), str(out), force=True, repeats=repeats)
        of_second.release()
    claim.release()
    assert not (tmp_path / "lab").exists() and not (tmp_path / "1" / "run.lock").exists()


@pytest.mark.usefixtures("machine", "nothing_left")
def test_of_two_runs_that_begin_together_one_is_refused(dumbbell: Path, tmp_path: Path) -> None:
    arguments = ("run", dumbbell, "--out", tmp_path / "lab", "--force", "--json")
    running = [lab(*arguments) for _ in range(2)]
    ended = [process.communicate(timeout=90) for process in running]
    assert sorted(process.returncode for process in running) == [0, 2], ended
    refused = next(err for process, (_, err) in zip(running, ended, strict=True) if process.returncode)
    assert "is writing a run into this folder" in refused
    assert not (tmp_path / "lab" / "run.lock").exists()
    assert weftline.Run.open(str(tmp_path / "lab")).verify()


def test_all_shortest_paths_are_routes(tmp_path: Path) -> None:
    file = tmp_path / "fabric.toml"
    file.write_text(
        '[topology]\nkind = "leaf-spine"\nleaves = 2\nspines = 3\nhosts_per_leaf = 2\n'
        '[switch]\nqueue = { kind = "fifo", limit = "100KB" }\n[transport]\nkind = "tcp"\n'
        '[[workload]]\nkind = "flows"\nflows = [{ src = 0, dst = 3, size = "1KB", start = "0s" }]\n'
    )
    scenario = runs.scenario_of(str(file), ["scale.by=1000"], None)
    made = plan.make(scenario, KERNEL, [])
    nodes = {node.name: node for node in made.nodes}
    far, near = nodes["host3"].address, nodes["host1"].address
    assert len(nodes["leaf0"].routes[far]) == 3 and len(nodes["leaf0"].routes[near]) == 1
    assert len(nodes["host0"].routes) == 3
    assert len({node.address for node in made.nodes if node.is_host}) == 4


def test_every_node_has_a_namespace_of_its_own_whatever_it_is_called() -> None:
    names = plan._plain(["wires", "a b", "a-b", "a/b", "é" * 300, "host0"])
    assert names == ["wires-", "a-b", "a-b-", "a-b--", "-" * plan.LONGEST_NAME, "host0"]


def test_receive_buffers_begin_as_simulated(dumbbell: Path) -> None:
    def settings(*changes: str) -> tuple[str, ...]:
        scenario = runs.scenario_of(str(dumbbell), list(changes), None)
        made = plan.make(scenario, ["cubic"], [])
        return made.settings(made.nodes[0])

    # Twice the simulator's 6 MiB, for what the kernel counts besides payload.
    assert f"net.ipv4.tcp_rmem=4096 {12 << 20} {32 << 20}" in settings()
    assert f"net.ipv4.tcp_rmem=4096 {128 << 10} {32 << 20}" in settings("transport.receive_buffer=20KB")
    assert f"net.ipv4.tcp_rmem=4096 {32 << 20} {32 << 20}" in settings("transport.receive_buffer=1GB")
