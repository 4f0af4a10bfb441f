//! The receiving side of a host: requests and data come in, the token clock ticks, tokens and
//! acknowledgements go out.

use super::super::{Ended, HostContext};
use super::destination::{DestinationFlow, Pace, Place};
use super::ranking::Rank;
use super::{CLOCK, Phost, WAITING, code};
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind, flag};
use crate::transport::phost::parameters::PhostConfig;
use crate::transport::{TransportConfig, TransportParameters};
use crate::units::{Rate, Time};

impl Phost {
    /// The flow that a request or a data packet belongs to, made if it is not known. None: it has arrived in
    /// full.
    fn flow_of(&mut self, packet: &Packet, packets: u32, cx: &mut HostContext) -> Option<u32> {
        if let Some(&slot) = self.slots.get(&packet.flow) {
            return Some(slot);
        }
        if self.arrived.contains(&packet.flow) {
            return None;
        }
        self.set_pace(cx);
        let config = cx.settings.of::<PhostConfig>(packet.profile);
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
            let control_rtt = cx.settings.of::<PhostConfig>(packet.profile).control_rtt;
            let ticks = reserved(config, packets, control_rtt, pace.interval);
            self.clock.reserve(ticks, pace.interval);
        }
        Some(slot)
    }

    pub(super) fn receive_request(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let Some(slot) = self.flow_of(&packet, packet.seq as u32, cx) else {
            // It has arrived, and the source does not know.
            return self.acknowledge(&packet, true, cx);
        };
        let flow = &mut self.flows[slot as usize];
        let config = cx.settings.of::<PhostConfig>(flow.profile);
        flow.learn_source(
            Time(u64::from(packet.aux)),
            config,
            cx.net.now,
            &self.paces[usize::from(flow.profile)],
        );
        if std::mem::replace(&mut flow.requested, true) {
            return None;
        }
        let rank = flow.rank.with_deadline(self.clock.ranking.policy(), packet.sent);
        if flow.place == Place::Ranked {
            self.clock.ranking.rerank(flow.group, flow.rank, rank);
        }
        flow.rank = rank;
        let port = self.wake_clock(cx);
        // Repeated requests would cost more than their bytes: tokens are given at the pace of the link, so
        // what else comes by it never leaves its queue, and a longer queue closes the window of the flow
        // whose turn it is.
        if self.flows[slot as usize].awaits_token() {
            let timeout = cx.settings.of::<PhostConfig>(packet.profile).request_timeout;
            self.unanswered.push_back(packet.flow);
            cx.set_timer(cx.net.now.saturating_add(Time(timeout.0 / 2)), WAITING);
        }
        port
    }

    /// The flow that has been longest among those that wait for a first token: tells its source, if it still
    /// waits.
    pub(super) fn tell_waiting(&mut self, cx: &mut HostContext) -> Option<PortId> {
        let flow = self.unanswered.pop_front()?;
        let flow = &self.flows[*self.slots.get(&flow)? as usize];
        if !flow.awaits_token() {
            return None;
        }
        let notice = Packet {
            kind: PacketKind::Control,
            flags: code::KNOWN << flag::CODE_SHIFT | flow.late(),
            flow: flow.flow,
            dst: flow.src,
            sender: flow.sender,
            hash: flow.hash,
            group: flow.group,
            profile: flow.profile,
            ..Packet::default()
        };
        let settings = cx.settings.of::<PhostConfig>(notice.profile);
        self.signal(notice, settings, cx)
    }

    pub(super) fn receive_data(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let known = self.slots.len();
        let Some(slot) = self.flow_of(&packet, (packet.seq >> 32) as u32, cx) else {
            cx.came_again(&packet);
            return self.acknowledge(&packet, true, cx);
        };
        let is_new = self.slots.len() > known;
        let flow = &mut self.flows[slot as usize];
        let config = cx.settings.of::<PhostConfig>(flow.profile);
        if flow.take(packet.seq as u32, packet.aux) {
            cx.net.recorder.deliver(packet.flow, packet.group, u64::from(packet.payload));
            let rank = flow.rank.with_remaining(flow.arrived.missing());
            if flow.place == Place::Ranked {
                self.clock.ranking.rerank(flow.group, flow.rank, rank);
            }
            flow.rank = rank;
        } else {
            cx.came_again(&packet);
        }
        if flow.arrived.missing() == 0 {
            return self.complete(slot, &packet, cx);
        }
        let reopened = matches!(flow.place, Place::Blocked { by_window: true, .. }) && flow.has_room(config);
        if reopened {
            self.clock.rank(flow, slot);
        }
        if is_new || reopened && config.wake_on_data { self.wake_clock(cx) } else { None }
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
        self.arrived.insert(packet.flow);
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
        let settings = cx.settings.of::<PhostConfig>(packet.profile);
        self.signal(answer, settings, cx)
    }

    /// There may be work for a clock that does not tick.
    fn wake_clock(&mut self, cx: &mut HostContext) -> Option<PortId> {
        if self.clock.wakes() { self.tick(cx) } else { None }
    }

    /// The token clock ticks: one flow gets a token, or nobody may have one.
    pub(super) fn tick(&mut self, cx: &mut HostContext) -> Option<PortId> {
        let now = cx.net.now;
        if let Some(at) = self.clock.pass(now) {
            cx.set_timer(at, CLOCK);
            return None;
        }
        self.set_pace(cx);
        let (settings, paces) = (cx.settings, &self.paces);
        let of = |profile: u8| (settings.of::<PhostConfig>(profile), &paces[usize::from(profile)]);
        let Some(slot) = self.clock.choose(&mut self.flows, now, of) else {
            if let Some(at) = self.clock.sleep(&self.flows) {
                cx.set_timer(at, CLOCK);
            }
            return None;
        };
        let flow = &mut self.flows[slot as usize];
        let config = settings.of::<PhostConfig>(flow.profile);
        let pace = self.paces[usize::from(flow.profile)];
        let of_flow = flow.pace(config, &pace);
        let given = flow.give(now, &of_flow, pace.interval);
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
            flags: code::TOKEN << flag::CODE_SHIFT | flow.late(),
            seq: u64::from(number) << 32 | u64::from(wanted),
            aux: flow.arrived.missing(),
            sent: Time(u64::from(flow.rounds)),
            flow: flow.flow,
            dst: flow.src,
            sender: flow.sender,
            hash: flow.hash,
            group: flow.group,
            profile: flow.profile,
            ..Packet::default()
        };
        self.signal(token, config, cx)
    }

    /// Sets the pace of the clock by the rate of this host's links, which may have changed.
    #[inline]
    fn set_pace(&mut self, cx: &HostContext) {
        let first = cx.first_port as usize;
        // Most hosts have one.
        if self.nics.len() > 1 || cx.net.ports[first].line.rate != self.rate {
            self.set_pace_of_all(cx);
        }
    }

    #[inline(never)]
    fn set_pace_of_all(&mut self, cx: &HostContext) {
        let first = cx.first_port as usize;
        let ports = &cx.net.ports[first..first + self.nics.len()];
        let rate = Rate(ports.iter().map(|port| port.line.rate.0).sum());
        if rate == self.rate {
            return;
        }
        self.rate = rate;
        let pace = |transport: &TransportConfig| {
            PhostConfig::of(transport).map_or(Pace::default(), |config| {
                Pace::new(config, rate.transmission_time(u64::from(config.packet())), config.longest_rtt)
            })
        };
        self.paces = cx.settings.transports.iter().map(pace).collect();
    }
}

/// Ticks to leave to the free packets of a new flow. A flow that needs tokens too gets its first one so early
/// that it reaches the source when the free ones are spent.
fn reserved(config: &PhostConfig, packets: u32, control_rtt: Time, interval: Time) -> u32 {
    let free = config.free_tokens_of(packets);
    if free == packets {
        return free;
    }
    let early = control_rtt.0.div_ceil(interval.0.max(1));
    free.saturating_sub(u32::try_from(early).unwrap_or(u32::MAX))
}
