//! The connections that send from one host: their places, their turns at the NICs, their timers.
//!
//! It knows nothing of flows. A transport that owns one says what a connection carries and what becomes of one that is over:
//! TCP has a connection for a flow, multipath TCP several. Which settings a connection runs under comes with each call.

use super::connection::{Connection, Phase, RESTING};
use super::packets::{acknowledgement, signal, syn_timeout};
use crate::congestion::window::WindowController;
use crate::net::PortId;
use crate::packet::{Packet, PacketId};
use crate::transport::nic::{Choice, Nic};
use crate::transport::tcp::config::TcpConfig;
use crate::transport::{Hold, HostContext, Leaving, Look};
use crate::units::Time;
use crate::wire::tcp::code;
use crate::workload::FlowId;

/// The connections that send from a host, by their places ("slots").
pub struct Outgoing {
    nics: Vec<Nic>,
    connections: Vec<Connection>,
    free: Vec<u32>,
    /// A timer's token for the connection in place `slot` is `slot * tokens`.
    tokens: u32,
}

impl std::ops::Index<u32> for Outgoing {
    type Output = Connection;
    fn index(&self, slot: u32) -> &Connection {
        &self.connections[slot as usize]
    }
}
impl std::ops::IndexMut<u32> for Outgoing {
    fn index_mut(&mut self, slot: u32) -> &mut Connection {
        &mut self.connections[slot as usize]
    }
}

impl Outgoing {
    pub fn new(nics: usize, tokens: u32) -> Outgoing {
        Outgoing {
            nics: (0..nics).map(|_| Nic::default()).collect(),
            connections: Vec::new(),
            free: Vec::new(),
            tokens,
        }
    }

    /// Takes in a connection, whose `nic` and `hash` are set; its place.
    pub fn open(&mut self, mut connection: Connection, class: u8) -> u32 {
        let slot = self.free.pop().unwrap_or(self.connections.len() as u32);
        connection.gate = self.nics[usize::from(connection.nic)].add(slot, Time::ZERO, class);
        match self.connections.get_mut(slot as usize) {
            Some(free) => {
                connection.alarm.event = free.alarm.event;
                *free = connection;
            }
            None => self.connections.push(connection),
        }
        slot
    }

    /// The run ends.
    pub fn finish(&self, cx: &mut HostContext) {
        for connection in self.alive() {
            cx.never_left(connection.spec.group, connection.outbox.len());
        }
    }

    /// The place of a connection that is over is free for another.
    pub fn close(&mut self, slot: u32, cx: &mut HostContext) {
        let connection = &self[slot];
        debug_assert!(connection.is_over());
        cx.never_left(connection.spec.group, connection.outbox.len());
        self.free.push(slot);
    }

    /// The connection in a place.
    pub fn get(&self, slot: u32) -> Option<&Connection> {
        self.connections.get(slot as usize)
    }

    /// The connection in a place is this flow's, and not over.
    pub fn is_alive(&self, slot: u32, flow: FlowId) -> bool {
        self.get(slot).is_some_and(|connection| connection.flow == flow && !connection.is_over())
    }

    /// Those that are not over.
    pub fn alive(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().filter(|connection| !connection.is_over())
    }

    /// A connection that stays open may have nothing to do: then its NIC need not look at it until it is [roused](Outgoing::rouse).
    pub fn rest(&mut self, slot: u32) {
        let connections = &mut self.connections;
        let connection = &mut connections[slot as usize];
        let unsent = connection.source.unsent(connection.board.next());
        let sends = connection.board.outstanding() + unsent > 0 || !connection.outbox.is_empty();
        if sends || connection.phase != Phase::Established || connection.gate == RESTING {
            return;
        }
        let gate = std::mem::replace(&mut connection.gate, RESTING);
        let nic = usize::from(connection.nic);
        self.nics[nic].take_out(gate, |slot, gate| connections[slot as usize].gate = gate);
    }

    /// A connection has something to do again.
    pub fn rouse(&mut self, slot: u32, config: &TcpConfig) {
        let connection = &mut self.connections[slot as usize];
        if connection.gate == RESTING {
            connection.gate = self.nics[usize::from(connection.nic)].add(slot, Time::ZERO, config.class);
        }
    }

    /// Routes have changed, which laws that depend on the paths of their flows learn.
    pub fn follow_paths<'a>(&mut self, config_of: impl Fn(u16) -> &'a TcpConfig, cx: &HostContext) {
        for connection in self.connections.iter_mut().filter(|connection| !connection.is_over()) {
            let config = config_of(connection.spec.transport);
            let law = Some(&config.controller).filter(|law| law.follows_path());
            let new = |law| cx.new_path_to(connection.spec.dst, law, config.packet().into());
            if let Some(path) = law.and_then(new) {
                connection.law.on_path(&path);
            }
        }
    }

    /// Places, free ones included.
    pub fn places(&self) -> u32 {
        self.connections.len() as u32
    }

    /// A connection leaves by another NIC from now on.
    pub fn leave_by(&mut self, slot: u32, by: Leaving, config: &TcpConfig, now: Time) {
        let connections = &mut self.connections;
        let connection = &mut connections[slot as usize];
        let (old, gate) = (usize::from(connection.nic), connection.gate);
        (connection.nic, connection.hash) = (by.nic, by.hash);
        if gate == RESTING {
            return;
        }
        self.nics[old].take_out(gate, |slot, gate| connections[slot as usize].gate = gate);
        let connection = &mut connections[slot as usize];
        let nic = &mut self.nics[usize::from(by.nic)];
        connection.gate = nic.add(slot, Time::ZERO, config.class);
        connection.update_gate(nic, now, config);
    }

    /// The port that a connection leaves by.
    pub fn port(&self, slot: u32, cx: &HostContext) -> PortId {
        cx.first_port + u32::from(self[slot].nic)
    }

    /// Sends the SYN of a connection, the first one or another.
    pub fn send_syn(&mut self, slot: u32, config: &TcpConfig, cx: &mut HostContext) -> Option<PortId> {
        let connection = &mut self[slot];
        connection.alarm.deadline = cx.now().saturating_add(syn_timeout(connection.timeouts, config));
        let syn = Packet { sent: cx.now(), ..connection.header(slot, cx) };
        self.set_alarm(slot, cx);
        signal(code::SYN, syn, config, cx)
    }

    /// The answer to a SYN has come.
    pub fn establish(&mut self, slot: u32, packet: &Packet, config: &TcpConfig, cx: &HostContext) {
        let connection = &mut self[slot];
        if connection.phase == Phase::Opening {
            connection.establish(packet.sent, u64::from(packet.aux), cx.now(), config);
            connection.watch_window(cx.now(), config);
            self.steer(slot, config, cx);
        }
    }

    /// Makes sure that an event comes by the deadline.
    #[inline(always)]
    pub fn set_alarm(&mut self, slot: u32, cx: &mut HostContext) {
        let token = slot * self.tokens;
        let alarm = &mut self[slot].alarm;
        let next = alarm.next_from(cx.net.now);
        if next < alarm.event {
            alarm.event = next;
            cx.set_timer(next, token);
        }
    }

    /// Tells the NIC whether and when a connection may send: to be called when anything has changed of it.
    pub fn steer(&mut self, slot: u32, config: &TcpConfig, cx: &HostContext) {
        let connection = &mut self.connections[slot as usize];
        connection.update_gate(&mut self.nics[usize::from(connection.nic)], cx.net.now, config);
    }

    /// Whose turn it is at a port that is free. If nobody's is, sets a wake-up for when one comes.
    #[inline]
    pub fn choose(&mut self, port: PortId, cx: &mut HostContext) -> Option<u32> {
        let number = cx.scheduler_of(port);
        let paused = cx.net.ports[port as usize].paused;
        let may = |all: &Vec<Connection>, slot: u32| cx.may_leave(port, all[slot as usize].spec.dst);
        let moved = |all: &mut Vec<Connection>, slot: u32, gate: u32| all[slot as usize].gate = gate;
        let (now, rules) = (cx.net.now, &cx.settings.rules);
        let choice = self.nics[number].choose(now, paused, rules, &mut self.connections, may, moved);
        match choice {
            Choice::Send(slot) => Some(slot),
            Choice::WaitUntil(due) => {
                self.nics[number].set_wake(due, port, cx);
                None
            }
            Choice::Nothing => None,
        }
    }

    /// Why a connection sends nothing now. Its gate opens when something of it changes; a window that the receiver has closed
    /// counts as the receiver's.
    pub fn hold(&self, connection: &Connection) -> Hold {
        if connection.phase == Phase::Opening {
            return Hold::Opening;
        }
        if connection.gate == RESTING {
            return Hold::Sent;
        }
        let next = connection.board.next();
        match self.nics[usize::from(connection.nic)].hold(connection.gate) {
            Hold::Window | Hold::Sent if connection.source.unsent(next) > 0 => {
                if connection.receivable <= next { Hold::Receiver } else { Hold::Window }
            }
            other => other,
        }
    }

    /// A connection may send now, as far as its NIC knows.
    #[inline]
    pub fn may_send(&self, slot: u32, now: Time) -> bool {
        let Connection { nic, gate, .. } = self[slot];
        gate != RESTING && self.nics[usize::from(nic)].may_send(gate, now)
    }

    /// The next data packet of a connection. If there is none, its gate has been closed, or set to a later time.
    #[inline]
    pub fn build(&mut self, slot: u32, config: &TcpConfig, cx: &mut HostContext) -> Option<Packet> {
        let connection = &mut self.connections[slot as usize];
        let now = cx.net.now;
        let sending = connection.take(now, config);
        connection.update_gate(&mut self.nics[usize::from(connection.nic)], now, config);
        let sending = sending?;
        let packet = connection.packet(slot, &sending, config, cx);
        self.set_alarm(slot, cx);
        Some(packet)
    }

    /// An acknowledgement has come of the connection in a place; afterwards it may be [done](Phase::Done).
    #[inline]
    pub fn acknowledge(&mut self, slot: u32, id: PacketId, config: &TcpConfig, cx: &mut HostContext) {
        let ack = acknowledgement(id, cx);
        cx.net.discard(id);
        self[slot].acknowledge(&ack, cx.net.now, config);
        self.steer(slot, config, cx);
        if !self[slot].is_over() {
            self.set_alarm(slot, cx);
        }
    }

    /// A timer has come; whether one of the timeouts of the connection in that place expires now.
    pub fn expires(&mut self, slot: u32, cx: &mut HostContext) -> bool {
        let Some(connection) = self.connections.get_mut(slot as usize) else { return false };
        let now = cx.now();
        if connection.alarm.event != now {
            return false;
        }
        connection.alarm.event = Time::MAX;
        if connection.is_over() || connection.alarm.next() == Time::MAX {
            return false;
        }
        if now < connection.alarm.next() {
            self.set_alarm(slot, cx);
            return false;
        }
        true
    }

    /// A timeout expires: afterwards the connection may be [dead](Phase::Dead).
    pub fn time_out(&mut self, slot: u32, config: &TcpConfig, cx: &mut HostContext) -> Option<PortId> {
        let port = self.port(slot, cx);
        let connection = &mut self[slot];
        let (before, group) = (connection.expired, connection.spec.group);
        let probed = connection.probe.wanted;
        if connection.phase == Phase::Opening {
            connection.count_timeout(cx.now());
            if connection.timeouts <= config.syn_retries {
                cx.timed_out(group);
                return self.send_syn(slot, config, cx);
            }
            connection.phase = Phase::Dead;
        } else if connection.persist.running {
            if connection.persist_expires(cx.now(), config) {
                connection.send_window_probe(slot, config, cx);
            }
        } else {
            connection.time_out(cx.now(), config);
        }
        // Timers of loss detection that come before the timeout do not count.
        if self[slot].expired > before {
            cx.timed_out(group);
        }
        if self[slot].probe.wanted && !probed {
            cx.probes_for_loss(group);
        }
        self.steer(slot, config, cx);
        if !self[slot].is_over() {
            self.set_alarm(slot, cx);
        }
        Some(port)
    }

    pub fn next_look(&mut self, nic: usize, paused: u8, free: Time) -> Look {
        self.nics[nic].next_look(paused, free)
    }

    pub fn wake_is(&mut self, nic: usize, serial: u32) -> bool {
        self.nics[nic].wake_is(serial)
    }
}
