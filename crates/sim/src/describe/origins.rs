//! Where the schemes that are no controllers come from, and how each was checked, for `weftline explain`.
//!
//! Controllers say both themselves ([`crate::congestion::SchemeDoc`]), queue disciplines and transports their source.
//! Pages: docs/schemes/.

/// What a scheme is from and how it was checked.
pub struct Origin {
    pub name: &'static str,
    /// Empty: its own room says it.
    pub source: &'static str,
    pub validation: &'static str,
}

/// The entry of a scheme, if it has one.
pub fn of(name: &str) -> Option<&'static Origin> {
    ORIGINS.iter().find(|origin| origin.name == name)
}

const HPCC: &str =
    "Li et al., \"HPCC: High Precision Congestion Control\", SIGCOMM 2019, and its authors' simulator";
const AGAINST_A_FAILED_LINK: &str = "With a link down, ECMP, LetFlow, CONGA and HULA order as their papers report \
                                     (tests/balancing.rs); page: docs/schemes/load-balancing.md.";

const fn origin(name: &'static str, source: &'static str, validation: &'static str) -> Origin {
    Origin { name, source, validation }
}

pub const ORIGINS: &[Origin] = &[
    // Load balancers.
    origin(
        "ecmp",
        "RFC 2992 (2000), equal-cost multipath by hash; hash and salt of the HPCC authors' simulator \
         in compat mode",
        "Completion times equal those of the HPCC authors' simulator on a 32-host pod, whose paths \
         its hash chooses (tests/reference.rs); the hash gives its published values.",
    ),
    origin(
        "destination",
        "Zahavi et al., \"Optimized InfiniBand fat-tree routing for shift all-to-all communication \
         patterns\", 2010",
        "Digits of the destination by hand, a tier at a time (balance/destination.rs).",
    ),
    origin(
        "label",
        "The spray counters of the pHost authors' simulator (Gao et al., \"pHost\", CoNEXT 2015)",
        "Labels that count up take every path in turn (balance/label.rs); with pHost equal to its \
         authors' simulator on unit cases.",
    ),
    origin(
        "spray",
        "Random packet spraying; in turn: Cao et al., \"Per-packet load-balanced, low-latency \
         routing\" (DRB), CoNEXT 2013",
        "In turn: the order of the paths over two tiers by hand (balance/round_robin.rs). At random: \
         in whole runs only.",
    ),
    origin(
        "letflow",
        "Vanini et al., \"Let it flow: resilient asymmetric load balancing with flowlet switching\", \
         NSDI 2017",
        AGAINST_A_FAILED_LINK,
    ),
    origin(
        "drill",
        "Ghorbani et al., \"DRILL: micro load balancing for low-latency data center networks\", \
         SIGCOMM 2017, §3",
        "The shorter of two queues always wins, remembered queues are looked at again, draws find a \
         short queue with their chance (balance/drill.rs).",
    ),
    origin(
        "presto",
        "He et al., \"Presto: edge-based load balancing for fast datacenter networks\", SIGCOMM 2015, §3",
        "Cells, turns and shares by the ports' rates, by hand (balance/presto.rs).",
    ),
    origin(
        "conga",
        "Alizadeh et al., \"CONGA: distributed congestion-aware load balancing for datacenters\", \
         SIGCOMM 2014, §3",
        AGAINST_A_FAILED_LINK,
    ),
    origin(
        "clove",
        "Katta et al., \"Clove: congestion-aware load balancing at the virtual edge\", CoNEXT 2017 \
         (abstract and slides; values recalled)",
        "Weights, feedback and choices by hand (balance/clove); a narrow path is left \
         (tests/edges.rs).",
    ),
    origin(
        "hula",
        "Katta et al., \"HULA: scalable load balancing using programmable data planes\", SOSR 2016",
        AGAINST_A_FAILED_LINK,
    ),
    origin(
        "mp-hula",
        "Benet et al., \"MP-HULA: multipath transport aware load balancing using programmable data planes\", NetCompute \
         2018",
        "Probes, ranks and failures by hand (tests/balancing.rs); subflows of multipath TCP on two tiers of two, and on four \
         paths beside a trial on Linux (tests/mptcp.rs).",
    ),
    // Queue disciplines.
    origin(
        "afq",
        "",
        "Which packets wait in which round and which are dropped, by hand; backlogged flows are never \
         apart by more than two rounds.",
    ),
    origin(
        "cebinae",
        "",
        "Filter and agent by a hand-worked sequence; the authors' stored control traces replayed bit for bit; page: \
         docs/schemes/cebinae.md.",
    ),
    origin(
        "codel",
        "",
        "Times of the first eight drops of a standing queue, worked out from the law \
         (docs/schemes/queues.md).",
    ),
    origin(
        "drr",
        "",
        "Turns follow the example of the paper; backlogged flows are never apart by more than a \
         quantum and two packets.",
    ),
    origin(
        "dualpi2",
        "",
        "Steps of the controller and the coupling by hand, the ramp's ends, even spacing of signals; \
         not yet compared with another implementation.",
    ),
    origin(
        "fifo",
        HPCC,
        "Waits in a port fed at random are those of an M/D/1 queue (tests/laws/queueing.rs).",
    ),
    origin(
        "fq-codel",
        "",
        "Shares by bytes, new flows first, half of the fattest queue or 64 dropped, collisions of the \
         hash as chance has it (queue/fq_codel.rs).",
    ),
    origin(
        "priority",
        "Strict priority; the drop rule as in the pHost authors' simulator (Gao et al., \"pHost\", \
         CoNEXT 2015)",
        "Order and drops by hand (queue/priority.rs); with pHost against its authors' simulator.",
    ),
    origin(
        "red",
        "",
        "The average by hand, the shape of the probability, uniform gaps between signals (the paper's \
         section 7).",
    ),
    // Telemetry.
    origin(
        "int",
        "",
        "Records by hand at every hop; HPCC, which reads them, equals its authors' simulator to the \
         nanosecond.",
    ),
    origin(
        "pint",
        "Ben Basat et al., \"PINT: Probabilistic In-band Network Telemetry\", SIGCOMM 2020",
        "Packets until a path is known and errors of latencies against the paper's figures \
         (experiments/pint-*).",
    ),
];
