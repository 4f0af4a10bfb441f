//! The sending side of a host: requests go out, timeslots come in and are used.

use super::super::silence::Silence;
use super::super::{Ended, HostContext};
use super::allocation::Demand;
use super::source::{SourceFlow, Timeslot};
use super::{Fastpass, Kicks, code, config_of, schedule, timer};
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind, flag};
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};

impl Fastpass {
    /// A flow starts here; the NIC that its request leaves by.
    pub(super) fn start(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        let settings = config_of(cx.settings, spec.transport);
        let mut hash = flow_hash(spec.src, spec.dst, flow);
        // Without a route the packets go to the first port, and what is lost is requested again.
        let port = cx.bind(flow, spec, &mut hash).unwrap_or(cx.first_port);
        let mut source = SourceFlow::new(flow, spec, settings, cx.now());
        source.hash = hash;
        source.nic = (port - cx.first_port) as u16;
        let event = source.silence.event;
        let slot = self.free.pop().unwrap_or(self.sources.len() as u32);
        match self.sources.get_mut(slot as usize) {
            Some(free) => *free = source,
            None => self.sources.push(source),
        }
        self.slots.insert(flow, slot);
        cx.set_timer(event, slot);
        self.request(slot, code::REQUEST, cx)
    }

    /// Asks for the timeslots that a flow wants.
    fn request(&mut self, slot: u32, code: u8, cx: &mut HostContext) -> Option<PortId> {
        let flow = &self.sources[slot as usize];
        let packet = Packet {
            flags: code << flag::CODE_SHIFT,
            seq: flow.requested(),
            sent: flow.spec.deadline.unwrap_or(Time::MAX),
            aux: flow.spec.dst,
            flow: flow.flow,
            group: flow.spec.group,
            profile: flow.spec.transport as u8,
            ..Packet::default()
        };
        self.tell_arbiter(packet, cx)
    }

    /// Tells the arbiter that a flow wants nothing more.
    fn withdraw(&mut self, flow: FlowId, profile: u8, cx: &mut HostContext) -> Option<PortId> {
        let flags = code::FORGET << flag::CODE_SHIFT;
        self.tell_arbiter(Packet { flags, flow, profile, ..Packet::default() }, cx)
    }

    fn tell_arbiter(&mut self, packet: Packet, cx: &mut HostContext) -> Option<PortId> {
        let config = config_of(cx.settings, packet.profile);
        let arbiter = config.arbiter.host;
        let hash = flow_hash(cx.host, arbiter, packet.flow);
        let packet = Packet { kind: PacketKind::Control, src: cx.host, dst: arbiter, hash, ..packet };
        if arbiter == cx.host {
            return self.on_source_packet(packet.code(), &packet, cx);
        }
        self.signal(packet, config, cx)
    }

    /// A schedule has come to the source.
    pub(super) fn receive_schedule(&mut self, packet: &Packet, cx: &mut HostContext) -> Option<PortId> {
        let arbiter = &config_of(cx.settings, packet.profile).arbiter;
        let now = cx.now();
        let epoch = schedule::epoch(packet, now.0 / arbiter.epoch.0);
        let mut kicks = Kicks::default();
        let mut unknown = None;
        for (place, flow, path) in schedule::timeslots(packet) {
            let Some(&slot) = self.slots.get(&flow) else {
                // Complete, and the arbiter does not know.
                if unknown.replace(flow) != Some(flow) {
                    kicks.add(self.withdraw(flow, packet.profile, cx), cx);
                }
                continue;
            };
            let known = &mut self.sources[slot as usize];
            let config = config_of(cx.settings, known.spec.transport);
            if let Some(at) = known.silence.broken(now, config.request_timeout) {
                cx.set_timer(at, slot);
            }
            if !known.take_timeslot() {
                continue;
            }
            let at = arbiter.departure(place, epoch, now);
            let timeslot = Timeslot { at, flow, slot, class: config.class + 1, path };
            let place = self.timeslots.iter().rposition(|known| known.at <= at).map_or(0, |at| at + 1);
            self.timeslots.insert(place, timeslot);
            if at > now {
                cx.set_timer(at, timer::TIMESLOT);
            }
        }
        kicks.add(self.release(cx), cx);
        kicks.0
    }

    /// Hands the flows whose timeslots have come to their NICs.
    pub(super) fn release(&mut self, cx: &mut HostContext) -> Option<PortId> {
        let mut kicks = Kicks::default();
        while let Some(&timeslot) = self.timeslots.front().filter(|timeslot| timeslot.at <= cx.net.now) {
            self.timeslots.pop_front();
            let source = &self.sources[timeslot.slot as usize];
            if source.flow == timeslot.flow && !source.done {
                self.due[usize::from(source.nic)].push_back(timeslot);
                let port = cx.first_port + u32::from(source.nic);
                kicks.add(Some(port), cx);
            }
        }
        kicks.0
    }

    /// The next data packet by a NIC: of the flow whose timeslot came first.
    pub(super) fn use_timeslot(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        let nic = (port - cx.first_port) as usize;
        let paused = cx.net.ports[port as usize].paused;
        while let Some(&timeslot) = self.due[nic].front().filter(|first| paused & (1 << first.class) == 0) {
            self.due[nic].pop_front();
            let flow = &mut self.sources[timeslot.slot as usize];
            if flow.flow != timeslot.flow || flow.done {
                continue;
            }
            let Some(number) = flow.use_timeslot() else { continue };
            if flow.is_sent() {
                self.await_acknowledgements(timeslot.slot, cx);
            }
            return Some(self.build(timeslot, number, port, cx));
        }
        None
    }

    /// All packets are sent: when what is not acknowledged is requested again.
    fn await_acknowledgements(&mut self, slot: u32, cx: &mut HostContext) {
        let flow = &mut self.sources[slot as usize];
        let retry = config_of(cx.settings, flow.spec.transport).retry;
        if let Some(at) = flow.silence.wait(cx.net.now.saturating_add(retry)) {
            cx.set_timer(at, slot);
        }
    }

    /// The arbiter has answered a repeated request: it knows the flow, which waits on. Only a loss is a
    /// timeout.
    pub(super) fn receive_report(&mut self, packet: &Packet, cx: &mut HostContext) {
        let Some(&slot) = self.slots.get(&packet.flow) else { return };
        let flow = &mut self.sources[slot as usize];
        flow.reported = flow.reported.max(packet.seq);
        if packet.aux == 1 {
            flow.timeouts += 1;
            let group = flow.spec.group;
            cx.timed_out(group);
        }
        let flow = &mut self.sources[slot as usize];
        if flow.unscheduled > 0 && flow.reported > flow.accounted {
            // Schedules that the report has overtaken come within a base RTT; `retry` is two of them or more.
            let retry = config_of(cx.settings, flow.spec.transport).retry;
            if let Some(at) = flow.silence.wait(cx.net.now.saturating_add(Time(retry.0 / 2))) {
                cx.set_timer(at, slot);
            }
        }
    }

    fn build(&mut self, timeslot: Timeslot, number: u32, port: PortId, cx: &mut HostContext) -> PacketId {
        let flow = &self.sources[timeslot.slot as usize];
        let config = config_of(cx.settings, flow.spec.transport);
        let before = u64::from(number) * u64::from(config.mtu);
        let payload = flow.spec.size.saturating_sub(before).min(u64::from(config.mtu));
        let packet = Packet {
            kind: PacketKind::Data,
            seq: u64::from(flow.packets) << 32 | u64::from(number),
            sent: cx.net.now,
            flow: flow.flow,
            src: cx.host,
            dst: flow.spec.dst,
            sender: timeslot.slot,
            hash: flow.hash,
            aux: number,
            size: (payload + u64::from(config.header)) as u16,
            payload: payload as u16,
            group: flow.spec.group,
            class: timeslot.class,
            wire_class: timeslot.class,
            flags: if number + 1 == flow.packets { flag::LAST } else { 0 },
            transport: cx.transport,
            profile: flow.spec.transport as u8,
            ..Packet::default()
        };
        let hash = match timeslot.path {
            Some(path) => path,
            None => self.label_for(packet.dst, port, packet.hash, config.spray, cx),
        };
        cx.net.packets.insert(Packet { hash, ..packet })
    }

    /// A packet has been acknowledged.
    pub(super) fn receive_ack(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let flow = self.sources.get_mut(packet.sender as usize)?;
        if flow.flow != packet.flow || flow.done {
            return None;
        }
        flow.acknowledged.take(packet.aux);
        if flow.acknowledged.missing() > 0 {
            return None;
        }
        flow.done = true;
        let record = flow.record(cx.host, Some(cx.net.now));
        cx.record(record);
        // Of what was sent nothing is left on its way: the destination may forget the flow.
        if record.packets_retransmitted == 0 {
            cx.net.delivered_once.push((flow.flow, flow.spec.dst, cx.transport));
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: flow.flow, host: cx.host, at_receiver: false });
        }
        self.slots.remove(&packet.flow);
        self.free.push(packet.sender);
        self.withdraw(packet.flow, packet.profile, cx)
    }

    /// The timer of a flow has come: it has heard nothing, or was not acknowledged.
    pub(super) fn flow_timer(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let flow = self.sources.get_mut(slot as usize)?;
        let now = cx.net.now;
        if flow.done || flow.silence.event != now {
            return None;
        }
        let patience = config_of(cx.settings, flow.spec.transport).request_timeout;
        let over = now >= flow.silence.deadline;
        let asks = if flow.is_sent() {
            if over {
                flow.ask_again(now, patience);
            }
            over.then_some(code::REQUEST)
        } else if flow.unscheduled == 0 {
            // The host's own link holds its packets up.
            flow.silence = Silence::starting(now, patience);
            None
        } else if over && flow.write_off() {
            flow.silence = Silence::starting(now, patience);
            Some(code::REQUEST)
        } else {
            flow.silence.over(now, patience).then_some(code::REPEATED)
        };
        flow.silence.event = flow.silence.deadline;
        cx.set_timer(flow.silence.event, slot);
        let asks = asks?;
        // A repetition is one only if the arbiter reports it: mostly the flow waits for its turn.
        if asks == code::REQUEST {
            flow.timeouts += 1;
            let group = flow.spec.group;
            cx.timed_out(group);
        }
        self.request(slot, asks, cx)
    }
}

/// What the arbiter learns from a request, which states the number of timeslots in another way.
pub fn demand(packet: &Packet) -> Demand {
    Demand {
        flow: packet.flow,
        source: packet.src,
        destination: packet.aux,
        remaining: 0,
        deadline: packet.sent,
        tenant: packet.group,
    }
}
