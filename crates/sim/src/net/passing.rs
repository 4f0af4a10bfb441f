//! Packets that leave a run of hosts alone for switches outside the simulator, and those that come from there.

use super::outbox::Outbox;
use super::partition::Partition;
use crate::engine::queue::Timed;
use crate::packet::{NONE, Packet, PacketKind};
use crate::telemetry::int::IntRecord;
use crate::units::Time;

/// A packet at the far end of a link between a host and a switch.
#[derive(Debug, Clone)]
pub struct Passing {
    /// When it arrives there.
    pub at: Time,
    /// The switch's end of the link: its node, and which of the node's ports.
    pub node: u32,
    pub local: u32,
    pub packet: Packet,
    /// What it carries in addition to its fields, such as SACK blocks.
    pub records: Vec<IntRecord>,
}

impl Partition {
    /// Takes out what hosts sent to the switches of this partition. Data is counted as in flight until it is delivered: whether
    /// it is lost is not known here.
    pub fn take_out(&mut self, sent: &mut Outbox, mut take: impl FnMut(Passing)) {
        self.packets.receive(sent.arrivals.len());
        self.take_in_apart(sent);
        for event in &sent.arrivals {
            let Some((port, id)) = event.arrival() else { continue };
            let at_switch = &self.ports[port as usize];
            let (node, local) = (at_switch.node, u32::from(at_switch.local));
            self.arrives(port, id);
            self.leave_in_flight(id);
            let packet = self.packets[id];
            let mut records = Vec::new();
            self.copy_carried(id, &mut records);
            take(Passing { at: event.time(), node, local, packet, records });
            self.discard(id);
        }
        sent.clear();
    }

    /// Sends a packet that came from outside to the host at a switch's port; it arrives there at its time.
    pub fn bring(&mut self, port: u32, at: Time, came: &Passing) {
        let port = &mut self.ports[port as usize];
        port.packets_sent += 1;
        port.bytes_sent += u64::from(came.packet.size);
        let (there, node, peer) = (port.destination, port.peer_slot, port.peer);
        let (generation, ingress) = (port.generation, port.peer_local);
        let packet = Packet { generation, ingress, next: NONE, ..came.packet };
        if packet.kind == PacketKind::Data {
            let under_way = &mut self.recorder.losses[usize::from(packet.group)].data_in_flight;
            *under_way = under_way.saturating_sub(1);
        }
        let id = self.packets.insert(packet);
        self.carry(id, &came.records);
        self.arrive(there, node, at, peer, id);
    }
}
