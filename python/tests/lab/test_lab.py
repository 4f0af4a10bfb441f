"""Scenarios on real packets: runs, what ends them early, what cannot be run."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import weftline
from weftline import _native
from weftline.errors import InputError
from weftline.lab import dctcp, folder, lateness, plan, priority, runs
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


@pytest.mark.parametrize(("waited_ns", "contaminated"), [(100_000, False), (1_000_000, True)])
def test_pressure_counts_only_where_the_processes_are_not_first(waited_ns: int, contaminated: bool) -> None:
    waited = lateness.Histogram()
    waited.add(waited_ns)
    for kind, expected in ((priority.REAL_TIME, contaminated), (priority.NORMAL, True)):
        outcome = runs.Outcome(
            zero_ns=0,
            flows={},
            queues=[],
            counters={},
            relay={},
            start_lateness=lateness.Histogram(),
            pressure=80.0,
            status="done",
            seconds=1.0,
            waited=waited,
            priority=kind,
        )
        assert bool(folder.contamination(lateness.Histogram(), 2_000_000, outcome)) is expected


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
    finally:
        out, _ = lab("down").communicate(timeout=20)
    assert out.count("removed") == 7


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
        ("switch.balancer.kind=letflow", 'the lab has "ecmp", "hula"'),
        ("switch.pfc.enabled=true", "cannot pause"),
        ("host.packet_time=1us", "take the time that they take"),
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
