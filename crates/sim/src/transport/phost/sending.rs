//! The sending side of a host: requests go out, tokens come in and are spent.

use super::super::{Ended, HostContext};
use super::PhostConfig;
use super::destination::scaled;
use super::ranking::Rank;
use super::source::{SourceFlow, Token, packets_of};
use super::{Phost, TokenLife, code};
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind, flag};
use crate::units::{Rate, Time};
use crate::workload::{FlowId, FlowSpec};

impl Phost {
    /// A flow starts here; the NIC that it leaves by.
    pub(super) fn start(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> PortId {
        let config = cx.settings.of::<PhostConfig>(spec.transport);
        let mut hash = flow_hash(spec.src, spec.dst, flow);
        let port = cx.bind(flow, spec, &mut hash).unwrap_or(cx.first_port);
        let nic = (port - cx.first_port) as u16;
        let packets = packets_of(spec.size, config);
        let policy = self.nics[usize::from(nic)].policy();
        let rank = Rank::new(policy, spec.deadline.unwrap_or(Time::MAX), packets, self.started);
        self.started = self.started.wrapping_add(1);
        let now = cx.net.now;
        let mut source = SourceFlow::new(flow, spec, config, rank, now);
        source.hash = hash;
        source.nic = nic;
        let free = config.free_tokens_of(packets);
        let time = packet_time(port, config.packet(), cx);
        let life = scaled(time, f64::from(free) + config.token_life);
        for packet in 0..free {
            source.take(Token { expires: now.saturating_add(life), packet, number: packet });
        }
        source.ranked = free > 0;
        let event = source.silence.event;
        let slot = self.free_sources.pop().unwrap_or(self.sources.len() as u32);
        if source.ranked {
            self.nics[usize::from(nic)].insert(source.group, rank, slot);
        }
        if slot as usize == self.sources.len() {
            self.sources.push(source);
        } else {
            self.sources[slot as usize] = source;
        }
        cx.set_timer(event, slot);
        self.request(slot, cx);
        port
    }

    fn request(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let time = self.source_time(&self.sources[slot as usize], cx);
        let flow = &mut self.sources[slot as usize];
        flow.request();
        let repeated = if flow.requests > 1 { flag::LAST } else { 0 };
        let packet = Packet {
            kind: PacketKind::Control,
            flags: code::REQUEST << flag::CODE_SHIFT | repeated,
            seq: u64::from(flow.packets),
            sent: flow.deadline.unwrap_or(Time::MAX),
            aux: u32::try_from(time.0).unwrap_or(u32::MAX),
            flow: flow.flow,
            dst: flow.dst,
            sender: slot,
            hash: flow.hash,
            group: flow.group,
            profile: flow.transport as u8,
            ..Packet::default()
        };
        let settings = cx.settings.of::<PhostConfig>(flow.transport);
        self.signal(packet, settings, cx)
    }

    /// Time of a full packet of a flow here, by all links that it may leave by; while an event slows a link, by
    /// the rate that it has afterwards, as the destination keeps this time for the flow.
    fn source_time(&self, flow: &SourceFlow, cx: &HostContext) -> Time {
        let rate = cx.rate_by(cx.first_port + u32::from(flow.nic), flow.dst);
        let packet = cx.settings.of::<PhostConfig>(flow.transport).packet();
        Rate(rate.0.max(1)).transmission_time(u64::from(packet))
    }

    /// A token has come to the source.
    pub(super) fn receive_token(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let flow = self.sources.get_mut(packet.sender as usize)?;
        if flow.flow != packet.flow || flow.done {
            return None;
        }
        let now = cx.net.now;
        let config = cx.settings.of::<PhostConfig>(flow.transport);
        let port = cx.first_port + u32::from(flow.nic);
        let rate = cx.net.ports[port as usize].line.rate;
        if self.life.of != (rate, flow.transport) {
            let life = scaled(packet_time(port, config.packet(), cx), config.token_life);
            self.life = TokenLife { of: (rate, flow.transport), life };
        }
        let life = self.life.life;
        if let Some(at) = flow.silence.broken(now, config.request_timeout) {
            cx.set_timer(at, packet.sender);
        }
        let first = !std::mem::replace(&mut flow.known, true);
        count(flow.answered(first && packet.is_last()), flow.group, cx);
        flow.rounds = flow.rounds.max(packet.sent.0 as u32);
        flow.take(Token {
            expires: now.saturating_add(life),
            packet: packet.seq as u32,
            number: (packet.seq >> 32) as u32,
        });
        let rank = flow.rank.with_remaining(packet.aux);
        let ranking = &mut self.nics[usize::from(flow.nic)];
        if !flow.ranked {
            flow.ranked = true;
            ranking.insert(flow.group, rank, packet.sender);
        } else if rank != flow.rank {
            ranking.rerank(flow.group, flow.rank, rank);
        }
        flow.rank = rank;
        Some(port)
    }

    /// The destination knows a flow that must wait for its turn.
    pub(super) fn receive_notice(&mut self, id: PacketId, cx: &mut HostContext) {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let flow = self.sources.get_mut(packet.sender as usize);
        if let Some(flow) = flow.filter(|flow| flow.flow == packet.flow) {
            let first = !std::mem::replace(&mut flow.known, true);
            count(flow.answered(first && packet.is_last()), flow.group, cx);
        }
    }

    /// A flow has been acknowledged.
    pub(super) fn receive_ack(&mut self, id: PacketId, cx: &mut HostContext) {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let Some(flow) = self.sources.get_mut(packet.sender as usize) else { return };
        if flow.flow != packet.flow || flow.done {
            return;
        }
        flow.done = true;
        // What answers a request, whose number has no high half, was not answered when the data came.
        let to_request = packet.seq >> 32 == 0;
        count(flow.answered(to_request), flow.group, cx);
        if std::mem::take(&mut flow.ranked) {
            self.nics[usize::from(flow.nic)].remove(flow.group, flow.rank);
        }
        let record = flow.record(cx.host, Some(cx.net.now));
        // Of what was sent nothing is left on its way: the destination may forget the flow.
        let once = record.packets_retransmitted == 0 && flow.requests == 1 && packet.is_last();
        cx.record(record);
        if once {
            cx.net.delivered_once.push((flow.flow, flow.dst, cx.transport));
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: flow.flow, host: cx.host, at_receiver: false });
        }
        self.free_sources.push(packet.sender);
    }

    /// The next data packet by a NIC: of the first flow that has a live token.
    pub(super) fn spend(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        let nic = cx.scheduler_of(port);
        let (now, paused) = (cx.net.now, cx.net.ports[port as usize].paused);
        loop {
            let sources = &self.sources;
            let may = |flow: &SourceFlow| paused & (1 << flow.class) == 0 && cx.may_leave(port, flow.dst);
            let slot = self.nics[nic].first(|slot| may(&sources[slot as usize]))?;
            let flow = &mut self.sources[slot as usize];
            let token = flow.spend(now);
            if !flow.has_tokens() {
                flow.ranked = false;
                self.nics[nic].remove(flow.group, flow.rank);
            }
            let Some(token) = token else { continue };
            if flow.count(token.packet) {
                cx.timed_out(flow.group);
            }
            self.nics[nic].served(flow.group);
            return Some(self.build(slot, token, port, cx));
        }
    }

    fn build(&mut self, slot: u32, token: Token, port: PortId, cx: &mut HostContext) -> PacketId {
        let flow = &self.sources[slot as usize];
        let config = cx.settings.of::<PhostConfig>(flow.transport);
        let before = u64::from(token.packet) * u64::from(config.mtu);
        let payload = flow.size.saturating_sub(before).min(u64::from(config.mtu));
        let packet = Packet {
            seq: u64::from(flow.packets) << 32 | u64::from(token.packet),
            sent: cx.net.now,
            flow: flow.flow,
            src: cx.host,
            dst: flow.dst,
            sender: slot,
            hash: flow.hash,
            aux: token.number,
            size: (payload + u64::from(config.header)) as u16,
            payload: payload as u16,
            group: flow.group,
            kind: PacketKind::Data,
            class: flow.class,
            wire_class: flow.class,
            flags: if token.packet + 1 == flow.packets { flag::LAST } else { 0 },
            transport: cx.transport,
            profile: flow.transport as u8,
            ..Packet::default()
        };
        let hash = self.label_for(packet.dst, port, packet.hash, config.spray, cx);
        cx.net.packets.insert(Packet { hash, ..packet })
    }

    pub(super) fn request_timer(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let flow = self.sources.get_mut(slot as usize)?;
        let now = cx.net.now;
        if flow.done || flow.silence.event != now {
            return None;
        }
        let repeats = flow.silence.over(now, cx.settings.of::<PhostConfig>(flow.transport).request_timeout);
        cx.set_timer(flow.silence.event, slot);
        if !repeats || flow.is_looked_after() {
            return None;
        }
        self.request(slot, cx)
    }

    /// The run ends: what is not done is recorded so. Requests that nothing answered count as timeouts.
    pub(super) fn record_unfinished(&mut self, cx: &mut HostContext) {
        for flow in self.sources.iter_mut().filter(|flow| !flow.done) {
            count(flow.answered(true), flow.group, cx);
            cx.net.recorder.flow(flow.record(cx.host, None));
        }
    }
}

/// This number of timeouts of a flow of a group have expired.
fn count(timeouts: u32, group: u16, cx: &mut HostContext) {
    (0..timeouts).for_each(|_| cx.timed_out(group));
}

/// Time of a full packet on a port's link.
fn packet_time(port: PortId, bytes: u32, cx: &HostContext) -> Time {
    cx.net.ports[port as usize].line.transmission_time(u64::from(bytes))
}
