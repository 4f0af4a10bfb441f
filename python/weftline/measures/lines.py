"""Runs as the lines of a figure: one label, one run per seed, values averaged over the seeds.

The interval beside a mean is the 95 % Student interval over the seeds; a single run has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from weftline.measures import stats
from weftline.measures.metrics import Flows, metric
from weftline.runs import Run

PERCENTILES = ("p50", "p95", "p99")


@dataclass(frozen=True)
class Mean:
    """A mean over seeds and half the width of its 95 % interval (None for one run)."""

    value: float
    interval: float | None = None
    count: int | None = None
    """How many runs have the value, where that is known."""

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Mean | None:
        """Return the mean of what is there, None if nothing is."""
        found = stats.estimate(values)
        return None if found is None else cls(found.mean, found.half, found.count)

    @property
    def low(self) -> float:
        """Lower end of the interval; the mean itself without one."""
        return self.value - (self.interval or 0)

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.value + (self.interval or 0)

    def text(self, write) -> str:
        """Return ``"1.23"`` or ``"1.23 ±0.05"``, each number as `write` writes it."""
        return write(self.value) if self.interval is None else f"{write(self.value)} ±{write(self.interval)}"


@dataclass
class Line:
    """One scheme: its runs differ in the seed alone."""

    label: str
    runs: list[Run]
    group: str | None = None
    """Only the flows of this group count for slowdowns; all without it."""
    place: str = ""
    """The variant of the axis of x that it stands at, in a figure that has one."""
    sizes: tuple[int, int | None] = (0, None)
    """Least and most size in bytes of the flows that metrics of flows count."""

    @cached_property
    def bins(self) -> int:
        """How many equal-count bins its flows support: 20, or 10 when there are few."""
        return 20 if self._flows >= 400 else 10

    @property
    def has_flows(self) -> bool:
        """Whether every run of it completed a flow, so that there is a slowdown to speak of."""
        return self._flows > 0

    @cached_property
    def _flows(self) -> int:
        return min(run.slowdown(bins=1, group=self.group)["overall"]["count"] for run in self.runs)

    def curve(self, bins: int) -> list[dict]:
        """Return a point per bin: ``share`` of flows up to it (0 to 1), ``size_bytes``, and percentiles.

        There are fewer than `bins` where many flows have one size: they share a bin.
        """
        tables = [run.slowdown(bins=bins, group=self.group)["bins"] for run in self.runs]
        flows = sum(row["count"] for row in tables[0])
        points, seen = [], 0
        for rows in zip(*tables, strict=False):
            seen += rows[0]["count"]
            point = {"share": seen / flows, "size_bytes": sum(r["size_bytes"] for r in rows) / len(rows)}
            point.update({p: Mean.of([r[p] for r in rows]) for p in PERCENTILES})
            points.append(point)
        return points

    def by_decade(self) -> dict[int, dict[str, Mean | None]]:
        """Return percentiles by power of ten of the flow size: 4 holds flows up to 10 KB.

        Sizes with fewer than 20 flows and than one flow in fifty are left out: their tail is one flow.
        """
        found: dict[int, list[dict]] = {}
        for run in self.runs:
            table = run.slowdown(scheme="decades", group=self.group)
            for row in table["bins"]:
                if row["count"] >= min(20, table["overall"]["count"] / 50):
                    found.setdefault(math.ceil(math.log10(max(1, row["size_bytes"]))), []).append(row)
        return {d: {p: Mean.of([r[p] for r in rows]) for p in PERCENTILES} for d, rows in found.items()}

    def overall(self) -> dict[str, Mean | None]:
        """Return percentiles over all flows."""
        rows = [run.slowdown(bins=1, group=self.group)["overall"] for run in self.runs]
        return {p: Mean.of([r.get(p) for r in rows]) for p in PERCENTILES}

    def metric(self, name: str) -> Mean | None:
        """Return a metric of `weftline.metrics` over the seeds."""
        return Mean.of(self.values(name))

    def values(self, name: str) -> list[float | None]:
        """Return the same of each run."""
        flows = Flows(least=self.sizes[0], most=self.sizes[1], group=self.group)
        return [metric(name).value(run, flows) for run in self.runs]

    def metric_text(self, name: str) -> str:
        """Return the same as text, with how many runs have it if fewer, and how many flows it leaves out."""
        from weftline.measures import evidence

        mean = self.metric(name)
        if mean is None:
            return "–"
        flows = Flows(least=self.sizes[0], most=self.sizes[1], group=self.group)
        left = evidence.unfinished(self.runs, flows) if evidence.of_finished_flows(name) else 0
        count = len(self.runs) if mean.count is None else mean.count
        return mean.text(metric(name).text) + evidence.beside(runs=count, asked=len(self.runs), left=left)


def at_share(points: Sequence[dict], share: float) -> dict:
    """Return the point of a curve whose bin holds the flow at a share of all flows."""
    return next((point for point in points if point["share"] >= share - 1e-9), points[-1])


def lines_of(runs: Sequence[Run]) -> list[Line]:
    """Group runs into lines: what differs in more than the seed gets a label of its own."""
    found: dict[str, Line] = {}
    for run, label in zip(runs, labels(runs), strict=True):
        found.setdefault(label, Line(label, [])).runs.append(run)
    return list(found.values())


def labels(runs: Sequence[Run]) -> list[str]:
    """Return what tells each run from the others: one thing if one is enough, else all that differ."""
    values = [_telling(run) for run in runs]
    keys = list(dict.fromkeys(key for value in values for key in value))
    differing = [key for key in keys if len({value[key] for value in values if key in value}) > 1]
    full = [tuple(value.get(key) for key in differing) for value in values]
    for key in differing:
        if len({value.get(key) for value in values}) == len(set(full)):
            differing = [key]
            break
    said = [", ".join(_said(key, value[key]) for key in differing if key in value) for value in values]
    return [text or scheme_name(run) for text, run in zip(said, runs, strict=True)]


def scheme_name(run: Run) -> str:
    """Return the controller as papers write it: ``hpcc``, ``dcqcn+w``; without one, the transport."""
    transport = run.scenario.get("transport", {})
    if transport.get("kind", "rdma") != "rdma":
        return str(transport["kind"])
    controller = transport.get("controller", {})
    kind = str(controller.get("kind", "none"))
    return f"{kind}+w" if kind in ("dcqcn", "timely") and controller.get("window") is True else kind


def _telling(run: Run) -> dict[str, str]:
    """The flat scenario, without the seed and without what follows from the choice of the controller."""
    flat = {"scheme": scheme_name(run), "name": run.name}
    for key, value in _flatten(run.scenario):
        follows = key.startswith(("telemetry.", "switch.ecn")) or key in (
            "transport.ack_priority",
            "run.threads",
        )
        if key not in ("seed", "name") and not follows and not key.startswith("transport.controller."):
            flat[key] = str(value)
    options = run.scenario.get("transport", {}).get("controller", {})
    for key, value in options.items():
        if key not in ("kind", "window"):
            flat[f"{flat['scheme']} {key}"] = str(value)
    return flat


def _said(key: str, value: str) -> str:
    return value if key in ("scheme", "name") else f"{key.rsplit('.', 1)[-1].rsplit(' ', 1)[-1]} {value}"


def _flatten(table: object, prefix: str = "") -> list[tuple[str, object]]:
    if isinstance(table, dict):
        items = table.items()
    elif isinstance(table, list) and table and all(isinstance(v, dict) for v in table):
        items = enumerate(table)
    else:
        return [(prefix, table)]
    return [
        pair for key, value in items for pair in _flatten(value, f"{prefix}.{key}" if prefix else str(key))
    ]
