//! Taps: links whose packets are recorded as they leave, for captures.
//!
//! A port stores where its packets go as one word, a [`Destination`]: a partition, or a tap that knows the partition.
//! The packet loop compares this word with that of its own partition, which it does anyway, so that only packets that
//! leave the partition or pass a tap take the longer path, and links without a tap cost nothing.

use super::trace::Trace;
use crate::packet::Packet;
use crate::telemetry::int::IntRecord;
use crate::units::Time;
use std::ops::Range;

/// Where the packets that leave a port go: directly to a partition, or past a tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destination(u16);

impl Destination {
    const TAPPED: u16 = 1 << 15;

    pub fn partition(number: u16) -> Destination {
        debug_assert!(number < Destination::TAPPED);
        Destination(number)
    }

    /// The partition, or the index of the tap.
    #[inline]
    pub fn target(self) -> Result<usize, usize> {
        let index = usize::from(self.0 & !Destination::TAPPED);
        if self.0 & Destination::TAPPED == 0 { Ok(index) } else { Err(index) }
    }
}

/// Packets recorded before they are passed on.
const BATCH: usize = 8192;

/// A packet at the start of its transmission on a link.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Time at which its first bit leaves.
    pub time: Time,
    /// Index of the link among those captured.
    pub link: u16,
    pub packet: Packet,
    /// The header that it carries for load balancers.
    pub header: u64,
    /// What it carries, as a range of [`Notes::records`].
    pub records: Range<usize>,
}

/// Recorded packets.
#[derive(Default)]
pub struct Notes {
    pub seen: Vec<Seen>,
    pub records: Vec<IntRecord>,
}

/// The taps of a partition.
#[derive(Default)]
pub struct Taps {
    /// By tap: the destination of its packets, and the index of the link.
    links: Vec<(Destination, u16)>,
    notes: Notes,
    /// Nothing is recorded any more.
    closed: bool,
    /// What records instead of a capture.
    pub trace: Option<Box<Trace>>,
}

impl Taps {
    /// Adds a tap to a link with this destination. Returns the new destination of its port.
    pub fn add(&mut self, destination: Destination, link: u16) -> Destination {
        self.links.push((destination, link));
        Destination(Destination::TAPPED | (self.links.len() - 1) as u16)
    }

    /// The destination of a tap's packets, and the index of its link.
    pub fn link(&self, tap: usize) -> (Destination, u16) {
        self.links[tap]
    }

    /// Records a packet; `copy` appends what it carries.
    pub fn note(&mut self, mut seen: Seen, copy: impl FnOnce(&mut Vec<IntRecord>)) {
        if self.closed {
            return;
        }
        let from = self.notes.records.len();
        copy(&mut self.notes.records);
        seen.records = from..self.notes.records.len();
        self.notes.seen.push(seen);
    }

    /// Returns true if a batch is ready to be passed on.
    pub fn is_full(&self) -> bool {
        self.notes.seen.len() >= BATCH
    }

    /// Appends the recorded packets to `to`.
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

    /// Ends the recording.
    pub fn close(&mut self) {
        self.closed = true;
    }
}

impl Notes {
    /// Sorts packets of all partitions by time, then link.
    pub fn sort(&mut self) {
        self.seen.sort_by_key(|seen| (seen.time, seen.link));
    }

    pub fn clear(&mut self) {
        self.seen.clear();
        self.records.clear();
    }
}
