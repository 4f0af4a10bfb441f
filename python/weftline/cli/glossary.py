"""What the numbers in results mean: columns of tables, metrics over time, keys of summary.json, of figures.

The engine explains the metrics (fct, slowdown_p99, queue_max, ...); here is the rest. `docs/results.md` has
the tables in full, `docs/metrics.md` the definitions.
"""

from __future__ import annotations

from weftline.measures import counted


def _key_of_summary(unit: str) -> str:
    return f"key of summary.json, {unit}" if unit in ("bytes", "ns") else "key of summary.json"


def _of_schemes() -> dict[str, tuple[str, str]]:
    """Title and text of what schemes show of flows over time, those of several schemes under one name."""
    by_name: dict[str, dict[tuple[str, str], list[str]]] = {}
    for series in counted.declarations()["flows"]:
        schemes = by_name.setdefault(series["name"], {}).setdefault((series["unit"], series["text"]), [])
        if series["scheme"] not in schemes:
            schemes.append(series["scheme"])
    found = {}
    for name, texts in by_name.items():
        units = dict.fromkeys(unit for unit, _ in texts if unit)
        sentences = [f"{text.rstrip('.')} ({', '.join(schemes)})." for (_, text), schemes in texts.items()]
        found[name] = (", ".join(["over time", *units, "by flow"]), " ".join(sentences))
    return found


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
    "met_deadline": (
        "column of flows.parquet",
        "Whether it finished by its deadline; null without one, and if the run ended before both.",
    ),
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
    "algbw_bps": (
        "column of jobs.parquet, bit/s",
        "Algorithm bandwidth: data of every host over the time from the start of the step.",
    ),
    "busbw_bps": (
        "column of jobs.parquet, bit/s",
        "Bus bandwidth, as nccl-tests define it: algorithm bandwidth times 2 (n - 1) / n for an all-reduce "
        "among n hosts, 1 for a broadcast or a reduce, (n - 1) / n for other operations.",
    ),
    "last_flow": ("column of jobs.parquet", "The flow that was delivered last: the step waited for it."),
    "last_host": (
        "column of jobs.parquet",
        "Where the step ended: the host that received its last flow, of a whole step that of its last rank.",
    ),
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
    "metric": (
        "column of series.parquet",
        "Name of the number that was measured; `weftline explain` has each.",
    ),
    "value": ("column of series.parquet", "What was measured, in the unit of the metric."),
    "packet_id": (
        "column of telemetry.parquet",
        "What all hashes of the digest were taken of; a retransmission repeats it.",
    ),
    "digest": ("column of telemetry.parquet", "The digest that the packet had when it came to its host."),
    "hops": ("column of telemetry.parquet", "Number of switches that the packet passed."),
    "src_port": ("column of telemetry.parquet", "Number of the subflow, with multipath TCP; else 0."),
    "plan_version": (
        "column of telemetry.parquet",
        "Version of the plan that switches ran; 0 without telemetry.queries.",
    ),
    "sink": ("column of telemetry.parquet", "The receiving host, which took the digest off."),
    "path": (
        "column of telemetry.parquet",
        "With telemetry.paths the switches that the packet passed, as they noted it themselves; null without "
        "it, and where a packet has no room for the notes of all.",
    ),
    "loop": (
        "column of telemetry.parquet",
        "1 if a switch found the packet in a loop, as a query for loops asks; its digest is then not read.",
    ),
}

OF_SCHEMES = _of_schemes()
"""What `measure.controllers` records of each scheme, beyond rate and window."""

SERIES = {
    "rate_bps": ("over time, bit/s, by flow", "The rate that the controller allows; measure.controllers."),
    "cwnd_bytes": ("over time, bytes, by flow", "Bytes allowed in flight; flows with a window only."),
    **OF_SCHEMES,
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
    "paused": (
        "over time, 0 or 1, by port",
        "A row for each PAUSE and RESUME that arrives: 1 while any class is paused after it, else 0.",
    ),
}

SUMMARY = {
    "status": ("key of summary.json", "done, interrupted, stalled, memory-limit or failed."),
    "reason": (
        "key of summary.json",
        "Why the run failed, what it held beyond its memory limit, or for how long nothing was delivered "
        "before it was given up as stalled; only then.",
    ),
    "versions": ("key of summary.json", "Version of weftline that made the run."),
    "provenance": (
        "key of summary.json",
        "What the run was made of: digests of the engine, of the files that the scenario names and of "
        "controllers in Python, and the keys that the scenario or --set wrote.",
    ),
    "flows_done": ("key of summary.json", "Flows that finished."),
    "flows_unfinished": (
        "key of summary.json",
        "Flows that started, or waited for others, before the run ended, and did not finish.",
    ),
    "flows_not_due": (
        "key of summary.json",
        "Flows whose start lies after the end of the run, and messages of jobs that had not begun: not "
        "counted, and without rows in flows.parquet.",
    ),
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
    "bytes_dropped": ("key of summary.json, bytes", "Bytes that buffers and queues refused."),
    "bytes_lost": (
        "key of summary.json, bytes",
        "Bytes that links lost: on a link when it went down, or at random.",
    ),
    "bytes_stranded": (
        "key of summary.json, bytes",
        "Bytes that could not be forwarded: no link, or no route left.",
    ),
    "last_loss_ns": (
        "key of summary.json, ns",
        "When a packet was last lost on a link or stranded; null if none was.",
    ),
    "paused_ns": ("key of summary.json, ns", "How long PAUSE frames held ports, all together."),
    "capture": (
        "key of summary.json",
        "Only with measure.pcap: packets and bytes of capture.pcapng, and when it was full.",
    ),
    "receiving": (
        "key of summary.json",
        "With measure.reordering, measure.paths or host.resequencing: what came to the hosts, such as "
        "packets that one sent later had overtaken, and the paths of a flow; else null.",
    ),
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
    "packet_hops_per_cpu_second": (
        "key of summary.json, 1/s",
        "Transmissions on any link for each second of processor time.",
    ),
    "regions": ("key of summary.json", "Number of regions that the network was cut into for the threads."),
    "windows": ("key of summary.json", "How often the regions worked in step."),
    "share_alone": (
        "key of summary.json",
        "Share of the wall-clock time in which one thread did all the work, because several did not pay.",
    ),
    "threads_ratio": (
        "key of summary.json",
        "How many times as fast as one thread all were when that was last measured; null if never.",
    ),
    "lookahead_ns": (
        "key of summary.json, ns",
        "How far a region may run ahead of the others; null with one region.",
    ),
    "most_speedup": (
        "key of summary.json",
        "How many times faster than one thread the run could be if handing over cost nothing.",
    ),
    "memory_limit_bytes": (
        "key of summary.json, bytes",
        "What the process was allowed to hold; null without a limit.",
    ),
    "memory_held_bytes": (
        "key of summary.json, bytes",
        "What the process held when the memory limit, or the end of the machine's memory, ended the run.",
    ),
    "peak_memory_bytes": ("key of summary.json, bytes", "Peak memory of the process."),
    "failures": ("key of summary.json", "Changes of links and switches; those drawn from the seed, by name."),
    "jobs": ("key of summary.json", "Start and end of every collective and of every event of an incast."),
    "links": ("key of summary.json", "Packets, bytes, drops, marks and pauses by kind of link."),
    "balance": ("key of summary.json", "Packet-hops of the busiest region over the mean of all."),
    "crossing_share": ("key of summary.json", "Share of packet-hops from one region into another."),
}


def entries() -> dict[str, tuple[str, str]]:
    """Return title and text by name; a column and a series of one name have both texts."""
    both = {
        name: (f"{COLUMNS[name][0]}; {title}", f"{COLUMNS[name][1]} {text}")
        for name, (title, text) in SERIES.items()
        if name in COLUMNS
    }
    return {**COLUMNS, **SERIES, **SUMMARY, **both}
