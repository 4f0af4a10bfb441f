"""What a Ray costs: points per second on threads and on one and two nodes, and the bytes that a point moves.

``python benches/ray_cluster.py`` on an idle machine with three cores or more (this process and two nodes), or
two. Each line is fitted to two sweeps of different length: the fixed time (start, plan, tables) and the time
of one more point, of which `engine` is the simulation.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python" / "tests")]

import commands  # noqa: E402
from ray_cluster import RealCluster  # noqa: E402

from weftline.sweeps import ray_executor, ray_worker, runner, store, sweepfile  # noqa: E402
from weftline.sweeps.executor import Outcome  # noqa: E402

SCENARIO = """
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
[[workload]]
kind = "poisson"
sizes = "websearch"
load = 0.5
duration = "{duration}"
"""
CASES = {"5ms": (40, 120), "50us": (200, 800)}
"""Durations of the arrivals, and the numbers of points of the two sweeps."""


def sweep(folder: Path, duration: str, points: int) -> Path:
    """Write a sweep of this many points."""
    (folder / f"{duration}.toml").write_text(SCENARIO.format(duration=duration))
    file = folder / f"{duration}-{points}.toml"
    file.write_text(f'scenario = "{duration}.toml"\nseeds = {points}\n')
    return file


def measure(name: str, duration: str, *more: str, address: str = "") -> None:
    """Run the two sweeps of a case and print its line."""
    seconds, engine = [], 0.0
    for points in CASES[duration]:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "store"
            asked = ["sweep", str(sweep(Path(folder), duration, points)), "--out", str(out), "--quiet", *more]
            began = time.monotonic()
            environment = commands.environment(RAY_USAGE_STATS_ENABLED="0", RAY_ADDRESS=address)
            subprocess.run(commands.program(*asked), env=environment, check=True, stderr=subprocess.DEVNULL)
            seconds.append(time.monotonic() - began)
            summaries = [json.loads(path.read_text()) for path in out.glob("points/*/summary.json")]
            engine = sum(summary["cpu_seconds"] for summary in summaries) / len(summaries)
    few, many = CASES[duration]
    each = (seconds[1] - seconds[0]) / (many - few)
    print(
        f"{duration:>5} {name:24} {1 / each:7.1f} points/s, {1000 * each:6.2f} ms a point "
        f"(engine {1000 * engine:.2f} ms of CPU), fixed {seconds[0] - few * each:.1f} s",
        flush=True,
    )


def bytes_moved(duration: str) -> None:
    """Print what one point sends and brings back."""
    with tempfile.TemporaryDirectory() as folder:
        asked = sweepfile.load(sweep(Path(folder), duration, 20))
        plan = runner.plan(asked, Path(folder) / "store")
        kept = store.Store.create(plan.path)
        work = ray_executor._Work(plan.points, kept, Outcome(), threads=1, costs={})
        groups = [specs for what, _, specs, *_ in work.messages(10) if what == "group"]
        sent = sum(len(pickle.dumps(specs)) for specs in groups) / sum(map(len, groups))
        found = [result for specs in groups for result in ray_worker.run_group(specs, {})["results"]]
        back = sum(len(pickle.dumps(result)) for result in found) / len(found)
        work.release()
    print(f"{duration:>5} bytes of a point: {sent:.0f} sent, {back:.0f} back", flush=True)


def main() -> None:
    """Measure all cases."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}")
    for duration in sys.argv[1:] or CASES:
        bytes_moved(duration)
        measure("threads, --jobs 1", duration, "--jobs", "1")
        measure("threads, --jobs 2", duration, "--jobs", "2")
        with RealCluster() as cluster:
            measure("Ray, one node of 1 core", duration, "--on", "ray", address=cluster.address)
            cluster.add()
            measure("Ray, two nodes of 1 core", duration, "--on", "ray", address=cluster.address)


if __name__ == "__main__":
    main()
