//! Load balancers: which of the equally good ports a packet leaves by. One file each.
//!
//! A new one is a file here (`DOC`, parameters with [`BalancerParameters`], state with [`LoadBalancer`],
//! tests), a `pub mod` and a line in [`registry!`]. Most only choose. One that does more asks for [`Events`]
//! of its switch and acts through what these bring along; it may send probes, set a timer, carry a word in
//! every packet between switches, and work at hosts.

pub mod adaptive;
pub mod best_hops;
pub mod clove;
pub mod conga;
mod connections;
pub mod conweave;
pub mod counted;
pub mod destination;
mod dre;
pub mod drill;
pub mod ecmp;
pub mod estimator;
pub mod external;
pub mod fabric;
pub mod flowlets;
pub mod hula;
mod keys;
pub mod label;
pub mod letflow;
pub mod mp_hula;
mod network_view;
pub mod presto;
mod round_robin;
#[cfg(test)]
mod situation;
pub mod spray;
mod steering;
pub mod subflows;

use crate::counters::CounterSet;
use crate::doc::SchemeDoc;
use crate::engine::random::mix64;
use crate::packet::{Packet, PacketId};
use crate::parameters::Parameters;
use crate::topology::{NextHops, Routes};
use crate::units::{Rate, Time};
use std::cell::Cell;
use std::sync::Arc;

pub use fabric::{Fabric, Neighbour, Side};
pub use flowlets::FlowletParameters;
pub use network_view::NetworkView;

/// The parameters of a balancer: read from a scenario once, then used to start the state of every switch. The
/// default of each method is that of a balancer that serves all networks and needs no events.
pub trait BalancerParameters: Sized {
    const DOC: SchemeDoc;
    /// At a switch, or at a host: with [`LoadBalancer`].
    type State;
    fn read(p: &mut Parameters) -> Self;
    /// The balancer of one switch.
    fn start(&self, at: &Place) -> Self::State;
    /// What it does to the order of a flow's packets.
    fn order(&self) -> Reorders;

    fn name(&self) -> &str {
        Self::DOC.name
    }
    fn facts(&self) -> BalancerFacts {
        BalancerFacts::default()
    }
    /// Why it cannot serve a network: keys of its own, each with what is wrong.
    fn problems(&self, _network: &NetworkView) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// What it does not do well on a network that it can serve.
    fn warning(&self, _network: &NetworkView) -> Option<String> {
        None
    }
    /// What it does at a host, by number; none: nothing.
    fn at_host(&self, _seed: u64, _host: u32) -> Option<Self::State> {
        None
    }
    /// What a packet that carries this word has on the wire for it, on a link between two switches or another
    /// one.
    fn tag(&self, _word: u64, _between_switches: bool) -> Option<Tag> {
        None
    }
    /// A probe on the wire.
    fn probe_tag(&self, _probe: &Packet) -> Option<Tag> {
        None
    }
}

/// What others ask about a balancer without knowing which it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct BalancerFacts {
    /// It tells flows apart by the hash of their packets, so it cannot balance senders that give every packet
    /// another hash.
    pub goes_by_flow: bool,
    /// Where the HPCC authors' hash is to be used, it hashes ports, which packets then carry in place of a
    /// hash of the flow.
    pub hashes_ports: bool,
    /// The sender chooses the path of a packet by the packet's label.
    pub follows_labels: bool,
    /// It gets [`Place::tor`], [`Place::neighbours`] and [`Place::fabric`]: switches with hosts, and where
    /// ports lead.
    pub knows_fabric: bool,
    /// It holds packets at switches for a time that does not mean congestion.
    pub holds_packets: bool,
    /// Maximum number of subflows of a connection that it tells apart; none: it does not look at subflows.
    pub distinguishable_subflows: Option<u32>,
    /// Every switch with hosts sends a probe to all others this often, traffic or not: the key that sets this
    /// interval, and its value.
    pub probes: Option<(&'static str, Time)>,
    /// Switches pass on every probe that they receive, also where others of the same round have come before.
    pub copies_probes: bool,
    /// Class and bytes of its probes, which pass from switch to switch.
    pub probe_packet: Option<(u8, u16)>,
    /// It chooses by what is in the packet, whatever passed before and whenever.
    pub repeats: bool,
    /// How packets divide among next hops; none: by what happens there.
    pub shares: Option<Shares>,
    /// Bytes that a switch has for each switch with hosts.
    pub rack_bytes: u64,
    /// Bytes that a switch with hosts has for each other one with which its hosts exchange packets.
    pub leaf_bytes: u64,
}

/// How packets divide among next hops, however busy these are.
#[derive(Debug, Clone, Copy)]
pub enum Shares {
    /// All next hops get the same number.
    Equal,
    /// All to a host take the same one, by its number, the ways below the switch ([`Place::ways_below`]) and
    /// the number of next hops.
    ByDestination(fn(u32, u32, usize) -> usize),
}

registry! {
    /// How switches choose among paths, resolved.
    BalancerConfig: BalancerParameters =>
    /// The balancer of a switch, or its part at a host.
    Balancer {
        Ecmp = ecmp::EcmpParameters;
        Destination = destination::DestinationParameters;
        Label = label::LabelParameters;
        Spray = spray::SprayParameters;
        LetFlow = letflow::LetFlowParameters;
        Drill = drill::DrillParameters;
        Adaptive = adaptive::AdaptiveParameters;
        Presto = presto::PrestoParameters;
        Conga = conga::CongaParameters;
        ConWeave = conweave::ConWeaveParameters;
        Clove = clove::CloveParameters;
        Hula = hula::HulaParameters;
        MpHula = mp_hula::MpHulaParameters;
    } + External = external::ExternalBalancer => external::External
}

/// The default balancer.
pub const DEFAULT: &str = ecmp::EcmpParameters::DOC.name;
/// The one that follows the labels of packets.
pub const BY_LABEL: &str = label::LabelParameters::DOC.name;

// It is stored in every switch, next to the fields that each packet reads there.
const _: () = assert!(std::mem::size_of::<Balancer>() <= 40);

impl Default for BalancerConfig {
    fn default() -> BalancerConfig {
        BalancerConfig::Ecmp(ecmp::EcmpParameters { salt: 0 })
    }
}

/// The properties of each balancer: see [`BalancerParameters`].
impl BalancerConfig {
    pub fn name(&self) -> &str {
        each_kind!(self, b => b.name())
    }
    /// The balancer of one switch.
    pub fn start(&self, at: &Place) -> Balancer {
        start_kind!(self, b => b.start(at))
    }
    pub fn order(&self) -> Reorders {
        each_kind!(self, b => b.order())
    }
    /// Packets with one label take one path while routes stay.
    pub fn keeps_flows_on_paths(&self) -> bool {
        self.order() == Reorders::Never
    }
    pub fn facts(&self) -> BalancerFacts {
        each_kind!(self, b => b.facts())
    }
    /// Packets of a flow take all shortest paths in turn. `labelled`: each of them has a label of its own.
    pub fn spreads_flows(&self, labelled: bool) -> bool {
        let by_destination = matches!(self.facts().shares, Some(Shares::ByDestination(_)));
        !by_destination && (labelled || self.order() == Reorders::Packets)
    }
    pub fn problems(&self, network: &NetworkView) -> Vec<(&'static str, String)> {
        each_kind!(self, b => b.problems(network))
    }
    pub fn warning(&self, network: &NetworkView) -> Option<String> {
        each_kind!(self, b => b.warning(network))
    }
    /// What it does at a host, by number; none: nothing.
    pub fn at_host(&self, seed: u64, host: u32) -> Option<Balancer> {
        Some(start_kind!(self, b => b.at_host(seed, host)?))
    }
    pub fn tag(&self, word: u64, between_switches: bool) -> Option<Tag> {
        each_kind!(self, b => b.tag(word, between_switches))
    }
    pub fn probe_tag(&self, probe: &Packet) -> Option<Tag> {
        each_kind!(self, b => b.probe_tag(probe))
    }
}

/// A balancer at work. What it does not do has a default, which does nothing.
pub trait LoadBalancer {
    /// An index into `candidates`, of which there are at least two.
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize;

    /// The events that it needs; read once.
    fn events(&self) -> Events {
        Events::NONE
    }
    /// A packet has come in, and its port is not chosen yet. `word`: what it carries between its first and
    /// its last switch for balancers. By how many bytes it grows, or shrinks.
    fn on_arrival(&mut self, _arrival: &Arrival, _word: &mut u64) -> i32 {
        0
    }
    /// The same once the port is chosen by which it leaves.
    fn on_forward(&mut self, _forward: &Forward, _word: &mut u64) -> i32 {
        0
    }
    /// A packet whose port is chosen: returned, it is forwarded; else the switch holds it until
    /// [`SwitchContext::release`].
    fn holds(
        &mut self,
        _forward: &Forward,
        packet: Held,
        _word: u64,
        _cx: &mut impl SwitchContext,
    ) -> Option<Held> {
        Some(packet)
    }
    /// A packet begins to leave.
    fn on_departure(&mut self, _departure: &Departure, _word: &mut u64) {}
    /// A probe has come in by a port.
    fn on_probe(&mut self, _probe: &Packet, _port: u32, _cx: &mut impl SwitchContext) {}
    /// When its timer expires first; none: it uses no timer.
    fn first_timer(&self) -> Option<Time> {
        None
    }
    /// Its timer has expired: returns when it expires next.
    fn on_timer(&mut self, _cx: &mut impl SwitchContext) -> Option<Time> {
        None
    }

    /// At a host: a packet leaves for the network. The word that it takes along.
    fn on_send(&mut self, _packet: &mut Packet, _at: &HostPort<impl Wiring>) -> u64 {
        0
    }
    /// At a host: a packet has come, with what it took along.
    fn on_receive(&mut self, _packet: &mut Packet, _word: u64, _at: &HostPort<impl Wiring>) {}

    /// Adds what it has counted until now.
    fn count(&mut self, _now: Time, _counters: &mut CounterSet) {}
}

impl Balancer {
    /// As [`LoadBalancer::choose`], if this is the balancer of most switches, which looks at no port.
    #[inline(always)]
    pub fn choose_by_hash(&self, packet: &Packet, candidates: &[u32]) -> Option<usize> {
        match self {
            Balancer::Ecmp(ecmp) => Some(ecmp.way_of(packet, candidates)),
            _ => None,
        }
    }
}

impl LoadBalancer for Balancer {
    #[inline(never)]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        each_state!(self, b => b.choose(packet, candidates, ports))
    }
    fn events(&self) -> Events {
        each_state!(self, b => b.events())
    }
    fn on_arrival(&mut self, arrival: &Arrival, word: &mut u64) -> i32 {
        each_state!(self, b => b.on_arrival(arrival, word))
    }
    fn on_forward(&mut self, forward: &Forward, word: &mut u64) -> i32 {
        each_state!(self, b => b.on_forward(forward, word))
    }
    fn holds(
        &mut self,
        forward: &Forward,
        packet: Held,
        word: u64,
        cx: &mut impl SwitchContext,
    ) -> Option<Held> {
        each_state!(self, b => b.holds(forward, packet, word, cx))
    }
    #[inline(never)]
    fn on_departure(&mut self, departure: &Departure, word: &mut u64) {
        each_state!(self, b => b.on_departure(departure, word))
    }
    fn on_probe(&mut self, probe: &Packet, port: u32, cx: &mut impl SwitchContext) {
        each_state!(self, b => b.on_probe(probe, port, cx))
    }
    fn first_timer(&self) -> Option<Time> {
        each_state!(self, b => b.first_timer())
    }
    fn on_timer(&mut self, cx: &mut impl SwitchContext) -> Option<Time> {
        each_state!(self, b => b.on_timer(cx))
    }
    fn on_send(&mut self, packet: &mut Packet, at: &HostPort<impl Wiring>) -> u64 {
        each_state!(self, b => b.on_send(packet, at))
    }
    fn on_receive(&mut self, packet: &mut Packet, word: u64, at: &HostPort<impl Wiring>) {
        each_state!(self, b => b.on_receive(packet, word, at))
    }
    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        each_state!(self, b => b.count(now, counters))
    }
}

/// Whether packets of one flow may take several paths, and so overtake each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reorders {
    /// A flow keeps to its path, unless its sender gives every packet a label of its own.
    Never,
    /// Only after a pause longer than this.
    AfterPauses(Time),
    /// From one block of packets to the next, without a pause between them.
    Blocks,
    /// From one packet to the next, which keeps the queues of all paths alike.
    Packets,
}

/// The events that a balancer needs, as bits: a switch whose balancer needs none makes one test per packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Events(u8);

impl Events {
    pub const NONE: Events = Events(0);
    /// [`LoadBalancer::on_arrival`] for every packet.
    pub const ARRIVALS: Events = Events(1);
    /// [`LoadBalancer::on_forward`] for every packet.
    pub const FORWARDS: Events = Events(2);
    /// [`LoadBalancer::on_departure`] for every packet.
    pub const DEPARTURES: Events = Events(4);
    /// The same for packets that leave for another switch. It may be called for packets to hosts too, and
    /// must ignore them.
    pub const FABRIC_DEPARTURES: Events = Events(8);
    /// Packets carry a word for it, which the others may change.
    pub const WORDS: Events = Events(16);
    /// [`LoadBalancer::holds`] for every packet.
    pub const HOLDS: Events = Events(32);

    pub const fn and(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }
    /// Whether it has one of these.
    pub const fn has(self, any: Events) -> bool {
        self.0 & any.0 != 0
    }
}

/// What a balancer may read of its switch, and the time. Values that it does not read cost nothing.
pub trait Ports {
    fn now(&self) -> Time;
    /// Bytes that a packet would wait for at a port: those queued, and the rest of the packet in
    /// transmission.
    fn backlog(&self, port: u32) -> u64;
    fn rate(&self, port: u32) -> Rate;
    /// The word that the packet carries between switches ([`Events::WORDS`]).
    fn word(&self) -> u64 {
        0
    }
    /// The first byte of its flow that a data packet carries.
    fn first_byte(&self, packet: &Packet) -> u64 {
        packet.seq
    }
    /// The ports of a node, here or elsewhere, that are on a shortest path to a host.
    fn hops(&self, _node: u32, _host: u32) -> NextHops<'_> {
        NextHops::None
    }
}

/// What a balancer may do with its switch when a probe or its timer comes.
pub trait SwitchContext: Ports {
    fn is_up(&self, port: u32) -> bool;
    /// Whether a port is on a shortest path to a host.
    fn leads_to(&self, port: u32, host: u32) -> bool;
    /// Whether a neighbour has this switch on a shortest path to a host.
    fn leads_here(&self, neighbour: &Neighbour, host: u32) -> bool;
    /// Sends a probe by a port, once the balancer has returned. It says its size and class (0: before all
    /// others) and what `src`, `aux`, `seq` and `sent` are to bring; the rest is filled in.
    fn send(&mut self, port: u32, probe: Packet);
    /// Sends a packet on that was held, once the balancer has returned, in the order of these calls.
    fn release(&mut self, packet: Held);
    /// Asks for [`LoadBalancer::on_timer`] at a time.
    fn wake(&mut self, at: Time);
}

/// A packet that a balancer may hold at its switch. It counts to no buffer meanwhile. No port counts the loss of one that is
/// dropped in place of released, which is an error of a balancer of another crate.
#[derive(Debug, PartialEq, Eq)]
pub struct Held(pub(crate) PacketId);

thread_local! {
    /// How many were dropped on this thread since [`Held::forget_dropped`].
    static DROPPED: Cell<u64> = const { Cell::new(0) };
}

impl Held {
    /// The packet, which is not held any more.
    pub(crate) fn into_id(self) -> PacketId {
        let id = self.0;
        std::mem::forget(self);
        id
    }

    fn forget_dropped() {
        DROPPED.set(0);
    }

    /// Number of those that were dropped since then.
    fn dropped() -> u64 {
        DROPPED.get()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
    }
}

/// A packet that has come in by a port.
#[derive(Clone, Copy)]
pub struct Arrival<'a> {
    pub packet: &'a Packet,
    pub port: u32,
    /// Options of a control packet, such as those of a handshake.
    pub options: Option<[u32; 6]>,
    pub now: Time,
}

/// A packet that goes from one port to another.
#[derive(Clone, Copy)]
pub struct Forward<'a> {
    pub packet: &'a Packet,
    pub from: u32,
    pub to: u32,
    pub now: Time,
}

/// A packet that leaves by a port of a rate.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    pub port: u32,
    pub bytes: u32,
    pub rate: Rate,
    pub now: Time,
}

/// The port of a host that a packet leaves by, or goes back by what answers it.
pub struct HostPort<'a, W> {
    pub node: u32,
    pub port: u32,
    pub wiring: &'a W,
    pub now: Time,
}

/// The network as its control plane knows it.
pub trait Wiring {
    fn routes(&self) -> &Routes;
    /// Another one for other routes.
    fn version(&self) -> u32;
    /// The node that a port of a node leads to.
    fn peer(&self, node: u32, port: u32) -> u32;
}

/// What a packet has on the wire for a balancer: a number that no other has, and nine bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    pub kind: u8,
    pub first: u8,
    pub rest: [u8; 8],
}

/// The switch that a balancer works in.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Of the run.
    pub seed: u64,
    pub node: u32,
    pub name: &'a str,
    /// As the topology counts: 1 next to the hosts.
    pub tier: u8,
    /// The number of ways from which the switches below choose one ([`crate::topology::ways_below`]).
    pub ways_below: u32,
    /// Its number among the switches with hosts, if it has some.
    pub tor: Option<u32>,
    /// By port. Empty, as the fabric is, for balancers that do not ask for it
    /// ([`BalancerFacts::knows_fabric`]).
    pub neighbours: &'a [Neighbour],
    pub fabric: &'a Arc<Fabric>,
    /// Bytes on the wire of the largest data packet of the run.
    pub largest_packet: u64,
    /// Flows of the run may have subflows.
    pub subflows: bool,
    /// ECMP's hash is that of the HPCC authors' simulator.
    pub murmur: bool,
    /// Those that move flows are to hash all but data.
    pub only_data: bool,
    /// They follow their released code where it differs from their paper.
    pub released: bool,
}

/// A packet's hash, mixed again at each switch.
#[inline]
pub fn salted(hash: u32, salt: u64) -> u32 {
    (mix64(u64::from(hash) ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32) as u32
}

/// How several of them were checked.
const AGAINST_A_FAILED_LINK: &str = "With a link down, ECMP, LetFlow, CONGA and HULA order as their papers report (tests/balancing.rs); page: docs/schemes/load-balancing.md.";
