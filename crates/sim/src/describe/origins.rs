//! Sources and validation of the schemes that do not declare them themselves, for `weftline explain`.
//!
//! Controllers, balancers, topologies, workloads and queue disciplines declare both themselves ([`crate::doc::SchemeDoc`]), transports
//! their source. Pages: docs/schemes/.

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

const fn origin(name: &'static str, source: &'static str, validation: &'static str) -> Origin {
    Origin { name, source, validation }
}

pub const ORIGINS: &[Origin] = &[
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
        "Completion times and drops compared with those of the pHost authors' simulator (tests/pfabric.rs); \
         page: docs/schemes/pfabric.md.",
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
