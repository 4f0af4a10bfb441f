//! TCP: a byte stream over a network that may lose packets.
//!
//! A flow is a connection of its own: SYN, SYN-ACK, then data while the congestion window and the receiver's allow it. The
//! NIC pulls segments, in turn among its connections, and acknowledgements go before data. The receiver acknowledges every
//! second segment in order and says at once what is missing; the sender works out what is lost, sends it again, and lets a
//! [window controller](crate::congestion::window) steer the window. A flow is done when its last byte is acknowledged.
//!
//! Source: Eddy, RFC 9293, and the RFCs named in the files here.
//! Differs from the source: sequence numbers have 64 bits and begin at 0; SYN takes none; there is no FIN (the last segment is
//! acknowledged at once, as a FIN would be); a port pair is a flow; packets are not segmented anew when they are sent again.
//! Validated by: tests/tcp.rs.

mod acknowledgement;
mod connection;
mod parameters;
mod prr;
mod rate_sample;
mod receiver;
mod rto;
mod scoreboard;
mod source;
#[cfg(test)]
mod tests;

pub use parameters::{PROFILES, profile, read};

use super::rdma::nic::{Choice, Nic};
use super::{Ended, FlowView, HostContext, Look, Transport};
use crate::balance::flow_hash;
use crate::config::{Compat, EcnEcho, TcpConfig};
use crate::congestion::window::{NO_THRESHOLD, WindowController};
use crate::engine::random::RandomStream;
use crate::ideal::ideal_fct;
use crate::net::PortId;
use crate::packet::{NONE, Packet, PacketId, PacketKind, flag};
use crate::settings::Settings;
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use acknowledgement::Acknowledgement;
use connection::{Connection, Phase};
use receiver::{Answer, Incoming, Receiver, Reply};
use rustc_hash::FxHashMap;
use scoreboard::BLOCKS;

/// Codes of control packets, and of data packets that say something.
mod code {
    pub const SYN: u8 = 1;
    /// `aux`: the receiver's window.
    pub const SYN_ACK: u8 = 2;
    /// The third packet of the handshake.
    pub const ESTABLISHED: u8 = 3;
    /// Of a data packet: its sender has reduced its window (CWR).
    pub const REDUCED: u8 = 1;
}

/// Timers: two to a slot, of a sender and of a receiver.
const TOKENS: u32 = 2;
const DELAYED: u32 = 1;

/// The TCP stack of one host.
pub struct Tcp {
    nics: Vec<Nic>,
    connections: Vec<Connection>,
    free: Vec<u32>,
    /// Places in `incoming` of flows received here that are not complete.
    slots: FxHashMap<FlowId, u32>,
    incoming: Vec<Inflow>,
    free_incoming: Vec<u32>,
    /// Length of the flows received in full, of which packets may still come.
    received: FxHashMap<FlowId, u64>,
}

/// A flow that is received here.
struct Inflow {
    flow: FlowId,
    receiver: Receiver,
    /// What its acknowledgements are made of.
    back: Packet,
    /// When the delayed acknowledgement is due, and the time of the event that looks at it.
    due: Time,
    event: Time,
}

impl Tcp {
    pub fn new(nics: usize) -> Tcp {
        Tcp {
            nics: (0..nics).map(|_| Nic::default()).collect(),
            connections: Vec::new(),
            free: Vec::new(),
            slots: FxHashMap::default(),
            incoming: Vec::new(),
            free_incoming: Vec::new(),
            received: FxHashMap::default(),
        }
    }

    /// Sends a packet of the handshake.
    fn signal(&self, code: u8, packet: Packet, config: &TcpConfig, cx: &mut HostContext) -> Option<PortId> {
        let port = cx.port_to(packet.dst, packet.hash)?;
        let size = if code == code::ESTABLISHED { config.ack_header } else { config.syn_header };
        let id = cx.net.packets.insert(Packet {
            kind: PacketKind::Control,
            flags: code << flag::CODE_SHIFT | flag::NOT_CAPABLE,
            size: size as u16,
            telemetry: NONE,
            class: config.class,
            wire_class: config.class,
            transport: cx.transport,
            ..packet
        });
        cx.enqueue_control(port, id);
        Some(port)
    }

    /// Sends the SYN of a connection, the first one or another.
    fn send_syn(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let connection = &mut self.connections[slot as usize];
        let config = config_of(cx.settings, connection.spec.transport);
        let wait = Time(config.rto.syn.0.saturating_mul(1 << connection.timeouts.min(30)));
        connection.alarm.deadline = cx.now().saturating_add(wait.min(config.rto.most));
        let syn = Packet { sent: cx.now(), ..connection.header(slot, cx) };
        self.set_alarm(slot, cx);
        self.signal(code::SYN, syn, config, cx)
    }

    /// Makes sure that an event comes by the deadline.
    fn set_alarm(&mut self, slot: u32, cx: &mut HostContext) {
        let alarm = &mut self.connections[slot as usize].alarm;
        if alarm.deadline < alarm.event {
            alarm.event = alarm.deadline;
            cx.set_timer(alarm.deadline, slot * TOKENS);
        }
    }

    /// The next data packet of a connection.
    fn build(&mut self, slot: u32, cx: &mut HostContext) -> Option<PacketId> {
        let connection = &mut self.connections[slot as usize];
        let config = config_of(cx.settings, connection.spec.transport);
        let now = cx.net.now;
        let sending = connection.take(now, config);
        connection.update_gate(&mut self.nics[usize::from(connection.nic)], now, config);
        let sending = sending?;
        if connection.alarm.deadline == Time::MAX {
            connection.alarm.deadline = now.saturating_add(connection.trips.rto());
        }
        let left = connection.source.size() - connection.board.acknowledged();
        let last = sending.first + u64::from(sending.payload) == connection.source.size();
        let mut flags = if last { flag::LAST } else { 0 };
        flags |= if config.ecn == EcnEcho::Off { flag::NOT_CAPABLE } else { 0 };
        flags |= if sending.reduced { code::REDUCED << flag::CODE_SHIFT } else { 0 };
        let packet = Packet {
            seq: sending.first,
            sent: now,
            // What pFabric's queues order by.
            aux: u32::try_from(left).unwrap_or(u32::MAX),
            size: (u32::from(sending.payload) + config.header) as u16,
            payload: sending.payload,
            kind: PacketKind::Data,
            class: config.class,
            wire_class: config.class,
            flags,
            transport: cx.transport,
            ..connection.header(slot, cx)
        };
        self.set_alarm(slot, cx);
        Some(cx.net.packets.insert(packet))
    }

    /// A SYN has come: says what the window is.
    fn receive_syn(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let config = config_of(cx.settings, packet.profile);
        let answer = Packet { aux: window_of(config), ..turned(packet) };
        self.signal(code::SYN_ACK, answer, config, cx)
    }

    /// The answer to a SYN has come.
    fn receive_syn_ack(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let slot = packet.sender;
        let connection = self.connections.get_mut(slot as usize)?;
        if connection.flow != packet.flow || connection.is_over() {
            return None;
        }
        let config = config_of(cx.settings, connection.spec.transport);
        let now = cx.now();
        if connection.phase == Phase::Opening {
            connection.establish(packet.sent, u64::from(packet.aux), now, config);
            connection.update_gate(&mut self.nics[usize::from(connection.nic)], now, config);
        }
        self.signal(code::ESTABLISHED, turned(packet), config, cx)
    }

    /// A data packet has come: it is sent back as its acknowledgement, or one follows later.
    fn receive_data(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        let config = config_of(cx.settings, packet.profile);
        let segment = Incoming {
            first: packet.seq,
            payload: packet.payload,
            sent: packet.sent,
            last: packet.is_last(),
            marked: packet.marked() && config.ecn != EcnEcho::Off,
            reduced: packet.code() == code::REDUCED,
        };
        if let Some(&length) = self.received.get(&packet.flow) {
            let answer =
                Answer { expected: length, blocks: Default::default(), echo: packet.sent, marked: false };
            return self.answer_with(id, &packet, &answer, config, cx);
        }
        let slot = self.inflow(&packet, config, cx);
        let inflow = &mut self.incoming[slot as usize];
        if inflow.receiver.must_answer_before(&segment) {
            let answer = inflow.receiver.answer();
            let id = cx.net.packets.insert(inflow.back);
            self.answer_with(id, &packet, &answer, config, cx);
        }
        let inflow = &mut self.incoming[slot as usize];
        let before = inflow.receiver.expected();
        let reply = inflow.receiver.take(&segment, &config.ack);
        let expected = inflow.receiver.expected();
        if expected > before {
            cx.net.recorder.deliver(packet.flow, packet.group, expected - before);
        }
        if reply == Reply::Later {
            cx.net.discard(id);
            self.delay(slot, config, cx);
            return None;
        }
        let answer = inflow.receiver.answer();
        inflow.due = Time::MAX;
        if inflow.receiver.is_complete() {
            self.complete(slot, expected, cx);
        }
        self.answer_with(id, &packet, &answer, config, cx)
    }

    /// The place of a flow that is received here.
    #[inline]
    fn inflow(&mut self, packet: &Packet, config: &TcpConfig, cx: &HostContext) -> u32 {
        if let Some(&slot) = self.slots.get(&packet.flow) {
            return slot;
        }
        let inflow = Inflow {
            flow: packet.flow,
            receiver: Receiver::new(config.ecn),
            back: Packet {
                kind: PacketKind::Ack,
                class: config.class,
                wire_class: config.class,
                transport: cx.transport,
                telemetry: NONE,
                ..turned(packet)
            },
            due: Time::MAX,
            event: Time::MAX,
        };
        let slot = self.free_incoming.pop().unwrap_or(self.incoming.len() as u32);
        match self.incoming.get_mut(slot as usize) {
            Some(free) => *free = Inflow { event: free.event, ..inflow },
            None => self.incoming.push(inflow),
        }
        self.slots.insert(packet.flow, slot);
        slot
    }

    /// An acknowledgement is due when the delay is over.
    fn delay(&mut self, slot: u32, config: &TcpConfig, cx: &mut HostContext) {
        let inflow = &mut self.incoming[slot as usize];
        if inflow.due != Time::MAX {
            return;
        }
        inflow.due = cx.now().saturating_add(config.ack.delay);
        // An event that is on its way comes before this one is due, and looks again then.
        if inflow.event == Time::MAX || inflow.event < cx.now() {
            inflow.event = inflow.due;
            cx.set_timer(inflow.due, slot * TOKENS + DELAYED);
        }
    }

    /// Sends an acknowledgement in the place of packet `id`.
    fn answer_with(
        &mut self,
        id: PacketId,
        to: &Packet,
        answer: &Answer,
        config: &TcpConfig,
        cx: &mut HostContext,
    ) -> Option<PortId> {
        let back = turned(to);
        let Some(port) = cx.port_to(back.dst, back.hash) else {
            cx.net.discard(id);
            return None;
        };
        let blocks = answer.blocks();
        let stack = if blocks > 0 { carry_blocks(answer, blocks, cx) } else { NONE };
        let sacks = if blocks > 0 { config.sack_header + 8 * blocks as u32 } else { 0 };
        let ack = &mut cx.net.packets[id];
        debug_assert!(ack.telemetry == NONE);
        *ack = Packet {
            seq: answer.expected,
            sent: answer.echo,
            aux: window_of(config),
            size: (config.ack_header + sacks) as u16,
            kind: PacketKind::Ack,
            class: config.class,
            wire_class: config.class,
            flags: flag::NOT_CAPABLE | if answer.marked { flag::MARKED } else { 0 },
            telemetry: stack,
            transport: cx.transport,
            ..back
        };
        cx.enqueue_control(port, id);
        Some(port)
    }

    /// Every byte of a flow has come.
    fn complete(&mut self, slot: u32, length: u64, cx: &mut HostContext) {
        let flow = self.incoming[slot as usize].flow;
        self.slots.remove(&flow);
        self.free_incoming.push(slot);
        if cx.settings.duplicates {
            self.received.insert(flow, length);
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow, host: cx.host, at_receiver: true });
        }
    }

    /// An acknowledgement has come.
    fn receive_ack(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        let slot = packet.sender;
        let known =
            self.connections.get(slot as usize).is_some_and(|c| c.flow == packet.flow && !c.is_over());
        if !known {
            cx.net.discard(id);
            return None;
        }
        let ack = content(&packet, cx);
        cx.net.discard(id);
        let connection = &mut self.connections[slot as usize];
        let config = config_of(cx.settings, connection.spec.transport);
        let now = cx.net.now;
        connection.acknowledge(&ack, now, config);
        connection.update_gate(&mut self.nics[usize::from(connection.nic)], now, config);
        let port = cx.first_port + u32::from(connection.nic);
        if connection.phase == Phase::Done {
            self.end(slot, cx);
        } else {
            self.set_alarm(slot, cx);
        }
        Some(port)
    }

    /// Everything is acknowledged.
    fn end(&mut self, slot: u32, cx: &mut HostContext) {
        let connection = &self.connections[slot as usize];
        let record = connection.record(cx.host, Some(cx.now()));
        cx.record(record);
        if cx.settings.duplicates && record.packets_retransmitted == 0 {
            cx.net.delivered_once.push((connection.flow, connection.spec.dst, cx.transport));
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: connection.flow, host: cx.host, at_receiver: false });
        }
        self.free.push(slot);
    }

    /// The timeout of a connection may have expired.
    fn time_out(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let connection = self.connections.get_mut(slot as usize)?;
        let now = cx.now();
        if connection.alarm.event != now {
            return None;
        }
        connection.alarm.event = Time::MAX;
        if connection.is_over() || connection.alarm.deadline == Time::MAX {
            return None;
        }
        if now < connection.alarm.deadline {
            self.set_alarm(slot, cx);
            return None;
        }
        let config = config_of(cx.settings, connection.spec.transport);
        let port = cx.first_port + u32::from(connection.nic);
        if connection.phase == Phase::Opening {
            connection.timeouts += 1;
            if connection.timeouts <= config.retries {
                return self.send_syn(slot, cx);
            }
            connection.phase = Phase::Dead;
        } else {
            connection.time_out(now, config);
        }
        connection.update_gate(&mut self.nics[usize::from(connection.nic)], now, config);
        match connection.phase {
            Phase::Dead => self.bury(slot, cx),
            _ => self.set_alarm(slot, cx),
        }
        Some(port)
    }

    /// A connection has died: its flow is recorded as unfinished.
    fn bury(&mut self, slot: u32, cx: &mut HostContext) {
        let record = self.connections[slot as usize].record(cx.host, None);
        cx.record(record);
        self.free.push(slot);
    }

    /// A delayed acknowledgement may be due.
    fn acknowledge_late(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let inflow = self.incoming.get_mut(slot as usize)?;
        let now = cx.now();
        if inflow.event != now {
            return None;
        }
        inflow.event = Time::MAX;
        if inflow.due == Time::MAX {
            return None;
        }
        if now < inflow.due {
            inflow.event = inflow.due;
            let due = inflow.due;
            cx.set_timer(due, slot * TOKENS + DELAYED);
            return None;
        }
        inflow.due = Time::MAX;
        if !inflow.receiver.owes() {
            return None;
        }
        let (answer, back) = (inflow.receiver.answer(), inflow.back);
        let config = config_of(cx.settings, back.profile);
        let id = cx.net.packets.insert(back);
        self.answer_with(id, &turned(&back), &answer, config, cx)
    }
}

impl Connection {
    /// What all packets of a connection have in common.
    fn header(&self, slot: u32, cx: &HostContext) -> Packet {
        Packet {
            flow: self.flow,
            src: cx.host,
            dst: self.spec.dst,
            sender: slot,
            hash: self.hash,
            telemetry: NONE,
            group: self.spec.group,
            profile: self.spec.transport as u8,
            ..Packet::default()
        }
    }
}

/// The packet that goes back to where this one came from, without content.
fn turned(packet: &Packet) -> Packet {
    Packet {
        sent: packet.sent,
        flow: packet.flow,
        src: packet.dst,
        dst: packet.src,
        sender: packet.sender,
        hash: flow_hash(packet.dst, packet.src, packet.flow),
        telemetry: NONE,
        group: packet.group,
        profile: packet.profile,
        ..Packet::default()
    }
}

/// The window that a receiver tells: all of its buffer, because the application reads at once, at the resolution of the
/// window scale that it needs (RFC 7323 §2).
fn window_of(config: &TcpConfig) -> u32 {
    let buffer = config.receive_buffer.min(u64::from(u32::MAX >> 2)) as u32;
    let scale = (u32::BITS - (buffer >> 16).leading_zeros()).min(14);
    buffer >> scale << scale
}

/// Puts the blocks of an acknowledgement beside its packet.
#[inline(never)]
fn carry_blocks(answer: &Answer, blocks: usize, cx: &mut HostContext) -> u32 {
    let mut numbers = [0; 2 * BLOCKS];
    for (place, block) in numbers.chunks_exact_mut(2).zip(&answer.blocks[..blocks]) {
        place[0] = (block.0 - answer.expected) as u32;
        place[1] = (block.1 - answer.expected) as u32;
    }
    let stack = cx.net.stacks.insert();
    cx.net.stacks.carry_numbers(stack, numbers);
    stack
}

/// What an acknowledgement says.
fn content(packet: &Packet, cx: &HostContext) -> Acknowledgement {
    let mut ack = Acknowledgement {
        expected: packet.seq,
        blocks: Default::default(),
        count: 0,
        echo: packet.sent,
        window: u64::from(packet.aux),
        marked: packet.marked(),
    };
    if packet.telemetry != NONE {
        let numbers = cx.net.stacks.numbers(packet.telemetry);
        for (block, pair) in ack.blocks.iter_mut().zip(numbers.chunks_exact(2)) {
            if pair[0] < pair[1] {
                *block = (packet.seq + u64::from(pair[0]), packet.seq + u64::from(pair[1]));
                ack.count += 1;
            }
        }
    }
    ack
}

fn config_of(settings: &Settings, index: impl Into<usize>) -> &TcpConfig {
    &settings.tcp(index).config
}

impl Transport for Tcp {
    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        let settings = cx.settings.tcp(spec.transport);
        let mut random = RandomStream::new(cx.settings.seed, &format!("tcp.flow{flow}"));
        let mut connection = Connection::new(flow, spec, &settings.config, random.next_u64(), cx.now());
        connection.hash = flow_hash(spec.src, spec.dst, flow);
        connection.ideal = ideal_fct(cx.settings, &settings.framing(), cx.map, spec);
        // Without a route the first SYN is lost, and the timeout tries again.
        let port = cx.port_to(spec.dst, connection.hash).unwrap_or(cx.first_port);
        connection.nic = (port - cx.first_port) as u16;
        let slot = self.free.pop().unwrap_or(self.connections.len() as u32);
        let nic = &mut self.nics[usize::from(connection.nic)];
        connection.gate = nic.add(slot, Time::ZERO, settings.config.class);
        match self.connections.get_mut(slot as usize) {
            Some(free) => {
                connection.alarm.event = free.alarm.event;
                *free = connection;
            }
            None => self.connections.push(connection),
        }
        self.send_syn(slot, cx)
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
                    _ => None,
                }
            }
        }
    }

    #[inline(never)]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        let number = (port - cx.first_port) as usize;
        let paused = cx.net.ports[port as usize].paused;
        loop {
            let connections = &mut self.connections;
            let choice = self.nics[number].choose(cx.net.now, paused, Compat::None, |slot, gate| {
                connections[slot as usize].gate = gate;
            });
            match choice {
                Choice::Send(slot) => {
                    // A gate that turns out to have nothing has been closed, or set to a later time.
                    if let Some(id) = self.build(slot, cx) {
                        return Some(id);
                    }
                }
                Choice::WaitUntil(due) => {
                    self.nics[number].set_wake(due, port, cx);
                    return None;
                }
                Choice::Nothing => return None,
            }
        }
    }

    #[inline(never)]
    fn next_look(&mut self, nic: usize, paused: u8, free: Time, compat: Compat) -> Look {
        self.nics[nic].next_look(paused, free, compat)
    }

    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        match token % TOKENS {
            DELAYED => self.acknowledge_late(token / TOKENS, cx),
            _ => self.time_out(token / TOKENS, cx),
        }
    }

    fn on_wake(&mut self, port: PortId, serial: u32, cx: &HostContext) -> bool {
        self.nics[(port - cx.first_port) as usize].wake_is(serial)
    }

    fn forget(&mut self, flow: FlowId) {
        self.received.remove(&flow);
    }

    fn finish(&mut self, cx: &mut HostContext) {
        for connection in self.connections.iter().filter(|connection| !connection.is_over()) {
            cx.net.recorder.flow(connection.record(cx.host, None));
        }
    }

    fn view(&self, flow: FlowId) -> Option<FlowView> {
        let connection = self.connections.iter().find(|c| c.flow == flow && !c.is_over())?;
        let window = &connection.window;
        let threshold = if window.ssthresh == NO_THRESHOLD { f64::INFINITY } else { window.ssthresh as f64 };
        let mut internals = vec![
            ("ssthresh_bytes", threshold),
            ("in_flight_bytes", connection.board.pipe() as f64),
            ("srtt_ns", connection.trips.smoothed().map_or(0.0, |time| time.as_ns())),
            ("rto_ns", connection.trips.rto().as_ns()),
        ];
        connection.law.internals(&mut internals);
        Some(FlowView {
            rate_bps: window.pacing.map(|rate| rate.0 as f64),
            cwnd_bytes: Some(window.cwnd as f64),
            internals,
        })
    }
}
