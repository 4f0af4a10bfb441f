//! Transports: what hosts do to get flows across. One folder or file each, and the interface that they share.
//!
//! A NIC *pulls*: when its port can send and no control packet waits, it asks the host's transports for the next
//! packet. A transport reacts to flows that start, packets that arrive and timers; it reaches the network only through
//! [`HostContext`].

mod arrived;
pub mod fastpass;
pub mod messages;
pub mod mptcp;
mod nic;
pub mod pfabric;
pub mod phost;
mod policy;
mod rate_sample;
pub mod rdma;
pub mod silence;
pub mod tcp;

use crate::counters::{CounterGroup, CounterSet};
use crate::engine::prefetch::prefetch_lines;
use crate::measure::FlowRecord;
use crate::net::PortId;
use crate::net::agenda::Action;
use crate::net::map::Map;
use crate::net::partition::Partition;
use crate::packet::{Packet, PacketId};
use crate::settings::Settings;
use crate::topology::{NextHops, Row};
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};

/// What a transport sees of its host and the network.
pub struct HostContext<'a> {
    pub net: &'a mut Partition,
    pub settings: &'a Settings,
    pub map: &'a Map,
    /// Flows that ended at this host, for those that wait for them.
    pub ended: &'a mut Vec<Ended>,
    pub host: u32,
    /// Its place among the hosts of its partition.
    pub index: u32,
    pub node: u32,
    pub first_port: PortId,
    /// Where its next hops are looked up, and those of the switch behind its first port.
    pub rows: [Row; 2],
    /// The transport's own number at its host.
    pub transport: u8,
}

/// A flow ended, as one of its two hosts knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub flow: FlowId,
    pub host: u32,
    /// The receiver has every byte; otherwise the sender has every acknowledgement.
    pub at_receiver: bool,
}

impl HostContext<'_> {
    pub fn now(&self) -> Time {
        self.net.now
    }

    /// Sets a timer; `token` comes back to the transport. Timers cannot be taken back: the transport ignores stale ones.
    pub fn set_timer(&mut self, at: Time, token: u32) {
        let action = Action::Timer { host: self.index, token, transport: self.transport };
        self.net.schedule(self.index, at, action);
    }

    /// Sets the wake-up of a NIC for paced packets; `serial` comes back.
    #[inline(never)]
    pub fn set_wake(&mut self, at: Time, port: PortId, serial: u32) {
        let action = Action::Wake { port, serial, transport: self.transport };
        self.net.schedule(self.index, at, action);
    }

    /// The port by which packets to `dst` with this hash leave the host.
    #[inline]
    pub fn port_to(&self, dst: u32, hash: u32) -> Option<PortId> {
        if dst == self.host {
            return None;
        }
        match self.map.routes.hops_from(self.rows[0], dst) {
            NextHops::None => None,
            NextHops::One(port) => Some(self.first_port + port),
            NextHops::Many(ports) => Some(self.first_port + ports[hash as usize % ports.len()]),
        }
    }

    /// What a packet to `dst` by a port is labelled with, if every packet is to take a path of its own: balancers choose by
    /// it. Labels count up, from `label` on, where the switch behind the port has a choice.
    #[inline]
    pub fn next_label(&self, dst: u32, port: PortId, label: &mut u32) -> u32 {
        let row = if port == self.first_port {
            self.rows[1]
        } else {
            self.map.row_behind(self.node, port - self.first_port)
        };
        if matches!(self.map.routes.hops_from(row, dst), NextHops::Many(_)) {
            *label = label.wrapping_add(1);
        }
        *label
    }

    /// Puts a control packet (acknowledgement) into the queue of a port; it precedes data.
    pub fn enqueue_control(&mut self, port: PortId, id: PacketId) {
        use crate::queue::{QueueDiscipline, Verdict};
        let queue = &mut self.net.ports[port as usize].queue;
        if let Verdict::Dropped(dropped) = queue.enqueue(id, &mut self.net.packets, self.net.now) {
            self.net.drop_packet(port, dropped);
        }
    }

    pub fn record(&mut self, record: FlowRecord) {
        self.net.recorder.flow(record);
    }

    /// A retransmission timeout of a flow of this group has expired.
    #[cold]
    pub fn timed_out(&mut self, group: u16) {
        self.net.recorder.count(group, |losses| &mut losses.timeouts);
    }

    /// Data have come of which the receiver has every byte already.
    #[cold]
    pub fn came_again(&mut self, packet: &Packet) {
        self.net.recorder.count(packet.group, |losses| &mut losses.retransmitted_spurious);
    }

    /// Data have come that the receiver does not keep, though it has not got them.
    #[cold]
    pub fn refused(&mut self, packet: &Packet) {
        self.net.recorder.count(packet.group, |losses| &mut losses.data_refused);
    }

    /// A packet was sent again that counts for no flow, as all of its connection's have been acknowledged.
    #[cold]
    pub fn sent_for_no_flow(&mut self, group: u16) {
        let losses = &mut self.net.recorder.losses[usize::from(group)];
        losses.data_sent = losses.data_sent.wrapping_add(1);
        losses.retransmitted += 1;
    }

    /// Packets of a flow of this group that count as sent never left: their connection ended before the NIC took them.
    pub fn never_left(&mut self, group: u16, packets: usize) {
        let losses = &mut self.net.recorder.losses[usize::from(group)];
        losses.data_sent = losses.data_sent.wrapping_sub(packets as u64);
    }
}

/// When a NIC is to be looked at for the next packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Nothing would be sent, or a wake-up is on its way already.
    NoMore,
    WhenFree,
    /// A wake-up with this serial number is to be set.
    Wake {
        at: Time,
        serial: u32,
    },
}

/// Internals of one flow, for those who watch it.
#[derive(Debug, Clone, Default)]
pub struct FlowView {
    /// None where nothing sets a rate.
    pub rate_bps: Option<f64>,
    /// Bytes allowed in flight; none without a window.
    pub cwnd_bytes: Option<f64>,
    pub internals: Vec<(&'static str, f64)>,
}

/// A transport at one host.
pub trait Transport {
    /// A flow starts here. The port that it leaves by may have something to send now.
    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId>;
    /// A packet of this transport has arrived; the port that may have something to send because of it.
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId>;
    /// The port is free: the next packet to send by it. If none is due, sets a wake-up for when one is.
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId>;
    /// The NIC (by number at its host) will be free at `free`, classes in `paused` held back: when it is to be looked at
    /// for the next packet of this transport, if nothing else happens before.
    fn next_look(&mut self, nic: usize, paused: u8, free: Time) -> Look;
    /// A timer set with this token has come; the port that may have something to send because of it.
    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId>;
    /// A wake-up of a NIC; whether it is the one in force.
    fn on_wake(&mut self, port: PortId, serial: u32, cx: &HostContext) -> bool;
    /// Routes have changed, or a link of the host's own is back; the port that may have something to send because of it.
    fn on_network_change(&mut self, _cx: &mut HostContext) -> Option<PortId> {
        None
    }
    /// No packet of this flow, which was received here, can come any more: nothing needs to be remembered of it.
    fn forget(&mut self, flow: FlowId);
    /// The run ends: what has not finished is recorded so.
    fn finish(&mut self, cx: &mut HostContext);
    /// Internals of a flow that is sent from here.
    fn view(&self, flow: FlowId) -> Option<FlowView>;
    /// Adds what it has counted until now.
    fn count(&mut self, _now: Time, _counters: &mut CounterSet) {}
}

/// What transports count.
pub const COUNTERS: &[&CounterGroup] = &[];

/// A transport's state at one host; one line per kind.
pub enum TransportState {
    Rdma(rdma::Rdma),
    Phost(Box<phost::Phost>),
    Pfabric(Box<pfabric::Pfabric>),
    Fastpass(Box<fastpass::Fastpass>),
    Tcp(Box<tcp::Tcp>),
    Mptcp(Box<mptcp::Mptcp>),
}

/// Where a transport was published; none where its settings have a source of their own.
pub fn source(kind: &str) -> Option<&'static str> {
    match kind {
        "phost" => Some(
            "Gao et al., \"pHost: Distributed Near-Optimal Datacenter Transport Over Commodity Network Fabric\", CoNEXT 2015, \
             and its authors' simulator",
        ),
        "pfabric" => Some(
            "Alizadeh et al., \"pFabric: Minimal Near-Optimal Datacenter Transport\", SIGCOMM 2013, as in the simulator of \
             the pHost authors",
        ),
        "fastpass" => Some(
            "Perry et al., \"Fastpass: A Centralized Zero-Queue Datacenter Network\", SIGCOMM 2014, as in the simulator of \
             the pHost authors",
        ),
        "tcp" => Some(
            "RFC 9293, with RFC 5681, 6298, 6582, 6675, 6937, 7323 and 3168; profile \"ns3-3.35\": the models behind the \
             results of Cebinae (SIGCOMM 2022)",
        ),
        "mptcp" => Some(
            "RFC 8684 and RFC 6824, with RFC 6356; Raiciu et al., \"How hard can it be? Designing and implementing a deployable \
             multipath TCP\", NSDI 2012; subflows as under \"tcp\"",
        ),
        _ => None,
    }
}

/// Names that a scenario may use, with what they are.
pub const KINDS: &[(&str, &str)] = &[
    (
        "rdma",
        "queue pairs over a lossless or lossy fabric: go-back-N or selective repeat, paced and windowed",
    ),
    (
        "phost",
        "tokens from the destination, packets over all paths, priorities and small buffers (CoNEXT 2015)",
    ),
    (
        "pfabric",
        "line rate from the start, queues that serve and keep the flows with the least left (SIGCOMM 2013)",
    ),
    ("fastpass", "a central arbiter gives every packet its timeslot (SIGCOMM 2014, as compared with pHost)"),
    (
        "tcp",
        "a byte stream with a handshake, windows, SACK and timeouts, under NewReno, Cubic, Vegas and others",
    ),
    (
        "mptcp",
        "a byte stream over several TCP subflows, coupled (LIA, OLIA, BALIA) or not, with reinjection (RFC 8684)",
    ),
];

macro_rules! each {
    ($state:expr, $t:ident => $call:expr) => {
        match $state {
            TransportState::Rdma($t) => $call,
            TransportState::Phost($t) => $call,
            TransportState::Pfabric($t) => $call,
            TransportState::Fastpass($t) => $call,
            TransportState::Tcp($t) => $call,
            TransportState::Mptcp($t) => $call,
        }
    };
}

impl TransportState {
    /// Begins to fetch what is touched whatever happens.
    #[inline(always)]
    pub fn prefetch(&self) {
        match self {
            TransportState::Phost(phost) => phost.prefetch(),
            TransportState::Pfabric(pfabric) => prefetch_lines(&**pfabric, 4),
            _ => {}
        }
    }
}

impl Transport for TransportState {
    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        each!(self, t => t.start_flow(flow, spec, cx))
    }
    #[inline(always)]
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        each!(self, t => t.receive(id, cx))
    }
    #[inline(always)]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        each!(self, t => t.next_packet(port, cx))
    }
    #[inline(always)]
    fn next_look(&mut self, nic: usize, paused: u8, free: Time) -> Look {
        each!(self, t => t.next_look(nic, paused, free))
    }
    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        each!(self, t => t.on_timer(token, cx))
    }
    fn on_wake(&mut self, port: PortId, serial: u32, cx: &HostContext) -> bool {
        each!(self, t => t.on_wake(port, serial, cx))
    }
    fn on_network_change(&mut self, cx: &mut HostContext) -> Option<PortId> {
        each!(self, t => t.on_network_change(cx))
    }
    fn forget(&mut self, flow: FlowId) {
        each!(self, t => t.forget(flow))
    }
    fn finish(&mut self, cx: &mut HostContext) {
        each!(self, t => t.finish(cx))
    }
    fn view(&self, flow: FlowId) -> Option<FlowView> {
        each!(self, t => t.view(flow))
    }
    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        each!(self, t => t.count(now, counters))
    }
}
