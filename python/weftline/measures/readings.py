"""How one number is read out of a run; each returns None where the run does not have it.

What has an argument returns the reader for it. `weftline.measures.metrics` names them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weftline.measures import audit, decoded, sharing

if TYPE_CHECKING:
    from weftline.runs import Run

Reader = Callable[["Run"], float | None]


@dataclass(frozen=True, kw_only=True)
class Flows:
    """Which flows of a run a number is about: sizes in bytes, ends included, and one group or all."""

    min_size: int = 0
    max_size: int | None = None
    group: str | None = None


ALL = Flows()


def total(key: str) -> Reader:
    return lambda run: run.summary.get(key)


def queue(percentile: str) -> Reader:
    return lambda run: run.queues["percentiles"].get(percentile) if run.queues else None


def small_p95(run: Run) -> float | None:
    bins = [row for row in run.slowdown(scheme="decades")["bins"] if row["count"]]
    return min(bins, key=lambda row: row["size_bytes"])["p95"] if bins else None


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


def telemetry_share(run: Run) -> float | None:
    """Bytes of telemetry, each packet once, over all bytes that hosts sent."""
    ours = [of for link, of in (run.summary.get("links") or {}).items() if link.startswith("host -> ")]
    sent = sum(of["bytes_sent"] for of in ours)
    return run.summary.get("telemetry_bytes", 0) / sent if sent else None


def drops_at(link: str) -> Reader:
    def read(run: Run) -> float | None:
        links = run.summary.get("links") or {}
        return links[link]["drops"] if link in links else None

    return read


def drop_rate(run: Run) -> float | None:
    """Packets dropped over those that hosts sent or dropped themselves."""
    ours = [of for link, of in (run.summary.get("links") or {}).items() if link.startswith("host -> ")]
    given = sum(of["packets_sent"] + of["drops"] for of in ours)
    return run.summary.get("drops", 0) / given if given else None


def group_mean(group: str) -> Reader:
    return lambda run: sharing.group_means(run, ns3=True).get(group)


def first_share(run: Run) -> float | None:
    """Share of the flows' first group in what all flows delivered."""
    found = sharing.goodputs(run)
    total = math.fsum(rate for _, rate in found)
    return math.fsum(rate for group, rate in found if group == found[0][0]) / total if total else None


def requests(key: str) -> Reader:
    def read(run: Run) -> float | None:
        times = sorted(job["completion_ns"] for job in run.summary.get("jobs") or [])
        if not times:
            return None
        return math.fsum(times) / len(times) if key == "mean" else times[int(0.99 * len(times))]

    return read


def deadlines_met(run: Run, flows: Flows = ALL) -> float | None:
    count, met = run.deadlines(group=flows.group)
    return met / count if count else None


def backlog_growth(run: Run) -> float | None:
    found = run.backlog()
    if not found or not found["started_bytes"]:
        return None
    return (found["last_bytes"] - found["half_bytes"]) / found["started_bytes"]


def share_of(group: str) -> Reader:
    def read(run: Run) -> float | None:
        found = run.backlog()
        if not found:
            return None
        groups = run.over_time("goodput_bps", every_ns=found["last_ns"], max_points=0)
        rates = {name: points[0][1] for name, points in groups.items()}
        return rates[group] / sum(rates.values()) if rates.get(group) else None

    return read


def throughput(of_hosts: bool) -> Reader:
    """Mean utilisation of the ports of hosts, or of the other ports that were measured, while flows start."""

    def read(run: Run) -> float | None:
        found = run.backlog()
        if not found:
            return None
        ports = run.over_time("utilisation", every_ns=found["last_ns"], max_points=0)
        means = [points[0][1] for port, points in ports.items() if port.startswith("host") == of_hosts]
        return math.fsum(means) / len(means) if means else None

    return read


def completion(what: str, key: str) -> dict[str, Any]:
    """Read a number of the flows' completion; see `weftline.runs.Run.completion`."""

    def read(run: Run, flows: Flows = ALL) -> float | None:
        found = run.completion(min_size=flows.min_size, max_size=flows.max_size, group=flows.group)
        return (found[what] or {}).get(key) if key else found[what]

    return {"read": read, "of_flows": read, "completion": (what, key)}


def received(key: str) -> Reader:
    return lambda run: (run.summary.get("receiving") or {}).get(key)
