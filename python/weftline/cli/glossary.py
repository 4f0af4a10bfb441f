"""What the numbers in results mean: columns of tables, metrics over time, keys of summary.json, of figures.

The engine explains the metrics (fct, slowdown_p99, queue_max, ...); here is the rest. `docs/results.md` has
the tables in full, `docs/metrics.md` the definitions.
"""

from __future__ import annotations

from weftline.measures import counted


def _key_of_summary(unit: str) -> str:
    return f"key of summary.json, {unit}" if unit in ("bytes", "ns") else "key of summary.json"


COLUMNS = {
    "flow_id": ("column of flows.parquet", "Number of the flow, in order of (start, workload, place in it)."),
    "src": ("column of flows.parquet", "Number of the sending host."),
    "dst": ("column of flows.parquet", "Number of the receiving host."),
    "size_bytes": ("column of flows.parquet, bytes", "Payload of the flow."),
    "start_ns": (
        "column of flows.parquet, ns",
        "When the flow started, or could: for one that waited for others.",
    ),
    "finish_ns": (
        "column of flows.parquet, ns",
        "When its last byte was acknowledged; null if the flow did not finish.",
    ),
    "packets_sent": ("column of flows.parquet", "Data packets, those sent again included."),
    "packets_retransmitted": ("column of flows.parquet", "Data packets that were sent again."),
    "timeouts": (
        "column of flows.parquet",
        "Retransmission timeouts of the flow that expired, those of requests to open or to send included.",
    ),
    "group": ("column of flows.parquet", "Group of the workload; results can be filtered by it."),
    "deadline_ns": ("column of flows.parquet, ns", "The flow's deadline; null without one."),
    "met_deadline": ("column of flows.parquet", "Whether it finished by its deadline; null without one."),
    "job": ("column of jobs.parquet", "Group of the workload whose step it is."),
    "workload": ("column of jobs.parquet", "Number of the workload in the scenario, from 0."),
    "step": ("column of jobs.parquet", "Number of the step within the workload, from 0."),
    "operation": ("column of jobs.parquet", "Such as ring-all-reduce, or incast for the event of one."),
    "whole": ("column of jobs.parquet", "Whether it is all that the ranks do in a step of a job."),
    "part": (
        "column of jobs.parquet",
        "Whether it is an operation within such a step, which has a row of its own.",
    ),
    "inside": (
        "column of jobs.parquet",
        "Whether its ranks are in one scale-up domain, so that no message crosses the network.",
    ),
    "ranks": ("column of jobs.parquet", "Number of hosts that take part."),
    "bytes": (
        "column of jobs.parquet, bytes",
        "Data of every host; of an incast the sum of the flows that started.",
    ),
    "ideal_ns": (
        "column of jobs.parquet, ns",
        "A lower bound of the step's time alone on the network as configured; null for an incast and for "
        "whole steps of training jobs and files, with their operations.",
    ),
    "finish_to_finish_ns": (
        "column of jobs.parquet, ns",
        "From the end of the step before to the end of this one, computation included.",
    ),
    "algbw_bps": ("column of jobs.parquet, bit/s", "Algorithm bandwidth: data of every host over the time."),
    "busbw_bps": (
        "column of jobs.parquet, bit/s",
        "Bus bandwidth, as nccl-tests define it: algorithm bandwidth times 2 (n - 1) / n for an all-reduce "
        "among n hosts, (n - 1) / n for an all-to-all.",
    ),
    "last_flow": ("column of jobs.parquet", "The flow that was delivered last: the step waited for it."),
    "last_host": ("column of jobs.parquet", "Host that received it: the straggler of the step."),
    "exposed_ns": (
        "column of jobs.parquet and ranks.parquet, ns",
        "Time of a rank in the step in which it did not compute; in jobs.parquet the longest of all ranks.",
    ),
    "straggler_ns": (
        "column of jobs.parquet, ns",
        "How much later than half of the ranks the last one had its result.",
    ),
    "rank": ("column of ranks.parquet", "Number of the rank within its job, from 0."),
    "host": ("column of ranks.parquet", "Host of the rank."),
    "bytes_sent": (
        "column of ranks.parquet, bytes",
        "Payload of messages that the rank sent in the step.",
    ),
    "late_ns": (
        "column of ranks.parquet, ns",
        "How much later than the first rank of the step it had its result.",
    ),
    "unsent_ns": (
        "column of ranks.parquet, ns",
        "Of exposed_ns, where the step is all that the rank does: the time until the messages were sent "
        "that let it compute again.",
    ),
    "unjoined_ns": (
        "column of ranks.parquet, ns",
        "Of exposed_ns, where the step is all that the rank does: the time until the last rank had joined "
        "the collective operations whose ends let it compute again.",
    ),
    "waiting": (
        "key of summary.json",
        "Of a job that had not ended: the operations that wait for each other, by rank and tag.",
    ),
    "time_ns": ("column of series.parquet, ns", "When it was measured: the end of the interval."),
    "entity": (
        "column of series.parquet",
        "What was measured: a port (leaf0.p3), a flow (flow12) or a group.",
    ),
}

SERIES = {
    "rate_bps": ("over time, bit/s, by flow", "The rate that the controller allows; measure.controllers."),
    "cwnd_bytes": ("over time, bytes, by flow", "Bytes allowed in flight; flows with a window only."),
    "u": ("over time, by flow", "HPCC's estimate of the load of the busiest hop."),
    "r_ref_bps": ("over time, bit/s, by flow", "HPCC's reference rate, updated once per round trip."),
    "target_bps": ("over time, bit/s, by flow", "DCQCN's target rate."),
    "rtt_diff_ns": ("over time, ns, by flow", "TIMELY's averaged change of the round-trip time."),
    **{
        series["name"]: ("over time, by port", series["text"])
        for group in counted.declarations()["groups"]
        for series in group["series"]
    },
    **{
        gauge["key"]: (f"over time, {gauge['unit']}, by port", gauge["text"])
        for group in counted.declarations()["groups"]
        for gauge in group["gauges"]
    },
    "paused": ("over time, 0 or 1, by port", "1 at each PAUSE that arrives, 0 at each RESUME."),
}

SUMMARY = {
    "status": ("key of summary.json", "done, interrupted, stalled, memory-limit or failed."),
    "file_digests": (
        "key of summary.json",
        "Kind of the digests in digests.json: of every file of the run.",
    ),
    "memo": (
        "key of summary.json",
        "With run.memo: steps that were simulated, steps that were repeated, and why one was not.",
    ),
    "warnings": ("key of summary.json", "Warnings: check them before you trust the result."),
    "events": ("key of summary.json", "Events that the engine handled."),
    "bytes_on_wire": ("key of summary.json, bytes", "Transmitted on any link: every hop counts."),
    "telemetry_bytes": ("key of summary.json, bytes", "Of telemetry in packets, each packet once."),
    **{
        counter["key"]: (_key_of_summary(counter["unit"]), counter["text"])
        for group in counted.declarations()["groups"]
        for counter in group["counters"]
        if not group["table"]
    },
    **{
        group["table"]: ("key of summary.json", group["text"])
        for group in counted.declarations()["groups"]
        if group["table"]
    },
    "packets_lost": (
        "key of summary.json",
        "Packets that links lost: on a link when it went down, or at random.",
    ),
    "packets_lost_at_random": (
        "key of summary.json",
        "Of the packets lost, those that links lost at random.",
    ),
    "losses": (
        "key of summary.json",
        "Losses and retransmissions of data packets, in total and by group.",
    ),
    "packets_stranded": (
        "key of summary.json",
        "Packets that could not be forwarded: no link, or no route left.",
    ),
    "cpu_seconds": ("key of summary.json, s", "Processor time of the run."),
    "wall_seconds": ("key of summary.json, s", "Wall-clock time of the run."),
    "peak_memory_bytes": ("key of summary.json, bytes", "Peak memory of the process."),
    "failures": ("key of summary.json", "Changes of links and switches; those drawn from the seed, by name."),
    "jobs": ("key of summary.json", "Start and end of every collective and of every event of an incast."),
    "links": ("key of summary.json", "Packets, bytes, drops, marks and pauses by kind of link."),
    "balance": ("key of summary.json", "Packet-hops of the busiest region over the mean of all."),
    "crossing_share": ("key of summary.json", "Share of packet-hops from one region into another."),
}


def entries() -> dict[str, tuple[str, str]]:
    """Return title and text by name."""
    return {**COLUMNS, **SERIES, **SUMMARY}
