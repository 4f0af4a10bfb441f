//! Where queries lie in a digest: the slots of a set, as a plan has them, and the fields that they come to.

use super::MAX_COPIES;
use super::step::Operation;
use crate::code::survivor;
use crate::hash::Key;

/// Room for a query in a set: `copies` fields of `bits` bits from bit `offset` on, the first lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Index of the query.
    pub query: u32,
    pub offset: u32,
    /// Bits of one copy.
    pub bits: u32,
    pub copies: u32,
    /// Copy n hashes with `Key::new(key.0, n)`.
    pub key: Key,
}

/// One copy of one query in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The key of this copy.
    pub key: Key,
    pub query: u8,
    pub copy: u8,
    pub offset: u8,
    pub bits: u8,
    /// The next field is another copy of the same query.
    pub(super) copied: bool,
    /// How far a hash of 64 bits is shifted down for its upper ones to fall on the field.
    pub(super) down: u8,
    /// Ones where the field lies.
    pub(super) mask: u64,
    pub(super) operation: Operation,
}

impl Field {
    /// Its bits of a digest.
    #[inline]
    pub const fn read(&self, digest: u64) -> u64 {
        (digest & self.mask) >> self.offset
    }

    /// The digest with its bits replaced.
    #[inline]
    pub const fn write(&self, digest: u64, value: u64) -> u64 {
        digest & !self.mask | value << self.offset & self.mask
    }

    /// The largest number that it holds.
    #[inline]
    pub(super) const fn limit(&self) -> u64 {
        self.mask >> self.offset
    }
}

/// The fields of a sampling query that bring samples of a packet, each with the hop (from 1) that wrote it. A
/// hop that wrote several copies is taken once: its value in them is one sample, not several.
pub fn samples<'f>(
    fields: impl IntoIterator<Item = &'f Field>,
    packet: u64,
    hops: u32,
) -> impl Iterator<Item = (&'f Field, u32)> {
    let (mut seen, mut count) = ([0; MAX_COPIES as usize], 0);
    fields.into_iter().filter_map(move |field| {
        let hop = survivor(field.key.word(packet), hops);
        if seen[..count].contains(&hop) {
            return None;
        }
        if let Some(place) = seen.get_mut(count) {
            *place = hop;
            count += 1;
        }
        Some((field, hop))
    })
}

/// A set of queries: it has the packets with q from the previous set's `until` to its own, in units of 2^-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set<'a> {
    /// Cumulative share, at most 65 536.
    pub until: u32,
    pub slots: &'a [Slot],
}
