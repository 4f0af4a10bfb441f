//! Transports: what hosts do to get flows across. One folder or file each, and the interface that they share.
//!
//! A new one is a folder or file here (`DOC`, parameters, what runs at a host, tests), a `pub mod` and a line
//! in [`registry!`].
//!
//! A NIC *pulls*: when its port can send and no control packet waits, it asks the host's transports for the
//! next packet. A transport reacts to flows that start, packets that arrive and timers; it reaches the
//! network only through [`HostContext`].

mod arrived;
pub mod binding;
mod controllers;
pub mod fastpass;
mod hold;
pub mod homa;
pub mod messages;
pub mod mptcp;
pub mod ndp;
mod nic;
pub mod pairs;
mod parameters;
mod paths;
mod paths_in_use;
pub mod pfabric;
pub mod phost;
pub mod plb;
mod policy;
mod rate_sample;
pub mod rdma;
mod settings;
mod silence;
mod switches;
pub mod tcp;
mod wire_format;

pub use binding::{Leaving, NicPolicy};
pub use controllers::{Controllers, DEFAULT_WINDOW};
pub use hold::{Hold, Timeouts};
pub use parameters::{
    Answers, Asks, Facts, Framing, HostPlan, Numbering, Overtaken, Pace, PacketRun, Permission, ReadContext,
    ReceiverTimer, Resends, RunContext, TransportParameters, rounded,
};
pub use settings::Settings;
pub use switches::SwitchDefaults;
pub use wire_format::WireFormat;

use crate::congestion::window::{FlowPath, TimeKey, WindowConfig};
use crate::counters::CounterSet;
use crate::measure::FlowRecord;
use crate::net::PortId;
use crate::net::agenda::Action;
use crate::net::map::Map;
use crate::net::partition::Partition;
use crate::packet::{Packet, PacketId};
use crate::parameters::{Names, Value};
use crate::queue::QueueConfig;
use crate::telemetry::TelemetryConfig;
use crate::topology::{NextHops, Row};
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use std::collections::BTreeSet;

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

    /// Sets a timer; `token` comes back to the transport. Timers cannot be taken back: the transport ignores
    /// stale ones.
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

    /// The port by which packets to `dst` with this hash leave the host, those that wait for a port in its queue.
    #[inline]
    pub fn port_to(&self, dst: u32, hash: u32) -> Option<PortId> {
        if dst == self.host {
            return None;
        }
        match self.map.routes.hops_from(self.rows[0], dst) {
            NextHops::None => None,
            NextHops::One(port) => Some(self.first_port + port),
            NextHops::Many(ports) if self.settings.nic_policy != NicPolicy::All => {
                Some(self.first_port + ports[hash as usize % ports.len()])
            }
            NextHops::Many(ports) => self.first_free(ports),
        }
    }

    /// Switches on a shortest path to `dst`; 0 if there is no path.
    pub fn switches_to(&self, dst: u32) -> u32 {
        self.map.switches_between(self.node, dst)
    }

    /// The longest base RTT of the shortest paths to `dst` for this number of bytes: of the routes of now, else of
    /// those without failures; none: there is no path.
    pub fn base_rtt_to(&self, dst: u32, bytes: u64) -> Option<Time> {
        let of = |map: &Map| map.base_rtt_between(self.node, dst, bytes);
        of(self.map).or_else(|| self.map.intact.as_deref().and_then(of))
    }

    /// The facts on its path for the law of a flow to `dst`.
    pub fn path_to(&self, dst: u32, law: &WindowConfig, bytes: u64) -> FlowPath {
        let base_rtt = law.needs_base_rtt().then(|| self.base_rtt_to(dst, bytes)).flatten();
        FlowPath { hops: self.switches_to(dst), base_rtt }
    }

    /// The same where routes have changed; none: there is no path now.
    pub fn new_path_to(&self, dst: u32, law: &WindowConfig, bytes: u64) -> Option<FlowPath> {
        self.map.base_rtt_between(self.node, dst, bytes)?;
        Some(self.path_to(dst, law, bytes))
    }

    /// How many ways to `dst` the switches can choose.
    pub fn paths_to(&self, dst: u32) -> u32 {
        self.map.paths_between(self.node, dst)
    }

    /// What a packet to `dst` by a port is labelled with, if every packet is to take a path of its own:
    /// balancers choose by it. Labels count up, from `label` on, where the switch behind the port has a
    /// choice.
    #[inline(always)]
    pub fn next_label(&self, dst: u32, port: PortId, label: &mut u32) -> u32 {
        let row = if port == self.first_port {
            self.rows[1]
        } else {
            self.map.row_of_peer(self.node, port - self.first_port)
        };
        *label = label.wrapping_add(u32::from(self.map.routes.has_choice(row, dst)));
        *label
    }

    /// Puts a control packet (acknowledgement) into the queue of a port, unless it may leave at once; it precedes data. It is complete
    /// and must not be changed afterwards.
    #[inline(always)]
    pub fn enqueue_control(&mut self, port: PortId, id: PacketId) {
        if self.net.passes_queues && self.net.may_pass(port, id) {
            return self.net.transmit(port, id, false);
        }
        if let Some(trace) = &mut self.net.taps.trace {
            trace.made(id, self.net.now);
        }
        self.enqueue(port, id);
    }

    /// The same for the only packet that comes to a queue in this event, after which the host looks at the
    /// port.
    #[inline(never)]
    pub fn enqueue_alone(&mut self, port: PortId, id: PacketId) {
        if self.net.passes_alone && self.net.taps.trace.is_none() && self.net.passes(port, id) {
            return self.net.transmit(port, id, false);
        }
        self.enqueue_control(port, id);
    }

    /// Puts a packet into the queue of a port.
    pub fn enqueue(&mut self, port: PortId, id: PacketId) {
        let at = &mut self.net.ports[port as usize];
        let mut verdict = at.enqueue(id, &mut self.net.packets, self.net.now);
        while let Some(dropped) = verdict.next_dropped(&self.net.packets) {
            self.net.drop_packet(port, dropped);
        }
        // It may be the only one, and nothing is left to be served.
        if self.net.ports[port as usize].owns_buffer {
            self.net.settle(port);
        }
    }

    /// A flow has ended, or the run before it.
    pub fn record(&mut self, record: FlowRecord) {
        self.unbind(&record);
        self.net.recorder.flow(record);
    }

    /// A retransmission timeout of a flow of this group has expired.
    #[cold]
    pub fn timed_out(&mut self, group: u16) {
        self.net.recorder.count(group, |losses| &mut losses.timeouts);
    }

    /// The timer of a tail loss probe of a flow of this group has expired.
    #[cold]
    pub fn probes_for_loss(&mut self, group: u16) {
        self.net.recorder.count(group, |losses| &mut losses.loss_probes);
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

    /// Packets of a flow of this group that count as sent never left: their connection ended before the NIC
    /// took them.
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
    /// Begins to fetch what is touched whatever happens.
    #[inline(always)]
    fn prefetch(&self) {}
    /// A flow starts here. The port that it leaves by may have something to send now.
    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId>;
    /// A packet of this transport has arrived; the port that may have something to send because of it.
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId>;
    /// The port is free: the next packet to send by it. If none is due, sets a wake-up for when one is.
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId>;
    /// A port that takes packets from scheduler `nic` will be free at `free`, classes in `paused` held back: when it is to
    /// be looked at for the next packet of this transport, if nothing else happens before.
    fn next_look(&mut self, nic: usize, paused: u8, free: Time) -> Look;
    /// A timer set with this token has come; the port that may have something to send because of it.
    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId>;
    /// A wake-up of a NIC; whether it is the one in force.
    fn on_wake(&mut self, port: PortId, serial: u32, cx: &HostContext) -> bool;
    /// How many places what is sent from here takes up, free ones among them; 0: nothing is bound to a NIC.
    fn places(&self) -> u32 {
        0
    }
    /// By which NIC what is sent from a place leaves; `flows` learns which flows these are. None: the place is free.
    fn leaving(&self, _place: u32, _flows: &mut Vec<FlowId>) -> Option<Leaving> {
        None
    }
    /// What is sent from a place leaves by another NIC from now on.
    fn leave_by(&mut self, _place: u32, _by: Leaving, _cx: &mut HostContext) {}
    /// Routes have changed, or a link of the host is down or up again; the ports that may have something
    /// to send because of it.
    fn on_network_change(&mut self, _cx: &mut HostContext) -> Vec<PortId> {
        Vec::new()
    }
    /// No packet of this flow, which was received here, can come any more: nothing needs to be remembered of
    /// it.
    fn forget(&mut self, flow: FlowId);
    /// The run ends: what has not finished is recorded so.
    fn finish(&mut self, cx: &mut HostContext);
    /// Why a flow that is sent from here sends no packet now; none if it is not, or the transport cannot tell.
    fn hold(&self, _flow: FlowId) -> Option<Hold> {
        None
    }
    /// Timeouts of a flow that is sent from here; none: whatever is sent again without an answer waited for a timeout, and
    /// nothing else does.
    fn timeouts(&self, _flow: FlowId) -> Option<Timeouts> {
        None
    }
    /// Internals of a flow that is sent from here.
    fn view(&self, flow: FlowId, now: Time) -> Option<FlowView>;
    /// Adds what it has counted until now.
    fn count(&mut self, _now: Time, _counters: &mut CounterSet) {}
}

registry! {
    /// A transport with all its parameters.
    TransportConfig: TransportParameters(&ReadContext) =>
    /// A transport at one host.
    #[repr(u8)]
    TransportState {
        Rdma = rdma::RdmaConfig;
        Phost = phost::PhostConfig;
        Pfabric = pfabric::PfabricConfig;
        Fastpass = fastpass::FastpassConfig;
        Tcp = tcp::TcpConfig;
        Mptcp = mptcp::MptcpConfig;
        Ndp = ndp::NdpConfig;
        Homa = homa::HomaConfig;
    }
}

/// The transport of a scenario that names none.
pub const DEFAULT: &str = rdma::RdmaConfig::DOC.name;

/// The constants of [`TransportParameters`].
#[derive(Clone, Copy)]
pub struct Declared {
    pub name: &'static str,
    pub controllers: Controllers,
    pub has_compat: bool,
    pub choices: &'static [(&'static str, Names)],
}

/// Every transport, in the order of [`KINDS`].
pub const DECLARED: &[Declared] = &each_type!(P => Declared {
    name: P::DOC.name,
    controllers: P::CONTROLLERS,
    has_compat: P::HAS_COMPAT,
    choices: P::CHOICES,
});

impl TransportConfig {
    pub fn name(&self) -> &'static str {
        fn name<P: TransportParameters>(_: &P) -> &'static str {
            P::DOC.name
        }
        each_kind!(self, own => name(own))
    }

    pub fn facts(&self) -> Facts<'_> {
        each_kind!(self, own => own.facts())
    }

    /// Bytes of telemetry that the edge of a host adds to a data packet; 0 if the transport does it itself.
    pub fn telemetry_at_edge(&self, telemetry: &TelemetryConfig) -> u32 {
        fn carries<P: TransportParameters>(_: &P) -> bool {
            P::CARRIES_TELEMETRY
        }
        if each_kind!(self, own => carries(own)) { 0 } else { telemetry.bytes(false) }
    }

    /// Traffic classes of its packets, one bit each.
    pub fn classes(&self) -> u8 {
        each_kind!(self, own => own.classes())
    }

    /// Sizes of its packets.
    pub fn framing(&self, telemetry: &TelemetryConfig) -> Framing {
        each_kind!(self.with_telemetry(telemetry), own => own.framing(telemetry))
    }

    /// The parameters with headers that have room for the telemetry of the edge.
    pub fn with_telemetry(&self, telemetry: &TelemetryConfig) -> TransportConfig {
        let (bytes, mut wider) = (self.telemetry_at_edge(telemetry), self.clone());
        *each_kind!(&mut wider, own => own.data_header()) += bytes;
        wider
    }

    /// The parameters as hosts use them in a run.
    pub fn settled(&self, run: &RunContext) -> TransportConfig {
        let mut settled = self.with_telemetry(run.telemetry);
        each_kind!(&mut settled, own => own.settle(run));
        settled
    }

    pub fn base_rtt(&self, run: &RunContext) -> Time {
        each_kind!(self, own => own.base_rtt(run))
    }

    pub fn switch_defaults(&self) -> SwitchDefaults {
        each_kind!(self, own => own.switch_defaults())
    }

    pub fn window(&self, run: &RunContext) -> Option<u64> {
        each_kind!(self, own => own.window(run))
    }

    pub fn window_at_loss(&self, loss: f64, round_trip: Time) -> Option<f64> {
        each_kind!(self, own => own.window_at_loss(loss, round_trip))
    }

    pub fn longest_times(&self) -> Vec<TimeKey> {
        each_kind!(self, own => own.longest_times())
    }

    /// The figures that `weftline check` prints.
    pub fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)> {
        let mut figures = vec![("transport", Some(self.name().into()))];
        figures.extend(each_kind!(self.with_telemetry(run.telemetry), own => own.figures(run)));
        figures
    }

    /// How its data packets are numbered.
    pub fn numbering(&self) -> Numbering {
        fn numbering<P: TransportParameters>(own: &P) -> Numbering {
            Numbering {
                carried: P::carried,
                bytes: own.number_bytes(),
                begin_at: own.flows_begin_at(),
                receiver_timer: P::receiver_timer,
            }
        }
        each_kind!(self, own => numbering(own))
    }

    pub fn wire_format(&self) -> WireFormat<'_> {
        each_kind!(self, own => own.wire_format())
    }

    /// Creates the transport at a host.
    pub fn start(&self, host: &HostPlan) -> TransportState {
        start_kind!(self, own => own.start(host))
    }
}

/// The largest data packet of any transport, on the wire.
pub fn largest_packet(transports: &[TransportConfig], telemetry: &TelemetryConfig) -> u64 {
    let framings = transports.iter().map(|transport| transport.framing(telemetry));
    framings.map(|framing| framing.data_bytes(framing.payload)).max().unwrap_or(0)
}

/// The queue of every host's NIC: of those that transports need, the one with the largest capacity.
pub fn nic_queue(transports: &[TransportConfig]) -> QueueConfig {
    let needed = transports.iter().filter_map(|transport| each_kind!(transport, own => own.nic_queue()));
    needed.max_by_key(|queue| queue.facts().capacity).unwrap_or_default()
}

/// Errors in keys of `[switch]` because of switches, or other transports, with which a transport cannot run.
pub fn refusals(transports: &[TransportConfig], run: &RunContext) -> Vec<(&'static str, String)> {
    fn clash<P: TransportParameters>(own: &P, others: &[TransportConfig]) -> Option<String> {
        others.iter().filter_map(P::of).find_map(|other| own.clash(other))
    }
    let mut refused = Vec::new();
    for (number, transport) in transports.iter().enumerate() {
        let clash = each_kind!(transport, own => clash(own, &transports[number + 1..]));
        let clash = clash.map(|message| ("queue", message));
        let all = each_kind!(transport, own => own.refusals(run)).into_iter().chain(clash);
        all.for_each(|one| {
            if !refused.contains(&one) {
                refused.push(one)
            }
        });
    }
    refused
}

/// Warnings of transports of a run; what several have is repeated.
pub fn warnings(transports: &[&TransportConfig], run: &RunContext) -> Vec<String> {
    let own = |transport: &&TransportConfig| {
        let mut found = each_kind!(*transport, own => own.warnings(run));
        found.extend(asks_for_all_links(transport, run));
        found
    };
    transports.iter().flat_map(own).chain(strict_classes(transports, run)).collect()
}

/// Receivers ask at the rate of all their links for what may come by one of them.
fn asks_for_all_links(transport: &TransportConfig, run: &RunContext) -> Option<String> {
    let ports = run.topology.ports();
    let several = run.topology.hosts().iter().any(|&host| ports[host as usize].len() > 1);
    let asks = transport.facts().asks.is_some() && run.nic_policy != NicPolicy::All;
    (several && asks && run.rules.like == "none").then(|| {
        format!(
            "transport.kind = \"{}\": a receiver with several links requests packets at the rate of all of them \
             together, also when its flows arrive by one link: packets of several flows may then queue before that link \
             and be dropped or trimmed; with [host] nic_policy = \"all\" flows use all links of their hosts",
            transport.name()
        )
    })
}

/// Ports that serve by strict priority, and long flows of different transports, of one kind or several, in different
/// classes: the last class of a transport is that of its long flows.
fn strict_classes(transports: &[&TransportConfig], run: &RunContext) -> Option<String> {
    let strict = run.switch.queues().any(|queue| queue.facts().serves_by_class);
    let last = |transport: &TransportConfig| u8::BITS - 1 - transport.classes().max(1).leading_zeros();
    let classes: BTreeSet<(u32, &str)> = transports.iter().map(|own| (last(own), own.name())).collect();
    let (first, lowest) = (classes.first()?.0, classes.last()?.0);
    (strict && first < lowest).then(|| {
        let named = classes.iter().map(|(class, name)| format!("\"{name}\" in class {class}"));
        format!(
            "switch.queue: ports serve classes by strict priority, and transports send long flows in different ones \
             ({}): where they share a link, the lower class number takes what it needs, and the others wait; give all \
             of them one class (transport.class) unless this is intended",
            named.collect::<Vec<_>>().join(", ")
        )
    })
}

/// The first transport of each kind: a host has one of each, which takes the flows of all of that kind.
pub fn firsts<'t>(
    transports: impl IntoIterator<Item = &'t TransportConfig>,
) -> impl Iterator<Item = &'t TransportConfig> {
    let mut known = Vec::new();
    transports.into_iter().filter(move |transport| {
        let new = !known.contains(&transport.name());
        known.push(transport.name());
        new
    })
}

impl TransportState {
    /// Begins to fetch what is touched whatever happens.
    #[inline(always)]
    pub fn prefetch(&self) {
        each_state!(self, t => t.prefetch())
    }
}

impl Transport for TransportState {
    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        each_state!(self, t => t.start_flow(flow, spec, cx))
    }
    #[inline(always)]
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        each_state!(self, t => t.receive(id, cx))
    }
    #[inline(always)]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        each_state!(self, t => t.next_packet(port, cx))
    }
    #[inline(always)]
    fn next_look(&mut self, nic: usize, paused: u8, free: Time) -> Look {
        each_state!(self, t => t.next_look(nic, paused, free))
    }
    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        each_state!(self, t => t.on_timer(token, cx))
    }
    fn on_wake(&mut self, port: PortId, serial: u32, cx: &HostContext) -> bool {
        each_state!(self, t => t.on_wake(port, serial, cx))
    }
    fn places(&self) -> u32 {
        each_state!(self, t => t.places())
    }
    fn leaving(&self, place: u32, flows: &mut Vec<FlowId>) -> Option<Leaving> {
        each_state!(self, t => t.leaving(place, flows))
    }
    fn leave_by(&mut self, place: u32, by: Leaving, cx: &mut HostContext) {
        each_state!(self, t => t.leave_by(place, by, cx))
    }
    fn on_network_change(&mut self, cx: &mut HostContext) -> Vec<PortId> {
        each_state!(self, t => t.on_network_change(cx))
    }
    fn forget(&mut self, flow: FlowId) {
        each_state!(self, t => t.forget(flow))
    }
    fn finish(&mut self, cx: &mut HostContext) {
        each_state!(self, t => t.finish(cx))
    }
    fn hold(&self, flow: FlowId) -> Option<Hold> {
        each_state!(self, t => t.hold(flow))
    }
    fn timeouts(&self, flow: FlowId) -> Option<Timeouts> {
        each_state!(self, t => t.timeouts(flow))
    }
    fn view(&self, flow: FlowId, now: Time) -> Option<FlowView> {
        each_state!(self, t => t.view(flow, now))
    }
    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        each_state!(self, t => t.count(now, counters))
    }
}
