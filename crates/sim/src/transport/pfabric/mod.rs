//! pFabric: senders send at line rate, and queues keep the packets of the flows that have the least left.
//!
//! A flow begins with a window of a bandwidth-delay product and sends it at once. Every packet says how much its flow has
//! left; every queue, the NIC's too, serves the flow with the least left and drops the packets of the one with the most
//! (`queue/pfabric.rs`). What is lost comes again after a short fixed timeout. There is no other congestion control.
//!
//! Source: Alizadeh, Yang, Sharif, Katti, McKeown, Prabhakar, Shenker, "pFabric: Minimal Near-Optimal Datacenter
//! Transport", SIGCOMM 2013, as the pHost authors' simulator has it (Gao et al., CoNEXT 2015; commit 8e9cf04), with which
//! it is compared.
//! Differs from the source: a window leaves in the order of its packets (theirs is scrambled by the order of simultaneous
//! events); an acknowledgement names the packet that came, where theirs lists all that came out of order, and a timeout
//! knows what acknowledgements have said, not what the receiver holds; sizes need not be whole packets.
//! Validated by: tests/pfabric.rs.

mod parameters;
mod sender;

pub use parameters::PfabricConfig;

use super::arrived::Arrived;
use super::{Ended, FlowView, HostContext, Leaving, Look, Transport};
use crate::engine::prefetch::prefetch_lines;
use crate::engine::random::RandomStream;
use crate::measure::FlowRecord;
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{NONE, Packet, PacketId, PacketKind, flag};
use crate::transport::settings::Settings;
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use parameters::PfabricPriority;
use rustc_hash::FxHashMap;
use sender::{Sender, Sending};

/// The code of data packets that are probes: they ask for an acknowledgement, and bring nothing.
pub const PROBE: u8 = 1;

/// The pFabric stack of one host.
pub struct Pfabric {
    flows: Vec<Outgoing>,
    free: Vec<u32>,
    receivers: FxHashMap<FlowId, Receiver>,
    /// Length of the flows received in full, of which packets may still come.
    received: FxHashMap<FlowId, u64>,
    /// The label of the next packet that has a choice of paths.
    label: u32,
}

/// A flow that is sent from here.
struct Outgoing {
    flow: FlowId,
    spec: FlowSpec,
    sender: Sender,
    nic: u16,
    hash: u32,
    start: Time,
    done: bool,
    packets_sent: u64,
    packets_retransmitted: u64,
    timeouts: u32,
    /// When the timeout ends, and the time of the event that looks at it.
    deadline: Time,
    event: Time,
}

/// A flow that is received here.
struct Receiver {
    arrived: Arrived,
    /// Every byte below has come.
    expected: u64,
    /// Length of the flow, once its last packet has come.
    end: Option<u64>,
    /// Of its acknowledgements.
    hash: u32,
}

impl Receiver {
    /// The receiver of the flow of a packet.
    fn new(packet: &Packet) -> Receiver {
        // The number of packets is known only once the last one has come.
        Receiver { arrived: Arrived::new(u32::MAX), expected: 0, end: None, hash: back(packet) }
    }

    /// Takes in a packet of data; whether it is new.
    fn take(&mut self, packet: &Packet, mtu: u64) -> bool {
        if packet.is_last() {
            self.end = Some(packet.seq + u64::from(packet.payload));
        }
        let new = self.arrived.take((packet.seq / mtu) as u32);
        if !new || packet.seq != self.expected {
            return new;
        }
        let whole = self.arrived.missing_from(0).map_or(u64::MAX, |missing| u64::from(missing) * mtu);
        self.expected = self.end.map_or(whole, |end| whole.min(end));
        true
    }
}

impl Pfabric {
    /// `host` names the stream that the first label is drawn from.
    pub fn new(seed: u64, host: u32) -> Pfabric {
        let mut random = RandomStream::new(seed, &format!("pfabric.host{host}.label"));
        Pfabric {
            flows: Vec::new(),
            free: Vec::new(),
            receivers: FxHashMap::default(),
            received: FxHashMap::default(),
            label: random.next_u64() as u32,
        }
    }

    /// What a packet to `dst` by this port is labelled with: balancers choose its path by it.
    #[inline(always)]
    fn label_for(&mut self, dst: u32, port: PortId, hash: u32, spray: bool, cx: &HostContext) -> u32 {
        if spray { cx.next_label(dst, port, &mut self.label) } else { hash }
    }

    /// Hands all packets that the window allows to the NIC, which keeps those of the most urgent flows.
    fn send_window(&mut self, slot: u32, cx: &mut HostContext) {
        let sender = &mut self.flows[slot as usize].sender;
        let end = sender.window_end();
        let Some(first) = sender.send(end) else { return };
        let mut next = sender.send(end);
        self.hand_over(slot, first, 0, next.is_none(), cx);
        while let Some(sending) = next {
            self.hand_over(slot, sending, 0, false, cx);
            next = self.flows[slot as usize].sender.send(end);
        }
    }

    /// A probe: a byte of data that only asks how far the receiver is.
    fn send_probe(&mut self, slot: u32, cx: &mut HostContext) {
        let sender = &self.flows[slot as usize].sender;
        let first_byte = sender.acknowledged();
        let probe = Sending { number: NONE, first_byte, payload: 1, again: true, last: false };
        self.hand_over(slot, probe, PROBE, true, cx);
    }

    /// `alone`: it is the only packet of this event.
    fn hand_over(&mut self, slot: u32, sending: Sending, code: u8, alone: bool, cx: &mut HostContext) {
        let flow = &mut self.flows[slot as usize];
        let config = settings_of(cx.settings, flow.spec.transport);
        let last = if sending.last { flag::LAST } else { 0 };
        flow.packets_sent += 1;
        flow.packets_retransmitted += u64::from(sending.again);
        let packet = Packet {
            seq: sending.first_byte,
            sent: cx.net.now,
            flow: flow.flow,
            src: cx.host,
            dst: flow.spec.dst,
            sender: slot,
            hash: flow.hash,
            aux: urgency(config, flow),
            size: (u32::from(sending.payload) + config.header) as u16,
            payload: sending.payload,
            group: flow.spec.group,
            kind: PacketKind::Data,
            class: config.class,
            wire_class: config.class,
            flags: last | code << flag::CODE_SHIFT,
            transport: cx.transport,
            profile: flow.spec.transport as u8,
            ..Packet::default()
        };
        let (port, spray) = (cx.queue_for(flow.nic, packet.dst, packet.hash), config.spray);
        let hash = self.label_for(packet.dst, port, packet.hash, spray, cx);
        let id = cx.net.packets.insert(Packet { hash, ..packet });
        if alone { cx.enqueue_alone(port, id) } else { cx.enqueue_control(port, id) }
    }

    /// A data packet has come: it is sent back as its acknowledgement.
    fn receive_data(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        let config = settings_of(cx.settings, packet.profile);
        let (ack_header, spray, mtu) = (config.ack_header, config.spray, u64::from(config.mtu));
        let probe = packet.code() == PROBE;
        let (expected, back) = match self.received.get(&packet.flow) {
            Some(&length) => {
                cx.came_again(&packet);
                (length, back(&packet))
            }
            None if probe => {
                let expected = self.receivers.get(&packet.flow).map_or(0, |receiver| receiver.expected);
                if packet.seq < expected {
                    cx.came_again(&packet)
                } else {
                    cx.refused(&packet)
                }
                (expected, back(&packet))
            }
            None => self.take_data(&packet, mtu, cx),
        };
        let Some(port) = cx.port_to(packet.src, back) else {
            cx.net.discard(id);
            return None;
        };
        let label = self.label_for(packet.src, port, back, spray, cx);
        let answer = &mut cx.net.packets[id];
        answer.kind = PacketKind::Ack;
        (answer.src, answer.dst) = (packet.dst, packet.src);
        answer.seq = expected;
        answer.aux = if probe { NONE } else { u32::try_from(packet.seq / mtu).unwrap_or(NONE) };
        answer.size = ack_header as u16;
        answer.payload = 0;
        answer.flags &= flag::MARKED;
        answer.hash = label;
        cx.enqueue_alone(port, id);
        Some(port)
    }

    /// Takes in data of a flow that is not complete: every byte below the first of what it returns has come,
    /// and the second is the hash of the acknowledgement.
    fn take_data(&mut self, packet: &Packet, mtu: u64, cx: &mut HostContext) -> (u64, u32) {
        let receiver = self.receivers.entry(packet.flow).or_insert_with(|| Receiver::new(packet));
        let before = receiver.expected;
        let new = receiver.take(packet, mtu);
        let (expected, end, hash) = (receiver.expected, receiver.end, receiver.hash);
        if !new {
            cx.came_again(packet);
        }
        if expected > before {
            cx.net.recorder.deliver(packet.flow, packet.group, expected - before);
        }
        if end == Some(expected) {
            self.receivers.remove(&packet.flow);
            self.received.insert(packet.flow, expected);
            if cx.settings.dependencies {
                cx.ended.push(Ended { flow: packet.flow, host: cx.host, at_receiver: true });
            }
        }
        (expected, hash)
    }

    /// An acknowledgement has come back.
    fn receive_ack(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        let flow = self.flows.get_mut(packet.sender as usize)?;
        if flow.flow != packet.flow || flow.done {
            return None;
        }
        let probed = flow.sender.is_probing();
        let further = flow.sender.acknowledge(packet.seq, (packet.aux != NONE).then_some(packet.aux));
        if flow.sender.is_done() {
            self.end(packet.sender, cx);
            return None;
        }
        if further || probed {
            flow.deadline = cx.now().saturating_add(settings_of(cx.settings, flow.spec.transport).rto);
        }
        let port = cx.first_port + u32::from(flow.nic);
        self.send_window(packet.sender, cx);
        Some(port)
    }

    /// Everything is acknowledged.
    fn end(&mut self, slot: u32, cx: &mut HostContext) {
        let flow = &mut self.flows[slot as usize];
        flow.done = true;
        let record = flow.record(cx.host, Some(cx.now()));
        cx.record(record);
        if record.packets_retransmitted == 0 {
            cx.net.delivered_once.push((flow.flow, flow.spec.dst, cx.transport));
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: flow.flow, host: cx.host, at_receiver: false });
        }
        self.free.push(slot);
    }
}

impl Outgoing {
    fn record(&self, src: u32, finish: Option<Time>) -> FlowRecord {
        FlowRecord {
            finish,
            packets_sent: self.packets_sent,
            packets_retransmitted: self.packets_retransmitted,
            timeouts: self.timeouts,
            ..FlowRecord::of(self.flow, &self.spec, src, self.start)
        }
    }
}

/// The number by which queues order a flow's packets: the smaller, the more urgent.
fn urgency(config: &PfabricConfig, flow: &Outgoing) -> u32 {
    let number = match (config.priority, flow.spec.deadline) {
        (PfabricPriority::Remaining, _) => flow.sender.remaining(),
        (PfabricPriority::Deadline, Some(deadline)) => deadline.0 / 1_000_000,
        (PfabricPriority::Deadline, None) => u64::MAX,
    };
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The hash of the acknowledgements of a data packet.
fn back(packet: &Packet) -> u32 {
    flow_hash(packet.dst, packet.src, packet.flow)
}

fn settings_of(settings: &Settings, index: impl Into<usize>) -> &PfabricConfig {
    settings.of::<PfabricConfig>(index)
}

impl Transport for Pfabric {
    #[inline(always)]
    fn prefetch(&self) {
        prefetch_lines(self, 4);
    }

    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        let settings = settings_of(cx.settings, spec.transport);
        let mut hash = flow_hash(spec.src, spec.dst, flow);
        // Without a route the packets go to the first port, and the timeout tries again.
        let port = cx.bind(flow, spec, &mut hash).unwrap_or(cx.first_port);
        let deadline = cx.now().saturating_add(settings.rto);
        let outgoing = Outgoing {
            flow,
            spec: *spec,
            sender: Sender::new(spec.size, settings),
            nic: (port - cx.first_port) as u16,
            hash,
            start: cx.now(),
            done: false,
            packets_sent: 0,
            packets_retransmitted: 0,
            timeouts: 0,
            deadline,
            event: deadline,
        };
        let slot = self.free.pop().unwrap_or(self.flows.len() as u32);
        match self.flows.get_mut(slot as usize) {
            Some(free) => *free = outgoing,
            None => self.flows.push(outgoing),
        }
        cx.set_timer(deadline, slot);
        self.send_window(slot, cx);
        Some(port)
    }

    #[inline(never)]
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        match cx.net.packets[id].kind {
            PacketKind::Data => self.receive_data(id, cx),
            PacketKind::Ack => self.receive_ack(id, cx),
            _ => {
                debug_assert!(false, "pFabric sends only data and acknowledgements");
                cx.net.discard(id);
                None
            }
        }
    }

    /// Nothing: packets go to the NIC's queue as soon as the window allows.
    #[inline(always)]
    fn next_packet(&mut self, _port: PortId, _cx: &mut HostContext) -> Option<PacketId> {
        None
    }

    #[inline(always)]
    fn next_look(&mut self, _nic: usize, _paused: u8, _free: Time) -> Look {
        Look::NoMore
    }

    fn on_timer(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let flow = self.flows.get_mut(slot as usize)?;
        let now = cx.now();
        if flow.done || flow.event != now {
            return None;
        }
        let expired = now >= flow.deadline;
        if expired {
            flow.deadline = now.saturating_add(settings_of(cx.settings, flow.spec.transport).rto);
            flow.timeouts += 1;
            let group = flow.spec.group;
            cx.timed_out(group);
        }
        flow.event = flow.deadline;
        cx.set_timer(flow.event, slot);
        if !expired {
            return None;
        }
        let port = cx.first_port + u32::from(flow.nic);
        if flow.sender.time_out() {
            self.send_probe(slot, cx);
        } else {
            self.send_window(slot, cx);
        }
        Some(port)
    }

    fn on_wake(&mut self, _port: PortId, _serial: u32, _cx: &HostContext) -> bool {
        false
    }

    fn places(&self) -> u32 {
        self.flows.len() as u32
    }

    fn leaving(&self, place: u32, flows: &mut Vec<FlowId>) -> Option<Leaving> {
        let flow = self.flows.get(place as usize).filter(|flow| !flow.done)?;
        flows.push(flow.flow);
        Some(Leaving { nic: flow.nic, dst: flow.spec.dst, hash: flow.hash })
    }

    fn leave_by(&mut self, place: u32, by: Leaving, _cx: &mut HostContext) {
        let flow = &mut self.flows[place as usize];
        (flow.nic, flow.hash) = (by.nic, by.hash);
    }

    fn forget(&mut self, flow: FlowId) {
        self.received.remove(&flow);
    }

    fn finish(&mut self, cx: &mut HostContext) {
        for flow in self.flows.iter().filter(|flow| !flow.done) {
            cx.net.recorder.flow(flow.record(cx.host, None));
        }
    }

    fn view(&self, flow: FlowId, _now: Time) -> Option<FlowView> {
        let flow = self.flows.iter().find(|outgoing| outgoing.flow == flow && !outgoing.done)?;
        let threshold = flow.sender.threshold();
        let threshold = if threshold == u32::MAX { f64::INFINITY } else { f64::from(threshold) };
        Some(FlowView {
            rate_bps: None,
            cwnd_bytes: Some(f64::from(flow.sender.cwnd()) * flow.sender.mtu() as f64),
            internals: vec![
                ("ssthresh_packets", threshold),
                ("remaining_bytes", flow.sender.remaining() as f64),
            ],
        })
    }
}

#[cfg(test)]
mod tests;
