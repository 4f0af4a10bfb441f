"""Sweeps on a real Ray of several nodes: other versions, nodes that are slow, frozen, come late or die.

Most take a quarter of a minute each and run where WEFTLINE_CLUSTERS=1 asks for it (`make clusters`).
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import commands
import pytest
import ray_cluster
import texts
from ray_cluster import RealCluster, assert_same, wait_for_points

from weftline import _native
from weftline.cli.main import main

pytestmark = [
    pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built"),
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None and not os.environ.get("CI"),
        reason="Ray is not installed: pip install ray",
    ),
]
long = pytest.mark.skipif(
    os.environ.get("WEFTLINE_CLUSTERS") != "1",
    reason="a cluster for each: WEFTLINE_CLUSTERS=1 (make clusters)",
)

SWEEP = """
scenario = "fabric.toml"
seeds = 8
[[axis]]
name = "scheme"
key = "transport.controller.kind"
values = ["hpcc", "dctcp", "timely"]
"""
FATAL = '''
"""A controller that ends its process in one of the runs, as a fault of a library would."""

import os

import weftline


class Fatal(weftline.Controller):
    def __init__(self, flow):
        super().__init__(flow)
        if flow.mtu == 1002:
            os._exit(9)

    def on_ack(self, ack):
        pass
'''


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> Path:
    """A sweep of 24 points of a quarter of a second."""
    folder = tmp_path_factory.mktemp("clusters")
    (folder / "fabric.toml").write_text(texts.FABRIC.replace("1ms", "10ms"))
    (folder / "sweep.toml").write_text(SWEEP)
    return folder


@pytest.fixture(scope="module")
def folder(sweep) -> Path:
    """The same, with its results on threads in ``local``."""
    assert main(["sweep", str(sweep / "sweep.toml"), "--out", str(sweep / "local"), "--quiet"]) == 0
    return sweep


def start(folder: Path, out: str, address: str, *, file: str = "sweep.toml", **more: str) -> subprocess.Popen:
    asked = ["sweep", str(folder / file), "--on", "ray", "--out", str(folder / out)]
    environment = commands.environment(RAY_USAGE_STATS_ENABLED="0", RAY_ADDRESS=address, **more)
    return commands.start(*asked, env=environment, text=True)


def finish(child: subprocess.Popen, *, within: float = 120.0) -> tuple[int, str]:
    """Return exit status and errors; the test fails if it takes longer."""
    try:
        _, err = child.communicate(timeout=within)
    finally:
        child.kill()
    return child.returncode, err


def runs_by_node(store: Path) -> Counter[str]:
    """How many runs each node gave, by the first digits of its id."""
    found: Counter[str] = Counter()
    for runs, node in re.findall(
        r"^group \d+: (\d+) runs .* id (\w+)\)$", (store / "ray.log").read_text(), re.M
    ):
        found[node] += int(runs)
    return found


def test_nodes_that_would_compute_something_else_are_refused_by_name(sweep, tmp_path):
    with RealCluster() as cluster:
        older = cluster.add(customized=(ray_cluster.OLDER, tmp_path / "older"))
        without = cluster.add(customized=(ray_cluster.WITHOUT, tmp_path / "without"))
        status, err = finish(start(sweep, "refused", cluster.address))
    assert status == 1, err
    ours = _native.version()
    assert re.search(rf"node \S+ \(\S+, id {older[:8]}\) has weftline 0.0.9, this is {ours}: install", err), (
        err
    )
    assert re.search(rf"node \S+ \(\S+, id {without[:8]}\) cannot use weftline \(Module", err), err
    assert not list((sweep / "refused/points").iterdir())


@pytest.mark.parametrize("address", ["127.0.0.1", "ray://127.0.0.1:10001", "nonsense"])
def test_an_address_that_is_none_is_named(sweep, address):
    status, err = finish(start(sweep, "nowhere", address), within=30)
    assert status == 1 and address in err and ("no Ray answers" in err or "expected HOST:PORT" in err), err


@long
def test_three_nodes_share_the_work_and_give_the_bits_of_threads(folder):
    with RealCluster() as cluster:
        cluster.add()
        cluster.add()
        status, err = finish(start(folder, "three", cluster.address))
    assert status == 0, err
    assert_same(folder, "three")
    found = runs_by_node(folder / "three")
    assert len(found) == 3 and sum(found.values()) == 24 and min(found.values()) >= 3, found


@long
def test_a_node_killed_within_its_runs_is_reported_and_loses_nothing(folder, tmp_path):
    with RealCluster() as cluster:
        cluster.add(customized=(ray_cluster.SLOW.format(seconds=2), tmp_path / "slow"))
        child = start(folder, "killed", cluster.address)
        wait_for_points(folder / "killed", 4, child)
        cluster.kill(1)
        status, err = finish(child)
    assert status == 0 and re.search(r"note: \d+ runs? w\w+ started again, because Ray lost", err), err
    assert_same(folder, "killed")
    assert sum(runs_by_node(folder / "killed").values()) == 24, "none twice"


@long
def test_after_the_head_died_a_new_ray_takes_up_the_sweep(folder):
    with RealCluster() as cluster:
        cluster.add()
        child = start(folder, "head", cluster.address)
        wait_for_points(folder / "head", 4, child)
        cluster.kill(0)
        status, err = finish(child, within=60)
    assert status == 1 and "run the same command to resume" in err and "Traceback" not in err, err
    kept = len(list((folder / "head/points").iterdir()))
    with RealCluster() as cluster:
        status, err = finish(start(folder, "head", cluster.address))
    assert status == 0, err
    assert_same(folder, "head")
    assert sum(runs_by_node(folder / "head").values()) == 24 - kept, "only what was missing ran"


@long
def test_a_slow_node_does_not_hold_up_the_others(folder, tmp_path):
    with RealCluster() as cluster:
        slow = cluster.add(customized=(ray_cluster.SLOW.format(seconds=6), tmp_path / "slow"))
        began = time.monotonic()
        status, err = finish(start(folder, "slow", cluster.address))
        took = time.monotonic() - began
    assert status == 0, err
    assert_same(folder, "slow")
    found = runs_by_node(folder / "slow")
    assert found[slow[:8]] <= 5, found
    # Sixteen such points alone would take 100 s.
    assert took < 45


@long
def test_runs_on_a_frozen_worker_are_started_elsewhere(folder):
    with RealCluster() as cluster:
        cluster.add()
        child = start(folder, "frozen", cluster.address)
        wait_for_points(folder / "frozen", 2, child)
        found = subprocess.run(["pgrep", "-f", "^ray::work"], capture_output=True, text=True, check=True)
        frozen = int(found.stdout.split()[0])
        os.kill(frozen, signal.SIGSTOP)
        try:
            status, err = finish(child, within=60)
        finally:
            os.kill(frozen, signal.SIGKILL)
    assert status == 0 and "late and started a second time" in err, err
    assert_same(folder, "frozen")


@long
def test_a_node_that_comes_late_takes_part_and_a_wrong_one_ends_the_sweep(folder, tmp_path):
    with RealCluster(head_cpus=0) as cluster:
        child = start(folder, "late", cluster.address)
        time.sleep(6)
        assert child.poll() is None, "a cluster without cores is waited for"
        first = cluster.add()
        wait_for_points(folder / "late", 2, child)
        wrong = cluster.add(customized=(ray_cluster.OLDER, tmp_path / "older"))
        status, err = finish(child)
    assert status == 1 and f"id {wrong[:8]}) has weftline 0.0.9" in err, err
    kept = len(list((folder / "late/points").iterdir()))
    assert 2 <= kept <= runs_by_node(folder / "late")[first[:8]], "nothing of the other node is kept"
    assert main(["sweep", str(folder / "sweep.toml"), "--out", str(folder / "late"), "--quiet"]) == 0
    assert_same(folder, "late")


@long
def test_a_run_that_ends_its_worker_fails_alone(folder):
    (folder / "fatal.py").write_text(FATAL)
    (folder / "fatal.toml").write_text(
        'scenario = "fabric.toml"\n[controllers]\nfatal = "fatal.py:Fatal"\n'
        '[set]\n"transport.controller.kind" = "python:fatal"\n"workload.0.duration" = "100us"\n'
        '[[axis]]\nkey = "transport.mtu"\nvalues = ["1000B", "1001B", "1002B", "1003B", "1004B", "1005B"]\n'
    )
    status, err = finish(start(folder, "fatal", "", file="fatal.toml"))
    assert status == 1 and len(re.findall(r"^failed: mtu", err, re.M)) == 1, err
    assert "mtu 1002B, seed 1: lost by Ray 4 times with its worker or node: WorkerCrashedError" in err
    assert len(list((folder / "fatal/points").iterdir())) == 5


@long
def test_runs_for_which_a_node_has_too_little_memory_fail_in_bounded_time(folder):
    with RealCluster(
        RAY_memory_usage_threshold="0.001", RAY_memory_monitor_refresh_ms="50", RAY_task_oom_retries="-1"
    ) as cluster:
        status, err = finish(start(folder, "memory", cluster.address))
    assert status == 1 and "OutOfMemoryError" in err and err.count("failed: scheme") <= 24, err
    assert (
        main(["sweep", str(folder / "sweep.toml"), "--out", str(folder / "memory"), "--quiet", "--retry"])
        == 0
    )
    assert_same(folder, "memory")


@long
def test_something_else_that_listens_at_the_address_ends_in_bounded_time(folder):
    with socket.create_server(("127.0.0.1", 0)) as other:
        held = []
        threading.Thread(target=lambda: [held.append(other.accept()) for _ in range(99)], daemon=True).start()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        status, err = finish(start(folder, "other", address), within=100)
    assert status == 1 and address in err, err
