"""What the engine's schemes count: counters and metrics as they declare them, none known here by name."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from weftline import _native

if TYPE_CHECKING:
    from weftline.measures.readings import Reader
    from weftline.runs import Run

__all__ = ["declarations", "reader"]


@cache
def declarations() -> dict[str, list[dict[str, Any]]]:
    """Return `losses`, the counters of data packets, `groups`, those of schemes, `metrics`, and `flows`.

    `metrics` is the table of metrics, `flows` what schemes show of flows over time.
    """
    return json.loads(_native.counters())


def reader(metric: dict[str, Any]) -> Reader:
    """Return the reader of a metric: a counter of the run or of all ports, or its ratio to others.

    `metric` has `table` of summary.json (empty: totals), `part`, `over` and `fold`.
    """

    def value(run: Run, key: str) -> float | None:
        if not metric["table"]:
            return run.summary.get(key)
        ports = (run.summary.get(metric["table"]) or {}).values()
        counts = [port.get(key, 0) for port in ports]
        return (max(counts) if metric["fold"] == "max" else sum(counts)) if counts else None

    def read(run: Run) -> float | None:
        part, over = value(run, metric["part"]), [value(run, key) for key in metric["over"]]
        if part is None or not over:
            return part
        known = [count for count in over if count is not None]
        whole = sum(known) if len(known) == len(over) else None
        return part / whole if whole else None

    return read
