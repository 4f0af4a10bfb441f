//! TCP: a byte stream over a network that may lose packets.
//!
//! A flow is a connection of its own, or one of those that follow each other over a [connection that stays open](persistent): SYN, SYN-ACK, then data while the congestion window and the receiver's allow it. The
//! NIC pulls segments, in turn among its connections, and acknowledgements go before data. The receiver acknowledges every
//! second segment in order and says at once what is missing; the sender works out what is lost, sends it again, and lets a
//! [window controller](crate::congestion::window) steer the window. A flow is done when its last byte is acknowledged.
//!
//! Source: Eddy, RFC 9293, and the RFCs named in the files here.
//! Differs from the source: sequence numbers have 64 bits and begin at 0; SYN and FIN take none; the close (`fin`) costs bytes on the
//! wire and nothing else (the last segment is acknowledged at once, as a FIN would be); a port pair is a flow; packets are not segmented anew when they are sent again.
//! Validated by: tests/tcp.rs.

pub mod acknowledgement;
mod config;
pub mod connection;
mod forward_rto;
pub mod incoming;
mod like_ns3;
mod loss_probe;
pub mod outgoing;
pub mod packets;
mod parameters;
mod persist;
mod persistent;
mod prr;
mod rack;
pub mod reading;
pub mod receiver;
pub mod rto;
pub mod scoreboard;
pub mod source;
#[cfg(test)]
mod tests;
mod warnings;

pub use config::{EcnEcho, Reactions, TcpConfig};
pub(super) use parameters::{Wire, read};

use super::{Ended, FlowView, Hold, HostContext, Leaving, Look, Timeouts, Transport};
use crate::congestion::window::{NO_THRESHOLD, WindowController};
use crate::engine::random::{RandomStream, mix64};
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind};
use crate::transport::settings::Settings;
use crate::units::Time;
use crate::wire::tcp::code;
use crate::workload::{FlowId, FlowSpec};
use connection::{Connection, Phase};
use incoming::Incoming;
use outgoing::Outgoing;
use packets::{segment, send_answer, signal, turned};
use persistent::record_unfinished;
use reading::whole_window;
use receiver::{Answer, Reply};
use rustc_hash::FxHashMap;

/// Timers: two to a slot, of a sender and of a receiver.
const TOKENS: u32 = 2;
const DELAYED: u32 = 1;

pub(super) const CONNECTION_PLACE: u64 = size_of::<Connection>() as u64;
/// Bytes of a connection that stays open: its two ends, their entries in tables, and what its window has taken up.
pub(super) const CONNECTION_BYTES: u64 =
    (size_of::<Connection>() + size_of::<incoming::Stream>()) as u64 + 500;

/// The TCP stack of one host.
pub struct Tcp {
    outgoing: Outgoing,
    /// Places of the connections that stay open, by the flows that opened them.
    kept: FxHashMap<FlowId, u32>,
    incoming: Incoming,
    /// Length of the flows received in full, of which packets may still come.
    received: FxHashMap<FlowId, u64>,
}

impl Tcp {
    pub fn new(nics: usize) -> Tcp {
        Tcp {
            outgoing: Outgoing::new(nics, TOKENS),
            kept: FxHashMap::default(),
            incoming: Incoming::new(TOKENS, DELAYED),
            received: FxHashMap::default(),
        }
    }

    /// A SYN has come: says what the window is.
    fn receive_syn(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let config = config_of(cx.settings, packet.profile);
        if config.recovery.reactions.repeats_syn_ack && !self.received.contains_key(&packet.flow) {
            let slot = self.incoming.place(u64::from(packet.flow), packet, config, cx);
            self.incoming.answered(slot, config, cx);
        }
        answer_syn(turned(packet), config, cx)
    }

    /// The answer to a SYN has come.
    fn receive_syn_ack(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        if !self.outgoing.is_alive(packet.sender, packet.flow) {
            return None;
        }
        let config = config_of(cx.settings, packet.profile);
        if config.recovery.reactions.repeats_syn_ack && self.outgoing[packet.sender].phase != Phase::Opening {
            self.outgoing[packet.sender].answered_again(config);
            return None;
        }
        self.outgoing.establish(packet.sender, packet, config, cx);
        // Its data may leave by another port, where routes have changed since.
        let own = self.outgoing.port(packet.sender, cx);
        let answer = Packet { hash: self.outgoing[packet.sender].hash, ..turned(packet) };
        let port = signal(code::ESTABLISHED, answer, config, cx);
        if port.is_some_and(|port| port != own) {
            cx.net.expect_departure(own);
        }
        port
    }

    /// The last packet of the handshake has come.
    fn receive_established(&mut self, packet: &Packet) -> Option<PortId> {
        let slot = self.incoming.find(u64::from(packet.flow))?;
        self.incoming.opened(slot);
        None
    }

    /// A data packet has come: it is sent back as its acknowledgement, or one follows later.
    fn receive_data(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        let config = config_of(cx.settings, packet.profile);
        let segment = segment(&packet, cx.net.waits.get(id), config);
        let known = self.incoming.find(u64::from(packet.flow));
        if known.is_none()
            && let Some(&length) = self.received.get(&packet.flow)
        {
            cx.came_again(&packet);
            let twice = if config.ack.duplicates { (segment.first, segment.end()) } else { (0, 0) };
            let answer = Answer {
                expected: length,
                blocks: Default::default(),
                echo: packet.sent,
                wait: segment.wait,
                marked: false,
                duplicate: twice,
            };
            return send_answer(id, turned(&packet), &answer, whole_window(config), config, cx);
        }
        let slot = known.unwrap_or_else(|| self.incoming.place(u64::from(packet.flow), &packet, config, cx));
        self.incoming.opened(slot);
        let before = self.incoming.answer_before(slot, &segment).and_then(|answer| {
            let id = cx.net.packets.insert(self.incoming[slot].back);
            let window = self.incoming.window(slot, config, cx);
            send_answer(id, turned(&packet), &answer, window, config, cx)
        });
        let taken = self.incoming.take(slot, &segment, config, cx);
        if taken.again {
            cx.came_again(&packet);
        }
        if taken.moved > 0 {
            cx.net.deliver(packet.flow, packet.group, taken.moved);
        }
        if taken.reply == Reply::Later {
            cx.net.discard(id);
            return before;
        }
        let answer = self.incoming.answer(slot);
        let window = self.incoming.window(slot, config, cx);
        if taken.complete {
            self.complete(slot, packet.flow, taken.expected, cx);
        }
        let port = send_answer(id, turned(&packet), &answer, window, config, cx);
        if let Some(other) = before.filter(|before| port.is_some_and(|port| port != *before)) {
            cx.net.expect_departure(other);
        }
        port.or(before)
    }

    /// A sender whose window is closed asks how wide it is.
    fn receive_window_probe(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let slot = self.incoming.find(u64::from(packet.flow))?;
        let config = config_of(cx.settings, packet.profile);
        let answer = Answer { echo: packet.sent, wait: 0, ..self.incoming.answer(slot) };
        let window = self.incoming.window(slot, config, cx);
        let id = cx.net.packets.insert(self.incoming[slot].back);
        send_answer(id, turned(packet), &answer, window, config, cx)
    }

    /// Every byte of a flow has come.
    fn complete(&mut self, slot: u32, flow: FlowId, length: u64, cx: &mut HostContext) {
        if self.arrives(slot, flow, cx) {
            return;
        }
        self.incoming.close(slot);
        self.received.insert(flow, length);
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow, host: cx.host, at_receiver: true });
        }
    }

    /// An acknowledgement has come.
    fn receive_ack(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = &cx.net.packets[id];
        let (slot, config) = (packet.sender, config_of(cx.settings, packet.profile));
        if !self.outgoing.is_alive(slot, packet.flow) {
            cx.net.discard(id);
            return None;
        }
        self.outgoing.acknowledge(slot, id, config, cx);
        let connection = &self.outgoing[slot];
        if connection.phase == Phase::Done {
            self.end(slot, cx);
        } else if connection.messages.is_some() {
            self.end_messages(slot, cx);
        }
        Some(self.outgoing.port(slot, cx))
    }

    /// Everything is acknowledged.
    fn end(&mut self, slot: u32, cx: &mut HostContext) {
        let connection = &self.outgoing[slot];
        let record = connection.record(cx.host, Some(cx.now()));
        cx.record(record);
        if record.packets_retransmitted == 0 {
            cx.net.delivered_once.push((connection.flow, connection.spec.dst, cx.transport));
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: connection.flow, host: cx.host, at_receiver: false });
        }
        let config = config_of(cx.settings, connection.spec.transport);
        if config.fin {
            let fin = Packet { seq: connection.spec.size, ..connection.header(slot, cx) };
            signal(code::FIN, fin, config, cx);
        }
        self.outgoing.close(slot, cx);
    }

    /// The next packet of a close: it is lost for good if it is lost.
    fn go_on_closing(&mut self, code: u8, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let next = Packet { seq: packet.seq, ..turned(packet) };
        signal(code, next, config_of(cx.settings, packet.profile), cx)
    }

    /// The timeout of a connection may have expired.
    fn time_out(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        if !self.outgoing.expires(slot, cx) {
            return None;
        }
        let config = config_of(cx.settings, self.outgoing[slot].spec.transport);
        let port = self.outgoing.time_out(slot, config, cx);
        if self.outgoing[slot].phase == Phase::Dead {
            self.bury(slot, cx);
        }
        port
    }

    /// A connection has died: its flow is recorded as unfinished.
    fn bury(&mut self, slot: u32, cx: &mut HostContext) {
        let connection = &self.outgoing[slot];
        record_unfinished(connection, cx);
        if connection.messages.is_some() {
            self.kept.remove(&connection.flow);
        }
        self.outgoing.close(slot, cx);
    }

    /// The connection of a flow, not yet opened.
    fn connect(&self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Connection {
        let settings = config_of(cx.settings, spec.transport);
        let mut random = RandomStream::new(cx.settings.seed, &format!("tcp.flow{flow}"));
        let path = cx.path_to(spec.dst, &settings.controller, settings.packet().into());
        let mut connection = Connection::new(flow, spec, settings, random.next_u64(), path, cx.now());
        connection.hash = flow_hash(spec.src, spec.dst, flow);
        connection.plb =
            settings.plb.map(|plb| Box::new(plb.start(mix64(cx.settings.seed) ^ u64::from(flow))));
        // Without a route the first SYN is lost, and the timeout tries again.
        let port = cx.bind(flow, spec, &mut connection.hash).unwrap_or(cx.first_port);
        connection.nic = (port - cx.first_port) as u16;
        let line = &cx.net.ports[port as usize].line;
        let under_way = line.delay + line.transmission_time(u64::from(settings.ack_header));
        connection.comes_before_writes &=
            connection.source.interval().is_some_and(|every| every <= under_way);
        connection
    }

    /// A delayed acknowledgement may be due, or the answer to a SYN once more.
    fn acknowledge_late(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        if let Some(back) = self.incoming.opens_again(slot, cx) {
            let config = config_of(cx.settings, back.profile);
            self.incoming.answered(slot, config, cx);
            return answer_syn(back, config, cx);
        }
        let (answer, back) = self.incoming.on_timer(slot, cx)?;
        let config = config_of(cx.settings, back.profile);
        let id = cx.net.packets.insert(back);
        let window = self.incoming.window(slot, config, cx);
        send_answer(id, back, &answer, window, config, cx)
    }
}

/// Answers a SYN: `back` is what goes back to where it came from.
fn answer_syn(back: Packet, config: &TcpConfig, cx: &mut HostContext) -> Option<PortId> {
    signal(code::SYN_ACK, Packet { aux: whole_window(config), ..back }, config, cx)
}

fn config_of(settings: &Settings, index: impl Into<usize>) -> &TcpConfig {
    settings.of::<TcpConfig>(index)
}

impl Transport for Tcp {
    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        if let Some(connection) = spec.connection {
            return self.start_message(connection, flow, spec, cx);
        }
        let settings = config_of(cx.settings, spec.transport);
        let connection = self.connect(flow, spec, cx);
        let slot = self.outgoing.open(connection, settings.class);
        self.outgoing.send_syn(slot, settings, cx)
    }

    #[inline(never)]
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        match cx.net.packets[id].kind {
            PacketKind::Data => self.receive_data(id, cx),
            PacketKind::Ack => self.receive_ack(id, cx),
            _ => {
                let packet = cx.net.packets[id];
                cx.net.discard(id);
                match packet.code() {
                    code::SYN => self.receive_syn(&packet, cx),
                    code::SYN_ACK => self.receive_syn_ack(&packet, cx),
                    code::ESTABLISHED => self.receive_established(&packet),
                    code::WINDOW_PROBE => self.receive_window_probe(&packet, cx),
                    code::FIN => self.go_on_closing(code::FIN_ACK, &packet, cx),
                    code::FIN_ACK => self.go_on_closing(code::CLOSED, &packet, cx),
                    _ => None,
                }
            }
        }
    }

    #[inline(never)]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        loop {
            let slot = self.outgoing.choose(port, cx)?;
            let config = config_of(cx.settings, self.outgoing[slot].spec.transport);
            // A gate that turns out to have nothing has been closed, or set to a later time.
            if let Some(packet) = self.outgoing.build(slot, config, cx) {
                return Some(cx.net.packets.insert(packet));
            }
        }
    }

    #[inline(never)]
    fn next_look(&mut self, nic: usize, paused: u8, free: Time) -> Look {
        self.outgoing.next_look(nic, paused, free)
    }

    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        match token % TOKENS {
            DELAYED => self.acknowledge_late(token / TOKENS, cx),
            _ => self.time_out(token / TOKENS, cx),
        }
    }

    fn on_wake(&mut self, port: PortId, serial: u32, cx: &HostContext) -> bool {
        self.outgoing.wake_is(cx.scheduler_of(port), serial)
    }

    fn places(&self) -> u32 {
        self.outgoing.places()
    }

    fn leaving(&self, place: u32, flows: &mut Vec<FlowId>) -> Option<Leaving> {
        let connection = self.outgoing.get(place).filter(|connection| !connection.is_over())?;
        let own = connection.messages.is_none().then_some(connection.flow);
        flows.extend(own.into_iter().chain(connection.carried().map(|message| message.flow)));
        Some(Leaving { nic: connection.nic, dst: connection.spec.dst, hash: connection.hash })
    }

    fn leave_by(&mut self, place: u32, by: Leaving, cx: &mut HostContext) {
        let config = config_of(cx.settings, self.outgoing[place].spec.transport);
        self.outgoing.leave_by(place, by, config, cx.net.now);
    }

    fn on_network_change(&mut self, cx: &mut HostContext) -> Vec<PortId> {
        let settings = cx.settings;
        self.outgoing.follow_paths(|transport| config_of(settings, transport), cx);
        Vec::new()
    }

    fn forget(&mut self, flow: FlowId) {
        self.received.remove(&flow);
    }

    fn finish(&mut self, cx: &mut HostContext) {
        for connection in self.outgoing.alive() {
            record_unfinished(connection, cx);
        }
        self.outgoing.finish(cx);
    }

    fn hold(&self, flow: FlowId) -> Option<Hold> {
        let connection = self.outgoing.alive().find(|connection| connection.carries(flow))?;
        Some(self.outgoing.hold(connection))
    }

    fn timeouts(&self, flow: FlowId) -> Option<Timeouts> {
        let connection = self.outgoing.alive().find(|connection| connection.carries(flow))?;
        let until = "until the sender's retransmission timeout expired";
        Some(Timeouts { expired: connection.expired, has_earlier: true, until })
    }

    fn view(&self, flow: FlowId, _now: Time) -> Option<FlowView> {
        let connection = self.outgoing.alive().find(|connection| connection.carries(flow))?;
        let window = &connection.window;
        let threshold = if window.ssthresh == NO_THRESHOLD { f64::INFINITY } else { window.ssthresh as f64 };
        let mut internals = vec![
            ("ssthresh_bytes", threshold),
            ("in_flight_bytes", connection.board.pipe() as f64),
            ("srtt_ns", connection.rtt.smoothed().map_or(0.0, |time| time.as_ns())),
            ("rto_ns", connection.rtt.rto().as_ns()),
        ];
        connection.law.internals(&mut internals);
        if let Some(plb) = &connection.plb {
            plb.internals(&mut internals);
        }
        Some(FlowView {
            rate_bps: window.pacing.map(|rate| rate.0 as f64),
            cwnd_bytes: Some(window.cwnd as f64),
            internals,
        })
    }
}
