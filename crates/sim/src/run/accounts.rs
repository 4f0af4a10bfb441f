//! The end of a run: every byte is accounted for, and the totals are drawn up.

use super::Simulation;
use super::deadlock::Queued;
use super::region::Region;
use crate::counters::CounterSet;
use crate::engine::random::mix64;
use crate::measure::{Ending, LossCounters, Outcome, PortTotals, Receiving};
use crate::net::NodeIndex;
use crate::net::agenda::Action;
use crate::queue::{self, QueueDiscipline};
use rustc_hash::FxHashSet;

impl Simulation {
    /// Totals of the run; also checks conservation, in release builds too.
    pub(crate) fn outcome(mut self, ending: Ending) -> Outcome {
        let (disciplines, counters, steps) = (self.disciplines(), self.counters(), self.steps());
        let (ranks, waiting) = (self.flows.take_ranks(), self.waiting_operations(ending == Ending::Stalled));
        let (causes, silence) = (self.causes(), self.silence(ending));
        let mut queued = FxHashSet::default();
        let mut take_apart = |region: &mut Box<Region>| {
            let (on_wire, held_up) = region.in_turn(Region::take_apart);
            queued.extend(held_up);
            on_wire
        };
        let on_wire: Vec<Vec<OnWire>> = self.regions.iter_mut().map(&mut take_apart).collect();
        let sum = |what: fn(&Region) -> u64| self.regions.iter().map(|region| what(region)).sum::<u64>();
        // Messages that wait for others count in any case; in an interrupted run none do.
        let unstarted = if ending == Ending::Interrupted { 0 } else { self.unstarted_without_rows() };
        let flows = sum(|r| r.net.recorder.flows_recorded) + unstarted;
        let mut outcome = Outcome {
            ending,
            end: self.now,
            flows,
            flows_not_due: self.flows.not_counted(flows),
            flows_done: sum(|r| r.net.recorder.flows_done),
            events: sum(|r| r.net.events_handled()),
            packet_hops: sum(|r| r.net.sent().0),
            bytes_on_wire: sum(|r| r.net.sent().1),
            telemetry_bytes: sum(|r| r.net.telemetry_bytes),
            bytes_switched: sum(Region::bytes_switched),
            counters,
            last_loss: self.regions.iter().filter_map(|region| region.net.last_loss).max(),
            receiving: self.receiving(),
            fingerprint: 0,
            losses: self.losses(),
            ports: self.port_totals(&on_wire),
            queues: self.probes.queues(),
            memo: self.memo.as_ref().map(|memo| memo.report(steps.len())),
            steps,
            ranks,
            waiting,
            causes,
            disciplines,
            deadlock: self.deadlock(&queued),
            silence,
        };
        let hash = self.regions.iter().fold(0u64, |hash, region| hash.wrapping_add(region.net.recorder.hash));
        let delivered = sum(|r| r.net.recorder.delivered);
        outcome.fingerprint = fingerprint(&outcome, hash, delivered);
        outcome
    }

    /// What became of the data packets of each group; after the regions were taken apart.
    fn losses(&self) -> Vec<LossCounters> {
        let mut all = vec![LossCounters::default(); self.regions[0].net.recorder.losses.len()];
        for region in &self.regions {
            all.iter_mut().zip(&region.net.recorder.losses).for_each(|(sum, own)| *sum += *own);
        }
        all.into_iter().map(LossCounters::closed).collect()
    }

    /// What came to all hosts, where that is noted.
    fn receiving(&self) -> Option<Receiving> {
        let hosts = self.regions.iter().flat_map(|region| region.hosts.iter());
        let mut totals = Receiving::default();
        hosts.filter_map(|host| host.edge.as_ref()).for_each(|edge| edge.add_to(&mut totals));
        (totals.packets > 0).then_some(totals)
    }

    /// What switches and hosts have counted.
    pub(super) fn counters(&mut self) -> CounterSet {
        let mut counters = CounterSet::default();
        for region in &mut self.regions {
            region.switches.iter_mut().for_each(|switch| switch.count(self.now, &mut counters));
            region.hosts.iter_mut().for_each(|host| host.count(self.now, &mut counters));
        }
        counters
    }

    /// What queue disciplines have counted, in the order of the nodes and their ports.
    fn disciplines(&mut self) -> Vec<(u32, u32, CounterSet)> {
        let mut all = Vec::new();
        for (number, side) in self.map.sides.iter().enumerate() {
            let local = number as u32 - self.map.first_port[side.node as usize];
            let (region, id) = self.places.of_port(side.node, local);
            let mut counted = CounterSet::default();
            self.regions[region].net.ports[id as usize].queue.count(self.now, &mut counted);
            if !counted.is_empty() {
                counted.complete(&queue::counters());
                all.push((side.node, local, counted));
            }
        }
        all
    }

    /// Totals of every port, in the order of the nodes and their ports. What a port received is what its peer sent, less
    /// what the link lost and what is still on it.
    fn port_totals(&self, on_wire: &[Vec<OnWire>]) -> Vec<(u32, u32, PortTotals)> {
        let mut all = Vec::with_capacity(self.map.sides.len());
        for (number, side) in self.map.sides.iter().enumerate() {
            let local = number as u32 - self.map.first_port[side.node as usize];
            let (region, id) = self.places.of_port(side.node, local);
            let peer_local = side.peer - self.map.first_port[side.peer_node as usize];
            let (peer_region, peer) = self.places.of_port(side.peer_node, peer_local);
            let sender = &self.regions[peer_region].net.ports[peer as usize];
            let net = &self.regions[region].net;
            let (port, totals) = (&net.ports[id as usize], net.totals[id as usize]);
            let coming = on_wire[region][id as usize];
            let totals = PortTotals {
                packets_sent: port.packets_sent,
                bytes_sent: port.bytes_sent,
                packets_received: sender.packets_sent - totals.packets_lost - coming.packets,
                bytes_received: sender.bytes_sent - totals.bytes_lost - coming.bytes,
                ..totals
            };
            debug_assert_eq!(
                (totals.packets_received, totals.bytes_received),
                (port.packets_received, port.bytes_received),
                "the link into port {local} of node {} does not conserve bytes",
                side.node
            );
            all.push((side.node, local, totals));
        }
        all
    }
}

/// What is on a link when the run ends.
#[derive(Debug, Clone, Copy, Default)]
struct OnWire {
    packets: u64,
    bytes: u64,
}

/// Hash of all completed flows, and of what every port did.
fn fingerprint(outcome: &Outcome, flows: u64, delivered: u64) -> u64 {
    let mut hash = mix64(flows ^ outcome.packet_hops);
    for (_, _, totals) in &outcome.ports {
        let sent = totals.bytes_sent ^ totals.packets_sent.rotate_left(40);
        let events =
            totals.ecn_marks ^ totals.packets_dropped.rotate_left(24) ^ totals.pauses.rotate_left(48);
        hash = mix64(hash ^ mix64(sent ^ mix64(events)));
    }
    mix64(hash ^ delivered)
}

impl Region {
    /// Bytes that its switches sent.
    fn bytes_switched(&self) -> u64 {
        let of_switch = |port: u32| matches!(self.net.owner(port), NodeIndex::Switch(_));
        (0..self.net.ports.len() as u32)
            .filter(|&port| of_switch(port))
            .map(|port| self.net.ports[port as usize].bytes_sent)
            .sum()
    }

    /// Takes the region apart: what its switches hold is in their queues, and no packet is left over. What is on the
    /// links into its ports, and what waits although its sender is paused.
    fn take_apart(&mut self) -> (Vec<OnWire>, FxHashSet<Queued>) {
        let mut on_wire = vec![OnWire::default(); self.net.ports.len()];
        let mut packets = 0usize;
        for event in self.net.agenda.drain() {
            match event.action() {
                Action::Arrival { port, packet } => {
                    self.net.leave_in_flight(packet);
                    let link = &mut on_wire[port as usize];
                    link.packets += 1;
                    link.bytes += u64::from(self.net.packets[packet].size);
                    packets += 1;
                }
                // It is charged to the buffer once it is forwarded.
                Action::Forward { packet, .. } => {
                    self.net.leave_in_flight(packet);
                    packets += 1;
                }
                _ => {}
            }
        }
        for id in self.switches.iter_mut().flat_map(|switch| switch.held.drain()) {
            self.net.leave_in_flight(id);
            packets += 1;
        }
        let mut held_up = FxHashSet::default();
        let mut queued = vec![0u64; self.switches.len()];
        for id in 0..self.net.ports.len() {
            let owner = self.net.owner(id as u32);
            let port = &self.net.ports[id];
            let (charges, local) = (!port.owns_buffer, port.local);
            while let Some(packet) = self.net.ports[id].queue.evict(&mut self.net.packets) {
                let sent = &self.net.packets[packet];
                if let NodeIndex::Switch(s) = owner
                    && charges
                    && !sent.is_uncharged()
                {
                    queued[s as usize] += u64::from(sent.size);
                    let (came_by, class) = (sent.ingress, sent.class);
                    if let Some(node) = self.pauses(s, came_by, class) {
                        held_up.insert(Queued { node, class, came_by, at: local });
                    }
                }
                self.net.leave_in_flight(packet);
                packets += 1;
            }
        }
        for (switch, queued) in self.switches.iter().zip(queued) {
            assert_eq!(switch.buffer.held(), queued, "switch {} holds bytes that no queue has", switch.node);
        }
        assert_eq!(self.net.packets.live(), packets, "packets are neither queued nor on a link");
        (on_wire, held_up)
    }
}
