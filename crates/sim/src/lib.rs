//! weftline's simulator: scenario → build → run → results.

pub mod config;
pub mod congestion;
pub mod engine;
pub mod measure;
pub mod packet;
pub mod parameters;
pub mod queue;
pub mod telemetry;
pub mod topology;
pub mod units;
pub mod workload;
