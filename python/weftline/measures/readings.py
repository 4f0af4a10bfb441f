"""How one number is read out of a run; each returns None where the run does not have it.

What has an argument returns the reader for it. `weftline.measures.metrics` names them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.measures import audit, decoded, flow_rows, networks, over_time, sharing
from weftline.measures.flow_rows import ALL, Flows

if TYPE_CHECKING:
    from weftline.runs import Run

Reader = Callable[["Run"], float | None]
OF_FLOWS = ("group", "sizes", "warmup", "drain")
"""Keys of a report that choose the flows of a number."""


def total(key: str) -> Reader:
    return lambda run: run.summary.get(key)


def queue(percentile: str) -> Reader:
    return lambda run: run.queues["percentiles"].get(percentile) if run.queues else None


QUEUE_BIN_BYTES = 1000
"""Width of the bins of queue histograms: their percentiles are lower edges of bins."""


def queue_bin_text(lower: float | None) -> str:
    """Return the bin in which a percentile of queue lengths lies, as ``"3 KB to 4 KB"``."""
    if lower is None:
        return quantities.bytes_text(lower)
    ends = (quantities.bytes_text(lower), quantities.bytes_text(lower + QUEUE_BIN_BYTES))
    return " to ".join(dict.fromkeys(ends))


def small_p95(run: Run, flows: Flows = ALL) -> float | None:
    found = smallest(run, flows)
    return found["p95"] if found else None


def smallest(run: Run, flows: Flows = ALL) -> dict[str, Any] | None:
    """Return ``count`` and ``p95`` of the slowdowns in the smallest power of ten of the sizes that count."""
    if not (flows.is_by_size or flows.is_by_start):
        bins = [row for row in run.slowdown(scheme="decades", group=flows.group)["bins"] if row["count"]]
        return min(bins, key=lambda row: row["size_bytes"]) if bins else None
    of = flow_rows.read(run)
    chosen = [n for n in flow_rows.chosen(run, flows) if of["slowdown"][n] is not None]
    if not chosen:
        return None
    slowdowns = [of["slowdown"][n] for n in of_smallest(chosen, of["size_bytes"])]
    return {"count": len(slowdowns), "p95": flow_rows.number(slowdowns, "p95")}


def of_smallest(rows: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return those of some rows whose sizes are in the smallest power of ten that one of them is in."""
    end, first = 1, min((sizes[n] for n in rows), default=0)
    while end < first:
        end *= 10
    return [n for n in rows if sizes[n] <= end]


def unfinished(run: Run) -> float | None:
    flows, done = run.summary.get("flows"), run.summary.get("flows_done")
    return flows - done if flows is not None and done is not None else None


def path_packets(known: str) -> Reader:
    return lambda run: decoded.path_packets(run, known)


def latency_error(quantile: str) -> Reader:
    return lambda run: decoded.latency_error(run, quantile)


def audited(name: str) -> Reader:
    return lambda run: audit.number(run, name)


def packets_lost(run: Run) -> float | None:
    """Packets lost on failed links or at random, or that could not be forwarded."""
    lost, stranded = (run.summary.get(key) for key in ("packets_lost", "packets_stranded"))
    return None if lost is None or stranded is None else lost + stranded


def retransmitted_share(run: Run) -> float | None:
    """Data packets that were sent again over all that were sent."""
    found = run.summary.get("losses") or {}
    return found["retransmitted"] / found["data_sent"] if found.get("data_sent") else None


def _links_of_hosts(run: Run) -> list[dict[str, Any]]:
    return [of for link, of in (run.summary.get("links") or {}).items() if link.startswith("host -> ")]


def telemetry_share(run: Run) -> float | None:
    """Bytes of telemetry, each packet once, over all bytes that hosts sent."""
    sent = sum(of["bytes_sent"] for of in _links_of_hosts(run))
    return run.summary.get("telemetry_bytes", 0) / sent if sent else None


def drops_at(link: str) -> Reader:
    def read(run: Run) -> float | None:
        links = run.summary.get("links") or {}
        return links[link]["drops"] if link in links else None

    return read


def drop_rate(run: Run) -> float | None:
    """Packets dropped over those that hosts sent or dropped themselves."""
    given = sum(of["packets_sent"] + of["drops"] for of in _links_of_hosts(run))
    return run.summary.get("drops", 0) / given if given else None


def group_mean(group: str) -> Reader:
    return lambda run: sharing.group_means(run, ns3=True).get(group)


def first_share(run: Run) -> float | None:
    """Share of the flows' first group in what all flows delivered."""
    found = sharing.goodputs(run)
    total = math.fsum(rate for _, rate in found)
    return math.fsum(rate for group, rate in found if group == found[0][0]) / total if total else None


def requests(key: str) -> Callable[..., float | None]:
    def read(run: Run, flows: Flows = ALL) -> float | None:
        return flow_rows.number(request_times(run, flows), key)

    return read


def request_times(run: Run, flows: Flows = ALL) -> list[float]:
    """Return the completion times of the jobs that ended, of one group and of the times of start that count.

    A job is not chosen by its size.
    """
    if flows.group is None and not flows.is_by_start:
        return [job["completion_ns"] for job in run.summary.get("jobs") or []]
    return [
        row["finish_ns"] - row["start_ns"]
        for row in run.steps
        if not row.get("part")
        and row["finish_ns"] is not None
        and flows.group in (None, row["job"])
        and any(first <= row["start_ns"] <= last for first, last in flows.times_of(row["job"]))
    ]


def backlog_growth(run: Run) -> float | None:
    found = run.backlog()
    if not found or not found["started_bytes"] or found["half_bytes"] is None:
        return None
    return (found["last_bytes"] - found["half_bytes"]) / found["started_bytes"]


def share_of(group: str) -> Reader:
    def read(run: Run) -> float | None:
        last = flow_rows.last_start_ns(run)
        rates = {} if last is None else over_time.means_until(run, "goodput_bps", last)
        total = sum(rates.values())
        return rates[group] / total if group in rates and total else None

    return read


def throughput(of_hosts: bool) -> Reader:
    """Mean utilisation of ports of hosts, or of those of switches to hosts, until the last flow starts."""

    def read(run: Run) -> float | None:
        measured = over_time.interval_ns(run, "utilisation") or over_time.intervals(run, "utilisation")
        if not measured or (last := flow_rows.last_start_ns(run)) is None:
            return None
        means = over_time.means_until(run, "utilisation", last)
        sides = networks.port_sides(run)
        chosen = [
            mean
            for port, mean in means.items()
            if port in sides
            and (sides[port].of_host if of_hosts else sides[port].to_host and not sides[port].of_host)
        ]
        return math.fsum(chosen) / len(chosen) if chosen else None

    return read


def completion(what: str, key: str) -> dict[str, Any]:
    """Read a number of the flows' completion; see `weftline.runs.Run.completion`."""

    def read(run: Run, flows: Flows = ALL) -> float | None:
        if flows.is_by_start:
            return _completion_of_rows(run, flows, what, key)
        found = run.completion_of(flows)
        return (found[what] or {}).get(key) if key else found[what]

    return {"read": read, "of_flows": read, "completion": (what, key), "chosen_by": OF_FLOWS}


def _completion_of_rows(run: Run, flows: Flows, what: str, key: str) -> float | None:
    of = flow_rows.read(run)
    chosen = flow_rows.chosen(run, flows)
    if what == "nfct":
        ideal = math.fsum(of["ideal_fct_ns"][n] for n in chosen)
        return math.fsum(of["fct_ns"][n] for n in chosen) / ideal if ideal else None
    if what == "goodput_bps":
        values = [8e9 * of["size_bytes"][n] / of["fct_ns"][n] for n in chosen]
    else:
        values = [of[what][n] for n in chosen]
    return flow_rows.number([value for value in values if value is not None], key)


def received(key: str) -> Reader:
    return lambda run: (run.summary.get("receiving") or {}).get(key)
