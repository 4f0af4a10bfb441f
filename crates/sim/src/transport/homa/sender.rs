//! The sending side of a host: the shortest remaining message sends, unscheduled packets first, then what is granted.

use super::layout::Layout;
use super::levels::Levels;
use super::parameters::HomaConfig;
use super::{Homa, Rank, code};
use crate::measure::FlowRecord;
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind, flag};
use crate::transport::silence::Silence;
use crate::transport::{Ended, HostContext, Leaving};
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use std::collections::{BTreeSet, VecDeque};

/// A message that is sent from here.
#[derive(Debug)]
pub struct Outgoing {
    pub flow: FlowId,
    pub done: bool,
    layout: Layout,
    /// The first packet that has never left, and the first one that may not leave yet.
    next: u32,
    pub granted: u32,
    /// Ends of ranges of granted packets and their levels, in order.
    levels: VecDeque<(u32, u8)>,
    /// Packets to send again, and their level.
    repeat: BTreeSet<u32>,
    repeat_level: u8,
    /// The level of the packet that would leave next, and its class.
    level: u8,
    class: u8,
    /// Its entry among those with packets that may leave.
    rank: Option<Rank>,
    nic: u16,
    hash: u32,
    spec: FlowSpec,
    pub start: Time,
    silence: Silence,
    sent: u64,
    timeouts: u32,
    /// How often it requested an answer although it did not wait for grants.
    pub asks: u32,
    /// The last rounds of RESENDs that were counted as a timeout, and that were answered.
    counted: u16,
    answered: u16,
    /// The last round requested packets that may still be waiting: none of them was sent again.
    late: bool,
    /// The last packet left then.
    last_left: Time,
    /// It requested an acknowledgement; and after the last packet had left, and no answer has come since.
    asked: bool,
    unanswered: bool,
}

impl Outgoing {
    pub fn new(flow: FlowId, spec: &FlowSpec, config: &HomaConfig, now: Time) -> Outgoing {
        let layout = config.layout(spec.size);
        Outgoing {
            flow,
            done: false,
            layout,
            next: 0,
            granted: layout.unscheduled,
            levels: VecDeque::new(),
            repeat: BTreeSet::new(),
            repeat_level: 0,
            level: 0,
            class: 0,
            rank: None,
            nic: 0,
            hash: 0,
            spec: *spec,
            start: now,
            silence: Silence::starting(now, config.rto),
            sent: 0,
            timeouts: 0,
            asks: 0,
            counted: 0,
            answered: 0,
            late: false,
            last_left: now,
            asked: false,
            unanswered: false,
        }
    }

    pub fn leaving(&self) -> Leaving {
        Leaving { nic: self.nic, dst: self.spec.dst, hash: self.hash }
    }

    /// It leaves by another NIC; which it was, and its entry there.
    pub fn leave_by(&mut self, by: Leaving) -> (u16, Option<Rank>) {
        self.hash = by.hash;
        (std::mem::replace(&mut self.nic, by.nic), self.rank)
    }

    pub fn class(&self) -> u8 {
        self.class
    }

    /// Bytes that have not left, and those that have to leave again.
    pub fn left(&self) -> u64 {
        let again: u64 = self.repeat.iter().map(|&number| u64::from(self.layout.payload(number))).sum();
        self.layout.size - self.layout.before(self.next) + again
    }

    pub fn to_repeat(&self) -> usize {
        self.repeat.len()
    }

    /// A request for an acknowledgement has turned out to be a timeout.
    pub fn count_unanswered(&mut self, cx: &mut HostContext) {
        if std::mem::take(&mut self.unanswered) {
            self.timeouts += 1;
            cx.timed_out(self.spec.group);
        }
    }

    pub fn waits_for_grants(&self) -> bool {
        self.next < self.layout.packets
    }

    /// The packet that would leave next: the first that may.
    #[inline]
    pub fn next_to_send(&self) -> Option<u32> {
        let repeated = self.repeat.first().copied();
        repeated.or_else(|| (self.next < self.granted).then_some(self.next))
    }

    /// The level of the packet that would leave next.
    fn level_of_next(&mut self, levels: &Levels) -> u8 {
        if !self.repeat.is_empty() {
            return self.repeat_level;
        }
        if self.next < self.layout.unscheduled {
            return levels.unscheduled(self.layout.size - self.layout.before(self.next));
        }
        while self.levels.front().is_some_and(|&(end, _)| end <= self.next) {
            self.levels.pop_front();
        }
        self.levels.front().map_or(0, |&(_, level)| level)
    }

    /// Packets below `end` may leave, the new ones at this level.
    pub fn grant(&mut self, end: u32, level: u8) {
        let end = end.min(self.layout.packets);
        if end > self.granted {
            self.granted = end;
            self.levels.push_back((end, level));
        }
    }

    /// The next packet leaves.
    pub fn leave(&mut self) -> Option<u32> {
        let number = self.next_to_send()?;
        if !self.repeat.remove(&number) {
            self.next += 1;
        }
        self.sent += 1;
        Some(number)
    }

    /// The receiver misses packets from `first` to below `end`. Whether some of them have left and are sent again, and
    /// whether some still wait, here or in the network.
    pub fn resend(&mut self, first: u32, end: u32, level: u8) -> (bool, bool) {
        let end = end.min(self.layout.packets);
        self.grant(end, level);
        if self.late {
            return (false, true);
        }
        self.repeat.extend(first..end.min(self.next));
        self.repeat_level = level;
        (first < self.next, end > self.next)
    }

    pub fn record(&self, src: u32, finish: Option<Time>) -> FlowRecord {
        FlowRecord {
            finish,
            packets_sent: self.sent,
            packets_retransmitted: self.sent - u64::from(self.next),
            timeouts: self.timeouts,
            ..FlowRecord::of(self.flow, &self.spec, src, self.start)
        }
    }
}

impl Homa {
    /// A message starts here; the NIC that it leaves by.
    pub(super) fn start(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> PortId {
        let config = cx.settings.of::<HomaConfig>(spec.transport);
        let mut hash = flow_hash(spec.src, spec.dst, flow);
        // Without a route the packets go to the first port, and are requested again.
        let port = cx.bind(flow, spec, &mut hash).unwrap_or(cx.first_port);
        let mut message = Outgoing::new(flow, spec, config, cx.now());
        (message.hash, message.nic) = (hash, (port - cx.first_port) as u16);
        let event = message.silence.event;
        let slot = self.free_outgoing.pop().unwrap_or(self.outgoing.len() as u32);
        match self.outgoing.get_mut(slot as usize) {
            Some(free) => *free = message,
            None => self.outgoing.push(message),
        }
        cx.set_timer(event, slot);
        self.rank(slot, config);
        port
    }

    /// Puts a message where it belongs among those of its NIC; the NIC if it may send.
    fn rank(&mut self, slot: u32, config: &HomaConfig) -> Option<u16> {
        let message = &mut self.outgoing[slot as usize];
        let may = !message.done && message.next_to_send().is_some();
        let rank = may.then(|| (message.left(), message.flow, slot));
        if may {
            message.level = message.level_of_next(&config.levels);
            message.class = config.class(message.level);
        }
        if rank != message.rank {
            let nic = &mut self.nics[usize::from(message.nic)];
            if let Some(old) = message.rank {
                nic.remove(&old);
            }
            nic.extend(rank);
            message.rank = rank;
        }
        may.then_some(message.nic)
    }

    /// The next data packet by a NIC: of the message with the fewest bytes left.
    pub(super) fn send_next(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        let nic = cx.scheduler_of(port);
        let paused = cx.net.ports[port as usize].paused;
        let outgoing = &self.outgoing;
        let may = |rank: &&Rank| {
            let message = &outgoing[rank.2 as usize];
            paused & (1 << message.class) == 0 && cx.may_leave(port, message.spec.dst)
        };
        let slot = self.nics[nic].iter().find(may)?.2;
        let message = &mut self.outgoing[slot as usize];
        let class = message.class;
        let number = message.leave()?;
        message.last_left = cx.net.now;
        let config = cx.settings.of::<HomaConfig>(message.spec.transport);
        let payload = message.layout.payload(number);
        let packet = Packet {
            seq: message.layout.size,
            sent: cx.net.now,
            aux: number,
            flow: message.flow,
            src: cx.host,
            dst: message.spec.dst,
            sender: slot,
            hash: message.hash,
            size: message.layout.wire_bytes(number) as u16,
            payload: payload as u16,
            group: message.spec.group,
            kind: PacketKind::Data,
            class,
            wire_class: class,
            flags: if number + 1 == message.layout.packets { flag::LAST } else { 0 },
            transport: cx.transport,
            profile: message.spec.transport as u8,
            ..Packet::default()
        };
        self.rank(slot, config);
        let hash = self.label_for(packet.hash, config.spray);
        Some(cx.net.packets.insert(Packet { hash, ..packet }))
    }

    /// The message that a packet from its receiver is about, which breaks the silence.
    fn find(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<&mut Outgoing> {
        let message = self.outgoing.get_mut(packet.sender as usize)?;
        if message.flow != packet.flow || message.done {
            return None;
        }
        let config = cx.settings.of::<HomaConfig>(message.spec.transport);
        if let Some(at) = message.silence.broken(cx.net.now, config.rto) {
            cx.set_timer(at, packet.sender);
        }
        Some(message)
    }

    pub(super) fn receive_grant(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let message = self.find(packet, cx)?;
        message.grant(packet.seq as u32, (packet.seq >> 32) as u8);
        let config = cx.settings.of::<HomaConfig>(message.spec.transport);
        self.rank(packet.sender, config).map(|nic| cx.first_port + u32::from(nic))
    }

    /// The receiver misses packets. Where another message goes first, or they wait for their turn already, it learns so, once
    /// in a round of RESENDs.
    pub(super) fn receive_resend(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let message = self.find(packet, cx)?;
        let (end, level, round) = (packet.seq as u32, (packet.seq >> 32) as u8, (packet.seq >> 40) as u16);
        let config = cx.settings.of::<HomaConfig>(message.spec.transport);
        let answers = std::mem::replace(&mut message.answered, round) != round;
        if answers {
            message.late = config.may_wait(message.last_left, packet.sent);
        }
        if message.late {
            message.unanswered = false;
        }
        message.count_unanswered(cx);
        let (left, waiting) = message.resend(packet.aux, end, level);
        // Packets that wait here until shorter messages have left are not late because of a timeout.
        let timed_out = left && message.counted != round;
        if timed_out {
            message.timeouts += 1;
            message.counted = round;
        }
        let (nic, hash, group) = (message.nic, message.hash, packet.group);
        if timed_out {
            cx.timed_out(group);
        }
        self.rank(packet.sender, config);
        let first = self.nics[usize::from(nic)].first().is_some_and(|rank| rank.2 == packet.sender);
        if answers && (waiting || !first) {
            self.tell_receiver(packet, hash, code::BUSY, 0, config, cx);
        }
        Some(cx.first_port + u32::from(nic))
    }

    /// Sends the receiver of a message a packet without data. It leaves by the message's own NIC.
    fn tell_receiver(
        &mut self,
        about: &Packet,
        hash: u32,
        what: u8,
        seq: u64,
        config: &HomaConfig,
        cx: &mut HostContext,
    ) -> Option<PortId> {
        let packet = Packet {
            kind: PacketKind::Control,
            flags: what << flag::CODE_SHIFT,
            seq,
            sent: about.sent,
            flow: about.flow,
            dst: about.src,
            sender: about.sender,
            hash,
            group: about.group,
            profile: about.profile,
            ..Packet::default()
        };
        self.signal(packet, config, cx)
    }

    /// The receiver has all of a message, or knows it.
    pub(super) fn receive_news(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let message = self.find(packet, cx)?;
        // What the receiver knows, or has by itself, was only late.
        if packet.code() != code::NEED_ACK {
            message.unanswered = false;
        }
        message.count_unanswered(cx);
        if packet.kind != PacketKind::Ack {
            return None;
        }
        message.done = true;
        message.repeat.clear();
        let record = message.record(cx.host, Some(cx.net.now));
        let (flow, dst, once) = (message.flow, message.spec.dst, !message.asked);
        let config = cx.settings.of::<HomaConfig>(message.spec.transport);
        self.rank(packet.sender, config);
        cx.record(record);
        if once && record.packets_retransmitted == 0 {
            cx.net.delivered_once.push((flow, dst, cx.transport));
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow, host: cx.host, at_receiver: false });
        }
        self.free_outgoing.push(packet.sender);
        None
    }

    /// A sender has received nothing for a timeout: it asks, unless packets of the message wait here.
    pub(super) fn outgoing_timer(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let message = self.outgoing.get_mut(slot as usize)?;
        let now = cx.net.now;
        if message.done || message.silence.event != now {
            return None;
        }
        let config = cx.settings.of::<HomaConfig>(message.spec.transport);
        let expired = message.silence.over(now, config.rto);
        cx.set_timer(message.silence.event, slot);
        if !expired || message.rank.is_some() {
            return None;
        }
        // One that waits for grants is not late because of a timeout, nor is one whose receiver answers that it knows it.
        message.count_unanswered(cx);
        message.unanswered = !message.waits_for_grants();
        message.asked = true;
        message.asks += u32::from(!message.waits_for_grants());
        let (hash, size) = (message.hash, message.layout.size);
        let about = Packet {
            flow: message.flow,
            sent: message.last_left,
            src: message.spec.dst,
            sender: slot,
            group: message.spec.group,
            profile: message.spec.transport as u8,
            ..Packet::default()
        };
        self.tell_receiver(&about, hash, code::NEED_ACK, size, config, cx)
    }
}
