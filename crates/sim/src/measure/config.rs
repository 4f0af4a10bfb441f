//! What a scenario asks to be measured, resolved.

use crate::topology::PortSet;
use crate::units::{Bytes, Time};

/// What is recorded in addition to the flows. What is not requested costs nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeasureConfig {
    pub ideal: IdealFct,
    /// Histogram of the bytes queued at these ports, sampled this often.
    pub queue_histogram: Option<Sampled<PortSet>>,
    pub queue_series: Option<Sampled<PortSet>>,
    pub utilisation: Option<Sampled<PortSet>>,
    /// Payload bytes delivered in order, by group.
    pub group_goodput: Option<Time>,
    /// The same for chosen flows.
    pub flow_goodput: Option<Sampled<Vec<u32>>>,
    /// cwnd, rate, U, alpha of chosen flows.
    pub controllers: Option<Sampled<Vec<u32>>>,
    /// ECN marks, drops and pauses per port over time.
    pub port_events: Option<Sampled<PortSet>>,
    /// What the queue disciplines of these ports dropped and why, and what Cebinae decided.
    pub disciplines: Option<Sampled<PortSet>>,
    /// Every PFC pause and resume as a row.
    pub pauses: bool,
    /// Packets that overtake each other before they reach their receiver are counted.
    pub reordering: bool,
    /// So are the paths that the packets of every flow took.
    pub paths: bool,
    /// What each subflow of a multipath flow carried, as rows when the flow ends.
    pub subflows: bool,
    /// Packets of some links are written down.
    pub capture: Option<CaptureConfig>,
}

/// Which packets are written down, and how much of them.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureConfig {
    /// The ports that they leave by, in order.
    pub ports: PortSet,
    /// Maximum size of the file.
    pub max_bytes: Bytes,
    /// Bytes that are kept of each; none: its headers.
    pub kept: Option<Bytes>,
}

/// Which time a flow is compared with: `ideal_fct_ns`, and through it the slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdealFct {
    /// What the flow takes alone at line rate, to the picosecond: every packet with its headers and telemetry
    /// over every hop, and the last acknowledgement back.
    #[default]
    Alone,
    /// The HPCC authors': base RTT (payload only, one direction) plus all bytes with 48 B headers at the
    /// bottleneck.
    Hpcc,
    /// The same without the way back: until the last byte has come to the receiver.
    Delivery,
    /// The pHost authors' OPT.
    Phost,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sampled<T> {
    pub what: T,
    pub every: Time,
}
