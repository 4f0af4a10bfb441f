//! Taps: links whose packets are looked at as they leave, to be written down.
//!
//! A port whose link has a tap says that its peer is in a partition that does not exist. So its packets come by the way of those that
//! cross into another partition, where the tap notes them and sends them on; on other links, and in runs without taps, nothing is
//! asked of any packet that is not asked anyway.

use crate::packet::Packet;
use crate::telemetry::int::IntRecord;
use crate::units::Time;
use std::ops::Range;

/// From this number on, what a port says of its peer's partition names a tap.
pub const FIRST: u16 = 1 << 15;
/// Packets that are kept before they are handed on.
const BATCH: usize = 8192;

/// A packet that begins to cross a link.
#[derive(Debug, Clone)]
pub struct Seen {
    /// When its first bit leaves.
    pub time: Time,
    /// Which of the links asked for.
    pub link: u16,
    pub packet: Packet,
    /// What it carries for load balancers.
    pub header: u64,
    /// What it carries in the telemetry slab, its places in use, among [`Notes::records`].
    pub records: Range<usize>,
}

/// What taps have seen.
#[derive(Default)]
pub struct Notes {
    pub seen: Vec<Seen>,
    pub records: Vec<IntRecord>,
}

/// The taps of a partition.
#[derive(Default)]
pub struct Taps {
    /// By tap: the partition that its packets go to in truth, and the number of the link.
    ways: Vec<(u16, u16)>,
    notes: Notes,
    /// Nothing is noted any more.
    closed: bool,
}

impl Taps {
    /// One more, on a link into this partition; what its port is to say of its peer.
    pub fn add(&mut self, partition: u16, link: u16) -> u16 {
        self.ways.push((partition, link));
        FIRST + (self.ways.len() - 1) as u16
    }

    /// The partition that a tap's packets go to, and the number of its link.
    pub fn way(&self, tap: u16) -> (u16, u16) {
        self.ways[usize::from(tap - FIRST)]
    }

    /// Notes a packet; `copy` adds what it carries in the telemetry slab.
    pub fn note(&mut self, mut seen: Seen, copy: impl FnOnce(&mut Vec<IntRecord>)) {
        if self.closed {
            return;
        }
        let from = self.notes.records.len();
        copy(&mut self.notes.records);
        seen.records = from..self.notes.records.len();
        self.notes.seen.push(seen);
    }

    /// Whether there is a batch to hand on.
    pub fn is_full(&self) -> bool {
        self.notes.seen.len() >= BATCH
    }

    /// Moves what was noted behind other notes.
    pub fn take(&mut self, to: &mut Notes) {
        let before = to.records.len();
        to.records.append(&mut self.notes.records);
        to.seen.extend(
            self.notes
                .seen
                .drain(..)
                .map(|seen| Seen { records: seen.records.start + before..seen.records.end + before, ..seen }),
        );
    }

    /// Nobody wants to know more.
    pub fn close(&mut self) {
        self.closed = true;
    }
}

impl Notes {
    /// By time, then link, whatever partitions they come from.
    pub fn sort(&mut self) {
        self.seen.sort_by_key(|seen| (seen.time, seen.link));
    }

    pub fn clear(&mut self) {
        self.seen.clear();
        self.records.clear();
    }
}
