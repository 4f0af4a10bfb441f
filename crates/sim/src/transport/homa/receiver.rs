//! The receiving side of a host: who is granted the next packet, at which level, and what is requested again.

use super::layout::Layout;
use super::parameters::HomaConfig;
use super::{Homa, INCOMING, PEER, Rank, code};
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketKind, flag};
use crate::transport::arrived::Arrived;
use crate::transport::silence::Silence;
use crate::transport::{Ended, HostContext};
use crate::units::{Rate, Time};
use crate::workload::FlowId;
use std::collections::BTreeSet;

const LEVELS: usize = 8;
/// A message that comes here.
#[derive(Debug)]
pub struct Incoming {
    flow: FlowId,
    /// False: its place is free.
    live: bool,
    layout: Layout,
    arrived: Arrived,
    /// The first packet that is not granted yet.
    granted: u32,
    /// Bytes on the wire of packets that may be sent and have not come.
    in_flight: u64,
    peer: u32,
    src: u32,
    /// The source's own number for it.
    sender: u32,
    group: u16,
    profile: u8,
    /// Its entry among the messages of its peer that want grants.
    rank: Option<Rank>,
    silence: Silence,
    /// Number of the last round of RESENDs.
    round: u16,
    /// By level: the number after that of the last packet that may be sent at it.
    ends: [u32; LEVELS],
}

/// A host that sends messages here.
#[derive(Debug, Default)]
pub struct Peer {
    /// Its messages that want grants; the first is in the ranking of all peers.
    messages: BTreeSet<Rank>,
    ranked: Option<Rank>,
    /// The next grant to it may be sent then.
    next_grant: Time,
    /// The timer in force comes then.
    due: Option<Time>,
}

impl Incoming {
    /// Bytes that are not granted yet.
    fn left(&self) -> u64 {
        self.layout.size - self.layout.before(self.granted)
    }

    /// The first range of packets from `from` on that may have been sent and are missing.
    fn gap(&self, from: u32) -> Option<(u32, u32)> {
        let first = self.arrived.search(from).filter(|&first| first < self.granted)?;
        let end = (first..self.granted).find(|&number| self.arrived.has(number)).unwrap_or(self.granted);
        Some((first, end))
    }

    /// All such ranges, in order.
    fn gaps(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        std::iter::successors(self.gap(0), |&(_, end)| self.gap(end))
    }

    /// Bytes that have not arrived.
    fn lacks(&self) -> u64 {
        let of = |(first, end)| self.layout.before(end) - self.layout.before(first);
        self.gaps().map(of).sum::<u64>() + self.left()
    }

    /// The lowest level at which one of its packets may wait in the network.
    fn lowest_level(&self) -> u8 {
        let first = self.arrived.search(0).unwrap_or(self.granted);
        self.ends.iter().rposition(|&end| end > first).unwrap_or(0) as u8
    }

    /// Whether nothing has come, nor been requested, for this time.
    fn is_quiet(&self, now: Time, time: Time) -> bool {
        let received = Time(self.silence.deadline.0.saturating_sub(self.silence.patience.0));
        now >= received.saturating_add(time)
    }
}

/// [`Incoming::ends`] of a message of which nothing is granted.
fn unscheduled_ends(config: &HomaConfig, layout: Layout) -> [u32; LEVELS] {
    let mut ends = [0; LEVELS];
    for number in 0..layout.unscheduled {
        let level = config.levels.unscheduled(layout.size - layout.before(number));
        ends[usize::from(level) % LEVELS] = number + 1;
    }
    ends
}

impl Homa {
    /// A packet has come: what it tells about the queue before its link.
    #[inline]
    pub(super) fn observe(&mut self, packet: &Packet, cx: &HostContext) {
        let port = &cx.net.ports[(cx.first_port + u32::from(packet.ingress)) as usize];
        let config = cx.settings.of::<HomaConfig>(packet.profile);
        if let Some(link) = self.downlinks.get_mut(usize::from(packet.ingress)) {
            link.arrived(packet, port.line.rate, config.gap(port.line.rate), cx.net.now);
        }
    }

    /// Missing packets of a message that came to the last switch before this time do not wait there any more.
    fn empty_of(&self, slot: u32, cx: &HostContext) -> Time {
        let message = &self.incoming[slot as usize];
        let config = cx.settings.of::<HomaConfig>(message.profile);
        let class = config.class(message.lowest_level());
        let ports = &cx.net.ports[cx.first_port as usize..];
        let links = self.downlinks.iter().zip(ports);
        let empty = links.map(|(link, port)| link.empty_of(class, config.gap(port.line.rate), cx.net.now));
        empty.min().unwrap_or(cx.net.now)
    }

    pub(super) fn receive_data(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let Some(slot) = self.known(packet, cx) else {
            cx.came_again(packet);
            return self.answer(packet, PacketKind::Ack, 0, cx);
        };
        let message = &mut self.incoming[slot as usize];
        let config = cx.settings.of::<HomaConfig>(packet.profile);
        if let Some(at) = message.silence.broken(cx.net.now, config.rto) {
            cx.set_timer(at, slot | INCOMING);
        }
        message.sender = packet.sender;
        let peer = message.peer;
        if message.arrived.take(packet.aux) {
            message.in_flight = message.in_flight.saturating_sub(u64::from(packet.size));
            cx.net.recorder.deliver(packet.flow, packet.group, u64::from(packet.payload));
        } else {
            cx.came_again(packet);
        }
        if message.arrived.missing() == 0 {
            return self.complete(slot, packet, cx);
        }
        if message.rank.is_none() && message.left() > 0 {
            self.place(slot, true, cx);
        }
        self.grant_to(peer, cx)
    }

    /// The message of a packet, which may be new; none if it has been received in full.
    fn known(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<u32> {
        if let Some(&slot) = self.slots.get(&packet.flow) {
            return Some(slot);
        }
        if self.received.contains(&packet.flow) {
            return None;
        }
        let config = cx.settings.of::<HomaConfig>(packet.profile);
        let layout = config.layout(packet.seq);
        let peers = &mut self.peers;
        let peer = *self.peer_of.entry(packet.src).or_insert_with(|| {
            peers.push(Peer::default());
            peers.len() as u32 - 1
        });
        let message = Incoming {
            flow: packet.flow,
            live: true,
            layout,
            arrived: Arrived::new(layout.packets),
            granted: layout.unscheduled,
            in_flight: (0..layout.unscheduled).map(|number| u64::from(layout.wire_bytes(number))).sum(),
            peer,
            src: packet.src,
            sender: packet.sender,
            group: packet.group,
            profile: packet.profile,
            rank: None,
            silence: Silence::starting(cx.net.now, config.rto),
            round: 0,
            ends: unscheduled_ends(config, layout),
        };
        let event = message.silence.event;
        let slot = self.free_incoming.pop().unwrap_or(self.incoming.len() as u32);
        match self.incoming.get_mut(slot as usize) {
            Some(free) => *free = message,
            None => self.incoming.push(message),
        }
        self.slots.insert(packet.flow, slot);
        if layout.packets > 1 {
            cx.set_timer(event, slot | INCOMING);
        }
        Some(slot)
    }

    /// Every packet of a message has come.
    fn complete(&mut self, slot: u32, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        self.place(slot, false, cx);
        let message = &mut self.incoming[slot as usize];
        message.live = false;
        let peer = message.peer;
        self.free_incoming.push(slot);
        self.slots.remove(&packet.flow);
        self.received.insert(packet.flow);
        if self.peers[peer as usize].ranked.is_some() {
            self.arm(peer, cx);
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: packet.flow, host: cx.host, at_receiver: true });
        }
        self.answer(packet, PacketKind::Ack, 0, cx)
    }

    /// Tells the sender of `packet` something of its message.
    fn answer(
        &mut self,
        packet: &Packet,
        kind: PacketKind,
        what: u8,
        cx: &mut HostContext,
    ) -> Option<PortId> {
        let answer = Packet {
            kind,
            flags: what << flag::CODE_SHIFT,
            flow: packet.flow,
            dst: packet.src,
            sender: packet.sender,
            hash: flow_hash(packet.dst, packet.src, packet.flow),
            group: packet.group,
            profile: packet.profile,
            ..Packet::default()
        };
        let config = cx.settings.of::<HomaConfig>(packet.profile);
        self.signal(answer, config, cx)
    }

    /// Puts a message where it belongs among those that want grants, or takes it out. A sender that moves up among those that
    /// are granted to is granted to at once.
    fn place(&mut self, slot: u32, wants: bool, cx: &mut HostContext) {
        let message = &mut self.incoming[slot as usize];
        let left = message.left();
        let rank = (wants && left > 0).then_some((left, message.flow, slot));
        if rank == message.rank {
            return;
        }
        let config = cx.settings.of::<HomaConfig>(message.profile);
        let peer = message.peer;
        let of = &mut self.peers[peer as usize];
        if let Some(old) = message.rank {
            of.messages.remove(&old);
        }
        of.messages.extend(rank);
        message.rank = rank;
        let (old, best) = (of.ranked, of.messages.first().copied());
        if best == old {
            return;
        }
        of.ranked = best;
        if let Some(old) = old {
            self.ranking.remove(&old);
        }
        self.ranking.extend(best);
        // Only who has more left than before makes room.
        let last = config.levels.overcommit.saturating_sub(1) as usize;
        if old.is_some() && best.is_none_or(|best| Some(best) > old) {
            if let Some(&(_, _, moved)) = self.ranking.iter().nth(last) {
                let moved = self.incoming[moved as usize].peer;
                if moved != peer {
                    self.arm(moved, cx);
                }
            }
        }
    }

    /// Sets the timer of a peer's next grant.
    fn arm(&mut self, peer: u32, cx: &mut HostContext) {
        let of = &mut self.peers[peer as usize];
        let at = of.next_grant.max(cx.net.now);
        if of.due != Some(at) {
            of.due = Some(at);
            cx.set_timer(at, peer | PEER);
        }
    }

    pub(super) fn peer_timer(&mut self, peer: u32, cx: &mut HostContext) -> Option<PortId> {
        let of = self.peers.get_mut(peer as usize)?;
        if of.due != Some(cx.net.now) {
            return None;
        }
        of.due = None;
        self.grant_to(peer, cx)
    }

    /// Grants a packet to the best message of a peer, if it is among those that are granted to, has not a round trip's bytes
    /// in flight, and the last grant's packet has had its time on the link.
    fn grant_to(&mut self, peer: u32, cx: &mut HostContext) -> Option<PortId> {
        let now = cx.net.now;
        let of = &self.peers[peer as usize];
        let best = of.ranked?;
        let slot = best.2;
        let message = &self.incoming[slot as usize];
        let config = cx.settings.of::<HomaConfig>(message.profile);
        if message.in_flight >= config.rtt_bytes {
            return None;
        }
        let granting = config.levels.overcommit as usize;
        let place = self.ranking.iter().take(granting).position(|rank| *rank == best)?;
        if of.next_grant > now {
            self.arm(peer, cx);
            return None;
        }
        let active = self.ranking.len().min(1 << 20) as u32;
        let mut level = config.levels.scheduled(config.priorities, place as u32, active);
        let left = message.left();
        if message.layout.wire_of(left) <= config.rtt_bytes {
            level = level.min(config.levels.unscheduled(left));
        }
        let number = message.granted;
        let wire = message.layout.wire_bytes(number);
        let time = self.rate(cx).transmission_time(u64::from(wire));
        let message = &mut self.incoming[slot as usize];
        if message.in_flight == 0
            && let Some(at) = message.silence.broken(now, config.rto)
        {
            cx.set_timer(at, slot | INCOMING);
        }
        message.granted += 1;
        message.ends[usize::from(level) % LEVELS] = message.granted;
        message.in_flight += u64::from(wire);
        let more = message.in_flight < config.rtt_bytes;
        let grant = Packet {
            kind: PacketKind::Control,
            flags: code::GRANT << flag::CODE_SHIFT,
            seq: u64::from(level) << 32 | u64::from(message.granted),
            flow: message.flow,
            dst: message.src,
            sender: message.sender,
            hash: flow_hash(cx.host, message.src, message.flow),
            group: message.group,
            profile: message.profile,
            ..Packet::default()
        };
        self.peers[peer as usize].next_grant = now.saturating_add(time);
        self.place(slot, true, cx);
        // Another message of the peer may be the best now.
        let of = &self.peers[peer as usize];
        if of.ranked.is_some_and(|best| best.2 != slot || more) {
            self.arm(peer, cx);
        }
        self.signal(grant, config, cx)
    }

    /// What the links of this host carry together.
    fn rate(&self, cx: &HostContext) -> Rate {
        let first = cx.first_port as usize;
        Rate(cx.net.ports[first..first + self.nics.len()].iter().map(|port| port.line.rate.0).sum())
    }

    /// The sender has shorter messages to send.
    pub(super) fn receive_busy(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let slot = *self.slots.get(&packet.flow)?;
        let message = &mut self.incoming[slot as usize];
        let config = cx.settings.of::<HomaConfig>(message.profile);
        if let Some(at) = message.silence.broken(cx.net.now, config.rto) {
            cx.set_timer(at, slot | INCOMING);
        }
        None
    }

    /// A sender has received nothing for its message. If it has sent all, or no packet of it has come, what is missing is
    /// requested.
    pub(super) fn receive_need_ack(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let known = self.slots.contains_key(&packet.flow);
        let Some(slot) = self.known(packet, cx) else {
            return self.answer(packet, PacketKind::Ack, code::NEED_ACK, cx);
        };
        let config = cx.settings.of::<HomaConfig>(packet.profile);
        let waits = config.may_wait(packet.sent, self.empty_of(slot, cx));
        let (now, message) = (cx.net.now, &mut self.incoming[slot as usize]);
        if !known && message.layout.packets == 1 {
            cx.set_timer(message.silence.event, slot | INCOMING);
        }
        if waits {
            return self.answer(packet, PacketKind::Control, code::KNOWN, cx);
        }
        if known {
            // Packets that came, or were requested, not long ago may be followed by others, which are late and not lost.
            if message.left() > 0 || !message.is_quiet(now, config.rto) {
                return self.answer(packet, PacketKind::Control, code::KNOWN, cx);
            }
            if let Some(at) = message.silence.broken(now, config.rto) {
                cx.set_timer(at, slot | INCOMING);
            }
        }
        self.ask_again(slot, cx)
    }

    /// Nothing of a message has come for long.
    pub(super) fn incoming_timer(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let message = self.incoming.get_mut(slot as usize)?;
        let now = cx.net.now;
        if !message.live || message.silence.event != now {
            return None;
        }
        let config = cx.settings.of::<HomaConfig>(message.profile);
        let (deadline, half) = (message.silence.deadline, Time(config.rto.0 / 2));
        // What waits for its turn before this host's link is not lost: nothing is requested before it would have come.
        if now >= deadline && self.empty_of(slot, cx).saturating_add(half) < deadline {
            let event = now.saturating_add(half);
            self.incoming[slot as usize].silence.event = event;
            cx.set_timer(event, slot | INCOMING);
            return None;
        }
        let silence = &mut self.incoming[slot as usize].silence;
        let expired = silence.over(now, config.rto);
        cx.set_timer(silence.event, slot | INCOMING);
        if expired { self.ask_again(slot, cx) } else { None }
    }

    /// Asks for all packets that are missing, with one RESEND for each range, and grants to others until a packet of the
    /// message comes.
    ///
    /// From here on these packets are under way again, and count as such: a round asks for no more than a message may have
    /// in flight, and their arrivals bring its grants back.
    fn ask_again(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let empty = self.empty_of(slot, cx);
        let message = &mut self.incoming[slot as usize];
        let mut gap = message.gap(0)?;
        message.round = message.round.wrapping_add(1);
        let config = cx.settings.of::<HomaConfig>(message.profile);
        let level = config.levels.unscheduled(message.lacks());
        message.ends[usize::from(level) % LEVELS] = message.granted;
        let resend = Packet {
            sent: empty,
            kind: PacketKind::Control,
            flags: code::RESEND << flag::CODE_SHIFT,
            flow: message.flow,
            dst: message.src,
            sender: message.sender,
            hash: flow_hash(cx.host, message.src, message.flow),
            group: message.group,
            profile: message.profile,
            ..Packet::default()
        };
        let above = u64::from(message.round) << 40 | u64::from(level) << 32;
        self.place(slot, false, cx);
        loop {
            let (first, end) = gap;
            let port = self.signal(Packet { seq: above | u64::from(end), aux: first, ..resend }, config, cx);
            match self.incoming[slot as usize].gap(end) {
                Some(next) => gap = next,
                None => return port,
            }
        }
    }
}
