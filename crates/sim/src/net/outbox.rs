//! Packets on links that lead into another partition: they cross by index, because all partitions of a run
//! keep their packets in one memory, and what a packet carries crosses with it.
//!
//! A partition appends to its outboxes while it works; between windows whole outboxes change hands, and with
//! them the places of their packets ([`crate::engine::shared_memory`]).

use super::agenda::Event;
use crate::engine::queue::Timed;
use crate::telemetry::int::IntRecord;
use crate::units::Time;

/// What one partition sends to one other.
pub struct Outbox {
    /// In the order in which packets were sent, of each its node and its arrival.
    pub nodes: Vec<u32>,
    pub arrivals: Vec<Event>,
    /// What those carry that have no room for it in their places: which of them, and what.
    pub apart: Vec<(usize, [IntRecord; 2])>,
    /// What packets carry for load balancers, once one of them carries something.
    pub headers: Vec<u64>,
    /// Where they have been, likewise.
    pub trails: Vec<u64>,
    /// What they have waited in hosts, likewise.
    pub waits: Vec<u64>,
    /// When the first packet arrives.
    first: Time,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            nodes: Vec::new(),
            arrivals: Vec::new(),
            apart: Vec::new(),
            headers: Vec::new(),
            trails: Vec::new(),
            waits: Vec::new(),
            first: Time::MAX,
        }
    }
}

impl Outbox {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// When the first of its packets arrives.
    pub fn first_arrival(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.first)
    }

    /// Appends a packet that reaches the other partition's `node`.
    #[inline(always)]
    pub fn post(&mut self, node: u32, arrival: Event) {
        self.first = self.first.min(arrival.time());
        self.nodes.push(node);
        self.arrivals.push(arrival);
    }

    /// What the packet that was appended last carries for load balancers.
    pub fn post_header(&mut self, header: u64) {
        // Those before it carry nothing.
        self.headers.resize(self.arrivals.len() - 1, 0);
        self.headers.push(header);
    }

    /// What the packet that was appended last carries apart from its place.
    pub fn post_apart(&mut self, places: [IntRecord; 2]) {
        self.apart.push((self.arrivals.len() - 1, places));
    }

    /// Where the packet that was appended last has been.
    pub fn post_trail(&mut self, trail: u64) {
        self.trails.resize(self.arrivals.len() - 1, 0);
        self.trails.push(trail);
    }

    /// What the packet that was appended last has waited in hosts.
    pub fn post_wait(&mut self, wait: u64) {
        self.waits.resize(self.arrivals.len() - 1, 0);
        self.waits.push(wait);
    }

    /// All packets have been taken out.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.arrivals.clear();
        self.apart.clear();
        self.headers.clear();
        self.trails.clear();
        self.waits.clear();
        self.first = Time::MAX;
    }
}
