//! Sources and validation of the schemes that do not declare them themselves, for `weftline explain`.
//!
//! All others declare both in their [`crate::doc::SchemeDoc`]. Pages: docs/schemes/.

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
