//! What packets carry about the network they crossed.

pub mod carried;
pub mod int;
pub mod load;
pub mod pint;

/// What telemetry counts.
pub const COUNTERS: &[&crate::counters::CounterGroup] = &[&load::RECIRCULATED];
