//! Packets on links that lead into another partition: they cross by value, with the telemetry that they
//! carry.
//!
//! A partition appends to its outboxes while it works; between windows whole outboxes change hands. Nothing
//! is shared, so nothing is locked. The receiver sorts the arrivals by node once, and takes in the packets of
//! a node right before it works on it.

use super::PortId;
use super::agenda::Event;
use super::headers::Headers;
use crate::engine::prefetch::prefetch;
use crate::packet::{NONE, Packet, PacketSlab};
use crate::telemetry::int::{IntRecord, IntStacks};
use crate::units::Time;

/// Where a partition keeps packets, and what belongs to them.
type Slabs<'a> = (&'a mut PacketSlab, &'a mut IntStacks, &'a mut Headers, &'a mut Headers);

/// What one partition sends to one other.
pub struct Outbox {
    /// In the order in which they were sent. Their telemetry, if any, is the index of a stack in `records`.
    packets: Vec<Packet>,
    /// Of each packet, its node and its arrival.
    to: Vec<u32>,
    arrivals: Vec<Event>,
    /// The stacks that packets carry: of each its head and then its records.
    records: Vec<IntRecord>,
    /// What packets carry for load balancers, once one of them carries something.
    headers: Vec<u64>,
    /// Where they have been, likewise.
    trails: Vec<u64>,
    /// Nodes that have mail.
    nodes: Vec<u32>,
    /// By node: where its arrivals begin and end in `sorted`; before they are sorted, 0 and their number.
    places: Vec<(u32, u32)>,
    /// The arrivals by node, each with the index of its packet.
    sorted: Vec<Event>,
    /// When the first packet arrives.
    first: Time,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            packets: Vec::new(),
            to: Vec::new(),
            arrivals: Vec::new(),
            records: Vec::new(),
            headers: Vec::new(),
            trails: Vec::new(),
            nodes: Vec::new(),
            places: Vec::new(),
            sorted: Vec::new(),
            first: Time::MAX,
        }
    }
}

impl Outbox {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Nodes of the other partition that have mail.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// When the first of its packets arrives.
    pub fn first_arrival(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.first)
    }

    /// Appends a packet that reaches `port` of the other partition's `node` at `at`.
    #[inline(always)]
    pub fn post(&mut self, node: u32, at: Time, port: PortId, packet: &Packet, stacks: &IntStacks) {
        self.first = self.first.min(at);
        if self.places.len() <= node as usize {
            self.grow(node);
        }
        let count = &mut self.places[node as usize].1;
        if *count == 0 {
            self.nodes.push(node);
        }
        *count += 1;
        self.to.push(node);
        self.arrivals.push(Event::of_arrival(at, port, 0));
        self.packets.push(*packet);
        if packet.telemetry != NONE {
            self.post_stack(packet.telemetry, stacks);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, node: u32) {
        self.places.resize(node as usize + 1, (0, 0));
    }

    /// The stack of the packet that was appended last.
    fn post_stack(&mut self, id: u32, stacks: &IntStacks) {
        if let Some(packet) = self.packets.last_mut() {
            packet.telemetry = self.records.len() as u32;
        }
        stacks.copy_out(id, &mut self.records);
    }

    /// What the packet that was appended last carries for load balancers.
    pub fn post_header(&mut self, header: u64) {
        // Those before it carry nothing.
        self.headers.resize(self.packets.len() - 1, 0);
        self.headers.push(header);
    }

    /// Where the packet that was appended last has been.
    pub fn post_trail(&mut self, trail: u64) {
        self.trails.resize(self.packets.len() - 1, 0);
        self.trails.push(trail);
    }

    /// Sorts the arrivals by node, for [`Outbox::take_out`].
    pub fn sort(&mut self) {
        let mut sum = 0;
        for &node in &self.nodes {
            let place = &mut self.places[node as usize];
            let count = place.1;
            *place = (sum, sum);
            sum += count;
        }
        self.sorted.resize(self.packets.len(), Event::of_arrival(Time::ZERO, 0, 0));
        for (number, (&node, arrival)) in self.to.iter().zip(&self.arrivals).enumerate() {
            let end = &mut self.places[node as usize].1;
            self.sorted[*end as usize] = arrival.with_packet(number as u32);
            *end += 1;
        }
    }

    /// After [`Outbox::sort`]: the arrivals at a node.
    #[inline(always)]
    fn at_node(&self, node: u32) -> &[Event] {
        let (from, to) = self.places.get(node as usize).copied().unwrap_or_default();
        &self.sorted[from as usize..to as usize]
    }

    /// After [`Outbox::sort`]: begins to fetch some packets for a node.
    #[inline(always)]
    pub fn prefetch(&self, node: u32) {
        const SOME: usize = 8;
        let arrivals = self.at_node(node);
        let some = &arrivals[..arrivals.len().min(SOME)];
        some.iter().for_each(|event| prefetch(&self.packets, event.packet() as usize));
    }

    /// After [`Outbox::sort`]: hands out the packets for a node into the receiver's slabs, and their
    /// arrivals.
    #[inline(always)]
    pub fn take_out(&mut self, node: u32, mut into: Slabs<'_>, mut deliver: impl FnMut(Event)) {
        const AHEAD: usize = 6;
        let arrivals = self.at_node(node);
        for (at, arrival) in arrivals.iter().enumerate() {
            if let Some(ahead) = arrivals.get(at + AHEAD) {
                prefetch(&self.packets, ahead.packet() as usize);
            }
            deliver(self.insert(arrival.packet() as usize, *arrival, &mut into));
        }
        if !arrivals.is_empty() {
            self.places[node as usize] = (0, 0);
        }
    }

    /// Inserts a packet into the receiver's slabs; its arrival there.
    #[inline(always)]
    fn insert(
        &self,
        number: usize,
        arrival: Event,
        (packets, stacks, headers, trails): &mut Slabs<'_>,
    ) -> Event {
        let mut arrived = self.packets[number];
        if arrived.telemetry != NONE {
            arrived.telemetry = stacks.copy_in(&self.records[arrived.telemetry as usize..]);
        }
        let id = packets.insert(arrived);
        if let Some(&word) = self.headers.get(number) {
            headers.set(id, word);
        }
        if let Some(&trail) = self.trails.get(number) {
            trails.set(id, trail);
        }
        arrival.with_packet(id)
    }

    /// Hands out all packets into the receiver's slabs, and their arrivals as (node, event).
    pub fn empty_into(&mut self, mut into: Slabs<'_>, mut deliver: impl FnMut(u32, Event)) {
        for (number, (&node, arrival)) in self.to.iter().zip(&self.arrivals).enumerate() {
            deliver(node, self.insert(number, *arrival, &mut into));
        }
        self.nodes.iter().for_each(|&node| self.places[node as usize] = (0, 0));
        self.clear();
    }

    /// All packets have been taken out.
    pub fn clear(&mut self) {
        debug_assert!(self.nodes.iter().all(|&node| self.places[node as usize] == (0, 0)));
        self.packets.clear();
        self.to.clear();
        self.arrivals.clear();
        self.records.clear();
        self.headers.clear();
        self.trails.clear();
        self.nodes.clear();
        self.sorted.clear();
        self.first = Time::MAX;
    }
}
