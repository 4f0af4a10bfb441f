"""What the numbers in results mean: columns of tables, metrics over time, keys of summary.json, of figures.

The engine explains what it defines itself (fct, slowdown, queue, ...); here is the rest.
`docs/results.md` has the tables in full, `docs/metrics.md` the definitions.
"""

from __future__ import annotations

from weftline.measures import counted, losses


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
        "column of flows.parquet; metric: retransmission timeouts",
        "Retransmission timeouts of the flow that expired, those of requests to open or to send included.",
    ),
    "group": ("column of flows.parquet", "Group of the workload; results can be filtered by it."),
    "deadline_ns": ("column of flows.parquet, ns", "The flow's deadline; null without one."),
    "met_deadline": ("column of flows.parquet", "Whether it finished by its deadline; null without one."),
    "job": ("column of jobs.parquet", "Group of the workload whose step it is."),
    "workload": ("column of jobs.parquet", "Number of the workload in the scenario, from 0."),
    "step": ("column of jobs.parquet", "Number of the step within the workload, from 0."),
    "operation": ("column of jobs.parquet", "Such as ring-all-reduce, or incast for the event of one."),
    "ranks": ("column of jobs.parquet", "Number of hosts that take part."),
    "bytes": (
        "column of jobs.parquet, bytes",
        "Data of every host; of an incast the sum of the flows that started.",
    ),
    "ideal_ns": (
        "column of jobs.parquet, ns",
        "A lower bound of the step's time alone on the network as configured; null for an incast.",
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
        metric["series"]: ("over time, by port", metric["series_text"])
        for metric, _, _ in counted.metrics()
        if metric["series"]
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

METRICS = {
    "slowdown_mean": "Mean of the slowdowns; every flow counts once.",
    "slowdown_p50": "Median of the slowdowns of all flows that finished.",
    "slowdown_p95": "Slowdown that 95 % of the finished flows stay below.",
    "slowdown_p99": "Slowdown that 99 % of the finished flows stay below.",
    "nfct": "Sum of the completion times over the sum of the ideal ones: the longest flows count most.",
    "small_p95": "95th percentile of the slowdown of the flows in the smallest power of ten.",
    "fct_mean": "Mean completion time.",
    "fct_p99": "99th percentile of the completion time.",
    "goodput": "Payload of a flow over its completion time; a mean over flows, each counting once.",
    "request_mean": "Mean time from the start of an incast's event or a collective to its last flow's end.",
    "request_p99": "99th percentile of the same.",
    "step_mean": "Mean time of the steps of jobs that ended, from first start to last delivery.",
    "step_max": "Time of the slowest step.",
    "step_over_ideal": "Mean over steps of their time over the ideal time: 1 is a lower bound.",
    "finish_to_finish": "Mean time from the end of a step to the end of the next, computation included.",
    "algbw": "Algorithm bandwidth of the steps, mean: data of every host over the time.",
    "busbw": "Bus bandwidth of the steps, mean, as nccl-tests define it.",
    "deadlines_met": "Share of the flows with a deadline that ended by it.",
    "backlog_growth": (
        "Bytes under way when the last flow started, less those when half had, over the bytes that started "
        "in between. Near 0: the network keeps up."
    ),
    "sent_share": "Mean utilisation of the hosts' ports while flows start.",
    "received_share": "Mean utilisation of the measured ports of switches while flows start.",
    "convergence": "When Jain's index of the goodputs over 1 ms first reaches 0.95.",
    "jain": (
        "Jain's index, (sum x)^2 / (n sum x^2), of the mean goodputs of the measured flows: 1 if all are "
        "equal, 1/n if one has all."
    ),
    "jain_without_last_second": "As the authors of Cebinae count: without the last second.",
    "jain_ideal": (
        "Jain's index of the mean goodputs over the max-min fair ones, by water filling over the links "
        "between the switches of a dumbbell or a parking lot."
    ),
    "first_share": "Share of the first flow's group in all goodput.",
    "fairness": "Mean of Jain's index over the last third of the time in which all measured flows run.",
    "goodput_total": "Sum of the mean goodputs of the measured flows.",
    "goodput_without_last_second": "As the authors of Cebinae count: without the last second, times 98/99.",
    "throughput_without_last_second": "Bytes on a dumbbell's bottleneck over time, counted in the same way.",
    "queue_p50": "Median of the queue lengths of all sampled ports, idle ones included.",
    "queue_p95": "95th percentile of the same.",
    "queue_p99": "99th percentile of the same.",
    "queue_max": "Longest queue that a sample saw.",
    "path_packets": "Packets until PINT's collector knows a flow's path, from the list of switches alone.",
    "path_packets_network": "The same when the collector also knows the links.",
    "latency_median_error": "Relative error of the median hop latency decoded from PINT's digests.",
    "latency_tail_error": "Relative error of the 99th percentile of hop latency decoded from PINT's digests.",
    "recirculated_share": "Bytes that passed a switch's pipeline twice, over all that switches sent.",
    "drop_rate": "Packets dropped over those that hosts sent or dropped themselves.",
    **{metric["name"]: metric["text"] for metric, _, _ in counted.metrics()},
    "reordered_share": "Data packets that arrived after a packet of their flow that was sent later.",
    "paths_per_flow": "Different paths that the packets of a flow took, mean over flows.",
    "utilisation_mean": "Mean utilisation of the links that measure.utilisation records.",
    "utilisation_max": "Mean utilisation of the busiest link that measure.utilisation records.",
    "imbalance": "Of the utilisations of the measured links: (max - min) / mean.",
    "failure_to_last_loss": "From the first failure of a link or switch to the last packet lost to one.",
    "recovery": "From the first failure until goodput stays above 90 % of what it was before.",
    "deficit": "Bytes that were delivered less in that time than at the goodput before the failure.",
    "silenced": "Share of the flows at work that deliver nothing from 2 to 8 ms after the first failure.",
    "packets_lost": "Packets lost on failed links or at random, or that could not be forwarded.",
    "lost_on_dead_links": "Packets of every kind that were on a link when it went down.",
    "lost_at_random": "Packets of every kind that links lost at random ([failures] loss).",
    "stranded": "Packets of every kind that could not be forwarded: no route, or their link went down.",
    **{found["key"]: found["text"] for found in losses.declared()},
    "retransmitted_share": "Data packets that were sent again, over all data packets sent.",
    "audit_flowlets": "Flowlets, separated by pauses, whose digests were decoded separately.",
    "audit_known": "Flowlets with at least 20 digests whose path was "
    "decoded, as a share of all such flowlets.",
    "audit_right": "Decoded flowlets whose decoded paths are exactly those that their packets took.",
    "audit_wrong": "Decoded paths that no packet took, of flowlets whose packets took one path.",
    "audit_blended": "Decoded paths that no packet took, of flowlets whose packets took several.",
    "audit_mixed": "Flowlets whose packets took several paths.",
    "audit_paths": "Distinct paths of the subflows of a connection within 1 ms, as decoded, mean.",
    "true_paths": "Distinct paths of the subflows of a connection within 1 ms, mean.",
    "audit_disjointness": "The same as true_disjointness, of decoded paths.",
    "true_disjointness": "Distinct links of a connection's subflows over links counted once a subflow.",
    "telemetry_share": "Bytes of telemetry, each packet once, over all bytes that hosts sent.",
    "unfinished": "Flows that had not finished when the run ended.",
    "wire_bytes": "Bytes transmitted on any link.",
    "end": "Simulated time at which the run ended.",
    "seconds": "Processor seconds of the run.",
    "speed": "Packet-hops per processor second.",
}


def entries() -> dict[str, tuple[str, str]]:
    """Return title and text by name."""
    from weftline.measures.metrics import METRICS as NAMED

    metrics = {
        name: (f"metric: {found.axis or found.title}", METRICS.get(name, f"{found.title}."))
        for name, found in NAMED.items()
    }
    return {**metrics, **COLUMNS, **SERIES, **SUMMARY}
