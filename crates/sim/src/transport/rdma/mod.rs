//! RDMA over a NIC: queue pairs that are paced and windowed, per-packet acknowledgements, go-back-N or selective repeat.
//!
//! One queue pair a flow, created when the flow starts, sending at line rate at once; or one that [stays open](stream) and
//! sends the flows of its connection one after the other. The NIC serves its
//! acknowledgement queue first, then its queue pairs in turn: one that has bytes left, is not bound by its window, and whose
//! next packet is due. The rate is what a controller steers; the window follows it.
//!
//! Source: the RDMA NIC of the HPCC authors' simulator (Li et al., SIGCOMM 2019, §4 and §5.1); selective repeat after
//! Mittal et al., "Revisiting Network Support for RDMA" (IRN), SIGCOMM 2018, §3.
//! Differs from the source outside the compat mode: a retransmission timeout; duplicates are acknowledged again;
//! a NIC's wake-up is set for the queue pairs that may send, not for those that their window holds back.

mod flow_queues;
mod irn;
mod pair;
mod parameters;
mod receiver;
mod receiving;
mod recovery;
mod selective;
mod stream;
mod windowed;

pub use irn::IrnConfig;
pub use parameters::RdmaConfig;
pub use recovery::Recovery;
pub use stream::FIRST;

use super::messages::Message;
use super::nic::{Choice, Nic};
use super::plb::Feedback;
use super::{FlowView, Hold, HostContext, Leaving, Look, Transport};
use crate::compat::Rules;
use crate::congestion::window::{FlowPath, WindowContext};
use crate::congestion::{Ack, CongestionController, FlowContext, PairWindow, PathLoad, TIMERS, Window};
use crate::engine::prefetch::{prefetch, prefetch_lines};
use crate::engine::random::{RandomStream, mix64};
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind};
use crate::telemetry::int::IntView;
use crate::telemetry::pint::{PintConfig, coin, packet_id};
use crate::units::{Rate, Time};
use crate::workload::{FlowId, FlowSpec};
use flow_queues::{NicQueues, PACE};
use pair::{Cut, QueuePair};
use receiver::Receiver;
use rustc_hash::FxHashMap;
use stream::end_flows;
use windowed::Windowed;

/// Timer tokens: four to a queue pair, its controller's and its retransmission timeout.
const TOKENS: u32 = 4;
const RETRANSMIT: usize = TIMERS;
/// The first flow of a host pair has this UDP port in the authors' simulator.
const FIRST_UDP_PORT: u32 = 10_000;
const DATA_PORT: u32 = 100;

/// The RDMA stack of one host.
pub struct Rdma {
    nics: Vec<Nic>,
    pairs: Vec<QueuePair>,
    free: Vec<u32>,
    receivers: FxHashMap<FlowId, Receiver>,
    /// Length of the flows received in full, where duplicates may still come.
    received: FxHashMap<FlowId, u64>,
    /// By connection (the flow that opened it), the places of queue pairs that stay open.
    kept: FxHashMap<FlowId, u32>,
    /// [`Rules::murmur_ecmp`]: flows so far to each host, or those from here by the own number.
    flows_to: FxHashMap<u32, u32>,
    /// [`Rules::queue_per_flow`]: by NIC.
    queues: Option<Box<NicQueues>>,
}

impl Rdma {
    pub fn new(nics: usize) -> Rdma {
        Rdma {
            nics: (0..nics).map(|_| Nic::default()).collect(),
            pairs: Vec::new(),
            free: Vec::new(),
            receivers: FxHashMap::default(),
            received: FxHashMap::default(),
            kept: FxHashMap::default(),
            flows_to: FxHashMap::default(),
            queues: None,
        }
    }

    fn hash_of(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> u32 {
        let rules = &cx.settings.rules;
        if rules.flow_number_labels {
            return flow;
        }
        if !rules.murmur_ecmp {
            return flow_hash(spec.src, spec.dst, spec.path_of.unwrap_or(flow));
        }
        let next = |counted: &mut FxHashMap<u32, u32>, host: u32| {
            let count = counted.entry(host).or_insert(0);
            *count += 1;
            *count - 1
        };
        let (source, there) = match rules.counted_ports {
            true => (next(&mut self.flows_to, cx.host), next(&mut cx.net.flows_to, spec.dst)),
            false => (next(&mut self.flows_to, spec.dst), 0),
        };
        // Ports are 16 bits wide there.
        (FIRST_UDP_PORT + source) & 0xffff | (DATA_PORT + there) << 16
    }

    /// The next data packet of a queue pair.
    fn build(&mut self, slot: u32, cx: &mut HostContext) -> PacketId {
        let pair = &mut self.pairs[slot as usize];
        let settings = cx.settings.of::<RdmaConfig>(pair.transport);
        let now = cx.net.now;
        let Cut { seq, payload, flags, left } = pair.take_next(settings.mtu, now);
        if pair.windowed.is_some() {
            pair.tell_sent(seq, payload, settings.mtu, now);
        }
        let size = settings.data_bytes(u64::from(payload)) as u16;
        let packet = Packet {
            seq,
            sent: now,
            flow: pair.flow,
            src: cx.host,
            dst: pair.dst,
            sender: slot,
            hash: pair.hash,
            // What pFabric's queues order by.
            aux: u32::try_from(left).unwrap_or(u32::MAX),
            size,
            payload,
            group: pair.group,
            kind: PacketKind::Data,
            class: settings.class,
            wire_class: settings.class,
            flags,
            transport: cx.transport,
            profile: pair.transport as u8,
            ..Packet::default()
        };
        pair.last_size = size;
        // The pacing gap, from the start of this packet to the start of the next.
        let rate = if settings.pacing { pair.control.rate } else { pair.line_rate };
        let gap = |rate| pacing_gap(u64::from(size), rate, &cx.settings.rules);
        let nic = &mut self.nics[usize::from(pair.nic)];
        let from = match cx.late_packets(pair.dst) {
            0 => now,
            // Or from when this packet was due, within limits.
            late => nic.due(pair.gate).max(now.saturating_sub(Time(late * gap(pair.line_rate).0))),
        };
        nic.set_due(pair.gate, from + gap(rate));
        pair.update_gate(nic);
        if settings.rto.is_some() && !pair.rto_armed {
            pair.rto_armed = true;
            pair.rto_since = now;
            // The event of a message before, where it comes first, will look at the timeout as it stands then.
            let comes =
                pair.rto_event > now && pair.rto_deadline(settings).is_some_and(|at| pair.rto_event <= at);
            if !comes {
                set_timeout(pair, slot, settings, cx);
            }
        }
        cx.net.telemetry_bytes += u64::from(settings.derived.telemetry_bytes);
        let (flow, carries) = (pair.flow, settings.derived.stack);
        let id = cx.net.packets.insert(packet);
        if carries {
            begin_telemetry(id, flow, seq, cx);
        }
        id
    }

    /// An acknowledgement has come back.
    fn receive_ack(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        let pair = &mut self.pairs[packet.sender as usize];
        if pair.flow != packet.flow || pair.done {
            cx.net.discard(id);
            return None;
        }
        let now = cx.net.now;
        let settings = cx.settings.of::<RdmaConfig>(pair.transport);
        let mtu = settings.mtu;
        let before = pair.windowed.is_some().then(|| pair.before(&packet, mtu, now));
        // Only the last packet of a flow can be a short one.
        let payload = if packet.is_last() { pair.payload_of(packet.aux, mtu) } else { mtu };
        let reached = pair.acknowledged;
        let newly = pair.acknowledge(&packet, settings);
        if newly > 0 && (pair.acknowledged > reached || cx.settings.rules.any_arrival_restarts) {
            pair.progress(now);
            // With less outstanding the timeout may be the shorter one.
            let shortens = settings.recovery.irn().is_some() && pair.rto_armed;
            if shortens && pair.rto_deadline(settings).is_some_and(|at| at < pair.rto_event) {
                set_timeout(pair, packet.sender, settings, cx);
            }
        }
        if pair.acknowledged >= pair.goal {
            end_flows(pair, &self.nics, cx);
        }
        let negative = packet.kind == PacketKind::Nack;
        if negative {
            pair.missing(packet.seq);
        }
        let load = settings.derived.load.as_deref().and_then(|pint| path_load(pint, id, cx));
        let ack = Ack {
            now,
            acknowledged: packet.seq,
            newly_acknowledged: newly,
            next_byte: pair.next,
            marked: packet.marked(),
            rtt: now - packet.sent,
            payload,
            negative,
            telemetry: (packet.carries && cx.settings.pint.is_none())
                .then(|| cx.net.int_view(id))
                .flatten()
                .map(|view| if cx.settings.path_ids { view } else { IntView { path_id: 0, ..view } }),
            load,
        };
        let rate = pair.control.rate;
        match before {
            None => pair.controller.on_ack(&ack, &mut pair.control),
            Some(before) => pair.tell_acknowledged(&before, &ack, Time(cx.net.waits.get(id)), mtu),
        }
        if let Some(plb) = &mut pair.plb {
            // Another path changes nothing of what hosts take.
            let rtt = Some(ack.rtt.saturating_sub(Time(cx.net.waits.get(id))));
            let marked = ack.marked;
            let feedback =
                Feedback { now, rtt, marked, weight: 1, acknowledged: pair.acknowledged, next: pair.next };
            pair.hash = plb.on_ack(&feedback, pair.hash).unwrap_or(pair.hash);
        }
        cx.net.discard(id);
        let slot = packet.sender;
        self.steer(slot, rate, cx);
        if cx.settings.rules.queue_per_flow {
            self.hand_over(slot, cx);
        }
        let port = cx.first_port + u32::from(self.pairs[slot as usize].nic);
        self.retire(slot);
        Some(port)
    }

    /// Applies what a controller decided: the time of the next packet, the window, timers.
    fn steer(&mut self, slot: u32, before: Rate, cx: &mut HostContext) {
        let pair = &mut self.pairs[slot as usize];
        let nic = &mut self.nics[usize::from(pair.nic)];
        let port = cx.first_port + u32::from(pair.nic);
        if pair.control.repace {
            pair.control.repace = false;
            if pair.control.rate != before {
                let size = u64::from(pair.last_size);
                let rules = &cx.settings.rules;
                let longer = pacing_gap(size, pair.control.rate, rules).0 as i64
                    - pacing_gap(size, before, rules).0 as i64;
                let due = Time(nic.due(pair.gate).0.saturating_add_signed(longer));
                nic.set_due(pair.gate, due);
            }
            nic.bring_wake_forward(pair.gate, port, cx);
        }
        if pair.control.rate != before || pair.control.cwnd.is_some() {
            pair.size_window();
        }
        pair.update_gate(nic);
        if pair.is_over() {
            return;
        }
        pair.set_timers(slot, cx);
    }

    /// Gives the place of a flow that is done to the next one.
    fn retire(&mut self, slot: u32) {
        if self.pairs[slot as usize].is_over() {
            self.free.push(slot);
            let resets = || self.nics.iter().any(|nic| nic.resets);
            if self.free.len() == self.pairs.len() && resets() {
                // The next ones get places, and turns at the NIC, as the first did.
                self.nics.iter_mut().for_each(Nic::reset);
                self.free.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
    }

    fn timed_out(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        let pair = &mut self.pairs[slot as usize];
        let now = cx.net.now;
        if pair.done || !pair.rto_armed || pair.rto_event != now {
            return None;
        }
        let settings = cx.settings.of::<RdmaConfig>(pair.transport);
        if pair.in_flight() == 0 && !pair.has_data() {
            pair.rto_armed = false;
            return None;
        }
        let before = pair.control.rate;
        let expired = now >= pair.rto_deadline(settings)?;
        if expired {
            let outstanding = pair.outstanding();
            pair.give_up_in_flight(cx.settings.rules.any_arrival_restarts, settings, now);
            let group = pair.group;
            cx.timed_out(group);
            pair.rto_since = now;
            pair.controller.on_timeout(now, &mut pair.control);
            pair.tell_timed_out(outstanding, now);
            if let Some(plb) = &mut pair.plb {
                pair.hash = plb.on_timeout(now, pair.hash);
            }
        }
        set_timeout(pair, slot, settings, cx);
        if !expired {
            return None;
        }
        self.steer(slot, before, cx);
        if cx.settings.rules.queue_per_flow {
            self.hand_over(slot, cx);
        }
        Some(cx.first_port + u32::from(self.pairs[slot as usize].nic))
    }
}

/// An event comes when the timeout expires.
fn set_timeout(pair: &mut QueuePair, slot: u32, settings: &RdmaConfig, cx: &mut HostContext) {
    if let Some(at) = pair.rto_deadline(settings) {
        pair.rto_event = at;
        cx.set_timer(at, slot * TOKENS + RETRANSMIT as u32);
    }
}

/// Time between the starts of two packets of this size at this rate.
fn pacing_gap(bytes: u64, rate: Rate, rules: &Rules) -> Time {
    const PICOBITS: u64 = 8_000_000_000_000;
    match (rules.fixed_point_pacing, rules.whole_ns_pacing) {
        (true, _) => crate::net::port::truncated_transmission_time(bytes, rate),
        (_, true) => crate::net::port::cut_transmission_time(bytes, rate),
        // A packet has at most 65 535 bytes, so the product fits.
        _ => Time((bytes * PICOBITS).div_ceil(rate.0.max(1))),
    }
}

/// What a data packet takes telemetry along in.
#[inline]
fn begin_telemetry(id: PacketId, flow: FlowId, first_byte: u64, cx: &mut HostContext) {
    cx.net.begin_telemetry(id);
    if let Some(pint) = &cx.settings.pint {
        let packet = packet_id(flow, first_byte);
        cx.net.packet_digest(id).begin(packet, pint.set_of(packet));
    }
}

/// The load that an acknowledgement brings back: its packet's id went with the digest.
#[inline(never)]
fn path_load(pint: &PintConfig, id: PacketId, cx: &mut HostContext) -> Option<PathLoad> {
    let packet = cx.net.packets[id];
    if !packet.carries {
        return None;
    }
    let load = pint.load_of(&cx.net.packet_digest(id))?;
    Some(PathLoad { load, coin: coin(cx.settings.seed, packet.flow, packet.sent) })
}

/// A path with the base RTT that is set for all, if one is.
fn known(path: FlowPath, settings: &RdmaConfig) -> FlowPath {
    FlowPath { base_rtt: settings.base_rtt.or(path.base_rtt), ..path }
}

/// The law of a flow that one of TCP's controllers steers.
fn start_law(
    window: &PairWindow,
    flow: FlowId,
    dst: u32,
    settings: &RdmaConfig,
    line_rate: Rate,
    cx: &HostContext,
) -> Box<Windowed> {
    let mss = u64::from(settings.mtu);
    let path = known(cx.path_to(dst, &window.law, mss), settings);
    let context = WindowContext {
        initial: mss * u64::from(window.initial),
        mss,
        packet: settings.data_bytes(mss),
        random: RandomStream::new(cx.settings.seed, &format!("rdma.flow{flow}")).next_u64(),
        path,
    };
    let max_in_flight = settings.window.map_or(u64::MAX, |window| window.0);
    Box::new(Windowed::new(&window.law, &context, line_rate, max_in_flight))
}

fn settings_of<'a>(cx: &HostContext<'a>, profile: u8) -> &'a RdmaConfig {
    cx.settings.of::<RdmaConfig>(profile)
}

impl Transport for Rdma {
    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        if let Some(&slot) = spec.connection.and_then(|connection| self.kept.get(&connection)) {
            return Some(self.append(slot, flow, spec, cx));
        }
        let mut hash = self.hash_of(flow, spec, cx);
        let settings = cx.settings.of::<RdmaConfig>(spec.transport);
        // Without a route the flow waits at its first port, and ends unfinished if none ever comes.
        let port = cx.bind(flow, spec, &mut hash).unwrap_or(cx.first_port);
        let nic_number = (port - cx.first_port) as u16;
        let line_rate = cx.rate_by(port, spec.dst);
        let window_bytes =
            settings.derived.window_bytes.unwrap_or(line_rate.bytes_in(settings.derived.base_rtt).0);
        let context = FlowContext {
            flow,
            line_rate,
            base_rtt: settings.derived.base_rtt,
            round_trip: settings.round_trip(cx.settings.packet_time),
            window_bytes,
            mtu: settings.mtu,
            int_layout: cx.settings.int_layout,
        };
        let (controller, control) = settings.controller.start(&context, cx.settings.int_hops);
        let limit = if settings.derived.window == Window::None { 0 } else { window_bytes.max(1) };
        let mut pair = QueuePair::new(flow, spec, controller, control, settings, line_rate, limit);
        if let Some(window) = settings.controller.window() {
            pair.windowed = Some(start_law(window, flow, spec.dst, settings, line_rate, cx));
            pair.start_windowed(cx.now());
        }
        pair.hash = hash;
        pair.plb = settings.plb.map(|plb| Box::new(plb.start(mix64(cx.settings.seed) ^ u64::from(flow))));
        pair.nic = nic_number;
        pair.start = cx.now();
        let slot = self.free.pop().unwrap_or(self.pairs.len() as u32);
        let nic = &mut self.nics[usize::from(nic_number)];
        nic.resets |= spec.path_of.is_some() && !cx.settings.rules.queue_per_flow;
        pair.gate = nic.add(slot, cx.net.now, settings.class);
        if spec.connection.is_some() {
            pair.keep_open(Message::new(flow, spec, cx.now()));
            self.kept.insert(flow, slot);
        }
        pair.update_gate(nic);
        if slot as usize == self.pairs.len() {
            self.pairs.push(pair);
        } else {
            self.pairs[slot as usize] = pair;
        }
        if cx.settings.rules.queue_per_flow {
            self.hand_over(slot, cx);
        }
        Some(port)
    }

    #[inline(always)]
    fn prefetch(&self) {
        prefetch_lines(self, 4);
        prefetch(&self.nics, 0);
    }

    #[inline]
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        match cx.net.packets[id].kind {
            PacketKind::Data => self.receive_data(id, cx),
            _ => self.receive_ack(id, cx),
        }
    }

    #[inline]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        if cx.settings.rules.queue_per_flow {
            return self.next_of_flows(port, cx);
        }
        let nic = &mut self.nics[cx.scheduler_of(port)];
        let paused = cx.net.ports[port as usize].paused;
        let may = |pairs: &Vec<QueuePair>, slot: u32| cx.may_leave(port, pairs[slot as usize].dst);
        let moved = |pairs: &mut Vec<QueuePair>, slot: u32, gate: u32| pairs[slot as usize].gate = gate;
        let choice = nic.choose(cx.net.now, paused, &cx.settings.rules, &mut self.pairs, may, moved);
        match choice {
            Choice::Send(slot) => Some(self.build(slot, cx)),
            Choice::WaitUntil(due) => {
                nic.set_wake(due, port, cx);
                None
            }
            Choice::Nothing => None,
        }
    }

    #[inline]
    fn next_look(&mut self, nic: usize, paused: u8, free: Time) -> Look {
        self.nics[nic].next_look(paused, free)
    }

    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        let (slot, timer) = (token / TOKENS, (token % TOKENS) as usize);
        if timer == RETRANSMIT {
            return self.timed_out(slot, cx);
        }
        let pair = &mut self.pairs[slot as usize];
        let now = cx.net.now;
        if pair.is_over() || pair.timers_set[timer] != now {
            return None;
        }
        pair.timers_set[timer] = Time::MAX;
        pair.control.timers[timer] = Time::MAX;
        if cx.settings.rules.queue_per_flow && timer == PACE && pair.windowed.is_some() {
            return self.paced(slot, cx);
        }
        let before = pair.control.rate;
        pair.controller.on_timer(timer, now, &mut pair.control);
        if pair.done {
            pair.steer_at_rest();
            pair.set_timers(slot, cx);
            return None;
        }
        self.steer(slot, before, cx);
        let looks = !cx.settings.rules.unseen_timers;
        looks.then(|| cx.first_port + u32::from(self.pairs[slot as usize].nic))
    }

    fn on_wake(&mut self, port: PortId, serial: u32, cx: &HostContext) -> bool {
        self.nics[cx.scheduler_of(port)].wake_is(serial)
    }

    /// None where senders have queues of their own at a NIC.
    fn places(&self) -> u32 {
        if self.queues.is_some() { 0 } else { self.pairs.len() as u32 }
    }

    fn leaving(&self, place: u32, flows: &mut Vec<FlowId>) -> Option<Leaving> {
        let pair = self.pairs.get(place as usize).filter(|pair| !pair.is_over())?;
        flows.extend(pair.flows());
        Some(Leaving { nic: pair.nic, dst: pair.dst, hash: pair.hash })
    }

    fn leave_by(&mut self, place: u32, by: Leaving, cx: &mut HostContext) {
        let pairs = &mut self.pairs;
        let pair = &mut pairs[place as usize];
        let (old, gate) = (usize::from(pair.nic), pair.gate);
        (pair.nic, pair.hash) = (by.nic, by.hash);
        // One that rests has no gate: it gets one with its next message.
        if pair.done {
            return;
        }
        let due = self.nics[old].due(gate);
        self.nics[old].take_out(gate, |slot, gate| pairs[slot as usize].gate = gate);
        let pair = &mut pairs[place as usize];
        let nic = &mut self.nics[usize::from(by.nic)];
        pair.gate = nic.add(place, due, cx.settings.of::<RdmaConfig>(pair.transport).class);
        pair.update_gate(nic);
    }

    fn on_network_change(&mut self, cx: &mut HostContext) -> Vec<PortId> {
        for pair in self.pairs.iter_mut().filter(|pair| !pair.is_over()) {
            let (settings, dst) = (cx.settings.of::<RdmaConfig>(pair.transport), pair.dst);
            let law = settings.controller.window().filter(|window| window.law.follows_path());
            let new = |window: &PairWindow| {
                let path = cx.new_path_to(dst, &window.law, settings.mtu.into())?;
                Some(known(path, settings))
            };
            if let (Some(windowed), Some(path)) = (&mut pair.windowed, law.and_then(new)) {
                windowed.on_path(&path);
            }
        }
        Vec::new()
    }

    fn forget(&mut self, flow: FlowId) {
        self.received.remove(&flow);
    }

    fn finish(&mut self, cx: &mut HostContext) {
        self.pairs.iter().filter(|pair| !pair.done).for_each(|pair| pair.record_unfinished(cx));
    }

    fn hold(&self, flow: FlowId) -> Option<Hold> {
        let pair = self.pairs.iter().find(|pair| !pair.done && pair.carries(flow))?;
        Some(self.nics[usize::from(pair.nic)].hold(pair.gate))
    }

    fn view(&self, flow: FlowId, now: Time) -> Option<FlowView> {
        let pair = self.pairs.iter().find(|pair| !pair.done && pair.carries(flow))?;
        let mut view = FlowView {
            rate_bps: Some(pair.control.rate.0 as f64),
            cwnd_bytes: (pair.window_now > 0).then_some(pair.window_now as f64),
            internals: Vec::new(),
        };
        pair.controller.internals(now, &mut view.internals);
        if let Some(windowed) = &pair.windowed {
            windowed.internals(&mut view.internals);
        }
        if let Some(plb) = &pair.plb {
            plb.internals(&mut view.internals);
        }
        Some(view)
    }
}
