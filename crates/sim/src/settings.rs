//! What all hosts of a run share and nobody changes: transport settings with everything derived from the network.

use crate::compat::Rules;
use crate::config::{
    FastpassConfig, IdealFct, MptcpConfig, PfabricConfig, PhostConfig, RdmaConfig, Recovery, TcpConfig,
    TelemetryConfig, TransportConfig,
};
use crate::congestion::Window;
use crate::telemetry::int::{IntLayout, IntRecord};
use crate::telemetry::pint::PintConfig;
use crate::units::Time;
use std::sync::Arc;

/// Bytes of the send timestamp that TIMELY's packets carry.
const TIMESTAMP_BYTES: u32 = 8;

pub struct Settings {
    pub rules: Rules,
    /// By the index that flows carry.
    pub transports: Vec<TransportSettings>,
    /// By the same index: which of a host's transports takes the flow.
    pub transport_of: Vec<u8>,
    pub int_layout: IntLayout,
    pub int_hops: usize,
    pub path_ids: bool,
    pub pint: Option<Arc<PintConfig>>,
    /// For random numbers that are nobody's own.
    pub seed: u64,
    pub ideal: IdealFct,
    /// Packets may be sent twice: receivers must remember which flows have ended.
    pub duplicates: bool,
    /// Flows wait for flows: hosts report those that end.
    pub dependencies: bool,
    /// Multipath flows tell what their subflows carried.
    pub subflows: bool,
}

/// Settings of one transport, with all that is derived from them.
pub enum TransportSettings {
    Rdma(RdmaSettings),
    Phost(PhostSettings),
    Pfabric(PfabricSettings),
    Fastpass(FastpassSettings),
    Tcp(Box<TcpSettings>),
    Mptcp(Box<MptcpSettings>),
}

/// pFabric settings with what is derived from the network.
pub struct PfabricSettings {
    pub config: PfabricConfig,
    pub base_rtt: Time,
}

/// TCP settings with what is derived from the network.
pub struct TcpSettings {
    pub config: TcpConfig,
    pub base_rtt: Time,
}

/// Multipath TCP settings with what is derived from the network.
pub struct MptcpSettings {
    pub config: MptcpConfig,
    pub base_rtt: Time,
}

/// Fastpass settings with what is derived from the network.
pub struct FastpassSettings {
    pub config: FastpassConfig,
    pub base_rtt: Time,
}

/// pHost settings with what is derived from the network.
pub struct PhostSettings {
    pub config: PhostConfig,
    pub base_rtt: Time,
    /// The longest round trip of two control packets.
    pub control_rtt: Time,
}

/// How a transport cuts a flow into packets, and what it sends back: bytes on the wire, telemetry included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// Of a full packet.
    pub payload: u64,
    pub header: u64,
    pub ack: u64,
    /// Every data packet is acknowledged, not only the last one.
    pub acks_each: bool,
}

impl Framing {
    /// How a transport with these settings does it.
    pub fn of(transport: &TransportConfig, telemetry: &TelemetryConfig) -> Framing {
        match &with_telemetry(transport, telemetry) {
            TransportConfig::Rdma(rdma) => {
                let telemetry = telemetry_bytes(rdma, telemetry);
                Framing {
                    payload: u64::from(rdma.mtu),
                    header: u64::from(rdma.header + telemetry),
                    ack: u64::from((rdma.ack_header + telemetry).max(rdma.ack_least)),
                    acks_each: true,
                }
            }
            TransportConfig::Phost(phost) => Framing::of_phost(phost),
            TransportConfig::Pfabric(pfabric) => Framing::of_pfabric(pfabric),
            TransportConfig::Fastpass(fastpass) => Framing::of_fastpass(fastpass),
            TransportConfig::Tcp(tcp) => Framing::of_tcp(tcp),
            TransportConfig::Mptcp(mptcp) => Framing::of_tcp(&mptcp.tcp),
        }
    }

    fn of_phost(phost: &PhostConfig) -> Framing {
        Framing {
            payload: u64::from(phost.mtu),
            header: u64::from(phost.header),
            ack: u64::from(phost.control),
            acks_each: false,
        }
    }

    fn of_pfabric(pfabric: &PfabricConfig) -> Framing {
        Framing {
            payload: u64::from(pfabric.mtu),
            header: u64::from(pfabric.header),
            ack: u64::from(pfabric.ack_header),
            acks_each: true,
        }
    }

    fn of_fastpass(fastpass: &FastpassConfig) -> Framing {
        Framing {
            payload: u64::from(fastpass.mtu),
            header: u64::from(fastpass.header),
            ack: u64::from(fastpass.control),
            acks_each: true,
        }
    }

    fn of_tcp(tcp: &TcpConfig) -> Framing {
        Framing {
            payload: u64::from(tcp.mss),
            header: u64::from(tcp.header),
            ack: u64::from(tcp.ack_header),
            acks_each: tcp.ack.every == 1,
        }
    }

    /// Bytes on the wire of a data packet with this payload.
    pub fn data_bytes(&self, payload: u64) -> u64 {
        payload + self.header
    }
}

/// RDMA settings with all that is derived from them.
pub struct RdmaSettings {
    pub config: RdmaConfig,
    /// Every data packet carries a telemetry stack: INT records, or PINT's digest.
    pub stack: bool,
    /// Where the controller steers on the load that PINT brings: how to read it.
    pub load: Option<Arc<PintConfig>>,
    /// Bytes of telemetry in every data packet and acknowledgement.
    pub telemetry_bytes: u32,
    /// Bytes of an acknowledgement on the wire.
    pub ack_bytes: u16,
    /// Class of the NIC's acknowledgement queue.
    pub ack_class: u8,
    pub base_rtt: Time,
    /// Window at full rate; none: line rate * base RTT. Unused without a window.
    pub window_bytes: Option<u64>,
    pub window: Window,
    pub selective: Option<u32>,
}

impl RdmaSettings {
    /// `base_rtt` and `bdp` are the largest of all host pairs.
    pub fn new(
        config: &RdmaConfig,
        telemetry: &TelemetryConfig,
        rules: &Rules,
        base_rtt: Time,
        bdp: u64,
    ) -> RdmaSettings {
        let needs = config.controller.needs();
        let stack = match telemetry {
            TelemetryConfig::None => false,
            TelemetryConfig::Int { all, .. } => *all || needs.int,
            TelemetryConfig::Pint(_) => true,
        };
        let load = match telemetry {
            TelemetryConfig::Pint(pint) if needs.load => Some(pint.clone()),
            _ => None,
        };
        let telemetry_bytes = telemetry_bytes(config, telemetry);
        let ack_bytes = (config.ack_header + telemetry_bytes).max(config.ack_least) as u16;
        let whole_network = rules.widest_window.then_some(bdp);
        let window = match (needs.window, config.window) {
            (Window::None, Some(_)) => Window::Fixed,
            (window, _) => window,
        };
        // An acknowledgement that ignores the pause of the class it travels in overruns the headroom behind it.
        let ignores_pause = config.ack_priority && rules.acks_ignore_pause;
        RdmaSettings {
            stack,
            load,
            telemetry_bytes,
            ack_bytes,
            ack_class: if ignores_pause { 0 } else { config.class },
            base_rtt: config.base_rtt.unwrap_or(base_rtt),
            window_bytes: config.window.map(|w| w.0).or(whole_network),
            window,
            selective: match config.recovery {
                Recovery::GoBackN => None,
                Recovery::SelectiveRepeat { reordering } => Some(reordering),
            },
            config: config.clone(),
        }
    }

    /// Bytes on the wire of a data packet with this payload.
    pub fn data_bytes(&self, payload: u64) -> u64 {
        payload + u64::from(self.config.header + self.telemetry_bytes)
    }

    pub fn framing(&self) -> Framing {
        Framing {
            payload: u64::from(self.config.mtu),
            header: u64::from(self.config.header + self.telemetry_bytes),
            ack: u64::from(self.ack_bytes),
            acks_each: true,
        }
    }
}

impl PhostSettings {
    pub fn framing(&self) -> Framing {
        Framing::of_phost(&self.config)
    }
}

impl PfabricSettings {
    pub fn framing(&self) -> Framing {
        Framing::of_pfabric(&self.config)
    }
}

impl FastpassSettings {
    pub fn framing(&self) -> Framing {
        Framing::of_fastpass(&self.config)
    }
}

impl TcpSettings {
    pub fn framing(&self) -> Framing {
        Framing::of_tcp(&self.config)
    }
}

impl MptcpSettings {
    pub fn framing(&self) -> Framing {
        Framing::of_tcp(&self.config.tcp)
    }
}

impl TransportSettings {
    /// Flows may follow each other over one of its connections ([`TransportConfig::keeps_connections`]).
    pub fn keeps_connections(&self) -> bool {
        match self {
            TransportSettings::Tcp(tcp) => tcp.config.keeps_connections(),
            TransportSettings::Rdma(_) | TransportSettings::Mptcp(_) => true,
            _ => false,
        }
    }

    /// How it cuts flows into packets.
    pub fn framing(&self) -> Framing {
        match self {
            TransportSettings::Rdma(rdma) => rdma.framing(),
            TransportSettings::Phost(phost) => phost.framing(),
            TransportSettings::Pfabric(pfabric) => pfabric.framing(),
            TransportSettings::Fastpass(fastpass) => fastpass.framing(),
            TransportSettings::Tcp(tcp) => tcp.framing(),
            TransportSettings::Mptcp(mptcp) => mptcp.framing(),
        }
    }
}

impl Settings {
    /// The largest data packet of any transport, on the wire.
    pub fn largest_packet(transports: &[TransportConfig], telemetry: &TelemetryConfig) -> u64 {
        let framings = transports.iter().map(|transport| Framing::of(transport, telemetry));
        framings.map(|framing| framing.data_bytes(framing.payload)).max().unwrap_or(0)
    }

    /// Those of a flow or packet that runs over RDMA.
    #[inline(always)]
    pub fn rdma(&self, index: impl Into<usize>) -> &RdmaSettings {
        match &self.transports[index.into()] {
            TransportSettings::Rdma(settings) => settings,
            _ => unreachable!("a flow of another transport came to RDMA"),
        }
    }

    /// Those of a flow or packet that runs over pHost.
    #[inline(always)]
    pub fn phost(&self, index: impl Into<usize>) -> &PhostSettings {
        match &self.transports[index.into()] {
            TransportSettings::Phost(settings) => settings,
            _ => unreachable!("a flow of another transport came to pHost"),
        }
    }

    /// Those of a flow or packet that runs over pFabric.
    #[inline(always)]
    pub fn pfabric(&self, index: impl Into<usize>) -> &PfabricSettings {
        match &self.transports[index.into()] {
            TransportSettings::Pfabric(settings) => settings,
            _ => unreachable!("a flow of another transport came to pFabric"),
        }
    }

    /// Those of a flow or packet that runs over Fastpass.
    #[inline(always)]
    pub fn fastpass(&self, index: impl Into<usize>) -> &FastpassSettings {
        match &self.transports[index.into()] {
            TransportSettings::Fastpass(settings) => settings,
            _ => unreachable!("a flow of another transport came to Fastpass"),
        }
    }

    /// Those of a flow or packet that runs over TCP.
    #[inline(always)]
    pub fn tcp(&self, index: impl Into<usize>) -> &TcpSettings {
        match &self.transports[index.into()] {
            TransportSettings::Tcp(settings) => settings,
            _ => unreachable!("a flow of another transport came to TCP"),
        }
    }

    /// Those of a flow or packet that runs over multipath TCP.
    #[inline(always)]
    pub fn mptcp(&self, index: impl Into<usize>) -> &MptcpSettings {
        match &self.transports[index.into()] {
            TransportSettings::Mptcp(settings) => settings,
            _ => unreachable!("a flow of another transport came to multipath TCP"),
        }
    }

    /// The longest base RTT that any transport reckons with.
    pub fn longest_base_rtt(&self) -> Time {
        let of = |transport: &TransportSettings| match transport {
            TransportSettings::Rdma(rdma) => rdma.base_rtt,
            TransportSettings::Phost(phost) => phost.base_rtt,
            TransportSettings::Pfabric(pfabric) => pfabric.base_rtt,
            TransportSettings::Fastpass(fastpass) => fastpass.base_rtt,
            TransportSettings::Tcp(tcp) => tcp.base_rtt,
            TransportSettings::Mptcp(mptcp) => mptcp.base_rtt,
        };
        self.transports.iter().map(of).max().unwrap_or(Time::ZERO)
    }
}

/// Bytes of telemetry in the data packets of a transport that makes no use of it, which hosts put in at their edge; 0 for RDMA, which
/// carries its own ([`telemetry_bytes`]).
pub fn telemetry_at_edge(transport: &TransportConfig, telemetry: &TelemetryConfig) -> u32 {
    match telemetry {
        _ if transport.rdma().is_some() => 0,
        TelemetryConfig::Int { max_hops, all: true, .. } => int_bytes(*max_hops),
        TelemetryConfig::Pint(pint) => pint.wire_bytes,
        _ => 0,
    }
}

/// A transport whose headers of data packets have room for what is put in at the edge.
pub fn with_telemetry(transport: &TransportConfig, telemetry: &TelemetryConfig) -> TransportConfig {
    let bytes = telemetry_at_edge(transport, telemetry);
    let mut transport = transport.clone();
    match &mut transport {
        TransportConfig::Rdma(_) => {}
        TransportConfig::Phost(phost) => phost.header += bytes,
        TransportConfig::Pfabric(pfabric) => pfabric.header += bytes,
        TransportConfig::Fastpass(fastpass) => fastpass.header += bytes,
        TransportConfig::Tcp(tcp) => tcp.header += bytes,
        TransportConfig::Mptcp(mptcp) => mptcp.tcp.header += bytes,
    }
    transport
}

/// Bytes of INT with room for so many records.
fn int_bytes(max_hops: u32) -> u32 {
    max_hops * IntRecord::WIRE_BYTES + IntRecord::COUNT_BYTES
}

/// Bytes of telemetry in a data packet: INT where it is read or asked for, PINT's digest, and the time stamp of TIMELY.
pub fn telemetry_bytes(rdma: &RdmaConfig, telemetry: &TelemetryConfig) -> u32 {
    let needs = rdma.controller.needs();
    let int = match telemetry {
        TelemetryConfig::Int { max_hops, all, .. } if *all || needs.int => int_bytes(*max_hops),
        TelemetryConfig::Pint(pint) => pint.wire_bytes,
        _ => 0,
    };
    int + if needs.timestamp { TIMESTAMP_BYTES } else { 0 }
}
