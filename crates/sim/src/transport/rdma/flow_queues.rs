//! A NIC with a queue for each flow number, of data and acknowledgements together, as csg-htsim has it (`[compat] like = "htsim"`).
//!
//! The queues are served in turn, one packet each, in rising order of flow numbers. A queue stays once it was used, and the
//! turn goes to the queue that was the next one when the last packet was chosen: one that is inserted between the two waits
//! for the next round. A sender may have three packets here, the one that is being sent included; with three it waits until
//! one of them has been sent. They leave even if the window has shrunk meanwhile.
//!
//! A flow whose window is below one packet sends one packet per pacing delay, which is read when a packet leaves and kept
//! until the next one. Controllers of rates, which that simulator does not have here, hand a packet over when it is due.
//!
//! Source: Broadcom/csg-htsim at 841d9e7 (behaviour). Validated by: tests/rivals.rs.

use super::{QueuePair, Rdma, TOKENS};
use crate::net::PortId;
use crate::packet::{PacketId, PacketKind, PacketSlab};
use crate::transport::nic::Choice;
use crate::transport::{Hold, HostContext};
use crate::units::Time;
use crate::workload::FlowId;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// Packets that a sender may have in its NIC.
const LIMIT: usize = 3;
/// The timer of a queue pair that paces it; no window controller has one.
pub const PACE: usize = 0;

#[derive(Default)]
struct FlowQueue {
    packets: VecDeque<PacketId>,
    /// The queue pair that waits until a packet has been sent.
    waiting: Option<u32>,
}

/// The queues of one port.
#[derive(Default)]
pub struct FlowQueues {
    queues: BTreeMap<FlowId, FlowQueue>,
    /// The flow whose turn it is; none: the first one.
    turn: Option<FlowId>,
    /// The flow whose packet is being sent.
    sending: Option<FlowId>,
}

/// Those of all NICs of a host.
#[derive(Default)]
pub struct NicQueues(Vec<FlowQueues>);

impl FlowQueues {
    fn push(&mut self, flow: FlowId, id: PacketId) {
        self.queues.entry(flow).or_default().packets.push_back(id);
    }

    /// Packets of a flow, the one that is being sent included.
    fn held(&self, flow: FlowId) -> usize {
        let queued = self.queues.get(&flow).map_or(0, |queue| queue.packets.len());
        queued + usize::from(self.sending == Some(flow))
    }

    /// The next packet of a class that is not paused.
    fn choose(&mut self, paused: u8, packets: &PacketSlab) -> Option<PacketId> {
        for _ in 0..=self.queues.len() {
            let from = self.turn.map_or(Bound::Unbounded, Bound::Included);
            let mut rest = self.queues.range_mut((from, Bound::Unbounded));
            let chosen = rest.next().and_then(|(&flow, queue)| {
                let first = *queue.packets.front()?;
                if paused & (1 << packets[first].class) != 0 {
                    return None;
                }
                queue.packets.pop_front();
                Some((flow, first))
            });
            self.turn = rest.next().map(|(&flow, _)| flow);
            if let Some((flow, id)) = chosen {
                self.sending = Some(flow);
                return Some(id);
            }
        }
        None
    }
}

impl Rdma {
    /// The queues of a port.
    pub fn queues_of(&mut self, nic: usize) -> &mut FlowQueues {
        let NicQueues(queues) = &mut **self.queues.get_or_insert_default();
        if queues.len() <= nic {
            queues.resize_with(nic + 1, FlowQueues::default);
        }
        &mut queues[nic]
    }

    /// An acknowledgement is to be sent.
    pub fn queue_answer(&mut self, port: PortId, flow: FlowId, id: PacketId, cx: &HostContext) {
        self.queues_of((port - cx.first_port) as usize).push(flow, id);
    }

    /// The port is free: its next packet. The sender whose packet has just left may hand over more.
    pub fn next_of_flows(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        let nic = (port - cx.first_port) as usize;
        let paused = cx.net.ports[port as usize].paused;
        let queues = self.queues_of(nic);
        let sent = queues.sending.take();
        let mut chosen = queues.choose(paused, &cx.net.packets);
        let queue = sent.and_then(|flow| queues.queues.get_mut(&flow));
        if let Some(slot) = queue.and_then(|queue| queue.waiting.take()) {
            self.hand_over(slot, cx);
            chosen = chosen.or_else(|| self.queues_of(nic).choose(paused, &cx.net.packets));
        }
        let id = chosen.or_else(|| self.next_of_rates(port, paused, cx))?;
        // An acknowledgement brings the time of its data packet back.
        let packet = &mut cx.net.packets[id];
        if packet.kind == PacketKind::Data {
            packet.sent = cx.net.now;
        }
        Some(id)
    }

    /// The queues are empty: a packet of a sender that is paced by its rate, if its time has come.
    fn next_of_rates(&mut self, port: PortId, paused: u8, cx: &mut HostContext) -> Option<PacketId> {
        let nic = (port - cx.first_port) as usize;
        for _ in 0..self.nics[nic].len() {
            let moved = |pairs: &mut Vec<QueuePair>, slot: u32, gate: u32| pairs[slot as usize].gate = gate;
            let (now, rules) = (cx.net.now, &cx.settings.rules);
            match self.nics[nic].choose(now, paused, rules, &mut self.pairs, |_, _| true, moved) {
                Choice::Send(slot) => self.hand_over(slot, cx),
                Choice::WaitUntil(due) => {
                    self.nics[nic].set_wake(due, port, cx);
                    return None;
                }
                Choice::Nothing => return None,
            }
            if let Some(id) = self.queues_of(nic).choose(paused, &cx.net.packets) {
                return Some(id);
            }
        }
        None
    }

    /// A queue pair hands over what its window, its pace and its NIC let it.
    pub fn hand_over(&mut self, slot: u32, cx: &mut HostContext) {
        loop {
            let pair = &mut self.pairs[slot as usize];
            let nic = usize::from(pair.nic);
            if let Some(next) = pair.windowed.as_ref().and_then(|windowed| windowed.paced_until()) {
                if pair.control.timers[PACE] == Time::MAX && pair.has_data() {
                    pair.control.timers[PACE] = next.max(cx.net.now);
                    pair.set_timers(slot, cx);
                }
                return;
            }
            let Hold::Free { from: due } = self.nics[nic].hold(pair.gate) else { return };
            if pair.control.rate < pair.line_rate && due > cx.net.now {
                let port = cx.first_port + nic as u32;
                return self.nics[nic].set_wake(due, port, cx);
            }
            if pair.windowed.is_some() {
                pair.control.timers[PACE] = Time::MAX;
                pair.set_timers(slot, cx);
            }
            let flow = pair.flow;
            let queues = self.queues_of(nic);
            if queues.held(flow) >= LIMIT {
                queues.queues.entry(flow).or_default().waiting = Some(slot);
                return;
            }
            self.hand_over_one(slot, cx);
        }
    }

    fn hand_over_one(&mut self, slot: u32, cx: &mut HostContext) {
        let id = self.build(slot, cx);
        let pair = &self.pairs[slot as usize];
        let (nic, flow) = (usize::from(pair.nic), pair.flow);
        self.queues_of(nic).push(flow, id);
    }

    /// The pacing delay of a queue pair has passed: one packet goes, whatever the window is now.
    pub fn paced(&mut self, slot: u32, cx: &mut HostContext) -> Option<PortId> {
        if self.pairs[slot as usize].has_data() {
            self.hand_over_one(slot, cx);
        }
        self.hand_over(slot, cx);
        Some(cx.first_port + u32::from(self.pairs[slot as usize].nic))
    }
}

const _: () = assert!(PACE < TOKENS as usize);
