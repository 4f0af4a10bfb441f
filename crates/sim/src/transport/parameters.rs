//! The interface of a transport's parameters: its keys, the facts that other rooms use, and its start at a
//! host.

mod signals;

pub use signals::{Answers, Asks, Permission, Resends};

use super::TransportConfig;
use super::binding::NicPolicy;
use super::controllers::Controllers;
use super::switches::SwitchDefaults;
use super::wire_format::WireFormat;
use crate::compat::Rules;
use crate::congestion::window::{TimeKey, WindowConfig};
use crate::congestion::{ControllerConfig, ExternalController};
use crate::doc::SchemeDoc;
use crate::net::switch::SwitchConfig;
use crate::packet::Packet;
use crate::parameters::{Names, Parameters, Value};
use crate::queue::QueueConfig;
use crate::telemetry::TelemetryConfig;
use crate::telemetry::int::IntLayout;
use crate::topology::{KnownLongest, Routes, Topology, longest};
use crate::units::{Bytes, Rate, Time};
use crate::workload::Traffic;
use std::ops::Range;

/// The parameters of a transport: a file or folder of this room, and a line in its registry. The defaults
/// suit a plain transport, whose flows keep to one path and have no connections and no controller.
pub trait TransportParameters: Sized {
    const DOC: SchemeDoc;
    /// The controllers that its flows may have.
    const CONTROLLERS: Controllers = Controllers::None;
    /// True if the simulator of `[compat] like = "hpcc-ns3"` has this transport.
    const HAS_COMPAT: bool = false;
    /// True if it puts telemetry into its data packets itself. For other transports the edge of the host
    /// does.
    const CARRIES_TELEMETRY: bool = false;
    /// Values of its keys that `weftline explain` explains by name: what they are, and their names.
    const CHOICES: &'static [(&'static str, Names)] = &[];
    /// The transport at one host, perhaps in a box.
    type State;

    /// Reads its keys. Returns none if the controller is unknown, which is reported.
    fn read(p: &mut Parameters, cx: &ReadContext) -> Option<Self>;
    /// Returns the parameters if they belong to this transport.
    fn of(transport: &TransportConfig) -> Option<&Self>;

    /// Sizes of its packets, without telemetry that the edge of the host adds.
    fn framing(&self, telemetry: &TelemetryConfig) -> Framing;
    /// Traffic classes of its packets, one bit each.
    fn classes(&self) -> u8;
    /// Bytes of header of a data packet.
    fn data_header(&mut self) -> &mut u32;
    /// The longest base RTT between two hosts, for its packets; by default that of full packets with their
    /// headers.
    fn base_rtt(&self, run: &RunContext) -> Time {
        let framing = self.framing(run.telemetry);
        run.base_rtt(framing.data_bytes(framing.payload) as u32).0
    }
    fn facts(&self) -> Facts<'_> {
        Facts::default()
    }

    /// The settings of switches in its publication.
    fn switch_defaults(&self) -> SwitchDefaults {
        SwitchDefaults::LOSSY
    }
    /// The queue of hosts' NICs, if the transport needs a certain one.
    fn nic_queue(&self) -> Option<QueueConfig> {
        None
    }
    /// Why these parameters and `_other` cannot be used in the same run.
    fn clash(&self, _other: &Self) -> Option<String> {
        None
    }
    /// Keys of `[switch]` with which the transport cannot run, each with an error message.
    fn refusals(&self, _run: &RunContext) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// Warnings: look before you trust the results.
    fn warnings(&self, _run: &RunContext) -> Vec<String> {
        Vec::new()
    }

    /// Bytes that a flow may have in flight at full rate, if the parameters limit them.
    fn window(&self, _run: &RunContext) -> Option<u64> {
        None
    }
    /// Mean number of full packets in flight where links lose this share of the packets at random; none:
    /// losses do not limit the rate.
    fn window_at_loss(&self, _loss: f64, _round_trip: Time) -> Option<f64> {
        None
    }
    /// [`WindowConfig::longest_times`] of its law.
    fn longest_times(&self) -> Vec<TimeKey> {
        Vec::new()
    }
    /// The figures that `weftline check` prints; none is printed as null.
    fn figures(&self, run: &RunContext) -> Vec<(&'static str, Option<Value>)>;

    /// What a data packet carries of its flow, in numbers that a retransmission has too: of bytes, or of
    /// packets. By default the bytes from [`Packet::seq`] on.
    fn carried(packet: &Packet) -> Range<u64> {
        packet.seq..packet.seq + u64::from(packet.payload.max(1))
    }
    /// The timer because of which a receiver sent this packet, which has no data: only transports whose receivers ask for
    /// lost packets have one.
    fn receiver_timer(_packet: &Packet) -> Option<ReceiverTimer> {
        None
    }
    /// Bytes of the flow that one of these numbers stands for.
    fn number_bytes(&self) -> u64 {
        1
    }
    /// On a connection that several flows use, the next flow begins at a multiple of this number of bytes.
    fn flows_begin_at(&self) -> u64 {
        1
    }

    /// The format of its packets in captures.
    fn wire_format(&self) -> WireFormat<'_> {
        WireFormat::Plain
    }
    /// Derives what follows from the network, once, before the run starts.
    fn settle(&mut self, _run: &RunContext) {}
    /// Creates the transport at a host.
    fn start(&self, host: &HostPlan) -> Self::State;
}

/// How the data packets of a transport are numbered.
#[derive(Debug, Clone, Copy)]
pub struct Numbering {
    /// [`TransportParameters::carried`].
    pub carried: fn(&Packet) -> Range<u64>,
    /// [`TransportParameters::number_bytes`].
    pub bytes: u64,
    /// [`TransportParameters::flows_begin_at`].
    pub begin_at: u64,
    /// [`TransportParameters::receiver_timer`].
    pub receiver_timer: fn(&Packet) -> Option<ReceiverTimer>,
}

/// A timer of a receiver, because of which it asks for packets again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverTimer {
    /// What the flow waits for meanwhile, in words that follow its time: "until ...".
    pub until: &'static str,
    /// How often it has expired for the flow: packets with the number of an earlier one did not wait for it.
    pub expired: u64,
}

impl Numbering {
    /// The first byte of its flow that a packet carries. Where packets are numbered, all before it count as
    /// full.
    #[inline]
    pub fn first_byte(&self, packet: &Packet) -> u64 {
        (self.carried)(packet).start.saturating_mul(self.bytes)
    }

    /// The first byte of the packet that is next in order, where [`Packet::seq`] counts bytes.
    pub fn next_byte(&self, packet: &Packet) -> u64 {
        let end = packet.seq + u64::from(packet.payload);
        if packet.is_last() { end.next_multiple_of(self.begin_at) } else { end }
    }
}

/// Input for a transport's keys from the other sections of a scenario.
pub struct ReadContext<'a> {
    pub rules: Rules,
    /// Longest base RTT between two hosts for packets of this payload.
    pub base_rtt: &'a dyn Fn(u32) -> Time,
    /// Largest bandwidth-delay product of two hosts in bytes, for packets of this payload, and whether each of
    /// them has a label of its own.
    pub product: &'a dyn Fn(u32, bool) -> u64,
    /// The highest rate at which a flow can leave a host.
    pub host_rate: Rate,
    /// None if the topology is invalid, which is reported, or if keys are only listed.
    pub topology: Option<&'a Topology>,
    /// Whether switches have PFC, if that does not follow from this transport; none: from this one.
    pub lossless: Option<bool>,
    /// The time in which the slowest link empties a switch's buffer.
    pub drain: Time,
    /// The time in which the slowest link empties the largest queue, if all packets have this number of bytes: less where every
    /// port has a buffer of its own.
    pub waiting: &'a dyn Fn(u64) -> Time,
    /// Controllers from other crates.
    pub controllers: &'a [ExternalController],
}

impl ReadContext<'static> {
    /// For the list of keys: defaults that follow from the network are those on the network of the pHost
    /// paper, for which they are published (pHost, CoNEXT 2015, §4: hosts at 10 Gb/s, 4.52 us there and
    /// back).
    pub fn listing() -> ReadContext<'static> {
        ReadContext {
            topology: None,
            rules: Rules::none(),
            base_rtt: &|_| Time::from_ns(4520),
            product: &|_, _| 5650,
            host_rate: Rate::from_gbps(10),
            lossless: None,
            drain: Time::ZERO,
            waiting: &|_| Time::ZERO,
            controllers: &[],
        }
    }
}

impl ReadContext<'_> {
    /// The largest product for packets of a transport that labels each of them unless a key is false, which may
    /// be read later.
    pub fn product_of(&self, (p, key): (&Parameters, &str), payload: u32) -> u64 {
        (self.product)(payload, p.peek(key) != Some(Value::Flag(false)))
    }
}

/// The rest of the run, for checks and derived values.
pub struct RunContext<'a> {
    pub rules: &'a Rules,
    pub topology: &'a Topology,
    pub routes: &'a Routes,
    /// What is known of its longest paths; none: nothing is kept.
    pub longest: Option<&'a KnownLongest>,
    pub switch: &'a SwitchConfig,
    pub telemetry: &'a TelemetryConfig,
    pub transports: &'a [TransportConfig],
    pub nic_policy: NicPolicy,
    /// None while the scenario is being read.
    pub traffic: Option<&'a Traffic>,
}

/// The times of a law that follow from the base RTT, as [`TransportParameters::figures`] has them.
pub fn derived_times(law: &WindowConfig, base_rtt: Time) -> Vec<(&'static str, Option<Value>)> {
    law.derived(base_rtt).into_iter().map(|(key, time)| (key, Some(time.as_ns().into()))).collect()
}

/// Warns of a law whose constant is that of its authors and far from what `auto` stands for with this base
/// RTT, and of one whose largest window is less than what the fullest path holds, which has a base RTT, too.
pub fn warnings_of_law(
    law: &WindowConfig,
    packet: u32,
    subflows: u8,
    base_rtt: Time,
    (rtt, held): (Time, u64),
) -> Vec<String> {
    let far = law.published(base_rtt).filter(|(_, of, auto)| is_far(of.0, auto.0));
    let far = far.map(|(key, published, auto)| {
        far_text(key, published, auto, format_args!("a base RTT of {base_rtt}"))
    });
    let bytes = |packets: f64| packets * f64::from(packet) * f64::from(subflows);
    let short = law.max_packets().filter(|&(_, packets)| bytes(packets) < held as f64);
    let short = short.map(|(key, packets)| {
        let max_rate = Rate((bytes(packets) * 8e12 / rtt.0.max(1) as f64) as u64);
        let held = held.div_ceil(packet.max(1).into());
        let what = match subflows {
            1 => format!(
                "a flow over a path with a base RTT of {rtt} sends at most {max_rate}; its links hold {held} packets"
            ),
            _ => format!(
                "the {subflows} subflows of a connection over paths with a base RTT of {rtt} send at most {max_rate} together; \
                 the links of one such path hold {held} packets"
            ),
        };
        format!("transport.controller.{key} = {packets}: {what}")
    });
    far.into_iter().chain(short).collect()
}

/// Buffers that hold less than the paths of a connection do. Unacknowledged bytes lie in
/// the send buffer, and bytes behind a hole in the receive buffer, until the path has brought what is
/// missing. Over it a connection sends no faster than the smaller buffer a round trip, whatever its
/// window; queues make the round trip longer than it is here. `kind`: of the transport.
pub fn held_by_buffers(
    run: &RunContext,
    (kind, packet): (&str, u32),
    subflows: u8,
    buffers: [(&str, u64); 2],
) -> Option<String> {
    let topology = run.topology;
    let ports = topology.ports();
    let rate_of =
        |node: u32| ports[node as usize].iter().map(|&(link, _)| topology.links[link as usize].rate.0).sum();
    let host: u64 = topology.hosts().into_iter().map(rate_of).max()?;
    let (rtt, window) = run.fullest_path(packet, kind);
    let all = Rate(host).bytes_in(rtt).0.min(window.saturating_mul(subflows.into()));
    let (key, buffer) = buffers.into_iter().min_by_key(|&(_, bytes)| bytes)?;
    (buffer < all && rtt.0 > 0).then(|| {
        let max_rate = (u128::from(buffer) * 8_000_000_000_000 / u128::from(rtt.0)) as u64;
        let (held, enough) = (Bytes(rounded(all)), Bytes(rounded(2 * all)));
        let (max_rate, rtt) = (Rate(rounded(max_rate)), Time(rounded(rtt.0)));
        let what = if subflows > 1 { format!("the {subflows} subflows of a connection") } else { "a connection".into() };
        format!(
            "transport.{key}: {} are less than what {what} may have in flight over the paths that hold most ({held} in a round trip \
             of {rtt} without queues), so that it sends at most {max_rate} there: set send_buffer and receive_buffer to {enough} or \
             more",
            Bytes(buffer),
        )
    })
}

/// A window that is smaller than what fills the path in use with the largest bandwidth-delay product. `kind`: of the
/// transport; `payload`: of its full packets.
pub fn narrow_window(run: &RunContext, (kind, payload): (&str, u32), window: Bytes) -> Option<String> {
    let (rtt, held) = run.fullest_path(payload, kind);
    let max_rate = (u128::from(window.0) * 8_000_000_000_000 / u128::from(rtt.0.max(1))) as u64;
    (window.0 < held).then(|| {
        format!(
            "transport.window = {window}: a flow over a path with a base RTT of {rtt} sends at most {}; set window to {} or more, \
             or to \"auto\"",
            Rate(rounded(max_rate)),
            Bytes(rounded(held))
        )
    })
}

/// Rounded up to two digits.
pub fn rounded(value: u64) -> u64 {
    let unit = 10u64.pow(value.max(10).ilog10() - 1);
    value.div_ceil(unit) * unit
}

/// Whether a constant is more than twice or less than half of another.
pub fn is_far(value: u64, other: u64) -> bool {
    value > other.saturating_mul(2) || other > value.saturating_mul(2)
}

/// The warning of a constant that was published for other networks.
pub fn far_text(
    key: &str,
    published: impl std::fmt::Display,
    auto: impl std::fmt::Display,
    on: std::fmt::Arguments,
) -> String {
    format!(
        "transport.controller.{key} = {published} is the authors' value for their network: with {on}, \"auto\" stands for {auto}; \
         set {key} = \"auto\", or a value of your own, unless the published value is what you study"
    )
}

/// Labels that a host counts up, whatever the packet.
pub const COUNTED: &str = "every packet with a choice of paths gets a new label, counting up, so that balancers spread it; \
                           false: a flow keeps its path";

impl RunContext<'_> {
    /// The rates at which flows can leave hosts, each once, the lowest first: of a link, or of all links of a
    /// host.
    pub fn host_rates(&self) -> Vec<Rate> {
        self.nic_policy.host_rates(self.topology)
    }

    /// The highest of them.
    pub fn host_rate(&self) -> Rate {
        self.host_rates().last().copied().unwrap_or_default()
    }

    /// The longest base RTT of all host pairs, and the largest bandwidth-delay product in bytes.
    pub fn base_rtt(&self, payload: u32) -> (Time, u64) {
        let whole_ns = self.rules.whole_ns_base_rtt;
        let (topology, routes, payload) = (self.topology, self.routes, u64::from(payload));
        let longest = match self.longest {
            Some(known) => known.find(topology, routes, payload, whole_ns),
            None => longest(topology, routes, payload, whole_ns),
        };
        (longest.base_rtt, longest.product)
    }

    /// How INT counts: in the units that its readers want.
    pub fn int_layout(&self, slower: u32) -> IntLayout {
        let mut controllers = self.transports.iter().filter_map(|transport| transport.facts().controller);
        let rules = self.rules;
        let layout = match controllers.any(|controller| controller.needs().fine_int) {
            true => {
                IntLayout { counts_arrivals: rules.int_counts_arrivals, time_unit: slower, ..IntLayout::FINE }
            }
            false => {
                let framings = self.transports.iter().map(|transport| transport.framing(self.telemetry));
                let smallest = framings.map(|framing| framing.data_bytes(framing.payload)).min();
                let packet = smallest.filter(|_| !rules.coarse_int);
                IntLayout::for_nic(self.topology.nic_rate(), slower, packet)
            }
        };
        let fastest = self.topology.links.iter().map(|link| link.rate).max();
        let dated = layout.up_to(fastest.unwrap_or(Rate(1)));
        let comparable = if rules.undated_int { Time::MAX } else { dated.comparable };
        IntLayout { wraps_queue: rules.wraps_queue, comparable, ..layout }
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

/// Sizes of a transport's packets on the wire, telemetry included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// Payload of a full packet.
    pub payload: u64,
    pub header: u64,
    pub ack: u64,
    /// Every data packet is acknowledged, not only the last one.
    pub acks_each: bool,
    /// Those with which a flow begins, if they have other sizes.
    pub first: Option<FirstPackets>,
}

/// Sizes of the packets with which a flow begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstPackets {
    /// Payload bytes of a flow that such packets carry.
    pub bytes: u64,
    pub payload: u64,
    pub header: u64,
}

/// Packets of equal size that leave one after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketRun {
    pub packets: u64,
    /// Of each packet, on the wire.
    pub bytes: u64,
}

impl Framing {
    /// Packets of these sizes, each of which is acknowledged.
    pub fn of(payload: u32, header: u32, ack: u32) -> Framing {
        let [payload, header, ack] = [payload, header, ack].map(u64::from);
        Framing { payload, header, ack, acks_each: true, first: None }
    }

    /// The packets of a flow of `size` payload bytes in the order in which they leave; runs may be empty.
    pub fn runs(&self, size: u64) -> [PacketRun; 4] {
        const NONE: PacketRun = PacketRun { packets: 0, bytes: 0 };
        let Some(first) = self.first else {
            let [full, last] = cut(size, self.payload, self.header);
            return [full, last, NONE, NONE];
        };
        let begin = size.min(first.bytes);
        let [full, last] = cut(begin, first.payload, first.header);
        let [later, end] = match size - begin {
            0 => [NONE; 2],
            rest => cut(rest, self.payload, self.header),
        };
        [full, last, later, end]
    }

    /// Bytes on the wire of a data packet with this payload.
    pub fn data_bytes(&self, payload: u64) -> u64 {
        payload + self.header
    }
}

/// Full packets, and a last one that may be smaller.
fn cut(size: u64, payload: u64, header: u64) -> [PacketRun; 2] {
    let packets = size.div_ceil(payload).max(1);
    let last = size - (packets - 1) * payload + header;
    [PacketRun { packets: packets - 1, bytes: payload + header }, PacketRun { packets: 1, bytes: last }]
}

/// Facts about a transport that other rooms use.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// A connection stays open and carries one flow after another. Without connections flows are independent,
    /// but those of one connection still start in order.
    pub keeps_connections: bool,
    /// Each packet has a label of its own, by which balancers choose its path.
    pub labels_packets: bool,
    /// Packets of a flow have different labels, at least after one another, and may take different paths.
    pub spreads_flows: bool,
    /// Number of subflows of a flow, whose packets have no common order; none if there are no subflows.
    pub subflows: Option<u8>,
    /// Packets may wait in a queue of their host, which is filled as windows allow.
    pub fills_queue: bool,
    /// Why the packets of a flow cannot leave by whichever NIC is free, if they cannot.
    pub one_nic: Option<&'static str>,
    /// The receiver counts packets and accepts them in any order.
    pub any_order: bool,
    pub overtaken: Overtaken,
    /// For a transport made for lossless networks: why a dropped packet is expensive, and what to set
    /// instead.
    pub wants_lossless: Option<(&'static str, &'static str)>,
    /// The controller, if it steers the rate of a NIC.
    pub controller: Option<&'a ControllerConfig>,
    /// The name of the controller, if there is one.
    pub controller_name: Option<&'a str>,
    /// The name of the controller, if it steers by ECN marks.
    pub marked_controller: Option<&'a str>,
    /// Its senders react to marks, or its packets are never marked (they have the flag `NOT_CAPABLE`).
    pub heeds_marks: bool,
    /// Queue, in bandwidth-delay products, up to which some packets must stay without a mark for one flow to
    /// keep a link busy; none: no such bound is known, or marks change nothing.
    pub queue_at_marks: Option<f64>,
    /// The name of the controller, if it takes longer round trips for congestion.
    pub delay_controller: Option<&'a str>,
    /// Maximum time between two retransmissions of the same packet.
    pub longest_timeout: Time,
    /// Minimum time for which a sender waits before a timer of its loss detection, not a timeout, has a lone packet
    /// sent again; none: it has no such timer.
    pub loss_probe: Option<Time>,
    /// What has packets sent again whose path carries nothing; none: that is not known.
    pub resends: Option<Resends>,
    /// Time for which a timer remains after its flow has ended.
    pub timer_left: Time,
    /// A packet that is lost has those sent after it sent again.
    pub goes_back: bool,
    /// Then: after this time a receiver asks again for the packet that is missing, and the sender goes back again.
    pub asks_again: Option<Time>,
    /// The key of the base RTT, if windows of all flows follow the longest one of the network.
    pub longest_windows: Option<&'static str>,
    /// Number of times that the first packet of a connection is sent before the connection is given up; none:
    /// without end.
    pub openings: Option<u32>,
    /// Packets that open and close a connection, and those that open its further subflows once data has been
    /// acknowledged.
    pub control_packets: [u32; 2],
    /// Packets of the first window, which follows a handshake and doubles every round trip; none: a flow
    /// starts at once, at its rate.
    pub first_window: Option<u32>,
    /// Bytes of payload that a flow may have sent and not acknowledged, if a key limits them.
    pub in_flight: Option<u64>,
    /// The paces of the applications at both ends of a flow, if they have one.
    pub applications: [Option<Pace>; 2],
    /// What a host sends at most, and receives, in packets with their headers, if its links do not decide that alone.
    pub host_rate: Option<Rate>,
    /// Packets that its hosts send in answer to those of its data.
    pub answers: Answers,
    /// What its flows wait for before they send, if they do.
    pub permission: Option<Permission>,
    /// What receivers ask for by the rates of their own links, if they do.
    pub asks: Option<Asks>,
    /// The host that all of its flows need, with the key that names it.
    pub needs_host: Option<(&'static str, u32)>,
    /// Memory of an open connection: its two ends, their entries in tables, and the memory of its window.
    pub connection_bytes: u64,
    /// Of them, those of its place in the list of its host.
    pub connection_place: u64,
    /// Why a flow on a connection of its own ([`FlowSpec::path_of`](crate::workload::FlowSpec)) may do other
    /// than what an equal one did at another time, or leave something at its hosts: the key below
    /// `transport`, and what its value does. None: it does the same, and leaves nothing.
    pub differs: Option<(&'static str, &'static str)>,
    /// CPU time of a packet-hop in ns, if all data fits the caches.
    pub ns_per_hop: f64,
}

impl Facts<'_> {
    /// Its senders are not at line rate whatever happens.
    pub fn slows_down(&self) -> bool {
        !matches!(self.controller, Some(ControllerConfig::None))
    }
}

impl Default for Facts<'_> {
    fn default() -> Self {
        Facts {
            keeps_connections: false,
            labels_packets: false,
            spreads_flows: false,
            subflows: None,
            fills_queue: false,
            one_nic: None,
            any_order: false,
            overtaken: Overtaken::Nothing,
            wants_lossless: None,
            controller: None,
            controller_name: None,
            marked_controller: None,
            heeds_marks: false,
            queue_at_marks: None,
            delay_controller: None,
            longest_timeout: Time::ZERO,
            loss_probe: None,
            resends: None,
            timer_left: Time::ZERO,
            goes_back: false,
            asks_again: None,
            longest_windows: None,
            openings: None,
            control_packets: [0; 2],
            first_window: None,
            in_flight: None,
            applications: [None; 2],
            host_rate: None,
            answers: Answers::each(1.0),
            permission: None,
            asks: None,
            needs_host: None,
            connection_bytes: super::tcp::CONNECTION_BYTES,
            connection_place: super::tcp::CONNECTION_PLACE,
            differs: Some(("kind", "leaves at hosts what is not known to repeat")),
            ns_per_hop: 100.0,
        }
    }
}

/// What a flow is not faster than, whatever its path carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Of payload.
    pub rate: Rate,
    /// Bytes of payload of a flow that do not wait for it.
    pub ahead: u64,
}

/// The reaction of a transport to a packet that later packets of its flow have overtaken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overtaken {
    /// None: the order of packets does not matter.
    Nothing,
    /// It waits for the packet, longer if packets are often overtaken, but not for the duration of a whole
    /// block.
    WaitedFor { why: &'static str },
    /// It considers the packet lost when this number of later ones has arrived. `why` and what to set
    /// `instead`: for messages.
    LostAfter { packets: u32, why: &'static str, instead: &'static str },
}
