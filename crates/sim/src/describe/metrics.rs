//! The meaning of the numbers in results, for `weftline explain`.

/// A quantity in results.
pub struct Metric {
    pub name: &'static str,
    pub title: &'static str,
    pub text: &'static str,
    pub source: &'static str,
}

const HPCC: &str =
    "Li et al., \"HPCC: High Precision Congestion Control\", SIGCOMM 2019, and its authors' simulator";
const OURS: &str = "weftline's definition";

pub const METRICS: &[Metric] = &[
    Metric {
        name: "fct",
        title: "flow completion time (fct_ns)",
        text: "From the start of a flow to the arrival, at its sender, of the acknowledgement of its last \
               byte, in nanoseconds. Empty for a flow that did not finish.",
        source: HPCC,
    },
    Metric {
        name: "ideal_fct",
        title: "ideal flow completion time (ideal_fct_ns)",
        text: "A lower bound of a flow's completion time on the network as configured: every packet sent \
               back to back, stored and forwarded (or cut through) on every hop of its fastest path, or of \
               all paths that its packets may take, and the return of the last acknowledgement. \
               measure.ideal selects other definitions, which are not bounds.",
        source: OURS,
    },
    Metric {
        name: "slowdown",
        title: "FCT slowdown",
        text: "Completion time over ideal completion time; 1 as in an empty network. Tables divide flows by \
               size into bins of equal count; percentile p is element floor(n p) of the sorted values.",
        source: HPCC,
    },
    Metric {
        name: "goodput",
        title: "goodput (goodput_bps)",
        text: "Payload bytes delivered in order per time, in bit/s: no headers, no telemetry, no retransmissions.",
        source: OURS,
    },
    Metric {
        name: "utilisation",
        title: "link utilisation",
        text: "Share of the time in which a port was transmitting, including headers, acknowledgements and \
               pause frames.",
        source: OURS,
    },
    Metric {
        name: "queue",
        title: "queue length (queue_bytes)",
        text: "Bytes waiting at an egress port, all classes together, without the packet on the wire. \
               Histograms have bins of 1000 bytes; their percentiles cover all ports of measure.queues, \
               including idle ones.",
        source: HPCC,
    },
    Metric {
        name: "packet_hops",
        title: "packet-hops",
        text: "Packets transmitted on any link, including acknowledgements and pause frames: the measure of \
               work, and per CPU second the measure of speed.",
        source: OURS,
    },
    Metric {
        name: "offered_load",
        title: "offered load",
        text: "Payload bits of the flows that start, over the capacity of the hosts' links until the last \
               flow starts. With 48 B of header on 1000 B of payload and 60 B for its acknowledgement, 50 % \
               are about 55 % of the link.",
        source: HPCC,
    },
    Metric {
        name: "base_rtt",
        title: "base RTT T",
        text: "Of an ordered pair of hosts: twice the sum of the link delays and, one way, the time to send \
               one packet's payload on every hop. Controllers use the maximum over all pairs.",
        source: HPCC,
    },
    Metric {
        name: "bdp",
        title: "bandwidth-delay product W0 (window_bytes)",
        text: "Line rate times base RTT, in bytes: the window of a flow without congestion.",
        source: HPCC,
    },
    Metric {
        name: "pauses",
        title: "PFC pauses",
        text: "Pause frames that a port received, and the time for which they paused any class of it.",
        source: "IEEE 802.1Qbb",
    },
    Metric {
        name: "paused_share",
        title: "share of port time paused",
        text: "Time for which ports were paused, over the number of ports times the duration of the run.",
        source: OURS,
    },
    Metric {
        name: "drops",
        title: "drops",
        text: "Packets that a switch's buffer or queue refused. None with PFC and sufficient headroom; \
               packets lost on failed links are counted separately.",
        source: OURS,
    },
    Metric {
        name: "ecn_marks",
        title: "ECN marks",
        text: "Packets marked at a port: never below Kmin, always above Kmax, and between them with a probability that \
               rises to Pmax.",
        source: HPCC,
    },
    Metric {
        name: "fingerprint",
        title: "fingerprint",
        text: "64-bit hash of all completed flows and counters of a run: runs with equal bits have equal \
               fingerprints.",
        source: OURS,
    },
];
