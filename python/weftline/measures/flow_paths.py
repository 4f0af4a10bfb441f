"""The links that each flow of a run took.

On a dumbbell or a parking lot there is one path between two hosts. On other networks a run with
``telemetry.paths = true`` records paths in the column `path` of telemetry.parquet; a flow that took several
paths counts with the one that most of its recorded packets took.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weftline import _native, columns
from weftline.measures import networks

if TYPE_CHECKING:
    from weftline.runs import Run

BOTTLENECKS = ("dumbbell", "parking-lot")
"""Topologies of which only the links between switches count, at their raw rates, as the authors of Cebinae
count."""


def links_of_flows(run: Run) -> tuple[list[float], list[list[int]]] | None:
    """Return the rates of links in bit/s, and for each measured flow, in order, the numbers of its links.

    Returns
    -------
    tuple or None
        None if the path of a flow is not known, or two nodes have parallel links, of which paths do not name
        one.
    """
    shares, network = run.shares(), networks.built(run)
    if not shares or network is None or networks.has_parallel_links(network):
        return None
    kind = run.scenario.get("topology", {}).get("kind")
    of_flow = _bottlenecks if kind in BOTTLENECKS and networks.is_tree(network) else _recorded
    paths = of_flow(run, network, shares)
    if not all(paths):
        return None
    rates = networks.rates(network)
    numbers = {link: number for number, link in enumerate(dict.fromkeys(itertools.chain(*paths)))}
    return [rates[link] for link in numbers], [[numbers[link] for link in path] for path in paths]


def _bottlenecks(
    run: Run, network: Mapping[str, Any], shares: list[dict[str, Any]]
) -> list[list[networks.Link]]:
    hosts = networks.hosts(network)
    ends = [(hosts[share["src"]], hosts[share["dst"]]) for share in shares]
    paths = {pair: networks.tree_path(network, *pair) for pair in set(ends)}
    return [list(itertools.pairwise(paths[pair][1:-1])) for pair in ends]


def _recorded(
    run: Run, network: Mapping[str, Any], shares: list[dict[str, Any]]
) -> list[list[networks.Link]]:
    hosts, taken = networks.hosts(network), recorded(run)
    found = []
    for share in shares:
        switches = taken.get(share["flow"])
        nodes = [hosts[share["src"]], *switches, hosts[share["dst"]]] if switches else []
        found.append(list(itertools.pairwise(nodes)))
    return found


def recorded(run: Run) -> dict[int, tuple[str, ...]]:
    """Return the switches that most recorded packets of each flow passed; empty if none were recorded."""
    if not (run.folder / "telemetry.parquet").is_file():
        return {}
    table = columns.read(_native.table(str(run.out), "telemetry"), ["flow_id", "path"])
    counts: dict[int, Counter[str]] = {}
    for flow, path in zip(table["flow_id"], table["path"], strict=True):
        if path:
            counts.setdefault(flow, Counter())[path] += 1
    return {flow: tuple(seen.most_common(1)[0][0].split()) for flow, seen in counts.items()}
