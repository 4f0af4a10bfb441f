//! What a run is made of, resolved and typed: the scenario makes it, the simulator is built from it.
//!
//! No defaults and no text live here; whoever builds a [`Config`] by hand states everything.

mod host;
mod queue;

use crate::balance::BalancerConfig;
use crate::compat::Rules;
pub use crate::net::buffer::PfcConfig;
pub use crate::net::ecn::EcnThreshold;
pub use crate::net::loss::LinkLoss;
pub use crate::telemetry::TelemetryConfig;
pub use crate::topology::PortSet;
use crate::topology::{LinkId, NodeId, Topology};
pub use crate::transport::TransportConfig;
pub use crate::transport::rdma::{RdmaConfig, Recovery};
use crate::units::{Bytes, Rate, Time};
use crate::workload::Traffic;
pub use host::{HostConfig, ResequencingConfig};
pub use queue::{
    AfqConfig, CacheKind, CebinaeConfig, CodelConfig, DisciplineConfig, Dualpi2Config, FqCodelConfig, Limit,
    ManagedConfig, Products, RedConfig,
};

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
}

#[derive(Debug, Clone, PartialEq)]
pub struct SwitchConfig {
    pub buffer: Bytes,
    pub forwarding: Forwarding,
    pub ecn: Vec<EcnThreshold>,
    pub pfc: PfcConfig,
    /// With PFC off: a queue may hold this multiple of the free buffer (dynamic threshold).
    pub lossy_alpha: f64,
    pub balancer: BalancerConfig,
    pub queue: QueueConfig,
    /// Ports that have another one: (ports, queue), of which the last that names a port holds.
    pub port_queues: Vec<(PortSet, QueueConfig)>,
}

impl SwitchConfig {
    /// The queue of a switch's port.
    pub fn queue_at(&self, node: NodeId, local: u32) -> &QueueConfig {
        let named = self.port_queues.iter().rev().find(|(ports, _)| ports.contains(&(node, local)));
        named.map_or(&self.queue, |(_, queue)| queue)
    }

    /// The queues of all its ports.
    pub fn queues(&self) -> impl Iterator<Item = &QueueConfig> {
        std::iter::once(&self.queue).chain(self.port_queues.iter().map(|(_, queue)| queue))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarding {
    StoreAndForward,
    /// A packet may leave once this many of its bytes have arrived.
    CutThrough {
        header: u32,
    },
    /// The same, but it does not wait for its tail where the outgoing link is the faster one: a port may send bytes that
    /// have not come (the pHost authors' simulator).
    IdealCutThrough {
        header: u32,
    },
}

impl Forwarding {
    /// Bytes after which a switch forwards; none: all.
    pub fn header(self) -> Option<u32> {
        match self {
            Forwarding::StoreAndForward => None,
            Forwarding::CutThrough { header } | Forwarding::IdealCutThrough { header } => Some(header),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueConfig {
    /// Eight classes, class 0 first, the others round robin; first come first served within a class.
    Fifo,
    /// The flow with the least left first; a port holds `limit` bytes, and drops the packet whose flow has the most left.
    Pfabric { limit: Bytes },
    /// Eight classes, lower number first. With a limit, a port holds that many bytes; what is dropped beyond says `drop`.
    Priority { limit: Option<Bytes>, drop: DropRule },
    /// A buffer of the port's own.
    Managed(ManagedConfig),
}

/// Which packet a full queue of classes drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropRule {
    /// The one that came last of the least urgent class: the new one only if no less urgent one waits.
    Lowest,
    /// The new one.
    Tail,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Failures {
    /// How long routes still use a link that went down, or do not yet use one that came back.
    pub detection: Time,
    /// In order of time.
    pub events: Vec<Failure>,
    pub loss: Option<LinkLoss>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failure {
    pub at: Time,
    pub change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    LinkDown(LinkId),
    LinkUp(LinkId),
    /// The link runs at this rate from now on.
    LinkRate(LinkId, Rate),
    SwitchDown(NodeId),
    SwitchUp(NodeId),
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

/// What is recorded beside the flows. What is not asked for costs nothing.
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
    /// Packets that overtake each other on the way to their receiver are counted.
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
    /// The longest that the file may become.
    pub most: Bytes,
    /// Bytes that are kept of each; none: its headers.
    pub kept: Option<Bytes>,
}

/// Which time a flow is compared with: `ideal_fct_ns`, and through it the slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdealFct {
    /// What the flow takes alone at line rate, to the picosecond: every packet with its headers and telemetry over
    /// every hop, and the last acknowledgement back.
    #[default]
    Alone,
    /// The HPCC authors': base RTT (payload only, one direction) plus all bytes with 48 B headers at the bottleneck.
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
