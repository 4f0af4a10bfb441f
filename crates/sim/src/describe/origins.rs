//! Sources and validation of the schemes that do not declare them themselves, for `weftline explain`.
//!
//! Controllers say both themselves ([`crate::congestion::SchemeDoc`]), queue disciplines and transports their
//! source. Pages: docs/schemes/.

/// Where a scheme was published and how the implementation was validated.
pub struct Origin {
    pub name: &'static str,
    /// Empty if the scheme's own room declares it.
    pub source: &'static str,
    pub validation: &'static str,
}

/// Returns the entry of a scheme, if there is one.
pub fn of(name: &str) -> Option<&'static Origin> {
    ORIGINS.iter().find(|origin| origin.name == name)
}

const HPCC: &str =
    "Li et al., \"HPCC: High Precision Congestion Control\", SIGCOMM 2019, and its authors' simulator";
const fn origin(name: &'static str, source: &'static str, validation: &'static str) -> Origin {
    Origin { name, source, validation }
}

pub const ORIGINS: &[Origin] = &[
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
