//! weftline's simulator: scenario → build → run → results.

pub mod parameters;
pub mod topology;
pub mod units;
pub mod workload;
