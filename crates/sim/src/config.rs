//! What a run is made of, resolved and typed: the scenario makes it, the simulator is built from it.
//!
//! No defaults and no text live here; whoever builds a [`Config`] by hand states everything.

mod host;

use crate::balance::BalancerConfig;
use crate::compat::Rules;
use crate::congestion::ControllerConfig;
pub use crate::queue::QueueConfig;
use crate::queue::QueueDefaults;
use crate::telemetry::pint::PintConfig;
pub use crate::topology::PortSet;
use crate::topology::{HostId, LinkId, NodeId, Topology};
use crate::units::{Bytes, Rate, Time};
use crate::workload::Traffic;
pub use host::{HostConfig, ResequencingConfig};
use std::sync::Arc;

mod mptcp;
mod tcp;
pub use mptcp::*;
pub use tcp::*;

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

/// Marking thresholds for the ports of one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EcnThreshold {
    pub rate: Rate,
    pub kmin: Bytes,
    pub kmax: Bytes,
    pub pmax: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PfcConfig {
    pub enabled: bool,
    /// Reserve of every port, in bytes.
    pub reserve: Bytes,
    /// Headroom per port in units of rate times delay.
    pub headroom_factor: u32,
    /// Three packets and a pause frame on top (for what is in flight on very short links).
    pub headroom_extra: bool,
    /// Resume when the shared part is this far below the threshold.
    pub resume_offset: Bytes,
    /// Threshold = free pool >> this, at the NIC's rate; one less for every doubling above it.
    pub shift: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TransportConfig {
    Rdma(RdmaConfig),
    Phost(PhostConfig),
    Pfabric(PfabricConfig),
    Fastpass(FastpassConfig),
    Tcp(Box<TcpConfig>),
    Mptcp(Box<MptcpConfig>),
}

impl TransportConfig {
    /// Flows may follow each other over one of its connections, which stays open. The other transports know no connections: each
    /// flow is on its own, though those of one connection still start in order.
    pub fn keeps_connections(&self) -> bool {
        match self {
            TransportConfig::Tcp(tcp) => tcp.keeps_connections(),
            TransportConfig::Rdma(_) | TransportConfig::Mptcp(_) => true,
            _ => false,
        }
    }

    /// The packets of a flow have different labels, and may take different paths.
    pub fn spreads_flows(&self) -> bool {
        match self {
            TransportConfig::Rdma(_) | TransportConfig::Tcp(_) => false,
            TransportConfig::Phost(phost) => phost.spray,
            TransportConfig::Pfabric(pfabric) => pfabric.spray,
            TransportConfig::Fastpass(fastpass) => fastpass.spray || fastpass.arbiter.assign_paths,
            TransportConfig::Mptcp(_) => true,
        }
    }

    /// A flow leaves by several subflows, which know no common order of its packets.
    pub fn has_subflows(&self) -> bool {
        matches!(self, TransportConfig::Mptcp(_))
    }

    pub fn name(&self) -> &'static str {
        match self {
            TransportConfig::Rdma(_) => "rdma",
            TransportConfig::Phost(_) => "phost",
            TransportConfig::Pfabric(_) => "pfabric",
            TransportConfig::Fastpass(_) => "fastpass",
            TransportConfig::Tcp(_) => "tcp",
            TransportConfig::Mptcp(_) => "mptcp",
        }
    }

    pub fn rdma(&self) -> Option<&RdmaConfig> {
        match self {
            TransportConfig::Rdma(rdma) => Some(rdma),
            _ => None,
        }
    }

    pub fn phost(&self) -> Option<&PhostConfig> {
        match self {
            TransportConfig::Phost(phost) => Some(phost),
            _ => None,
        }
    }

    pub fn pfabric(&self) -> Option<&PfabricConfig> {
        match self {
            TransportConfig::Pfabric(pfabric) => Some(pfabric),
            _ => None,
        }
    }

    pub fn fastpass(&self) -> Option<&FastpassConfig> {
        match self {
            TransportConfig::Fastpass(fastpass) => Some(fastpass),
            _ => None,
        }
    }

    pub fn tcp(&self) -> Option<&TcpConfig> {
        match self {
            TransportConfig::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    pub fn mptcp(&self) -> Option<&MptcpConfig> {
        match self {
            TransportConfig::Mptcp(mptcp) => Some(mptcp),
            _ => None,
        }
    }

    /// The queue of a host's NIC, where the transport counts on one: that of pFabric drops.
    pub fn nic_queue(&self) -> Option<QueueConfig> {
        let limit = Some(self.pfabric()?.queue_limit);
        QueueConfig::of("pfabric", QueueDefaults { limit })
    }

    /// What a packet costs that later ones have overtaken.
    pub fn overtaken(&self) -> Overtaken {
        let of_tcp = |tcp: &TcpConfig| match tcp.recovery.rack {
            Some(_) => Overtaken::WaitedFor {
                why: "loss detection by time begins without patience and has that of a round trip at most (RFC 8985 §6.2)",
            },
            None => Overtaken::LostAfter {
                packets: tcp.recovery.dup_threshold,
                why: "segments are taken for lost by a count of those that came after them",
                instead: "transport.loss_detection = \"rack\"",
            },
        };
        match self {
            TransportConfig::Rdma(rdma) => match rdma.recovery {
                Recovery::GoBackN => Overtaken::LostAfter {
                    packets: 1,
                    why: "go-back-N takes an overtaken packet for lost and sends everything from it on again",
                    instead: "transport.recovery = \"selective-repeat\" with a transport.reordering as large as a window of packets",
                },
                Recovery::SelectiveRepeat { reordering } => Overtaken::LostAfter {
                    packets: reordering,
                    why: "packets are taken for lost by a count of those that came after them",
                    instead: "a transport.reordering as large as a window of packets",
                },
            },
            TransportConfig::Tcp(tcp) => of_tcp(tcp),
            TransportConfig::Mptcp(mptcp) => of_tcp(&mptcp.tcp),
            TransportConfig::Phost(_) | TransportConfig::Pfabric(_) | TransportConfig::Fastpass(_) => {
                Overtaken::Nothing
            }
        }
    }

    /// A packet that is dropped costs much more than itself: this transport is made for a network that drops none.
    pub fn wants_lossless(&self) -> bool {
        self.rdma().is_some_and(|rdma| rdma.recovery == Recovery::GoBackN)
    }

    /// The controller that steers by marks of switches, if it does.
    pub fn marked_controller(&self) -> Option<&str> {
        let of_tcp = |tcp: &TcpConfig| tcp.controller.needs_marks().then(|| tcp.controller.name());
        match self {
            TransportConfig::Rdma(rdma) => rdma.controller.needs_marks().then(|| rdma.controller.name()),
            TransportConfig::Tcp(tcp) => of_tcp(tcp),
            TransportConfig::Mptcp(mptcp) => of_tcp(&mptcp.tcp),
            TransportConfig::Phost(_) | TransportConfig::Pfabric(_) | TransportConfig::Fastpass(_) => None,
        }
    }

    /// The controller of RDMA; none elsewhere.
    pub fn controller(&self) -> Option<&ControllerConfig> {
        self.rdma().map(|rdma| &rdma.controller)
    }
}

/// What a transport does about a packet that later ones of its flow have overtaken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overtaken {
    /// Nothing: it counts packets in any order.
    Nothing,
    /// It waits for it, longer the more often packets are overtaken, but not as long as a block of packets may take.
    WaitedFor { why: &'static str },
    /// It takes it for lost when this many sent later have come; `why` and what to set `instead` are for people.
    LostAfter { packets: u32, why: &'static str, instead: &'static str },
}

#[derive(Debug, Clone, PartialEq)]
pub struct RdmaConfig {
    pub controller: ControllerConfig,
    /// Payload bytes of a full packet.
    pub mtu: u32,
    /// Bytes of header of a data packet, without telemetry.
    pub header: u32,
    /// Bytes of an acknowledgement without telemetry, and the least on the wire.
    pub ack_header: u32,
    pub ack_least: u32,
    /// Traffic class of data and acknowledgements, 1 to 7.
    pub class: u8,
    /// In the compat mode, which pause gates the NIC's acknowledgement queue: that of class 0 (never) or of the data.
    /// Elsewhere always that of the data, in whose class acknowledgements travel.
    pub ack_priority: bool,
    pub recovery: Recovery,
    /// One NACK per missing packet in this time.
    pub nack_interval: Time,
    /// Retransmission timeout; none as in the HPCC authors' simulator.
    pub rto: Option<Time>,
    pub pacing: bool,
    /// Window in bytes; none: base RTT times line rate where the controller has a window.
    pub window: Option<Bytes>,
    /// Base RTT for controllers and windows; none: the largest of all host pairs.
    pub base_rtt: Option<Time>,
}

/// Times are in packet times of a host's own link.
#[derive(Debug, Clone, PartialEq)]
pub struct PhostConfig {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    pub header: u32,
    /// Bytes of a request, a token or an acknowledgement.
    pub control: u32,
    /// Traffic class of control packets; data are in the next, or the next two.
    pub class: u8,
    /// Flows of at most so many packets go above the others; 0: all data are in one class.
    pub short: u32,
    pub free_tokens: u32,
    pub free_for: FreeTokens,
    /// Tokens that a flow may have outstanding.
    pub window: u32,
    pub token_life: f64,
    pub token_interval: f64,
    /// Ticks of the token clock are left to free packets.
    pub hold: bool,
    /// For every free token, until a flow that has no others may be given new ones.
    pub first_wait: f64,
    /// From the last of the tokens for all packets until missing ones are asked for again.
    pub retoken: f64,
    /// A flow with a full window gets one token in this time.
    pub downgrade: f64,
    pub wake_on_data: bool,
    /// Every packet with a choice of paths has a label of its own.
    pub spray: bool,
    /// A source that hears nothing for so long repeats its request.
    pub request_timeout: Time,
    pub policy: Policy,
}

impl PhostConfig {
    /// Bytes of a full data packet.
    pub fn packet(&self) -> u32 {
        self.mtu + self.header
    }

    /// Free tokens of a flow of so many packets.
    pub fn free_tokens_of(&self, packets: u32) -> u32 {
        match self.free_for {
            FreeTokens::Every => packets.min(self.free_tokens),
            FreeTokens::Short if packets <= self.free_tokens => packets,
            FreeTokens::Short => 0,
        }
    }

    /// Traffic class of the data of a flow of so many packets.
    pub fn data_class(&self, packets: u32) -> u8 {
        self.class + if self.short > 0 && packets > self.short { 2 } else { 1 }
    }
}

/// Which flows have free tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeTokens {
    /// Those that need no others.
    Short,
    Every,
}

/// Which flows an end of pHost, or the arbiter of Fastpass, serves first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    ShortestRemaining,
    EarliestDeadline,
    TenantRoundRobin,
    TenantLeastRecent,
}

impl Policy {
    pub fn has_tenants(self) -> bool {
        matches!(self, Policy::TenantRoundRobin | Policy::TenantLeastRecent)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    GoBackN,
    /// Out-of-order placement, selective acknowledgement and retransmission (IRN, SIGCOMM 2018): a packet counts as
    /// lost when one sent this many packets later has arrived.
    SelectiveRepeat {
        reordering: u32,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct PfabricConfig {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    pub header: u32,
    /// Bytes of an acknowledgement.
    pub ack_header: u32,
    /// Traffic class of data and acknowledgements, 1 to 7.
    pub class: u8,
    /// Packets that a flow may have on the way when it starts, and at the most.
    pub initial_window: u32,
    pub max_window: u32,
    /// Fixed retransmission timeout.
    pub rto: Time,
    /// Timeouts in a row after which a flow probes; 0: never.
    pub probe_after: u32,
    /// Bytes that may wait in a host's NIC.
    pub queue_limit: Bytes,
    /// Every packet with a choice of paths has a label of its own.
    pub spray: bool,
    pub priority: PfabricPriority,
}

/// What pFabric's queues order packets by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PfabricPriority {
    /// Bytes that the flow had left when the packet was sent.
    Remaining,
    /// The flow's deadline in microseconds.
    Deadline,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FastpassConfig {
    /// Payload bytes of a full packet.
    pub mtu: u32,
    pub header: u32,
    /// Bytes of a request, a schedule, an acknowledgement or a word of completion.
    pub control: u32,
    /// Traffic class of control packets; data are in the next.
    pub class: u8,
    pub arbiter: ArbiterConfig,
    /// From the last packet of a flow until what is not acknowledged is asked for again.
    pub retry: Time,
    /// A source that waits for timeslots and hears nothing for so long repeats its request.
    pub request_timeout: Time,
    /// Every packet with a choice of paths has a label of its own.
    pub spray: bool,
}

impl FastpassConfig {
    /// Bytes of a full data packet.
    pub fn packet(&self) -> u32 {
        self.mtu + self.header
    }
}

/// What all flows over Fastpass share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArbiterConfig {
    pub host: HostId,
    /// Epochs run back to back from time 0.
    pub epoch: Time,
    pub slot: Time,
    pub start: StartRule,
    /// From the beginning of an epoch until its schedules leave.
    pub compute_time: Time,
    pub policy: Policy,
    /// It says by which path the packet of each timeslot goes.
    pub assign_paths: bool,
}

/// When the first timeslot of a schedule begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartRule {
    /// So long after the arbiter computed the schedule, as published: one epoch there.
    Boundary { lead: Time },
    /// When the source receives the schedule, as in the simulator that was released.
    Receipt,
}

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

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Failures {
    /// How long routes still use a link that went down, or do not yet use one that came back.
    pub detection: Time,
    /// In order of time.
    pub events: Vec<Failure>,
    pub loss: Option<LinkLoss>,
}

/// What every link loses at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkLoss {
    /// Of the packets of these kinds.
    pub share: f64,
    /// A bit for each kind.
    pub kinds: u32,
}

impl LinkLoss {
    pub const DATA: u32 = 1;
    pub const ACKNOWLEDGEMENTS: u32 = 2;
    pub const ALL: u32 = u32::MAX;

    /// Probes of load balancers.
    pub const PROBES: u32 = 1 << 20;

    /// Control packets with this code of their transport.
    pub fn control(code: u8) -> u32 {
        4 << (code & 15)
    }
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
