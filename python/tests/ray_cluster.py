"""A real Ray of several nodes on this machine, in a process of its own, for tests that kill its parts.

`python ray_cluster.py` takes a JSON object a line: {"add": {...}} starts a node with these arguments of
`ray.cluster_utils.Cluster.add_node`, {"kill": 2} kills the third node, {"kill": 0} the head. It answers with
a line for each.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import commands

OLDER = """
import sys
if sys.argv[0].endswith("default_worker.py") or "default_worker" in " ".join(sys.orig_argv):
    from weftline import _native
    _native.version = lambda: "0.0.9"
"""
"""A node with this as its sitecustomize.py has another version of weftline."""
WITHOUT = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "weftline":
            raise ModuleNotFoundError("No module named 'weftline'", name=name)
sys.meta_path.insert(0, Hidden())
"""
"""One without weftline."""
SLOW = """
import sys
if "default_worker" in " ".join(sys.orig_argv):
    import time
    from weftline.scenario import Scenario
    start = Scenario.start
    def slow(*given, **more):
        time.sleep({seconds})
        return start(*given, **more)
    Scenario.start = slow
"""
"""One whose runs take this much longer."""


def assert_same(folder: Path, out: str) -> None:
    """Check that a sweep has the tables and bits of the one in `local`."""
    for name in ("points.csv", "table.csv"):
        assert (folder / out / name).read_bytes() == (folder / "local" / name).read_bytes()
    for one in (folder / "local/points").iterdir():
        for name in ("flows.parquet", "scenario.toml"):
            assert (folder / out / "points" / one.name / name).read_bytes() == (one / name).read_bytes()


def wait_for_points(store: Path, count: int, child: subprocess.Popen) -> None:
    """Wait until `count` points are stored; a sweep that ends earlier fails the test."""
    until = time.monotonic() + 120
    while len(list(store.glob("points/*"))) < count:
        assert child.poll() is None and time.monotonic() < until
        time.sleep(0.02)


class RealCluster:
    """A cluster whose head has the address `address`; a context manager."""

    def __init__(self, *, head_cpus: int = 1, **environment: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=commands.environment(RAY_USAGE_STATS_ENABLED="0", **environment),
            start_new_session=True,
        )
        self.address = self._ask({"add": {"num_cpus": head_cpus}})

    def add(self, *, cpus: int = 1, customized: tuple[str, Path] | None = None, **more: Any) -> str:
        """Start a node and return its id; with text and folder its Python begins with that text."""
        if customized:
            text, folder = customized
            folder.mkdir(parents=True)
            (folder / "sitecustomize.py").write_text(text)
            path = os.pathsep.join([str(folder), commands.environment()["PYTHONPATH"]])
            more["env_vars"] = {"PYTHONPATH": path, **more.get("env_vars", {})}
        return self._ask({"add": {"num_cpus": cpus, **more}})

    def kill(self, node: int) -> None:
        """Kill a node with all its processes; 0 is the head."""
        self._ask({"kill": node})

    def _ask(self, command: dict) -> str:
        assert self._child.stdin and self._child.stdout
        self._child.stdin.write(json.dumps(command) + "\n")
        self._child.stdin.flush()
        while True:  # Ray itself may print
            line = self._child.stdout.readline()
            assert line, "the cluster is gone"
            if line.startswith("answer: "):
                return line.removeprefix("answer: ").strip()

    def __enter__(self) -> RealCluster:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._child.stdin
        self._child.stdin.close()
        try:
            self._child.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()


def main() -> None:
    """Serve the commands of standard input."""
    from ray.cluster_utils import Cluster

    cluster, nodes = Cluster(), []
    for line in sys.stdin:
        ((what, given),) = json.loads(line).items()
        if what == "add":
            nodes.append(cluster.add_node(**given))
            answer = cluster.address if len(nodes) == 1 else nodes[-1].node_id
        elif given:
            cluster.remove_node(nodes[given], allow_graceful=False)
            answer = "killed"
        else:
            nodes[0].kill_all_processes(check_alive=False, allow_graceful=False)
            answer = "killed"
        print(f"answer: {answer}", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
