//! What a transport declares: its keys, what others must know of it, and how it starts at a host.

use super::TransportConfig;
use super::controllers::Controllers;
use super::switches::SwitchDefaults;
use super::wire_format::WireFormat;
use crate::compat::Rules;
use crate::congestion::{ControllerConfig, ExternalController};
use crate::doc::SchemeDoc;
use crate::net::switch::SwitchConfig;
use crate::parameters::{Names, Parameters, Value};
use crate::queue::QueueConfig;
use crate::telemetry::TelemetryConfig;
use crate::topology::{Routes, Topology, max_base_rtt};
use crate::units::{Rate, Time};

/// A transport by its parameters: a folder of this room, and a line in its registry. What is not said has a default that
/// suits a plain transport, whose packets keep to one path and carry nothing for others.
pub trait TransportParameters: Sized {
    const DOC: SchemeDoc;
    /// Which controllers its flows may have.
    const CONTROLLERS: Controllers = Controllers::None;
    /// The simulator that `[compat] like = "hpcc-ns3"` repeats has it.
    const HAS_COMPAT: bool = false;
    /// Its data carry telemetry of themselves; hosts put it into those of others at their edge.
    const CARRIES_TELEMETRY: bool = false;
    /// Named choices among its keys' values that `weftline explain` knows: what they are, and their names.
    const CHOICES: &'static [(&'static str, Names)] = &[];
    /// The transport at one host, perhaps in a box.
    type State;

    /// Reads its keys. None: its controller is unknown, and said.
    fn read(p: &mut Parameters, cx: &ReadContext) -> Option<Self>;
    /// These parameters, if they are of this transport.
    fn of(transport: &TransportConfig) -> Option<&Self>;

    /// How it cuts flows into packets, without telemetry that is put in at the edge of hosts.
    fn framing(&self, telemetry: &TelemetryConfig) -> Framing;
    /// Bytes of header of a data packet.
    fn data_header(&mut self) -> &mut u32;
    /// The largest base RTT, as it reckons with it.
    fn base_rtt(&self, run: &RunContext) -> Time;
    fn facts(&self) -> Facts<'_> {
        Facts::default()
    }

    /// How switches were set where it was published.
    fn switch_defaults(&self) -> SwitchDefaults {
        SwitchDefaults::LOSSY
    }
    /// The queue of hosts' NICs, if the transport counts on one.
    fn nic_queue(&self) -> Option<QueueConfig> {
        None
    }
    /// Why one run cannot have these parameters and the other ones.
    fn clash(&self, _other: &Self) -> Option<String> {
        None
    }
    /// What it cannot run with: keys of `[switch]`, each with what is wrong about it.
    fn refusals(&self, _run: &RunContext) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// What deserves a look before results are trusted.
    fn warning(&self, _run: &RunContext) -> Option<String> {
        None
    }

    /// Bytes that a flow may have in flight at full rate, if the parameters say that.
    fn window(&self, _run: &RunContext) -> Option<u64> {
        None
    }
    /// What `weftline check` prints of it, beside its name; none is null.
    fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)>;

    /// The format of its packets in captures.
    fn wire_format(&self) -> WireFormat<'_> {
        WireFormat::Plain
    }
    /// Works out what all hosts share and what follows from the network, before the run starts.
    fn settle(&mut self, _run: &RunContext) {}
    /// The transport at a host.
    fn start(&self, host: &HostPlan) -> Self::State;
}

/// What the other sections of a scenario decide about a transport's keys.
pub struct ReadContext<'a> {
    pub rules: Rules,
    /// Largest base RTT for packets of this payload.
    pub base_rtt: &'a dyn Fn(u32) -> Time,
    /// The highest rate of a host's link.
    pub host_rate: Rate,
    /// None: it is wrong, and that has been said; or keys are only listed.
    pub topology: Option<&'a Topology>,
    /// How long queues may hold a packet before it counts as lost.
    pub patience: Time,
    /// The time in which the slowest link empties a switch's buffer.
    pub drain: Time,
    /// Controllers from outside this crate, by name.
    pub controllers: &'a [ExternalController],
}

impl ReadContext<'static> {
    /// For the list of keys: defaults that follow from the network are those on the network of the pHost paper, for which they are
    /// published (pHost, CoNEXT 2015, §4: hosts at 10 Gb/s, 4.52 us there and back).
    pub fn listing() -> ReadContext<'static> {
        ReadContext {
            topology: None,
            rules: Rules::none(),
            base_rtt: &|_| Time::from_ns(4520),
            host_rate: Rate::from_gbps(10),
            patience: Time::ZERO,
            drain: Time::ZERO,
            controllers: &[],
        }
    }
}

/// The run that a transport is part of, once all is read.
pub struct RunContext<'a> {
    pub rules: &'a Rules,
    pub topology: &'a Topology,
    pub routes: &'a Routes,
    pub switch: &'a SwitchConfig,
    pub telemetry: &'a TelemetryConfig,
}

impl RunContext<'_> {
    /// The largest base RTT of all host pairs, and the largest bandwidth-delay product in bytes.
    pub fn base_rtt(&self, payload: u32) -> (Time, u64) {
        max_base_rtt(self.topology, self.routes, u64::from(payload), self.rules.whole_ns_base_rtt)
    }
}

/// The host that a transport starts at.
pub struct HostPlan<'a> {
    pub host: u32,
    pub ports: usize,
    pub seed: u64,
    pub topology: &'a Topology,
    pub routes: &'a Routes,
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
    /// Bytes on the wire of a data packet with this payload.
    pub fn data_bytes(&self, payload: u64) -> u64 {
        payload + self.header
    }
}

/// What others must know of a transport with these parameters.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Flows may follow each other over one of its connections, which stays open. The other transports know no connections: each
    /// flow is on its own, though those of one connection still start in order.
    pub keeps_connections: bool,
    /// Every packet with a choice of paths has a label of its own.
    pub labels_packets: bool,
    /// The packets of a flow have different labels, and may take different paths.
    pub spreads_flows: bool,
    /// Subflows by which a flow leaves, which know no common order of its packets; none: it has none.
    pub subflows: Option<u8>,
    /// It counts packets and takes them in any order.
    pub any_order: bool,
    pub overtaken: Overtaken,
    /// Why a dropped packet costs much more than itself, and what to set instead: it is made for a network that drops none.
    pub wants_lossless: Option<(&'static str, &'static str)>,
    /// The controller, where it steers the rate of a NIC.
    pub controller: Option<&'a ControllerConfig>,
    /// The controller that steers by marks of switches, if it does.
    pub marked_controller: Option<&'a str>,
    /// The longest time between two attempts to send the same again.
    pub longest_timeout: Time,
    /// A timer that outlives its flow.
    pub timer_left: Time,
    /// Memory of a connection that stays open: its two ends, their entries in tables, and what its window has taken up.
    pub connection_bytes: u64,
    /// CPU time of a packet-hop, in ns, where everything fits the caches.
    pub ns_per_hop: f64,
}

impl Default for Facts<'_> {
    fn default() -> Self {
        Facts {
            keeps_connections: false,
            labels_packets: false,
            spreads_flows: false,
            subflows: None,
            any_order: false,
            overtaken: Overtaken::Nothing,
            wants_lossless: None,
            controller: None,
            marked_controller: None,
            longest_timeout: Time::ZERO,
            timer_left: Time::ZERO,
            connection_bytes: super::tcp::CONNECTION_BYTES,
            ns_per_hop: 100.0,
        }
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
