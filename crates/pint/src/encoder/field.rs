//! Where queries lie in a digest: the slots of a set, as a plan has them, and the fields that they come to.

use super::step::Operation;
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

/// A set of queries: it has the packets with q from the previous set's `until` to its own, in units of 2^-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set<'a> {
    /// Cumulative share, at most 65 536.
    pub until: u32,
    pub slots: &'a [Slot],
}
