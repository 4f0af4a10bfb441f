//! Packets on links that lead into another partition: they cross by value, with the telemetry that they carry.
//!
//! A partition fills its outboxes while it works; between windows whole outboxes change hands. Nothing is shared, so
//! nothing is locked.

use super::PortId;
use crate::packet::{NONE, Packet, PacketSlab};
use crate::telemetry::int::{IntRecord, IntStacks, StackHead};
use crate::units::Time;

/// What one partition sends to one other.
pub struct Outbox {
    crossings: Vec<Crossing>,
    /// When the first of them arrives.
    first: Time,
    /// Of the packets that carry a stack, in their order.
    heads: Vec<StackHead>,
    records: Vec<IntRecord>,
}

/// A packet on its way into another partition.
struct Crossing {
    at: Time,
    port: PortId,
    packet: Packet,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox { crossings: Vec::new(), first: Time::MAX, heads: Vec::new(), records: Vec::new() }
    }
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.crossings.is_empty()
    }

    /// Takes in a packet that reaches `port` of the other partition at `at`.
    pub fn post(&mut self, at: Time, port: PortId, packet: Packet, stacks: &IntStacks) {
        if packet.telemetry != NONE {
            let (head, records) = stacks.contents(packet.telemetry);
            self.heads.push(head);
            self.records.extend_from_slice(records);
        }
        self.first = self.first.min(at);
        self.crossings.push(Crossing { at, port, packet });
    }

    /// When the first of its packets arrives.
    pub fn first_arrival(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.first)
    }

    /// Hands out its packets into the receiver's slabs, as (time, port, packet).
    pub fn empty_into(
        &mut self,
        packets: &mut PacketSlab,
        stacks: &mut IntStacks,
        mut deliver: impl FnMut(Time, PortId, u32),
    ) {
        let (mut heads, mut records) = (self.heads.drain(..), &self.records[..]);
        for Crossing { at, port, mut packet } in self.crossings.drain(..) {
            if packet.telemetry != NONE {
                let head = heads.next().expect("every packet with telemetry brought its stack");
                packet.telemetry = stacks.insert_with(head, &mut records);
            }
            deliver(at, port, packets.insert(packet));
        }
        drop(heads);
        self.records.clear();
        self.first = Time::MAX;
    }
}
