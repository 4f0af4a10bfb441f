"""One number out of a run, by name: for tables, bars and the claims of experiments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weftline import quantities, renamed
from weftline.errors import InputError, nearest
from weftline.measures import counted, losses, over_time, recovery, sharing, spread, steps
from weftline.measures import readings as read
from weftline.measures.readings import Flows, Reader

if TYPE_CHECKING:
    from weftline.runs import Run

__all__ = ["METRICS", "Flows", "Metric", "metric"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A named number of a run."""

    title: str
    about: str = ""
    """What the number is, as `weftline explain` says it; empty where the engine itself explains it."""
    read: Reader
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


def _number(title: str, reader: Reader, **more: Any) -> Metric:
    return Metric(title=title, read=reader, text=quantities.digits, **more)


def _count(title: str, reader: Reader, **more: Any) -> Metric:
    return Metric(title=title, read=reader, text=quantities.count_text, **more)


def _share(title: str, reader: Reader, axis: str, **more: Any) -> Metric:
    """A share, from 0 to 1; axes are in per cent: `axis` names the whole."""
    return Metric(title=title, read=reader, text=quantities.share_text, axis=axis, scale=100, **more)


def _mbps(title: str, reader: Reader, axis: str, **more: Any) -> Metric:
    axis = f"{axis} (Mb/s)"
    return Metric(title=title, read=reader, text=quantities.rate_text, axis=axis, scale=1e-6, **more)


def _milliseconds(title: str, reader: Reader, **more: Any) -> Metric:
    axis = f"{title} (ms)"
    return Metric(title=title, read=reader, text=quantities.time_text, axis=axis, scale=1e-6, **more)


def _microseconds(title: str, reader: Reader, **more: Any) -> Metric:
    axis = f"{title} (us)"
    return Metric(title=title, read=reader, text=quantities.time_text, axis=axis, scale=1e-3, **more)


def _kilobytes(title: str, reader: Reader, **more: Any) -> Metric:
    axis = f"{title} (KB)"
    return Metric(title=title, read=reader, text=quantities.bytes_text, axis=axis, scale=1e-3, **more)


def _completed(
    title: str, what: str, key: str, text: Callable[[float | None], str] = quantities.digits, **more: Any
) -> Metric:
    return Metric(title=title, text=text, **read.completion(what, key), **more)


def _of_steps(
    title: str,
    read: Callable[..., float | None],
    text: Callable[[float | None], str] = quantities.time_text,
    **more: Any,
) -> Metric:
    return Metric(title=title, read=read, of_flows=read, text=text, **more)


def _bandwidth(title: str, column: str, **more: Any) -> Metric:
    read = steps.value(column, steps.mean)
    return _of_steps(title, read, quantities.rate_text, axis=f"{title} (Gb/s)", scale=1e-9, **more)


def _declared(metric: dict[str, Any], group: dict[str, Any], counter: dict[str, Any]) -> Metric:
    """A number of a scheme's counters: a share (its axis names the whole), another ratio, or a counter."""
    title, about, reader = metric["title"], metric["text"], counted.reader(metric, group, counter)
    if metric["over"]:
        if metric["axis"]:
            return _share(title, reader, metric["axis"], about=about)
        return _number(title, reader, about=about)
    match counter["unit"]:
        case "bytes":
            axis = f"{title} (MB)"
            text = quantities.bytes_text
            return Metric(title=title, about=about, read=reader, text=text, axis=axis, scale=1e-6)
        case "ns":
            return _microseconds(title, reader, about=about)
        case _:
            return _count(title, reader, about=about)


METRICS: dict[str, Metric] = {
    "slowdown_mean": _completed(
        "slowdown, mean", "slowdown", "mean", about="Mean of the slowdowns; every flow counts once."
    ),
    "slowdown_p50": _completed(
        "slowdown, median", "slowdown", "p50", about="Median of the slowdowns of all flows that finished."
    ),
    "slowdown_p95": _completed(
        "slowdown, p95", "slowdown", "p95", about="Slowdown that 95 % of the finished flows stay below."
    ),
    "slowdown_p99": _completed(
        "slowdown, p99", "slowdown", "p99", about="Slowdown that 99 % of the finished flows stay below."
    ),
    "nfct": _completed(
        "NFCT (sum of FCT / sum of ideal)",
        "nfct",
        "",
        about="Sum of the completion times over the sum of the ideal ones: the longest flows count most.",
    ),
    "small_p95": _number(
        "p95 slowdown, smallest flows",
        read.small_p95,
        about="95th percentile of the slowdown of the flows in the smallest power of ten.",
    ),
    "fct_mean": _completed(
        "FCT, mean", "fct_ns", "mean", quantities.time_text, about="Mean completion time."
    ),
    "goodput": _completed(
        "goodput of a flow, mean",
        "goodput_bps",
        "mean",
        quantities.rate_text,
        axis="goodput of a flow, mean (Gb/s)",
        scale=1e-9,
        about="Payload of a flow over its completion time; a mean over flows, each counting once.",
    ),
    "fct_p99": _completed(
        "FCT, p99", "fct_ns", "p99", quantities.time_text, about="99th percentile of the completion time."
    ),
    "request_mean": _milliseconds(
        "request completion, mean",
        read.requests("mean"),
        about="Mean time from the start of an incast's event or a collective to its last flow's end.",
    ),
    "request_p99": _milliseconds(
        "request completion, p99", read.requests("p99"), about="99th percentile of the same."
    ),
    "step_mean": _of_steps(
        "step of a job, mean",
        steps.value("time_ns", steps.mean),
        about="Mean time of the steps of jobs that ended, from first start to last delivery.",
    ),
    "step_max": _of_steps(
        "step of a job, slowest", steps.value("time_ns", max), about="Time of the slowest step."
    ),
    "step_over_ideal": _of_steps(
        "step over its ideal time",
        steps.over_ideal,
        quantities.digits,
        about="Mean over steps of their time over the ideal time: 1 is a lower bound.",
    ),
    "finish_to_finish": _of_steps(
        "steps from finish to finish, mean",
        steps.value("finish_to_finish_ns", steps.mean),
        about="Mean time from the end of a step to the end of the next, computation included.",
    ),
    "algbw": _bandwidth(
        "algorithm bandwidth",
        "algbw_bps",
        about="Algorithm bandwidth of the steps, mean: data of every host over the time.",
    ),
    "busbw": _bandwidth(
        "bus bandwidth", "busbw_bps", about="Bus bandwidth of the steps, mean, as nccl-tests define it."
    ),
    "deadlines_met": _share(
        "deadlines met",
        read.deadlines_met,
        "deadlines met (%)",
        of_flows=read.deadlines_met,
        about="Share of the flows with a deadline that ended by it.",
    ),
    "backlog_growth": _share(
        "backlog growth (of what started)",
        read.backlog_growth,
        "backlog growth (% of the bytes that started)",
        about=(
            "Bytes under way when the last flow started, less those when half had, over the bytes that "
            "started in between. Near 0: the network keeps up."
        ),
    ),
    "sent_share": _share(
        "load at the senders' links",
        read.throughput(of_hosts=True),
        "senders' links in use (%)",
        about="Mean utilisation of the hosts' ports while flows start.",
    ),
    "received_share": _share(
        "load at the receivers' links",
        read.throughput(of_hosts=False),
        "receivers' links in use (%)",
        about="Mean utilisation of the measured ports of switches while flows start.",
    ),
    "convergence": _milliseconds(
        "time until shares are fair",
        sharing.convergence_ns,
        about="When Jain's index of the goodputs over 1 ms first reaches 0.95.",
    ),
    "jain": _number(
        "Jain's index of goodputs",
        sharing.index,
        about=(
            "Jain's index, (sum x)^2 / (n sum x^2), of the mean goodputs of the measured flows: 1 if all are "
            "equal, 1/n if one has all."
        ),
    ),
    "jain_without_last_second": _number(
        "Jain's index of goodputs, without the last second",
        lambda run: sharing.index(run, ns3=True),
        axis="Jain's index of goodputs",
        about="As the authors of Cebinae count: without the last second.",
    ),
    "jain_ideal": _number(
        "Jain's index of goodputs over the max-min fair ones",
        sharing.index_against_ideal,
        about=(
            "Jain's index of the mean goodputs over the max-min fair ones, by water filling over the links "
            "between the switches of a dumbbell or a parking lot."
        ),
    ),
    "goodput_total": _mbps(
        "goodput, all flows",
        sharing.total_goodput,
        "goodput of all flows",
        about="Sum of the mean goodputs of the measured flows.",
    ),
    "goodput_without_last_second": _mbps(
        "goodput, all flows, without the last second",
        lambda run: sharing.total_goodput(run, ns3=True),
        "goodput of all flows",
        about="As the authors of Cebinae count: without the last second, times 98/99.",
    ),
    "throughput_without_last_second": _mbps(
        "throughput of the bottleneck, without the last second",
        sharing.bottleneck_throughput,
        "throughput",
        about="Bytes on a dumbbell's bottleneck over time, counted in the same way.",
    ),
    "first_share": _share(
        "share of the first group",
        read.first_share,
        "share of the first group in all goodput (%)",
        about="Share of the first flow's group in all goodput.",
    ),
    "fairness": _number(
        "final fairness (Jain)",
        sharing.final_fairness,
        about="Mean of Jain's index over the last third of the time in which all measured flows run.",
    ),
    "queue_p50": _kilobytes(
        "queue, median",
        read.queue("p50"),
        about="Median of the queue lengths of all sampled ports, idle ones included.",
    ),
    "queue_p95": _kilobytes("queue p95", read.queue("p95"), about="95th percentile of the same."),
    "queue_p99": _kilobytes("queue p99", read.queue("p99"), about="99th percentile of the same."),
    "queue_max": _kilobytes("queue max", read.queue("max"), about="Longest queue that a sample saw."),
    "path_packets": _number(
        "packets until a path is known",
        read.path_packets("ids"),
        about="Packets until PINT's collector knows a flow's path, from the list of switches alone.",
    ),
    "path_packets_network": _number(
        "packets until a path is known, with the network",
        read.path_packets("network"),
        about="The same when the collector also knows the links.",
    ),
    "latency_median_error": _share(
        "relative error of median latency",
        read.latency_error("0.5"),
        "relative error of median latency (%)",
        about="Relative error of the median hop latency decoded from PINT's digests.",
    ),
    "latency_tail_error": _share(
        "relative error of p99 latency",
        read.latency_error("0.99"),
        "relative error of p99 latency (%)",
        about="Relative error of the 99th percentile of hop latency decoded from PINT's digests.",
    ),
    "pauses": _count("pauses", read.total("pauses")),
    "paused_share": _share(
        "paused (share of port time)", read.total("paused_share"), "share of port time paused (%)"
    ),
    "recirculated_share": _share(
        "recirculated (share of bytes switched)",
        read.total("recirculated_share"),
        "recirculated bytes (% of all that switches sent)",
        about="Bytes that passed a switch's pipeline twice, over all that switches sent.",
    ),
    "drop_rate": _share(
        "drops (share of packets)",
        read.drop_rate,
        "dropped packets (% of those that hosts sent)",
        about="Packets dropped over those that hosts sent or dropped themselves.",
    ),
    "drops": _count("drops", read.total("drops")),
    "ecn_marks": _count("ECN marks", read.total("ecn_marks")),
    **{metric["name"]: _declared(metric, group, part) for metric, group, part in counted.metrics()},
    "reordered_share": _share(
        "packets reordered in flight (share)",
        read.received("reordered_share"),
        "data packets overtaken in flight (%)",
        about="Data packets that arrived after a packet of their flow that was sent later.",
    ),
    "paths_per_flow": _number(
        "paths of a flow, mean",
        read.received("paths_per_flow"),
        about="Different paths that the packets of a flow took, mean over flows.",
    ),
    "utilisation_mean": _share(
        "utilisation of the measured links, mean",
        spread.mean_utilisation,
        "utilisation of the measured links (%)",
        about="Mean utilisation of the links that measure.utilisation records.",
    ),
    "utilisation_max": _share(
        "utilisation of the busiest measured link",
        spread.max_utilisation,
        "utilisation of the busiest measured link (%)",
        about="Mean utilisation of the busiest link that measure.utilisation records.",
    ),
    "imbalance": _share(
        "imbalance of the measured links",
        spread.imbalance,
        "imbalance, (max - min) / mean (%)",
        about="Of the utilisations of the measured links: (max - min) / mean.",
    ),
    "failure_to_last_loss": _microseconds(
        "from the first failure to the last loss",
        spread.failure_to_last_loss_ns,
        about="From the first failure of a link or switch to the last packet lost to one.",
    ),
    "recovery": _microseconds(
        "time to recover from the first failure",
        recovery.recovery_ns,
        about="From the first failure until goodput stays above 90 % of what it was before.",
    ),
    "deficit": _kilobytes(
        "not delivered after the first failure",
        recovery.deficit_bytes,
        about="Bytes that were delivered less in that time than at the goodput before the failure.",
    ),
    "silenced": _share(
        "flows silenced by the first failure",
        recovery.silenced,
        "flows that deliver nothing from 2 to 8 ms after the first failure (%)",
        about="Share of the flows at work that deliver nothing from 2 to 8 ms after the first failure.",
    ),
    "packets_lost": _count(
        "packets lost or stranded",
        read.packets_lost,
        about="Packets lost on failed links or at random, or that could not be forwarded.",
    ),
    "lost_on_dead_links": _count(
        "lost on dead links",
        losses.lost_on_dead_links,
        about="Packets of every kind that were on a link when it went down.",
    ),
    "lost_at_random": _count(
        "lost at random",
        losses.lost_at_random,
        about="Packets of every kind that links lost at random ([failures] loss).",
    ),
    "stranded": _count(
        "stranded",
        read.total("packets_stranded"),
        about="Packets of every kind that could not be forwarded: no route, or their link went down.",
    ),
    **{
        found["key"]: Metric(
            title=found["title"],
            about=found["text"],
            read=losses.counter(found["key"]),
            of_flows=losses.of_group(found["key"]),
            text=quantities.count_text,
        )
        for found in losses.declared()
    },
    "retransmitted_share": _share(
        "retransmissions (share of data packets)",
        read.retransmitted_share,
        "data packets sent again (% of those sent)",
        about="Data packets that were sent again, over all data packets sent.",
    ),
    "audit_flowlets": _count(
        "flowlets that were audited",
        read.audited("flowlets"),
        about="Flowlets, separated by pauses, whose digests were decoded separately.",
    ),
    "audit_known": _share(
        "flowlets whose path was decoded",
        read.audited("known"),
        "flowlets whose path was decoded (%)",
        about=("Flowlets with at least 20 digests whose path was decoded, as a share of all such flowlets."),
    ),
    "audit_right": _share(
        "decoded paths that are the true ones",
        read.audited("right"),
        "decoded paths that are the true ones (%)",
        about="Decoded flowlets whose decoded paths are exactly those that their packets took.",
    ),
    "audit_wrong": _count(
        "wrong paths of flowlets on one path",
        read.audited("wrong"),
        about="Decoded paths that no packet took, of flowlets whose packets took one path.",
    ),
    "audit_blended": _count(
        "wrong paths of flowlets on several",
        read.audited("blended"),
        about="Decoded paths that no packet took, of flowlets whose packets took several.",
    ),
    "audit_mixed": _share(
        "flowlets on several paths",
        read.audited("mixed"),
        "flowlets whose packets took several paths (%)",
        about="Flowlets whose packets took several paths.",
    ),
    "audit_paths": _number(
        "paths of a connection at once, decoded",
        read.audited("audited paths"),
        about="Distinct paths of the subflows of a connection within 1 ms, as decoded, mean.",
    ),
    "true_paths": _number(
        "paths of a connection at once",
        read.audited("true paths"),
        about="Distinct paths of the subflows of a connection within 1 ms, mean.",
    ),
    "audit_disjointness": _number(
        "disjointness of subflows, decoded",
        read.audited("audited disjointness"),
        about="The same as true_disjointness, of decoded paths.",
    ),
    "true_disjointness": _number(
        "disjointness of subflows",
        read.audited("true disjointness"),
        about="Distinct links of a connection's subflows over links counted once a subflow.",
    ),
    "telemetry_share": _share(
        "telemetry (share of what hosts sent)",
        read.telemetry_share,
        "bytes of telemetry (% of what hosts sent)",
        about="Bytes of telemetry, each packet once, over all bytes that hosts sent.",
    ),
    "unfinished": _count(
        "unfinished flows", read.unfinished, about="Flows that had not finished when the run ended."
    ),
    "wire_bytes": Metric(
        title="bytes on wire",
        read=read.total("bytes_on_wire"),
        text=quantities.bytes_text,
        about="Bytes transmitted on any link.",
    ),
    "end": Metric(
        title="simulated",
        read=read.total("end_ns"),
        text=quantities.time_text,
        about="Simulated time at which the run ended.",
    ),
    "seconds": _number("CPU s", read.total("cpu_seconds"), about="Processor seconds of the run."),
    "packet_hops": _count("packet-hops", read.total("packet_hops")),
    "speed": _count(
        "hops/s", read.total("packet_hops_per_cpu_second"), about="Packet-hops per processor second."
    ),
}

HIGHEST = {
    *(
        "goodput",
        "goodput_total",
        "goodput_without_last_second",
        "throughput_without_last_second",
        "sent_share",
        "received_share",
    ),
    *(
        "jain",
        "jain_without_last_second",
        "jain_ideal",
        "fairness",
        "deadlines_met",
        "audit_known",
        "audit_right",
        "speed",
    ),
    *("algbw", "busbw"),
}
"""Metrics of which a higher value is better; of all others a lower value is."""


def metric(name: str) -> Metric:
    """Return the metric called `name`; `drops host -> leaf` are those at links from hosts to leaves.

    `slowdown_p99 of web` is that of the flows of the group called web, `busbw of job-a` that of the steps of
    a job.

    `share web` is the share of the group called web in all that was delivered while flows started; `flow web`
    the mean goodput of a flow of it, counted as `goodput_without_last_second` is. `mean of cwnd_bytes after
    10s` and its like are numbers of series; see `weftline.measures.over_time`.
    """
    if of_series := over_time.reader(name):
        return Metric(title=name, read=of_series, text=getattr(quantities, over_time.unit(name)))
    if re.fullmatch(r"drops \S+ -> \S+", name):
        link = name.removeprefix("drops ")
        return _count(f"drops, {link}", read.drops_at(link))
    if name.startswith("share "):
        group = name.removeprefix("share ")
        return _share(
            f"share of {group}", read.share_of(group), f"share of {group} (% of what was delivered)"
        )
    if name.startswith("flow "):
        group = name.removeprefix("flow ")
        title = f"goodput of a flow of {group}, mean"
        return _mbps(title, read.group_mean(group), title)
    base, one = split(name)
    if one:
        found = metric(base)
        if found.of_flows is None:
            raise InputError(f'metric "{name}": {base} is a number of the whole run, not of a group')
        return replace(
            found,
            title=f"{found.title}, {one}",
            axis=f"{found.axis or found.title}, {one}",
            read=lambda run: found.value(run, Flows(group=one)),
            of_flows=lambda run, flows: found.value(run, replace(flows, group=one)),
        )
    name = renamed.name(name, renamed.METRICS)
    if name not in METRICS:
        raise InputError(
            f'unknown metric "{name}": {nearest(name, list(METRICS))}known: {", ".join(METRICS)}'
        )
    return METRICS[name]


def split(name: str) -> tuple[str, str | None]:
    """Return a metric and the group in `slowdown_p99 of web`; None: it is of all groups."""
    base, of, group = name.partition(" of ")
    known = renamed.METRICS.get(base, base) in METRICS
    return (base, group) if of and group and known else (name, None)
