"""The nodes of a Ray cluster: how many runs they take at a time, and whether they compute the same bits.

`look` and `work` are what Ray runs on a node. They are sent there as code, so that a node without weftline,
or with another version, can report it by name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

LOOK_SECONDS = 60.0
"""How long nodes have to report what they would compute with; of a later one only the answers are checked."""
MAX_NAMED = 3


def look() -> dict[str, str]:
    """Return what this node would compute with, see `ray_worker.identity`, or ``error``."""
    import sys

    found: dict[str, str] = {}
    try:
        from weftline import _native

        found["weftline"] = _native.version()
        from weftline.sweeps.ray_worker import identity

        return identity()
    except Exception as error:
        return {**found, "error": f"{type(error).__name__}: {error}", "interpreter": sys.executable}


def work(specs: Sequence[Mapping[str, Any]], files: Mapping[str, Any]) -> dict[str, Any]:
    """Run points, see `ray_worker.run_group`; the answer has the ``node`` too."""
    import sys

    import ray

    node = ray.get_runtime_context().get_node_id()
    try:
        from weftline.sweeps.ray_worker import run_group
    except ImportError as error:
        about = {"error": f"{type(error).__name__}: {error}", "interpreter": sys.executable}
        return {"identity": about, "results": [], "node": node}
    return {**run_group(specs, files, ray.get), "node": node}


def difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str | None:
    """Return in which way a node would compute something else and what to do, None if it would not.

    The words follow the name of the node.
    """
    wheel = "install the same wheel on every node"
    if theirs.get("weftline", ours["weftline"]) != ours["weftline"]:
        version = ours["weftline"]
        return (
            f"has weftline {theirs['weftline']}, this is {version}: install weftline {version} on every node"
        )
    if "error" in theirs:
        python = theirs.get("interpreter", "its Python")
        return f"cannot use weftline ({theirs['error']}): install weftline {ours['weftline']} for {python}"
    if theirs["python"] != ours["python"]:
        return f"has Python {theirs['python']}, this is {ours['python']}: use one version of Python"
    if theirs["schemes"] != ours["schemes"]:
        there, here = theirs["schemes"] or "none", ours["schemes"] or "none"
        return f"has as schemes of another crate {there}, here it is {here}: {wheel}"
    for part, what in (("build", "engine"), ("code", "state of its Python files")):
        if theirs[part] != ours[part]:
            these = f"another {what} ({theirs[part]}, here {ours[part]})"
            return f"has weftline {ours['weftline']} with {these}: {wheel}"
    if theirs["arithmetic"] != ours["arithmetic"]:
        return "rounds log and pow in another way, by its C library or processor: use nodes of one kind"
    return None


class Nodes:
    """The nodes of the cluster that are alive and have enough cores for a run.

    Attributes
    ----------
    slots : int
        How many runs they take at a time.
    memory_bytes : int
        Memory of the largest node: a task that asks for more would never start.
    """

    def __init__(self, ray: Any, *, threads: int, options: Mapping[str, Any]) -> None:
        self._ray, self._threads = ray, threads
        self._probe, self._options = ray.remote(look), {"num_cpus": 0, "max_retries": 0, **options}
        self._names: dict[str, str] = {}
        self._asked: dict[Any, str] = {}
        """The nodes that were asked and have not answered, by the reference of the answer."""
        self._known: set[str] = set()
        self.slots = self.memory_bytes = 0

    def name(self, node: str) -> str:
        """Return a node's name for people: address, host, and the beginning of its id in Ray."""
        if node not in self._names:
            self.refresh()
        return self._names.get(node, f"of the id {node[:8]}")

    def refresh(self) -> None:
        """Ask Ray for the nodes; ask each new one what it would compute with."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        slots = memory = 0
        for node in self._ray.nodes():
            identifier, address = node["NodeID"], node["NodeManagerAddress"]
            self._names[identifier] = f"{address} ({node['NodeManagerHostname']}, id {identifier[:8]})"
            here = int(node["Resources"].get("CPU", 0)) // self._threads
            if not node["Alive"] or not here:
                continue
            slots += here
            memory = max(memory, int(node["Resources"].get("memory", 0)))
            if identifier not in self._known:
                self._known.add(identifier)
                there = NodeAffinitySchedulingStrategy(identifier, soft=False)
                self._asked[self._probe.options(scheduling_strategy=there, **self._options).remote()] = (
                    identifier
                )
        self.slots, self.memory_bytes = slots, memory

    def refused(self, ours: Mapping[str, str], *, within: float) -> str | None:
        """Wait at most this many seconds for nodes that were asked; return which would compute other bits."""
        until, wrong = time.monotonic() + within, {}
        while self._asked:
            done, _ = self._ray.wait(list(self._asked), timeout=max(0.0, until - time.monotonic()))
            if not done:
                break
            node = self._asked.pop(done[0])
            try:
                why = difference(self._ray.get(done[0]), ours)
            except self._ray.exceptions.RuntimeEnvSetupError as error:
                why = f"cannot start a worker: {error_text(error)}"
            except self._ray.exceptions.RayError:
                continue  # the node died
            if why:
                wrong[node] = why
        return self._sentence(wrong) if wrong else None

    def _sentence(self, wrong: Mapping[str, str]) -> str:
        named = [f"node {self.name(node)} {why}" for node, why in list(wrong.items())[:MAX_NAMED]]
        more = f"; and {len(wrong) - MAX_NAMED} more nodes" if len(wrong) > MAX_NAMED else ""
        return "; ".join(named) + more


def error_text(error: Exception) -> str:
    """Return an error of Ray in one line: its name, and the first line of what it says."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[0][:300] if lines else 'no more is known'}"
