//! Where the schemes that are no controllers come from, and how each was checked, for `weftline explain`.
//!
//! Controllers, topologies, workloads and queue disciplines say both themselves ([`crate::doc::SchemeDoc`]), transports their source.
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
    // Transports.
    origin(
        "rdma",
        "",
        "Equal to the HPCC authors' simulator to the nanosecond (tests/reference.rs); page: \
         docs/schemes/rdma.md.",
    ),
    origin(
        "tcp",
        "",
        "Laws of the standards by hand, sharing and loss in whole runs (tests/tcp.rs); page: \
         docs/schemes/tcp.md.",
    ),
    origin(
        "phost",
        "",
        "Equal to its authors' simulator on unit cases (tests/phost.rs); page: docs/schemes/phost.md.",
    ),
    origin(
        "pfabric",
        "",
        "Completion times and drops beside those of the pHost authors' simulator (tests/pfabric.rs); page: \
         docs/schemes/pfabric.md.",
    ),
    origin(
        "fastpass",
        "",
        "Equal to the pHost authors' simulator on unit cases (tests/fastpass.rs); page: \
         docs/schemes/fastpass.md.",
    ),
    origin(
        "mptcp",
        "",
        "Handshake and one window take the time of the links, subflows carry a flow to its end, no connection is stuck \
         whatever is lost (tests/mptcp.rs).",
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
