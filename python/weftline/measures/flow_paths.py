"""By which links the flows of a run went, where it recorded that: the column `path` of telemetry.parquet
(`telemetry.paths = true`).

Of Clos networks whose links between switches have one rate. A flow that went several
ways counts with the one that most of its recorded packets took.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from weftline import _native, columns, quantities
from weftline.errors import InputError

if TYPE_CHECKING:
    from weftline.runs import Run

RATES = {
    "leaf-spine": ("host_link", "fabric_link"),
    "fat-tree": ("host_link", "fabric_link"),
    "hpcc-fat-tree": ("host_link", "fabric_link"),
}
"""Keys of the links at hosts, and of those between switches, by kind of topology."""

Link = tuple[str, str]


def of_flows(run: Run) -> tuple[list[float], list[list[int]]] | None:
    """Return the rates of links in bit/s, and for each measured flow, in order, the numbers of its links.

    Returns
    -------
    tuple or None
        None if a flow's way was not recorded, or the network's links are not as told above.
    """
    topology = run.scenario.get("topology", {})
    taken = paths(run)
    shares = run.shares()
    if not shares or topology.get("override") or any(share["flow"] not in taken for share in shares):
        return None
    try:
        host, fabric = (
            quantities.parse_rate(topology[key]["rate"]) for key in RATES[topology.get("kind", "")]
        )
    except (KeyError, InputError):
        return None
    numbers: dict[Link, int] = {}
    rates: list[float] = []
    found: list[list[int]] = []
    for share in shares:
        path = taken[share["flow"]]
        nodes = [f"host{share['src']}", *path, f"host{share['dst']}"]
        links = list(itertools.pairwise(nodes))
        for place, link in enumerate(links):
            if link not in numbers:
                numbers[link] = len(rates)
                rates.append(host if place in (0, len(links) - 1) else fabric)
        found.append([numbers[link] for link in links])
    return rates, found


def paths(run: Run) -> dict[int, tuple[str, ...]]:
    """Return the switches by which most recorded packets of each flow went; empty if none were recorded."""
    if not (run.out / "telemetry.parquet").is_file():
        return {}
    table = columns.read(_native.table(str(run.out), "telemetry"), ["flow_id", "path"])
    counts: dict[int, Counter[str]] = {}
    for flow, path in zip(table["flow_id"], table["path"], strict=True):
        if path:
            counts.setdefault(flow, Counter())[path] += 1
    return {flow: tuple(seen.most_common(1)[0][0].split()) for flow, seen in counts.items()}
