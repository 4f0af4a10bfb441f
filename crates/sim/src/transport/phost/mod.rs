//! pHost: destinations give tokens, sources spend them, switches only queue.
//!
//! A source announces a flow by a *request*. The destination's clock gives one *token* for every packet time of its link,
//! to the flow that its policy puts first; a token is the right to send one packet within a short time. So a
//! destination's link is never promised twice, and the fabric, over which every packet takes a path of its own, hardly
//! queues. The first packets of a flow need no token (*free tokens*). One acknowledgement ends a flow.
//!
//! Source: Gao, Narayan, Kumar, Agarwal, Ratnasamy, Shenker, "pHost: Distributed Near-Optimal Datacenter Transport Over
//! Commodity Network Fabric", CoNEXT 2015, and its authors' simulator (commit 8e9cf04), whose timers and states these are.
//! Differs from the source: a request is repeated while nothing is heard of the destination (theirs is sent once); the
//! NIC pulls a data packet when it is free and nothing else waits; ties are broken by this engine's rules. Free tokens of
//! longer flows are left out of the window, and fewer ticks are reserved for them, so that they do not stall
//! (docs/schemes/phost.md).
//! Validated by: tests/phost.rs.

pub(in crate::transport) mod arrived;
mod clock;
mod destination;
mod parameters;
mod ranking;
mod source;

pub use parameters::{Network, POLICIES, read};
pub use source::MOST_DOUBLINGS;

use super::{Ended, FlowView, HostContext, Look, Transport};
use crate::balance::flow_hash;
use crate::config::{Compat, PhostConfig, Policy};
use crate::engine::random::RandomStream;
use crate::ideal::ideal_fct;
use crate::net::PortId;
use crate::packet::{NONE, Packet, PacketId, PacketKind, flag};
use crate::settings::{PhostSettings, TransportSettings};
use crate::units::{Rate, Time};
use crate::workload::{FlowId, FlowSpec};
use clock::TokenClock;
use destination::{DestinationFlow, Pace, Place, scaled};
use ranking::{Rank, Ranking};
use rustc_hash::FxHashMap;
use source::{SourceFlow, Token, packets_of};

/// Codes of control packets.
mod code {
    /// Source to destination. `seq`: packets of the flow; `sent`: its deadline.
    pub const REQUEST: u8 = 0;
    /// Destination to source. `seq`: the packet that it is for, and above it its number; `aux`: packets that are missing.
    pub const TOKEN: u8 = 1;
}

/// The timer of the token clock; others are those of flows at their source.
const CLOCK: u32 = u32::MAX;

/// The pHost stack of one host.
pub struct Phost {
    sources: Vec<SourceFlow>,
    free_sources: Vec<u32>,
    /// By NIC: flows that have tokens.
    nics: Vec<Ranking>,
    flows: Vec<DestinationFlow>,
    free_flows: Vec<u32>,
    slots: FxHashMap<FlowId, u32>,
    /// Flows that have arrived in full, of which packets may still come.
    arrived: FxHashMap<FlowId, ()>,
    clock: TokenClock,
    /// What all links of this host carry together, and the pace of the clock that follows, by the transport's index.
    rate: Rate,
    paces: Vec<Pace>,
    /// Flows that began here, and flows that became known here.
    started: u32,
    announced: u32,
    /// The label of the next packet that has a choice of paths.
    label: u32,
}

impl Phost {
    /// `host` names the stream that the first label is drawn from.
    pub fn new(nics: usize, policy: Policy, seed: u64, host: u32) -> Phost {
        let mut random = RandomStream::new(seed, &format!("phost.host{host}.label"));
        Phost {
            sources: Vec::new(),
            free_sources: Vec::new(),
            nics: (0..nics).map(|_| Ranking::new(policy)).collect(),
            flows: Vec::new(),
            free_flows: Vec::new(),
            slots: FxHashMap::default(),
            arrived: FxHashMap::default(),
            clock: TokenClock::new(policy),
            rate: Rate(0),
            paces: Vec::new(),
            started: 0,
            announced: 0,
            label: random.next_u64() as u32,
        }
    }

    /// What a packet to `dst` by this port is labelled with: balancers choose its path by it.
    fn label_for(&mut self, dst: u32, port: PortId, flow_hash: u32, spray: bool, cx: &HostContext) -> u32 {
        if !spray {
            return flow_hash;
        }
        let first = cx.map.side(cx.node, port - cx.first_port).peer_node;
        if cx.map.routes.next_hops(first, dst).len() > 1 {
            self.label = self.label.wrapping_add(1);
        }
        self.label
    }

    /// Sends a control packet of the flow that `packet` describes: kind, code, addresses and what it says.
    fn signal(&mut self, packet: Packet, settings: &PhostSettings, cx: &mut HostContext) -> Option<PortId> {
        let port = cx.port_to(packet.dst, packet.hash)?;
        let label = self.label_for(packet.dst, port, packet.hash, settings.config.spray, cx);
        let class = settings.config.class;
        let id = cx.net.packets.insert(Packet {
            src: cx.host,
            hash: label,
            telemetry: NONE,
            size: settings.config.control as u16,
            class,
            wire_class: class,
            transport: cx.transport,
            ..packet
        });
        cx.enqueue_control(port, id);
        Some(port)
    }

    fn request(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let flow = &mut self.sources[slot as usize];
        flow.requests += 1;
        let packet = Packet {
            kind: PacketKind::Control,
            flags: code::REQUEST << flag::CODE_SHIFT,
            seq: u64::from(flow.packets),
            sent: flow.deadline.unwrap_or(Time::MAX),
            flow: flow.flow,
            dst: flow.dst,
            sender: slot,
            hash: flow.hash,
            group: flow.group,
            profile: flow.transport as u8,
            ..Packet::default()
        };
        let settings = cx.settings.phost(flow.transport);
        self.signal(packet, settings, cx)
    }

    /// A token has come to the source.
    fn receive_token(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let flow = self.sources.get_mut(packet.sender as usize)?;
        if flow.flow != packet.flow || flow.done {
            return None;
        }
        let now = cx.net.now;
        let config = &cx.settings.phost(flow.transport).config;
        let port = cx.first_port + u32::from(flow.nic);
        let life = scaled(packet_time(port, config.packet(), cx), config.token_life);
        flow.silence.broken(now, config.request_timeout);
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

    /// A flow has been acknowledged.
    fn receive_ack(&mut self, id: PacketId, cx: &mut HostContext) {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let Some(flow) = self.sources.get_mut(packet.sender as usize) else { return };
        if flow.flow != packet.flow || flow.done {
            return;
        }
        flow.done = true;
        if std::mem::take(&mut flow.ranked) {
            self.nics[usize::from(flow.nic)].remove(flow.group, flow.rank);
        }
        let record = flow.record(cx.host, Some(cx.net.now));
        // Of what was sent nothing is left on its way: the destination may forget the flow.
        let once = record.packets_retransmitted == 0 && flow.requests == 1 && packet.is_last();
        cx.net.recorder.flow(record);
        if once {
            cx.net.delivered_once.push((flow.flow, flow.dst, cx.transport));
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: flow.flow, host: cx.host, at_receiver: false });
        }
        self.free_sources.push(packet.sender);
    }

    /// The next data packet by a NIC: of the first flow that has a live token.
    fn spend(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        let nic = (port - cx.first_port) as usize;
        let (now, paused) = (cx.net.now, cx.net.ports[port as usize].paused);
        loop {
            let sources = &self.sources;
            let slot = self.nics[nic].first(|slot| paused & (1 << sources[slot as usize].class) == 0)?;
            let flow = &mut self.sources[slot as usize];
            let token = flow.spend(now);
            if !flow.has_tokens() {
                flow.ranked = false;
                self.nics[nic].remove(flow.group, flow.rank);
            }
            let Some(token) = token else { continue };
            flow.sent += 1;
            self.nics[nic].served(flow.group);
            return Some(self.build(slot, token, port, cx));
        }
    }

    fn build(&mut self, slot: u32, token: Token, port: PortId, cx: &mut HostContext) -> PacketId {
        let flow = &self.sources[slot as usize];
        let config = &cx.settings.phost(flow.transport).config;
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
            telemetry: NONE,
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

    /// The flow that a request or a data packet belongs to, made if it is not known. None: it has arrived in full.
    fn flow_of(&mut self, packet: &Packet, packets: u32, cx: &mut HostContext) -> Option<u32> {
        if let Some(&slot) = self.slots.get(&packet.flow) {
            return Some(slot);
        }
        if self.arrived.contains_key(&packet.flow) {
            return None;
        }
        self.set_pace(cx);
        let config = &cx.settings.phost(packet.profile).config;
        let pace = self.paces[usize::from(packet.profile)];
        let rank = Rank::new(self.clock.ranking.policy(), Time::MAX, packets, self.announced);
        self.announced = self.announced.wrapping_add(1);
        let flow = DestinationFlow::new(packet, packets, config, rank, cx.net.now, &pace);
        let slot = self.free_flows.pop().unwrap_or(self.flows.len() as u32);
        if slot as usize == self.flows.len() {
            self.flows.push(flow);
        } else {
            self.flows[slot as usize] = flow;
        }
        self.slots.insert(packet.flow, slot);
        self.clock.rank(&mut self.flows[slot as usize], slot);
        if config.hold && config.free_tokens_of(packets) > 0 {
            let control_rtt = cx.settings.phost(packet.profile).control_rtt;
            let ticks = reserved(config, packets, control_rtt, pace.interval);
            self.clock.reserve(ticks, pace.interval);
        }
        Some(slot)
    }

    fn receive_request(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let Some(slot) = self.flow_of(&packet, packet.seq as u32, cx) else {
            // It has arrived, and the source does not know.
            return self.acknowledge(&packet, true, cx);
        };
        let flow = &mut self.flows[slot as usize];
        if std::mem::replace(&mut flow.requested, true) {
            return None;
        }
        let rank = flow.rank.with_deadline(self.clock.ranking.policy(), packet.sent);
        if flow.place == Place::Ranked {
            self.clock.ranking.rerank(flow.group, flow.rank, rank);
        }
        flow.rank = rank;
        self.wake_clock(cx)
    }

    fn receive_data(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let known = self.slots.contains_key(&packet.flow);
        let Some(slot) = self.flow_of(&packet, (packet.seq >> 32) as u32, cx) else {
            return self.acknowledge(&packet, true, cx);
        };
        let flow = &mut self.flows[slot as usize];
        let config = &cx.settings.phost(flow.profile).config;
        if flow.take(packet.seq as u32, packet.aux) {
            cx.net.recorder.deliver(packet.flow, packet.group, u64::from(packet.payload));
            let rank = flow.rank.with_remaining(flow.arrived.missing());
            if flow.place == Place::Ranked {
                self.clock.ranking.rerank(flow.group, flow.rank, rank);
            }
            flow.rank = rank;
        }
        if flow.arrived.missing() == 0 {
            return self.complete(slot, &packet, cx);
        }
        let reopened = matches!(flow.place, Place::Blocked { by_window: true, .. }) && flow.has_room(config);
        if reopened {
            self.clock.rank(flow, slot);
        }
        if !known || reopened && config.wake_on_data { self.wake_clock(cx) } else { None }
    }

    /// Every packet of a flow has arrived.
    fn complete(&mut self, slot: u32, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let flow = &mut self.flows[slot as usize];
        if flow.place == Place::Ranked {
            self.clock.ranking.remove(flow.group, flow.rank);
        }
        flow.place = Place::Gone;
        let requested = flow.requested;
        self.free_flows.push(slot);
        self.slots.remove(&packet.flow);
        if cx.settings.duplicates {
            self.arrived.insert(packet.flow, ());
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: packet.flow, host: cx.host, at_receiver: true });
        }
        self.acknowledge(packet, requested, cx)
    }

    /// Tells the source of `packet` that its flow has arrived; `requested`: its request too.
    fn acknowledge(&mut self, packet: &Packet, requested: bool, cx: &mut HostContext) -> Option<PortId> {
        let answer = Packet {
            kind: PacketKind::Ack,
            flags: if requested { flag::LAST } else { 0 },
            seq: packet.seq,
            flow: packet.flow,
            dst: packet.src,
            sender: packet.sender,
            hash: flow_hash(packet.dst, packet.src, packet.flow),
            group: packet.group,
            profile: packet.profile,
            ..Packet::default()
        };
        let settings = cx.settings.phost(packet.profile);
        self.signal(answer, settings, cx)
    }

    /// There may be work for a clock that does not tick.
    fn wake_clock(&mut self, cx: &mut HostContext) -> Option<PortId> {
        if self.clock.wakes() { self.tick(cx) } else { None }
    }

    /// The token clock ticks: one flow gets a token, or nobody may have one.
    fn tick(&mut self, cx: &mut HostContext) -> Option<PortId> {
        let now = cx.net.now;
        if let Some(at) = self.clock.pass(now) {
            cx.set_timer(at, CLOCK);
            return None;
        }
        self.set_pace(cx);
        let (settings, paces) = (cx.settings, &self.paces);
        let of = |profile: u8| (&settings.phost(profile).config, &paces[usize::from(profile)]);
        let Some(slot) = self.clock.choose(&mut self.flows, now, of) else {
            if let Some(at) = self.clock.sleep(&self.flows) {
                cx.set_timer(at, CLOCK);
            }
            return None;
        };
        let flow = &mut self.flows[slot as usize];
        let pace = self.paces[usize::from(flow.profile)];
        let given = flow.give(now, &pace);
        self.clock.ranking.served(flow.group);
        if let Some(until) = flow.left_alone() {
            self.clock.block(flow, slot, Place::Blocked { until, by_window: false });
        }
        let at = self.clock.tick_at(now.saturating_add(pace.interval));
        cx.set_timer(at, CLOCK);
        let (number, wanted) = given?;
        let flow = &self.flows[slot as usize];
        let token = Packet {
            kind: PacketKind::Control,
            flags: code::TOKEN << flag::CODE_SHIFT,
            seq: u64::from(number) << 32 | u64::from(wanted),
            aux: flow.arrived.missing(),
            flow: flow.flow,
            dst: flow.src,
            sender: flow.sender,
            hash: flow.hash,
            group: flow.group,
            profile: flow.profile,
            ..Packet::default()
        };
        self.signal(token, settings.phost(flow.profile), cx)
    }

    /// Sets the pace of the clock by the rate of this host's links, which may have changed.
    fn set_pace(&mut self, cx: &HostContext) {
        let first = cx.first_port as usize;
        let ports = &cx.net.ports[first..first + self.nics.len()];
        let rate = Rate(ports.iter().map(|port| port.line.rate.0).sum());
        if rate == self.rate {
            return;
        }
        self.rate = rate;
        let pace = |transport: &TransportSettings| match transport {
            TransportSettings::Phost(settings) => {
                let config = &settings.config;
                Pace::new(config, rate.transmission_time(u64::from(config.packet())))
            }
            _ => Pace::default(),
        };
        self.paces = cx.settings.transports.iter().map(pace).collect();
    }

    fn request_timer(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let flow = self.sources.get_mut(slot as usize)?;
        let now = cx.net.now;
        if flow.done || flow.silence.event != now {
            return None;
        }
        let repeats = flow.silence.over(now, cx.settings.phost(flow.transport).config.request_timeout);
        cx.set_timer(flow.silence.event, slot);
        if repeats { self.request(slot, cx) } else { None }
    }
}

/// Ticks to leave to the free packets of a new flow. A flow that needs tokens too gets its first one so early that it
/// reaches the source when the free ones are spent.
fn reserved(config: &PhostConfig, packets: u32, control_rtt: Time, interval: Time) -> u32 {
    let free = config.free_tokens_of(packets);
    if free == packets {
        return free;
    }
    let early = control_rtt.0.div_ceil(interval.0.max(1));
    free.saturating_sub(u32::try_from(early).unwrap_or(u32::MAX))
}

/// Time of a full packet on a port's link.
fn packet_time(port: PortId, bytes: u32, cx: &HostContext) -> Time {
    cx.net.ports[port as usize].line.transmission_time(u64::from(bytes), Compat::None)
}

impl Transport for Phost {
    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        let settings = cx.settings.phost(spec.transport);
        let config = &settings.config;
        let hash = flow_hash(spec.src, spec.dst, flow);
        let port = cx.port_to(spec.dst, hash).unwrap_or(cx.first_port);
        let nic = (port - cx.first_port) as u16;
        let packets = packets_of(spec.size, config);
        let policy = self.clock.ranking.policy();
        let rank = Rank::new(policy, spec.deadline.unwrap_or(Time::MAX), packets, self.started);
        self.started = self.started.wrapping_add(1);
        let now = cx.net.now;
        let mut source = SourceFlow::new(flow, spec, config, rank, now);
        source.ideal = ideal_fct(cx.settings, &settings.framing(), cx.map, spec);
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
        Some(port)
    }

    #[inline]
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = &cx.net.packets[id];
        match (packet.kind, packet.code()) {
            (PacketKind::Data, _) => self.receive_data(id, cx),
            (PacketKind::Control, code::TOKEN) => self.receive_token(id, cx),
            (PacketKind::Control, _) => self.receive_request(id, cx),
            _ => {
                self.receive_ack(id, cx);
                None
            }
        }
    }

    #[inline]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        self.spend(port, cx)
    }

    #[inline]
    fn next_look(&mut self, nic: usize, paused: u8, free: Time, _compat: Compat) -> Look {
        let sources = &self.sources;
        let sends = |slot: u32| {
            let flow = &sources[slot as usize];
            paused & (1 << flow.class) == 0 && flow.can_send_at(free)
        };
        if self.nics[nic].first(sends).is_some() { Look::WhenFree } else { Look::NoMore }
    }

    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        if token != CLOCK {
            return self.request_timer(token, cx);
        }
        if self.clock.is_due(cx.net.now) { self.tick(cx) } else { None }
    }

    fn on_wake(&mut self, _port: PortId, _serial: u32, _cx: &HostContext) -> bool {
        false
    }

    fn forget(&mut self, flow: FlowId) {
        self.arrived.remove(&flow);
    }

    fn finish(&mut self, cx: &mut HostContext) {
        for flow in self.sources.iter().filter(|flow| !flow.done) {
            cx.net.recorder.flow(flow.record(cx.host, None));
        }
    }

    fn view(&self, flow: FlowId) -> Option<FlowView> {
        let flow = self.sources.iter().find(|known| known.flow == flow && !known.done)?;
        let internals = vec![("tokens", flow.tokens() as f64), ("packets_sent", flow.sent as f64)];
        Some(FlowView { rate_bps: None, cwnd_bytes: None, internals })
    }
}
