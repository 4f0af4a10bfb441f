//! The end of a run: every byte is accounted for, and the totals are drawn up.

use super::{NodeIndex, Simulation};
use crate::engine::random::mix64;
use crate::measure::{Ending, Outcome};
use crate::net::partition::Action;
use crate::queue::{CLASSES, QueueDiscipline};

impl Simulation {
    /// Totals of the run; checks conservation on the way, in release builds too.
    pub(super) fn outcome(mut self, ending: Ending) -> Outcome {
        let outcome = Outcome {
            ending,
            end: self.net.now,
            flows: self.flows.expected(),
            flows_done: self.net.recorder.flows_done,
            events: self.net.events_handled,
            packet_hops: self.net.packet_hops,
            bytes_on_wire: self.net.bytes_on_wire,
            telemetry_bytes: self.net.telemetry_bytes,
            fingerprint: self.fingerprint(),
            ports: self.port_totals(),
            queues: self.probes.queues(),
            jobs: std::mem::take(&mut self.net.recorder.jobs),
        };
        self.check_conservation();
        outcome
    }

    fn port_totals(&self) -> Vec<(u32, u32, crate::measure::PortTotals)> {
        self.net
            .ports
            .iter()
            .zip(&self.net.totals)
            .map(|(port, totals)| {
                let totals = crate::measure::PortTotals {
                    packets_sent: port.packets_sent,
                    bytes_sent: port.bytes_sent,
                    packets_received: port.packets_received,
                    bytes_received: port.bytes_received,
                    ..*totals
                };
                (port.node, u32::from(port.local), totals)
            })
            .collect()
    }

    /// Hash of all completed flows, and of what every port did.
    fn fingerprint(&self) -> u64 {
        let mut hash = mix64(self.net.recorder.hash ^ self.net.packet_hops);
        for (port, totals) in self.net.ports.iter().zip(&self.net.totals) {
            let sent = port.bytes_sent ^ port.packets_sent.rotate_left(40);
            let events =
                totals.ecn_marks ^ totals.packets_dropped.rotate_left(24) ^ totals.pauses.rotate_left(48);
            hash = mix64(hash ^ mix64(sent ^ mix64(events)));
        }
        mix64(hash ^ self.net.recorder.delivered)
    }

    /// Bytes are conserved on every link and in every switch, and no packet is left over.
    fn check_conservation(&mut self) {
        let mut on_wire = vec![0u64; self.net.ports.len()];
        let mut waiting_for_tail = vec![0u64; self.switches.len()];
        let mut packets = 0usize;
        while let Some(action) = self.net.take_pending() {
            match action {
                Action::Arrival { port, packet } => {
                    on_wire[port as usize] += u64::from(self.net.packets[packet].size);
                    packets += 1;
                }
                Action::Forward { port, packet } => {
                    packets += 1;
                    if let NodeIndex::Switch(s) = self.nodes[self.net.ports[port as usize].node as usize] {
                        waiting_for_tail[s as usize] += u64::from(self.net.packets[packet].size);
                    }
                }
                _ => {}
            }
        }
        for (at, port) in self.net.ports.iter().enumerate() {
            let sent = self.net.ports[port.peer as usize].bytes_sent;
            let arrived = port.bytes_received + self.net.totals[at].bytes_lost + on_wire[at];
            assert_eq!(sent, arrived, "bytes on the link into port {at} are not conserved");
        }
        let mut queued = vec![0u64; self.switches.len()];
        for id in 0..self.net.ports.len() {
            let port = &mut self.net.ports[id];
            let charged: u64 = (1..CLASSES as u8).map(|class| port.queue.class_bytes(class)).sum();
            if let NodeIndex::Switch(s) = self.nodes[port.node as usize] {
                queued[s as usize] += charged;
            }
            while port.queue.dequeue(0, &mut self.net.packets).is_some() {
                packets += 1;
            }
        }
        for (switch, queued) in self.switches.iter().zip(queued) {
            assert_eq!(switch.buffer.held(), queued, "switch {} holds bytes that no queue has", switch.node);
        }
        assert_eq!(self.net.packets.live(), packets, "packets are neither queued nor on a link");
    }
}
