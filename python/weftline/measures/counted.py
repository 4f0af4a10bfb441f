"""What the engine's schemes count: counters and metrics as they declare them, none known here by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from weftline import _native

if TYPE_CHECKING:
    from weftline.measures.readings import Reader
    from weftline.runs import Run

__all__ = ["declarations", "metrics", "reader"]


@cache
def declarations() -> dict[str, list[dict[str, Any]]]:
    """Return `losses`, the counters of data packets, and `groups`, those of schemes with their metrics."""
    return json.loads(_native.counters())


def metrics() -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Yield every metric of a scheme, with its group and the counter that it is about."""
    for group in declarations()["groups"]:
        counters = {counter["key"]: counter for counter in group["counters"]}
        for metric in group["metrics"]:
            yield metric, group, counters[metric["part"]]


def reader(metric: dict[str, Any], group: dict[str, Any], counter: dict[str, Any]) -> Reader:
    """Return the reader of a metric: a counter of the run or of all ports, or its ratio to others."""

    def value(run: Run, key: str) -> float | None:
        if not group["table"]:
            return run.summary.get(key)
        ports = (run.summary.get(group["table"]) or {}).values()
        fold = max if counter["fold"] == "max" else sum
        return fold(port.get(key, 0) for port in ports) if ports else None

    def read(run: Run) -> float | None:
        part, over = value(run, metric["part"]), [value(run, key) for key in metric["over"]]
        if part is None or not over:
            return part
        whole = None if None in over else sum(over)
        return part / whole if whole else None

    return read
