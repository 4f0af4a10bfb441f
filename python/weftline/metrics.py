"""One number out of a run, by name: for tables, bars and the claims of experiments."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weftline import decoded, quantities, sharing, spread
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

    completion: tuple[str, str] | None = None
    """What of the completion of flows it is, and which number of it; None if it is something else."""

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


def _drops_at(link: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        links = run.summary.get("links") or {}
        return links[link]["drops"] if link in links else None

    return read


def _drop_rate(run: Run) -> float | None:
    """Packets dropped over those that hosts sent or dropped themselves."""
    ours = [of for link, of in (run.summary.get("links") or {}).items() if link.startswith("host -> ")]
    given = sum(of["packets_sent"] + of["drops"] for of in ours)
    return run.summary.get("drops", 0) / given if given else None


def _drops_for(cause: str) -> Callable[[Run], float | None]:
    """Packets that the disciplines of ports with a buffer of their own dropped for a reason."""

    def read(run: Run) -> float | None:
        ports = run.summary.get("drop_causes")
        return sum(causes.get(cause, 0) for causes in ports.values()) if ports else None

    return read


def _cebinae(part: str, *over: str) -> Callable[[Run], float | None]:
    """A total of all ports under Cebinae, or its ratio to the sum of others."""

    def read(run: Run) -> float | None:
        ports = list((run.summary.get("cebinae") or {}).values())
        if not ports:
            return None
        total = sum(port[part] for port in ports)
        if not over:
            return total
        whole = sum(port[key] for port in ports for key in over)
        return total / whole if whole else None

    return read


def _group_mean(group: str) -> Callable[[Run], float | None]:
    return lambda run: sharing.group_means(run, ns3=True).get(group)


def _first_share(run: Run) -> float | None:
    """Share of the flows' first group in what all flows delivered."""
    found = sharing.goodputs(run)
    total = math.fsum(rate for _, rate in found)
    return math.fsum(rate for group, rate in found if group == found[0][0]) / total if total else None


def _requests(key: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        times = sorted(job["completion_ns"] for job in run.summary.get("jobs") or [])
        if not times:
            return None
        return math.fsum(times) / len(times) if key == "mean" else times[int(0.99 * len(times))]

    return read


def _deadlines_met(run: Run, flows: Flows = Flows()) -> float | None:
    count, met = run.deadlines(group=flows.group)
    return met / count if count else None


def _backlog_growth(run: Run) -> float | None:
    found = run.backlog()
    if not found or not found["started_bytes"]:
        return None
    return (found["last_bytes"] - found["half_bytes"]) / found["started_bytes"]


def _share_of(group: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        found = run.backlog()
        if not found:
            return None
        groups = run.over_time("goodput_bps", every_ns=found["last_ns"], max_points=0)
        rates = {name: points[0][1] for name, points in groups.items()}
        return rates[group] / sum(rates.values()) if rates.get(group) else None

    return read


def _throughput(of_hosts: bool) -> Callable[[Run], float | None]:
    """Mean utilisation of the ports of hosts, or of the other ports that were measured, while flows start."""

    def read(run: Run) -> float | None:
        found = run.backlog()
        if not found:
            return None
        ports = run.over_time("utilisation", every_ns=found["last_ns"], max_points=0)
        means = [points[0][1] for port, points in ports.items() if port.startswith("host") == of_hosts]
        return math.fsum(means) / len(means) if means else None

    return read


def _completion(what: str, key: str) -> dict[str, Any]:
    """Read a number of the flows' completion; see `weftline.runs.Run.completion`."""

    def read(run: Run, flows: Flows = Flows()) -> float | None:
        found = run.completion(least=flows.least, most=flows.most, group=flows.group)
        return (found[what] or {}).get(key) if key else found[what]

    return {"read": read, "of_flows": read, "completion": (what, key)}


def _part(key: str, of: str) -> Callable[[Run], float | None]:
    """Return one counter of a run over another."""

    def read(run: Run) -> float | None:
        part, whole = run.summary.get(key), run.summary.get(of)
        return part / whole if part is not None and whole else None

    return read


def _received(key: str) -> Callable[[Run], float | None]:
    return lambda run: (run.summary.get("receiving") or {}).get(key)


METRICS: dict[str, Metric] = {
    "slowdown_mean": Metric(
        title="slowdown, mean", text=quantities.digits, **_completion("slowdown", "mean")
    ),
    "slowdown_p50": Metric(
        title="slowdown, median", text=quantities.digits, **_completion("slowdown", "p50")
    ),
    "slowdown_p95": Metric(title="slowdown, p95", text=quantities.digits, **_completion("slowdown", "p95")),
    "slowdown_p99": Metric(title="slowdown, p99", text=quantities.digits, **_completion("slowdown", "p99")),
    "nfct": Metric(
        title="NFCT (sum of FCT / sum of ideal)", text=quantities.digits, **_completion("nfct", "")
    ),
    "small_p95": Metric(title="p95 slowdown, smallest flows", read=_small_p95, text=quantities.digits),
    "fct_mean": Metric(title="FCT, mean", text=quantities.time_text, **_completion("fct_ns", "mean")),
    "goodput": Metric(
        title="goodput of a flow, mean",
        text=quantities.rate_text,
        axis="goodput of a flow, mean (Gb/s)",
        scale=1e-9,
        **_completion("goodput_bps", "mean"),
    ),
    "fct_p99": Metric(title="FCT, p99", text=quantities.time_text, **_completion("fct_ns", "p99")),
    "request_mean": Metric(
        title="request completion, mean",
        read=_requests("mean"),
        text=quantities.time_text,
        axis="request completion, mean (ms)",
        scale=1e-6,
    ),
    "request_p99": Metric(
        title="request completion, p99",
        read=_requests("p99"),
        text=quantities.time_text,
        axis="request completion, p99 (ms)",
        scale=1e-6,
    ),
    "deadlines_met": Metric(
        title="deadlines met",
        read=_deadlines_met,
        of_flows=_deadlines_met,
        text=quantities.share_text,
        axis="deadlines met (%)",
        scale=100,
    ),
    "backlog_growth": Metric(
        title="backlog growth (of what started)",
        read=_backlog_growth,
        text=quantities.share_text,
        axis="backlog growth (% of the bytes that started)",
        scale=100,
    ),
    "sent_share": Metric(
        title="load at the senders' links",
        read=_throughput(True),
        text=quantities.share_text,
        axis="senders' links in use (%)",
        scale=100,
    ),
    "received_share": Metric(
        title="load at the receivers' links",
        read=_throughput(False),
        text=quantities.share_text,
        axis="receivers' links in use (%)",
        scale=100,
    ),
    "convergence": Metric(
        title="time until shares are fair",
        read=sharing.convergence_ns,
        text=quantities.time_text,
        axis="time until shares are fair (ms)",
        scale=1e-6,
    ),
    "jain": Metric(title="Jain's index of goodputs", read=sharing.index, text=quantities.digits),
    "goodput_total": Metric(
        title="goodput, all flows",
        read=sharing.total_goodput,
        text=quantities.rate_text,
        axis="goodput of all flows (Mb/s)",
        scale=1e-6,
    ),
    "goodput_98_99": Metric(
        title="goodput, all flows, last second not counted",
        read=lambda run: sharing.total_goodput(run, ns3=True),
        text=quantities.rate_text,
        axis="goodput of all flows (Mb/s)",
        scale=1e-6,
    ),
    "throughput_98_99": Metric(
        title="throughput of the bottleneck, last second not counted",
        read=sharing.bottleneck_throughput,
        text=quantities.rate_text,
        axis="throughput (Mb/s)",
        scale=1e-6,
    ),
    "jain_ideal": Metric(
        title="Jain's index of goodputs over the max-min fair ones",
        read=sharing.index_against_ideal,
        text=quantities.digits,
    ),
    "first_share": Metric(
        title="share of the first group",
        read=_first_share,
        text=quantities.share_text,
        axis="share of the first group in all goodput (%)",
        scale=100,
    ),
    "cebinae_saturated": Metric(
        title="windows saturated",
        read=_cebinae("windows_saturated", "windows"),
        text=quantities.share_text,
        axis="windows that found the link saturated (%)",
        scale=100,
    ),
    "cebinae_top": Metric(
        title="top flows in a saturated window, mean",
        read=_cebinae("top_flows", "windows_saturated"),
        text=quantities.digits,
    ),
    "cebinae_tail": Metric(
        title="packets sent to the tail queue",
        read=_cebinae("to_tail", "to_head", "to_tail"),
        text=quantities.share_text,
        axis="packets sent to the tail queue (%)",
        scale=100,
    ),
    "cebinae_filter_drops": Metric(
        title="drops by Cebinae's filter", read=_cebinae("dropped_by_filter"), text=quantities.count_text
    ),
    "cebinae_buffer_drops": Metric(
        title="drops by Cebinae's full buffer", read=_cebinae("dropped_by_buffer"), text=quantities.count_text
    ),
    "cebinae_misses": Metric(
        title="packets that the flow cache missed",
        read=_cebinae("missed_by_cache"),
        text=quantities.count_text,
    ),
    "drops_buffer": Metric(
        title="drops for want of room", read=_drops_for("buffer"), text=quantities.count_text
    ),
    "drops_early": Metric(title="early drops", read=_drops_for("early"), text=quantities.count_text),
    "drops_filter": Metric(title="drops by a filter", read=_drops_for("filter"), text=quantities.count_text),
    "drops_horizon": Metric(
        title="drops beyond the last round", read=_drops_for("horizon"), text=quantities.count_text
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
    "drop_rate": Metric(
        title="drops (share of packets)",
        read=_drop_rate,
        text=quantities.share_text,
        axis="dropped packets (% of those that hosts sent)",
        scale=100,
    ),
    "drops": Metric(title="drops", read=_total("drops"), text=quantities.count_text),
    "ecn_marks": Metric(title="ECN marks", read=_total("ecn_marks"), text=quantities.count_text),
    "probes": Metric(title="probes", read=_total("probes"), text=quantities.count_text),
    "probe_bytes": Metric(
        title="bytes of probes",
        read=_total("probe_bytes"),
        text=quantities.bytes_text,
        axis="bytes of probes (MB)",
        scale=1e-6,
    ),
    "probe_share": Metric(
        title="probes (share of bytes on wire)",
        read=_part("probe_bytes", "bytes_on_wire"),
        text=quantities.share_text,
        axis="bytes of probes (% of all on the wire)",
        scale=100,
    ),
    "probes_settled": Metric(
        title="time until every switch knows every rack",
        read=_total("probes_settled_ns"),
        text=quantities.time_text,
        axis="time until every switch knows every rack (us)",
        scale=1e-3,
    ),
    "flowlets": Metric(title="flowlets", read=_total("flowlets"), text=quantities.count_text),
    "flowlets_moved": Metric(
        title="flowlets that moved", read=_total("flowlets_moved"), text=quantities.count_text
    ),
    "flowlets_moved_share": Metric(
        title="flowlets that moved (share)",
        read=_part("flowlets_moved", "flowlets"),
        text=quantities.share_text,
        axis="flowlets that left the port of the one before (%)",
        scale=100,
    ),
    "reordered_share": Metric(
        title="packets reordered on the way (share)",
        read=_received("reordered_share"),
        text=quantities.share_text,
        axis="data packets overtaken on the way (%)",
        scale=100,
    ),
    "paths_per_flow": Metric(
        title="paths of a flow, mean", read=_received("paths_per_flow"), text=quantities.digits
    ),
    "utilisation_mean": Metric(
        title="utilisation of the measured links, mean",
        read=spread.mean_utilisation,
        text=quantities.share_text,
        axis="utilisation of the measured links (%)",
        scale=100,
    ),
    "utilisation_most": Metric(
        title="utilisation of the busiest measured link",
        read=spread.most_utilisation,
        text=quantities.share_text,
        axis="utilisation of the busiest measured link (%)",
        scale=100,
    ),
    "imbalance": Metric(
        title="imbalance of the measured links",
        read=spread.imbalance,
        text=quantities.share_text,
        axis="imbalance, (most - least) / mean (%)",
        scale=100,
    ),
    "failure_to_last_loss": Metric(
        title="from the first failure to the last loss",
        read=spread.failure_to_last_loss_ns,
        text=quantities.time_text,
        axis="from the first failure to the last loss (us)",
        scale=1e-3,
    ),
    "unfinished": Metric(title="unfinished flows", read=_unfinished, text=quantities.count_text),
    "wire_bytes": Metric(title="bytes on wire", read=_total("bytes_on_wire"), text=quantities.bytes_text),
    "end": Metric(title="simulated", read=_total("end_ns"), text=quantities.time_text),
    "seconds": Metric(title="CPU s", read=_total("cpu_seconds"), text=quantities.digits),
    "packet_hops": Metric(title="packet-hops", read=_total("packet_hops"), text=quantities.count_text),
    "speed": Metric(title="hops/s", read=_total("packet_hops_per_cpu_second"), text=quantities.count_text),
}


def metric(name: str) -> Metric:
    """Return the metric called `name`; `drops host -> leaf` are those at links from hosts to leaves.

    `share web` is the share of the group called web in all that was delivered while flows started; `flow web`
    the mean goodput of a flow of it, counted as `goodput_98_99` is.
    """
    if re.fullmatch(r"drops \S+ -> \S+", name):
        link = name.removeprefix("drops ")
        return Metric(title=f"drops, {link}", read=_drops_at(link), text=quantities.count_text)
    if name.startswith("share "):
        group = name.removeprefix("share ")
        return Metric(
            title=f"share of {group}",
            read=_share_of(group),
            text=quantities.share_text,
            axis=f"share of {group} (% of what was delivered)",
            scale=100,
        )
    if name.startswith("flow "):
        group = name.removeprefix("flow ")
        return Metric(
            title=f"goodput of a flow of {group}, mean",
            read=_group_mean(group),
            text=quantities.rate_text,
            axis=f"goodput of a flow of {group}, mean (Mb/s)",
            scale=1e-6,
        )
    if name not in METRICS:
        raise InputError(
            f'unknown metric "{name}": {nearest(name, list(METRICS))}known: {", ".join(METRICS)}'
        )
    return METRICS[name]
