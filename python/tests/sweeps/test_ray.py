"""Sweeps on Ray: the same bits as on threads, nodes that die, a head that dies, a terminal kept clean."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import commands
import pytest
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A sweep of 24 points, and its results on threads in ``local``."""
    folder = tmp_path_factory.mktemp("ray")
    (folder / "fabric.toml").write_text(FABRIC)
    (folder / "more.csv").write_text("src,dst,size_bytes,start_ns\n0,5,200000,1000\n3,1,50000,2000\n")
    (folder / "sweep.toml").write_text(SWEEP)
    assert main(["sweep", str(folder / "sweep.toml"), "--out", str(folder / "local"), "--quiet"]) == 0
    return folder


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


def test_a_node_that_is_killed_loses_nothing_and_a_dead_head_is_reported(folder):
    with RealCluster() as cluster:
        cluster.add()
        child = sweep(folder, "node", RAY_ADDRESS=cluster.address)
        wait_for_points(folder / "node", 2, child)
        cluster.kill(1)
        assert child.poll() is None, "the node died during the run"
        _, err = child.communicate(timeout=300)
        assert child.returncode == 0, err
        child = sweep(folder, "head", RAY_ADDRESS=cluster.address)
        wait_for_points(folder / "head", 2, child)
        cluster.kill(0)
        _, err = child.communicate(timeout=300)
    assert_same(folder, "node")
    assert child.returncode == 1 and "finished runs are kept" in err and "Ray" in err, err
    finished = len(list((folder / "head/points").iterdir()))
    assert finished >= 2
    assert main(["sweep", str(folder / "sweep.toml"), "--out", str(folder / "head"), "--quiet"]) == 0
    assert_same(folder, "head")


def test_a_cluster_that_is_not_there_is_named(folder):
    child = sweep(folder, "nowhere", RAY_ADDRESS="127.0.0.1:1")
    _, err = child.communicate(timeout=300)
    assert child.returncode == 1 and "no Ray answers at 127.0.0.1:1" in err, err
