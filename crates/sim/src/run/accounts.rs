//! The end of a run: every byte is accounted for, and the totals are drawn up.

use super::Simulation;
use super::region::Region;
use crate::engine::random::mix64;
use crate::measure::{CebinaeTotals, DropCauses, Ending, LossCounters, Outcome, PortTotals, Receiving};
use crate::net::NodeIndex;
use crate::net::agenda::Action;
use crate::net::host::EdgeTotals;
use crate::queue::{CLASSES, QueueDiscipline};
use crate::units::Time;

/// (node, port of the node, something of the port)
type OfPort<T> = (u32, u32, T);

impl Simulation {
    /// Totals of the run; checks conservation on the way, in release builds too.
    pub(crate) fn outcome(mut self, ending: Ending) -> Outcome {
        let (drops, cebinae) = self.discipline_totals();
        let on_wire: Vec<Vec<OnWire>> = self.regions.iter_mut().map(|region| region.take_apart()).collect();
        let sum = |what: fn(&Region) -> u64| self.regions.iter().map(|region| what(region)).sum::<u64>();
        let edges = self.edge_totals();
        let recorded = sum(|r| r.net.recorder.flows_recorded);
        let mut outcome = Outcome {
            ending,
            end: self.now,
            flows: recorded,
            flows_not_due: self.flows.not_counted(recorded),
            flows_done: sum(|r| r.net.recorder.flows_done),
            events: sum(|r| r.net.events_handled()),
            packet_hops: sum(|r| r.net.sent().0),
            bytes_on_wire: sum(|r| r.net.sent().1),
            telemetry_bytes: sum(|r| r.net.telemetry_bytes),
            packets_recirculated: sum(|r| r.switches.iter().map(|switch| switch.recirculated().0).sum()),
            bytes_recirculated: sum(|r| r.switches.iter().map(|switch| switch.recirculated().1).sum()),
            bytes_switched: sum(Region::bytes_switched),
            probes: sum(|r| r.switches.iter().map(|switch| switch.balancer.probes().0).sum()),
            probe_bytes: sum(|r| r.switches.iter().map(|switch| switch.balancer.probes().1).sum()),
            probes_settled: self.probes_settled(),
            balancer_header_bytes: sum(|r| r.switches.iter().map(|s| s.balancer.header_bytes()).sum())
                + edges.header_bytes,
            flowlets: sum(|r| r.switches.iter().map(|switch| switch.balancer.flowlets().0).sum())
                + edges.flowlets,
            flowlets_moved: sum(|r| r.switches.iter().map(|switch| switch.balancer.flowlets().1).sum())
                + edges.flowlets_moved,
            last_loss: self.regions.iter().filter_map(|region| region.net.last_loss).max(),
            receiving: (edges.packets > 0).then_some(Receiving {
                packets: edges.packets,
                reordered: edges.reordered,
                reordered_behind: edges.reordered_behind,
                held: edges.held,
                expired: edges.expired,
                most_held: edges.most_held,
                flows: edges.flows,
                paths: edges.paths,
            }),
            fingerprint: 0,
            losses: self.losses(),
            ports: self.port_totals(&on_wire),
            queues: self.probes.queues(),
            jobs: std::mem::take(&mut self.flows.jobs_ended),
            drops,
            cebinae,
        };
        outcome.jobs.sort_unstable_by_key(|&(job, _, finish)| (finish, job));
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

    /// When every switch had heard of every rack.
    fn probes_settled(&self) -> Option<Time> {
        let switches = self.regions.iter().flat_map(|region| region.switches.iter());
        let known: Option<Vec<Time>> = switches.filter_map(|switch| switch.balancer.knows_all()).collect();
        known?.into_iter().max()
    }

    /// What the edges of all hosts came to.
    fn edge_totals(&self) -> EdgeTotals {
        let mut totals = EdgeTotals::default();
        let hosts = self.regions.iter().flat_map(|region| region.hosts.iter());
        hosts.filter_map(|host| host.edge.as_ref()).for_each(|edge| edge.add_to(&mut totals));
        totals
    }

    /// What disciplines dropped and Cebinae decided until now, in the order of the nodes and their ports.
    fn discipline_totals(&mut self) -> (Vec<OfPort<DropCauses>>, Vec<OfPort<CebinaeTotals>>) {
        let (mut drops, mut all) = (Vec::new(), Vec::new());
        for (number, side) in self.map.sides.iter().enumerate() {
            let local = number as u32 - self.map.first_port[side.node as usize];
            let (region, id) = self.places.of_port(side.node, local);
            let queue = &mut self.regions[region].net.ports[id as usize].queue;
            let Some([buffer, early, filter, horizon]) = queue.account().map(|account| account.drops())
            else {
                continue;
            };
            drops.push((side.node, local, DropCauses { buffer, early, filter, horizon }));
            let Some((tally, _)) = queue.cebinae(self.now) else { continue };
            let totals = CebinaeTotals {
                windows: tally.windows,
                windows_saturated: tally.saturated,
                top_flows: tally.top_flows,
                to_head: tally.to_head,
                to_tail: tally.to_tail,
                dropped_by_filter: tally.dropped_by_filter,
                dropped_by_buffer: tally.dropped_by_buffer,
                missed_by_cache: tally.missed_by_cache,
            };
            all.push((side.node, local, totals));
        }
        (drops, all)
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
    /// links into its ports.
    fn take_apart(&mut self) -> Vec<OnWire> {
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
        let mut queued = vec![0u64; self.switches.len()];
        for id in 0..self.net.ports.len() {
            let owner = self.net.owner(id as u32);
            let port = &self.net.ports[id];
            let charged: u64 = (1..CLASSES as u8).map(|class| port.queue.class_bytes(class)).sum();
            let charged = if port.queue.owns_buffer() { 0 } else { charged };
            if let NodeIndex::Switch(s) = owner {
                queued[s as usize] += charged;
            }
            while let Some(packet) = self.net.ports[id].queue.evict(&mut self.net.packets) {
                self.net.leave_in_flight(packet);
                packets += 1;
            }
        }
        for (switch, queued) in self.switches.iter().zip(queued) {
            assert_eq!(switch.buffer.held(), queued, "switch {} holds bytes that no queue has", switch.node);
        }
        assert_eq!(self.net.packets.live(), packets, "packets are neither queued nor on a link");
        on_wire
    }
}
