"""One number out of a run, by name: for tables, bars and the claims of experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weftline import decoded, quantities, sharing
from weftline.errors import InputError, nearest

if TYPE_CHECKING:
    from weftline.runs import Run


@dataclass(frozen=True, kw_only=True)
class Flows:
    """Which flows of a run a number is about: sizes in bytes, ends included, and one group or all."""

    least: int = 0
    most: int | None = None
    group: str | None = None


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A named number of a run."""

    title: str
    read: Callable[[Run], float | None]
    """None where the run does not have it."""
    text: Callable[[float | None], str]
    axis: str = ""
    """Title of an axis, with the unit; the plain title without it."""
    scale: float = 1.0
    """From the stored value to that of the axis."""
    of_flows: Callable[[Run, Flows], float | None] | None = None
    """How it is read where only some flows count; without it all of them do."""

    def value(self, run: Run, flows: Flows) -> float | None:
        """Return the number of a run, over the flows that count where they can be chosen."""
        return self.of_flows(run, flows) if self.of_flows else self.read(run)


def _total(key: str) -> Callable[[Run], float | None]:
    return lambda run: run.summary.get(key)


def _queue(percentile: str) -> Callable[[Run], float | None]:
    return lambda run: run.queues["percentiles"].get(percentile) if run.queues else None


def _small_p95(run: Run) -> float | None:
    bins = [row for row in run.slowdown(scheme="decades")["bins"] if row["count"]]
    return min(bins, key=lambda row: row["size_bytes"])["p95"] if bins else None


def _unfinished(run: Run) -> float | None:
    flows, done = run.summary.get("flows"), run.summary.get("flows_done")
    return flows - done if flows is not None and done is not None else None


def _path_packets(known: str) -> Callable[[Run], float | None]:
    return lambda run: decoded.path_packets(run, known)


def _latency_error(quantile: str) -> Callable[[Run], float | None]:
    return lambda run: decoded.latency_error(run, quantile)


def _completion(what: str, key: str) -> dict[str, Callable]:
    """Read a number of the flows' completion; see `weftline.runs.Run.completion`."""

    def read(run: Run, flows: Flows = Flows()) -> float | None:
        found = run.completion(least=flows.least, most=flows.most, group=flows.group)
        return (found[what] or {}).get(key)

    return {"read": read, "of_flows": read}


METRICS: dict[str, Metric] = {
    "slowdown_p50": Metric(
        title="slowdown, median", text=quantities.digits, **_completion("slowdown", "p50")
    ),
    "slowdown_p95": Metric(title="slowdown, p95", text=quantities.digits, **_completion("slowdown", "p95")),
    "slowdown_p99": Metric(title="slowdown, p99", text=quantities.digits, **_completion("slowdown", "p99")),
    "small_p95": Metric(title="p95 slowdown, smallest flows", read=_small_p95, text=quantities.digits),
    "fct_mean": Metric(title="FCT, mean", text=quantities.time_text, **_completion("fct_ns", "mean")),
    "goodput": Metric(
        title="goodput of a flow, mean",
        text=quantities.rate_text,
        axis="goodput of a flow, mean (Gb/s)",
        scale=1e-9,
        **_completion("goodput_bps", "mean"),
    ),
    "convergence": Metric(
        title="time until shares are fair",
        read=sharing.convergence_ns,
        text=quantities.time_text,
        axis="time until shares are fair (ms)",
        scale=1e-6,
    ),
    "fairness": Metric(title="final fairness (Jain)", read=sharing.final_fairness, text=quantities.digits),
    "queue_p50": Metric(
        title="queue, median",
        read=_queue("p50"),
        text=quantities.bytes_text,
        axis="queue, median (KB)",
        scale=1e-3,
    ),
    "queue_p95": Metric(
        title="queue p95", read=_queue("p95"), text=quantities.bytes_text, axis="queue p95 (KB)", scale=1e-3
    ),
    "queue_p99": Metric(
        title="queue p99", read=_queue("p99"), text=quantities.bytes_text, axis="queue p99 (KB)", scale=1e-3
    ),
    "queue_max": Metric(
        title="queue max", read=_queue("max"), text=quantities.bytes_text, axis="queue max (KB)", scale=1e-3
    ),
    "path_packets": Metric(
        title="packets until a path is known", read=_path_packets("ids"), text=quantities.digits
    ),
    "path_packets_network": Metric(
        title="packets until a path is known, with the network",
        read=_path_packets("network"),
        text=quantities.digits,
    ),
    "latency_median_error": Metric(
        title="relative error of median latency",
        read=_latency_error("0.5"),
        text=quantities.share_text,
        axis="relative error of median latency (%)",
        scale=100,
    ),
    "latency_tail_error": Metric(
        title="relative error of p99 latency",
        read=_latency_error("0.99"),
        text=quantities.share_text,
        axis="relative error of p99 latency (%)",
        scale=100,
    ),
    "pauses": Metric(title="pauses", read=_total("pauses"), text=quantities.count_text),
    "paused_share": Metric(
        title="paused (share of port time)",
        read=_total("paused_share"),
        text=quantities.share_text,
        axis="share of port time paused (%)",
        scale=100,
    ),
    "recirculated_share": Metric(
        title="recirculated (share of bytes switched)",
        read=_total("recirculated_share"),
        text=quantities.share_text,
        axis="recirculated bytes (% of all that switches sent)",
        scale=100,
    ),
    "drops": Metric(title="drops", read=_total("drops"), text=quantities.count_text),
    "ecn_marks": Metric(title="ECN marks", read=_total("ecn_marks"), text=quantities.count_text),
    "unfinished": Metric(title="unfinished flows", read=_unfinished, text=quantities.count_text),
    "wire_bytes": Metric(title="bytes on wire", read=_total("bytes_on_wire"), text=quantities.bytes_text),
    "end": Metric(title="simulated", read=_total("end_ns"), text=quantities.time_text),
    "seconds": Metric(title="CPU s", read=_total("cpu_seconds"), text=quantities.digits),
    "packet_hops": Metric(title="packet-hops", read=_total("packet_hops"), text=quantities.count_text),
    "speed": Metric(title="hops/s", read=_total("packet_hops_per_cpu_second"), text=quantities.count_text),
}


def metric(name: str) -> Metric:
    """Return the metric called `name`."""
    if name not in METRICS:
        raise InputError(
            f'unknown metric "{name}": {nearest(name, list(METRICS))}known: {", ".join(METRICS)}'
        )
    return METRICS[name]
