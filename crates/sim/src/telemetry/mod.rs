//! Telemetry that packets carry about their path.

pub mod int;
pub mod load;
pub mod packet_digest;
pub mod pint;

/// What telemetry counts.
pub const COUNTERS: &[&crate::counters::CounterGroup] = &[&load::RECIRCULATED];
