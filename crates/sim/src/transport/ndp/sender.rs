//! The sending side of a host: a first window at line rate, then one packet for each pull.

use super::parameters::NdpConfig;
use super::{Ndp, PULLS};
use crate::measure::FlowRecord;
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind, flag, trimming};
use crate::transport::arrived::Arrived;
use crate::transport::paths::Paths;
use crate::transport::silence::{MAX_DOUBLINGS, Silence};
use crate::transport::{Ended, HostContext};
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A flow that is sent from here.
#[derive(Debug)]
pub struct Sender {
    /// Packets of the first window that have not left; then those in `queue`.
    first_left: u32,
    /// Packets that may leave, in order.
    queue: VecDeque<u32>,
    pub flow: FlowId,
    pub nic: u16,
    pub class: u8,
    pub done: bool,
    spec: FlowSpec,
    pub packets: u32,
    mtu: u32,
    pub hash: u32,
    paths: Paths,
    /// The first packet that has never been let go.
    next_new: u32,
    /// Packets to send again, by number.
    repeat: BTreeSet<u32>,
    /// Packets in the order in which they left, and when.
    left: VecDeque<(Time, u32)>,
    /// Of packets that are sent again: when they left last; the end of time while they have not.
    again: BTreeMap<u32, Time>,
    acknowledged: Arrived,
    /// Every packet below is acknowledged in order at the receiver.
    in_order: u32,
    /// The highest pull number that was followed.
    pulled: u32,
    pub start: Time,
    /// The timeout while nothing is received.
    pub silence: Silence,
    /// When something was received last, or else the start, and how far apart that comes at most: forgotten
    /// by an eighth a time.
    received: Time,
    apart: Time,
    sent: u64,
    /// One more than the highest packet that has left; new ones leave in order.
    highest: u32,
    timeouts: u32,
    /// Feedback since the start, and how much of it was acknowledgements of whole packets.
    answers: u32,
    whole: u32,
}

impl Sender {
    pub fn new(flow: FlowId, spec: &FlowSpec, config: &NdpConfig, now: Time) -> Sender {
        let packets = packets_of(spec.size, config);
        let first = packets.min(config.first_window);
        Sender {
            first_left: first,
            queue: VecDeque::new(),
            flow,
            nic: 0,
            class: config.class + 1,
            done: false,
            spec: *spec,
            packets,
            mtu: config.mtu,
            hash: 0,
            paths: Paths::default(),
            next_new: first,
            repeat: BTreeSet::new(),
            left: VecDeque::new(),
            again: BTreeMap::new(),
            acknowledged: Arrived::new(packets),
            in_order: 0,
            pulled: 0,
            start: now,
            silence: Silence::starting(now, config.rto),
            received: now,
            apart: Time::ZERO,
            sent: 0,
            highest: 0,
            timeouts: 0,
            answers: 0,
            whole: 0,
        }
    }

    pub fn dst(&self) -> u32 {
        self.spec.dst
    }

    pub fn may_send(&self) -> bool {
        self.first_left > 0 || !self.queue.is_empty()
    }

    /// Something is left that a pull would let go.
    pub fn has_more(&self) -> bool {
        !self.repeat.is_empty() || self.next_new < self.packets
    }

    pub fn pulled(&self) -> u32 {
        self.pulled
    }

    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    pub fn to_repeat(&self) -> usize {
        self.repeat.len()
    }

    /// The next packet that may leave, which does.
    pub fn leave(&mut self, now: Time) -> Option<u32> {
        let next = if self.first_left > 0 {
            self.first_left -= 1;
            Some(self.highest)
        } else {
            self.queue.pop_front()
        }?;
        self.sent += 1;
        match next < self.highest {
            true => *self.again.entry(next).or_default() = now,
            false => self.highest = next + 1,
        }
        self.left.push_back((now, next));
        Some(next)
    }

    /// Lets one packet go: one that is to be sent again before a new one. Whether there was any.
    pub fn let_go(&mut self) -> bool {
        let next = self.repeat.pop_first().or_else(|| {
            let new = self.next_new;
            (new < self.packets).then(|| {
                self.next_new += 1;
                new
            })
        });
        self.queue.extend(next);
        next.is_some()
    }

    /// A pull with this number: as many packets as it is beyond the last one. What cannot be sent yet is not
    /// forgotten.
    pub fn pull(&mut self, number: u32) {
        while self.pulled < number && self.let_go() {
            self.pulled += 1;
        }
    }

    /// Packet `number` has come whole, and every one below `in_order`.
    pub fn acknowledge(&mut self, number: u32, in_order: u32) {
        (self.answers, self.whole) = (self.answers.saturating_add(1), self.whole.saturating_add(1));
        self.settle(number);
        while self.in_order < in_order.min(self.packets) {
            let settled = self.in_order;
            self.in_order += 1;
            self.settle(settled);
        }
    }

    fn settle(&mut self, number: u32) {
        if self.acknowledged.take(number) {
            self.repeat.remove(&number);
            self.again.remove(&number);
        }
    }

    /// Packet `number` has come without its payload, or has come back.
    pub fn refuse(&mut self, number: u32) {
        self.answers = self.answers.saturating_add(1);
        if number < self.packets && !self.acknowledged.has(number) {
            self.repeat.insert(number);
            self.again.insert(number, Time::MAX);
        }
    }

    pub fn is_done(&self) -> bool {
        self.acknowledged.missing() == 0
    }

    /// Something was received. The pulls of a receiver that serves many flows come far apart: the timeout is
    /// at least twice the time between them, as far as it doubles.
    pub fn receives(&mut self, now: Time, rto: Time) -> Option<Time> {
        let apart = now - std::mem::replace(&mut self.received, now);
        self.apart = apart.max(Time(self.apart.0 - self.apart.0 / 8));
        let longest = rto.0 << MAX_DOUBLINGS;
        self.silence.broken(now, Time(self.apart.0.saturating_mul(2).clamp(rto.0, longest)))
    }

    /// Packets that have been let go and that were not answered.
    fn unanswered(&self) -> u32 {
        let settled = self.packets - self.acknowledged.missing();
        let known = settled + self.repeat.len() as u32 + self.queue.len() as u32 + self.first_left;
        self.next_new.saturating_sub(known)
    }

    /// A header came back: whether its packet is to be sent at once. It is if nothing will pull it, or if
    /// most packets come through, so that the path is at fault and not the receiver.
    fn resends_at_once(&self) -> bool {
        self.unanswered() <= 1 && !self.may_send() || self.answers > 8 && self.whole >= self.answers / 4
    }

    /// When the packet that left first of those that nothing answered has waited for the timeout.
    fn first_due(&mut self) -> Option<Time> {
        while let Some(&(left, number)) = self.left.front() {
            let last = self.again.get(&number).is_none_or(|&last| last == left);
            if last && !self.acknowledged.has(number) {
                return Some(left.saturating_add(self.silence.patience));
            }
            self.left.pop_front();
        }
        None
    }

    /// The timer has come; when the next one has to is `silence.event` then. Packets that nothing answered
    /// within the timeout may leave, one more where nothing was received and none is under way: a pull was
    /// lost. Whether any was let go.
    pub fn times_out(&mut self, now: Time, rto: Time) -> bool {
        let mut expired = Vec::new();
        while self.first_due().is_some_and(|due| due <= now) {
            let number = self.left.pop_front().expect("the one that is due").1;
            self.again.insert(number, Time::MAX);
            expired.push(number);
        }
        self.queue.extend(&expired);
        let silent = self.silence.over(now, rto);
        let waits = self.may_send() || self.first_due().is_some();
        let let_go = !expired.is_empty() || silent && !waits && self.let_go();
        self.silence.event = self.first_due().unwrap_or(Time::MAX).min(self.silence.deadline);
        let_go
    }

    pub fn record(&self, src: u32, finish: Option<Time>) -> FlowRecord {
        FlowRecord {
            finish,
            packets_sent: self.sent,
            packets_retransmitted: self.sent - u64::from(self.highest),
            timeouts: self.timeouts,
            ..FlowRecord::of(self.flow, &self.spec, src, self.start)
        }
    }
}

/// Packets of a flow of this number of bytes.
pub fn packets_of(size: u64, config: &NdpConfig) -> u32 {
    u32::try_from(size.div_ceil(u64::from(config.mtu)).max(1)).unwrap_or(u32::MAX)
}

impl Ndp {
    /// A flow starts here; the NIC that it leaves by.
    pub(super) fn start(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> PortId {
        let config = cx.settings.of::<NdpConfig>(spec.transport);
        let mut hash = flow_hash(spec.src, spec.dst, flow);
        // Without a route the packets go to the first port, and the timeout tries again.
        let port = cx.bind(flow, spec, &mut hash).unwrap_or(cx.first_port);
        let mut sender = Sender::new(flow, spec, config, cx.now());
        (sender.hash, sender.nic) = (hash, (port - cx.first_port) as u16);
        let event = sender.silence.event;
        let slot = self.free.pop().unwrap_or(self.flows.len() as u32);
        self.nics[usize::from(sender.nic)].insert(flow, slot);
        match self.flows.get_mut(slot as usize) {
            Some(free) => *free = sender,
            None => self.flows.push(sender),
        }
        cx.set_timer(event, slot);
        port
    }

    /// The next data packet by a NIC: one of each flow in turn.
    pub(super) fn send_next(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        let nic = cx.scheduler_of(port);
        let paused = cx.net.ports[port as usize].paused;
        let flows = &self.flows;
        let may = |flow: &Sender| paused & (1 << flow.class) == 0 && cx.may_leave(port, flow.dst());
        let slot = self.nics[nic].next(|slot| may(&flows[slot as usize]))?;
        let flow = &mut self.flows[slot as usize];
        let number = flow.leave(cx.now());
        if !flow.may_send() {
            self.nics[nic].remove(flow.flow, slot);
        }
        let number = number?;
        Some(self.build(slot, number, cx))
    }

    fn build(&mut self, slot: u32, number: u32, cx: &mut HostContext) -> PacketId {
        let flow = &mut self.flows[slot as usize];
        let config = cx.settings.of::<NdpConfig>(flow.spec.transport);
        let before = u64::from(number) * u64::from(flow.mtu);
        let payload = flow.spec.size.saturating_sub(before).min(u64::from(flow.mtu));
        let label = match config.spray {
            true => flow.paths.next_label(flow.spec.dst, flow.packets, &mut self.random, cx),
            false => flow.hash,
        };
        let packet = Packet {
            seq: u64::from(flow.packets) << 32 | u64::from(number),
            sent: cx.net.now,
            flow: flow.flow,
            src: cx.host,
            dst: flow.spec.dst,
            sender: slot,
            hash: label,
            size: (payload + u64::from(config.header)) as u16,
            payload: payload as u16,
            group: flow.spec.group,
            kind: PacketKind::Data,
            class: flow.class,
            wire_class: flow.class,
            flags: if number + 1 == flow.packets { flag::LAST } else { 0 },
            transport: cx.transport,
            profile: flow.spec.transport as u8,
            trimming: trimming::ALLOWED,
            ..Packet::default()
        };
        cx.net.packets.insert(packet)
    }

    /// An acknowledgement, of a whole packet or a trimmed one, or a pull.
    pub(super) fn receive_feedback(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let flow = self.flows.get_mut(packet.sender as usize)?;
        if flow.flow != packet.flow || flow.done {
            return None;
        }
        let config = cx.settings.of::<NdpConfig>(flow.spec.transport);
        if let Some(at) = flow.receives(cx.net.now, config.rto) {
            cx.set_timer(at, packet.sender);
        }
        let (number, in_order) = ((packet.seq >> 32) as u32, packet.seq as u32);
        match packet.kind {
            PacketKind::Ack => flow.acknowledge(packet.aux, in_order),
            PacketKind::Nack => flow.refuse(packet.aux),
            _ => {}
        }
        if flow.is_done() {
            self.end(packet.sender, cx);
            return None;
        }
        if packet.kind == PacketKind::Control || packet.code() == PULLS {
            flow.pull(number);
        }
        self.ready(packet.sender, cx)
    }

    /// A header has come back: a queue had no room for it.
    pub(super) fn receive_returned(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        cx.refused(&packet);
        cx.net.discard(id);
        let flow = self.flows.get_mut(packet.sender as usize)?;
        if flow.flow != packet.flow || flow.done {
            return None;
        }
        flow.refuse(packet.seq as u32);
        if flow.resends_at_once() {
            flow.let_go();
        }
        self.ready(packet.sender, cx)
    }

    /// A flow may have something to send now.
    fn ready(&mut self, slot: u32, cx: &HostContext) -> Option<PortId> {
        let flow = &self.flows[slot as usize];
        if !flow.may_send() {
            return None;
        }
        self.nics[usize::from(flow.nic)].insert(flow.flow, slot);
        Some(cx.first_port + u32::from(flow.nic))
    }

    /// Everything is acknowledged.
    fn end(&mut self, slot: u32, cx: &mut HostContext) {
        let flow = &mut self.flows[slot as usize];
        flow.done = true;
        flow.paths.clear();
        (flow.left, flow.again) = (VecDeque::new(), BTreeMap::new());
        self.nics[usize::from(flow.nic)].remove(flow.flow, slot);
        let record = flow.record(cx.host, Some(cx.now()));
        let (number, dst) = (flow.flow, flow.spec.dst);
        cx.record(record);
        if record.packets_retransmitted == 0 {
            cx.net.delivered_once.push((number, dst, cx.transport));
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: number, host: cx.host, at_receiver: false });
        }
        self.free.push(slot);
    }

    /// The timer of a flow has come.
    pub(super) fn timeout(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let flow = self.flows.get_mut(slot as usize)?;
        let now = cx.net.now;
        if flow.done || flow.silence.event != now {
            return None;
        }
        let config = cx.settings.of::<NdpConfig>(flow.spec.transport);
        let let_go = flow.times_out(now, config.rto);
        cx.set_timer(flow.silence.event, slot);
        if !let_go {
            return None;
        }
        flow.timeouts += 1;
        let group = flow.spec.group;
        cx.timed_out(group);
        self.ready(slot, cx)
    }
}
