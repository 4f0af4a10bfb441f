"""The network of a run, as the engine builds it from the run's scenario: nodes, links and their rates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, controllers, integrity, scenarios
from weftline.errors import InputError, RunFailed

if TYPE_CHECKING:
    from weftline.runs import Run

Link = tuple[str, str]
"""Names of the two ends of a link, in the direction of the packets."""


def built(run: Run) -> dict[str, Any] | None:
    """Return ``nodes`` and ``links`` of a run's scenario, None if they cannot be built any more.

    A topology that came from a file needs that file as it was; where it has changed or does not
    exist any more, a `ResultsWarning` states that.
    """
    return None if _is_of_other_file(run) else _built(run.folder / "scenario.toml", run.out)


def _is_of_other_file(run: Run) -> bool:
    """Return whether the file of a run's topology is not as it was when the run read it, with a warning."""
    recorded = (run.summary.get("provenance") or {}).get("files") or {}
    digest, name = recorded.get("topology.file"), run.scenario.get("topology", {}).get("file")
    if digest is None or not isinstance(name, str):
        return False
    try:
        modified = (run.out / name).stat().st_mtime_ns
        is_same = _digest_of(str(run.out), name, modified) == digest
    except OSError:
        is_same = False
    if not is_same:
        integrity.warn(
            f"{name}: the file of a topology has changed since a run read it, or does not exist any more: "
            "what needs the network, such as the utilisation of links between switches, is left out"
        )
    return not is_same


@lru_cache(maxsize=64)
def _digest_of(base_dir: str, name: str, modified: int) -> str:
    return scenarios.digest_of(base_dir, name)


def _built(path: Path, base_dir: Path) -> dict[str, Any] | None:
    try:
        text = path.read_text("utf-8")
        laws = controllers.stand_ins(text)
        return json.loads(_native.Scenario(text, str(path), str(base_dir), controllers=laws).network())
    except (InputError, RunFailed, OSError, ValueError):
        return None


@dataclass(frozen=True)
class PortSides:
    """Where a port is, and where it sends to."""

    of_host: bool
    to_host: bool


def port_sides(run: Run) -> dict[str, PortSides]:
    """Return the sides of each port of a run's network by its name, such as ``leaf0.p3``.

    Empty if the network cannot be built any more.
    """
    if _is_of_other_file(run):
        return {}
    path = run.folder / "scenario.toml"
    return _port_sides(path, run.out, path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _port_sides(path: Path, base_dir: Path, modified: int) -> dict[str, PortSides]:
    del modified  # part of the key alone
    network = _built(path, base_dir)
    found: dict[str, PortSides] = {}
    for link in network["links"] if network else ():
        is_host = [network["nodes"][link[end]]["kind"] == "host" for end in "ab"] if network else []
        found[link["a_port"]] = PortSides(*is_host)
        found[link["b_port"]] = PortSides(*reversed(is_host))
    return found


def hosts(network: Mapping[str, Any]) -> list[str]:
    """Return the names of the hosts, in the order of their numbers."""
    return [node["name"] for node in network["nodes"] if node["kind"] == "host"]


def rates(network: Mapping[str, Any]) -> dict[Link, float]:
    """Return the rate in bit/s of each link in each direction, of parallel links that of one of them."""
    names = [node["name"] for node in network["nodes"]]
    found: dict[Link, float] = {}
    for link in network["links"]:
        first, second = names[link["a"]], names[link["b"]]
        found[first, second] = found[second, first] = float(link["rate_bps"])
    return found


def has_parallel_links(network: Mapping[str, Any]) -> bool:
    """Return whether two nodes are connected by more than one link."""
    return len({frozenset((link["a"], link["b"])) for link in network["links"]}) < len(network["links"])


def is_tree(network: Mapping[str, Any]) -> bool:
    """Return whether there is one path between any two nodes."""
    return len(network["links"]) == len(network["nodes"]) - 1


def tree_path(network: Mapping[str, Any], source: str, destination: str) -> list[str]:
    """Return the nodes of the only path between two hosts of a tree, both included."""
    neighbours: dict[str, list[str]] = {}
    for first, second in rates(network):
        neighbours.setdefault(first, []).append(second)
    before, waiting = {source: source}, [source]
    for node in waiting:
        for neighbour in neighbours[node]:
            if neighbour not in before:
                before[neighbour] = node
                waiting.append(neighbour)
    path = [destination]
    while path[-1] != source:
        path.append(before[path[-1]])
    return path[::-1]
