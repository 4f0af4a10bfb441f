//! The rows of the table of metrics: everything that no scheme declares. A row for each metric makes the file long.

use super::{HPCC, Metric, Unit, quantity, run};

pub(super) const METRICS: &[Metric] = &[
    quantity(
        "fct",
        Unit::Time,
        "flow completion time (fct_ns)",
        "From the start of a flow to the arrival, at its sender, of the acknowledgement of its \
         last byte, in nanoseconds. Empty for a flow that did not finish.",
    )
    .source(HPCC),
    quantity(
        "ideal_fct",
        Unit::Time,
        "ideal flow completion time (ideal_fct_ns)",
        "A lower bound of a flow's completion time on the network as configured: every packet \
         sent back to back, stored and forwarded (or cut through) on every hop of its fastest \
         path, or of all paths that its packets may take, and the return of the last \
         acknowledgement. measure.ideal selects other definitions, which are not bounds.",
    ),
    quantity(
        "slowdown",
        Unit::Number,
        "FCT slowdown",
        "Completion time over ideal completion time; 1: as fast as alone at full rate, without a handshake or slow start. Tables divide \
         flows by size into bins of equal count; percentile p is element floor(n p) of the sorted \
         values.",
    )
    .source(HPCC),
    quantity(
        "goodput_bps",
        Unit::Rate,
        "goodput over time",
        "Payload bytes delivered per time, in bit/s: no headers, no telemetry, no duplicates. \
         Transports that deliver messages count a byte when it first arrives; the others count \
         in order, bytes beyond a gap when the gap closes.",
    ),
    quantity(
        "utilisation",
        Unit::Share,
        "link utilisation",
        "Share of the time in which a port was transmitting, including headers, acknowledgements \
         and pause frames.",
    ),
    quantity(
        "queue",
        Unit::Bytes,
        "queue length (queue_bytes)",
        "Bytes waiting at an egress port, all classes together, without the packet on the wire. \
         Histograms have bins of 1000 bytes; their percentiles cover all ports of \
         measure.queue_histogram, including idle ones.",
    )
    .source(HPCC),
    quantity(
        "offered_load",
        Unit::Share,
        "offered load",
        "Payload bits of the flows that start, over the capacity of the hosts' links until the \
         last flow starts; of rounds alone, over one period for each round. With 48 B of header on 1000 B of payload and 60 B for its \
         acknowledgement, 50 % are about 55 % of the link.",
    )
    .source(HPCC),
    quantity(
        "base_rtt",
        Unit::Time,
        "base RTT T",
        "Of an ordered pair of hosts: twice the sum of the link delays and, one way, the time to \
         send one packet's payload on every hop. Controllers use the maximum over all pairs.",
    )
    .source(HPCC),
    quantity(
        "bdp",
        Unit::Bytes,
        "bandwidth-delay product W0 (window_bytes)",
        "Line rate times base RTT, in bytes: the window of a flow without congestion.",
    )
    .source(HPCC),
    quantity(
        "fingerprint",
        Unit::Number,
        "fingerprint",
        "64-bit hash of all completed flows and counters of a run: runs with equal bits have \
         equal fingerprints.",
    ),
    run("slowdown_mean", Unit::Number, "slowdown, mean", "Mean of the slowdowns; every flow counts once."),
    run(
        "slowdown_p50",
        Unit::Number,
        "slowdown, median",
        "Median of the slowdowns of all flows that finished.",
    ),
    run(
        "slowdown_p95",
        Unit::Number,
        "slowdown, p95",
        "Slowdown that 95 % of the finished flows stay below.",
    ),
    run(
        "slowdown_p99",
        Unit::Number,
        "slowdown, p99",
        "Slowdown that 99 % of the finished flows stay below.",
    ),
    run(
        "nfct",
        Unit::Number,
        "NFCT (sum of FCT / sum of ideal)",
        "Sum of the completion times over the sum of the ideal ones: the longest flows count \
         most.",
    ),
    run(
        "small_p95",
        Unit::Number,
        "p95 slowdown, smallest flows",
        "95th percentile of the slowdown of the flows in the smallest power of ten.",
    ),
    run("fct_mean", Unit::Time, "FCT, mean", "Mean completion time.").shown_in("ms"),
    run(
        "goodput",
        Unit::Rate,
        "goodput of a flow, mean",
        "Payload of a flow over its completion time; a mean over flows, each counting once. Over \
         time, the series goodput_bps is that of a flow or a group in an interval.",
    )
    .shown_in("Gb/s")
    .higher_is_better(),
    run("fct_p99", Unit::Time, "FCT, p99", "99th percentile of the completion time.").shown_in("ms"),
    run(
        "request_mean",
        Unit::Time,
        "request completion, mean",
        "Mean time from the start of an incast's event or a collective to its last flow's end; \
         operations within a whole job do not count.",
    )
    .shown_in("ms"),
    run(
        "request_p99",
        Unit::Time,
        "request completion, p99",
        "99th percentile of the time from the start of an incast's event or a collective to its \
         last flow's end.",
    )
    .shown_in("ms"),
    run(
        "step_mean",
        Unit::Time,
        "step of a job, mean",
        "Mean time of the steps of jobs that ended: what a step adds to its job, from its start, or the end of \
         the step before if that is later, to its end. Operations within a step do not count.",
    )
    .shown_in("ms"),
    run(
        "step_max",
        Unit::Time,
        "step of a job, slowest",
        "Time of the slowest step, counted as step_mean counts them.",
    )
    .shown_in("ms"),
    run(
        "step_over_ideal",
        Unit::Number,
        "step over its ideal time",
        "Mean over steps of their time over the ideal time: 1 is a lower bound.",
    ),
    run(
        "finish_to_finish",
        Unit::Time,
        "steps from finish to finish, mean",
        "Mean time from the end of a step to the next end of a step of its job, computation included.",
    )
    .shown_in("ms"),
    run(
        "algbw",
        Unit::Rate,
        "algorithm bandwidth",
        "Algorithm bandwidth of the operations: the data of every host over the time, of all that ended \
         together. None where they are of several kinds.",
    )
    .shown_in("Gb/s")
    .higher_is_better(),
    run(
        "busbw",
        Unit::Rate,
        "bus bandwidth",
        "Bus bandwidth of the operations, as nccl-tests define it, of all that ended together. None \
         where they are of several kinds.",
    )
    .shown_in("Gb/s")
    .higher_is_better(),
    run(
        "deadlines_met",
        Unit::Share,
        "deadlines met",
        "Share of the deadlines that were met, of those that were decided when the run ended.",
    )
    .higher_is_better(),
    run(
        "backlog_growth",
        Unit::Share,
        "backlog growth (of what started)",
        "Bytes under way when the last flow started, less those when half had, over the bytes \
         that started in between. Near 0: the network keeps up. None where an interval of \
         measure.goodput is longer than the time between the two.",
    )
    .axis("backlog growth (% of the bytes that started)"),
    run(
        "sent_share",
        Unit::Share,
        "load at the senders' links",
        "Mean utilisation of the hosts' ports until the last flow starts, over whole intervals. None where an \
         interval of measure.utilisation is longer than that.",
    )
    .axis("senders' links in use (%)")
    .higher_is_better(),
    run(
        "received_share",
        Unit::Share,
        "load at the receivers' links",
        "Mean utilisation of the measured ports from switches to hosts until the last flow starts, over whole \
         intervals. None where an interval of measure.utilisation is longer than that.",
    )
    .axis("receivers' links in use (%)")
    .higher_is_better(),
    run(
        "convergence",
        Unit::Time,
        "time until shares are fair",
        "When Jain's index of the goodputs over 1 ms first reaches 0.95.",
    )
    .shown_in("ms"),
    run(
        "jain",
        Unit::Number,
        "Jain's index of goodputs",
        "Jain's index, (sum x)^2 / (n sum x^2), of the mean goodputs of the measured flows: 1 if \
         all are equal, 1/n if one has all.",
    )
    .higher_is_better(),
    run(
        "jain_without_last_second",
        Unit::Number,
        "Jain's index of goodputs, without the last second",
        "Jain's index of the mean goodputs of the measured flows as the authors of Cebinae count: \
         without the last second.",
    )
    .axis("Jain's index of goodputs")
    .higher_is_better(),
    run(
        "jain_ideal",
        Unit::Number,
        "Jain's index of goodputs over the max-min fair ones",
        "Jain's index of the mean goodputs over the max-min fair ones, by water filling over the \
         links between the switches of a dumbbell or a parking lot.",
    )
    .higher_is_better(),
    run("goodput_total", Unit::Rate, "goodput, measured flows", "Sum of the mean goodputs of the measured flows, from the first flow's start to the end of the run.")
        .shown_in("Mb/s")
        .axis("goodput of the measured flows (Mb/s)")
        .higher_is_better(),
    run(
        "goodput_without_last_second",
        Unit::Rate,
        "goodput, measured flows, without the last second",
        "Sum of the mean goodputs as the authors of Cebinae count: without the last second, times \
         98/99.",
    )
    .shown_in("Mb/s")
    .axis("goodput of the measured flows (Mb/s)")
    .higher_is_better(),
    run(
        "throughput_without_last_second",
        Unit::Rate,
        "throughput of the bottleneck, without the last second",
        "Bytes on a dumbbell's bottleneck over time, without the last second, times 98/99.",
    )
    .shown_in("Mb/s")
    .axis("throughput (Mb/s)")
    .higher_is_better(),
    run(
        "first_share",
        Unit::Share,
        "share of the first group",
        "Share of the first flow's group in all goodput.",
    )
    .axis("share of the first group in all goodput (%)"),
    run(
        "fairness",
        Unit::Number,
        "final fairness (Jain)",
        "Mean of Jain's index over the last third of the time in which all measured flows run.",
    )
    .higher_is_better(),
    run(
        "queue_p50",
        Unit::Bytes,
        "queue, median",
        "Median of the queue lengths of all sampled ports, idle ones included: the lower edge of its bin of 1 KB.",
    )
    .shown_in("KB"),
    run(
        "queue_p95",
        Unit::Bytes,
        "queue p95",
        "95th percentile of the queue lengths of all sampled ports, idle ones included: the lower edge of its \
         bin of 1 KB.",
    )
    .shown_in("KB"),
    run(
        "queue_p99",
        Unit::Bytes,
        "queue p99",
        "99th percentile of the queue lengths of all sampled ports, idle ones included: the lower edge of its \
         bin of 1 KB.",
    )
    .shown_in("KB"),
    run("queue_max", Unit::Bytes, "queue max", "Longest queue that a sample saw.").shown_in("KB"),
    run(
        "path_packets",
        Unit::Number,
        "packets until a path is known",
        "Packets until PINT's collector knows a flow's path, from the list of switches alone.",
    ),
    run(
        "path_packets_network",
        Unit::Number,
        "packets until a path is known, with the network",
        "Packets until PINT's collector knows a flow's path, where it knows the links between the \
         switches, too.",
    ),
    run(
        "latency_median_error",
        Unit::Share,
        "relative error of median latency",
        "Relative error of the median hop latency decoded from PINT's digests.",
    ),
    run(
        "latency_tail_error",
        Unit::Share,
        "relative error of p99 latency",
        "Relative error of the 99th percentile of hop latency decoded from PINT's digests.",
    ),
    run(
        "pauses",
        Unit::Count,
        "pauses",
        "Pause frames that ports received; paused_share is the share of time for which they \
         paused any class of one.",
    )
    .source("IEEE 802.1Qbb"),
    run(
        "paused_share",
        Unit::Share,
        "paused (share of port time)",
        "Time for which ports were paused, over the number of ports times the duration of the \
         run.",
    )
    .axis("share of port time paused (%)"),
    run(
        "recirculated_share",
        Unit::Share,
        "recirculated (share of bytes switched)",
        "Bytes that passed a switch's pipeline twice, over all that switches sent.",
    )
    .axis("recirculated bytes (% of all that switches sent)"),
    run(
        "drop_rate",
        Unit::Share,
        "drops (share of packets)",
        "Packets dropped over those that hosts sent or dropped themselves.",
    )
    .axis("dropped packets (% of those that hosts sent)"),
    run(
        "drops",
        Unit::Count,
        "drops",
        "Packets that a switch's buffer or queue refused. None with PFC and sufficient headroom; \
         packets lost on failed links are counted separately.",
    ),
    run(
        "ecn_marks",
        Unit::Count,
        "ECN marks",
        "Packets marked at a port: never below Kmin, always above Kmax, and between them with a \
         probability that rises to Pmax.",
    )
    .source(HPCC),
    run(
        "reordered_share",
        Unit::Share,
        "packets reordered in flight (share)",
        "Data packets that arrived after a packet of their flow that was sent later.",
    )
    .axis("data packets overtaken in flight (%)"),
    run(
        "paths_per_flow",
        Unit::Number,
        "paths of a flow, mean",
        "Different paths that the packets of a flow took, mean over flows.",
    ),
    run(
        "utilisation_mean",
        Unit::Share,
        "utilisation of the measured links, mean",
        "Mean utilisation of the links between switches that measure.utilisation records (without any, \
         from switches to hosts) until the last flow starts. None where its interval is longer than that.",
    )
    .axis("utilisation of the measured links (%)"),
    run(
        "utilisation_max",
        Unit::Share,
        "utilisation of the busiest measured link",
        "Mean utilisation of the busiest link between switches that measure.utilisation records (without \
         any, from a switch to a host) until the last flow starts. None where its interval is longer than that.",
    ),
    run(
        "imbalance",
        Unit::Share,
        "imbalance of the measured links",
        "Of the utilisations of the measured links: (max - min) / mean, mean over time until the last flow \
         starts. None where an interval of measure.utilisation is longer than that.",
    )
    .axis("imbalance, (max - min) / mean (%)"),
    run(
        "failure_to_last_loss",
        Unit::Time,
        "from the first failure to the last loss",
        "From the first failure of a link or switch to the last packet lost to one.",
    )
    .shown_in("us"),
    run(
        "recovery",
        Unit::Time,
        "time to recover from the first failure",
        "From the first failure until goodput stays above 90 % of what it was before. A lower bound where it \
         does not before the next change of a link or the end of the run.",
    )
    .shown_in("us"),
    run(
        "deficit",
        Unit::Bytes,
        "not delivered after the first failure",
        "Bytes that were delivered less than at the goodput before the first failure, until the next \
         change of a link or the end of the run.",
    )
    .shown_in("KB"),
    run(
        "silenced",
        Unit::Share,
        "flows silenced by the first failure",
        "Share of the flows at work that deliver nothing from 2 to 8 ms after the first failure.",
    )
    .axis("flows that deliver nothing from 2 to 8 ms after the first failure (%)"),
    run(
        "packets_lost",
        Unit::Count,
        "packets lost or stranded",
        "Packets lost on failed links or at random, or that could not be forwarded.",
    ),
    run(
        "lost_on_dead_links",
        Unit::Count,
        "lost on dead links",
        "Packets of every kind that were on a link when it went down.",
    ),
    run(
        "lost_at_random",
        Unit::Count,
        "lost at random",
        "Packets of every kind that links lost at random ([failures] loss).",
    ),
    run(
        "stranded",
        Unit::Count,
        "stranded",
        "Packets of every kind that could not be forwarded: no route, or their link went down.",
    ),
    run(
        "retransmitted_share",
        Unit::Share,
        "retransmissions (share of data packets)",
        "Data packets that were sent again, over all data packets sent.",
    )
    .axis("data packets sent again (% of those sent)"),
    run(
        "audit_flowlets",
        Unit::Count,
        "flowlets that were audited",
        "Flowlets, separated by pauses, whose digests were decoded separately.",
    ),
    run(
        "audit_known",
        Unit::Share,
        "flowlets whose path was decoded",
        "Flowlets with at least 20 digests whose path was decoded, as a share of all such \
         flowlets.",
    )
    .higher_is_better(),
    run(
        "audit_right",
        Unit::Share,
        "decoded paths that are the true ones",
        "Decoded flowlets whose decoded paths are exactly those that their packets took.",
    )
    .higher_is_better(),
    run(
        "audit_wrong",
        Unit::Count,
        "wrong paths of flowlets on one path",
        "Decoded paths that no packet took, of flowlets whose packets took one path.",
    ),
    run(
        "audit_blended",
        Unit::Count,
        "wrong paths of flowlets on several",
        "Decoded paths that no packet took, of flowlets whose packets took several.",
    ),
    run(
        "audit_mixed",
        Unit::Share,
        "flowlets on several paths",
        "Flowlets whose packets took several paths.",
    )
    .axis("flowlets whose packets took several paths (%)"),
    run(
        "audit_paths",
        Unit::Number,
        "paths of a connection at once, decoded",
        "Distinct paths of the subflows of a connection within 1 ms, as decoded, mean.",
    ),
    run(
        "true_paths",
        Unit::Number,
        "paths of a connection at once",
        "Distinct paths of the subflows of a connection within 1 ms, mean.",
    ),
    run(
        "audit_disjointness",
        Unit::Number,
        "disjointness of subflows, decoded",
        "Distinct links of a connection's subflows over links counted once a subflow, by decoded \
         paths.",
    ),
    run(
        "true_disjointness",
        Unit::Number,
        "disjointness of subflows",
        "Distinct links of a connection's subflows over links counted once a subflow.",
    ),
    run(
        "telemetry_share",
        Unit::Share,
        "telemetry (share of what hosts sent)",
        "Bytes of telemetry, each packet once, over all bytes that hosts sent.",
    )
    .axis("bytes of telemetry (% of what hosts sent)"),
    run("unfinished", Unit::Count, "unfinished flows", "Flows that had not finished when the run ended."),
    run("wire_bytes", Unit::Bytes, "bytes on wire", "Bytes transmitted on any link."),
    run("end", Unit::Time, "simulated", "Simulated time at which the run ended.").shown_in("ms"),
    run("seconds", Unit::Number, "CPU s", "Processor seconds of the run."),
    run(
        "packet_hops",
        Unit::Count,
        "packet-hops",
        "Packets transmitted on any link, including acknowledgements and pause frames: the \
         measure of work, and per CPU second the measure of speed.",
    ),
    run("speed", Unit::Count, "hops/s", "Packet-hops per processor second.").higher_is_better(),
];
