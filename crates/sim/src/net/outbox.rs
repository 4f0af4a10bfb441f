//! Packets on links that lead into another partition: they cross by value, with the telemetry that they carry.
//!
//! A partition fills its outboxes while it works; between windows whole outboxes change hands. Nothing is shared, so
//! nothing is locked.

use super::PortId;
use super::agenda::Event;
use super::headers::Headers;
use crate::packet::{NONE, Packet, PacketSlab};
use crate::telemetry::int::{IntRecord, IntStacks};
use crate::units::Time;

/// What one partition sends to one other.
pub struct Outbox {
    /// Each with the node that it comes to in place of [`Packet::next`].
    packets: Vec<Packet>,
    /// Of each packet, its arrival.
    arrivals: Vec<Event>,
    /// When the first of them arrives.
    first: Time,
    /// Of the packets that carry a stack, in their order: its head and then its records.
    records: Vec<IntRecord>,
    /// What they carry for load balancers: of each, once one of them carries something.
    headers: Vec<u64>,
    /// Where they have been, likewise.
    trails: Vec<u64>,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            packets: Vec::new(),
            arrivals: Vec::new(),
            first: Time::MAX,
            records: Vec::new(),
            headers: Vec::new(),
            trails: Vec::new(),
        }
    }
}

impl Outbox {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Takes in a packet that reaches `port` of the other partition's `node` at `at`.
    #[inline(always)]
    pub fn post(&mut self, at: Time, node: u32, port: PortId, packet: &Packet, stacks: &IntStacks) {
        if packet.telemetry != NONE {
            stacks.copy_out(packet.telemetry, &mut self.records);
        }
        self.first = self.first.min(at);
        self.arrivals.push(Event::of_arrival(at, port, 0));
        self.packets.push(Packet { next: node, ..*packet });
    }

    /// What the packet that was taken in last carries for load balancers.
    pub fn post_header(&mut self, header: u64) {
        // Those before it carry nothing.
        self.headers.resize(self.packets.len() - 1, 0);
        self.headers.push(header);
    }

    /// Where the packet that was taken in last has been.
    pub fn post_trail(&mut self, trail: u64) {
        self.trails.resize(self.packets.len() - 1, 0);
        self.trails.push(trail);
    }

    /// When the first of its packets arrives.
    pub fn first_arrival(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.first)
    }

    /// Hands out its packets into the receiver's slabs, and their arrivals as (node, event).
    #[inline(always)]
    pub fn empty_into(
        &mut self,
        (packets, stacks, headers, trails): (&mut PacketSlab, &mut IntStacks, &mut Headers, &mut Headers),
        mut deliver: impl FnMut(u32, Event),
    ) {
        let mut records = &self.records[..];
        let (mut words, mut ways) = (self.headers.iter(), self.trails.iter());
        for (packet, arrival) in self.packets.iter().zip(&self.arrivals) {
            let mut arrived = *packet;
            if arrived.telemetry != NONE {
                arrived.telemetry = stacks.copy_in(&mut records);
            }
            let id = packets.insert(arrived);
            if let Some(&word) = words.next() {
                headers.set(id, word);
            }
            if let Some(&trail) = ways.next() {
                trails.set(id, trail);
            }
            deliver(packet.next, arrival.with_packet(id));
        }
        self.packets.clear();
        self.arrivals.clear();
        self.records.clear();
        self.headers.clear();
        self.trails.clear();
        self.first = Time::MAX;
    }
}
