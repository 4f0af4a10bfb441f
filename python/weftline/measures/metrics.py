"""One number out of a run, by name: for tables, bars and the claims of experiments.

The engine has the table of metrics: name, unit, title, text (`_native.counters()["metrics"]`,
crates/sim/src/describe/metrics). Here is how each is read out of a run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weftline import quantities, renamed
from weftline.errors import InputError, nearest
from weftline.measures import counted, deadlines, decoded, losses, over_time, recovery, sharing, spread, steps
from weftline.measures import readings as read
from weftline.measures.flow_rows import Flows
from weftline.measures.readings import OF_FLOWS, Reader

if TYPE_CHECKING:
    from weftline.runs import Run

__all__ = ["METRICS", "Flows", "Metric", "metric"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A named number of a run."""

    title: str
    unit: str = "number"
    """Of its values: number, count, share, ns, bytes or bit/s."""
    about: str = ""
    """What the number is, as `weftline explain` says it."""
    read: Reader
    """None where the run does not have it."""
    text: Callable[[float | None], str]
    axis: str = ""
    """Title of an axis, with the unit; the plain title without it."""
    scale: float = 1.0
    """From the stored value to that of the axis."""
    higher_is_better: bool = False
    of_flows: Callable[[Run, Flows], float | None] | None = None
    """How it is read where only some flows count; without it all of them do."""
    chosen_by: tuple[str, ...] = ()
    """Keys of a report that choose what it is of: group, sizes, warmup, drain."""
    is_of_steps: bool = False
    """Whether it is taken over the steps of jobs that ended."""
    completion: tuple[str, str] | None = None
    """What of the completion of flows it is, and which number of it; None if it is something else."""
    measured_by: tuple[str, ...] = ()
    """Tables of `[measure]` that decide what it is computed from; none for most metrics."""
    minimum: float | None = 0.0
    """The smallest value that it can have; None if that is not known, as of series."""
    maximum: float = math.inf
    """The largest value that it can have, as far as is known."""
    bin_width: float = 0.0
    """Width of the bins whose lower edges its values are; 0: they are exact."""

    def value(self, run: Run, flows: Flows) -> float | None:
        """Return the number of a run, over the flows that count where they can be chosen."""
        return self.of_flows(run, flows) if self.of_flows else self.read(run)

    def difference_text(self, value: float | None) -> str:
        """Return a difference of two values as text: percentages differ by points, not by per cent."""
        text = self.text(value)
        return f"{text.removesuffix(' %')} points" if text.endswith(" %") else text


def _of_flows(read: Callable[..., float | None], chosen_by: tuple[str, ...] = OF_FLOWS) -> dict[str, Any]:
    """A number that some flows alone can have."""
    return {"read": read, "of_flows": read, "chosen_by": chosen_by}


def _of_requests(key: str) -> dict[str, Any]:
    """A number of jobs that ended, which those of a group and of a time of start can have."""
    return _of_flows(read.requests(key), ("group", "warmup", "drain"))


def _of_steps(read: Callable[..., float | None]) -> dict[str, Any]:
    """A number of steps that ended, which one job alone can have."""
    return {**_of_flows(read, ("group",)), "is_of_steps": True}


def _with(found: Reader | dict[str, Any], *measured_by: str, **limits: float) -> dict[str, Any]:
    """A number that tables of `[measure]` decide, or that has limits other than 0 and, of a share, 1."""
    own = found if isinstance(found, dict) else {"read": found}
    return {**own, "measured_by": measured_by, **limits}


_READERS: dict[str, Reader | dict[str, Any]] = {
    "slowdown_mean": _with(read.completion("slowdown", "mean"), "ideal"),
    "slowdown_p50": _with(read.completion("slowdown", "p50"), "ideal"),
    "slowdown_p95": _with(read.completion("slowdown", "p95"), "ideal"),
    "slowdown_p99": _with(read.completion("slowdown", "p99"), "ideal"),
    "nfct": _with(read.completion("nfct", ""), "ideal"),
    "small_p95": _with(_of_flows(read.small_p95), "ideal"),
    "fct_mean": read.completion("fct_ns", "mean"),
    "goodput": read.completion("goodput_bps", "mean"),
    "fct_p99": read.completion("fct_ns", "p99"),
    "request_mean": _of_requests("mean"),
    "request_p99": _of_requests("p99"),
    "step_mean": _of_steps(steps.time(steps.mean)),
    "step_max": _of_steps(steps.time(max)),
    "step_over_ideal": _of_steps(steps.over_ideal),
    "finish_to_finish": _of_steps(steps.finish_to_finish),
    "algbw": _of_steps(steps.bandwidth("algbw_bps")),
    "busbw": _of_steps(steps.bandwidth("busbw_bps")),
    "deadlines_met": _of_flows(deadlines.share_met),
    "backlog_growth": _with(read.backlog_growth, "goodput", minimum=-math.inf, maximum=math.inf),
    "sent_share": _with(read.throughput(of_hosts=True), "utilisation"),
    "received_share": _with(read.throughput(of_hosts=False), "utilisation"),
    "convergence": _with(sharing.convergence_ns, "goodput"),
    "jain": _with(sharing.index, "goodput", maximum=1.0),
    "jain_without_last_second": _with(lambda run: sharing.index(run, ns3=True), "goodput", maximum=1.0),
    "jain_ideal": _with(sharing.index_against_ideal, "goodput", maximum=1.0),
    "goodput_total": _with(sharing.total_goodput, "goodput"),
    "goodput_without_last_second": _with(lambda run: sharing.total_goodput(run, ns3=True), "goodput"),
    "throughput_without_last_second": _with(sharing.bottleneck_throughput, "utilisation", "goodput"),
    "first_share": _with(read.first_share, "goodput"),
    "fairness": _with(sharing.final_fairness, "goodput", maximum=1.0),
    "queue_p50": _with(read.queue("p50"), "queue_histogram", bin_width=read.QUEUE_BIN_BYTES),
    "queue_p95": _with(read.queue("p95"), "queue_histogram", bin_width=read.QUEUE_BIN_BYTES),
    "queue_p99": _with(read.queue("p99"), "queue_histogram", bin_width=read.QUEUE_BIN_BYTES),
    "queue_max": _with(read.queue("max"), "queue_histogram"),
    **{name: read.path_packets(known) for name, known in decoded.KNOWN.items()},
    "latency_median_error": _with(read.latency_error("0.5"), maximum=math.inf),
    "latency_tail_error": _with(read.latency_error("0.99"), maximum=math.inf),
    "pauses": read.total("pauses"),
    "paused_share": read.total("paused_share"),
    "recirculated_share": read.total("recirculated_share"),
    "drop_rate": read.drop_rate,
    "drops": read.total("drops"),
    "ecn_marks": read.total("ecn_marks"),
    "reordered_share": read.received("reordered_share"),
    "paths_per_flow": read.received("paths_per_flow"),
    "utilisation_mean": _with(spread.mean_utilisation, "utilisation"),
    "utilisation_max": _with(spread.max_utilisation, "utilisation"),
    "imbalance": _with(spread.imbalance, "utilisation", maximum=math.inf),
    "failure_to_last_loss": spread.failure_to_last_loss_ns,
    "recovery": _with(recovery.recovery_ns, "goodput"),
    "deficit": _with(recovery.deficit_bytes, "goodput"),
    "silenced": _with(recovery.silenced, "goodput"),
    "packets_lost": read.packets_lost,
    "lost_on_dead_links": losses.lost_on_dead_links,
    "lost_at_random": losses.lost_at_random,
    "stranded": read.total("packets_stranded"),
    "retransmitted_share": read.retransmitted_share,
    "audit_flowlets": read.audited("flowlets"),
    "audit_known": read.audited("known"),
    "audit_right": read.audited("right"),
    "audit_wrong": read.audited("wrong"),
    "audit_blended": read.audited("blended"),
    "audit_mixed": read.audited("mixed"),
    "audit_paths": read.audited("audited paths"),
    "true_paths": read.audited("true paths"),
    "audit_disjointness": read.audited("audited disjointness"),
    "true_disjointness": read.audited("true disjointness"),
    "telemetry_share": read.telemetry_share,
    "unfinished": read.unfinished,
    "wire_bytes": read.total("bytes_on_wire"),
    "end": read.total("end_ns"),
    "seconds": read.total("cpu_seconds"),
    "packet_hops": read.total("packet_hops"),
    "speed": read.total("packet_hops_per_cpu_second"),
}
"""How the metrics are read that no scheme declares."""

_SCALES = {"": 1.0, "%": 100, "ms": 1e-6, "us": 1e-3, "KB": 1e-3, "MB": 1e-6, "Mb/s": 1e-6, "Gb/s": 1e-9}
_TEXTS: dict[str, Callable[[float | None], str]] = {
    "number": quantities.digits,
    "count": quantities.count_text,
    "share": quantities.share_text,
    "ns": quantities.time_text,
    "bytes": quantities.bytes_text,
    "bit/s": quantities.rate_text,
}


def _from_table(row: dict[str, Any]) -> Metric:
    match row["from"]:
        case None:
            found = _READERS[row["name"]]
        case {"losses": key}:
            found = {**_of_flows(losses.of_group(key), ("group",)), "read": losses.counter(key)}
        case declared:
            found = counted.reader(declared)
    limits = {"maximum": 1.0} if row["unit"] == "share" else {}
    return Metric(
        title=row["title"],
        unit=row["unit"],
        about=row["text"],
        axis=row["axis"],
        scale=_SCALES[row["axis_unit"]],
        text=_TEXTS[row["unit"]],
        higher_is_better=row["higher_is_better"],
        **{**limits, **(found if isinstance(found, dict) else {"read": found})},
    )


METRICS: dict[str, Metric] = {
    row["name"]: _from_table(row) for row in counted.declarations()["metrics"] if row["of_run"]
}
"""By name: the engine's table, with how each is read."""


def _number_of_name(title: str, reader: Reader, like: str, axis: str = "") -> Metric:
    """A metric whose name holds a link or a group: shown as the metric `like` is."""
    return replace(
        METRICS[like], title=title, axis=axis or title, about="", read=reader, of_flows=None, chosen_by=()
    )


def metric(name: str) -> Metric:
    """Return the metric called `name`; `drops host -> leaf` are those at links from hosts to leaves.

    `slowdown_p99 of web` is that of the flows of the group called web, `busbw of job-a` that of the steps of
    a job.

    `share web` is the share of the group called web in all that was delivered while flows started; `flow web`
    the mean goodput of a flow of it, counted as `goodput_without_last_second` is. `mean of cwnd_bytes after
    10s` and its like are numbers of series; see `weftline.measures.over_time`.
    """
    if of_series := over_time.reader(name):
        unit = over_time.unit(name)
        maximum = 1.0 if unit == "share" else math.inf
        return Metric(title=name, unit=unit, read=of_series, text=_TEXTS[unit], minimum=None, maximum=maximum)
    if re.fullmatch(r"drops \S+ -> \S+", name):
        link = name.removeprefix("drops ")
        return _number_of_name(f"drops, {link}", read.drops_at(link), "drops")
    if name.startswith("share "):
        group = name.removeprefix("share ")
        axis = f"share of {group} (% of what was delivered)"
        return _number_of_name(f"share of {group}", read.share_of(group), "first_share", axis)
    if name.startswith("flow "):
        group = name.removeprefix("flow ")
        title = f"goodput of a flow of {group}, mean"
        reader = read.group_mean(group)
        return _number_of_name(title, reader, "goodput_total", f"{title} (Mb/s)")
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


def group_of(name: str) -> str | None:
    """Return the group, or the job, that the name of a metric holds; None if it holds none."""
    for word in ("share ", "flow "):
        if name.startswith(word) and over_time.reader(name) is None:
            return name.removeprefix(word)
    return split(name)[1]
