"""Sweeps on Ray: the same bits as on threads, nodes that die, a head that dies, a terminal kept clean."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import commands
import pytest
import texts
from ray_cluster import assert_same, wait_for_points

from weftline import _native
from weftline.cli.main import main

pytestmark = [
    pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built"),
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None and not os.environ.get("CI"),
        reason="Ray is not installed: pip install ray",
    ),
]

FABRIC = (
    texts.FABRIC.replace("1ms", "10ms")
    + """
[[workload]]
kind = "trace"
file = "more.csv"
"""
)
SWEEP = """
scenario = "fabric.toml"
seeds = 8
[[axis]]
name = "scheme"
key = "transport.controller.kind"
values = ["hpcc", "dctcp", "timely"]
"""
# Two nodes of one core each. A line on standard input: "node" kills the second, "head" all of it.
CLUSTER = """
import os, signal, sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
second = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
print(cluster.address, flush=True)
for line in sys.stdin:
    if line.strip() == "node":
        cluster.remove_node(second, allow_graceful=False)
    else:
        cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
    print("killed", flush=True)
cluster.shutdown()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A sweep of 24 points, and its results on threads in ``local``."""
    folder = tmp_path_factory.mktemp("ray")
    (folder / "fabric.toml").write_text(FABRIC)
    (folder / "more.csv").write_text("src,dst,size_bytes,start_ns\n0,5,200000,1000\n3,1,50000,2000\n")
    (folder / "sweep.toml").write_text(SWEEP)
    assert main(["sweep", str(folder / "sweep.toml"), "--out", str(folder / "local"), "--quiet"]) == 0
    return folder


@pytest.fixture
def cluster():
    """A cluster in a process of its own."""
    child = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    assert child.stdin and child.stdout
    child.address = child.stdout.readline().strip().rsplit(" ", 1)[-1]
    yield child
    child.stdin.close()
    try:
        child.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)


def environment(**more: str) -> dict[str, str]:
    return commands.environment(RAY_USAGE_STATS_ENABLED="0", **more)


def sweep(folder: Path, out: str, **more: str) -> subprocess.Popen:
    return subprocess.Popen(
        commands.program("sweep", str(folder / "sweep.toml"), "--on", "ray", "--out", str(folder / out)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
    )


def test_ray_gives_the_bits_of_threads_and_keeps_quiet(folder):
    child = sweep(folder, "ray")
    out, err = child.communicate(timeout=300)
    assert child.returncode == 0, err
    assert_same(folder, "ray")
    output = [line for line in (out + err).splitlines() if "ray" in line.lower() and "store:" not in line]
    assert not output, "what Ray says goes to ray.log"


def test_an_experiment_on_ray_finds_what_it_finds_here(folder):
    (folder / "experiment.toml").write_text(texts.TWO_SCHEMES)
    found = {}
    for on in ("local", "ray"):
        asked = ["reproduce", str(folder), "--on", on, "--out", str(folder / f"experiment-{on}"), "--json"]
        child = commands.run(*asked, env=environment())
        assert child.returncode == 0, child.stderr
        found[on] = json.loads(child.stdout)
    assert found["ray"]["claims"] == found["local"]["claims"] and found["ray"]["claims"][0]["interval"]
    points = {on: {Path(point).name for point in found[on]["points"]} for on in found}
    assert points["ray"] == points["local"] and len(points["ray"]) == 6
    for key in points["ray"]:
        flows = [folder / f"experiment-{on}/points" / key / "flows.parquet" for on in found]
        assert flows[0].read_bytes() == flows[1].read_bytes()


def test_a_node_that_is_killed_loses_nothing(folder, cluster):
    child = sweep(folder, "node", RAY_ADDRESS=cluster.address)
    wait_for_points(folder / "node", 2, child)
    cluster.stdin.write("node\n")
    cluster.stdin.flush()
    assert cluster.stdout.readline().strip() == "killed"
    assert child.poll() is None, "the node died during the run"
    _, err = child.communicate(timeout=300)
    assert child.returncode == 0, err
    assert_same(folder, "node")


def test_a_dead_head_is_reported_and_the_sweep_goes_on_without_it(folder, cluster):
    child = sweep(folder, "head", RAY_ADDRESS=cluster.address)
    wait_for_points(folder / "head", 2, child)
    cluster.stdin.write("head\n")
    cluster.stdin.flush()
    _, err = child.communicate(timeout=300)
    assert child.returncode == 1 and "finished runs are kept" in err and "Ray" in err, err
    finished = len(list((folder / "head/points").iterdir()))
    assert finished >= 2
    assert main(["sweep", str(folder / "sweep.toml"), "--out", str(folder / "head"), "--quiet"]) == 0
    assert_same(folder, "head")


def test_a_cluster_that_is_not_there_is_named(folder):
    child = sweep(folder, "nowhere", RAY_ADDRESS="127.0.0.1:1")
    _, err = child.communicate(timeout=300)
    assert child.returncode == 1 and "no Ray answers at 127.0.0.1:1" in err, err
