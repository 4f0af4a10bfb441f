//! Telemetry that packets carry about their path.

pub mod int;
pub mod load;
pub mod packet_digest;
pub mod pint;

use pint::PintConfig;
use std::sync::Arc;

/// What telemetry counts.
pub const COUNTERS: &[&crate::counters::CounterGroup] = &[&load::RECIRCULATED];

#[derive(Debug, Clone, PartialEq)]
pub enum TelemetryConfig {
    None,
    Int {
        /// Records that the header has room for.
        max_hops: u32,
        /// Carry the 12-bit path id (HPCC paper, Fig 7).
        path_id: bool,
        /// Every data packet carries it, not only those whose controller reads it.
        all: bool,
    },
    /// Every data packet carries a digest.
    Pint(Arc<PintConfig>),
}

impl TelemetryConfig {
    /// Bytes in a data packet, where every one carries it or this one's controller `reads` INT.
    pub fn bytes(&self, reads: bool) -> u32 {
        match self {
            TelemetryConfig::Int { max_hops, all, .. } if *all || reads => {
                max_hops * int::IntRecord::WIRE_BYTES + int::IntRecord::COUNT_BYTES
            }
            TelemetryConfig::Pint(pint) => pint.wire_bytes,
            _ => 0,
        }
    }
}
