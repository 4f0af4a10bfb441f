//! What a run is made of, resolved and typed: the scenario makes it, the simulator is built from it.
//!
//! No defaults and no text live here; code that builds a [`Config`] by hand states everything. Its parts are defined where they are
//! used, and are re-exported here.

use crate::compat::Rules;
pub use crate::measure::{CaptureConfig, IdealFct, MeasureConfig, Sampled};
pub use crate::net::buffer::PfcConfig;
pub use crate::net::ecn::{EcnMarker, EcnThreshold, MarkedAt};
pub use crate::net::failures::{Change, Failure, Failures};
pub use crate::net::host::{HostConfig, ResequencingConfig};
pub use crate::net::loss::LinkLoss;
pub use crate::net::port::Forwarding;
pub use crate::net::switch::SwitchConfig;
pub use crate::queue::QueueConfig;
pub use crate::telemetry::TelemetryConfig;
pub use crate::topology::PortSet;
use crate::topology::Topology;
pub use crate::transport::TransportConfig;
pub use crate::transport::rdma::{IrnConfig, RdmaConfig, Recovery};
use crate::units::Time;
use crate::workload::Traffic;

/// A run, everything resolved.
#[derive(Clone)]
pub struct Config {
    pub seed: u64,
    pub topology: Topology,
    pub switch: SwitchConfig,
    pub host: HostConfig,
    /// Settings of the transports in use; a flow names one by its index.
    pub transports: Vec<TransportConfig>,
    pub telemetry: TelemetryConfig,
    pub traffic: Traffic,
    pub failures: Failures,
    pub until: Until,
    pub measure: MeasureConfig,
    pub rules: Rules,
    /// The factor by which `[scale]` made time slower: 1 if it did not.
    pub slower: u32,
    /// Repeated steps of a job that cannot differ are simulated once.
    pub memo: bool,
}

impl Config {
    /// The queue of every host's NIC.
    pub fn nic_queue(&self) -> QueueConfig {
        self.host.queue.clone().unwrap_or_else(|| crate::transport::nic_queue(&self.transports))
    }

    /// Bytes of the largest packet of its transports.
    pub fn largest_packet(&self) -> u64 {
        crate::transport::largest_packet(&self.transports, &self.telemetry)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The first point of the grid at which every flow is done.
    FlowsDone {
        grid: Time,
        stall: Time,
    },
    At(Time),
}
