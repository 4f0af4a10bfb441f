//! weftline's simulator: scenario → build → run → results.

#[macro_use]
mod registry;

pub mod balance;
mod capture;
pub mod config;
pub mod congestion;
pub mod doc;
pub mod engine;
mod files;
mod ideal;
pub mod measure;
pub mod net;
pub mod packet;
pub mod parameters;
pub mod queue;
pub mod scenario;
mod settings;
pub mod simulation;
pub mod telemetry;
pub mod topology;
pub mod transport;
pub mod units;
pub mod workload;
